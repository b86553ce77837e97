"""The torch encoders do what the paper says, and the numpy ones do the same."""

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import numpy_encoders
from sightline.batches import Sentences, time_major
from sightline.encoders import Encoders
from sightline.objective import loss_of
from sightline.settings import Settings

WORDS, FEATURES = 30, 12
KINDS = [("gru", 1), ("gru", 2), ("attention", 1), ("attention", 2)]


def make(kind, layers, dropout=0.4, dimension=16):
    chosen = Settings(
        sentence_encoder=kind, layers=layers, dimension=dimension, hidden=20, dropout=dropout
    )
    embedding = np.random.default_rng(0).normal(size=(WORDS, 300)).astype(np.float32)
    encoders = Encoders(embedding, FEATURES, chosen, seed=3)
    if kind == "attention":  # away from its zero start, so that the test sees the weighting
        torch.nn.init.normal_(encoders.sentence.attention, std=0.1)
    return encoders


def weights_of(encoders):
    return {name: weight.numpy() for name, weight in encoders.state_dict().items()}


def sentences_of(lists):
    return Sentences(
        np.array([token for tokens in lists for token in tokens], np.int64),
        np.array([len(tokens) for tokens in lists], np.int64),
    )


token_lists = st.lists(
    st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=9), min_size=1, max_size=12
)


@pytest.mark.parametrize(("kind", "layers"), KINDS)
@settings(max_examples=25, deadline=None)
@given(lists=token_lists)
def test_numpy_equals_torch_on_sentences(kind, layers, lists):
    encoders = make(kind, layers)
    sentences = sentences_of(lists)
    expected = encoders.sentence(sentences).detach().numpy()
    found = numpy_encoders.encode_sentences(weights_of(encoders), sentences)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(("kind", "layers"), KINDS)
def test_numpy_equals_torch_on_images(kind, layers):
    encoders = make(kind, layers)
    features = np.random.default_rng(1).normal(size=(50, FEATURES)).astype(np.float32)
    expected = encoders.image(torch.from_numpy(features)).detach().numpy()
    found = numpy_encoders.encode_images(weights_of(encoders), features)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_numpy_equals_torch_at_the_papers_size_and_over_many_sentences():
    encoders = make("gru", 1, dimension=1024)
    rng = np.random.default_rng(2)
    lists = [rng.integers(0, WORDS, rng.integers(1, 21)).tolist() for _ in range(1100)]
    sentences = sentences_of(lists)  # more than one pass of the numpy encoder
    with torch.no_grad():
        expected = encoders.sentence(sentences).numpy()
    found = numpy_encoders.encode_sentences(weights_of(encoders), sentences)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_sentence_is_the_unit_final_state_of_the_gru():
    encoders = make("gru", 1, dimension=4)
    tokens = [3, 1, 4, 1, 5]
    weights = {name: weight.tolist() for name, weight in encoders.sentence.state_dict().items()}
    state = reference.gru(
        [weights["embedding"][token] for token in tokens],
        weights["weight_ih"], weights["weight_hh"], weights["bias_ih"], weights["bias_hh"],
    )  # fmt: skip
    expected = np.array(state) / np.linalg.norm(state)
    found = encoders.sentence(sentences_of([[7, 7], tokens, [0]]))[1]
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-5)


def test_attention_starts_as_the_plain_mean_of_word_vectors():
    encoders = make("attention", 1)
    torch.nn.init.zeros_(encoders.sentence.attention)
    mean = encoders.sentence.embedding[[2, 5, 5]].mean(0)
    expected = torch.nn.functional.normalize(encoders.sentence.head[0](mean), dim=0)
    found = encoders.sentence(sentences_of([[2, 5, 5]]))[0]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", ["gru", "attention"])
def test_all_parameters_learn(kind):
    encoders = make(kind, 2)
    generator = torch.Generator().manual_seed(0)
    out = encoders.sentence(sentences_of([[1, 2, 3], [4, 5]]), generator)
    images = encoders.image(torch.randn(2, FEATURES), generator)
    (out * images).sum().backward()
    seen = 0
    for name, parameter in encoders.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
        seen += 1
    assert seen >= 8


