"""Documents in, link records out: what `sightline link` writes, one record per document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.image_files import read_files
from sightline.linking import MaxLinks, Policy, link
from sightline.model import LinkModel

#: Encoded together; bounds memory whatever the length of the corpus.
_DOCUMENTS_AT_ONCE = 256


def link_records(
    model: LinkModel,
    documents: Iterable[Document],
    store: FeatureStore | None,
    policy: Policy = "assignment",
    max_links: MaxLinks = "all",
    matrix: bool = False,
) -> Iterator[dict[str, Any]]:
    """One record per document, in order; an image without features keeps its place.

    Without a store, the images are read from their files, for a model with an image network of its
    own. `matrix` adds the similarity matrix, with null in the columns of images without features.
    """
    for group, features in _with_features(model, documents, store):
        statuses = [_statuses(document, features) for document in group]
        readable = [
            [place for place, status in enumerate(images) if status["status"] == "ok"]
            for images in statuses
        ]
        seen = [
            Document(document.id, document.sentences, tuple(document.images[v] for v in places))
            for document, places in zip(group, readable, strict=True)
        ]
        matrices = model.similarity_matrices(seen, features)
        for document, images, places, similarity_SV in zip(
            group, statuses, readable, matrices, strict=True
        ):
            record: dict[str, Any] = {
                "id": document.id,
                "links": [
                    {
                        "sentence": found.sentence,
                        "image": places[found.image],
                        "score": found.score,
                        "confidence": found.confidence,
                    }
                    for found in link(similarity_SV, policy, max_links)
                ],
                "images": images,
                "sentences": list(document.sentences),
            }
            if matrix:
                whole = np.full((len(document.sentences), len(images)), np.nan)
                whole[:, places] = similarity_SV
                record["matrix"] = whole.tolist()
            yield record


def _with_features(
    model: LinkModel, documents: Iterable[Document], store: FeatureStore | None
) -> Iterator[tuple[list[Document], FeatureStore]]:
    """Some documents at a time, with the features of their images."""
    groups = _groups(documents, _DOCUMENTS_AT_ONCE)
    if store is not None:
        model.check_features(store)
        yield from ((group, store) for group in groups)
        return
    with DecodePool() as pool:
        for group in groups:
            yield group, read_files(group, model.image_backbone, pool)


def _statuses(document: Document, store: FeatureStore) -> list[dict[str, str | None]]:
    """Whether each image can be used, and why not."""
    rows = store.rows(document.images)
    unusable = set(store.non_finite(rows[rows >= 0]).tolist())
    statuses: list[dict[str, str | None]] = []
    for image, row in zip(document.images, rows.tolist(), strict=True):
        status, reason = "ok", None
        if row < 0:
            status, reason = store.absence(image)
        elif row in unusable:
            status, reason = "undecodable", f"NaN or infinity in the features {store.folder}"
        statuses.append({"id": image, "status": status, "reason": reason})
    return statuses


def _groups(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    group: list[Document] = []
    for document in documents:
        group.append(document)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
