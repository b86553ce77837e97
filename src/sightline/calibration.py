"""Estimating a model's confidences from documents without labels.

In mixtures of two documents (`mixtures`), pairs across the two are surely wrong, and among the
pairs within one there are as many wrong ones of any given confidence as there are across, in
proportion to their number. So confidences c are right if pairs across are 1 - c of the pairs
within, wherever one looks; sharpness and level are those under which this is likeliest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import orjson

from sightline.batches import IntArray, PackedDocuments
from sightline.confidence import LEVEL, SHARPNESS, Calibration
from sightline.corpus import Corpus
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.files import write_atomically
from sightline.image_features import ImageSource, groups
from sightline.link_records import open_images
from sightline.mixtures import EncodedDocument, Mixtures, mix
from sightline.model import LinkModel
from sightline.numpy_encoders import FloatArray, encode_images, encode_sentences
from sightline.problems import SightlineError
from sightline.progress import Progress

#: Fewer documents do not tell chance from truth: the estimates of 30 COCO documents differ by
#: some points of confidence between draws (docs/confidence.md).
_MINIMUM_DOCUMENTS = 30
#: More add nothing that could be measured.
_MOST_DOCUMENTS = 1000
#: Per pair; a smaller gain in likelihood is none.
_TOLERANCE = 1e-6
_DOCUMENTS_AT_ONCE = 256
_SEED = 1


def calibrate(
    model: LinkModel,
    corpus: Corpus,
    split: str | None = None,
    features: Path | None = None,
    seed: int = _SEED,
    say: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Estimate a model's calibration from a corpus's split, or all of it; links are not looked at.

    `features` names a feature store; otherwise features are found as `link` finds them, and images
    that cannot be used are left out.
    """
    documents = _sample(corpus.documents(split), seed)
    if split is not None and not documents:
        raise corpus.split_not_found(split)
    encoded: list[EncodedDocument] = []
    with DecodePool() as pool, Progress("encoding", len(documents), "documents") as progress:
        images = open_images(model, corpus, features, say, pool)
        for group in groups(documents, _DOCUMENTS_AT_ONCE):
            encoded += _encode(model, group, images)
            progress.advance(len(group))
    return estimate(encoded, np.random.default_rng(seed))


def calibrate_packed(model: LinkModel, packed: PackedDocuments, store: FeatureStore) -> Calibration:
    """The same from the documents that training packed, for a model without members."""
    rng = np.random.default_rng(_SEED)
    chosen = np.sort(rng.permutation(len(packed))[:_MOST_DOCUMENTS])
    encoded = [
        one
        for begin in range(0, len(chosen), _DOCUMENTS_AT_ONCE)
        for one in _encode_packed(model, packed, store, chosen[begin : begin + _DOCUMENTS_AT_ONCE])
    ]
    return estimate(encoded, rng)


def calibrated(model: LinkModel, calibration: Calibration) -> LinkModel:
    """The model with this calibration."""
    return replace(model, notes={**(model.notes or {}), "calibration": calibration.to_json()})


def store_calibration(folder: Path, calibration: Calibration) -> None:
    """Put a calibration into a model folder.

    One small file is replaced in one step: a kill leaves the model as it was, or calibrated.
    """
    file = folder / "config.json"
    config = {**orjson.loads(file.read_bytes()), "calibration": calibration.to_json()}
    text = orjson.dumps(config, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_atomically(file, text)


def estimate(documents: list[EncodedDocument], rng: np.random.Generator) -> Calibration:
    """The calibration under which mixtures of these documents are likeliest."""
    usable = [d for d in documents if len(d.sentence_SE) and len(d.image_VE)]
    if len(usable) < _MINIMUM_DOCUMENTS:
        raise SightlineError(
            f"Calibrating needs at least {_MINIMUM_DOCUMENTS} documents with sentences and images; "
            f"there are {len(usable)}."
        )
    mixtures = mix(usable, rng)
    sharpness, level = _likeliest(mixtures)
    return Calibration(sharpness, level, len(usable))


def _sample(documents: Iterator[Document], seed: int) -> list[Document]:
    """At most so many documents as are used, each as likely as any other, in their order."""
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, Document]] = []
    with Progress("reading documents", None, "documents") as progress:
        for place, document in enumerate(documents):
            if len(kept) < _MOST_DOCUMENTS:
                kept.append((place, document))
            elif (instead := int(rng.integers(place + 1))) < _MOST_DOCUMENTS:
                kept[instead] = (place, document)
            progress.advance()
    return [document for _, document in sorted(kept, key=lambda one: one[0])]


