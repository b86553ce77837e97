"""Weights in a quarter or half of their bytes on disk: what the bundled model is stored as.

The word embedding is nearly all of a model. Its rows become whole numbers from -127 to 127 with
one scale a row; all other weights become float16. Both are float32 again once loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.problems import SightlineError

_EMBEDDING = "sentence.embedding"
_SCALE = "sentence.embedding.scale"

FloatArray = NDArray[np.float32]


def compact(weights: Mapping[str, FloatArray]) -> dict[str, NDArray[Any]]:
    """The weights with less precision: rows to one part in 254 of their largest number."""
    small: dict[str, NDArray[Any]] = {
        name: weight.astype(np.float16) for name, weight in weights.items()
    }
    embedding_WE = weights[_EMBEDDING]
    scale_W = np.abs(embedding_WE).max(axis=1).astype(np.float32) / 127
    divisor_W1 = np.where(scale_W > 0, scale_W, 1)[:, None]
    small[_EMBEDDING] = np.rint(embedding_WE / divisor_W1).astype(np.int8)
    small[_SCALE] = scale_W
    return small


def expand(stored: Mapping[str, NDArray[Any]]) -> dict[str, FloatArray]:
    """Weights as float32, whether they were compact or not."""
    weights = {name: _float32(name, weight) for name, weight in stored.items() if name != _SCALE}
    if _SCALE in stored:
        scale_W = stored[_SCALE]
        if _EMBEDDING not in weights or scale_W.shape != weights[_EMBEDDING].shape[:1]:
            raise SightlineError(f"{_SCALE} does not fit {_EMBEDDING}.")
        weights[_EMBEDDING] *= scale_W.astype(np.float32)[:, None]
    return weights


def _float32(name: str, weight: NDArray[Any]) -> FloatArray:
    if weight.dtype.kind != "f" and not (name == _EMBEDDING and weight.dtype == np.int8):
        raise SightlineError(f"{name} holds {weight.dtype}, not numbers with a fraction.")
    return np.array(weight, np.float32)
