"""Texts that a tagged PDF gives in place of pictures: what they show, or the words in them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut
from sightline.readers.pdf_annotations import read_string
from sightline.readers.pdf_text import PageObject

STANDS_FOR_PICTURES = "texts that stand for pictures"
_MOST_ELEMENTS = 50_000  # of a page
_MOST_STEPS = 500_000  # of a page, from elements and objects to their marks
# Signs in a line as wide as its font is large: of most, two; and so few may be one drawn otherwise.
_LEAST_SIGNS, _FEW_SIGNS = 1.0, 2
_SPACE = 0.01  # points; text that is not wider is spaces, or counted as without a size


def texts_for_pictures(
    page: Any, objects: Sequence[PageObject], left_out: LeftOut
) -> dict[int, str]:
    """Give texts by the mark of the picture that each stands for; other such texts are counted.

    Marks (marked-content identifiers) tell which objects of the page an element of the structure
    is made of. A text that stands for other text is no loss, as that text is read itself.
    """
    steps = iter(range(_MOST_STEPS))
    left_out.text[STANDS_FOR_PICTURES] += _count_marked(objects, steps)
    left_out.text["text that fewer words stand for (pieces)"] += _count_replaced(objects, steps)
    found = _found_in_structure(page, steps, left_out)
    left_out.text["behind too many marks of a page (pages)"] += next(steps, None) is None
    if not found:
        return {}
    with_text, with_images = _marks_of_objects(objects)
    texts: dict[int, str] = {}
    for text, marks in reversed(found):
        if marks & with_text:
            continue
        free = [mark for mark in sorted(marks & with_images) if mark not in texts]
        if free:
            texts[free[0]] = text
        else:
            left_out.text[STANDS_FOR_PICTURES] += len(text)
    return texts


def _found_in_structure(
    page: Any, steps: Iterator[int], left_out: LeftOut
) -> list[tuple[str, set[int]]]:
    """Give the texts of elements, each with the marks of what the element is made of."""
    tree = pdfium.FPDF_StructTree_GetForPage(page)
    if not tree:
        return []
    try:
        elements = _with_text(tree, steps, left_out)
        return [(text, set(_marks(element, steps))) for element, text in elements]
    finally:
        pdfium.FPDF_StructTree_Close(tree)


def _with_text(tree: Any, steps: Iterator[int], left_out: LeftOut) -> Iterator[tuple[Any, str]]:
    """Yield the elements that have a text to stand for them, and the text; inner ones later."""
    count = pdfium.FPDF_StructTree_CountChildren(tree)
    waiting = [pdfium.FPDF_StructTree_GetChildAtIndex(tree, index) for index in range(count)]
    remaining = _MOST_ELEMENTS
    while waiting:
        element = waiting.pop()
        if not element:
            continue
        remaining -= 1
        if remaining < 0:
            left_out.text["behind too many elements of a page (pages)"] += 1
            return
        text = read_string(pdfium.FPDF_StructElement_GetActualText, element)
        text = text or read_string(pdfium.FPDF_StructElement_GetAltText, element)
        if text:
            yield element, " ".join(text.split())
        waiting += _children(element, steps)


def _marks(element: Any, steps: Iterator[int]) -> Iterator[int]:
    """Yield the marks of an element and of those in it."""
    waiting = [element]
    while waiting and next(steps, None) is not None:
        current = waiting.pop()
        if current:
            count = pdfium.FPDF_StructElement_GetMarkedContentIdCount(current)
            for index, _ in zip(range(count), steps, strict=False):
                mark = pdfium.FPDF_StructElement_GetMarkedContentIdAtIndex(current, index)
                if mark >= 0:
                    yield mark
            waiting += _children(current, steps)


def _children(element: Any, steps: Iterator[int]) -> list[Any]:
    """Give what is in an element; of marks None."""
    count = pdfium.FPDF_StructElement_CountChildren(element)
    get = pdfium.FPDF_StructElement_GetChildAtIndex
    return [get(element, index) for index, _ in zip(range(count), steps, strict=False)]


def _marks_of_objects(objects: Sequence[PageObject]) -> tuple[set[int], set[int]]:
    """Give the marks of text and those of images."""
    with_text, with_images = set(), set()
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    places = [ctypes.byref(value) for value in (left, bottom, right, top)]
    for handle, kind, outermost in objects:
        mark = pdfium.FPDFPageObj_GetMarkedContentID(outermost)
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            with_images.add(mark)
        elif kind == pdfium.FPDF_PAGEOBJ_TEXT and mark not in with_text:
            pdfium.FPDFPageObj_GetBounds(handle, *places)
            if right.value - left.value > _SPACE:
                with_text.add(mark)
    return with_text, with_images


def _count_marked(objects: Sequence[PageObject], steps: Iterator[int]) -> int:
    """Count the characters that marks on the page itself give in place of drawings.

    In place of text PDFium gives them as that text.
    """
    texts: dict[int, str] = {}
    for handle, kind, outermost in objects:
        if kind != pdfium.FPDF_PAGEOBJ_TEXT:
            for address, mark in _marks_of(handle, outermost, steps):
                if address not in texts:
                    texts[address] = _marked_text(mark).strip()
    if any(texts.values()):
        for handle, kind, outermost in objects:
            if kind == pdfium.FPDF_PAGEOBJ_TEXT:
                for address, _ in _marks_of(handle, outermost, steps):
                    texts.pop(address, None)
    return sum(map(len, texts.values()))


def _count_replaced(objects: Sequence[PageObject], steps: Iterator[int]) -> int:
    """Count text in whose place PDFium gives another that is far too short to say the same."""
    replaced = 0
    texts: dict[int, str] = {}
    size, left, bottom, right, top = (ctypes.c_float() for _ in range(5))
    for handle, kind, outermost in objects:
        if kind != pdfium.FPDF_PAGEOBJ_TEXT:
            continue
        for address, mark in _marks_of(handle, outermost, steps):
            if address not in texts:
                texts[address] = _marked_text(mark, (b"ActualText",))
            places = [ctypes.byref(value) for value in (left, bottom, right, top)]
            if not texts[address] or not pdfium.FPDFPageObj_GetBounds(handle, *places):
                continue
            pdfium.FPDFTextObj_GetFontSize(handle, ctypes.byref(size))
            signs = _LEAST_SIGNS * max(right.value - left.value, top.value - bottom.value)
            if signs > size.value * (len(texts[address].strip()) + _FEW_SIGNS):
                replaced += 1
                break
    return replaced


def _marks_of(handle: Any, outermost: Any, steps: Iterator[int]) -> Iterator[tuple[int, Any]]:
    """Yield the marks of an object and of its group; objects of one mark give the same address."""
    for owner in (handle,) if handle is outermost else (handle, outermost):
        for index in range(pdfium.FPDFPageObj_CountMarks(owner)):
            mark = pdfium.FPDFPageObj_GetMark(owner, index)
            if next(steps, None) is None:
                return
            if mark:
                yield ctypes.addressof(mark.contents), mark


def _marked_text(mark: Any, keys: Sequence[bytes] = (b"ActualText", b"Alt")) -> str:
    size = ctypes.c_ulong()
    for key in keys:
        get = pdfium.FPDFPageObjMark_GetParamStringValue
        if get(mark, key, None, 0, ctypes.byref(size)) and size.value > 2:
            buffer = (pdfium.FPDF_WCHAR * (size.value // 2))()
            get(mark, key, buffer, size.value, ctypes.byref(size))
            return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
    return ""
