"""What lies over a PDF page: filled-in forms, notes and stamps, which people see as part of it.

What is shown is drawn into the page, where it is read like all other text; what only opens on a
click, or is not shown at all, is counted.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut

MAX_ANNOTATIONS = 10_000  # of a page
_HIDDEN = (
    pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_INVISIBLE | pdfium.FPDF_ANNOT_FLAG_NOVIEW
)
# Areas to click, the windows of comments, and marks on text: they draw no text of their own.
_DRAW_NO_TEXT = frozenset(
    (
        *(pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_TEXT),
        *(pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE, pdfium.FPDF_ANNOT_SQUIGGLY),
        *(pdfium.FPDF_ANNOT_STRIKEOUT, pdfium.FPDF_ANNOT_CARET, pdfium.FPDF_ANNOT_FILEATTACHMENT),
    )
)


def show_annotations(page: Any, left_out: LeftOut) -> bool:
    """Draw annotations into the page; says whether any was, so that it has to be loaded anew."""
    count = pdfium.FPDFPage_GetAnnotCount(page)
    if count > MAX_ANNOTATIONS:
        left_out.text["annotations beyond the limits (number)"] += count
        return False
    shown = [_look_at(page, index, left_out) for index in range(count)]
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


def _look_at(page: Any, index: int, left_out: LeftOut) -> bool:
    """Count the text of an annotation that is not shown; says whether it is to be drawn."""
    annotation = pdfium.FPDFPage_GetAnnot(page, index)
    if not annotation:
        left_out.text["annotations that cannot be read (number)"] += 1
        return False
    try:
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        if kind in (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP):
            return False  # a link's text is on the page, that of a window at what opens it
        is_field = kind == pdfium.FPDF_ANNOT_WIDGET
        text = _string(annotation, b"V" if is_field else b"Contents")
        mode = pdfium.FPDF_ANNOT_APPEARANCEMODE_NORMAL
        is_drawn = pdfium.FPDFAnnot_GetAP(annotation, mode, None, 0) > 2  # the end of a string
        if pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
            left_out.text["hidden"] += text
            return False
        if kind == pdfium.FPDF_ANNOT_FREETEXT or is_field:
            if not is_drawn:
                left_out.text["form fields and notes that are not drawn"] += text
        else:
            left_out.text["comments"] += text
        return is_drawn and kind not in _DRAW_NO_TEXT
    finally:
        pdfium.FPDFPage_CloseAnnot(annotation)


def _string(annotation: Any, key: bytes) -> int:
    """Give how many characters a text of an annotation has."""
    if pdfium.FPDFAnnot_GetValueType(annotation, key) != pdfium.FPDF_OBJECT_STRING:
        return 0
    size = pdfium.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = (pdfium.FPDF_WCHAR * max(1, size // 2))()
    pdfium.FPDFAnnot_GetStringValue(annotation, key, buffer, ctypes.sizeof(buffer))
    return len(bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").strip())
