"""The numbers are right: what must not change a result does not, for documents of any shape.

Tested elsewhere: the area under the curve is scikit-learn's (`test_evaluation`), a cap on links
gives the best total that brute force finds (`test_assignment`).
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharded_corpus import IMAGES, WORDS, tiny_model

from sightline.confidence import Calibration
from sightline.documents import Document
from sightline.evaluation import mean_scores, score_document
from sightline.features import FeatureStore, write_feature_store
from sightline.image_features import StoredImages
from sightline.link_records import link_records
from sightline.linking import LinkChoices, link

MODELS = {kind: tiny_model(kind) for kind in ("attention", "gru")}
POLICIES = ["assignment", "dense", "top-k", "threshold", "mmc4"]
sentence = st.lists(st.sampled_from(WORDS[1:]), min_size=1, max_size=12).map(" ".join)
sentences = st.lists(sentence, min_size=1, max_size=7)
kinds = st.sampled_from(sorted(MODELS))
seeds = st.integers(0, 2**32 - 1)
ATOL = 2e-6  # of cosines in float32, added up in another order


def features_for(rng, images):
    return rng.normal(size=(images, 6)).astype(np.float32)


def document(texts, images, name="d"):
    return Document(name, tuple(texts), tuple(f"i{number}" for number in range(images)))


@settings(max_examples=40, deadline=None)
@given(kinds, sentences, st.integers(1, 6), seeds)
def test_permuting_sentences_and_images_permutes_the_matrix(kind, texts, images, seed):
    model, rng = MODELS[kind], np.random.default_rng(seed)
    features = features_for(rng, images)
    rows, columns = rng.permutation(len(texts)), rng.permutation(images)
    matrix = model.similarity_matrix(document(texts, images), features)
    moved = model.similarity_matrix(document([texts[s] for s in rows], images), features[columns])
    np.testing.assert_allclose(moved, matrix[np.ix_(rows, columns)], atol=ATOL)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(POLICIES), st.integers(1, 8), st.integers(1, 8), seeds)
def test_permuting_sentences_and_images_permutes_the_links(policy, high, wide, seed):
    """Numbers without ties, of which any one may win."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(high, wide))
    rows, columns = rng.permutation(high), rng.permutation(wide)
    found = {(one.sentence, one.image, one.score) for one in link(matrix, policy, "half", 0.1)}
    moved = {
        (int(rows[one.sentence]), int(columns[one.image]), one.score)
        for one in link(matrix[np.ix_(rows, columns)], policy, "half", 0.1)
    }
    assert moved == found


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), seeds)
def test_permuting_permutes_the_confidences(high, wide, seed):
    rng = np.random.default_rng(seed)
    known = Calibration(float(rng.uniform(0.1, 200)), float(rng.uniform(-1, 2)), 50)
    matrix = rng.uniform(-1, 1, (high, wide))
    order = np.ix_(rng.permutation(high), rng.permutation(wide))
    np.testing.assert_allclose(
        known.confidences(matrix[order]), known.confidences(matrix)[order], rtol=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(kinds, st.lists(st.tuples(sentences, st.integers(1, 5)), min_size=2, max_size=5), seeds)
def test_other_documents_of_a_batch_change_nothing(kind, parts, seed):
    model, rng = MODELS[kind], np.random.default_rng(seed)
    documents = [document(texts, images) for texts, images in parts]
    features = [features_for(rng, images) for _, images in parts]
    # The last one is far away: a thousand times as large, and no smaller sentence.
    features[-1] *= 1000
    together = model.similarity_matrices(documents, np.vstack(features))
    for one, of_one, matrix in zip(documents, features, together, strict=True):
        np.testing.assert_allclose(model.similarity_matrix(one, of_one), matrix, atol=ATOL)


@settings(max_examples=40, deadline=None)
@given(kinds, sentences, sentence, st.integers(1, 5), seeds)
def test_a_further_sentence_adds_a_row_and_changes_no_other(kind, texts, more, images, seed):
    model, rng = MODELS[kind], np.random.default_rng(seed)
    features = features_for(rng, images)
    matrix = model.similarity_matrix(document(texts, images), features)
    longer = model.similarity_matrix(document([*texts, more], images), features)
    np.testing.assert_allclose(longer[:-1], matrix, atol=ATOL)
    twice = model.similarity_matrix(document([*texts, texts[0]], images), features)
    np.testing.assert_allclose(twice[-1], twice[0], atol=ATOL)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), seeds)
