"""The encoders in torch, for training: sentences and images -> unit vectors of one space.

`numpy_encoders` holds the same forward passes without torch; a test keeps the two equal.
Parameters are named as in the model folder's `model.safetensors`.
Letters: N tokens of the batch, B sentences or images, W words, E word embedding, F features.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from sightline.batches import IntArray, Sentences, time_major
from sightline.gru import gru_final_state
from sightline.settings import Settings


@dataclass(frozen=True, slots=True)
class OwnDraws:
    """Dropout for some rows of a batch, drawn as if it were for all of them."""

    generator: Generator
    rows: IntArray
    count: int  # of all rows


#: What turns dropout on.
Draws = Generator | OwnDraws


class _Words(nn.Module):
    """The word embedding: `embedding` learns, the rows before it, if any, are fixed."""

    fixed: Tensor | None

    def __init__(self, embedding_WE: Tensor, fixed_words: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(embedding_WE[fixed_words:])
        # Not part of the state: it comes anew from the word vectors.
        fixed = embedding_WE[:fixed_words] if fixed_words else None
        self.register_buffer("fixed", fixed, persistent=False)

    def table(self, token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors, and each token's row among them.

        Beside fixed rows only those of the batch's own words are taken, so that the gradient
        does not run through a whole file of word vectors.
        """
        if self.fixed is None:
            return self.embedding, token_ids
        words, row_of_token = torch.unique(token_ids, return_inverse=True)
        own = words >= len(self.fixed)
        learned = self.embedding[words[own] - len(self.fixed)]
        return torch.cat([self.fixed[words[~own]], learned]), row_of_token

    def beside(self, indices: IntArray) -> Tensor:
        """Indices as a tensor where the weights are."""
        return torch.from_numpy(indices).to(self.embedding.device)

    def whole_embedding(self) -> Tensor:
        """All rows in the vocabulary's order, as they stand."""
        embedding = self.embedding.detach()
        return embedding if self.fixed is None else torch.cat([self.fixed, embedding])

    @staticmethod
    def own_draws(generator: Generator, lengths: IntArray, own: slice) -> OwnDraws:
        """The dropout of some of a batch's sentences, given the lengths of all."""
        return OwnDraws(generator, np.arange(own.start, own.stop), len(lengths))


class GRUSentenceEncoder(_Words):
    """The paper's sentence encoder: word embedding, GRU, final state, L2 norm."""

    def __init__(
        self, embedding_WE: Tensor, settings: Settings, generator: Generator, fixed_words: int = 0
    ) -> None:
        super().__init__(embedding_WE, fixed_words)
        hidden, word = settings.dimension, embedding_WE.shape[1]
        self.dropout = settings.dropout
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden, word))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden, hidden))
        self.bias_ih = nn.Parameter(torch.zeros(3 * hidden))
        self.bias_hh = nn.Parameter(torch.zeros(3 * hidden))
        # Keras's initialisation, which the original code used: Glorot and orthogonal.
        nn.init.xavier_uniform_(self.weight_ih, generator=generator)
        nn.init.orthogonal_(self.weight_hh, generator=generator)

    def forward(self, sentences: Sentences, draws: Draws | None = None) -> Tensor:
        """Unit vectors of the sentences; draws turn dropout on."""
        packed = time_major(sentences)
        table, rows = self.table(self.beside(packed.token_ids))
        embedding_NE = F.embedding(rows, table)
        if draws is not None and self.dropout > 0:
            # Whole dimensions of the embedding are dropped, the same for all words of a sentence.
            shape = (len(sentences.lengths), embedding_NE.shape[1])
            mask_BE = _dropout_mask(shape, self.dropout, draws).to(embedding_NE.device)
            embedding_NE = embedding_NE * mask_BE[self.beside(packed.sentence_of_token)]
        state_BH = gru_final_state(
            embedding_NE,
            packed.running,
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
        )
        return F.normalize(state_BH[self.beside(packed.place_of_sentence)], dim=1)

    @staticmethod
    def own_draws(generator: Generator, lengths: IntArray, own: slice) -> OwnDraws:
        """The dropout of some of a batch's sentences, given the lengths of all.

        Masks are drawn for sentences sorted by length; some of them keep their order.
        """
        place_of_sentence = np.empty_like(lengths)
        place_of_sentence[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))
        return OwnDraws(generator, np.sort(place_of_sentence[own]), len(lengths))


