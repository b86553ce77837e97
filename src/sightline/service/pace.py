"""How fast requests are being answered: whether one more can be in time."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Weight of the last answer in the mean: the last ten or so count.
_WEIGHT = 0.1


class Pace:
    """The time between two answers while there is work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._mean: float | None = None
        self._since = clock()

    def begin(self) -> None:
        """There is work again, after there was none."""
        self._since = self.clock()

    def answer(self) -> None:
        """A request was answered."""
        now = self.clock()
        seconds, self._since = now - self._since, now
        mean = seconds if self._mean is None else self._mean
        self._mean = mean + _WEIGHT * (seconds - mean)

    def seconds(self, requests: int) -> float:
        """How long so many requests will take; a standstill counts as soon as it lasts."""
        return requests * max(self._mean or 0.0, self.clock() - self._since)
