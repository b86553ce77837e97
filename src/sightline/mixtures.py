"""Mixtures of two documents, in which it is known of some pairs that they are wrong.

A pair of a sentence of the one document and an image of the other is surely wrong, while every
sentence and image still has the rivals and the true partners that it had. So of the pairs within
a document, the wrong ones look like those across. (Proteomics counts false identifications in this
way, by decoys that compete with the real thing.)

A document is mixed with one much like it, so that what is common to a topic is not taken for a
link, but with none that shares an image or a sentence with it: a pair across could be true then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.batches import IntArray
from sightline.numpy_encoders import FloatArray
from sightline.problems import SightlineError

#: Of the documents most like one, so many are taken to mix with it.
_LIKE = 5
#: Pairs in all mixtures together, which bounds time (seconds) and memory (50 MB).
_MOST_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """The unit vectors of a document, and names for its sentences and images."""

    sentence_SE: FloatArray
    image_VE: FloatArray
    names: frozenset[object]


@dataclass(frozen=True, slots=True)
class Mixtures:
    """The pairs of all mixtures, one after another."""

    score: NDArray[np.float64]
    sentence: IntArray  # number of the pair's sentence; a document has new ones in each mixture
    image: IntArray
    within: NDArray[np.bool_]  # of one document, not across two
    across_to_within: NDArray[np.float64]  # how many pairs across there are to one within
    strangers: NDArray[np.float64]  # sentences and images of the mixture

    def first(self, pairs: int) -> Mixtures:
        """The first so many pairs, up to the end of a sentence."""
        end = int(np.searchsorted(self.sentence, self.sentence[pairs], side="right"))
        return Mixtures(*(getattr(self, name)[:end] for name in self.__slots__))


def mix(documents: list[EncodedDocument], rng: np.random.Generator) -> Mixtures:
    """Mix documents that are much alike, two at a time, until there are enough pairs."""
    parts: list[tuple[NDArray[np.generic], ...]] = []
    pairs, sentences, images = 0, 0, 0
    for first, second in partners_of(documents, rng):
        one, other = documents[first], documents[second]
        sentence_SE = np.concatenate([one.sentence_SE, other.sentence_SE])
        image_VE = np.concatenate([one.image_VE, other.image_VE])
        score_SV = (sentence_SE @ image_VE.T).astype(np.float64)
        if pairs + score_SV.size > _MOST_PAIRS:
            continue
        of_first_S = np.arange(len(sentence_SE)) < len(one.sentence_SE)
        of_first_V = np.arange(len(image_VE)) < len(one.image_VE)
        within_SV = of_first_S[:, None] == of_first_V
        within = int(within_SV.sum())
        sentence_S = sentences + np.arange(len(sentence_SE))
        image_V = images + np.arange(len(image_VE))
        parts.append(
            (
                score_SV.ravel(),
                np.repeat(sentence_S, len(image_VE)),
                np.tile(image_V, len(sentence_SE)),
                within_SV.ravel(),
                np.full(score_SV.size, (score_SV.size - within) / within),
                np.full(score_SV.size, float(sum(score_SV.shape))),
            )
        )
        pairs += score_SV.size
        sentences += len(sentence_SE)
        images += len(image_VE)
    if not parts:
        raise SightlineError(
            "Calibrating needs documents that share neither images nor sentences, and whose "
            f"sentences times images are under {_MOST_PAIRS // 4:,}; there are no two."
        )
    return Mixtures(*map(np.concatenate, zip(*parts, strict=True)))


def partners_of(
    documents: list[EncodedDocument], rng: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """Pairs of documents that are much alike but share nothing: one a document, then another."""
    likeness_DD = np.zeros((len(documents), len(documents)))
    for vectors in ([d.sentence_SE for d in documents], [d.image_VE for d in documents]):
        mean_DE = np.stack([of_document.mean(0) for of_document in vectors])
        mean_DE /= np.maximum(np.linalg.norm(mean_DE, axis=1, keepdims=True), 1e-12)
        likeness_DD += mean_DE @ mean_DE.T
    np.fill_diagonal(likeness_DD, -np.inf)
    partners = []
    for document, likeness_D in zip(documents, likeness_DD, strict=True):
        like = (
            other
            for other in np.argsort(-likeness_D)[:-1].tolist()
            if document.names.isdisjoint(documents[other].names)
        )
        partners.append([other for _, other in zip(range(_LIKE), like, strict=False)])
        rng.shuffle(partners[-1])
    for turn in range(_LIKE):
        for document in rng.permutation(len(documents)).tolist():
            if turn < len(partners[document]):
                yield document, partners[document][turn]
