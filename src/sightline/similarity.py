"""Similarity matrices of a batch: every document's sentences against every document's images.

Letters: D documents, S sentences (padded to the longest document), V images (likewise), E the
shared space, N and M all sentences and all images of the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Padding is -inf, never 0: a 0 would win each maximum where all similarities are negative.
_PADDING = float("-inf")


def similarity_matrices(
    sentence_vectors_NE: Tensor, image_vectors_ME: Tensor, sentences_D: Tensor, images_D: Tensor
) -> Tensor:
    """Cosine similarities of all D x D pairs of a sentence set and an image set, -inf padded.

    The vectors are unit vectors, document after document; `sentences_D` and `images_D` say how
    many belong to each. Entry [i, j, s, v] compares sentence s of document i with image v of
    document j; the documents' own similarity matrices lie on the diagonal i = j.
    """
    sentence_DSE, sentence_mask_DS = _padded(sentence_vectors_NE, sentences_D)
    image_DVE, image_mask_DV = _padded(image_vectors_ME, images_D)
    documents, longest_S, _ = sentence_DSE.shape
    longest_V = image_DVE.shape[1]
    similarity = sentence_DSE.flatten(0, 1) @ image_DVE.flatten(0, 1).t()
    similarity_DDSV = similarity.view(documents, longest_S, documents, longest_V).transpose(1, 2)
    mask_DDSV = sentence_mask_DS[:, None, :, None] & image_mask_DV[None, :, None, :]
    return similarity_DDSV.masked_fill(~mask_DDSV, _PADDING)


def _padded(vectors_NE: Tensor, counts_D: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors as documents x longest x E, and a mask of the true places."""
    longest = int(counts_D.max())
    place = torch.arange(longest, device=counts_D.device)
    mask = place[None, :] < counts_D[:, None]
    first_D = counts_D.cumsum(0) - counts_D
    # Padding repeats the document's last vector, which keeps the index in range.
    rows = first_D[:, None] + torch.minimum(place[None, :], counts_D[:, None] - 1)
    return vectors_NE[rows], mask
