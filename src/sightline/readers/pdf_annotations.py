"""What lies over a PDF page: filled-in forms, notes and stamps, which people see as part of it.

What is shown is drawn into the page, where it is read like all other text; what only opens on a
click, or is not shown at all, is counted.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut

MAX_ANNOTATIONS = 10_000  # of a page
_MOST_DRAWN = 2**24  # signs of what the annotations of a page draw
_MAX_OPTIONS = 1_000  # of a field that are looked at; what is chosen first counts in any case
_HIDDEN = (
    pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_INVISIBLE | pdfium.FPDF_ANNOT_FLAG_NOVIEW
)
_TEXT_FIELDS = (
    *(pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX),
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
_NO_TEXT_FIELDS = (
    *(pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON),
    pdfium.FPDF_FORMFIELD_SIGNATURE,
)
_UNREADABLE = "annotations that cannot be read (number)"
_OTHER_MODES = (
    pdfium.FPDF_ANNOT_APPEARANCEMODE_ROLLOVER,
    pdfium.FPDF_ANNOT_APPEARANCEMODE_DOWN,
)
_UNSEEN = "hidden annotations that draw text (number)"
# What shows text or an image, or something else that may.
_SHOWS = re.compile(r"\b(?:Tj|TJ|Do|BI)\b|[)>\]]\s*['\"]|[^\0-\x7f]")
_TAG = re.compile(r"<[^>]*>")


@contextmanager
def open_form(document: Any) -> Iterator[Any]:
    """Open the form of a file, which knows the values that fields inherit; None if it has none."""
    form = None
    if pdfium.FPDF_GetFormType(document) != pdfium.FORMTYPE_NONE:
        settings = pdfium.FPDF_FORMFILLINFO(version=2)  # has to live as long as the form
        form = pdfium.FPDFDOC_InitFormFillEnvironment(document, settings)
    try:
        yield form
    finally:
        if form:
            pdfium.FPDFDOC_ExitFormFillEnvironment(form)


def show_annotations(page: Any, form: Any, left_out: LeftOut) -> bool:
    """Draw annotations into the page; says whether any was, so that it has to be loaded anew."""
    count = pdfium.FPDFPage_GetAnnotCount(page)
    if count > MAX_ANNOTATIONS:
        left_out.text["annotations beyond the limits (number)"] += count
        return False
    shown = []
    drawn = 0
    for index in range(count):
        length, is_shown = _look_at(page, index, form, left_out)
        shown.append(is_shown)
        drawn += length
        if drawn > _MOST_DRAWN:
            left_out.text["annotations beyond the limits (number)"] += count
            return False
    if not any(shown):
        return False
    done = pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY)
    if done != pdfium.FLATTEN_SUCCESS:
        left_out.text["annotations that cannot be drawn (number)"] += sum(shown)
    return bool(done == pdfium.FLATTEN_SUCCESS)


def count_beside_pages(document: Any, left_out: LeftOut) -> None:
    """Count what a file holds beside its pages: attached files, and a form that only Adobe shows.

    The pages of such a form (XFA) say that it cannot be shown.
    """
    left_out.text["attached files (number)"] += max(0, pdfium.FPDFDoc_GetAttachmentCount(document))
    if pdfium.FPDF_GetFormType(document) == pdfium.FORMTYPE_XFA_FULL:
        left_out.text["form of the kind XFA (number)"] += 1


def _look_at(page: Any, index: int, form: Any, left_out: LeftOut) -> tuple[int, bool]:
    """Count the text of an annotation that is not shown.

    Gives how long its drawing is, and whether it is to be drawn.
    """
    annotation = pdfium.FPDFPage_GetAnnot(page, index)
    if not annotation:
        left_out.text[_UNREADABLE] += 1
        return 0, False
    try:
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        is_link = kind == pdfium.FPDF_ANNOT_LINK
        if is_link and not pdfium.FPDFAnnot_HasKey(annotation, b"AP"):
            _count_comment(annotation, "comments", left_out)
            return 0, False  # what it links from is on the page
        mode = pdfium.FPDF_ANNOT_APPEARANCEMODE_NORMAL
        drawing = _read(pdfium.FPDFAnnot_GetAP, annotation, mode)
        is_drawn = _SHOWS.search(drawing) is not None
        for other in _OTHER_MODES:  # as it looks under a mouse
            pressed = _read(pdfium.FPDFAnnot_GetAP, annotation, other)
            left_out.text[_UNSEEN] += pressed != drawing and _SHOWS.search(pressed) is not None
        is_hidden = bool(pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN)
        # PDFium draws no windows of comments.
        left_out.text[_UNSEEN] += is_drawn and (is_hidden or kind == pdfium.FPDF_ANNOT_POPUP)
        is_field = kind == pdfium.FPDF_ANNOT_WIDGET
        is_note = is_field or kind == pdfium.FPDF_ANNOT_FREETEXT
        if not is_link and (is_hidden or not is_drawn or not is_note):
            reason = "form fields and notes that are not drawn" if is_note else "comments"
            reason = "hidden" if is_hidden else reason
            if is_field:
                _count_field(annotation, form, reason, left_out)
            else:
                _count_comment(annotation, reason, left_out)
        is_shown = is_drawn and not is_hidden and kind != pdfium.FPDF_ANNOT_POPUP
        return len(drawing), is_shown
    finally:
        pdfium.FPDFPage_CloseAnnot(annotation)


def _count_comment(annotation: Any, reason: str, left_out: LeftOut) -> None:
    """Count the text of a comment or note, which may be there only with its markup."""
    text = _string(annotation, b"Contents") or _TAG.sub("", _string(annotation, b"RC"))
    others = (_string(annotation, key) for key in (b"Subj", b"OverlayText"))
    left_out.text[reason] += len(text.strip()) + sum(map(len, others))
    if not text and _has_other_value(annotation, b"Contents"):
        left_out.text[_UNREADABLE] += 1


def _count_field(annotation: Any, form: Any, reason: str, left_out: LeftOut) -> None:
    """Count the value of a form field; a button's label cannot be read, and counts as one."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation) if form else -1
    if kind in _TEXT_FIELDS:
        text = _field_value(annotation, form) or _TAG.sub("", _string(annotation, b"RV"))
        left_out.text[reason] += len(text.strip())
    elif kind == pdfium.FPDF_FORMFIELD_PUSHBUTTON:
        has_label = pdfium.FPDFAnnot_HasKey(annotation, b"MK")
        left_out.text["buttons that are not drawn (number)"] += bool(has_label)
    elif kind not in _NO_TEXT_FIELDS:  # is no part of the form
        text = _string(annotation, b"V") or _TAG.sub("", _string(annotation, b"RV"))
        left_out.text[reason] += len(text.strip())
        inherits = pdfium.FPDFAnnot_HasKey(annotation, b"Parent")
        if not text and (inherits or _has_other_value(annotation, b"V")):
            left_out.text[_UNREADABLE] += 1


