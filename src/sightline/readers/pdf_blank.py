"""Which pages of a PDF are blank, and which could not be decoded."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

# Of copies of pages, as PDFium writes them:
_LARGEST_FILE = 64 * 2**20  # bytes; what has no filter is packed for the copy, which takes time
_LONGEST_BLANK = 2**20  # bytes of contents that show nothing
_MOST_STREAMS = 100  # of contents that show nothing
_KIDS = re.compile(rb"/Kids\s*\[([^\]]*)\]")
_OBJECT = re.compile(rb"\n(\d+) 0 obj\s*")
_REFERENCE = re.compile(rb"(\d+) 0 R")
_CONTENTS = re.compile(rb"/Contents\s*\[?((?:\s*\d+ 0 R)+)")
_FILTER = re.compile(rb"/Filter\s*(\[[^\]]*\]|/\w+)")
_DEFLATED = (b"FlateDecode", b"Fl")  # so PDFium saves also what has no filter
_SHOWS = re.compile(rb"\b(?:Tj|TJ|Do)\b|['\"]")


def count_undecoded(path: Path, numbers: Sequence[int]) -> int:
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
    return len(numbers) - _Copy(saved.getvalue()).count_blank(is_whole)


class _Copy:
    """A file as PDFium writes it: no packed objects, no comments, one place for each number."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.places: dict[bytes, int] = {}
        for found in _OBJECT.finditer(data):
            self.places.setdefault(found[1], found.end())

    def count_blank(self, is_whole: bool) -> int:
        """Count blank pages; one without any contents is blank if the file is whole."""
        pages = _KIDS.search(self.data)
        numbers = _REFERENCE.findall(pages[1]) if pages else []
        return sum(self._is_blank(number, is_whole) for number in numbers)

    def _is_blank(self, page: bytes, is_whole: bool) -> bool:
        contents = _CONTENTS.findall(self._head(page, b"endobj"))
        parts = [number for found in contents for number in _REFERENCE.findall(found)]
        if not parts:
            return is_whole
        streams = [stream for part in parts[: _MOST_STREAMS + 1] for stream in self._streams(part)]
        return len(streams) <= _MOST_STREAMS and all(map(self._shows_nothing, streams))

    def _head(self, number: bytes, end: bytes) -> bytes:
        """Give an object up to a word."""
        start = self.places.get(number, len(self.data))
        return self.data[start : max(start, self.data.find(end, start))]

    def _streams(self, number: bytes) -> list[bytes]:
        """Give the numbers of the streams that an object lists, or its own if it is no list."""
        head = self._head(number, b"endobj")
        return _REFERENCE.findall(head) if head.startswith(b"[") else [number]

    def _shows_nothing(self, number: bytes) -> bool:
        """Say whether an object is a stream that can be decoded and shows nothing."""
        head = self._head(number, b"stream")
        if b"endobj" in head or not head:
            return False
        start = self.places[number] + len(head) + len(b"stream")
        packed = self.data[start : start + _LONGEST_BLANK].lstrip(b"\r\n")
        if packed.startswith(b"endstream"):
            return True
        packing = _FILTER.search(head)
        if packing is None or packing[1].strip(b"[]/ ") not in _DEFLATED:
            return False
        unpacking = zlib.decompressobj()
        try:
            content = unpacking.decompress(packed, _LONGEST_BLANK)
        except zlib.error:
            return False
        return unpacking.eof and content.isascii() and not _SHOWS.search(content)
