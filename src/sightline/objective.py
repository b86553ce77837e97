"""The training objective: from a batch of documents to one loss per document.

Puts the pieces of the core together as the settings choose them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Generator, Tensor

from sightline.batches import Batch, IntArray
from sightline.distributed import Processes
from sightline.document_similarity import document_similarity
from sightline.encoders import Encoders, OwnDraws
from sightline.loss import hinge_loss, softmax_loss
from sightline.settings import Settings
from sightline.similarity import similarity_matrices


def document_similarities(
    encoders: Encoders,
    batch: Batch,
    features: Tensor,
    settings: Settings,
    generator: Generator | None = None,
) -> Tensor:
    """sim(S_i, V_j) for all pairs of documents of a batch; a generator turns dropout on."""
    sentence_NE = encoders.sentence(batch.sentences, generator)
    image_ME = encoders.image(features, generator)
    return _compare(sentence_NE, image_ME, batch, settings)


def gathered_similarities(
    encoders: Encoders,
    batch: Batch,
    features: Callable[[IntArray], Tensor],
    settings: Settings,
    generator: Generator | None,
    processes: Processes,
) -> Tensor:
    """The same of a batch that several processes encode, each its own share.

    `features` gives those of feature rows, of which each process asks for its own. The gradient
    is that of the own share's vectors: the processes' gradients add up to the whole.
    """
    shares = processes.shares(batch)
    share = shares[processes.rank]
    sentence_NE = image_ME = encoders.sentence.embedding.new_empty(0, settings.dimension)
    # A process without documents need not draw: it has none in any batch of the run.
    if share.documents.start < share.documents.stop:
        own = share.of(batch)
        of_sentences = of_images = None
        if generator is not None:
            of_sentences = encoders.sentence.own_draws(
                generator, batch.sentences.lengths, share.sentences
            )
            rows = np.arange(share.images.start, share.images.stop)
            of_images = OwnDraws(generator, rows, len(batch.image_rows))
        sentence_NE = encoders.sentence(own.sentences, of_sentences)
        image_ME = encoders.image(features(own.image_rows), of_images)
    sentence_NE = processes.gather(sentence_NE, [each.sentences for each in shares])
    image_ME = processes.gather(image_ME, [each.images for each in shares])
    return _compare(sentence_NE, image_ME, batch, settings)


def _compare(sentence_NE: Tensor, image_ME: Tensor, batch: Batch, settings: Settings) -> Tensor:
    sentences_D = torch.from_numpy(batch.sentences_D).to(sentence_NE.device)
    images_D = torch.from_numpy(batch.images_D).to(sentence_NE.device)
    similarity_DDSV = similarity_matrices(sentence_NE, image_ME, sentences_D, images_D)
    return document_similarity(
        settings.similarity, similarity_DDSV, sentences_D, images_D, settings.max_links
    )


def loss_of(document_similarity_DD: Tensor, settings: Settings) -> Tensor:
    """The loss of each document of a batch."""
    if settings.loss == "softmax":
        return softmax_loss(document_similarity_DD, settings.temperature)
    return hinge_loss(document_similarity_DD, settings.margin, settings.negatives)


def constant_loss(settings: Settings) -> float:
    """The loss of a model that finds all document pairs equally similar."""
    if settings.loss == "softmax":
        return 2 * math.log(settings.negative_documents + 1)
    return 2 * settings.margin
