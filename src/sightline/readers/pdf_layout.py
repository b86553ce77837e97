"""How a PDF page reads: pieces of text and pictures with boxes, put in order column by column.

PDF knows where glyphs stand, not which follow each other. Coordinates are in points, from the
lower left, as in PDF.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

_MAX_DEPTH = 6  # columns within columns
_MAX_CANDIDATES = 40  # places of a gutter that are tried
_NARROWEST = 0.12  # of the region; a column is wider, a column of list markers is not
_FEWEST_LINES = 3  # of a column
_FEWEST_CHARACTERS = 12  # of a column's middling line; cells of tables have fewer
_CELL_GAP = 1.2  # of the font size; wider than the space between words of justified lines


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom

    def union(self, other: Box) -> Box:
        """Give the smallest box around both."""
        return Box(
            min(self.left, other.left),
            min(self.bottom, other.bottom),
            max(self.right, other.right),
            max(self.top, other.top),
        )

    def shared_width(self, other: Box) -> float:
        """Give how far both reach over the same part of the page's width."""
        return max(0.0, min(self.right, other.right) - max(self.left, other.left))

    def shared_height(self, other: Box) -> float:
        """Give how far both reach over the same part of the page's height."""
        return max(0.0, min(self.top, other.top) - max(self.bottom, other.bottom))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or a piece of one."""

    text: str
    box: Box
    size: float
    bold: bool = False
    #: Pieces that wide gaps separate; a line of three or more is a row of a table.
    cells: int = 1


@dataclass(frozen=True, slots=True)
class Picture:
    """An image on a page; `name` is that of its file."""

    name: str
    box: Box
    alt: str | None = None


Item = Line | Picture


def reading_order(items: Sequence[Item]) -> list[list[Item]]:
    """Give the columns of a page in the order they are read, each from top to bottom.

    What reaches across a gutter between columns (titles, wide figures) parts the page into bands;
    in each band the left column is read before the right one.
    """
    return [_rows(column) for column in _columns(list(items), 0) if column]


def _columns(items: list[Item], depth: int) -> list[list[Item]]:
    gutter = _gutter(items) if depth < _MAX_DEPTH else None
    if gutter is None:
        return [items]
    across = [i for i in items if i.box.left < gutter < i.box.right]
    others = [i for i in items if not i.box.left < gutter < i.box.right]
    across.sort(key=lambda item: -item.box.top)
    ordered: list[list[Item]] = []
    wide: list[Item] = []
    for item in across:
        middle = (item.box.top + item.box.bottom) / 2
        above = [o for o in others if (o.box.top + o.box.bottom) / 2 > middle]
        if above:
            others = [o for o in others if (o.box.top + o.box.bottom) / 2 <= middle]
            ordered.append(wide)
            wide = []
            ordered += _sides(above, gutter, depth)
        wide.append(item)
    ordered.append(wide)
    return [column for column in ordered + _sides(others, gutter, depth) if column]


def _sides(items: list[Item], gutter: float, depth: int) -> list[list[Item]]:
    left = [item for item in items if item.box.right <= gutter]
    right = [item for item in items if item.box.right > gutter]
    return _columns(left, depth + 1) + _columns(right, depth + 1)


def _gutter(items: Sequence[Item]) -> float | None:
    """Find the place that best parts a region into two columns, or None."""
    if len(items) < 2:
        return None
    left, right = min(i.box.left for i in items), max(i.box.right for i in items)
    lefts = Counter(round(item.box.left) for item in items)
    best, best_height = None, 0.0
    for start, _ in lefts.most_common(_MAX_CANDIDATES):
        place = start - 1.0
        if min(place - left, right - place) < _NARROWEST * (right - left):
            continue
        before = [item for item in items if item.box.right <= place]
        after = [item for item in items if item.box.left >= place]
        height = _side_by_side(before, after)
        across = len(items) - len(before) - len(after)
        if height > best_height and across <= len(before) + len(after):
            best, best_height = place, height
    return best


def _side_by_side(before: Sequence[Item], after: Sequence[Item]) -> float:
    """Give the height over which both are columns beside each other; 0 if they are none."""
    if not (_is_column(before) and _is_column(after)):
        return 0.0
    around = _around(before), _around(after)
    shared = around[0].shared_height(around[1])
    smaller = min(around[0].height, around[1].height)
    if shared < 0.3 * smaller:
        return 0.0
    return min(sum(i.box.height for i in side) for side in (before, after))


def _is_column(items: Sequence[Item]) -> bool:
    if any(isinstance(item, Picture) for item in items):
        return True
    lengths = [len(item.text) for item in items if isinstance(item, Line)]
    return len(lengths) >= _FEWEST_LINES and median(lengths) >= _FEWEST_CHARACTERS


def _around(items: Sequence[Item]) -> Box:
    box = items[0].box
    for item in items:
        box = box.union(item.box)
    return box


def _rows(items: Sequence[Item]) -> list[Item]:
    """Join pieces that stand on one line; pictures stay for themselves."""
    rows: list[Item] = []
    for item in sorted(items, key=lambda i: (-i.box.top, i.box.left)):
        last = rows[-1] if rows else None
        if isinstance(item, Line) and isinstance(last, Line) and _on_one_line(last, item):
            rows[-1] = _joined(last, item)
        else:
            rows.append(item)
    return rows


def _on_one_line(a: Line, b: Line) -> bool:
    return a.box.shared_height(b.box) > 0.6 * min(a.box.height, b.box.height)


def _joined(a: Line, b: Line) -> Line:
    first, second = (a, b) if a.box.left <= b.box.left else (b, a)
    gap = second.box.left - first.box.right
    cells = first.cells + second.cells - (gap < _CELL_GAP * first.size)
    # Marks of a table's columns are of use only where there are columns.
    between = " | " if cells > max(first.cells, second.cells) else " "
    main = a if len(a.text) >= len(b.text) else b
    return replace(
        main,
        text=f"{first.text}{between}{second.text}",
        box=first.box.union(second.box),
        bold=first.bold and second.bold,
        cells=cells,
    )
