"""How similar a set of sentences is to a set of images: the paper's Section 3.2.

Each function turns similarity matrices into one number per pair of documents, differentiably,
for all D x D pairs of a ragged batch at once (`similarity_DDSV`, -inf padded, as made by
`similarity.similarity_matrices`; `sentences_D` and `images_D` are the true counts).

The ranges differ, as in the paper: DC and TK add two means (at most 2), AP is one mean (at most
1), all under the same margin.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from sightline.assignment import assign_many

# As in `choices`, which the core does not import.
MaxLinks = Literal["all", "half"] | int


def link_cap(sentences: Tensor, images: Tensor, max_links: MaxLinks) -> Tensor:
    """k(S, V): the most links that TK and AP may use, for counts that broadcast.

    `all` is min(|S|, |V|), `half` is half of that rounded up, a number is that number but never
    more than `all` (Section 4.1).
    """
    every = torch.minimum(sentences, images)
    if max_links == "all":
        return every
    if max_links == "half":
        return (every + 1) // 2
    return every.clamp(max=max_links)


def document_similarity(
    name: str,
    similarity_DDSV: Tensor,
    sentences_D: Tensor,
    images_D: Tensor,
    max_links: MaxLinks = "all",
) -> Tensor:
    """Sim(S_i, V_j) for all pairs of documents, by the name that the paper gives the function."""
    if name == "NoStruct":  # the batch holds one sentence and one image each
        return similarity_DDSV[:, :, 0, 0]
    if name == "DC":
        return dense_correspondence(similarity_DDSV, sentences_D, images_D)
    function = {"TK": top_k, "AP": assignment}[name]
    return function(similarity_DDSV, sentences_D, images_D, max_links)


def dense_correspondence(similarity_DDSV: Tensor, sentences_D: Tensor, images_D: Tensor) -> Tensor:
    """DC: each sentence is aligned with its best image and each image with its best sentence.

    1/n sum_i max_j M_ij + 1/m sum_j max_i M_ij, at most 2. Made for documents in which
    everything has a partner, yet robust where most sentences have none (DII-Stress).
    """
    best_image_DDS, best_sentence_DDV = _best(similarity_DDSV)
    return (
        _sum_of_finite(best_image_DDS) / sentences_D[:, None]
        + _sum_of_finite(best_sentence_DDV) / images_D[None, :]
    )


def top_k(
    similarity_DDSV: Tensor, sentences_D: Tensor, images_D: Tensor, max_links: MaxLinks = "all"
) -> Tensor:
    """TK: like DC, but only the k best sentences and the k best images count.

    The mean of the k largest max_j M_ij plus the mean of the k largest max_i M_ij, at most 2.
    Sentences that show nothing may stay unaligned. Equals DC where both counts are k.
    """
    best_image_DDS, best_sentence_DDV = _best(similarity_DDSV)
    cap_DD = link_cap(sentences_D[:, None], images_D[None, :], max_links)
    return (
        _sum_of_largest(best_image_DDS, cap_DD) + _sum_of_largest(best_sentence_DDV, cap_DD)
    ) / cap_DD


def assignment(
    similarity_DDSV: Tensor,
    sentences_D: Tensor,
    images_D: Tensor,
    max_links: MaxLinks = "all",
    exactly: bool = True,
) -> Tensor:
    """AP: the mean similarity of the best one-to-one assignment, at most 1.

    sum_ij M_ij x*_ij / r, where x* maximises the sum with at most one link per sentence and per
    image, and r counts its links. `exactly` takes k links even where the last ones lower the
    sum, as the original code does; otherwise x* has at most k links, and no link at all is
    similarity 0. The gradient passes through the chosen entries; the choice itself is constant.
    """
    documents, _, longest_S, longest_V = similarity_DDSV.shape
    pairs = documents * documents
    cap_DD = link_cap(sentences_D[:, None], images_D[None, :], max_links)
    image_of_sentence = assign_many(
        similarity_DDSV.detach().reshape(pairs, longest_S, longest_V).cpu().numpy(),
        sentences_D.repeat_interleave(documents).cpu().numpy(),
        images_D.repeat(documents).cpu().numpy(),
        np.ascontiguousarray(cap_DD.cpu().numpy()).reshape(pairs),
        exactly=exactly,
    )
    chosen_DDS = (
        torch.from_numpy(image_of_sentence)
        .to(device=similarity_DDSV.device, dtype=torch.int64)
        .view(documents, documents, longest_S)
    )
    linked_DDS = chosen_DDS >= 0
    weight_DDS = similarity_DDSV.gather(3, chosen_DDS.clamp(min=0)[..., None])[..., 0]
    total_DD = torch.where(linked_DDS, weight_DDS, 0.0).sum(2)
    return total_DD / linked_DDS.sum(2).clamp(min=1)


def _best(similarity_DDSV: Tensor) -> tuple[Tensor, Tensor]:
    """Each sentence's best image and each image's best sentence (-inf for padding)."""
    return similarity_DDSV.max(3).values, similarity_DDSV.max(2).values


def _sum_of_finite(values: Tensor) -> Tensor:
    return torch.where(values.isfinite(), values, 0.0).sum(-1)


def _sum_of_largest(values: Tensor, count_DD: Tensor) -> Tensor:
    """Sum of the `count` largest along the last axis; padding sorts last."""
    ordered = values.sort(dim=-1, descending=True).values
    place = torch.arange(values.shape[-1], device=values.device)
    return torch.where(place < count_DD[..., None], ordered, 0.0).sum(-1)
