"""The encoders' forward passes in numpy: what linking and evaluation run, without torch.

Equal to `encoders` to 1e-5 (held by a test) and no slower on batches, because inference can do
what training cannot: each distinct sentence is encoded once, and the words' share of the GRU
gates is computed once per distinct word of a batch instead of once per token.
Letters: B sentences or images, U distinct words, E word embedding, H hidden state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from sightline.batches import IntArray, Sentences, time_major
from sightline.class_words import join_class_words
from sightline.documents import Document

FloatArray = NDArray[np.float32]
Weights = Mapping[str, FloatArray]

#: Sentences per pass: many enough for the matrix products, few enough for memory and caches
#: (50 and 20 MB of gates and activations at d = 1024; speed measured on COCO).
_AT_ONCE = 2048


def encode_sentences(weights: Weights, sentences: Sentences) -> FloatArray:
    """Unit vectors of sentences, in their order, by whichever encoder the weights belong to."""
    count = len(sentences.lengths)
    vectors = np.empty((count, dimension(weights)), np.float32)
    if count and "sentence.attention" in weights:
        return _encode_attention(weights, sentences, vectors)
    # Sentences of like length go together, so that few idle while the longest goes on.
    order = np.argsort(-sentences.lengths, kind="stable")
    start = np.cumsum(sentences.lengths) - sentences.lengths
    for begin in range(0, count, _AT_ONCE):
        chosen = order[begin : begin + _AT_ONCE]
        lengths = sentences.lengths[chosen]
        tokens = np.repeat(start[chosen] - np.cumsum(lengths) + lengths, lengths)
        tokens += np.arange(len(tokens))
        vectors[chosen] = _encode_gru(weights, Sentences(sentences.token_ids[tokens], lengths))
    return vectors


def encode_images(weights: Weights, features_BF: FloatArray) -> FloatArray:
    """Unit vectors of images from their backbone features."""
    values = join_class_words(weights, features_BF) @ weights["image.head.0.weight"].T
    return _unit(_after_first_layer(weights, "image.head", values))


def similarity_matrices(
    sentence_NE: FloatArray,
    image_ME: FloatArray,
    sentences_D: Iterable[int],
    images_D: Iterable[int],
) -> list[FloatArray]:
    """Each document's own similarity matrix, from the vectors of all documents in order."""
    matrices, sentence, image = [], 0, 0
    for sentences, images in zip(sentences_D, images_D, strict=True):
        next_sentence, next_image = sentence + sentences, image + images
        matrices.append(sentence_NE[sentence:next_sentence] @ image_ME[image:next_image].T)
        sentence, image = next_sentence, next_image
    return matrices


def document_matrices(
    documents: Iterable[Document], sentence_NE: FloatArray, image_ME: FloatArray
) -> list[FloatArray]:
    """The same by the documents themselves."""
    sizes = [(len(document.sentences), len(document.images)) for document in documents]
    sentences_D, images_D = zip(*sizes, strict=True) if sizes else ((), ())
    return similarity_matrices(sentence_NE, image_ME, sentences_D, images_D)


def dimension(weights: Weights) -> int:
    """Size of the space that both encoders share."""
    last = max(name for name in weights if name.startswith("image.head.") and "bias" in name)
    return len(weights[last])


