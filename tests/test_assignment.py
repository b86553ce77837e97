import subprocess
import sys
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sightline import assignment
from sightline.assignment import assign, assign_many


def best_total(similarity_SV, links):
    """The largest total of any `links` links, by trying them all."""
    sentences, images = similarity_SV.shape
    return max(
        sum(similarity_SV[s, v] for s, v in zip(rows, columns, strict=True))
        for rows in combinations(range(sentences), links)
        for columns in permutations(range(images), links)
    )


def best_total_at_most(similarity_SV, links):
    return max(best_total(similarity_SV, n) for n in range(links + 1))


def total_of(similarity_SV, links):
    """The total of an assignment, after checking that it is one, sorted by sentence."""
    sentences, images = links.T
    assert (np.diff(sentences) > 0).all()
    assert len(set(images)) == len(images)
    assert all(0 <= v < similarity_SV.shape[1] for v in images)
    return similarity_SV[sentences, images].sum(dtype=np.float64)


def links_of(image_of_sentence_S):
    (sentences,) = np.nonzero(image_of_sentence_S >= 0)
    return np.stack([sentences, image_of_sentence_S[sentences]], axis=1)


def one_of_many(similarity_SV, max_links=None, exactly=True):
    """`assign`, by way of `assign_many` with the problem between two others and padding."""
    sentences, images = similarity_SV.shape
    padded = np.full((3, sentences + 2, images + 1), np.nan, similarity_SV.dtype)
    padded[:, :sentences, :images] = similarity_SV[::-1]
    padded[1, :sentences, :images] = similarity_SV
    caps = None if max_links is None else [0, max_links, 1]
    answer = assign_many(padded, [sentences] * 3, [images] * 3, caps, exactly)
    assert answer.shape == (3, sentences + 2)
    assert answer.dtype == np.int32
    assert (answer[:, sentences:] == -1).all()
    return links_of(answer[1])


def interpreted(similarity_SV, max_links=None, exactly=True):
    """`assign`, by the kernel's source run without numba, full problems included."""
    sentences, images = similarity_SV.shape
    few = min(sentences, images)
    answer = np.full((1, sentences), -1, np.int32)
    counts = [np.array([n]) for n in (sentences, images, few if max_links is None else max_links)]
    floor = -np.inf if exactly else 0.0
    assert assignment._solve(similarity_SV[None], *counts, floor, answer) == -1
    return links_of(answer[0])


SOLVERS = [assign, one_of_many, interpreted]
SMALL = [(1, 1), (1, 4), (4, 1), (2, 3), (3, 2), (4, 4), (5, 5), (4, 6), (6, 4), (3, 5)]


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize("shape", SMALL)
@pytest.mark.parametrize("kind", ["normal", "ties", "negative", "equal", "hub"])
def test_every_cap_equals_brute_force(solve, shape, kind):
    rng = np.random.default_rng([*shape, len(kind)])
    similarity_SV = {
        "normal": rng.normal(size=shape),
        "ties": rng.integers(-2, 3, shape).astype(float),
        "negative": -rng.uniform(0.1, 1, shape),
        "equal": np.full(shape, 0.5),
        # All images like the same sentences best: each link takes from another.
        "hub": rng.normal(size=(shape[0], 1)) + 0.1 * rng.normal(size=shape),
    }[kind]
    few = min(shape)
    totals = [best_total(similarity_SV, links) for links in range(few + 1)]
    for cap in range(few + 1):
        links = solve(similarity_SV, cap)
        assert len(links) == cap
        assert total_of(similarity_SV, links) == pytest.approx(totals[cap])
        links = solve(similarity_SV, cap, exactly=False)
        assert len(links) <= cap
        assert total_of(similarity_SV, links) == pytest.approx(max(totals[: cap + 1]))
    np.testing.assert_array_equal(solve(similarity_SV), solve(similarity_SV, few))


@st.composite
def problems(draw):
    sentences, images = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    numbers = draw(
        st.sampled_from(
            [
                st.integers(-2, 2).map(float),
                st.floats(-1, 1, width=32),
                st.floats(-1e6, 1e6),
                st.sampled_from([-1e-9, 0.0, 1e-9, 1.0]),
            ]
        )
    )
    rows = st.lists(numbers, min_size=images, max_size=images)
    matrix = draw(st.lists(rows, min_size=sentences, max_size=sentences))
    return np.array(matrix), draw(st.integers(0, 5)), draw(st.booleans())


@given(problems())
@settings(max_examples=300, deadline=None)
def test_made_up_problems_equal_brute_force(problem):
    similarity_SV, max_links, exactly = problem
    cap = min(max_links, *similarity_SV.shape)
    wanted = (best_total if exactly else best_total_at_most)(similarity_SV, cap)
    scale = 1 + np.abs(similarity_SV).max()
    for solve in SOLVERS[:2]:
        links = solve(similarity_SV, max_links, exactly)
        assert len(links) == cap if exactly else len(links) <= cap
        assert total_of(similarity_SV, links) == pytest.approx(wanted, abs=1e-12 * scale)


