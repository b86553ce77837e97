"""Links of many documents at once, with no loop over documents: what bulk linking runs.

Documents of like size are padded to one block of similarity matrices, and a policy is a few array
operations on the block. The links are those that `linking.link` gives document by document, which
tests hold equal; where two choices are worth the same, either may be taken.
Letters: N all sentences, M all images, B documents of a block, L links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.assignment import assign, assign_many
from sightline.batches import IntArray
from sightline.choices import MaxLinks, Policy
from sightline.linking import Link
from sightline.numpy_encoders import FloatArray

#: Numbers of one block's sentence vectors: 8 MB, which stay in the caches while they are used.
_BLOCK_NUMBERS = 1 << 21


@dataclass(frozen=True, slots=True)
class Block:
    """Documents of like size and their similarity matrices, padded with -inf."""

    documents_B: IntArray  # their places
    similarity_BSV: FloatArray
    sentences_B: IntArray
    images_B: IntArray

    def matrices(self) -> dict[int, FloatArray]:
        """Each document's similarity matrix without padding, by its place."""
        counts = zip(self.sentences_B, self.images_B, strict=True)
        return {
            int(document): similarity_SV[:sentences, :images]
            for document, similarity_SV, (sentences, images) in zip(
                self.documents_B, self.similarity_BSV, counts, strict=True
            )
        }


def similarity_blocks(
    sentence_NE: FloatArray, image_ME: FloatArray, sentences_D: ArrayLike, images_D: ArrayLike
) -> Iterator[Block]:
    """The similarity matrices of documents, whose vectors stand one document after the other.

    Documents without sentences or without images are in no block.
    """
    sentences_D = np.asarray(sentences_D, np.int64)
    images_D = np.asarray(images_D, np.int64)
    first_sentence_D = np.cumsum(sentences_D) - sentences_D
    first_image_D = np.cumsum(images_D) - images_D
    for documents in _alike(sentences_D, images_D, sentence_NE.shape[1]):
        sentences_B, images_B = sentences_D[documents], images_D[documents]
        sentence_BS, absent_BS = _padded(first_sentence_D[documents], sentences_B)
        image_BV, absent_BV = _padded(first_image_D[documents], images_B)
        similarity_BSV = np.matmul(sentence_NE[sentence_BS], image_ME[image_BV].transpose(0, 2, 1))
        similarity_BSV[absent_BS] = -np.inf
        similarity_BSV.transpose(0, 2, 1)[absent_BV] = -np.inf
        yield Block(documents, similarity_BSV, sentences_B, images_B)


def link_block(
    block: Block,
    policy: Policy = "assignment",
    max_links: MaxLinks = "all",
    threshold: float = 0.0,
    compiled: bool = True,
) -> NDArray[np.bool_]:
    """Which pairs of sentence and image are links, as `linking.link` describes the policies.

    `compiled` assignment takes a moment to load, which pays for hundreds of documents.
    """
    similarity_BSV = block.similarity_BSV
    caps_B = _caps(np.minimum(block.sentences_B, block.images_B), max_links)
    if policy == "assignment":
        return _assigned(block, caps_B, False, compiled)
    if policy == "mmc4":
        linked_BSV = _assigned(block, None, True, compiled)
        left_over_BV = ~linked_BSV.any(1) & _present(block.images_B, similarity_BSV.shape[2])
        b, v = np.nonzero(left_over_BV)
        linked_BSV[b, similarity_BSV.argmax(1)[b, v], v] = True
        return linked_BSV
    linked_BSV = np.zeros(similarity_BSV.shape, bool)
    for axis in (2, 1):  # each sentence's best image, then each image's best sentence
        best = similarity_BSV.argmax(axis)
        score = np.take_along_axis(similarity_BSV, np.expand_dims(best, axis), axis).squeeze(axis)
        chosen = score > (threshold if policy == "threshold" else -np.inf)
        if policy == "top-k":
            order = np.argsort(-score, axis=1, kind="stable")
            rank = np.empty_like(order)
            np.put_along_axis(rank, order, np.arange(order.shape[1])[None], 1)
            chosen &= rank < caps_B[:, None]
        b, one = np.nonzero(chosen)
        other = best[b, one]
        linked_BSV[(b, one, other) if axis == 2 else (b, other, one)] = True
    return linked_BSV


