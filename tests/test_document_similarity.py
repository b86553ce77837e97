"""DC, TK and AP against the plain loops of `reference`: values and gradients on ragged batches."""

from functools import partial
from typing import get_args

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sightline import document_similarity as fast
from sightline.settings import SimilarityName
from sightline.similarity import similarity_matrices

MAX_LINKS = ["all", "half", 1, 2, 3]


AT_MOST = "AP at most"
# The slow function of each; DC has no cap, and NoStruct is the one similarity that there is.
FUNCTIONS = {
    "DC": lambda M, k: reference.dense_correspondence(M),
    "TK": reference.top_k,
    "AP": reference.assignment,
    "NoStruct": lambda M, k: M[0][0],
    AT_MOST: partial(reference.assignment, exactly=False),
}


def fast_function(name):
    if name == AT_MOST:
        return partial(fast.assignment, exactly=False)
    return partial(fast.document_similarity, name)


@st.composite
def ragged_batches(draw, ties=False, sign=0):
    """Counts of 1-3 documents of 1-4 sentences and images, and the similarities of all pairs."""
    documents = draw(st.integers(1, 3))
    sentences = draw(st.lists(st.integers(1, 4), min_size=documents, max_size=documents))
    images = draw(st.lists(st.integers(1, 4), min_size=documents, max_size=documents))
    values = (
        st.sampled_from([-1.0, -0.5, 0.0, 0.5])
        if ties
        else st.floats(-1, 1, width=32, allow_subnormal=False)
    )
    flat = draw(hnp.arrays(np.float64, (sum(sentences), sum(images)), elements=values))
    if not ties:  # no two entries or assignments alike: at a tie the gradient may choose
        flat = flat + np.random.default_rng(0).uniform(0, 1e-3, flat.shape)
    if sign < 0:
        flat = flat - 2
    return sentences, images, flat


def pad(flat, sentences, images):
    """All D x D matrices of a flat sentences x images table, -inf padded, as torch tensors."""
    documents = len(sentences)
    padded = torch.full(
        (documents, documents, max(sentences), max(images)), -torch.inf, dtype=flat.dtype
    )
    rows = flat.split(sentences, 0)
    for i in range(documents):
        for j, block in enumerate(rows[i].split(images, 1)):
            padded[i, j, : sentences[i], : images[j]] = block
    return padded


def blocks(flat, sentences, images):
    return [
        [[list(row) for row in block] for block in rows.split(images, 1)]
        for rows in flat.split(sentences, 0)
    ]


def compare(name, batch, max_links, gradients):
    sentences, images, values = batch
    fast_input = torch.tensor(values, requires_grad=True)
    slow_input = torch.tensor(values, requires_grad=True)
    found = fast_function(name)(
        pad(fast_input, sentences, images), torch.tensor(sentences), torch.tensor(images), max_links
    )
    expected = reference.document_similarities(
        blocks(slow_input, sentences, images), lambda M: FUNCTIONS[name](M, max_links)
    )
    expected = torch.stack(
        [torch.stack([torch.as_tensor(x, dtype=torch.float64) for x in row]) for row in expected]
    )
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    if gradients:
        weights = torch.arange(1.0, found.numel() + 1, dtype=torch.float64).view_as(found)
        (found * weights).sum().backward()
        (expected * weights + 0 * slow_input.sum()).sum().backward()
        torch.testing.assert_close(fast_input.grad, slow_input.grad, atol=1e-9, rtol=0)


def test_every_name_that_can_be_chosen_is_compared():
    assert {*get_args(SimilarityName), AT_MOST} == FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("max_links", MAX_LINKS)
@settings(max_examples=40, deadline=None)
@given(batch=ragged_batches())
def test_values_and_gradients_on_ragged_batches(name, max_links, batch):
    compare(name, batch, max_links, gradients=True)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=30, deadline=None)
@given(batch=ragged_batches(sign=-1))
def test_all_similarities_negative(name, batch):
    compare(name, batch, "all", gradients=True)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=30, deadline=None)
@given(batch=ragged_batches(ties=True), max_links=st.sampled_from(MAX_LINKS))
def test_values_with_ties(name, batch, max_links):
    if name == "AP at most":
        max_links = "all"  # among tied optima the number of links, and so the mean, may differ
        sentences, images, values = batch
        batch = sentences, images, np.abs(values) + 0.5
    compare(name, batch, max_links, gradients=False)


@settings(max_examples=50, deadline=None)
@given(batch=ragged_batches())
def test_top_k_with_cap_all_is_dense_correspondence_where_the_counts_are_equal(batch):
    sentences, _, values = batch
    values = values[:, : sum(sentences)]
    if values.shape[1] < sum(sentences):
        values = np.pad(
            values,
            ((0, 0), (0, sum(sentences) - values.shape[1])),
            mode="reflect" if values.shape[1] > 1 else "edge",
        )
    padded = pad(torch.tensor(values), sentences, sentences)
    counts = torch.tensor(sentences)
    dc = fast.dense_correspondence(padded, counts, counts)
    tk = fast.top_k(padded, counts, counts, "all")
    # The paper's footnote 5 speaks of a document's own matrix, which is square.
    torch.testing.assert_close(tk.diagonal(), dc.diagonal())


@settings(max_examples=30, deadline=None)
@given(
    sentences=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_similarity_matrices_are_cosines_with_infinite_padding(sentences, seed):
    rng = torch.Generator().manual_seed(seed)
    images = [1 + (3 * count + seed) % 4 for count in sentences]
    text = torch.randn(sum(sentences), 5, generator=rng, dtype=torch.float64)
    vision = torch.randn(sum(images), 5, generator=rng, dtype=torch.float64)
    found = similarity_matrices(text, vision, torch.tensor(sentences), torch.tensor(images))
    expected = pad(text @ vision.t(), sentences, images)
    torch.testing.assert_close(found, expected)


def test_ranges_as_the_paper_has_them():
    perfect = torch.ones(1, 1, 3, 2)
    counts = torch.tensor([3]), torch.tensor([2])
    assert fast.dense_correspondence(perfect, *counts).item() == 2
    assert fast.top_k(perfect, *counts).item() == 2
    assert fast.assignment(perfect, *counts).item() == 1