def test_the_cap_is_not_the_top_of_the_full_assignment():
    similarity_SV = np.array([[0.4, 0.5], [0.0, 0.4]])
    full = assign(similarity_SV)
    assert full.tolist() == [[0, 0], [1, 1]]
    assert similarity_SV[full[:, 0], full[:, 1]].max() == 0.4
    for solve in SOLVERS:
        assert solve(similarity_SV, 1).tolist() == [[0, 1]]


def test_at_most_leaves_out_what_does_not_raise_the_total():
    similarity_SV = np.array([[0.9, 0.8, -0.1], [0.7, -0.2, -0.3], [-0.5, -0.6, 0.0]])
    for solve in SOLVERS:
        assert len(solve(similarity_SV)) == 3
        assert solve(similarity_SV, exactly=False).tolist() == [[0, 1], [1, 0]]
        assert solve(similarity_SV, 1, exactly=False).tolist() == [[0, 0]]
        assert solve(-np.abs(similarity_SV) - 1, exactly=False).tolist() == []


def ragged_batch(dtype, size=60, sides=13):
    """Problems of many sizes, some empty, some with ties, garbage around them."""
    rng = np.random.default_rng(5)
    sentences_B = rng.integers(0, sides + 1, size)
    images_B = rng.integers(0, sides + 1, size)
    similarity_BSV = rng.choice([np.nan, np.inf, -np.inf, 9.0], (size, sides, sides)).astype(dtype)
    for b, (s, v) in enumerate(zip(sentences_B, images_B, strict=True)):
        values = rng.uniform(-1, 1, (s, v)) if b % 3 else rng.integers(-2, 3, (s, v))
        similarity_BSV[b, :s, :v] = values
    return similarity_BSV, sentences_B, images_B, rng.integers(0, sides, size)


def check_many_equals_one(dtype):
    similarity_BSV, sentences_B, images_B, caps_B = ragged_batch(dtype)
    checked = 0
    for exactly in (True, False):
        for max_links_B in (None, caps_B):
            answer = assign_many(similarity_BSV, sentences_B, images_B, max_links_B, exactly)
            for b, (s, v) in enumerate(zip(sentences_B, images_B, strict=True)):
                assert (answer[b, s:] == -1).all()
                matrix = similarity_BSV[b, :s, :v]
                one = assign(matrix, None if max_links_B is None else max_links_B[b], exactly)
                links = links_of(answer[b])
                if exactly:
                    assert len(links) == len(one)
                assert total_of(matrix, links) == pytest.approx(total_of(matrix, one), abs=1e-6)
                checked += 1
    assert checked == 240


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_equals_one_at_a_time(dtype):
    check_many_equals_one(dtype)


def test_compiled_and_interpreted_choose_the_same_links():
    pytest.importorskip("numba")
    similarity_BSV, sentences_B, images_B, caps_B = ragged_batch(np.float64)
    caps_B = np.minimum(caps_B, np.minimum(sentences_B, images_B))
    for floor in (-np.inf, 0.0):
        answers = np.full((2, *similarity_BSV.shape[:2]), -1, np.int32)
        for solve, answer in zip((assignment._compiled(), assignment._solve), answers, strict=True):
            solve(similarity_BSV, sentences_B, images_B, caps_B, floor, answer)
        np.testing.assert_array_equal(*answers)
        assert (answers[0] >= 0).sum() > 60


