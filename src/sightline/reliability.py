"""Whether links of confidence c are right c of the time: pure functions on arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.linking import Link

#: Bins of equal width; ten is what reliability diagrams are commonly drawn with.
_BINS = 10


@dataclass(frozen=True, slots=True)
class Reliability:
    """Links by their confidence: how many there are in each bin, and how many of them are right."""

    links: NDArray[np.int64]
    right: NDArray[np.int64]
    #: The sum of the confidences.
    confidence: NDArray[np.float64]

    @classmethod
    def of_links(cls, links: Iterable[Link], true: Iterable[tuple[int, int]]) -> Reliability:
        """Count links, which have confidences, against the true ones of their document."""
        found = list(links)
        truth = set(true)
        confidence = np.array([one.confidence for one in found], np.float64)
        right = np.array([(one.sentence, one.image) in truth for one in found], bool)
        place = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
        return cls(
            np.bincount(place, minlength=_BINS),
            np.bincount(place[right], minlength=_BINS),
            np.bincount(place, confidence, minlength=_BINS).astype(np.float64),
        )

    @classmethod
    def total(cls, parts: Iterable[Reliability]) -> Reliability:
        """All counts together; there is at least one part."""
        columns = zip(*((part.links, part.right, part.confidence) for part in parts), strict=True)
        return cls(*(np.sum(column, axis=0) for column in columns))

    @property
    def expected_calibration_error(self) -> float | None:
        """How far confidence and share of right links lie apart, on the mean over links."""
        count = int(self.links.sum())
        return float(np.abs(self.confidence - self.right).sum()) / count if count else None