def links_in_order(
    found: Iterable[tuple[Block, NDArray[np.bool_]]], documents: int
) -> Iterator[list[Link]]:
    """The links of each document, the best first, from the pairs that `link_block` chose."""
    columns: list[tuple[NDArray[Any], ...]] = [tuple(np.empty((4, 0), np.int64))]
    for block, linked_BSV in found:
        b, s, v = np.nonzero(linked_BSV)
        columns.append((block.documents_B[b], s, v, block.similarity_BSV[b, s, v]))
    document, sentence, image, score = map(np.concatenate, zip(*columns, strict=True))
    order = np.lexsort((image, sentence, -score, document))
    ends = np.searchsorted(document[order], np.arange(documents), side="right").tolist()
    links = list(map(Link, *(column[order].tolist() for column in (sentence, image, score))))
    for begin, end in pairwise([0, *ends]):
        yield links[begin:end]


def _alike(sentences_D: IntArray, images_D: IntArray, dimension: int) -> Iterator[IntArray]:
    """Documents to be padded to one size: less than twice as large as the smallest, each way."""
    # The number of binary digits; a document without sentences or images has none.
    _, class_of_sentences = np.frexp(sentences_D)
    _, class_of_images = np.frexp(images_D)
    order = np.lexsort((np.arange(len(images_D)), sentences_D, class_of_images, class_of_sentences))
    order = order[(sentences_D[order] > 0) & (images_D[order] > 0)]
    kind = class_of_sentences[order].astype(np.int64) * 1000 + class_of_images[order]
    for documents in np.split(order, np.flatnonzero(np.diff(kind)) + 1):
        if len(documents):
            most = int(sentences_D[documents[-1]]) * dimension
            at_once = max(1, _BLOCK_NUMBERS // most)
            for begin in range(0, len(documents), at_once):
                yield documents[begin : begin + at_once]


def _padded(first_B: IntArray, counts_B: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Each document's rows, and which of them are padding, which repeats the last row."""
    place = np.arange(int(counts_B.max()))
    rows = first_B[:, None] + np.minimum(place, counts_B[:, None] - 1)
    return rows, place >= counts_B[:, None]


def _present(counts_B: IntArray, width: int) -> NDArray[np.bool_]:
    return np.arange(width) < counts_B[:, None]


def _caps(every_B: IntArray, max_links: MaxLinks) -> IntArray:
    if max_links == "all":
        return every_B
    if max_links == "half":
        return (every_B + 1) // 2
    return np.minimum(every_B, min(max_links, np.iinfo(every_B.dtype).max))


def _assigned(
    block: Block, caps_B: IntArray | None, exactly: bool, compiled: bool
) -> NDArray[np.bool_]:
    similarity_BSV, counts = block.similarity_BSV, (block.sentences_B, block.images_B)
    linked_BSV = np.zeros(similarity_BSV.shape, bool)
    if compiled:
        image_of_sentence_BS = assign_many(similarity_BSV, *counts, caps_B, exactly)
        b, s = np.nonzero(image_of_sentence_BS >= 0)
        linked_BSV[b, s, image_of_sentence_BS[b, s]] = True
        return linked_BSV
    for place, (sentences, images) in enumerate(zip(*counts, strict=True)):
        cap = None if caps_B is None else int(caps_B[place])
        links = assign(similarity_BSV[place, :sentences, :images], cap, exactly)
        linked_BSV[place, links[:, 0], links[:, 1]] = True
    return linked_BSV
