"""How often each of very many things was seen, without keeping the things."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: Hashes gathered before they are sorted in among the others.
_UNSORTED = 2**16


class HashCounts:
    """Counts things by Python's own 8-byte hashes: 16 bytes for each different one.

    The hashes are good for one process only. Two of ten million things share a hash with a
    probability of about 3 in a million.
    """

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._new = array("q")

    def add(self, things: Iterable[object]) -> None:
        """Count each of them once more."""
        self._new.extend(map(hash, things))
        # As many as there are already: sorting then takes its share of the time, no more.
        if len(self._new) > max(_UNSORTED, len(self._hashes)):
            self._merge()

    def __len__(self) -> int:
        """How many different things were seen."""
        return len(self.hashes)

    @property
    def hashes(self) -> NDArray[np.int64]:
        """The hashes of the different things, sorted."""
        self._merge()
        return self._hashes

    def at_least(self, times: int) -> NDArray[np.int64]:
        """The hashes of what was seen so many times, sorted."""
        self._merge()
        return self._hashes[self._counts >= times]

    def repetitions(self) -> int:
        """How many were no longer the first of their kind."""
        self._merge()
        return int(self._counts.sum()) - len(self._counts)

    def _merge(self) -> None:
        if not self._new:
            return
        new, new_counts = np.unique(np.array(self._new, np.int64), return_counts=True)
        self._new = array("q")
        hashes, places = np.unique(np.concatenate([self._hashes, new]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([self._counts, new_counts]), len(hashes))
        self._hashes, self._counts = hashes, counts.astype(np.int64)
