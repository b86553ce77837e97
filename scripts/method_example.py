"""The small documents of docs/how_it_works.md, and what the package's functions make of them.

`worked` are the lines under the figures that `draw_method.py` draws; the page repeats them as text,
and `tests/test_docs.py` compares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from sightline.assignment import assign
from sightline.document_similarity import assignment, dense_correspondence, top_k
from sightline.loss import hinge_loss
from sightline.similarity import similarity_matrices

Pairs = list[tuple[int, int]]


class Story(NamedTuple):
    """A small document: sentences (with a bar where the line breaks) and images."""

    name: str
    sentences: tuple[str, ...]
    images: tuple[str, ...]


STORIES = (
    Story(
        "the trip",
        (
            "We took our bicycles|down to the harbour.",
            "It was a lovely|morning.",
            "A small boat was|sailing out.",
            "Then we had|a coffee.",
        ),
        ("bicycle", "boat", "cup"),
    ),
    Story("the café", ("The coffee is ready.", "On Sunday we bake."), ("cup", "cake")),
    Story(
        "the garden",
        ("The house is red.", "An old tree stands by it.", "We moved in last spring."),
        ("house", "tree"),
    ),
)
#: Cosines of all sentences x all images of the three, document after document.
COSINES = np.array(
    [
        [0.62, 0.45, 0.05, 0.04, 0.02, 0.15, 0.12],
        [0.11, 0.18, 0.14, 0.12, 0.16, 0.10, 0.20],
        [0.20, 0.42, -0.08, -0.06, 0.01, 0.07, 0.05],
        [0.08, -0.05, 0.58, 0.60, 0.10, 0.04, -0.02],
        [0.02, 0.03, 0.54, 0.56, 0.14, 0.06, 0.02],
        [0.05, 0.18, 0.10, 0.12, 0.64, 0.09, 0.03],
        [0.10, 0.08, 0.02, 0.03, 0.05, 0.66, 0.20],
        [0.06, 0.09, 0.01, 0.00, 0.04, 0.18, 0.62],
        [0.14, 0.12, 0.10, 0.08, 0.07, 0.22, 0.19],
    ]
)
SENTENCES_D = torch.tensor([len(story.sentences) for story in STORIES])
IMAGES_D = torch.tensor([len(story.images) for story in STORIES])
#: The similarity matrix of the first document, which most figures show.
MATRIX = COSINES[: len(STORIES[0].sentences), : len(STORIES[0].images)]
#: The paper's.
MARGIN = 0.2

#: Four documents by the words and the pictures that are in them.
WORDS = ("bicycle", "morning", "boat", "coffee")
PICTURES = ("bicycle", "boat", "cup")
GATHERED = (
    (("bicycle", "morning", "boat", "coffee"), ("bicycle", "boat", "cup")),
    (("coffee", "morning"), ("cup", "tree")),
    (("morning", "bicycle"), ("bicycle", "house")),
    (("boat", "morning"), ("house", "boat")),
)


def batch() -> torch.Tensor:
    """`similarity_DDSV` of the three documents, from unit vectors that have these cosines."""
    count = COSINES.shape[1]
    # An axis for each image; what is left of a sentence's length goes to an axis of no image.
    rest = np.sqrt(1 - (COSINES**2).sum(1, keepdims=True))
    sentence_vectors_NE = torch.from_numpy(np.concatenate([COSINES, rest], 1))
    image_vectors_ME = torch.eye(count, count + 1, dtype=sentence_vectors_NE.dtype)
    return similarity_matrices(sentence_vectors_NE, image_vectors_ME, SENTENCES_D, IMAGES_D)


def document_similarity_DD() -> torch.Tensor:
    """AP of every sentence set with every image set."""
    return assignment(batch(), SENTENCES_D, IMAGES_D)


def best_both_ways(k: int | None = None) -> tuple[Pairs, Pairs]:
    """Each sentence's best image and each image's best sentence, the k best of either side."""
    by_sentence = [(s, int(v)) for s, v in enumerate(MATRIX.argmax(1))]
    by_image = [(int(s), v) for v, s in enumerate(MATRIX.argmax(0))]
    best = [sorted(side, key=lambda pair: -MATRIX[pair])[:k] for side in (by_sentence, by_image)]
    return sorted(best[0]), sorted(best[1], key=lambda pair: pair[1])


def best_links(k: int | None = None) -> Pairs:
    """The links of the best assignment."""
    return [(int(s), int(v)) for s, v in assign(MATRIX, k)]


def together(word: str, picture: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Documents with the word, of those that show the picture, and of those that do not."""
    counts = []
    for shown in (True, False):
        words = [said for said, pictures in GATHERED if (picture in pictures) is shown]
        counts.append((sum(word in said for said in words), len(words)))
    return counts[0], counts[1]


def worked() -> dict[str, list[str]]:
    """The numbers of each figure worked out; the last line is the result."""
    similarity_DDSV = batch()
    sizes = (SENTENCES_D, IMAGES_D)
    lines = {
        "dc": _maxima("DC", None, dense_correspondence(similarity_DDSV, *sizes)),
        "tk": _maxima("TK", 3, top_k(similarity_DDSV, *sizes)),
        "tk-half": _maxima("TK", 2, top_k(similarity_DDSV, *sizes, "half")),
        "training": _losses(),
    }
    for name, cap in (("ap", "all"), ("ap-half", "half")):
        value = float(assignment(similarity_DDSV, *sizes, cap)[0, 0])  # type: ignore[arg-type]
        lines[name] = [f"AP = {_mean(best_links(None if cap == 'all' else 2))} = {value:.2f}"]
    return lines


def _mean(pairs: Pairs) -> str:
    return f"({' + '.join(f'{MATRIX[pair]:.2f}' for pair in pairs)}) / {len(pairs)}"


def _maxima(name: str, k: int | None, similarity_DD: torch.Tensor) -> list[str]:
    sides = best_both_ways(k)
    means = [f"{np.mean([MATRIX[pair] for pair in side]):.2f}" for side in sides]
    return [
        f"sentences: {_mean(sides[0])} = {means[0]}",
        f"images: {_mean(sides[1])} = {means[1]}",
        f"{name} = {means[0]} + {means[1]} = {float(similarity_DD[0, 0]):.2f}",
    ]


def _losses() -> list[str]:
    """The loss of the first document, against its hardest negatives."""
    similarity_DD = document_similarity_DD()
    true = float(similarity_DD[0, 0])
    parts = []
    lines = []
    for name, negatives in (("images", similarity_DD[0, 1:]), ("sentences", similarity_DD[1:, 0])):
        hardest = float(negatives.max())
        parts.append(max(0.0, MARGIN - true + hardest))
        lines.append(
            f"other {name}: max(0, {MARGIN:.2f} − {true:.2f} + {hardest:.2f}) = {parts[-1]:.2f}"
        )
    loss = float(hinge_loss(similarity_DD, MARGIN, "hard")[0])
    return [*lines, f"loss of the trip = {parts[0]:.2f} + {parts[1]:.2f} = {loss:.2f}"]
