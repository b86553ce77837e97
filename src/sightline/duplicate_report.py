"""Which images of a corpus are nearly the same, document by document.

The paper drops a document in which two images are near-duplicates; across documents they are a
warning that a split may leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sightline.corpus import Corpus
from sightline.decode_pool import DecodePool
from sightline.near_duplicates import (
    THRESHOLD,
    hash_distance,
    near_duplicates,
    perceptual_hash,
)
from sightline.progress import Progress

#: Hashes are computed on images of this shorter side; they look at 32 x 32 means anyway.
_SHORTER_SIDE = 128


def duplicate_images(corpus: Corpus, threshold: int = THRESHOLD) -> Iterator[dict[str, Any]]:
    """One record per pair of near-duplicate images, in the order of the corpus.

    An image that is used twice is one image; images that cannot be read are reported as problems.
    """
    used: dict[Path, tuple[str, str]] = {}
    for document in corpus:
        for image in document.images:
            used.setdefault((document.folder or Path()) / image, (document.id, image))
    places: list[tuple[str, str]] = []
    hashes: list[int] = []
    with DecodePool() as pool, Progress("hashing", len(used), "images") as progress:
        for (document_id, image), decoded in zip(
            used.values(), pool.decode_many(used, _SHORTER_SIDE), strict=True
        ):
            if decoded.pixels is None:
                corpus.problems.add(corpus.path, document_id, image, decoded.reason or "unreadable")
            else:
                places.append((document_id, image))
                hashes.append(perceptual_hash(decoded.pixels))
            progress.advance()
    for first, second in near_duplicates(hashes, threshold):
        yield {
            "document": places[first][0],
            "image": places[first][1],
            "other_document": places[second][0],
            "other_image": places[second][1],
            "distance": hash_distance(hashes[first], hashes[second]),
        }
