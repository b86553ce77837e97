"""Image files in place of a feature store: decoded, through a backbone, into memory.

This is how documents without stored features get theirs, and how a model with a backbone of its
own (`tuned_backbones`) does: each file is decoded and goes through the network once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.backbones import Backbone, Preprocessing
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.image_colours import Pixels
from sightline.images import Decoded, decode
from sightline.problems import SightlineError

#: Images in one run of the network, as large as pays.
_IMAGES_AT_ONCE = 16


@dataclass(frozen=True)
class SquarePreprocessing(Preprocessing):
    """The paper's for a network that learns along: squeezed to a square, then cropped.

    Both sides become `shorter_side` pixels (256 x 256), whatever the shape of the image; the
    middle (224 x 224) is what evaluation sees.
    """

    @classmethod
    def like(cls, preprocessing: Preprocessing) -> SquarePreprocessing:
        """The same sizes and scale as a backbone's own preprocessing."""
        return cls(**vars(preprocessing))

    @property
    def side(self) -> int:
        """The side of the square."""
        return self.shorter_side or self.crop

    def square(self, pixels: Pixels) -> Pixels:
        """The whole image as a square, still in bytes."""
        from PIL import Image

        size = (self.side, self.side)
        method = Image.Resampling[self.interpolation.upper()]
        return np.asarray(Image.fromarray(pixels).resize(size, method))

    def resize(self, pixels: Pixels) -> Pixels:
        """The middle of the square, crop x crop x RGB, still in bytes."""
        start = (self.side - self.crop) // 2
        end = start + self.crop
        return self.square(pixels)[start:end, start:end]

    def to_json(self) -> dict[str, Any]:
        """For the manifest of a feature store."""
        return {**super().to_json(), "square": True}


@dataclass(frozen=True, eq=False)
class FileFeatures(FeatureStore):
    """Features in memory, a row for each image file that can be read: 5 kB an image."""

    #: The file of each row.
    files: Sequence[Path]
    #: The images that could not be read, by the name that documents give them.
    failures: Mapping[str, Decoded]

    def find(self, image: str) -> int | None:
        """Row of an image, by the name that documents give it."""
        return self.id2row.get(image)

    def absence(self, image: str) -> tuple[str, str]:
        """Status and reason of an image that has no row."""
        failure = self.failures.get(image)
        if failure is None:
            return super().absence(image)
        return str(failure.status), failure.reason or "The image cannot be read."


def decode_files(
    files: Iterable[Path], preprocessing: Preprocessing, pool: DecodePool | None
) -> Iterator[Decoded]:
    """Decode files in order, in the pool's workers if there is one, no larger than needed."""
    side, interpolation = preprocessing.shorter_side, preprocessing.interpolation
    if pool is not None:
        return pool.decode_many(files, side, interpolation)
    return (decode(file, side, interpolation=interpolation) for file in files)


def check_files(
    documents: Iterable[Document], backbone: Backbone, pool: DecodePool | None = None
) -> FileFeatures:
    """Find out which images of the documents can be read; their features are zeros as yet.

    The zeros take no memory before they are replaced (`refresh_features`).
    """
    images = _images(documents)
    results = decode_files(images.values(), backbone.preprocessing, pool)
    decoded = zip(images, results, strict=True)
    failures = {image: result for image, result in decoded if result.pixels is None}
    readable = {image: file for image, file in images.items() if image not in failures}
    matrix = np.zeros((len(readable), backbone.dimension), np.float32)
    return _in_memory(readable, matrix, backbone, failures)


def read_files(
    documents: Iterable[Document], backbone: Backbone, pool: DecodePool | None = None
) -> FileFeatures:
    """The features of all images of the documents; each file is decoded and encoded once.

    The documents lie in one folder: a name stands for one file.
    """
    images = _images(documents)
    readable: dict[str, Path] = {}
    failures: dict[str, Decoded] = {}
    vectors = [np.empty((0, backbone.dimension), np.float32)]
    encoded = _encode(images.values(), backbone, pool)
    for (image, file), (result, vector) in zip(images.items(), encoded, strict=True):
        if vector is None:
            failures[image] = result
        else:
            readable[image] = file
            vectors.append(vector[None])
    return _in_memory(readable, np.concatenate(vectors), backbone, failures)


def refresh_features(
    features: FileFeatures,
    rows: NDArray[np.int64],
    backbone: Backbone,
    pool: DecodePool | None = None,
) -> None:
    """Replace the features of the given rows by what the backbone gives now."""
    files = [features.files[row] for row in rows]
    for row, file, (result, vector) in zip(
        rows, files, _encode(files, backbone, pool), strict=True
    ):
        if vector is None:
            raise became_unreadable(file, result)
        features.matrix[row] = vector


def became_unreadable(file: Path, result: Decoded) -> SightlineError:
    """The error for a file that could be read when the run began."""
    return SightlineError(
        f"{file} could be read when the run began, but no longer: {result.reason} Put it back "
        "and continue with --resume."
    )


def _encode(
    files: Iterable[Path], backbone: Backbone, pool: DecodePool | None
) -> Iterator[tuple[Decoded, NDArray[np.float32] | None]]:
    """What became of each file, with its features where it could be decoded."""
    decoded = decode_files(files, backbone.preprocessing, pool)
    while group := list(islice(decoded, _IMAGES_AT_ONCE)):
        inputs = [backbone.preprocess(d.pixels) for d in group if d.pixels is not None]
        vectors = iter(backbone.features(np.stack(inputs)) if inputs else ())
        for result in group:
            yield result, None if result.pixels is None else next(vectors)


def _images(documents: Iterable[Document]) -> dict[str, Path]:
    """The file of each distinct image."""
    images: dict[str, Path] = {}
    for document in documents:
        for image in document.images:
            images[image] = (document.folder or Path()) / image
    return images


def _in_memory(
    images: Mapping[str, Path],
    matrix: NDArray[np.float32],
    backbone: Backbone,
    failures: Mapping[str, Decoded],
) -> FileFeatures:
    id2row = {image: row for row, image in enumerate(images)}
    return FileFeatures(
        folder=Path("the image files"),
        backbone=backbone.name,
        manifest=backbone.manifest(),
        matrix=matrix,
        id2row=id2row,
        files=list(images.values()),
        failures=failures,
    )
