"""Training on real textbook sections: what is written, what is repeated, what survives a kill."""

import numpy as np
import orjson
import pytest
import torch
from command_server import sightline
from training_helpers import first_sections, kill_after

from sightline import training, training_data
from sightline.adam import Adam
from sightline.batches import open_features
from sightline.calibration import store_calibration
from sightline.checkpoints import RunState
from sightline.confidence import Calibration
from sightline.corpus import read
from sightline.model import LinkModel
from sightline.problems import Problems, SightlineError
from sightline.readers.native import write_jsonl
from sightline.settings import Settings

SMALL = {"dimension": 16, "hidden": 16, "epochs": 3, "negative_documents": 5, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory, textbooks):
    """60 training and 20 validation sections of the bundled corpus, with its features."""
    return first_sections(tmp_path_factory.mktemp("corpus"), textbooks, train=60, val=20)


def run(corpus_folder, output, resume=False, **changes):
    corpus = read(corpus_folder)
    settings = Settings(**{**SMALL, **changes})
    return training.train(corpus, output, settings, open_features(corpus), resume=resume)


def log_of(folder):
    return [orjson.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()]


def files_equal(one, two, name="model.safetensors"):
    return (one / name).read_bytes() == (two / name).read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"similarity": "TK", "max_links": "half", "negatives": "mean"},
        {"similarity": "DC"},
        {"similarity": "NoStruct"},
        {"similarity": "DC", "sentence_encoder": "attention", "layers": 2, "loss": "softmax"},
    ],
    ids=["AP", "TK-half-mean", "DC", "NoStruct", "fast"],
)
def test_every_model_of_the_paper_learns(corpus_folder, tmp_path, changes):
    best = run(corpus_folder, tmp_path / "m", epochs=4, **changes)
    records = log_of(tmp_path / "m")
    epochs = [record for record in records if "epoch" in record]
    assert [record["epoch"] for record in epochs] == [1, 2, 3, 4]
    assert epochs[-1]["training_loss"] < epochs[0]["training_loss"]
    assert best["validation_loss"] == min(record["validation_loss"] for record in epochs)
    model = LinkModel.from_pretrained(tmp_path / "m")
    assert model.settings.similarity == changes.get("similarity", "AP")
    assert model.backbone == "efficientnet-lite0"


def test_same_seed_same_bytes_other_seed_others(corpus_folder, tmp_path):
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        run(corpus_folder, tmp_path / name, seed=seed, epochs=2)
    assert files_equal(tmp_path / "a", tmp_path / "b")
    assert files_equal(tmp_path / "a", tmp_path / "b", "checkpoint.safetensors")
    assert not files_equal(tmp_path / "a", tmp_path / "c")


def test_resumed_run_equals_an_unbroken_one_bit_for_bit(corpus_folder, tmp_path):
    run(corpus_folder, tmp_path / "whole", epochs=4)
    run(corpus_folder, tmp_path / "parts", epochs=2)
    run(corpus_folder, tmp_path / "parts", epochs=4, resume=True)
    for name in ("model.safetensors", "checkpoint.safetensors"):
        assert files_equal(tmp_path / "whole", tmp_path / "parts", name)
    losses = [
        [record["validation_loss"] for record in log_of(tmp_path / name) if "epoch" in record]
        for name in ("whole", "parts")
    ]
    assert losses[0] == losses[1] and len(losses[0]) == 4


def test_killed_run_goes_on_to_the_same_weights(corpus_folder, tmp_path):
    """kill -9 in the middle of an epoch, then --resume."""
    options = ["--dimension", "16", "--epochs", "6", "--negative-documents", "5", "--learning-rate",
               "0.001"]  # fmt: skip
    command = ["train", str(corpus_folder), *options, "-o"]
    sightline(*command, tmp_path / "whole")
    kill_after(2, command, tmp_path / "killed")
    LinkModel.from_pretrained(tmp_path / "killed")  # the last good state is a model
    assert len(log_of(tmp_path / "killed")) < 7
    sightline(*command, tmp_path / "killed", "--resume")
    for name in ("model.safetensors", "checkpoint.safetensors"):
        assert files_equal(tmp_path / "whole", tmp_path / "killed", name)


