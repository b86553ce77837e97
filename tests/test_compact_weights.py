"""Weights stored with less precision come back close, and damaged ones are refused."""

import numpy as np
import pytest

from sightline.compact_weights import compact, expand
from sightline.problems import SightlineError


@pytest.fixture
def weights():
    rng = np.random.default_rng(0)
    embedding = rng.normal(size=(50, 12)).astype(np.float32)
    embedding[0] = 0  # the unknown word
    embedding[1] *= 1e-4  # a small row keeps its own precision
    bias = rng.normal(size=12).astype(np.float32)
    return {"sentence.embedding": embedding, "image.head.0.bias": bias}


def test_a_matrix_takes_a_byte_a_number_and_each_row_is_close(weights):
    small = compact(weights)
    assert small["sentence.embedding"].dtype == np.int8
    assert small["image.head.0.bias"].dtype == np.float16
    loaded = expand(small)
    assert {weight.dtype for weight in loaded.values()} == {np.dtype(np.float32)}
    embedding = weights["sentence.embedding"]
    largest = np.abs(embedding).max(axis=1, keepdims=True)
    assert (np.abs(loaded["sentence.embedding"] - embedding) <= largest / 253).all()
    assert not loaded["sentence.embedding"][0].any()


def test_whole_weights_stay_as_they_are(weights):
    loaded = expand(weights)
    assert all((loaded[name] == weight).all() for name, weight in weights.items())


@pytest.mark.parametrize(
    "changes",
    [
        {"sentence.embedding.scale": np.ones(49, np.float32)},
        {"sentence.embedding.scale": np.ones((50, 1), np.float32)},
        {"sentence.embedding.scale": np.ones(50, np.int8)},
        {"nothing.scale": np.ones(50, np.float32)},
        {"image.head.0.weight": np.ones((2, 2), np.int64)},
        {"image.head.0.weight": np.ones((2, 2), bool)},
    ],
)
def test_what_does_not_fit_is_refused(weights, changes):
    with pytest.raises(SightlineError):
        expand({**compact(weights), **changes})
