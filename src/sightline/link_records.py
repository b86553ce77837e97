"""Documents in, link records out: what `sightline link` writes, one record per document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.batches import open_features
from sightline.bulk_linking import Block, link_block, links_in_order, similarity_blocks
from sightline.clip_backbones import is_clip_folder
from sightline.clip_model import ClipModel, Model
from sightline.confidence import Calibration, links_with
from sightline.corpus import Corpus
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.features import FeatureStore, features_beside
from sightline.hub import name_from_user
from sightline.image_features import ImageFiles, ImageSource, StoredImages
from sightline.linking import Link, LinkChoices, confident_links
from sightline.model import LinkModel
from sightline.problems import SightlineError

#: Documents, sentences and images that are linked together: many, so that arrays are long, but
#: bounded, and so is memory whatever the length of the corpus; 2,048 documents are no faster.
_STORED_AT_ONCE = (512, 16_384, 2_048)
#: Where image files have to be read, results should not be long in coming.
_FILES_AT_ONCE = (256, 65_536, 8_192)
#: Documents from which on compiled assignment pays for its loading (0.7 s).
_COMPILE_FROM = 256
_USUAL = LinkChoices()


def open_model(name_or_folder: str | Path) -> Model:
    """A trained model, or a CLIP or SigLIP folder, which links without training.

    A model of the Hugging Face hub is named `hf://owner/name`, so that nobody fetches by mistake.
    """
    if is_clip_folder(name_or_folder):
        return ClipModel.from_pretrained(name_or_folder)
    return LinkModel.from_pretrained(name_from_user(name_or_folder))


def open_images(
    model: Model,
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
    model: Model,
    documents: Iterable[Document],
    images: ImageSource,
    choices: LinkChoices = _USUAL,
    matrix: bool = False,
) -> Iterator[dict[str, Any]]:
    """One record per document, in order; an image without features keeps its place.

    `matrix` adds the similarity matrix, with null in the columns of images without features.
    """
    stored = isinstance(images, StoredImages)
    for group in _groups(documents, *(_STORED_AT_ONCE if stored else _FILES_AT_ONCE)):
        # By itself, so that nothing of a group is left in memory when the next one is read.
        yield from _records_of_group(model, group, images, choices, matrix)


def _records_of_group(
    model: Model,
    group: list[Document],
    images: ImageSource,
    choices: LinkChoices,
    matrix: bool,
) -> Iterator[dict[str, Any]]:
    statuses, features = images.read(group)
    readable = [
        [place for place, status in enumerate(of_document) if status["status"] == "ok"]
        for of_document in statuses
    ]
    blocks = similarity_blocks(
        model.encode_sentences([s for document in group for s in document.sentences]),
        model.encode_images(features),
        [len(document.sentences) for document in group],
        [len(places) for places in readable],
    )
    compiled = len(group) >= _COMPILE_FROM
    wanted = choices.policy, choices.max_links, choices.threshold
    found = [(block, link_block(block, *wanted, compiled)) for block in blocks]
    matrices = {place: one for block, _ in found for place, one in block.matrices().items()}
    confidences = _confidences(model.calibration, (block for block, _ in found))
    for place, (document, of_document, places, links) in enumerate(
        zip(group, statuses, readable, links_in_order(found, len(group)), strict=True)
    ):
        if place in confidences:
            links = links_with(confidences[place], links)
        links = confident_links(links, choices.min_confidence)
        record: dict[str, Any] = {
            "id": document.id,
            "links": [_link_record(one, places[one.image]) for one in links],
            "images": of_document,
            "sentences": list(document.sentences),
        }
        if matrix:
            whole = np.full((len(document.sentences), len(of_document)), np.nan)
            if place in matrices:
                whole[:, places] = matrices[place]
            record["matrix"] = whole.tolist()
        yield record


def _link_record(link: Link, image: int) -> dict[str, Any]:
    """A link as it is written; its image is counted among those of the document."""
    return {
        "sentence": link.sentence,
        "image": image,
        "score": link.score,
        "confidence": link.confidence,
    }


def _confidences(
    calibration: Calibration | None, blocks: Iterable[Block]
) -> dict[int, NDArray[np.float64]]:
    """The confidences of each document's pairs, by its place, where the model is calibrated."""
    if calibration is None:
        return {}
    return {
        int(document): confidence_SV
        for block in blocks
        for document, confidence_SV in zip(
            block.documents_B, calibration.confidences(block.similarity_BSV), strict=True
        )
    }


def _groups(
    documents: Iterable[Document], most: int, most_sentences: int, most_images: int
) -> Iterator[list[Document]]:
    """Documents in their order, so many at a time; one that is too large comes alone."""
    group: list[Document] = []
    sentences = images = 0
    for document in documents:
        sentences += len(document.sentences)
        images += len(document.images)
        if group and (len(group) == most or sentences > most_sentences or images > most_images):
            yield group
            group, sentences, images = [], len(document.sentences), len(document.images)
        group.append(document)
    if group:
        yield group
