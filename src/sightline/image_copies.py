"""Images of one split that are in another one too, under another name: a leak that names hide."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.corpus_checks import EXAMPLES, split_pairs
from sightline.near_duplicates import THRESHOLD, hash_distance, near_duplicates

Indices = NDArray[np.intp]

# What flat images hash to, whatever their colour: that they look alike says nothing.
_FLAT = 0


@dataclass(frozen=True, slots=True)
class Copies:
    """How many images of the second split are copies of images of the first."""

    splits: tuple[str, str]
    count: int
    total: int  # images of the second split
    first: list[tuple[int, int]]  # an image of the first split, and its copy in the second


class ImageHashes:
    """What images contain and what they look like: 18 bytes an image, known by its index."""

    def __init__(self) -> None:
        self._splits: dict[str, int] = {}
        self._split = array("h")
        self._content = array("Q")
        self._look = array("Q")

    def add(self, split: str | None, content: int, look: int) -> None:
        """Take the next image, with hashes of its bytes and of its look."""
        number = -1 if split is None else self._splits.setdefault(split, len(self._splits))
        self._split.append(number)
        self._content.append(content)
        self._look.append(look)

    def add_broken(self) -> None:
        """Take the next image, which is compared with none."""
        self.add(None, 0, _FLAT)

    def copies(self) -> tuple[list[Copies], list[Copies]]:
        """Give the copies that are the same bytes, and those that only look the same."""
        contents, looks = np.array(self._content, np.uint64), np.array(self._look, np.uint64)
        search = _LookAlikes(looks)
        same_bytes, look_alikes = [], []
        for splits, first, second in self._pairs():
            same = second[np.isin(contents[second], contents[first])]
            if len(same):
                examples = [
                    (int(first[np.argmax(contents[first] == contents[copy])]), int(copy))
                    for copy in same[:EXAMPLES]
                ]
                same_bytes.append(Copies(splits, len(same), len(second), examples))
            alike = np.setdiff1d(search.find(first, second), same)
            if len(alike):
                examples = [(search.nearest(first, copy), int(copy)) for copy in alike[:EXAMPLES]]
                look_alikes.append(Copies(splits, len(alike), len(second), examples))
        return same_bytes, look_alikes

    def _pairs(self) -> Iterator[tuple[tuple[str, str], Indices, Indices]]:
        split = np.array(self._split, np.int16)
        for pair in split_pairs(list(self._splits)):
            first, second = (np.flatnonzero(split == self._splits[name]) for name in pair)
            yield pair, first, second


class _LookAlikes:
    """Which images look like which, by the hashes of their looks."""

    def __init__(self, looks: NDArray[np.uint64]) -> None:
        self._looks = looks
        # Many equal hashes would make as many pairs as they have, so each is compared once.
        self._different, self._place = np.unique(looks, return_inverse=True)
        pairs = near_duplicates(self._different.tolist(), THRESHOLD)
        self._near = np.array(pairs, np.intp).reshape(-1, 2)

    def find(self, first: Indices, second: Indices) -> Indices:
        """Those of `second` that look like one of `first`."""
        there = np.zeros(len(self._different), bool)
        there[self._place[first]] = True
        there[self._different == _FLAT] = False
        alike = there.copy()
        a, b = self._near.T
        alike[a[there[b]]] = True
        alike[b[there[a]]] = True
        alike[self._different == _FLAT] = False
        return second[alike[self._place[second]]]

    def nearest(self, images: Indices, image: int) -> int:
        """The one of `images` that looks most like another image."""
        looks = self._looks[images].tolist()
        look = int(self._looks[image])
        return int(images[min(range(len(looks)), key=lambda i: hash_distance(looks[i], look))])