def test_a_log_line_cut_by_a_kill_is_dropped_on_resume(corpus_folder, tmp_path):
    run(corpus_folder, tmp_path / "m", epochs=1)
    with (tmp_path / "m" / "log.jsonl").open("ab") as log:
        log.write(b'{"epoch":2,"training_lo')
    (tmp_path / "m" / ".sightline-0123.tmp").write_bytes(b"half a checkpoint")
    run(corpus_folder, tmp_path / "m", epochs=2, resume=True)
    assert not list((tmp_path / "m").glob(".sightline-*"))
    assert [record.get("epoch") for record in log_of(tmp_path / "m")] == [None, 1, 2]


def test_the_saved_model_is_the_best_epoch_of_both_encoders(corpus_folder, tmp_path):
    """The original code scored the best text encoder with the last image encoder."""
    best = run(corpus_folder, tmp_path / "m", epochs=6, learning_rate=0.01)
    model = LinkModel.from_pretrained(tmp_path / "m")
    corpus = read(corpus_folder)
    data = training.prepare(
        corpus, open_features(corpus), model.settings, Problems(), lambda words: None
    )
    again = training.TrainingRun(
        data, model.weights["sentence.embedding"], model.settings, tmp_path / "x"
    )
    weights = {name: torch.from_numpy(weight) for name, weight in model.weights.items()}
    again.encoders.load_state_dict(weights)
    assert again.validation_loss() == pytest.approx(best["validation_loss"], abs=1e-6)


def test_another_corpus_or_other_settings_do_not_resume(corpus_folder, tmp_path, textbooks):
    run(corpus_folder, tmp_path / "m", epochs=1)
    with pytest.raises(SightlineError, match=r"--margin was 0\.2 and is now 0\.3"):
        run(corpus_folder, tmp_path / "m", epochs=2, margin=0.3, resume=True)
    with pytest.raises(SightlineError, match="other settings or another corpus"):
        run(textbooks, tmp_path / "m", epochs=2, resume=True)


def test_a_run_is_never_overwritten(corpus_folder, tmp_path):
    run(corpus_folder, tmp_path / "m", epochs=1)
    with pytest.raises(SightlineError, match="--resume"):
        run(corpus_folder, tmp_path / "m", epochs=1)


def test_files_that_no_run_wrote_are_never_overwritten(corpus_folder, tmp_path):
    (tmp_path / "README.md").write_text("years of work")
    with pytest.raises(SightlineError, match=r"README\.md that no training run wrote"):
        run(corpus_folder, tmp_path, epochs=1)
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]


def test_a_checkpoint_cut_short_is_refused_with_a_sentence(corpus_folder, tmp_path):
    run(corpus_folder, tmp_path / "m", epochs=1)
    file = tmp_path / "m" / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(SightlineError, match=r"checkpoint\.safetensors is damaged or cut short"):
        run(corpus_folder, tmp_path / "m", epochs=2, resume=True)


def test_too_few_documents_for_the_negatives(corpus_folder, tmp_path):
    with pytest.raises(SightlineError, match="20 usable validation documents"):
        run(corpus_folder, tmp_path / "m", negative_documents=20)


