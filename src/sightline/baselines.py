"""The paper's baselines that need no training: random scores, and object detection.

Object detection (Section 3.3): an image is the mean word vector of the names of its K most
probable ImageNet classes, a sentence the mean vector of its words, and their similarity the
cosine. The paper reports the K from 1 to 20 that turns out best on the test documents; the honest
figure takes the K that is best on the validation documents. Both are given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.backbones import DEFAULT, Backbone, class_names, load_backbone
from sightline.batches import open_features, with_features
from sightline.corpus import Corpus
from sightline.documents import Document
from sightline.evaluation import CUTOFFS, DocumentScore, mean_scores, score_document
from sightline.features import FeatureStore
from sightline.problems import Problems, SightlineError, UsageError
from sightline.sentences import tokenize
from sightline.word_vectors import WordVectors, read_word_vectors

FloatArray = NDArray[np.float32]

#: The paper tries K = 1 ... 20 classes an image.
_LARGEST_K = 20


@dataclass(frozen=True, slots=True)
class BaselineScores:
    """What a baseline reached: the documents' scores, how many had none, and further figures."""

    scores: list[DocumentScore]
    skipped: int
    notes: dict[str, Any]


def score_baseline(
    name: str,
    corpus: Corpus,
    split: str | None,
    features: Path | None,
    word_vectors: Path | None,
    cutoffs: Collection[int] = CUTOFFS,
) -> BaselineScores:
    """Score a baseline by its name."""
    if name == "random":
        return random_baseline(corpus, split, cutoffs)
    if word_vectors is None:
        raise UsageError("Object detection compares word vectors; name a --word-vectors file.")
    store = open_features(corpus, features)
    backbone = load_backbone(store.backbone or DEFAULT)
    return object_detection_baseline(corpus, split, store, backbone, word_vectors, cutoffs)


def random_baseline(
    corpus: Corpus, split: str | None, cutoffs: Collection[int] = CUTOFFS, seed: int = 1
) -> BaselineScores:
    """Scores of uniformly random similarity matrices, the same for a document in every run."""
    scores, skipped = [], 0
    for document in corpus.documents(split):
        digest = hashlib.sha256(f"{seed} {document.id}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        matrix = rng.random((len(document.sentences), len(document.images)))
        score = _score(document, matrix, cutoffs)
        scores += [score] if score else []
        skipped += score is None
    return BaselineScores(scores, skipped, {})


def object_detection_baseline(
    corpus: Corpus,
    split: str | None,
    store: FeatureStore,
    backbone: Backbone,
    word_vectors: Path,
    cutoffs: Collection[int] = CUTOFFS,
) -> BaselineScores:
    """The best K after the fact, as the paper reports it; notes hold the honest choice of K."""
    if store.backbone is not None and store.backbone != backbone.name:
        raise SightlineError(
            f"The features in {store.folder} come from {store.backbone}; object detection needs "
            f"those of {backbone.name}, whose class scores it reads."
        )
    problems = corpus.problems
    chosen = list(with_features(corpus.documents(split), store, problems, str(corpus.path)))
    held_out = list(with_features(corpus.documents("val"), store, Problems(), "validation"))
    words = _words(document for document, _ in (*chosen, *held_out))
    vectors = read_word_vectors(word_vectors, words, problems)
    detector = ObjectDetector(backbone, vectors)
    by_k = _scores_by_k(detector, chosen, store, cutoffs)
    best = int(np.argmax([_mean_auc(scores) for scores in by_k]))
    notes: dict[str, Any] = {"k": best + 1, "k_chosen_on": "this split"}
    validation_aucs = [
        _mean_auc(scores) for scores in _scores_by_k(detector, held_out, store, cutoffs)
    ]
    if not np.isnan(validation_aucs).all():
        honest = int(np.nanargmax(validation_aucs))
        skipped = len(chosen) - len(by_k[honest])
        notes["k_by_validation"] = honest + 1
        notes["by_validation"] = mean_scores(by_k[honest], skipped, cutoffs)
    return BaselineScores(by_k[best], len(chosen) - len(by_k[best]), notes)


class ObjectDetector:
    """Images and sentences as means of word vectors."""

    def __init__(self, backbone: Backbone, vectors: WordVectors) -> None:
        self._backbone = backbone
        self._row = {word: row for row, word in enumerate(vectors.words)}
        self._vectors = vectors.vectors
        self._classes = np.stack([self._mean(_class_words(name)) for name in class_names()])

    def sentence_vectors(self, sentences: Iterable[str]) -> FloatArray:
        """Unit mean word vectors; zero for a sentence without known words."""
        return _unit(np.stack([self._mean(tokenize(sentence)) for sentence in sentences]))

    def image_vectors(self, features: FloatArray) -> list[FloatArray]:
        """For each K, the unit mean of the names of an image's K most probable classes."""
        scores = self._backbone.class_scores(features)
        top = np.argsort(-scores, axis=1, kind="stable")[:, :_LARGEST_K]
        sums = self._classes[top].cumsum(axis=1)
        return [_unit(sums[:, k]) for k in range(_LARGEST_K)]  # a mean's direction is its sum's

    def _mean(self, words: Iterable[str]) -> FloatArray:
        rows = [self._row[word] for word in words if word in self._row]
        if not rows:
            return np.zeros(self._vectors.shape[1], np.float32)
        mean: FloatArray = self._vectors[rows].mean(axis=0)
        return mean


def _scores_by_k(
    detector: ObjectDetector,
    documents: list[tuple[Document, NDArray[np.int64]]],
    store: FeatureStore,
    cutoffs: Collection[int],
) -> list[list[DocumentScore]]:
    """The documents' scores for each K."""
    by_k: list[list[DocumentScore]] = [[] for _ in range(_LARGEST_K)]
    for document, rows in documents:
        sentences = detector.sentence_vectors(document.sentences)
        images_by_k = detector.image_vectors(store.vectors(rows))
        for scores, images in zip(by_k, images_by_k, strict=True):
            score = _score(document, sentences @ images.T, cutoffs)
            if score is not None:
                scores.append(score)
    return by_k


def _score(
    document: Document, matrix: NDArray[np.floating], cutoffs: Collection[int]
) -> DocumentScore | None:
    if document.links is None:
        return None
    return score_document(document.id, matrix, document.links, cutoffs)


def _class_words(name: str) -> list[str]:
    """The words of a class's first name: of "tiger shark, Galeocerdo cuvieri" the shark's."""
    return tokenize(name.partition(",")[0])


def _words(documents: Iterable[Document]) -> set[str]:
    """All words whose vectors are needed."""
    words = {word for name in class_names() for word in _class_words(name)}
    for document in documents:
        for sentence in document.sentences:
            words.update(tokenize(sentence))
    return words


def _mean_auc(scores: list[DocumentScore]) -> float:
    return float(np.mean([score.auc for score in scores])) if scores else float("nan")


def _unit(vectors: FloatArray) -> FloatArray:
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(norm, 1e-12)
    return unit
