"""Losses over the document similarities of a batch: true pairs on the diagonal, negatives beside.

Row i holds document i's sentences against every image set, column i its images against every
sentence set. Each function returns one loss per document.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor


def hinge_loss(
    document_similarity_DD: Tensor, margin: float, negatives: Literal["hard", "mean"]
) -> Tensor:
    """The paper's Equation 1: max-margin against negative image sets and negative sentence sets.

    max over V' of h(sim(S, V), sim(S, V')) + max over S' of h(sim(S, V), sim(S', V)) with
    h(p, n) = max(0, margin - p + n); `mean` averages over the negatives instead. Constant
    similarities cost 2 x margin.
    """
    true_D = document_similarity_DD.diagonal()
    own = torch.eye(len(true_D), dtype=torch.bool, device=true_D.device)
    image_sets = (margin - true_D[:, None] + document_similarity_DD).clamp(min=0)
    sentence_sets = (margin - true_D[None, :] + document_similarity_DD).clamp(min=0)
    # The hinge is never below 0, so a 0 in the document's own place neither wins nor adds.
    image_sets = image_sets.masked_fill(own, 0.0)
    sentence_sets = sentence_sets.masked_fill(own, 0.0)
    if negatives == "hard":
        return image_sets.max(1).values + sentence_sets.max(0).values
    return (image_sets.sum(1) + sentence_sets.sum(0)) / (len(true_D) - 1)


def softmax_loss(document_similarity_DD: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of finding one's own image set, and one's own sentence set, in the batch.

    All negatives count, the hard ones most. Constant similarities cost 2 x log D.
    """
    scaled = document_similarity_DD / temperature
    return -(scaled.log_softmax(1).diagonal() + scaled.log_softmax(0).diagonal())
