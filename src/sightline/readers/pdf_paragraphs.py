"""Lines of a PDF's columns to paragraphs, headings, items of lists, rows of tables and captions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sightline.pages import BlockKind
from sightline.readers.figure_captions import (
    begins_like_figure_caption,
    begins_like_table_caption,
)
from sightline.readers.pdf_layout import Box, Item, Line, Picture
from sightline.readers.pdf_text import HYPHEN

_HEADING_SCALE = 1.15  # of the body's font size
_SAME_SIZE = 1.12
_WIDER_PITCH = 1.3  # from line to line, than usual
_USUAL_PITCH = 1.2  # of the font size, where there are too few lines to tell
_LONGEST_HEADING = 200  # characters
_FEWEST_CELLS = 3  # of a row of a table
_ENDS = re.compile(r"[.!?:;。！？][\"”’')\]]*\d{0,2}\Z")
# The control character is the bullet of LaTeX's symbol fonts that say nothing of Unicode.
_ITEM = re.compile(r"(?:[•‣▪●○◦■□–—*·➢✓\x88-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)])\s+\S")
_BULLET = re.compile(r"[•‣▪●○◦■□–—*·➢✓\x88-]\s+")
_NUMBERED_HEADING = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.?|[A-Z]\.)\s+[A-Z]")
_LONGEST_WORD = 50  # characters; patterns look no farther back in a long paragraph
_LAST_WORD = re.compile(r"([^\W\d_]+)[-‐\x02]\Z")
_FIRST_WORD = re.compile(r"[^\W\d_]+")


@dataclass(slots=True)
class Paragraph:
    """A block of text on its way; `page` and `box` say where it begins."""

    kind: BlockKind
    lines: list[Line]
    page: int
    box: Box
    text: str

    @property
    def size(self) -> float:
        """The font size of its first line."""
        return self.lines[0].size


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture and the paragraph that it follows, -1 before the first."""

    picture: Picture
    page: int
    after: int


class ParagraphBuilder:
    """Takes columns in reading order."""

    def __init__(self, columns: Iterable[Sequence[Item]]) -> None:
        lines = [item for column in columns for item in column if isinstance(item, Line)]
        sizes: Counter[float] = Counter()
        for line in lines:
            sizes[round(line.size * 2) / 2] += len(line.text)
        self.body_size = sizes.most_common(1)[0][0] if sizes else 0.0
        self.words = Counter(w.lower() for line in lines for w in re.findall(r"[\w-]+", line.text))
        self.paragraphs: list[Paragraph] = []
        self.current: Paragraph | None = None
        self.pictures: list[PlacedPicture] = []

    def add_column(self, column: Sequence[Item], page: int) -> None:
        """Add what stands in a column, from top to bottom."""
        shape = _Shape(column)
        previous: Line | None = None
        for index, item in enumerate(column):
            if isinstance(item, Picture):
                last = len(self.paragraphs) - 1
                self.pictures.append(PlacedPicture(item, page, last))
                previous = None
                continue
            following = column[index + 1] if index + 1 < len(column) else None
            after = following if isinstance(following, Line) else None
            if previous is None:
                if not self._goes_on_from_before(item, page):
                    self._begin(item, page)
            elif shape.is_break(previous, item, after) or self._is_kind_break(previous, item):
                self._begin(item, page)
            else:
                self._extend(item, page)
            previous = item
        self._decide_heading()

    def _begin(self, line: Line, page: int) -> None:
        self._decide_heading()
        text = line.text
        if line.cells >= _FEWEST_CELLS:
            kind = BlockKind.TABLE_ROW
        elif begins_like_figure_caption(text) or begins_like_table_caption(text):
            kind = BlockKind.CAPTION if len(text) > 6 else BlockKind.PARAGRAPH
        elif _ITEM.match(text) and not (line.bold or self._is_large(line)):
            kind = BlockKind.LIST_ITEM
            text = _BULLET.sub("", text, count=1)
        else:
            kind = BlockKind.PARAGRAPH
        self.current = Paragraph(kind, [line], page, line.box, text)
        self.paragraphs.append(self.current)

    def _extend(self, line: Line, page: int) -> None:
        paragraph = self.current
        assert paragraph is not None  # a line comes before
        paragraph.lines.append(line)
        if page == paragraph.page:
            paragraph.box = paragraph.box.union(line.box)
        paragraph.text = self._joined(paragraph.text, line.text)

    def _joined(self, before: str, after: str) -> str:
        """Join two lines; a hyphen at the end goes if the word without it is known, or likely."""
        cut, rest = _LAST_WORD.search(before[-_LONGEST_WORD:]), _FIRST_WORD.match(after)
        if cut is None or rest is None:
            return f"{before} {after}"
        start = before[:-1]
        together, hyphened = (cut[1] + rest[0]).lower(), f"{cut[1]}-{rest[0]}".lower()
        if self.words[together] or (not self.words[hyphened] and rest[0][0].islower()):
            return start + after
        return f"{start}-{after}"

    def _goes_on_from_before(self, line: Line, page: int) -> bool:
        """Go on with a paragraph that the end of a column cut, behind captions and pictures."""
        if not line.text[:1].islower():
            return False
        for paragraph in reversed(self.paragraphs[-4:]):
            if paragraph.kind is BlockKind.CAPTION:
                continue
            fits = paragraph.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM)
            if fits and not _ends(paragraph.text) and _same_size(paragraph.size, line.size):
                self.current = paragraph
                self._extend(line, page)
                return True
            return False
        return False

    def _is_kind_break(self, previous: Line, line: Line) -> bool:
        """Say whether a line begins something of another kind than the one before."""
        if (previous.cells >= _FEWEST_CELLS) or (line.cells >= _FEWEST_CELLS):
            return True
        text = line.text
        if _ITEM.match(text):
            return _BULLET.match(text) is not None or _ends(previous.text)
        if begins_like_figure_caption(text) or begins_like_table_caption(text):
            return _ends(previous.text)
        return False

    def _is_large(self, line: Line) -> bool:
        return line.size > self.body_size * _HEADING_SCALE

    def _decide_heading(self) -> None:
        paragraph = self.current
        if paragraph is None or paragraph.kind is not BlockKind.PARAGRAPH:
            return
        if len(paragraph.text) > _LONGEST_HEADING:
            return
        first = paragraph.lines[0]
        letters = any(character.isalpha() for character in paragraph.text)
        bold = all(line.bold for line in paragraph.lines) and len(paragraph.lines) <= 2
        ends = paragraph.text.rstrip().endswith((".", ",", ";"))
        numbered = _NUMBERED_HEADING.match(paragraph.text) is not None
        if letters and (self._is_large(first) or (bold and (numbered or not ends))):
            paragraph.kind = BlockKind.HEADING


