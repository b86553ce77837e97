"""An article with its links as plain data: what the page of an article is drawn from.

Nothing here knows of files or models, so that the command line and a service make the same page.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.confidence import confidence_text
from sightline.html_writing import data_address
from sightline.image_colours import Pixels
from sightline.linking import Link
from sightline.pages import SEPARATOR, Block, Span

#: Longer side of a picture in pixels by how many the article has at most: a page of five images
#: takes some hundred kilobytes, one of hundreds stays below some 20 megabytes.
_SIDES = ((20, 1120), (60, 800), (200, 480))
_SMALLEST_SIDE = 320
_QUALITY = 82
#: Drawings of so few colours are smaller and sharper as PNG.
_COLOURS = 256
#: The weakest link is still to be seen.
_FAINTEST = 0.1


@dataclass(frozen=True, slots=True)
class Picture:
    """An image encoded anew: none of the original file's bytes."""

    data: bytes
    kind: str  # the type of the file, as in a data address
    width: int
    height: int

    @property
    def address(self) -> str:
        """The picture as it stands in a page."""
        return data_address(self.data, self.kind)


@dataclass(frozen=True, slots=True)
class ShownImage:
    """An image of the article and its place, as `pages.PageImage` has it."""

    name: str
    block: int = -1
    offset: int | None = None
    picture: Picture | None = None
    status: str = "ok"
    reason: str | None = None
    alt: str | None = None
    caption: str | None = None
    caption_blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ShownArticle:
    """All that the page of an article says."""

    title: str
    blocks: tuple[Block, ...]
    #: Where each sentence stands in the text form: the blocks, a blank line between two.
    spans: tuple[Span, ...]
    images: tuple[ShownImage, ...]
    links: tuple[Link, ...]
    language: str | None = None
    #: The similarity matrix; NaN in the columns of images that could not be used.
    similarity_SV: NDArray[np.floating] | None = None
    #: How it was made, each a few words: the model, the policy.
    facts: tuple[str, ...] = ()
    #: As `pages.LeftOut.to_record` gives it: by reason, characters of text and images.
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def measure(self) -> str:
        """What the links are weighed by: `confidence` if all of them have one, else `score`."""
        known = bool(self.links) and all(link.confidence is not None for link in self.links)
        return "confidence" if known else "score"

    def weight(self, link: Link) -> float:
        """The number that a reader sees of a link."""
        if self.measure == "confidence" and link.confidence is not None:
            return link.confidence
        return link.score

    def strengths(self) -> list[float]:
        """How strongly each link is drawn, from 0 to 1.

        A confidence is that already. Scores have no scale of their own: the best link is drawn in
        full, one no better than the article's average pair is hardly seen.
        """
        weights = [self.weight(link) for link in self.links]
        if self.measure == "confidence" or not weights:
            return [min(1.0, max(0.0, weight)) for weight in weights]
        low, high = 0.0, max(weights)
        if self.similarity_SV is not None and not np.isnan(self.similarity_SV).all():
            low = min(float(np.nanmean(self.similarity_SV)), min(weights))
        spread = high - low or 1.0
        return [max(_FAINTEST, (weight - low) / spread) for weight in weights]

    def words_of(self, link: Link) -> str:
        """A link's weight in words, as `confidence 84 %` or `score 0.41`."""
        return f"{self.measure} {weight_text(self.weight(link), self.measure)}"


def weight_text(weight: float, measure: str) -> str:
    """A confidence in percent, a score with two decimals."""
    return confidence_text(weight) if measure == "confidence" else f"{weight:.2f}"


def picture_side(images: int) -> int:
    """How large the pictures of an article of so many images may be."""
    return next((side for most, side in _SIDES if images <= most), _SMALLEST_SIDE)


def encode_picture(pixels: Pixels, side: int) -> Picture:
    """Encode pixels anew, no larger than `side` (twice that for what is tall and narrow)."""
    image = Image.fromarray(pixels)
    image.thumbnail((side, 2 * side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    drawing = Image.fromarray(pixels).getcolors(_COLOURS) is not None
    if drawing:
        image.quantize(_COLOURS).save(buffer, "PNG", optimize=True)
    else:
        image.save(buffer, "JPEG", quality=_QUALITY, optimize=True, progressive=True)
    kind = "image/png" if drawing else "image/jpeg"
    return Picture(buffer.getvalue(), kind, image.width, image.height)


def cut(text: str, most: int) -> str:
    """The beginning of a text on one line, with an ellipsis where something is missing."""
    line = " ".join(text[: 4 * most].split())
    whole = len(line) <= most and len(text) <= 4 * most
    return line if whole else line[: most - 1].rstrip() + "…"


def sentence_texts(blocks: Sequence[Block], spans: Sequence[Span]) -> list[str]:
    """The sentences by their spans."""
    text = SEPARATOR.join(block.text for block in blocks)
    return [text[start:end] for start, end in spans]
