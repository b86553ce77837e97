"""Predictions as pictures: the best links of a document, and the sentences of its images.

As in the paper: a bipartite graph of the five most confident links of a document (its example
predictions), and the sentences predicted for the images of one long document (its Mauritius).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.document_measures import DocumentMeasures
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.image_colours import Pixels
from sightline.linking import Link, link
from sightline.report.figures import (
    DARK,
    GREEN,
    LIGHT,
    MIDDLE,
    TILE,
    fitted_lines,
    save_figure,
    shortened,
    style,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The paper shows so many links of a document.
_SHOWN = 5

# Inches: a line of 8 points, what stands above and below the lines, and the rest of the sheet.
_LINE, _LINES, _NUMBER = 0.135, 6, 0.27
_COLUMN, _MARGIN = 2.05, 0.15
_TITLE, _IMAGE, _GAP, _KEY = 0.45, 1.3, 1.45, 0.35
_WIDEST_EDGE = 7.0  # points
# A row of predicted sentences; the sheet's width with them and without.
_ROW, _PAGE, _BARE_PAGE = 1.2, 8.0, 5.0
_BOLD = 1.15  # how much wider bold letters are
_ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A document, its similarity matrix, and what is known of it."""

    document: Document
    similarity_SV: NDArray[np.floating]
    auc: float | None = None

    def links(self) -> list[Link]:
        """The most confident links of the best assignment, best first."""
        return link(self.similarity_SV)[:_SHOWN]

    def is_true(self, sentence: int, image: int) -> bool:
        """Whether the pair is linked in truth, as far as that is known."""
        return (sentence, image) in (self.document.links or ())


def draw_links(
    prediction: Prediction, thumbnails: Mapping[str, Pixels], stem: Path, text: bool = True
) -> list[Path]:
    """The best links as columns of an image over its sentence, most confident on the left.

    All similarities above zero between the images and sentences shown are edges, as wide as they
    are large; those that are true links are green and have a tick.
    """
    links = prediction.links()
    with style():
        from matplotlib.figure import Figure

        width = max(len(links), 3) * _COLUMN + 2 * _MARGIN
        sentences = [
            fitted_lines(prediction.document.sentences[found.sentence], _COLUMN - 0.14, _LINES, 8)
            if text
            else []
            for found in links
        ]
        below = _NUMBER + _LINE * max(map(len, sentences), default=0)
        height = _TITLE + _IMAGE + _GAP + below + _KEY
        figure = Figure((width, height))
        axes = _sheet(figure, width, height)
        _draw_title(axes, prediction, width, height, bool(text or thumbnails))
        left = (width - len(links) * _COLUMN) / 2
        centres = [left + (place + 0.5) * _COLUMN for place in range(len(links))]
        top, bottom = height - _TITLE - _IMAGE, _KEY + below
        widest = _draw_edges(axes, prediction, links, centres, top, bottom)
        for found, lines, centre in zip(links, sentences, centres, strict=True):
            image = prediction.document.images[found.image]
            box = (centre - _IMAGE / 2, top, _IMAGE, _IMAGE)
            _draw_image(axes, thumbnails.get(image), image, box)
            axes.text(centre, top - 0.05, f"{found.score:.2f}", fontsize=8, va="top", ha="center",
                      bbox=_ON_WHITE, zorder=6)  # fmt: skip
            _draw_sentence(axes, found.sentence, lines, centre, bottom)
        _draw_key(axes, prediction, widest, width)
        return save_figure(figure, stem)


