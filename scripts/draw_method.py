"""Draw the figures of docs/how_it_works.md, from the matrix of a document to the loss.

    python scripts/draw_method.py docs/how_it_works

The numbers come from `method_example.py`, by the package's own functions: the figures cannot lie.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from method_example import (
    GATHERED,
    MARGIN,
    MATRIX,
    PICTURES,
    STORIES,
    WORDS,
    Pairs,
    best_both_ways,
    best_links,
    document_similarity_DD,
    together,
    worked,
)
from svg_drawing import box, dot, faded, figure, icon, line, text

WIDTH = 480
# The matrix: where its cells begin, how large they are, and where they end.
LEFT, TOP, CELL, ROW = 196, 62, 68, 52
RIGHT, BOTTOM = LEFT + CELL * MATRIX.shape[1], TOP + ROW * MATRIX.shape[0]


def drawings() -> dict[str, str]:
    """All figures by name."""
    lines = worked()
    return {
        "matrix": _matrix(),
        "dc": _maxima("Dense correspondence, DC", best_both_ways(), lines["dc"]),
        "tk": _maxima("Top-k, TK, with k = 3", best_both_ways(3), lines["tk"]),
        "ap": _assignment(lines["ap"]),
        "training": _training(lines["training"]),
        "together": _together(),
    }


def _matrix() -> str:
    said = []
    for sentence, row in zip(STORIES[0].sentences, MATRIX, strict=True):
        values = (f"{n} {value:.2f}" for n, value in zip(STORIES[0].images, row, strict=True))
        said.append(f"{sentence.replace('|', ' ')} {', '.join(values)}")
    words = "Similarities of four sentences with three images. " + "; ".join(said)
    return figure(WIDTH, BOTTOM + 16, "A similarity matrix", words, _cells())


def _cells(counting: Pairs | None = None) -> list[str]:
    """The matrix between its sentences and images; cells that do not count are pale."""
    parts = []
    for v, name in enumerate(STORIES[0].images):
        parts.append(icon(name, LEFT + CELL * (v + 0.5), TOP - 28, 38))
    for s, sentence in enumerate(STORIES[0].sentences):
        for place, words in enumerate(sentence.split("|")):
            parts.append(text(16, TOP + ROW * s + 23 + 18 * place, words))
        for v, value in enumerate(MATRIX[s]):
            shown = _cell(LEFT + CELL * v, TOP + ROW * s, float(value))
            parts.append(shown if counting is None or (s, v) in counting else faded([shown]))
    return parts


def _cell(x: float, y: float, value: float, width: float = CELL) -> str:
    """A similarity: the warmer, the higher."""
    words = f"{value:.2f}".replace("-", "−")
    return box("mark", x + 2, y + 2, width - 4, ROW - 4, max(0.0, value) * 1.1) + text(
        x + width / 2, y + ROW / 2 + 5, words, "middle"
    )


def _frame(kind: str, x: float, y: float, width: float = CELL) -> str:
    """A frame around a cell; the dashed one lies inside the other."""
    gap = 8 if kind == "dashed" else 3
    return box(kind, x + gap, y + gap, width - 2 * gap, ROW - 2 * gap)


def _framed(kind: str, pairs: Pairs) -> list[str]:
    return [_frame(kind, LEFT + CELL * v, TOP + ROW * s) for s, v in pairs]


def _key(y: float, entries: list[tuple[str, str]]) -> list[str]:
    """What the frames mean."""
    parts = []
    for place, (kind, words) in enumerate(entries):
        x = 17 + 216 * place
        parts += [box(kind, x, y - 12, 22, 15), text(x + 31, y, words, "soft")]
    return parts


def _maxima(title: str, sides: tuple[Pairs, Pairs], lines: list[str]) -> str:
    """DC or TK: which cells enter by their sentence and which by their image."""
    by_sentence, by_image = sides
    parts = _cells(by_sentence + by_image)
    parts += _framed("frame", by_sentence) + _framed("dashed", by_image)
    for s, v in by_sentence:
        y = TOP + ROW * s + ROW / 2 + 5
        parts.append(text(RIGHT + 16, y, f"{MATRIX[s, v]:.2f}", "strong"))
    for s, v in by_image:
        x = LEFT + CELL * (v + 0.5)
        parts.append(text(x, BOTTOM + 22, f"{MATRIX[s, v]:.2f}", "middle strong"))
    parts += _key(
        BOTTOM + 56, [("frame", "a sentence's best image"), ("dashed", "an image's best sentence")]
    )
    return figure(WIDTH, BOTTOM + 74, title, "; ".join(lines), parts)


def _assignment(lines: list[str]) -> str:
    """AP: the links of the best assignment."""
    links = best_links()
    parts = _cells(links) + _framed("frame", links)
    parts += _key(BOTTOM + 28, [("frame", "a link: one a sentence, one an image")])
    return figure(WIDTH, BOTTOM + 46, "The assignment problem, AP", "; ".join(lines), parts)


def _training(lines: list[str]) -> str:
    """A batch: every sentence set against every image set, and what the first document pays."""
    similarity_DD = document_similarity_DD()
    left, width, top = 122, 112, 84
    parts = [
        text(left + 1.5 * width, 20, "images of", "soft middle"),
        text(16, 76, "sentences of", "soft"),
    ]
    for d, story in enumerate(STORIES):
        middle = left + width * (d + 0.5)
        first = middle - 15 * (len(story.images) - 1)
        parts.append(text(middle, 42, story.name, "middle"))
        parts += [icon(name, first + 30 * v, 64, 24) for v, name in enumerate(story.images)]
        parts.append(text(16, top + ROW * d + ROW / 2 + 5, story.name))
        for other in range(len(STORIES)):
            value = float(similarity_DD[d, other])
            parts.append(_cell(left + width * other, top + ROW * d, value, width))
    framed = [("frame", d, d) for d in range(len(STORIES))]
    framed += [("dashed", *pair) for pair in _hardest(similarity_DD)]
    parts += [_frame(kind, left + width * v, top + ROW * s, width) for kind, s, v in framed]
    bottom = top + ROW * len(STORIES)
    parts += _key(bottom + 28, [("frame", "belong together"), ("dashed", "the trip's hardest")])
    parts += _scale(bottom + 92, similarity_DD)
    return figure(WIDTH, bottom + 142, "A batch and the loss", "; ".join(lines), parts)


def _hardest(similarity_DD: torch.Tensor) -> Pairs:
    return [
        (0, 1 + int(similarity_DD[0, 1:].argmax())),
        (1 + int(similarity_DD[1:, 0].argmax()), 0),
    ]


def _scale(y: float, similarity_DD: torch.Tensor) -> list[str]:
    """The first document and its negatives on a line: who comes within the margin costs."""

    def at(value: float) -> float:
        return 24 + value * 432 / 0.7

    true = float(similarity_DD[0, 0])
    parts = [
        box("mark", at(true - MARGIN), y - 15, at(true) - at(true - MARGIN), 30, 0.35),
        text(
            (at(true) + at(true - MARGIN)) / 2, y - 22, f"margin {MARGIN:.2f}", "soft small middle"
        ),
        line(at(0), y, at(0.7), y),
        text(at(true) + 12, y - 8, "the trip itself", "small"),
        text(at(0), y - 8, "other documents", "small soft"),
    ]
    parts += [
        text(at(tenth / 10), y + 32, f"{tenth / 10:.1f}", "soft small middle") for tenth in range(8)
    ]
    others = [*similarity_DD[0, 1:].tolist(), *similarity_DD[1:, 0].tolist()]
    parts += [dot("dot", at(value), y) for value in others]
    return [*parts, dot("true", at(true), y)]


def _together() -> str:
    """Four documents, and how often a word is where a picture is, and where it is not."""
    parts, top = _gathered(), 272
    left, width, height = 104, 120, 46
    said = []
    for column, picture in enumerate(PICTURES):
        parts.append(icon(picture, left + width * (column + 0.5), top - 26, 34))
        for row, word in enumerate(WORDS):
            here, there = together(word, picture)
            gain = here[0] / here[1] - there[0] / there[1]
            words = f"{here[0]} of {here[1]}, {there[0]} of {there[1]}"
            said.append(f"{word} and the {picture}: {words}")
            x, y = left + width * column, top + height * row
            parts.append(box("mark", x + 2, y + 2, width - 4, height - 4, max(0.0, gain) * 0.7))
            kind = "middle strong" if gain > 0 else "middle soft"
            parts.append(text(x + width / 2, y + 28, words, kind))
    parts += [text(16, top + height * row + 28, word) for row, word in enumerate(WORDS)]
    bottom = top + height * len(WORDS)
    key = (
        "How many documents have the word: first of those",
        "that show the picture, then of the others.",
    )
    parts += [text(16, bottom + 26 + 20 * n, words, "soft") for n, words in enumerate(key)]
    title = "Words and pictures in four documents"
    return figure(WIDTH, bottom + 62, title, f"{' '.join(key)} {'; '.join(said)}", parts)


def _gathered() -> list[str]:
    """The documents as cards: their words and their pictures."""
    parts, width, height = [], 218, 90
    for place, (words, pictures) in enumerate(GATHERED):
        x, y = 16 + (width + 12) * (place % 2), 16 + (height + 12) * (place // 2)
        parts.append(box("card", x, y, width, height))
        parts.append(text(x + 12, y + 26, f"document {place + 1}", "soft"))
        parts += [
            text(x + 12, y + 54 + 10.5 * n, " · ".join(words[n : n + 2]))
            for n in range(0, len(words), 2)
        ]
        for n, name in enumerate(reversed(pictures)):
            parts.append(icon(name, x + width - 26 - 36 * n, y + 22, 28))
    return parts


def main(folder: Path) -> None:
    """Write one file a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawings().items():
        (folder / f"{name}.svg").write_text(drawing, "utf-8")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
