"""Weights in a quarter of their bytes on disk: what the bundled model is stored as.

The rows of a matrix become whole numbers from -127 to 127 with one scale a row; all other weights
become float16. Both are float32 again once loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.problems import SightlineError

_SCALE = ".scale"

FloatArray = NDArray[np.float32]


def compact(weights: Mapping[str, FloatArray]) -> dict[str, NDArray[Any]]:
    """The weights with less precision: rows to one part in 254 of their largest number."""
    small: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        if weight.ndim == 2:
            scale = np.abs(weight).max(axis=1) / np.float32(127)
            divisor = np.where(scale > 0, scale, 1)[:, None]
            small[name] = np.rint(weight / divisor).astype(np.int8)
            small[name + _SCALE] = scale
        else:
            small[name] = weight.astype(np.float16)
    return small


def expand(stored: Mapping[str, NDArray[Any]]) -> dict[str, FloatArray]:
    """Weights as float32, whether they were compact or not."""
    weights: dict[str, FloatArray] = {}
    for name, weight in stored.items():
        if name.endswith(_SCALE):
            if name.removesuffix(_SCALE) not in stored:
                raise SightlineError(f"{name} belongs to no weight.")
            continue
        scale = stored.get(name + _SCALE)
        if (weight.dtype.kind != "f" or weight.dtype.itemsize > 8) and scale is None:
            raise SightlineError(f"{name} holds {weight.dtype}, not numbers with a fraction.")
        with np.errstate(over="ignore"):  # infinity is refused where the weights are checked
            weights[name] = np.array(weight, np.float32)
        if scale is not None:
            if weight.ndim != 2 or scale.shape != weight.shape[:1] or scale.dtype.kind != "f":
                raise SightlineError(f"{name + _SCALE} does not fit {name}.")
            weights[name] *= scale.astype(np.float32)[:, None]
    return weights