def with_dummies(similarity_SV, links):
    """Exactly `links` links as a full assignment: those left out go to dummies at 0.

    S - k dummy images take the sentences without a link, V - k dummy sentences the images
    without one, and dummies never meet; so k sentences are left to meet k images.
    """
    sentences, images = similarity_SV.shape
    side = sentences + images - links
    padded = np.zeros((side, side))
    padded[:sentences, :images] = similarity_SV
    padded[sentences:, images:] = -np.inf
    return padded


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(60, 60), (80, 30), (12, 150), (61, 60)])
@pytest.mark.parametrize("kind", ["uniform", "ties", "product", "offset"])
def test_large_problems_equal_scipy(dtype, shape, kind):
    rng = np.random.default_rng(len(kind))
    similarity_SV = {
        "uniform": lambda: rng.uniform(-1, 1, shape),
        "ties": lambda: rng.integers(0, 4, shape),
        # The classic hard case: every row ranks the columns alike.
        "product": lambda: np.outer(rng.uniform(size=shape[0]), rng.uniform(size=shape[1])),
        "offset": lambda: 1000 + rng.uniform(-1, 1, shape),
    }[kind]().astype(dtype)
    exact = similarity_SV.astype(np.float64)
    few = min(shape)
    for links in (1, few // 4, few // 2, few - 1, few):
        padded = with_dummies(exact, links)
        wanted = padded[linear_sum_assignment(padded, maximize=True)].sum()
        answer = assign_many(similarity_SV[None], [shape[0]], [shape[1]], [links])
        chosen = links_of(answer[0])
        assert len(chosen) == links
        assert total_of(similarity_SV, chosen) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        if kind == "uniform":
            one = assign(similarity_SV, links)
            assert total_of(similarity_SV, one) == pytest.approx(wanted, rel=1e-9)
            clipped = with_dummies(np.maximum(exact, 0), links)
            wanted = clipped[linear_sum_assignment(clipped, maximize=True)].sum()
            answer = assign_many(similarity_SV[None], [shape[0]], [shape[1]], [links], False)
            assert total_of(similarity_SV, links_of(answer[0])) == pytest.approx(wanted)


def test_large_numbers_do_not_hang_the_search():
    similarity_SV = np.array([[1e300, -1e300, 3.0], [-1e300, 1e300, 1e-300], [1e300, 1e300, 0.0]])
    for solve in SOLVERS:
        for cap in (1, 2, 3):
            assert len(solve(similarity_SV, cap)) == cap


def test_nothing_to_link():
    for shape in [(0, 0), (0, 3), (3, 0)]:
        assert assign(np.empty(shape)).shape == (0, 2)
        assert assign(np.empty(shape), exactly=False).shape == (0, 2)
    assert assign(np.ones((2, 2)), 0).shape == (0, 2)
    assert assign_many(np.empty((0, 3, 2)), [], []).shape == (0, 3)
    assert assign_many(np.empty((2, 0, 3)), [0, 0], [3, 1]).shape == (2, 0)
    assert (assign_many(np.ones((2, 3, 4)), [0, 3], [4, 0]) == -1).all()


def test_other_types_and_layouts():
    similarity_SV = np.array([[1, 7, 3], [2, 9, 8]])
    wanted = [[0, 1], [1, 2]]
    assert assign(similarity_SV).dtype == np.int64
    for matrix in (similarity_SV, similarity_SV.astype(np.float16), similarity_SV.astype(">f4")):
        assert assign(matrix).tolist() == wanted
        assert assign_many(matrix[None], [2], [3]).tolist() == [[1, 2]]
    assert assign(np.asfortranarray(similarity_SV)).tolist() == wanted
    flipped = similarity_SV.astype(np.float32)[None, :, ::-1]
    flipped.flags.writeable = False
    assert assign_many(flipped, [2], [3]).tolist() == [[1, 0]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_is_refused(value):
    similarity_BSV = np.ones((4, 3, 3), np.float32)
    similarity_BSV[2, 1, 1] = value
    for max_links in (None, 2):
        for exactly in (True, False):
            with pytest.raises(ValueError, match="NaN or infinity"):
                assign(similarity_BSV[2], max_links, exactly)
            caps = None if max_links is None else [max_links] * 4
            with pytest.raises(ValueError, match=r"problem 2: .*NaN or infinity"):
                assign_many(similarity_BSV, [3] * 4, [3] * 4, caps, exactly)
    # The same entry as padding is of no interest.
    assert (assign_many(similarity_BSV, [1] * 4, [3] * 4)[:, 0] >= 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 2)), [1], [1]), "expected 3 dimensions"),
        ((np.ones((1, 2, 2)), [3], [1]), "sentences_B runs from 3 to 3; expected 0 to 2"),
        ((np.ones((1, 2, 2)), [1], [-1]), "images_B runs from -1"),
        ((np.ones((1, 2, 2)), [1, 1], [1]), "sentences_B has shape"),
        ((np.ones((1, 2, 2)), [1.5], [1]), "whole numbers"),
        ((np.ones((1, 2, 2)), [1], [1], [-1]), "max_links_B runs from -1"),
    ],
)
def test_wrong_arguments_of_many(arguments, message):
    with pytest.raises(ValueError, match=message):
        assign_many(*arguments)


def test_wrong_arguments_of_one():
    with pytest.raises(ValueError, match="expected 2 dimensions"):
        assign(np.ones(3))
    with pytest.raises(ValueError, match="max_links is -1"):
        assign(np.ones((2, 2)), -1)


@pytest.fixture
def without_numba(monkeypatch):
    assignment._compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)  # makes importing it an ImportError
    yield
    assignment._compiled.cache_clear()


@pytest.mark.usefixtures("without_numba")
def test_without_numba():
    assert assignment._compiled() is None
    check_many_equals_one(np.float32)
    with pytest.raises(ValueError, match=r"problem 1: .*NaN or infinity"):
        assign_many(np.array([[[1.0]], [[np.nan]]]), [1, 1], [1, 1])


def test_importing_and_linking_one_document_load_no_numba():
    code = """
import sys
import sightline.assignment
assert "numba" not in sys.modules and "scipy" not in sys.modules
assert sightline.assignment.assign([[4, 5], [0, 4]], 1, False).tolist() == [[0, 1]]
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_caching_is_optional(monkeypatch):
    """Where numba finds no folder to cache in, the kernel is compiled all the same."""
    numba = pytest.importorskip("numba")
    njit = numba.njit

    def nowhere(function, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(function, **options)

    assignment._compiled.cache_clear()
    monkeypatch.setattr(numba, "njit", nowhere)
    compiled = assignment._compiled()
    assignment._compiled.cache_clear()
    assert compiled is not None
    assert compiled.py_func is assignment._solve