def heading_levels(paragraphs: Sequence[Paragraph]) -> dict[float, int]:
    """Give the level of each size of headings: the largest is 1."""
    sizes = {round(p.size) for p in paragraphs if p.kind is BlockKind.HEADING}
    return {size: min(level, 6) for level, size in enumerate(sorted(sizes, reverse=True), 1)}


class _Shape:
    """How the lines of a column usually stand."""

    def __init__(self, column: Sequence[Item]) -> None:
        lines = [item for item in column if isinstance(item, Line)]
        lefts = sorted(line.box.left for line in lines)
        rights = sorted(line.box.right for line in lines)
        self.left = lefts[len(lefts) // 10] if lefts else 0.0
        self.right = rights[-1 - len(rights) // 10] if rights else 0.0
        pitches = [
            a.box.bottom - b.box.bottom
            for a, b in pairwise(lines)
            if _same_size(a.size, b.size) and 0 < a.box.bottom - b.box.bottom < 3 * a.size
        ]
        self.pitch = median(pitches) if len(pitches) >= 3 else None

    def is_break(self, a: Line, b: Line, following: Line | None) -> bool:
        """Say whether a paragraph ends between two lines."""
        if not _same_size(a.size, b.size) or (a.bold != b.bold and (a.bold or b.bold)):
            return True
        usual = max(self.pitch or 0.0, _USUAL_PITCH * a.size)
        if a.box.bottom - b.box.bottom > _WIDER_PITCH * usual:
            return True
        indented = b.box.left > a.box.left + 0.8 * b.size
        # In a hanging indent the line after is indented just as much.
        if indented and (following is None or following.box.left < b.box.left - 0.5 * b.size):
            return True
        short = a.box.right < self.right - 0.2 * (self.right - self.left)
        begins = not b.text[:1].islower()
        return short and begins and _ends(a.text)


def _ends(text: str) -> bool:
    """Say whether a text ends as a sentence does."""
    return _ENDS.search(text[-_LONGEST_WORD:]) is not None


def _same_size(a: float, b: float) -> bool:
    return max(a, b) < _SAME_SIZE * min(a, b)


def plain(text: str) -> str:
    """Give the text of a finished paragraph, without what stands for hyphens."""
    return " ".join(text.replace(HYPHEN, "-").split())
