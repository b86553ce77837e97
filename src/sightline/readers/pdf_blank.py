"""Which pages of a PDF are blank, and which could not be decoded."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

from sightline.readers.pdf_objects import Objects
from sightline.readers.pdf_words import references

# Of copies of pages, as PDFium writes them:
_LARGEST_FILE = 64 * 2**20  # bytes; what has no filter is packed for the copy, which takes time
_LONGEST_BLANK = 2**20  # bytes of contents that show nothing
_MOST_STREAMS = 100  # of contents that show nothing
_CONTENTS = re.compile(rb"/Contents\s*\[?((?:\s*\d+ 0 R)+)")
_SHOWS = re.compile(rb"\b(?:Tj|TJ|Do)\b|['\"]")


def count_undecoded(path: Path, numbers: Sequence[int], end: float) -> int:
    """Count those of the pages without objects that are not blank.

    PDFium says nothing of contents that it cannot decode, nor gives them as they stand in the
    file; a copy of those pages alone, saved to memory, holds them. Where that does not tell
    whether a page is blank, it counts: better one too many.
    """
    if not numbers or path.stat().st_size > _LARGEST_FILE:
        return len(numbers)
    # Annotations are drawn into the pages of the document that is being read.
    document, copy = pypdfium2.PdfDocument(path), pypdfium2.PdfDocument.new()
    saved = io.BytesIO()
    try:
        # Where objects had to be searched for, contents may be among those that are lost.
        is_whole = bool(pdfium.FPDF_DocumentHasValidCrossReferenceTable(document))
        copy.import_pages(document, list(numbers))
        copy.save(saved)
    except pypdfium2.PdfiumError:
        return len(numbers)
    finally:
        copy.close()
        document.close()
    objects = Objects(saved.getvalue(), end).find()
    blank = sum(_is_blank(objects, page, is_whole) for page in objects.pages())
    return len(numbers) - blank


def _is_blank(objects: Objects, page: int, is_whole: bool) -> bool:
    """Say whether a page is blank; one without any contents is if the file is whole."""
    stored = objects.by_number.get(page)
    found = _CONTENTS.findall(stored.head) if stored else []
    parts = [number for contents in found for number in references(contents)]
    if not parts:
        return is_whole
    streams = [stream for part in parts[: _MOST_STREAMS + 1] for stream in _streams(objects, part)]
    blank = (_shows_nothing(objects, number) for number in streams)
    return len(streams) <= _MOST_STREAMS and all(blank)


def _streams(objects: Objects, number: int) -> list[int]:
    """Give the numbers of the streams that an object lists, or its own if it is no list."""
    stored = objects.by_number.get(number)
    is_list = stored and stored.head.lstrip().startswith(b"[")
    return references(stored.head) if stored and is_list else [number]


def _shows_nothing(objects: Objects, number: int) -> bool:
    """Say whether an object is a stream that can be decoded and shows nothing."""
    stored = objects.by_number.get(number)
    if stored is None or stored.stream is None:
        return False
    content, is_sound = objects.unpack(stored, _LONGEST_BLANK)
    if content is None or len(content) == _LONGEST_BLANK or not is_sound:
        return False
    return content.isascii() and not _SHOWS.search(content)
