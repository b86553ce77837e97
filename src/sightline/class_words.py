"""What an image network says that it sees, as word vectors: a second input of the image encoder.

The network's ImageNet classes have names, and the names have vectors in the space that sentences
start from. Their mean over the likeliest classes ties images and words together before anything
is learned, as in the paper's object-detection baseline; the encoder learns what to make of it.
Letters: B images, C classes, F features, E word embedding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.sentences import tokenize

if TYPE_CHECKING:
    from sightline.backbones import Backbone
    from sightline.vocabulary import Vocabulary

FloatArray = NDArray[np.float32]
Weights = Mapping[str, FloatArray]

#: Names of the weights: the network's last layer, and the vectors of its classes.
WEIGHT, BIAS, WORDS = "image.classes.weight", "image.classes.bias", "image.classes.words"
#: ImageNet's.
CLASSES = 1000
#: The likeliest classes that count.
_LIKELIEST = 10
#: Above 1 the first class does not drown the others: they describe the scene around it.
_TEMPERATURE = 2.0
#: Length of the joined vector; half the length of EfficientNet-Lite0's features.
_LENGTH = 8.0


def class_weights(
    backbone: Backbone,
    names: Iterable[str],
    vocabulary: Vocabulary,
    embedding_WE: FloatArray,
) -> dict[str, FloatArray]:
    """The weights that `join_class_words` reads, for the classes of a backbone."""
    # The last layer is affine, so that it shows itself in what it makes of unit vectors.
    bias_1C = backbone.class_scores(np.zeros((1, backbone.dimension), np.float32))
    weight_FC = backbone.class_scores(np.eye(backbone.dimension, dtype=np.float32)) - bias_1C
    words_CE = np.stack([_mean(name, vocabulary, embedding_WE) for name in names])
    return {WEIGHT: np.ascontiguousarray(weight_FC.T), BIAS: bias_1C[0], WORDS: words_CE}


def shapes(feature_dimension: int, word_dimension: int) -> dict[str, list[int]]:
    """Name and shape of the weights."""
    return {
        WEIGHT: [CLASSES, feature_dimension],
        BIAS: [CLASSES],
        WORDS: [CLASSES, word_dimension],
    }


def join_class_words(weights: Weights, features_BF: FloatArray) -> FloatArray:
    """Features and, where the model has classes, the mean word vector of the likeliest ones."""
    if WORDS not in weights:
        return features_BF
    score_BC = features_BF @ weights[WEIGHT].T + weights[BIAS]
    best = np.argpartition(-score_BC, _LIKELIEST - 1, axis=1)[:, :_LIKELIEST]
    share = np.take_along_axis(score_BC, best, axis=1)
    share = np.exp((share - share.max(axis=1, keepdims=True)) / _TEMPERATURE)
    words_BE = np.einsum("bc,bce->be", share, weights[WORDS][best])
    norm = np.sqrt(np.einsum("be,be->b", words_BE, words_BE))
    words_BE *= (_LENGTH / np.maximum(norm, 1e-6))[:, None]
    return np.concatenate([features_BF, words_BE], axis=1)


def _mean(name: str, vocabulary: Vocabulary, embedding_WE: FloatArray) -> FloatArray:
    """Of the words of a class's first name: of "tiger shark, Galeocerdo cuvieri" the shark's."""
    numbers = [number for number in vocabulary.encode(tokenize(name.partition(",")[0])) if number]
    if not numbers:
        return np.zeros(embedding_WE.shape[1], np.float32)
    mean: FloatArray = embedding_WE[numbers].mean(axis=0)
    return mean
