"""Documents in, link records out: what `sightline link` writes, one record per document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sightline.batches import open_features
from sightline.clip_backbones import is_clip_folder
from sightline.clip_model import ClipModel
from sightline.corpus import Corpus
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.features import FeatureStore, features_beside
from sightline.image_features import ImageFiles, ImageSource, StoredImages, groups
from sightline.linking import MaxLinks, Policy, confident_links, link
from sightline.model import LinkModel
from sightline.problems import SightlineError

#: Encoded together; bounds memory whatever the length of the corpus.
_DOCUMENTS_AT_ONCE = 256


def open_model(name_or_folder: str | Path) -> LinkModel | ClipModel:
    """A trained model, or a CLIP or SigLIP folder, which links without training."""
    if is_clip_folder(name_or_folder):
        return ClipModel.from_pretrained(name_or_folder)
    return LinkModel.from_pretrained(name_or_folder)


def open_images(
    model: LinkModel | ClipModel,
    corpus: Corpus,
    features: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    pool: DecodePool | None = None,
) -> ImageSource:
    """The feature store in `features`, else the corpus's own, else its image files.

    A store that the model cannot use is refused, except that CLIP, which needs no training on a
    corpus's features, turns from the corpus's own to the image files and says so.
    """
    tuned = isinstance(model, LinkModel) and model.tuned is not None
    folder = features or (None if tuned else features_beside(corpus.root))
    if folder is not None:
        store = FeatureStore.open(folder)
        try:
            model.check_features(store)
            return StoredImages(store)
        except SightlineError as refusal:
            if features is not None or isinstance(model, LinkModel):
                raise
            say(f"{refusal} The image files are read instead.")
    if not model.reads_images:
        # Weights that do not come with the package: there is nothing to read the files with.
        return StoredImages(open_features(corpus))
    if isinstance(model, LinkModel) and not tuned:
        say(
            f"{corpus.path}: no image features beside it, and none named with --features; the "
            f"image files are read with {model.backbone}."
        )
    return ImageFiles(model.image_backbone, pool)


def link_records(
    model: LinkModel | ClipModel,
    documents: Iterable[Document],
    images: ImageSource,
    policy: Policy = "assignment",
    max_links: MaxLinks = "all",
    matrix: bool = False,
    threshold: float = 0.0,
    min_confidence: float = 0.0,
) -> Iterator[dict[str, Any]]:
    """One record per document, in order; an image without features keeps its place.

    `matrix` adds the similarity matrix, with null in the columns of images without features.
    `threshold` is that of the policy of this name; links less sure than `min_confidence` are left
    out.
    """
    for group in groups(documents, _DOCUMENTS_AT_ONCE):
        statuses, features = images.read(group)
        readable = [
            [place for place, status in enumerate(of_document) if status["status"] == "ok"]
            for of_document in statuses
        ]
        seen = [
            Document(document.id, document.sentences, tuple(document.images[v] for v in places))
            for document, places in zip(group, readable, strict=True)
        ]
        matrices = model.similarity_matrices(seen, features)
        for document, of_document, places, similarity_SV in zip(
            group, statuses, readable, matrices, strict=True
        ):
            found = link(similarity_SV, policy, max_links, threshold)
            record: dict[str, Any] = {
                "id": document.id,
                "links": [
                    {
                        "sentence": one.sentence,
                        "image": places[one.image],
                        "score": one.score,
                        "confidence": one.confidence,
                    }
                    for one in confident_links(found, min_confidence)
                ],
                "images": of_document,
                "sentences": list(document.sentences),
            }
            if matrix:
                whole = np.full((len(document.sentences), len(of_document)), np.nan)
                whole[:, places] = similarity_SV
                record["matrix"] = whole.tolist()
            yield record
