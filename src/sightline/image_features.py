"""The features of documents' images, out of a feature store or out of the image files themselves.

Either way every image gets a status and keeps its place; only those that are `ok` have features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.backbones import Backbone
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.image_files import read_files
from sightline.images import Status
from sightline.problems import SightlineError

FloatArray = NDArray[np.float32]
#: What a link record says of an image: its id, its status and, where that is not ok, the reason.
ImageStatus = dict[str, str | None]

Thing = TypeVar("Thing")


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
        store, ok = self.store, str(Status.ok)
        rows = store.rows([image for document in documents for image in document.images])
        distinct, place = np.unique(rows[rows >= 0], return_inverse=True)
        vectors = store.vectors(distinct)
        finite = np.logical_and.reduce(np.isfinite(vectors), axis=1)
        usable = rows >= 0
        usable[usable] = finite[place]
        statuses: list[list[ImageStatus]] = []
        images = iter(zip(rows.tolist(), usable.tolist(), strict=True))
        for document in documents:
            found: list[ImageStatus] = []
            # Its own images only: those of the documents after it are left in `images`.
            for image, (row, fine) in zip(document.images, images, strict=False):
                status, reason = ok, None
                if row < 0:
                    status, reason = store.absence(image)
                elif not fine:
                    status = str(Status.undecodable)
                    reason = f"NaN or infinity in the features {store.folder}"
                found.append({"id": image, "status": status, "reason": reason})
            statuses.append(found)
        return statuses, vectors[place[usable[rows >= 0]]]


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Image files, decoded and put through a backbone; a file that comes again is read once."""

    backbone: Backbone
    #: Worker processes to decode in; without them, this process decodes.
    pool: DecodePool | None = None

    def read(self, documents: Sequence[Document]) -> tuple[list[list[ImageStatus]], FloatArray]:
        """Decode the images, whose paths are relative to the folder of their document."""
        statuses: list[list[ImageStatus]] = []
        vectors = [np.empty((0, self.backbone.dimension), np.float32)]
        for _, group in groupby(documents, key=lambda document: document.folder):
            in_folder = list(group)
            store = read_files(in_folder, self.backbone, self.pool)
            found, features = StoredImages(store).read(in_folder)
            statuses += found
            vectors.append(features)
        return statuses, np.concatenate(vectors)


def check_vectors(features: NDArray[np.floating], dimension: int) -> None:
    """Refuse features that are not a row of finite numbers for each image."""
    if features.ndim != 2 or features.shape[1] != dimension:
        raise SightlineError(
            f"The image features have shape {features.shape}; the model expects "
            f"{dimension} numbers an image."
        )
    if not np.isfinite(features).all():
        row = int(np.argmin(np.isfinite(features).all(axis=1)))
        raise SightlineError(f"The features of image {row} are not all finite numbers.")


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
