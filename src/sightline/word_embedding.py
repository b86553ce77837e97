"""The embedding that training starts from: a vector for each word of the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.problems import SightlineError
from sightline.related_words import related_words
from sightline.vocabulary import Vocabulary
from sightline.word_vectors import WordVectors

# The scale of the vectors that words without one start with; the paper's code has the number.
_RANDOM_SCALE = 0.2


@dataclass(frozen=True)
class Coverage:
    """How many of a vocabulary's words, the unknown word aside, have a vector."""

    found: int
    total: int

    def __str__(self) -> str:
        percent = 100 * self.found / self.total if self.total else 0.0
        return f"{self.found:,} of {self.total:,} words ({percent:.1f} %) have a vector"


def embedding_matrix(
    vocabulary: Vocabulary,
    word_vectors: WordVectors | None,
    dimension: int = 300,
    *,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float32], Coverage]:
    """Give each word of the vocabulary its vector, or a random one where it has none.

    A random row depends on the generator and its place alone, not on which words have vectors.
    """
    if word_vectors is not None and word_vectors.dimension != dimension:
        raise SightlineError(
            f"The word vectors have {word_vectors.dimension} dimensions, but the model expects "
            f"{dimension}."
        )
    shape = (len(vocabulary), dimension)
    matrix = rng.uniform(-_RANDOM_SCALE, _RANDOM_SCALE, shape).astype(np.float32)
    words = [] if word_vectors is None else word_vectors.words
    known = [(row, vocabulary.index(word)) for row, word in enumerate(words) if word in vocabulary]
    if word_vectors is not None and known:
        rows, numbers = zip(*known, strict=True)
        matrix[list(numbers)] = word_vectors.vectors[list(rows)]
    found = sum(number != 0 for _, number in known)
    return matrix, Coverage(found, len(vocabulary) - 1)


def start_from_related(
    vocabulary: Vocabulary, matrix: NDArray[np.float32], fixed_words: int
) -> None:
    """Give the rows after the fixed ones the mean of related words; the unknown word gets zeros.

    A word without related ones keeps its row.
    """
    matrix[0] = 0
    fixed = {word: row for row, word in enumerate(vocabulary.words[:fixed_words])}
    for row in range(fixed_words, len(vocabulary)):
        related = related_words(vocabulary.words[row], fixed)
        if related:
            matrix[row] = matrix[[fixed[word] for word in related]].mean(axis=0)
