"""What a PDF holds that PDFium gives no account of: damaged streams, patterns, pages on no list."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut
from sightline.readers.pdf_objects import Objects, Stored, open_objects
from sightline.readers.pdf_words import STRING, plain, references

UNSEARCHED = "files not searched to the end for lost text (number)"
_SECONDS = 2.0  # of CPU time: the text that was read is given in any case
_LONGEST_DRAWING = 2**20  # bytes that are searched for text
_LONGEST_STRING = 32_767  # bytes; PDFium cuts what is longer
_DEEPEST_DRAWING = 30  # of drawings within drawings
_DEEPEST_NAMES, _MOST_NAMES = 3, 1_000  # of lists of what a drawing uses
_DRAWS = re.compile(rb"/Subtype\s*/Form\b|/PatternType\b|/Type\s*/ObjStm\b")
# Images have a status of their own; the others hold no text of pages.
_HOLDS_NO_TEXT = re.compile(
    rb"/Subtype\s*/(?:Image|Type1C|CIDFontType0C|OpenType|XML)\b|/Length[123]\b"
    rb"|/Type\s*/(?:XRef|Metadata|EmbeddedFile)\b|/(?:FunctionType|ShadingType)\b|/N\s+[134]\b"
)
_IS_FORM = re.compile(rb"/Subtype\s*/Form\b")
_IS_PATTERN = re.compile(rb"/PatternType\b")  # of the other kind are no streams
_IS_MASK = re.compile(rb"/S\s*/(?:Luminosity|Alpha)\b")
# What refers to other objects, as a list, a dictionary or by a number.
_REFERS = re.compile(
    rb"/(Contents|Annots|XObject|CharProcs|EF|G)[\s\0]*"
    rb"(?:\[([^\[\]]*)|<<([^<>]*)|([0-9]{1,10})\s+[0-9]+\s+R)"
)
# What an annotation looks like in each of its states, and the state that it is in.
_STATES = re.compile(rb"/AP\s*<<[^<>]*/N\s*<<([^<>]*)>>")
_STATE = re.compile(rb"/([^\s/<>\[\]()]+)\s+([0-9]{1,10})\s+[0-9]+\s+R")
_IN_STATE = re.compile(rb"/AS\s*/([^\s/<>\[\]()]+)")
_SHOWS_WORDS = re.compile(rb"\([^()]{3,}\)[\s\0]*Tj\b|<[0-9A-Fa-f\s]{6,}>[\s\0]*Tj\b|\][\s\0]*TJ\b")
_SHOWS_TEXT = re.compile(rb"[)>\]][\s\0]*(?:Tj\b|TJ\b|'|\")")
_LONG_CODES = re.compile(rb"<[0-9A-Fa-f\s]{%d}" % (2 * _LONGEST_STRING + 1))
_DRAWS_OTHERS = re.compile(rb"\bDo\b")
_FIGURE = re.compile(rb"/S\s*/Figure\b")
_HAS_TEXT = re.compile(rb"/(?:Alt|ActualText)\s*[(<0-9]")
_IS_PAGE = re.compile(rb"/Type\s*/Page\b")


@dataclass(slots=True)
class _Survey:
    """Which objects are what, by their numbers."""

    pages: set[int] = field(default_factory=set)
    contents: set[int] = field(default_factory=set)
    figures: int = 0
    patterns: list[Stored] = field(default_factory=list)
    #: Drawings that hide what lies under them.
    masks: set[int] = field(default_factory=set)
    #: Drawings of signs, with the font of each.
    signs: dict[int, Stored] = field(default_factory=dict)
    files: set[int] = field(default_factory=set)
    #: Drawings of annotations in states that they are not in.
    states: set[int] = field(default_factory=set)
    #: What pages and drawings are made of.
    needed: set[int] = field(default_factory=set)


def count_losses(path: Path, document: Any, end: float, left_out: LeftOut) -> None:
    """Count what the file holds and no page shows as text, until so much CPU time is used."""
    text = left_out.text
    with open_objects(path, document, min(end, time.process_time() + _SECONDS)) as objects:
        if objects is not None:
            listed = objects.pages()[: len(document)]
            survey = _survey(objects, listed)
            damaged, cut = _count_streams(objects, survey.contents)
            text["damaged streams (number)"] += damaged
            text["drawings with strings that are too long (number)"] += cut
            known: dict[int, bool] = {}
            patterns = (_shows_text(objects, one, one, known) for one in survey.patterns)
            text["patterns with text (number)"] += sum(patterns)
            masks = _found(objects, survey.masks)
            shown = sum(_shows_text(objects, one, one, known) for one in masks)
            text["masks with text (number)"] += shown
            states = _found(objects, survey.states)
            words = sum(_shows_words(objects, one) for one in states)
            text["hidden annotations that draw text (number)"] += words
            text["signs drawn with other fonts (number)"] += _count_glyphs(objects, survey.signs)
            unlisted = survey.pages.difference(listed)
            count = len(unlisted) if listed else max(0, len(survey.pages) - len(document))
            text["pages that its list does not hold (number)"] += count
            if not pdfium.FPDFCatalog_IsTagged(document):  # PDFium then gives no structure
                text["figures with texts, of a file without tags (number)"] += survey.figures
            if objects.is_whole:
                missing = survey.needed.difference(objects.by_number)
                text["parts that are missing (number)"] += len(missing)
            files = len(survey.files) - max(0, pdfium.FPDFDoc_GetAttachmentCount(document))
            text["attached files (number)"] += max(0, files)
        text[UNSEARCHED] += objects is None or not objects.is_whole


def _found(objects: Objects, numbers: Iterable[int]) -> list[Stored]:
    return [stored for one in sorted(numbers) if (stored := objects.by_number.get(one))]


def _survey(objects: Objects, listed: list[int]) -> _Survey:
    """Go through the objects once; those of listed pages are read with more care."""
    survey = _Survey()
    for number, stored in objects.by_number.items():
        if objects.is_over():
            break
        if stored.stream is None:
            _add_parts(objects, survey, stored, stored.data, stored.start, stored.stop)
            if _IS_PAGE.search(stored.data, stored.start, stored.stop):
                survey.pages.add(number)
            survey.states.update(_other_states(stored))
            if _FIGURE.search(stored.data, stored.start, stored.stop):
                found = _HAS_TEXT.search(stored.data, stored.start, stored.stop)
                survey.figures += found is not None
        else:
            head = stored.head
            _add_parts(objects, survey, stored, head, 0, len(head))
            if _IS_PATTERN.search(head):
                survey.patterns.append(stored)
    for page in listed:
        if objects.is_over():
            break
        for stored in _found(objects, [page]):
            head = stored.head
            for part in _REFERS.finditer(head):
                numbers = _referred(objects, part)
                if part[1] == b"Contents":
                    survey.contents.update(numbers)
                if part[1] in (b"Contents", b"Annots"):
                    survey.needed.update(numbers)
    return survey


def _other_states(stored: Stored) -> list[int]:
    """Give the drawings of an annotation in states that it is not in."""
    states = _STATES.search(stored.data, stored.start, stored.stop)
    if states is None:
        return []
    current = _IN_STATE.search(stored.data, stored.start, stored.stop)
    is_in = current[1] if current else None
    return [int(number) for name, number in _STATE.findall(states[1]) if name != is_in]


def _shows_words(objects: Objects, drawing: Stored) -> bool:
    """Say whether a drawing shows more than a mark, as those of boxes to check do."""
    if objects.is_over():
        return False
    content = objects.unpack(drawing, _LONGEST_DRAWING)[0] or b""
    return _SHOWS_WORDS.search(content) is not None


def _add_parts(
    objects: Objects, survey: _Survey, stored: Stored, data: Any, start: int, stop: int
) -> None:
    """Note what an object refers to."""
    is_mask: bool | None = None
    for found in _REFERS.finditer(data, start, stop):
        numbers = _referred(objects, found)
        if found[1] == b"Contents":
            survey.contents.update(numbers)
        elif found[1] == b"XObject":
            survey.needed.update(numbers)
        elif found[1] == b"CharProcs":
            survey.signs.update(dict.fromkeys(numbers, stored))
        elif found[1] == b"EF":
            survey.files.update(numbers[:1])  # the same file by several names
        elif found[1] == b"G":
            if is_mask is None:
                is_mask = _IS_MASK.search(data, start, stop) is not None
            survey.masks.update(numbers if is_mask else ())


def _referred(objects: Objects, found: re.Match[bytes]) -> list[int]:
    """Give the numbers that a match of `_REFERS` holds, or the object that it refers to."""
    if found[4] is None:
        return references(found[2] or found[3] or b"")
    other = objects.by_number.get(int(found[4]))
    if other is None or other.stream or found[1] == b"G":
        return [int(found[4])]
    return [] if objects.is_over() else references(other.head)


def _count_streams(objects: Objects, contents: set[int]) -> tuple[int, int]:
    """Count streams that cannot be decoded to their end, of those that may hold text.

    And the drawings among them with strings that PDFium cuts. What pages are made of is looked at
    whatever it says of itself.
    """
    damaged = cut = 0
    for number, stored in objects.by_number.items():
        if stored.stream is None:
            continue
        head = stored.head
        if number in contents or _IS_FORM.search(head):
            content, is_sound = objects.unpack(stored, _LONGEST_DRAWING)
            is_drawing = content is not None or not objects.is_whole
            damaged += not (is_sound and is_drawing)
            cut += _has_long_string(content or b"")
        elif _DRAWS.search(head) or not _HOLDS_NO_TEXT.search(head):
            damaged += not objects.unpack(stored, 0)[1]
        if objects.is_over() or not objects.is_whole:
            break
    return damaged, cut


def _has_long_string(content: bytes) -> bool:
    if len(content) <= _LONGEST_STRING:
        return False
    longest = max(STRING.findall(content), key=len, default=b"")
    is_long = len(longest) > _LONGEST_STRING + 2 and longest.endswith(b")")
    return is_long or _LONG_CODES.search(content) is not None


def _count_glyphs(objects: Objects, signs: dict[int, Stored]) -> int:
    """Count signs of fonts that are drawings (Type 3) and show text of other fonts."""
    drawings = ((objects.by_number.get(number), font) for number, font in signs.items())
    known: dict[int, bool] = {}
    return sum(_shows_text(objects, sign, font, known) for sign, font in drawings if sign)


def _shows_text(
    objects: Objects, drawing: Stored, owner: Stored, known: dict[int, bool], depth: int = 0
) -> bool:
    """Say whether a drawing shows text, also by way of drawings within it that its owner names.

    What is found out of those is kept in `known`, as drawings may share many. One that is too long
    or too deep to be searched may show text, and counts.
    """
    if objects.is_over():
        return False
    content = objects.unpack(drawing, _LONGEST_DRAWING)[0] or b""
    if len(content) == _LONGEST_DRAWING or _SHOWS_TEXT.search(content):
        return True
    if b"%" in content and _SHOWS_TEXT.search(plain(content)):
        return True
    if not _DRAWS_OTHERS.search(content):
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
        numbers = []
        for stored in found:
            if stored and not stored.stream and not objects.is_over():
                numbers += references(stored.head)
    return forms
