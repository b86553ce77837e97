"""Metrics on arrays: against their definitions and scikit-learn, one document and many."""

import doctest
import math

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import Document, SightlineError, metrics
from sightline.evaluation import mean_scores, score_document
from sightline.metrics import (
    area_under_curve,
    link_auc_score,
    link_scores,
    precision_at,
    precision_at_k,
)

# Few distinct scores, so that ties are common.
labelled = st.lists(
    st.tuples(st.booleans(), st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0])), min_size=2, max_size=6
).filter(lambda pairs: len({true for true, _ in pairs}) == 2)


def arrays(pairs):
    return np.array([true for true, _ in pairs]), np.array([score for _, score in pairs])


@settings(max_examples=200, deadline=None)
@given(pairs=labelled)
def test_auc_equals_its_definition_and_scikit_learn(pairs):
    from sklearn.metrics import roc_auc_score

    true, scores = arrays(pairs)
    found = area_under_curve(true, scores)
    assert found == pytest.approx(reference.area_under_curve(true, scores))
    assert found == pytest.approx(roc_auc_score(true, scores))


@settings(max_examples=100, deadline=None)
@given(pairs=labelled, cutoff=st.integers(1, 8))
def test_precision_is_the_mean_over_all_orders_of_ties(pairs, cutoff):
    true, scores = arrays(pairs)
    assert precision_at(true, scores, cutoff) == pytest.approx(
        reference.precision_at(true.tolist(), scores.tolist(), cutoff)
    )


def random_documents(seed, count=12):
    """Matrices with ties and their truth; of some documents, no or every pair is a link."""
    rng = np.random.default_rng(seed)
    scores, truths = [], []
    for number in range(count):
        shape = rng.integers(1, 9, 2)
        scores.append(rng.normal(size=shape).astype(np.float32).round(1))
        truths.append(rng.random(shape) < (0, 0.3, 0.3, 1)[number % 4])
    return truths, scores


def as_pairs(true_SV):
    return [tuple(pair) for pair in np.argwhere(true_SV).tolist()]


@pytest.mark.parametrize("seed", range(8))
def test_the_mean_over_documents_is_that_of_scikit_learn(seed):
    from sklearn.metrics import roc_auc_score

    truths, scores = random_documents(seed)
    expected = [
        roc_auc_score(true.ravel(), score.ravel())
        for true, score in zip(truths, scores, strict=True)
        if true.any() and not true.all()
    ]
    assert link_auc_score(truths, scores) == pytest.approx(np.mean(expected))
    assert link_auc_score([as_pairs(true) for true in truths], scores) == pytest.approx(
        np.mean(expected)
    )


def test_pairs_and_matrices_say_the_same_of_one_document():
    truths, scores = random_documents(1)
    for true, score in zip(truths, scores, strict=True):
        for measure in (link_auc_score, precision_at_k):
            one = measure(as_pairs(true), score)
            assert one == pytest.approx(measure(true.astype(int), score.tolist()), nan_ok=True)
            assert math.isnan(one) == (not true.any() or true.all())


def test_many_documents_are_scored_as_evaluation_does():
    truths, scores = random_documents(2, 20)
    pairs = [as_pairs(true) for true in truths]
    documents = [score_document("d", *both) for both in zip(scores, pairs, strict=True)]
    known = [one for one in documents if one is not None]
    expected = mean_scores(known, len(documents) - len(known))
    found = link_scores(pairs, scores)
    assert (found["documents"], found["skipped"]) == (len(known), len(documents) - len(known))
    assert [100 * found[name] for name in ("auc", "p@1", "p@5")] == pytest.approx(
        [expected[name] for name in ("auc", "p@1", "p@5")]
    )
    by_document = link_auc_score(pairs, scores, average=None)
    assert np.isnan(by_document).tolist() == [one is None for one in documents]


def test_documents_themselves_can_be_scored():
    known = Document("a", ("x", "y"), ("p", "q"), ((0, 0),))
    unknown = Document("b", ("x",), ("p",))
    truths = [document.links for document in (known, unknown)]
    found = link_scores(truths, [np.eye(2), np.ones((1, 1))])
    assert (found["documents"], found["skipped"], found["p@1"]) == (1, 1, 0.5)


def test_what_is_not_defined_is_nan():
    for truth in ([], [(0, 0), (0, 1)], None, np.zeros((1, 2)), np.ones((1, 2))):
        assert math.isnan(link_auc_score(truth, [[1.0, 2.0]]))
        assert math.isnan(precision_at_k(truth, [[1.0, 2.0]], 1))
    assert math.isnan(link_auc_score([], []))
    assert link_scores([[]], [[[1.0, 2.0]]])["skipped"] == 1


def test_a_list_is_pairs_and_an_array_a_matrix_whatever_their_shape():
    score = np.array([[0.9, 0.1], [0.2, 0.3]])
    assert link_auc_score([[0, 0], [1, 1]], score) == 1
    assert link_auc_score(np.array([[0, 0], [1, 1]]), score) == 0.5
    tensor = pytest.importorskip("torch").tensor([[0, 0], [1, 1]])
    assert link_auc_score(tensor, score) == 0.5


@pytest.mark.parametrize(
    ("y_true", "y_score", "words"),
    [
        (np.zeros((3, 2)), np.zeros((2, 3)), r"shape \(3, 2\), y_score \(2, 3\).*tolist"),
        ([[0, 1, 0], [0, 0, 1]], np.zeros((2, 3)), "0/1 matrix as a numpy array"),
        ([(0.5, 1)], np.zeros((2, 3)), "index pairs"),
        ([(True, False)], np.zeros((2, 2)), "numpy array"),
        (3, np.zeros((2, 2)), "index pairs"),
        ([(0, 3)], np.zeros((2, 3)), "sentence 0 and image 3.*2 sentences and 3 images"),
        ([(-1, 0)], np.zeros((2, 3)), "sentence -1"),
        (np.full((2, 3), 2), np.zeros((2, 3)), "other numbers than 0 and 1"),
        ([(0, 0)], np.zeros(3), "sentences x images"),
        ([(0, 0)], [["a", "b"]], "matrix of numbers"),
        ([(0, 0)], [[1.0], [1.0, 2.0]], "matrix of numbers"),
        ([(0, 0)], [[1.0, math.nan]], "nan for sentence 0 and image 1"),
        ([[(0, 0)]], [np.eye(2), np.eye(2)], "1 documents, y_score 2"),
        (None, [np.eye(2)], "not a list of as many"),
        ([[(0, 9)]], [np.eye(2)], r"y_true\[0\] links"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(y_true, y_score, words):
    with pytest.raises(SightlineError, match=words) as refusal:
        link_auc_score(y_true, y_score)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "1"])
def test_k_is_a_whole_number_from_one_on(k):
    with pytest.raises(SightlineError, match="from 1 on"):
        precision_at_k([(0, 0)], np.eye(2), k)


def test_the_examples_are_true():
    found = doctest.testmod(metrics)
    assert (found.failed, found.attempted) == (0, 3)