def _field_value(annotation: Any, form: Any) -> str:
    """Give what is written in a field, or all that is chosen in a list."""
    count = pdfium.FPDFAnnot_GetOptionCount(form, annotation)
    chosen = [
        read_string(pdfium.FPDFAnnot_GetOptionLabel, form, annotation, index)
        for index in range(min(count, _MAX_OPTIONS))
        if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, index)
    ]
    value = read_string(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)
    return max(value, "".join(chosen), key=len)


def _string(annotation: Any, key: bytes) -> str:
    """Give a text of an annotation; names and numbers are no text, a reference may lead to one."""
    kind = pdfium.FPDFAnnot_GetValueType(annotation, key)
    if kind not in (
        *(pdfium.FPDF_OBJECT_STRING, pdfium.FPDF_OBJECT_STREAM),
        pdfium.FPDF_OBJECT_REFERENCE,
    ):
        return ""
    return read_string(pdfium.FPDFAnnot_GetStringValue, annotation, key)


def _has_other_value(annotation: Any, key: bytes) -> bool:
    """Say whether a value is there of which PDFium gives no text, such as a list."""
    kind = pdfium.FPDFAnnot_GetValueType(annotation, key)
    return kind in (pdfium.FPDF_OBJECT_ARRAY, pdfium.FPDF_OBJECT_REFERENCE)


def read_string(get: Callable[..., int], *which: Any) -> str:
    """Read a text by one of PDFium's functions."""
    return _read(get, *which).strip()


def _read(get: Callable[..., int], *which: Any) -> str:
    """Read by a function that tells the size if it gets no place for the text."""
    size = get(*which, None, 0)
    if size <= 2:  # the end of a string
        return ""
    buffer = (pdfium.FPDF_WCHAR * (size // 2))()
    get(*which, buffer, ctypes.sizeof(buffer))
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
