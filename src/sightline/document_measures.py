"""What a document looks like from outside any model: its spread and its content.

The paper's Section 4.1 ("content vs. spread"): an image is its backbone features, a sentence the
mean vector of its words. Spread is the mean squared distance of the L2-normalised vectors to
their centroid: how unlike each other a document's images, or its sentences, are. Content is the
mean of the same vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.batches import open_features
from sightline.corpus import Corpus
from sightline.documents import Document
from sightline.features import FeatureStore, features_beside
from sightline.progress import Progress
from sightline.sentences import tokenize
from sightline.word_vectors import WordVectors, read_word_vectors

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentMeasures:
    """Spread and content of documents, a row each; the sentences' are None without vectors."""

    ids: list[str]
    sentences_D: NDArray[np.int64]
    images_D: NDArray[np.int64]
    image_spread_D: FloatArray
    image_content_DE: FloatArray
    text_spread_D: FloatArray | None
    text_content_DE: FloatArray | None
    #: Documents without any image with features, or without any sentence with a known word.
    left_out: int


def spread(vectors_NE: NDArray[np.floating]) -> float:
    """Mean squared distance of the vectors, each made a unit vector, to their centroid."""
    unit_NE = _unit_vectors(vectors_NE)
    return float(((unit_NE - unit_NE.mean(axis=0)) ** 2).sum(axis=1).mean())


def _unit_vectors(vectors_NE: NDArray[np.floating]) -> FloatArray:
    """The vectors divided by their lengths; a zero vector stays zero."""
    wide = vectors_NE.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: FloatArray = wide / np.where(lengths > 0, lengths, 1)
    return unit


class SentenceMeans:
    """Sentences as the means of their words' vectors."""

    def __init__(self, vectors: WordVectors) -> None:
        self._row = {word: row for row, word in enumerate(vectors.words)}
        self._vectors = vectors.vectors

    def of(self, sentences: Sequence[str]) -> FloatArray:
        """A row for each sentence that has a word with a vector; the others have none."""
        rows = [[self._row[w] for w in tokenize(s) if w in self._row] for s in sentences]
        means = [self._vectors[known].mean(axis=0, dtype=np.float64) for known in rows if known]
        return np.stack(means) if means else np.empty((0, self._vectors.shape[1]))


def documents_named(corpus: Corpus, split: str | None, ids: Collection[str]) -> dict[str, Document]:
    """The corpus's documents that have one of the ids; of an id that comes twice, the first."""
    found: dict[str, Document] = {}
    for document in corpus.documents(split):
        if document.id in ids:
            found.setdefault(document.id, document)
    return found


def measure_corpus(
    corpus: Corpus,
    documents: Sequence[Document],
    features: Path | None = None,
    word_vectors: Path | None = None,
) -> DocumentMeasures | None:
    """Measure documents of a corpus with its own or the named features; None if there are none."""
    if features is None and features_beside(corpus.root) is None:
        return None
    vectors = None
    if word_vectors is not None:
        vectors = read_word_vectors(word_vectors, words_of(documents), corpus.problems)
    return measure_documents(documents, open_features(corpus, features), vectors)


def words_of(documents: Iterable[Document]) -> set[str]:
    """All words of the documents: those whose vectors are needed."""
    return {word for d in documents for sentence in d.sentences for word in tokenize(sentence)}


def measure_documents(
    documents: Sequence[Document], store: FeatureStore, vectors: WordVectors | None
) -> DocumentMeasures:
    """Spread and content of each document; images and sentences without a vector do not count."""
    means = None if vectors is None else SentenceMeans(vectors)
    ids: list[str] = []
    sizes: list[tuple[int, int]] = []
    spreads: list[tuple[float, float]] = []
    image_content: list[FloatArray] = []
    text_content: list[FloatArray] = []
    with Progress("measuring spread and content", len(documents), "documents") as progress:
        for document in documents:
            progress.advance()
            image_VE = _image_vectors(document, store)
            sentence_SE = None if means is None else means.of(document.sentences)
            if not len(image_VE) or (sentence_SE is not None and not len(sentence_SE)):
                continue
            ids.append(document.id)
            sizes.append((len(document.sentences), len(document.images)))
            text_spread = 0.0 if sentence_SE is None else spread(sentence_SE)
            spreads.append((spread(image_VE), text_spread))
            image_content.append(_unit_vectors(image_VE).mean(axis=0))
            if sentence_SE is not None:
                text_content.append(_unit_vectors(sentence_SE).mean(axis=0))
    sizes_D2 = np.array(sizes, np.int64).reshape(-1, 2)
    spreads_D2 = np.array(spreads).reshape(-1, 2)
    return DocumentMeasures(
        ids,
        sizes_D2[:, 0],
        sizes_D2[:, 1],
        spreads_D2[:, 0],
        _rows(image_content),
        None if means is None else spreads_D2[:, 1],
        None if means is None else _rows(text_content),
        len(documents) - len(ids),
    )


def _image_vectors(document: Document, store: FeatureStore) -> NDArray[np.float32]:
    rows = store.rows(document.images)
    vectors = store.vectors(rows[rows >= 0])
    return vectors[np.isfinite(vectors).all(axis=1)]


def _rows(vectors: list[FloatArray]) -> FloatArray:
    return np.stack(vectors) if vectors else np.empty((0, 0))
