"""Features of images that came before, found by a hash of their bytes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.images import Status


@dataclass(frozen=True, slots=True, eq=False)
class ImageResult:
    """What became of an image: its features, or why there are none."""

    status: Status
    reason: str | None = None
    features: NDArray[np.float32] | None = None


def content_key(content: bytes) -> bytes:
    """A name that no other content has."""
    return hashlib.blake2b(content, digest_size=32).digest()


class FeatureCache:
    """The results that were used last, so many and no more; used from the event loop alone."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._results: OrderedDict[bytes, ImageResult] = OrderedDict()

    def __len__(self) -> int:
        return len(self._results)

    def find(self, key: bytes) -> ImageResult | None:
        """The result for a content that came before."""
        result = self._results.get(key)
        if result is not None:
            self._results.move_to_end(key)
        return result

    def keep(self, key: bytes, result: ImageResult) -> None:
        """Remember a result, unless another try might end better."""
        if result.status is Status.timeout or self.most < 1:
            return
        self._results[key] = result
        self._results.move_to_end(key)
        while len(self._results) > self.most:
            self._results.popitem(last=False)
