"""The text of a PDF page as pieces of lines with boxes, by way of PDFium's characters."""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut
from sightline.readers.pdf_layout import Box, Line

MAX_CHARACTERS = 200_000  # of a page
_WORD_GAP = 1.2  # of the font size; a wider gap parts a line in pieces
_DEEPEST_GROUP = 41  # PDFium gives groups that are so deep as empty
_LAST_CHARACTER = 0x10FFFF
_BOLD = 600
_NO_WIDTH, _SHORTEST_LINE = 0.01, 0.5  # points; the first is PDFium's own
_SHAPELESS = "text in fonts that the file lacks (pieces)"
_BOLD_NAME = re.compile(rb"bold|black|heavy|semib|demi", re.I)
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
# What PDFium gives for a hyphen at the end of a line.
HYPHEN = "\x02"
_HYPHENS = (0x02, 0xFFFE)
_NO_SPACES = "\x0b\x0c\x1c\x1d\x1e\x1f"  # to Python they are
_LINE_ENDS = (*_HYPHENS, ord("\n"), ord("\r"))

#: An object of a page, its kind, and the group on the page that it is in, or itself.
PageObject = tuple[Any, int, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """Quarter turns by which most text of a page is turned, and the page's box before turning."""

    quarters: int
    page: Box

    def box(self, left: float, bottom: float, right: float, top: float) -> Box:
        """Give a box as it stands when the text is upright, from the page's lower left."""
        low, high = left - self.page.left, right - self.page.left
        down, up = bottom - self.page.bottom, top - self.page.bottom
        width, height = self.page.width, self.page.height
        if self.quarters == 1:  # the text runs upwards
            return Box(down, width - high, up, width - low)
        if self.quarters == 2:
            return Box(width - high, height - up, width - low, height - down)
        if self.quarters == 3:  # downwards
            return Box(height - up, low, height - down, high)
        return Box(low, down, high, up)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the turned page."""
        if self.quarters % 2:
            return self.page.height, self.page.width
        return self.page.width, self.page.height


@dataclass(slots=True)
class _Piece:
    """A piece of a line under way: its words, and its last character's index."""

    words: list[str]
    box: Box
    size: float
    bold: bool
    last: int


def find_turn(text_page: Any, page: Box) -> Turn:
    """Find out how most of a page's text is turned, from some of its characters."""
    count = pdfium.FPDFText_CountChars(text_page)
    seen: Counter[int] = Counter()
    for index in range(0, count, max(1, count // 100)):
        seen[_quarters(text_page, index)] += 1
    return Turn(seen.most_common(1)[0][0] if seen else 0, page)


def read_pieces(text_page: Any, turn: Turn, left_out: LeftOut) -> list[Line]:
    """Read the text of a page; text that is turned otherwise, or off the page, is left out."""
    count = pdfium.FPDFText_CountChars(text_page)
    if count > MAX_CHARACTERS:
        left_out.text["beyond the limits"] += count - MAX_CHARACTERS
        count = MAX_CHARACTERS
    lines: list[Line] = []
    piece: _Piece | None = None
    for first, last, word in _words(text_page, count):
        if first == last == -1:  # the end of a line
            _end(text_page, piece, turn, lines, left_out)
            piece = None
            continue
        box = _box(text_page, first, last, turn)
        if box is None:
            left_out.text["without a place"] += len(word)
        elif piece is not None and _follows(piece, box):
            piece.words.append(word)
            piece.box = piece.box.union(box)
            piece.last = last
        else:
            _end(text_page, piece, turn, lines, left_out)
            size = _size(text_page, first) or box.height
            piece = _Piece([word], box, size, _is_bold(text_page, first), last)
    _end(text_page, piece, turn, lines, left_out)
    return lines


def count_shapeless(objects: Sequence[PageObject], characters: int, left_out: LeftOut) -> None:
    """Count text that PDFium passes over: it has no width, for want of a size or of its font.

    Without its font, vertical writing looks like that. Spaces have no width either, so that text
    without a height counts only where there is more of it than of characters that were read.
    """
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    places = [ctypes.byref(value) for value in (left, bottom, right, top)]
    lines = signs = 0
    for handle, kind, _ in objects:
        if kind != pdfium.FPDF_PAGEOBJ_TEXT:
            continue
        pdfium.FPDFPageObj_GetBounds(handle, *places)
        if right.value - left.value >= _NO_WIDTH:
            continue
        if _width_of_signs(handle) < _NO_WIDTH:
            left_out.text["text without a size (pieces)"] += 1
            continue
        if pdfium.FPDFFont_GetIsEmbedded(pdfium.FPDFTextObj_GetFont(handle)) != 0:
            continue
        is_line = top.value - bottom.value > _SHORTEST_LINE
        lines, signs = lines + is_line, signs + (not is_line)
    left_out.text[_SHAPELESS] += lines + (signs if signs > characters else 0)


def page_objects(page: Any, left_out: LeftOut) -> list[PageObject]:
    """Give the objects of a page, also those inside groups, which are no objects themselves."""
    objects: list[PageObject] = []
    groups = [(page, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, None, 0)]
    within = (pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject)
    remaining = MAX_CHARACTERS
    while groups:
        group, count, get, outermost, depth = groups.pop()
        left_out.text["groups within too many others (number)"] += depth == _DEEPEST_GROUP
        for index in range(count(group)):
            remaining -= 1
            if remaining < 0:
                left_out.text["behind too many objects of a page (pages)"] += 1
                return objects
            handle = get(group, index)
            kind = pdfium.FPDFPageObj_GetType(handle) if handle else None
            if kind == pdfium.FPDF_PAGEOBJ_FORM:
                groups.append((handle, *within, outermost or handle, depth + 1))
            elif kind is not None:
                objects.append((handle, kind, outermost or handle))
    return objects


def _width_of_signs(handle: Any) -> float:
    """Give how wide a sign of a piece of text is that is as wide as its font is high."""
    matrix, size = pdfium.FS_MATRIX(), ctypes.c_float()
    pdfium.FPDFPageObj_GetMatrix(handle, ctypes.byref(matrix))
    pdfium.FPDFTextObj_GetFontSize(handle, ctypes.byref(size))
    return abs(size.value) * math.hypot(matrix.a, matrix.b)


def _words(text_page: Any, count: int) -> Iterator[tuple[int, int, str]]:
    """Yield words with their first and last character, and (-1, -1, "") where a line ends.

    PDFium puts spaces and line breaks where characters do not follow each other closely, so that
    only words need to be looked at: asking for the place of every character takes most of the time.
    """
    get = pdfium.FPDFText_GetUnicode
    characters: list[str] = []
    start = 0
    for index in range(count):
        code = get(text_page, index)
        character = chr(code) if 0 < code <= _LAST_CHARACTER else "\ufffd"
        if not character.isspace() or character in _NO_SPACES:
            if not characters:
                start = index
            characters.append(character)
            # After a hyphen PDFium goes on with the next line as if there were no break.
            if code not in _HYPHENS:
                continue
            index += 1
        if characters:
            yield start, index - 1, "".join(characters)
            characters = []
        if code in _LINE_ENDS:
            yield -1, -1, ""
    if characters:
        yield start, count - 1, "".join(characters)


def _box(text_page: Any, first: int, last: int, turn: Turn) -> Box | None:
    """Give the box of a word, from its first and last character."""
    rectangle = pdfium.FS_RECTF()
    found = None
    for index in (first, last):
        if pdfium.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(rectangle)):
            r = rectangle
            box = turn.box(r.left, r.bottom, r.right, r.top)
            found = box if found is None else found.union(box)
    return found


def _follows(piece: _Piece, box: Box) -> bool:
    """Say whether a word goes on with the piece: on its line, not far away."""
    if piece.box.shared_height(box) < 0.3 * min(piece.box.height, box.height):
        return False
    gap = box.left - piece.box.right
    return -2 * piece.size < gap < _WORD_GAP * piece.size


def _end(
    text_page: Any, piece: _Piece | None, turn: Turn, lines: list[Line], left_out: LeftOut
) -> None:
    if piece is None:
        return
    found = " ".join(piece.words)
    text = _clean(found)
    # Fonts that do not tell what their signs mean have such codes for them.
    left_out.text["signs without a meaning"] += sum(c < " " and c != HYPHEN for c in found)
    width, height = turn.size
    box = piece.box
    if box.right < 0 or box.left > width or box.top < 0 or box.bottom > height:
        left_out.text["off the page"] += len(text)
    elif _quarters(text_page, piece.last) != turn.quarters:
        left_out.text["turned text"] += len(text)
    elif text.strip():
        bold = piece.bold and _is_bold(text_page, piece.last)
        lines.append(Line(text, box, piece.size, bold))


def _clean(text: str) -> str:
    """Take ligatures apart, and put together what PDFium gives as halves of a character."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for ligature, letters in _LIGATURES.items():
        text = text.replace(ligature, letters)
    return "".join(c for c in text if c >= " " or c == HYPHEN).replace("\ufffe", HYPHEN)


def _quarters(text_page: Any, index: int) -> int:
    """Give the quarter turns of a character, counterclockwise; those in between are rounded."""
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFText_GetMatrix(text_page, index, ctypes.byref(matrix)):
        return 0
    return round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4


def _size(text_page: Any, index: int) -> float:
    """Give the size of a character on the page: that of its font, scaled by its matrix."""
    matrix = pdfium.FS_MATRIX()
    size = float(pdfium.FPDFText_GetFontSize(text_page, index))
    if not pdfium.FPDFText_GetMatrix(text_page, index, ctypes.byref(matrix)):
        return size
    return size * math.hypot(matrix.c, matrix.d)


def _is_bold(text_page: Any, index: int) -> bool:
    if pdfium.FPDFText_GetFontWeight(text_page, index) >= _BOLD:
        return True
    name = ctypes.create_string_buffer(128)
    flags = ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text_page, index, name, 128, ctypes.byref(flags))
    return _BOLD_NAME.search(name.value) is not None