def test_without_a_validation_split_some_documents_are_held_out(corpus_folder, tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    documents = list(read(corpus_folder).documents("train"))
    write_jsonl(documents, folder / "documents.jsonl")
    (folder / "features").symlink_to(corpus_folder / "features")
    said = []
    corpus = read(folder)
    data = training.prepare(
        corpus, open_features(corpus), Settings(**SMALL), Problems(), said.append
    )
    assert (len(data.training), len(data.validation)) == (40, 20)
    assert "one training document in 3 (20) is held out" in said[0]
    assert not set(data.training.ids) & set(data.validation.ids)


@pytest.mark.parametrize(
    ("documents", "held_out"), [(33, 11), (90, 30), (200, 34), (299, 34), (300, 30), (5000, 500)]
)
def test_small_corpora_hold_out_enough_for_a_calibration(documents, held_out):
    assert len(range(0, documents, training_data._held_out_step(documents))) == held_out


def test_a_run_that_breaks_off_in_its_first_epoch_leaves_no_model(
    corpus_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(training.TrainingRun, "train_epoch", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(corpus_folder, tmp_path / "m", epochs=1)
    monkeypatch.undo()
    with pytest.raises(SightlineError, match="is not a complete model folder"):
        LinkModel.from_pretrained(tmp_path / "m")
    run(corpus_folder, tmp_path / "m", epochs=1, resume=True)
    assert LinkModel.from_pretrained(tmp_path / "m").notes["best_epoch"] == 1


def test_a_finished_run_stays_as_it_was_calibrated_since(corpus_folder, tmp_path):
    run(corpus_folder, tmp_path / "m", epochs=1)
    store_calibration(tmp_path / "m", Calibration(sharpness=5.0, level=0.1, documents=60))
    before = (tmp_path / "m" / "config.json").read_bytes()
    run(corpus_folder, tmp_path / "m", epochs=1, resume=True)
    assert (tmp_path / "m" / "config.json").read_bytes() == before
    run(corpus_folder, tmp_path / "m", epochs=2, resume=True)
    assert (tmp_path / "m" / "config.json").read_bytes() != before


class FakeRun(training.TrainingRun):
    """Only the schedule: no data, no encoders."""

    def __init__(self, settings):
        self.settings = settings
        self.optimizer = Adam([])
        self.state = RunState(0, settings.learning_rate, float("inf"), 0, 0, "")


def schedule(losses, **changes):
    plan = FakeRun(Settings(**changes))
    rates = []
    for loss in losses:
        plan.finish_epoch(loss)
        rates.append(plan.state.learning_rate)
    return rates, plan.state


def test_learning_rate_drops_by_five_after_more_than_three_epochs_on_a_plateau():
    rates, state = schedule([0.3, 0.2, 0.2, 0.25, 0.21, 0.2, 0.2, 0.1])
    assert rates == pytest.approx([1e-4] * 5 + [2e-5] * 3)
    assert (state.best_epoch, state.best_loss) == (8, 0.1)


def test_learning_rate_waits_until_the_loss_is_below_that_of_constant_predictions():
    rates, _ = schedule([0.41] * 10)
    assert rates == [1e-4] * 10
    rates, _ = schedule([0.41] * 10, margin=0.3)
    assert rates[-1] < 1e-4
    # the softmax loss of 11 equal documents is 2 log 11 = 4.80
    assert schedule([4.81] * 10, loss="softmax")[0][-1] == 1e-4
    assert schedule([4.79] * 10, loss="softmax")[0][-1] < 1e-4


def test_no_struct_draws_other_pairs_each_epoch_and_the_same_for_validation(
    corpus_folder, tmp_path
):
    corpus = read(corpus_folder)
    data = training.prepare(
        corpus, open_features(corpus), Settings(**SMALL), Problems(), lambda words: None
    )
    rng = np.random.default_rng(0)
    batches = [data.training.batch(np.arange(6), rng) for _ in range(2)]
    for batch in batches:
        assert batch.sentences_D.tolist() == batch.images_D.tolist() == [1] * 6
    assert batches[0].image_rows.tolist() != batches[1].image_rows.tolist()
    embedding = np.zeros((len(data.vocabulary), 300), np.float32)
    plan = training.TrainingRun(data, embedding, Settings(**SMALL, similarity="NoStruct"), tmp_path)
    assert plan.validation_loss() == plan.validation_loss()


def test_validation_meets_every_document_with_the_same_number_of_negatives():
    from sightline.batches import validation_batches

    batches = list(validation_batches(np.zeros(25, np.int64), 11))
    assert [counted for _, counted in batches] == [11, 11, 3]
    assert all(len(documents) == 11 for documents, _ in batches)
    seen = [d for documents, counted in batches for d in documents[:counted]]
    assert seen == list(range(25))
    assert all(len(set(documents.tolist())) == 11 for documents, _ in batches)


@pytest.fixture(scope="module")
def word_vectors(textbooks):
    return textbooks / "word_vectors.npz"


#: What the bundled model is trained with.
RECIPE = {
    "similarity": "DC", "loss": "softmax", "sentence_encoder": "attention", "layers": 2,
    "fixed_word_vectors": True, "class_words": True, "word_dropout": 0.2, "document_cut": 4,
    "schedule": "cosine", "warm_up_steps": 3, "epochs": 3,
}  # fmt: skip


def test_the_recipe_of_the_bundled_model_keeps_word_vectors_and_resumes_exactly(
    corpus_folder, tmp_path, word_vectors
):
    corpus = read(corpus_folder)
    settings = Settings(**{**SMALL, **RECIPE})

    def start(name, **options):
        return training.train(
            corpus, tmp_path / name, settings, open_features(corpus), word_vectors, **options
        )

    start("whole")
    records = [record for record in log_of(tmp_path / "whole") if "epoch" in record]
    assert records[-1]["training_loss"] < records[0]["training_loss"]
    model = LinkModel.from_pretrained(tmp_path / "whole")
    given = np.load(word_vectors)
    row = list(given["words"]).index("cell")
    embedding = model.weights["sentence.embedding"]
    np.testing.assert_array_equal(
        embedding[model.vocabulary.index("cell")], given["vectors"][row].astype(np.float32)
    )
    # Killed after its first epoch, as the files say.
    original, training.save_checkpoint = training.save_checkpoint, _stop_after_saving
    try:
        with pytest.raises(KeyboardInterrupt):
            start("parts")
    finally:
        training.save_checkpoint = original
    start("parts", resume=True)
    assert files_equal(tmp_path / "whole", tmp_path / "parts")
    assert files_equal(tmp_path / "whole", tmp_path / "parts", "checkpoint.safetensors")


def _stop_after_saving(*arguments):
    from sightline.checkpoints import save_checkpoint

    save_checkpoint(*arguments)
    raise KeyboardInterrupt


def test_a_small_model_links_as_the_whole_one(corpus_folder, tmp_path, word_vectors):
    corpus = read(corpus_folder)
    settings = Settings(**{**SMALL, **RECIPE, "epochs": 1})
    training.train(corpus, tmp_path / "m", settings, open_features(corpus), word_vectors)
    whole = LinkModel.from_pretrained(tmp_path / "m")
    whole.save_pretrained(tmp_path / "small", small=True)
    small = LinkModel.from_pretrained(tmp_path / "small")
    assert (tmp_path / "small/model.safetensors").stat().st_size < 0.4 * (
        tmp_path / "m/model.safetensors"
    ).stat().st_size
    document = next(iter(corpus))
    np.testing.assert_allclose(
        small.similarity_matrix(document), whole.similarity_matrix(document), atol=0.01
    )


def test_fixed_word_vectors_need_a_file(corpus_folder, tmp_path):
    with pytest.raises(SightlineError, match="--word-vectors"):
        run(corpus_folder, tmp_path / "m", fixed_word_vectors=True)


def test_batches_keep_to_groups():
    from sightline.batches import training_batches, validation_batches

    group = np.array([0] * 10 + [1] * 7 + [2] * 3)
    rng = np.random.default_rng(0)
    batches = list(training_batches(group, 3, rng))
    assert len(batches) == 3 + 2 + 1
    assert all(len(set(group[documents])) == 1 for documents in batches)
    flat = [document for documents in batches for document in documents]
    assert len(flat) == len(set(flat))
    assert [group[documents[0]] for documents in batches] != sorted(
        group[documents[0]] for documents in batches
    )
    counted = [d for documents, n in validation_batches(group, 3) for d in documents[:n].tolist()]
    assert counted == list(range(20))
    assert all(len(set(group[documents])) == 1 for documents, _ in validation_batches(group, 3))


def test_negatives_within_a_key_need_enough_documents_of_each_value(corpus_folder, tmp_path):
    from dataclasses import replace

    documents = [
        replace(document, extra={"shelf": "few" if place < 3 else "many"})
        for place, document in enumerate(read(corpus_folder))
    ]
    write_jsonl(documents, tmp_path / "documents.jsonl")
    (tmp_path / "features").symlink_to(corpus_folder / "features")
    with pytest.raises(SightlineError, match="3 usable training documents with the same 'shelf'"):
        run(tmp_path, tmp_path / "m", negatives_within="shelf")


def test_word_dropout_leaves_each_sentence_a_word():
    from sightline.batches import Sentences, drop_words

    lengths = np.array([1, 5, 2, 40])
    sentences = Sentences(np.arange(48), lengths)
    kept = drop_words(sentences, 0.9, np.random.default_rng(0))
    assert (kept.lengths >= 1).all()
    assert kept.lengths.sum() == len(kept.token_ids) < 20
    assert kept.token_ids.tolist() == sorted(kept.token_ids.tolist())
    whole = drop_words(sentences, 0.0, np.random.default_rng(0))
    assert whole.token_ids.tolist() == list(range(48))
    many = Sentences(np.arange(100_000), np.full(1000, 100))
    share = len(drop_words(many, 0.3, np.random.default_rng(1)).token_ids) / 100_000
    assert abs(share - 0.7) < 0.01