def draw_sentences(
    prediction: Prediction, thumbnails: Mapping[str, Pixels], stem: Path, text: bool = True
) -> list[Path]:
    """The images with the sentences predicted for them and their cosines, most confident first."""
    document, links = prediction.document, prediction.links()
    with style():
        from matplotlib.figure import Figure

        width = _PAGE if text else _BARE_PAGE
        height = _TITLE + max(len(links), 1) * _ROW + 0.1
        figure = Figure((width, height))
        axes = _sheet(figure, width, height)
        _draw_title(axes, prediction, width, height, bool(text or thumbnails))
        for place, found in enumerate(links):
            top = height - _TITLE - place * _ROW
            image = document.images[found.image]
            box = (_MARGIN, top - _ROW + 0.1, 1.5, _ROW - 0.1)
            _draw_image(axes, thumbnails.get(image), image, box, at_top=True)
            head = f"{found.score:.2f}   sentence {found.sentence + 1} of {len(document.sentences)}"
            axes.text(1.8, top - 0.08, head, fontsize=9, weight="bold", va="top")
            if prediction.is_true(found.sentence, found.image):
                beside = 1.8 + text_width(head, _BOLD * 9) + 0.2
                axes.text(beside, top - 0.08, "✓ true link", fontsize=9, weight="bold", va="top",
                          color=GREEN)  # fmt: skip
            if text:
                sentence = document.sentences[found.sentence]
                lines = fitted_lines(sentence, width - 1.8 - _MARGIN, 5, 9)
                axes.text(1.8, top - 0.28, "\n".join(lines), fontsize=9, va="top",
                          linespacing=1.25)  # fmt: skip
        return save_figure(figure, stem)


def typical(
    auc: Mapping[str, float], documents: Mapping[str, Document], count: int
) -> list[Document]:
    """The documents whose AUC is closest to the average, as the paper chooses its examples.

    Those that can show five links come before the others; ties are broken by id.
    """
    known = [id for id in auc if id in documents]
    if not known:
        return []
    mean = float(np.mean([auc[id] for id in known]))

    def key(id: str) -> tuple[int, float, str]:
        links = min(len(documents[id].sentences), len(documents[id].images))
        return -min(links, _SHOWN), abs(auc[id] - mean), id

    return [documents[id] for id in sorted(known, key=key)[:count]]


def varied(measures: DocumentMeasures) -> str | None:
    """The long document whose images and sentences are the most diverse, as the paper's Mauritius.

    Long: in the upper quarter by sentences of those that have five images and sentences. Diverse:
    by the sum of image and text spread, each in standard deviations; ties are broken by id.
    """
    if not measures.ids:
        return None
    most = min(_SHOWN, int(np.minimum(measures.sentences_D, measures.images_D).max()))
    enough = np.minimum(measures.sentences_D, measures.images_D) >= most
    long = enough & (measures.sentences_D >= np.quantile(measures.sentences_D[enough], 0.75))
    total = np.zeros(len(measures.ids))
    for spread_D in (measures.image_spread_D, measures.text_spread_D):
        if spread_D is not None and spread_D.std() > 0:
            total += (spread_D - spread_D.mean()) / spread_D.std()
    best = min(np.flatnonzero(long), key=lambda row: (-total[row], measures.ids[row]))
    return measures.ids[best]


def credit(document: Document) -> str:
    """Whose work a document is and under which licence, as far as its record says so."""
    parts = [document.extra.get(name) for name in ("title", "author", "source", "license")]
    return ", ".join(part for part in parts if isinstance(part, str) and part.strip())


def _draw_title(
    axes: Axes, prediction: Prediction, width: float, height: float, credited: bool
) -> None:
    """The document's id, as much of it as there is room for, its AUC and its size.

    Below, if `credited`, whose work it is: pictures and sentences may ask for that to be said.
    """
    document = prediction.document
    facts = [f"{len(document.sentences)} sentences, {len(document.images)} images"]
    if prediction.auc is not None:
        facts.insert(0, f"AUC {prediction.auc:.1f}")
    titles = ("  ·  ".join([shortened(document.id, length), *facts]) for length in range(60, 3, -2))
    fits = (title for title in titles if text_width(title, _BOLD * 10) <= width - 2 * _MARGIN)
    whose = fitted_lines(credit(document), width - 2 * _MARGIN, 1, 7) if credited else []
    above = 0.2 if whose else 0.28
    axes.text(_MARGIN, height - above, next(fits, facts[-1]), fontsize=10, weight="bold")
    if whose:
        axes.text(_MARGIN, height - 0.36, whose[0], fontsize=7, color=MIDDLE)


