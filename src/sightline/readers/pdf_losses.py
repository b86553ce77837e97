"""What a PDF holds that PDFium gives no account of: damaged streams, patterns, pages on no list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut
from sightline.readers.pdf_objects import Objects, Stored, open_objects, references

UNSEARCHED = "files not searched to the end for lost text (number)"
_LONGEST_DRAWING = 2**20  # bytes that are searched for text
_DEEPEST_DRAWING = 4  # of drawings within drawings
_DEEPEST_NAMES, _MOST_NAMES = 3, 1_000  # of lists of what a drawing uses
_DRAWS = re.compile(rb"/Subtype\s*/Form\b|/PatternType\s+1\b|/Type\s*/ObjStm\b")
# Images have a status of their own; the others hold no text of pages.
_HOLDS_NO_TEXT = re.compile(
    rb"/Subtype\s*/(?:Image|Type1C|CIDFontType0C|OpenType|XML)\b|/Length[123]\b"
    rb"|/Type\s*/(?:XRef|Metadata|EmbeddedFile)\b|/(?:FunctionType|ShadingType)\b|/N\s+[134]\b"
)
_IS_FORM = re.compile(rb"/Subtype\s*/Form\b")
_IS_PATTERN = re.compile(rb"/PatternType\s+1\b")
_GLYPHS = re.compile(rb"/CharProcs\s*(?:<<([^<>]*)|([0-9]{1,10})\s+[0-9]+\s+R)")
_SHOWS_TEXT = re.compile(rb"[)>\]]\s*(?:Tj\b|TJ\b|'|\")")
_DRAWS_OTHERS = re.compile(rb"\bDo\b")
_FIGURE = re.compile(rb"/S\s*/Figure\b")
_HAS_TEXT = re.compile(rb"/(?:Alt|ActualText)\s*[(<0-9]")
_IS_PAGE = re.compile(rb"/Type\s*/Page\b")


def count_losses(path: Path, document: Any, end: float, left_out: LeftOut) -> None:
    """Count what the file holds and no page shows as text, until so much CPU time is used."""
    text = left_out.text
    with open_objects(path, document, end) as objects:
        if objects is not None:
            text["damaged streams (number)"] += _count_damaged(objects)
            text["patterns with text (number)"] += _count_patterns(objects)
            text["signs drawn with other fonts (number)"] += _count_glyphs(objects)
            unlisted = _count_pages(objects, len(document))
            text["pages that its list does not hold (number)"] += unlisted
            if not pdfium.FPDFCatalog_IsTagged(document):  # PDFium then gives no structure
                figures = _count_figures(objects)
                text["figures with texts, of a file without tags (number)"] += figures
        text[UNSEARCHED] += objects is None or not objects.is_whole


def _count_damaged(objects: Objects) -> int:
    """Count streams that cannot be decoded to their end, of those that may hold text."""
    damaged = 0
    for stored in objects.by_number.values():
        if stored.stream is None:
            continue
        head = stored.head
        if _DRAWS.search(head) or not _HOLDS_NO_TEXT.search(head):
            damaged += not objects.unpack(stored, 0)[1]
        if objects.is_over() or not objects.is_whole:
            break
    return damaged


def _count_patterns(objects: Objects) -> int:
    """Count drawings that fill an area and show text, which PDFium gives to nobody."""
    known: dict[int, bool] = {}
    return sum(
        _shows_text(objects, stored, stored, known)
        for stored in objects.by_number.values()
        if stored.stream is not None and _IS_PATTERN.search(stored.head)
    )


def _count_glyphs(objects: Objects) -> int:
    """Count signs of fonts that are drawings (Type 3) and show text of other fonts."""
    fonts: dict[int, Stored] = {}
    for stored in objects.by_number.values():
        found = None if stored.stream else _GLYPHS.search(stored.data, stored.start, stored.stop)
        if found:
            fonts.update(dict.fromkeys(objects.listed(found), stored))
    drawings = ((objects.by_number.get(number), font) for number, font in fonts.items())
    known: dict[int, bool] = {}
    return sum(_shows_text(objects, sign, font, known) for sign, font in drawings if sign)


def _shows_text(
    objects: Objects, drawing: Stored, owner: Stored, known: dict[int, bool], depth: int = 0
) -> bool:
    """Say whether a drawing shows text, also by way of drawings within it that its owner names.

    What is found out of those is kept in `known`, as drawings may share many. One that is too long
    or too deep to be searched may show text, and counts.
    """
    content = objects.unpack(drawing, _LONGEST_DRAWING)[0] or b""
    if len(content) == _LONGEST_DRAWING or _SHOWS_TEXT.search(content):
        return True
    if objects.is_over() or not _DRAWS_OTHERS.search(content):
        return False
    if depth == _DEEPEST_DRAWING:
        return True
    for form in _forms(objects, owner):
        if id(form) not in known:
            known[id(form)] = False  # while it is being looked at
            known[id(form)] = _shows_text(objects, form, form, known, depth + 1)
        if known[id(form)]:
            return True
    return False


def _forms(objects: Objects, owner: Stored) -> list[Stored]:
    """Give the drawings that an object refers to, also by way of dictionaries of their names."""
    forms: list[Stored] = []
    seen: set[int] = set()
    numbers = references(owner.head)
    for _ in range(_DEEPEST_NAMES):
        new = dict.fromkeys(numbers[:_MOST_NAMES])
        found = [objects.by_number.get(number) for number in new if number not in seen]
        seen.update(new)
        forms += [stored for stored in found if stored and _IS_FORM.search(stored.head)]
        lists = [stored for stored in found if stored and not stored.stream]
        numbers = [number for stored in lists for number in references(stored.head)]
    return forms


def _count_pages(objects: Objects, count: int) -> int:
    """Count pages that are not among those that the list of pages gives."""
    listed = set(objects.pages()[:count])
    pages = {
        number
        for number, stored in objects.by_number.items()
        if stored.stream is None and _IS_PAGE.search(stored.data, stored.start, stored.stop)
    }
    return len(pages - listed) if listed else max(0, len(pages) - count)


def _count_figures(objects: Objects) -> int:
    """Count elements of the structure that are figures and have a text to stand for them."""
    return sum(
        bool(
            _FIGURE.search(stored.data, stored.start, stored.stop) and _HAS_TEXT.search(stored.head)
        )
        for stored in objects.by_number.values()
        if stored.stream is None
    )