def test_a_sentence_that_comes_twice_lowers_no_total_and_adds_no_new_best(high, wide, seed):
    matrix = np.random.default_rng(seed).normal(size=(high, wide))
    doubled = np.vstack([matrix, matrix[:1]])
    total, again = (sum(one.score for one in link(m)) for m in (matrix, doubled))
    assert again >= total - 1e-12
    dense = {one.score for one in link(matrix, "dense")}
    assert {one.score for one in link(doubled, "dense")} == dense


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100), st.floats(-50, 50), st.integers(2, 6), st.integers(2, 6), seeds)
def test_the_scale_of_the_scores_changes_no_evaluation(factor, shift, high, wide, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 8, (high, wide)).astype(float)
    one = score_document("d", matrix, [(0, 1)])
    two = score_document("d", factor * matrix + shift, [(0, 1)])
    assert one.auc == two.auc and one.precision == two.precision


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 12))
def test_the_order_of_documents_changes_no_mean(seed, count):
    rng = np.random.default_rng(seed)
    scores = [score_document(str(n), rng.normal(size=(4, 3)), [(n % 4, 0)]) for n in range(count)]
    shuffled = [scores[n] for n in rng.permutation(count)]
    one, two = mean_scores(scores, skipped=0), mean_scores(shuffled, skipped=0)
    assert one.keys() == two.keys() and {"auc"} <= one.keys()
    assert one["auc"] == pytest.approx(two["auc"], abs=1e-12)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, policy=st.sampled_from(POLICIES))
def test_the_order_of_a_corpus_orders_its_records_and_changes_none(seed, policy, tmp_path_factory):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("store")
    write_feature_store(folder, "some-net", IMAGES, features_for(rng, len(IMAGES)), {})
    images = StoredImages(FeatureStore.open(folder))
    documents = [
        Document(
            str(number),
            different_sentences(rng, rng.integers(1, 7)),
            tuple(rng.choice([*IMAGES, "absent"], rng.integers(1, 6), replace=False).tolist()),
        )
        for number in range(30)
    ]
    order = rng.permutation(30)
    choices = LinkChoices(policy)
    given_order = list(link_records(MODELS["attention"], documents, images, choices))
    moved = list(link_records(MODELS["attention"], [documents[n] for n in order], images, choices))
    alone = [next(link_records(MODELS["attention"], [one], images, choices)) for one in documents]
    for place, number in enumerate(order):
        assert_same(moved[place], given_order[number])
        assert_same(alone[number], given_order[number])


def different_sentences(rng, count):
    """Sentences that differ in their words: by their order alone, the scores of some are a tie."""
    found = {}
    while len(found) < count:
        words = rng.choice(WORDS[1:], 5).tolist()
        found.setdefault(tuple(sorted(words)), " ".join(words))
    return tuple(found.values())


def assert_same(one, two):
    assert one["id"] == two["id"] and one["images"] == two["images"]
    assert pairs(one) == pairs(two)
    np.testing.assert_allclose(sorted(scores(one)), sorted(scores(two)), atol=ATOL)


def pairs(record):
    return {(link["sentence"], link["image"]) for link in record["links"]}


def scores(record):
    return [link["score"] for link in record["links"]]


def test_a_model_that_looks_at_places_fails_these_tests():
    """The control: a score that depends on a sentence's place is noticed by permuting."""
    model, features = MODELS["attention"], features_for(np.random.default_rng(0), 2)
    texts = ["a dog runs", "the cat sleeps", "red grass"]

    def by_place(document, features):
        places = np.arange(len(document.sentences))[:, None]
        return model.similarity_matrix(document, features) + places / 1e4

    matrix = by_place(document(texts, 2), features)
    moved = by_place(document(texts[::-1], 2), features)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(moved, matrix[::-1], atol=ATOL)
    # And one whose documents leak into each other, by encoding them with the mean of the batch.
    both = np.vstack([features, 1000 * features])
    centred = model.encode_images(both - both.mean(0))
    alone = model.encode_images(features - features.mean(0))
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(centred[:2], alone, atol=ATOL)