def _sheet(figure: object, width: float, height: float) -> Axes:
    """Axes over the whole figure whose unit is an inch."""
    axes: Axes = figure.add_axes((0, 0, 1, 1))  # type: ignore[attr-defined]
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_autoscale_on(False)
    axes.axis("off")
    return axes


def _draw_edges(
    axes: Axes,
    prediction: Prediction,
    links: Sequence[Link],
    centres: Sequence[float],
    top: float,
    bottom: float,
) -> float:
    """Every positive similarity between what is shown; returns the largest."""
    similarity_SV = prediction.similarity_SV
    weights = {
        (upper, lower): float(similarity_SV[links[lower].sentence, links[upper].image])
        for upper in range(len(links))
        for lower in range(len(links))
    }
    widest = max(weights.values(), default=0.0)
    for (upper, lower), weight in weights.items():
        if weight <= 0:
            continue
        true = prediction.is_true(links[lower].sentence, links[upper].image)
        predicted = upper == lower
        colour = GREEN if true else MIDDLE if predicted else LIGHT
        ends = (centres[upper], centres[lower]), (top, bottom + 0.02)
        axes.plot(*ends, color=colour, linewidth=max(0.4, _WIDEST_EDGE * weight / widest),
                  solid_capstyle="round", zorder=3 if true else 2 if predicted else 1)  # fmt: skip
        if true:
            # Nearer to the sentence, where edges that cross in the middle are apart again.
            x = centres[upper] + 0.8 * (centres[lower] - centres[upper])
            y = top + 0.8 * (bottom - top)
            axes.text(x, y, "✓", fontsize=8, color=GREEN, ha="center", va="center", zorder=7,
                      bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white",
                            "edgecolor": GREEN})  # fmt: skip
    return widest


def _draw_image(
    axes: Axes,
    pixels: Pixels | None,
    image: str,
    box: tuple[float, float, float, float],
    at_top: bool = False,
) -> None:
    """A picture at the top or bottom of the box, or a grey tile with the image's id."""
    x, y, width, height = box
    if pixels is None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((x, y), width, height, facecolor=TILE, edgecolor=MIDDLE, zorder=4))
        lines = fitted_lines(FeatureStore.image_id(image), width - 0.1, 3, 7)
        axes.text(x + width / 2, y + height / 2, "\n".join(lines), fontsize=7, color=DARK,
                  ha="center", va="center", zorder=5)  # fmt: skip
        return
    rows, columns = pixels.shape[:2]
    scale = min(width / columns, height / rows)
    across, down = columns * scale, rows * scale
    left, low = x + (width - across) / 2, y + height - down if at_top else y
    axes.imshow(pixels, extent=(left, left + across, low, low + down), aspect="auto",
                interpolation="antialiased", zorder=4)  # fmt: skip


def _draw_sentence(
    axes: Axes, sentence: int, lines: Sequence[str], centre: float, top: float
) -> None:
    axes.text(centre, top - 0.02, f"sentence {sentence + 1}", fontsize=7, color=MIDDLE,
              ha="center", va="top", zorder=6, bbox=_ON_WHITE)  # fmt: skip
    axes.text(centre - _COLUMN / 2 + 0.07, top - 0.17, "\n".join(lines), fontsize=8, va="top",
              linespacing=1.15, zorder=6)  # fmt: skip


def _draw_key(axes: Axes, prediction: Prediction, widest: float, width: float) -> None:
    known = prediction.document.links is not None
    truth = "✓ true link" if known else "the true links are not known"
    colour = GREEN if known else MIDDLE
    axes.text(_MARGIN, 0.1, truth, fontsize=8, color=colour, weight="bold")
    words = f"vertical: predicted link, with its cosine; width: cosine, the widest is {widest:.2f}"
    axes.text(width - _MARGIN, 0.1, words, fontsize=8, color=MIDDLE, ha="right")
