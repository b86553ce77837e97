"""The features of documents' images, out of a feature store or out of the image files themselves.

Either way every image gets a status and keeps its place; only those that are `ok` have features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.backbones import Backbone, Preprocessing
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.images import Decoded, Status, decode

FloatArray = NDArray[np.float32]
#: What a link record says of an image: its id, its status and, where that is not ok, the reason.
ImageStatus = dict[str, str | None]

Thing = TypeVar("Thing")

# Preprocessed and computed together; as many as keep the processor busy, and 10 MB at 224 pixels.
_IMAGES_AT_ONCE = 16


class ImageSource(Protocol):
    """Where the features of a document's images come from."""

    def read(self, documents: Sequence[Document]) -> tuple[list[list[ImageStatus]], FloatArray]:
        """The status of each document's images, and the features of all those that are ok."""


@dataclass(frozen=True, eq=False)
class StoredImages:
    """Features that were extracted before."""

    store: FeatureStore

    def read(self, documents: Sequence[Document]) -> tuple[list[list[ImageStatus]], FloatArray]:
        """Look the images up by id or path."""
        statuses: list[list[ImageStatus]] = []
        usable: list[int] = []
        for document in documents:
            rows = self.store.rows(document.images)
            damaged = set(self.store.non_finite(rows[rows >= 0]).tolist())
            found: list[ImageStatus] = []
            for image, row in zip(document.images, rows.tolist(), strict=True):
                status, reason = Status.ok, None
                if row < 0:
                    status = Status.missing
                    reason = f"no row in the features {self.store.folder}"
                elif row in damaged:
                    status = Status.undecodable
                    reason = f"NaN or infinity in the features {self.store.folder}"
                else:
                    usable.append(row)
                found.append(_status(image, status, reason))
            statuses.append(found)
        return statuses, self.store.vectors(np.array(usable, np.int64))


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Image files, decoded and put through a backbone; a file that comes again is read once."""

    backbone: Backbone

    def read(self, documents: Sequence[Document]) -> tuple[list[list[ImageStatus]], FloatArray]:
        """Decode the images, whose paths are relative to the folder of their document."""
        files = [[(d.folder or Path()) / image for image in d.images] for d in documents]
        rows: dict[Path, int] = {}
        reasons: dict[Path, Decoded] = {}
        vectors = [np.empty((0, self.backbone.dimension), np.float32)]
        unique = dict.fromkeys(file for of_document in files for file in of_document)
        for group in groups(self._inputs(unique, reasons), _IMAGES_AT_ONCE):
            for file, _ in group:
                rows[file] = len(rows)
            vectors.append(self.backbone.features(np.stack([pixels for _, pixels in group])))
        statuses = [
            [
                _status(image, Status.ok, None)
                if file in rows
                else _status(image, reasons[file].status, reasons[file].reason)
                for image, file in zip(document.images, of_document, strict=True)
            ]
            for document, of_document in zip(documents, files, strict=True)
        ]
        usable = [rows[file] for of_document in files for file in of_document if file in rows]
        return statuses, np.concatenate(vectors)[usable]

    def _inputs(
        self, files: Iterable[Path], reasons: dict[Path, Decoded]
    ) -> Iterator[tuple[Path, FloatArray]]:
        """The network's input for each file that can be decoded; for the others, why not."""
        for file in files:
            decoded = decode_for(self.backbone.preprocessing, file)
            if decoded.pixels is None:
                reasons[file] = decoded
            else:
                yield file, self.backbone.preprocess(decoded.pixels)


def decode_for(preprocessing: Preprocessing, source: Path | bytes) -> Decoded:
    """Decode an image no larger than its preprocessing needs it."""
    if preprocessing.interpolation == "lanczos":
        return decode(source)
    return decode(source, preprocessing.shorter_side, interpolation=preprocessing.interpolation)


def _status(image: str, status: Status, reason: str | None) -> ImageStatus:
    return {"id": image, "status": status.value, "reason": reason}


def groups(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    """So many at a time, in order; the last group may be smaller."""
    group: list[Thing] = []
    for thing in things:
        group.append(thing)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
