"""AUC and p@C of documents: against scikit-learn and by hand; the paper's skip rules."""

import numpy as np
import pytest
from command_server import sightline
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.documents import Document
from sightline.evaluation import Evaluation, evaluate, mean_scores, score_document
from sightline.problems import SightlineError
from sightline.readers.native import write_jsonl


def test_auc_on_large_random_matrices_equals_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.normal(size=(40, 30)).astype(np.float32).round(1)
        true = rng.random((40, 30)) < 0.05
        links = [(int(s), int(v)) for s, v in np.argwhere(true)]
        found = score_document("d", scores, links)
        assert found.auc == pytest.approx(100 * roc_auc_score(true.ravel(), scores.ravel()))


def test_a_document_by_hand():
    # Sorted: 0.9 true, 0.8 false, 0.3 true, 0.1 false.
    score = score_document("d", np.array([[0.9, 0.8], [0.1, 0.3]]), [(0, 0), (1, 1)], (1, 2, 3, 9))
    assert score.auc == 75
    assert score.precision == {1: 100, 2: 50, 3: pytest.approx(200 / 3), 9: 50}
    assert (score.sentences, score.images, score.links) == (2, 2, 2)


@pytest.mark.parametrize("links", [[], [(0, 0), (0, 1), (1, 0), (1, 1)]])
def test_documents_without_or_with_every_link_are_skipped(links):
    assert score_document("d", np.zeros((2, 2)), links) is None


def test_a_constant_model_is_chance():
    score = score_document("d", np.zeros((5, 5)), [(0, 0)])
    assert score.auc == 50
    assert score.precision[1] == pytest.approx(4)


def test_means_are_over_documents_not_pairs():
    long = score_document("a", np.eye(10), [(0, 0)])
    short = score_document("b", np.array([[0.0, 1.0]]), [(0, 0)])
    means = mean_scores([long, short], skipped=3)
    assert means["auc"] == pytest.approx((long.auc + short.auc) / 2)
    assert (means["documents"], means["skipped"]) == (2, 3)
    assert mean_scores([], skipped=1)["auc"] is None


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_shuffling_sentences_and_images_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(6, 4))
    links = [(1, 2), (3, 0)]
    rows, columns = rng.permutation(6), rng.permutation(4)
    moved = [(int(np.argmax(rows == s)), int(np.argmax(columns == v))) for s, v in links]
    one = score_document("d", matrix, links)
    two = score_document("d", matrix[rows][:, columns], moved)
    assert one.auc == pytest.approx(two.auc)
    assert one.precision == pytest.approx(two.precision)


def test_an_evaluation_is_the_means_and_knows_its_documents():
    scores = [score_document(name, np.eye(3), [(0, 0)], (1,)) for name in "ab"]
    found = Evaluation(mean_scores(scores, 1, (1,)), scores)
    assert found == {
        "documents": 2,
        "skipped": 1,
        "auc": scores[0].auc,
        "p@1": pytest.approx(100 / 3),
    }
    assert [*found.to_pandas().columns] == ["id", "auc", "p@1", "sentences", "images", "links"]
    assert found.to_arrow().to_pylist() == [score.to_record() for score in scores]
    assert "33.3" in found._repr_html_()


def test_a_split_that_is_not_there_is_an_error(textbooks):
    with pytest.raises(SightlineError, match="no document has the split 'tset'"):
        evaluate("default", textbooks, "tset")


# ---- the command


def test_documents_without_a_split_are_scored_with_all(tmp_path):
    document = Document("a", ("A dog.", "A cat."), ("a.jpg", "b.jpg"), ((0, 0),))
    write_jsonl([document], tmp_path / "documents.jsonl")
    _, words = sightline("evaluate", "random", tmp_path, expect=1)
    assert "no document has the split 'test', its documents have no split; 'all' takes" in words
    out, _ = sightline("evaluate", "random", tmp_path, "--split", "all")
    assert out.splitlines()[0].split() == ["documents", "1"]


def test_values_stand_below_each_other_however_long_a_name_is(tmp_path):
    document = Document("a", ("A dog.", "A cat."), ("a.jpg", "b.jpg"), ((0, 0),), "test")
    write_jsonl([document], tmp_path / "documents.jsonl")
    out, _ = sightline("evaluate", "random", tmp_path, "--cutoff", 10**20)
    lines = out.splitlines()
    assert f"p@{10**20}  " in out and len({len(one) - len(one.split()[1]) for one in lines}) == 1
