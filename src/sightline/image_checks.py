"""What is wrong with the images of a corpus: broken files, copies in another split, no features."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, tee
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.corpus import Corpus
from sightline.corpus_checks import EXAMPLES, Finding, Shared
from sightline.decode_pool import DecodePool
from sightline.documents import split_name
from sightline.features import FeatureStore
from sightline.image_copies import Copies, ImageHashes
from sightline.near_duplicates import perceptual_hash
from sightline.progress import Progress

#: Hashes are computed on images of this shorter side; they look at 32 x 32 means anyway.
_SHORTER_SIDE = 128
#: Image files are looked for under the names of so many images.
_LOOKED_FOR = 100
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class ImageChecks:
    """What reading the image files shows."""

    checked: int
    statuses: dict[str, int]
    broken: Finding
    #: Files of the second split whose bytes are those of a file of the first, under another name.
    same_bytes: list[Shared]
    #: Those that only look the same (`near_duplicates`).
    look_alikes: list[Shared]


@dataclass(frozen=True, slots=True)
class FeatureChecks:
    """What looking the images up in a feature store shows."""

    store: str
    checked: int
    missing: Finding
    damaged: Finding  # a row with NaN or infinity


@dataclass(frozen=True, slots=True)
class _Place:
    """An image where it is used first."""

    image: str
    document: str
    split: str | None
    file: Path

    def to_record(self) -> dict[str, str | None]:
        return {"image": self.image, "document": self.document}


def has_image_files(corpus: Corpus) -> bool:
    """Whether any of the first images is there as a file."""
    for place in islice(_places(corpus), _LOOKED_FOR):
        try:
            if place.file.is_file():
                return True
        except OSError:  # a name that is too long
            continue
    return False


def check_images(corpus: Corpus, total: int, workers: int | None = None) -> ImageChecks:
    """Decode each image file once, in isolation; `total` is the number of different images.

    Memory grows by some 100 bytes an image: nothing but hashes is kept.
    """
    statuses: Counter[str] = Counter()
    broken: list[dict[str, str | None]] = []
    hashes = ImageHashes()
    places, ahead = tee(_places(corpus))
    with DecodePool(workers) as pool, Progress("checking images", total, "images") as progress:
        files = (place.file for place in ahead)
        for place, decoded in zip(places, pool.decode_many(files, _SHORTER_SIDE), strict=True):
            statuses[decoded.status.value] += 1
            content = None if decoded.pixels is None else _content(place.file)
            if decoded.pixels is not None and content is not None:
                hashes.add(place.split, content, perceptual_hash(decoded.pixels))
            else:
                hashes.add_broken()
            if decoded.pixels is None and len(broken) < EXAMPLES:
                status, reason = decoded.status.value, decoded.reason
                broken.append({**place.to_record(), "status": status, "reason": reason})
            progress.advance()
    checked = statuses.total()
    same_bytes, look_alikes = hashes.copies()
    return ImageChecks(
        checked=checked,
        statuses=dict(statuses.most_common()),
        broken=Finding(checked - statuses["ok"], broken),
        same_bytes=_shared(corpus, same_bytes),
        look_alikes=_shared(corpus, look_alikes),
    )


def check_features(corpus: Corpus, store: FeatureStore, total: int) -> FeatureChecks:
    """Look each image up in a feature store, and for numbers there that are none."""
    missing: list[dict[str, str | None]] = []
    rows = array("q")
    absent = 0
    with Progress("looking up features", total, "images") as progress:
        for place in _places(corpus):
            row = store.find(place.image)
            if row is None:
                absent += 1
                if len(missing) < EXAMPLES:
                    missing.append(place.to_record())
            rows.append(-1 if row is None else row)
            progress.advance()
    damaged = set(_damaged_rows(store, np.unique(np.array(rows, np.int64))))
    found = [index for index, row in enumerate(rows) if row in damaged]
    first = _look_up(corpus, found[:EXAMPLES])
    return FeatureChecks(
        store=str(store.folder),
        checked=len(rows),
        missing=Finding(absent, missing),
        damaged=Finding(len(found), [first[index].to_record() for index in found[:EXAMPLES]]),
    )


def _damaged_rows(store: FeatureStore, rows: NDArray[np.int64]) -> Iterator[int]:
    rows = rows[rows >= 0]
    with Progress("checking features", len(rows), "rows") as progress:
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            yield from store.non_finite(part).tolist()
            progress.advance(len(part))


def _places(corpus: Corpus) -> Iterator[_Place]:
    """Yield each different image where it is used first, in the order of the corpus."""
    seen: set[int] = set()
    for document in corpus:
        folder = document.folder or Path()
        for image in document.images:
            if hash(image) not in seen:
                seen.add(hash(image))
                yield _Place(image, document.id, split_name(document.split), folder / image)


def _look_up(corpus: Corpus, indices: Iterable[int]) -> dict[int, _Place]:
    """Find out which images the numbers of `_places` are."""
    wanted = set(indices)
    if not wanted:
        return {}
    places = islice(_places(corpus), max(wanted) + 1)
    return {index: place for index, place in enumerate(places) if index in wanted}


def _shared(corpus: Corpus, found: list[Copies]) -> list[Shared]:
    """Give the examples their names."""
    places = _look_up(
        corpus, [index for copies in found for pair in copies.first for index in pair]
    )
    return [
        Shared(
            copies.splits,
            copies.count,
            copies.total,
            [
                {
                    "images": [places[index].image for index in pair],
                    "documents": [places[index].document for index in pair],
                }
                for pair in copies.first
            ],
        )
        for copies in found
    ]


def _content(file: Path) -> int | None:
    """Hash the bytes of a file that could be read a moment ago."""
    try:
        with file.open("rb") as handle:
            digest = hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=8)).digest()
    except OSError:
        return None
    return int.from_bytes(digest, "little")
