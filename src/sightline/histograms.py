"""How numbers are spread: a few bins, as bars of text and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

_MOST_BINS = 12
_WIDTHS = (1, 2, 5)
#: Beyond this share of the numbers there is only one bin more, whatever the largest of them.
_BULK = 0.99
_LONGEST_BAR = 40


@dataclass(frozen=True, slots=True)
class Bin:
    """How many numbers lie from `start` to `end`, both included; None is no end."""

    start: int
    end: int | None
    count: int

    def __str__(self) -> str:
        if self.end is None:
            return f"{self.start} or more"
        return str(self.start) if self.start == self.end else f"{self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers in bins of one width, the last of which may have no end."""

    mean: float
    median: float
    maximum: int
    bins: list[Bin]

    @classmethod
    def of(cls, counts: Counter[int]) -> Histogram:
        """Sort numbers, given with how often each comes, into at most twelve bins and one more."""
        total = counts.total()
        if not total:
            return cls(0.0, 0.0, 0, [])
        bins = _bins(counts, _nth(counts, int(_BULK * total)))
        return cls(*mean_and_median(counts), max(counts), bins)

    def to_record(self) -> dict[str, Any]:
        """Give it as JSON takes it; a bin is [start, end, count]."""
        return {
            "mean": self.mean,
            "median": self.median,
            "maximum": self.maximum,
            "bins": [[one.start, one.end, one.count] for one in self.bins],
        }

    def lines(self) -> list[str]:
        """Draw it: a line for each bin, with a bar and its count."""
        most = max((one.count for one in self.bins), default=0)
        width = max((len(str(one)) for one in self.bins), default=0)
        return [
            # What is there at all gets at least one mark.
            f"{one!s:>{width}}  {'#' * -(-one.count * _LONGEST_BAR // most)} {one.count:,}"
            for one in self.bins
        ]


def mean_and_median(counts: Counter[int]) -> tuple[float, float]:
    """Of numbers, given with how often each comes; 0 of none."""
    total = counts.total()
    if not total:
        return 0.0, 0.0
    middle = (_nth(counts, (total - 1) // 2) + _nth(counts, total // 2)) / 2
    return sum(number * count for number, count in counts.items()) / total, middle


def _bins(counts: Counter[int], bulk: int) -> list[Bin]:
    first, largest = min(counts), max(counts)
    width = _width(bulk - first + 1)
    # Bins begin at 1, 6, 11 for a width of 5; zero, if there, has one of its own.
    starts = list(range(max(first - (first - 1) % width, 1), bulk + 1, width)) or [1]
    bins = [Bin(0, 0, counts[0])] if first == 0 else []
    for start in starts:
        end = start + width - 1
        inside = sum(count for number, count in counts.items() if start <= number <= end)
        bins.append(Bin(start, end, inside))
    end = starts[-1] + width
    beyond = sum(count for number, count in counts.items() if number >= end)
    if beyond:
        bins.append(Bin(end, end if largest == end else None, beyond))
    return bins


def _width(span: int) -> int:
    scale = 1
    while True:
        for width in _WIDTHS:
            if width * scale * _MOST_BINS >= span:
                return width * scale
        scale *= 10


def _nth(counts: Counter[int], index: int) -> int:
    """Give the number at `index` of all of them in order."""
    for number in sorted(counts):
        index -= counts[number]
        if index < 0:
            return number
    raise IndexError(index)