class AttentionSentenceEncoder(_Words):
    """An attention-weighted mean of word vectors and a head: no recurrence, a few milliseconds.

    The weight of a word is the softmax, over the words of its sentence, of a learned linear
    function of its vector; that function starts at zero, which is the plain mean.
    """

    def __init__(
        self, embedding_WE: Tensor, settings: Settings, generator: Generator, fixed_words: int = 0
    ) -> None:
        super().__init__(embedding_WE, fixed_words)
        self.dropout = settings.dropout
        self.attention = nn.Parameter(torch.zeros(embedding_WE.shape[1]))
        self.head = _head(embedding_WE.shape[1], settings, generator)

    def forward(self, sentences: Sentences, draws: Draws | None = None) -> Tensor:
        """Unit vectors of the sentences; draws turn dropout on."""
        table, rows = self.table(self.beside(sentences.token_ids))
        lengths = self.beside(sentences.lengths)
        count = len(lengths)
        sentence_N = self.beside(np.repeat(np.arange(count), sentences.lengths))
        score_N = (table @ self.attention)[rows]
        largest_B = score_N.new_full((count,), -torch.inf).scatter_reduce(
            0, sentence_N, score_N.detach(), "amax"
        )
        weight_N = (score_N - largest_B[sentence_N]).exp()
        total_B = score_N.new_zeros(count).index_add(0, sentence_N, weight_N)
        # embedding_bag sums the weighted vectors without ever holding tokens x 300 numbers.
        mean_BE = F.embedding_bag(
            rows,
            table,
            lengths.cumsum(0) - lengths,
            mode="sum",
            per_sample_weights=weight_N / total_B[sentence_N],
        )
        if draws is not None and self.dropout > 0:
            mean_BE = _dropped(mean_BE, self.dropout, draws)
        return F.normalize(_through_head(self.head, mean_BE, self.dropout, draws), dim=1)


class ImageEncoder(nn.Module):
    """The paper's image encoder on backbone features: dropout, affine, L2 norm."""

    def __init__(self, features: int, settings: Settings, generator: Generator) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.head = _head(features, settings, generator)

    def forward(self, features_BF: Tensor, draws: Draws | None = None) -> Tensor:
        """Unit vectors of the images; draws turn dropout on."""
        if draws is not None and self.dropout > 0:
            features_BF = _dropped(features_BF, self.dropout, draws)
        return F.normalize(_through_head(self.head, features_BF, self.dropout, draws), dim=1)


class Encoders(nn.Module):
    """The two encoders of a model, trained, saved and restored together."""

    def __init__(
        self,
        embedding_WE: NDArray[np.float32],
        features: int,
        settings: Settings,
        seed: int,
        backbone: nn.Module | None = None,
        fixed_words: int = 0,
    ) -> None:
        super().__init__()
        generator = Generator().manual_seed(seed)
        embedding = torch.from_numpy(embedding_WE).clone()
        kind = {"gru": GRUSentenceEncoder, "attention": AttentionSentenceEncoder}
        encoder = kind[settings.sentence_encoder]
        self.sentence = encoder(embedding, settings, generator, fixed_words)
        self.image = ImageEncoder(features, settings, generator)
        #: The image network that gives the features, where it learns along.
        self.backbone = backbone


def _head(inputs: int, settings: Settings, generator: Generator) -> nn.ModuleList:
    """One affine map, or two with a rectifier between."""
    sizes = [inputs, settings.dimension]
    if settings.layers == 2:
        sizes.insert(1, settings.hidden)
    layers = nn.ModuleList()
    for before, after in pairwise(sizes):
        layer = nn.Linear(before, after)
        nn.init.xavier_uniform_(layer.weight, generator=generator)
        nn.init.zeros_(layer.bias)
        layers.append(layer)
    return layers


def _through_head(
    head: nn.ModuleList, values: Tensor, dropout: float, draws: Draws | None
) -> Tensor:
    values = head[0](values)
    for layer in list(head)[1:]:
        values = values.relu()
        if draws is not None and dropout > 0:
            values = _dropped(values, dropout, draws)
        values = layer(values)
    return values


def _dropped(values: Tensor, dropout: float, draws: Draws) -> Tensor:
    # Drawn on the CPU, so that the same seed drops the same values wherever they are.
    return values * _dropout_mask(tuple(values.shape), dropout, draws).to(values.device)


def _dropout_mask(shape: tuple[int, ...], dropout: float, draws: Draws) -> Tensor:
    """Zeros with probability `dropout`, else 1 / (1 - dropout), from an explicit generator."""
    if isinstance(draws, OwnDraws):
        whole = _dropout_mask((draws.count, *shape[1:]), dropout, draws.generator)
        return whole[torch.from_numpy(draws.rows)]
    keep = 1 - dropout
    return torch.empty(shape).bernoulli_(keep, generator=draws).div_(keep)
