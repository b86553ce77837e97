"""Policies on literal matrices, and what each promises on any matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sightline.linking import Link, LinkChoices, confident_links, link, why_unlinked
from sightline.problems import SightlineError

MATRIX = np.array([[0.9, 0.8, 0.1], [0.7, 0.2, -0.3], [-0.1, -0.2, -0.4], [0.6, 0.5, -0.25]])

matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=st.floats(-1, 1, allow_subnormal=False),
)


def pairs(links):
    return [(found.sentence, found.image) for found in links]


@pytest.mark.parametrize(
    ("policy", "max_links", "expected"),
    [
        # 0.8 + 0.7 beats 0.9 + 0.5; nothing is left that makes image 2 worth linking
        ("assignment", "all", [(0, 1), (1, 0)]),
        ("assignment", 1, [(0, 0)]),
        ("assignment", "half", [(0, 1), (1, 0)]),
        ("dense", "all", [(0, 0), (0, 1), (1, 0), (3, 0), (0, 2), (2, 0)]),
        ("top-k", 1, [(0, 0)]),
        ("top-k", 2, [(0, 0), (0, 1), (1, 0)]),
        # the full assignment gives every image a sentence, however bad
        ("mmc4", "all", [(1, 0), (3, 1), (0, 2)]),
    ],
)
def test_a_literal_matrix(policy, max_links, expected):
    links = link(MATRIX, policy, max_links)
    assert sorted(pairs(links)) == sorted(expected)
    assert [found.score for found in links] == sorted((MATRIX[p] for p in expected), reverse=True)


@pytest.mark.parametrize(
    "choices",
    [{"policy": "thresold"}, {"policy": None}, *({"max_links": wrong} for wrong in (
        "hlaf", 0, -1, 2.5, True, None))],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 2), (0, 0)])
def test_what_cannot_be_chosen_is_refused(choices, shape):
    (name,) = choices
    with pytest.raises(SightlineError, match=f"{name} is .*; expected a"):
        link(np.zeros(shape), **choices)
    with pytest.raises(SightlineError, match=f"{name} is .*; expected a"):
        LinkChoices(**choices)


@pytest.mark.parametrize(
    "choices", [{"threshold": np.nan}, {"min_confidence": 5}, {"min_confidence": np.nan}]
)
def test_numbers_that_no_link_can_have_are_refused(choices):
    with pytest.raises(SightlineError, match="expected"):
        LinkChoices(**choices)


def test_mmc4_sends_images_that_are_left_over_to_their_best_sentence():
    matrix = np.array([[0.9, 0.8, 0.85], [0.1, 0.3, 0.2]])
    # the assignment is (0, 0), (1, 1) = 1.2; image 2 is left over
    assert sorted(pairs(link(matrix, "mmc4"))) == [(0, 0), (0, 2), (1, 1)]


def test_threshold_keeps_the_dense_pairs_above_a_similarity():
    assert pairs(link(MATRIX, "threshold", threshold=0.6)) == [(0, 0), (0, 1), (1, 0)]
    assert pairs(link(MATRIX, "threshold", threshold=0.59)) == [(0, 0), (0, 1), (1, 0), (3, 0)]
    assert link(MATRIX, "threshold", threshold=0.9) == []
    # without a threshold, what is not alike at all stays apart
    assert pairs(link(MATRIX, "threshold")) == [(0, 0), (0, 1), (1, 0), (3, 0), (0, 2)]


@settings(max_examples=60, deadline=None)
@given(matrix=matrices, threshold=st.floats(-1, 1))
def test_threshold_is_dense_cut_by_score(matrix, threshold):
    dense = link(matrix, "dense")
    assert link(matrix, "threshold", threshold=threshold) == [
        found for found in dense if found.score > threshold
    ]


def test_links_below_the_minimum_confidence_are_left_out():
    links = [Link(0, 0, 0.9, 0.8), Link(1, 1, 0.8, 0.5), Link(2, 2, 0.1, 0.0)]
    assert confident_links(links, 0.5) == links[:2]
    assert confident_links(links, 0.0) == links
    unknown = [*links, Link(3, 3, 0.7)]
    assert confident_links(unknown, 0.0) == unknown
    with pytest.raises(SightlineError, match="not calibrated"):
        confident_links(unknown, 0.5)


@settings(max_examples=60, deadline=None)
@given(matrix=matrices, max_links=st.sampled_from(["all", "half", 1, 2]))
def test_an_assignment_uses_no_sentence_or_image_twice_and_keeps_the_cap(matrix, max_links):
    found = pairs(link(matrix, "assignment", max_links))
    every = min(matrix.shape)
    cap = {"all": every, "half": (every + 1) // 2}.get(max_links, max_links)
    assert len(found) <= cap
    for side in (0, 1):
        assert len({pair[side] for pair in found}) == len(found)
    assert all(matrix[pair] > 0 for pair in found)  # a link never lowers the total


@settings(max_examples=60, deadline=None)
@given(matrix=matrices)
def test_dense_reaches_everything_and_mmc4_every_image_once(matrix):
    dense = pairs(link(matrix, "dense"))
    assert {s for s, _ in dense} == set(range(matrix.shape[0]))
    assert {v for _, v in dense} == set(range(matrix.shape[1]))
    assert sorted(v for _, v in pairs(link(matrix, "mmc4"))) == list(range(matrix.shape[1]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("policy", ["assignment", "dense", "top-k", "threshold", "mmc4"])
def test_nothing_to_link(shape, policy):
    assert link(np.zeros(shape), policy) == []


@pytest.mark.parametrize(
    ("choices", "image", "reason"),
    [
        (LinkChoices(), 2, "no sentence is similar to it"),
        (LinkChoices(max_links=1), 1, "beyond the cap on links"),
        (LinkChoices("top-k", 1), 2, "beyond the cap on links"),
        (LinkChoices("threshold", threshold=0.5), 2, "similarity not above the threshold, 0.5"),
        (LinkChoices(min_confidence=0.8), 0, "below the least confidence, 0.8"),
        (LinkChoices(min_confidence=0.8), 2, "no sentence is similar to it"),
    ],
)
def test_an_image_without_a_link_has_a_reason(choices, image, reason):
    assert why_unlinked(MATRIX, choices)[image] == reason


def test_images_may_outnumber_sentences():
    reasons = why_unlinked(np.array([[0.9, 0.5]]), LinkChoices())
    assert reasons[1] == "other images fit the sentences better"
    assert why_unlinked(np.empty((0, 2)), LinkChoices()) == ["there is no sentence"] * 2