def test_dropout_drops_whole_embedding_dimensions_per_sentence():
    """With the word embedding's dropped dimensions at zero, all words of a sentence lose them."""
    encoders = make("gru", 1, dropout=0.5)
    seen = {}

    def catch(embedding, running, *weights):
        seen["embedding"] = embedding.detach()
        return torch.zeros(running[0], 16)

    import sightline.encoders as module

    original = module.gru_final_state
    module.gru_final_state = catch
    try:
        sentences = sentences_of([[1, 2, 3], [4, 5, 6]])
        encoders.sentence(sentences, torch.Generator().manual_seed(1))
    finally:
        module.gru_final_state = original
    packed = time_major(sentences)
    plain = encoders.sentence.embedding.detach()[packed.token_ids]
    dropped = seen["embedding"] == 0
    for sentence in range(2):
        masks = dropped[packed.sentence_of_token == sentence]
        assert (masks == masks[0]).all()
        assert 0.3 < masks[0].float().mean() < 0.7
    assert (
        dropped[packed.sentence_of_token == 0][0] != dropped[packed.sentence_of_token == 1][0]
    ).any()
    kept = ~dropped
    torch.testing.assert_close(seen["embedding"][kept], 2 * plain[kept])


@settings(max_examples=50, deadline=None)
@given(lists=token_lists)
def test_time_major_holds_every_token_at_its_step(lists):
    packed = time_major(sentences_of(lists))
    rebuilt = [[] for _ in lists]
    starts = np.cumsum([0, *packed.running])
    for step, count in enumerate(packed.running):
        for place in range(count):
            token = packed.token_ids[starts[step] + place]
            assert packed.sentence_of_token[starts[step] + place] == place
            rebuilt[place].append(int(token))
    assert [rebuilt[place] for place in packed.place_of_sentence] == lists


@pytest.mark.parametrize("kind", ["gru", "attention"])
def test_long_runs_of_extreme_values_stay_finite(kind):
    encoders = make(kind, 1)
    with torch.no_grad():
        encoders.sentence.embedding[1] = 1e4
        encoders.sentence.embedding[2] = -1e4
    sentences = sentences_of([[1] * 50, [2] * 50, [1, 2] * 25])
    found = numpy_encoders.encode_sentences(weights_of(encoders), sentences)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, encoders.sentence(sentences).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("kind", ["gru", "attention"])
@settings(max_examples=15, deadline=None)
@given(lists=token_lists, fixed_words=st.integers(1, WORDS - 1))
def test_fixed_words_change_nothing_but_that_they_do_not_learn(kind, lists, fixed_words):
    whole = make(kind, 2)
    parted = Encoders(
        whole.sentence.embedding.detach().numpy(),
        FEATURES,
        Settings(sentence_encoder=kind, layers=2, dimension=16, hidden=20),
        seed=3,
        fixed_words=fixed_words,
    )
    state = whole.state_dict()
    state["sentence.embedding"] = state["sentence.embedding"][fixed_words:]
    parted.load_state_dict(state)
    sentences = sentences_of(lists)
    direction = torch.randn(len(lists), 16, generator=torch.Generator().manual_seed(1))
    vectors = [encoders.sentence(sentences) for encoders in (whole, parted)]
    torch.testing.assert_close(*vectors)
    for vector in vectors:
        (vector * direction).sum().backward()
    of_whole, of_parted = whole.sentence.embedding.grad, parted.sentence.embedding.grad
    torch.testing.assert_close(of_parted, of_whole[fixed_words:], atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(parted.sentence.whole_embedding(), whole.sentence.embedding.detach())


@pytest.mark.parametrize(("kind", "layers"), KINDS)
def test_everything_is_computed_where_the_weights_are(kind, layers):
    """On `meta`, a device without numbers, which refuses tensors of another as a GPU does."""
    encoders = make(kind, layers).to("meta")
    draws = torch.Generator().manual_seed(1)
    sentence_NE = encoders.sentence(sentences_of([[1, 2, 3], [4], [5, 6]]), draws)
    image_ME = encoders.image(torch.empty(3, FEATURES, device="meta"), draws)
    loss_of(sentence_NE @ image_ME.T, Settings()).mean().backward()
    assert {parameter.grad.device.type for parameter in encoders.parameters()} == {"meta"}
    with pytest.raises(RuntimeError, match="device"):  # what this test can see
        encoders.image(torch.zeros(3, FEATURES))