def _encode(
    model: LinkModel, documents: Sequence[Document], images: ImageSource
) -> list[EncodedDocument]:
    statuses, features = images.read(documents)
    readable = [
        [status["id"] for status in of_document if status["status"] == "ok"]
        for of_document in statuses
    ]
    return _taken_apart(
        model.encode_sentences([s for document in documents for s in document.sentences]),
        model.encode_images(features),
        [list(map(str.lower, document.sentences)) for document in documents],
        readable,
    )


def _encode_packed(
    model: LinkModel, packed: PackedDocuments, store: FeatureStore, documents: IntArray
) -> list[EncodedDocument]:
    batch = packed.batch(documents)
    token_ids = np.split(batch.sentences.token_ids, np.cumsum(batch.sentences.lengths)[:-1])
    sentences = iter([of_sentence.tobytes() for of_sentence in token_ids])
    rows = iter(batch.image_rows.tolist())
    return _taken_apart(
        encode_sentences(model.weights, batch.sentences),
        encode_images(model.weights, store.vectors(batch.image_rows)),
        [list(islice(sentences, count)) for count in batch.sentences_D],
        [list(islice(rows, count)) for count in batch.images_D],
    )


def _taken_apart(
    sentence_NE: FloatArray,
    image_ME: FloatArray,
    sentences_D: Sequence[Sequence[object]],
    images_D: Sequence[Sequence[object]],
) -> list[EncodedDocument]:
    """The vectors of many documents, given to each by the names of its sentences and images."""
    documents, sentence, image = [], 0, 0
    for sentences, images in zip(sentences_D, images_D, strict=True):
        next_sentence, next_image = sentence + len(sentences), image + len(images)
        vectors = (sentence_NE[sentence:next_sentence], image_ME[image:next_image])
        documents.append(EncodedDocument(*vectors, frozenset([*sentences, *images])))
        sentence, image = next_sentence, next_image
    return documents


def _likeliest(mixtures: Mixtures) -> tuple[float, float]:
    """Sharpness and level of the highest likelihood: a grid, then ever smaller steps."""
    grid = [
        (sharpness, level)
        for sharpness in np.geomspace(*SHARPNESS, 12).tolist()
        for level in np.linspace(*LEVEL, 10).tolist()
    ]
    few = mixtures.first(len(mixtures.score) // 8)
    _, best = min((_loss(few, *point), point) for point in grid)
    loss = _loss(mixtures, *best)
    factor, step = 1.5, 0.2
    while step > 0.01:
        sharpness, level = best
        around = [
            (_within(sharpness * more, SHARPNESS), _within(level + higher, LEVEL))
            for more, higher in ((factor, 0), (1 / factor, 0), (1, step), (1, -step))
        ]
        lowest, point = min((_loss(mixtures, *point), point) for point in around)
        if lowest < loss - _TOLERANCE:
            loss, best = lowest, point
        else:
            factor, step = factor**0.5, step / 2
    return best


def _within(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])


def _loss(mixtures: Mixtures, sharpness: float, level: float) -> float:
    """Negative log likelihood of which pairs are within and which across, given the confidences."""
    weight = np.exp(sharpness * mixtures.score)
    rivals = np.bincount(mixtures.sentence, weight)[mixtures.sentence]
    rivals += np.bincount(mixtures.image, weight)[mixtures.image]
    rivals -= weight
    rivals += mixtures.strangers * np.exp(sharpness * level)
    wrong = np.maximum(1 - weight / rivals, 1e-9)
    odds_across = wrong * mixtures.across_to_within
    total = np.log1p(odds_across).sum() - np.log(odds_across[~mixtures.within]).sum()
    return float(total) / len(weight)
