"""The titles in the outline of a PDF, which people see beside the pages."""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut
from sightline.readers.pdf_annotations import read_string

_MOST_BOOKMARKS = 10_000
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def count_bookmarks(document: Any, lines: Iterable[str], end: float, left_out: LeftOut) -> None:
    """Count the titles that the lines do not hold, most often as their headings.

    What is left when so much CPU time is used counts too.
    """
    titles = dict.fromkeys(_titles(document, left_out))
    text = _letters("".join(lines)) if titles else ""
    for title in titles:
        if time.process_time() >= end or _letters(title) not in text:
            left_out.text["bookmarks"] += len(title)


def _titles(document: Any, left_out: LeftOut) -> Iterator[str]:
    waiting = [pdfium.FPDFBookmark_GetFirstChild(document, None)]
    seen: set[int] = set()
    while waiting:
        mark = waiting.pop()
        if not mark or ctypes.addressof(mark.contents) in seen:
            continue
        if len(seen) == _MOST_BOOKMARKS:
            left_out.text["bookmarks beyond the limits (files)"] += 1
            return
        seen.add(ctypes.addressof(mark.contents))
        yield read_string(pdfium.FPDFBookmark_GetTitle, mark)
        waiting.append(pdfium.FPDFBookmark_GetNextSibling(document, mark))
        waiting.append(pdfium.FPDFBookmark_GetFirstChild(document, mark))


def _letters(text: str) -> str:
    """Give a text as it is the same however it is broken into lines."""
    return _BETWEEN_WORDS.sub("", text).casefold()