def _encode_gru(weights: Weights, sentences: Sentences) -> FloatArray:
    packed = time_major(sentences)
    hidden = weights["sentence.weight_hh"].shape[1]
    bias_hh = weights["sentence.bias_hh"]
    words, word_of_token = np.unique(packed.token_ids, return_inverse=True)
    gates_U3H = weights["sentence.embedding"][words] @ weights["sentence.weight_ih"].T
    gates_U3H += weights["sentence.bias_ih"]
    # The recurrent bias of reset and update joins theirs; the new gate's stands behind the reset.
    gates_U3H[:, : 2 * hidden] += bias_hh[: 2 * hidden]
    state_BH = np.zeros((packed.running[0], hidden), np.float32)
    recurrent_BG = np.empty((packed.running[0], 3 * hidden), np.float32)
    first = 0
    for step, count in enumerate(packed.running):
        state = state_BH[:count]
        gates = gates_U3H[word_of_token[first : first + count]]
        first += count
        reset_update, new = gates[:, : 2 * hidden], gates[:, 2 * hidden :]
        recurrent_new = bias_hh[2 * hidden :]
        if step > 0:  # the first state is zero
            recurrent = recurrent_BG[:count]
            np.matmul(state, weights["sentence.weight_hh"].T, out=recurrent)
            reset_update += recurrent[:, : 2 * hidden]
            recurrent_new = np.add(recurrent_new, recurrent[:, 2 * hidden :])
        _sigmoid(reset_update)
        new += np.multiply(reset_update[:, :hidden], recurrent_new)
        np.tanh(new, out=new)
        state -= new
        state *= reset_update[:, hidden:]
        state += new
    return _unit(state_BH[packed.place_of_sentence])


def _encode_attention(weights: Weights, sentences: Sentences, vectors: FloatArray) -> FloatArray:
    """Fill in the vectors of all sentences, block by block."""
    lengths = sentences.lengths
    start = np.cumsum(lengths) - lengths
    words, word_of_token = _distinct(sentences.token_ids, len(weights["sentence.embedding"]))
    embedding_UE = weights["sentence.embedding"][words]
    score = (embedding_UE @ weights["sentence.attention"])[word_of_token]
    score -= np.repeat(np.maximum.reduceat(score, start), lengths)
    weight = np.exp(score, out=score)
    weight /= np.repeat(np.add.reduceat(weight, start), lengths)
    # Sentences x distinct words, mostly empty: a sparse product touches each token once.
    from scipy.sparse import csr_array

    ends = np.append(start, len(weight))
    first = weights["sentence.head.0.weight"].T
    for begin in range(0, len(lengths), _AT_ONCE):
        rows = ends[begin : begin + _AT_ONCE + 1]
        tokens = slice(rows[0], rows[-1])
        bags = csr_array(
            (weight[tokens], word_of_token[tokens], rows - rows[0]),
            shape=(len(rows) - 1, len(words)),
        )
        values = (bags @ embedding_UE) @ first
        vectors[begin : begin + _AT_ONCE] = _unit(
            _after_first_layer(weights, "sentence.head", values)
        )
    return vectors


def _distinct(token_ids: IntArray, words: int) -> tuple[IntArray, IntArray]:
    """The distinct words of the tokens, and which of them each token is."""
    if len(token_ids) < words // 8:
        found, word_of_token = np.unique(token_ids, return_inverse=True)
        return found, word_of_token
    # Without sorting, which takes longer where there are many tokens.
    present = np.zeros(words, bool)
    present[token_ids] = True
    found = np.flatnonzero(present)
    number = np.empty(words, np.int64)
    number[found] = np.arange(len(found))
    return found, number[token_ids]


def _after_first_layer(weights: Weights, head: str, values: FloatArray) -> FloatArray:
    """The rest of a head, in place where it can: bias and, where there is one, another layer."""
    values += weights[f"{head}.0.bias"]
    if f"{head}.1.weight" in weights:
        np.maximum(values, 0, out=values)
        values = values @ weights[f"{head}.1.weight"].T
        values += weights[f"{head}.1.bias"]
    return values


def _sigmoid(values: FloatArray) -> None:
    """1 / (1 + exp(-x)) in place, by tanh, which neither overflows nor warns."""
    values *= 0.5
    np.tanh(values, out=values)
    values += 1
    values *= 0.5


def _unit(vectors: FloatArray) -> FloatArray:
    # A third of the time of np.linalg.norm, which squares into a copy.
    norm = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    # 1e-12 is torch's guard for a zero vector.
    vectors /= np.maximum(norm, 1e-12)[:, None]
    return vectors
