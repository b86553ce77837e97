"""The objects of a PDF as they stand in the file, for what PDFium passes over without a word.

They are searched for, not looked up: of objects with the same number the last one counts, as it
does to PDFium where the file's own table is broken.
"""

from __future__ import annotations

import io
import math
import mmap
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from sightline.readers.pdf_filters import FILTERS, MOST_DECODED, from_lzw
from sightline.readers.pdf_words import names_in, packing_of, plain, references

Data = bytes | mmap.mmap

_LARGEST_FILE = 256 * 2**20  # bytes, in address space
_LARGEST_COPY = 64 * 2**20  # bytes of an encrypted file, of which PDFium makes a copy
_MOST_OBJECTS = 500_000
_MOST_PACKED = 64 * 2**20  # bytes of objects that lie in streams, which stay in memory
_MOST_UNPACKED = 256 * 2**20  # bytes of all streams together
_PIECE = 2**20  # bytes
_LONGEST_TABLE = 2 * 2**20  # bytes of the places of objects in a stream
_MOST_SLOW = 2**20  # bytes of a stream that is packed in a way which is slow to unpack
_LONGEST_HEAD = 2**20  # bytes of a dictionary that are looked at
_LONGEST_KEPT = 2**10  # bytes of a dictionary that stay in memory
_LONGEST_PACKING = 2**12  # bytes of an object that says how streams are packed
_OBJECT = re.compile(rb"(?<![0-9])([0-9]{1,10})\s+[0-9]{1,5}\s+obj\b")
_HEAD_END = re.compile(rb">>\s*(?:%[^\r\n]{0,200}[\r\n]\s*){0,3}stream\r?\n?")
_LENGTH = re.compile(rb"/Length\s+([0-9]{1,10})\b(?!\s+[0-9]+\s+R)")
_ROOT = re.compile(rb"/Root\s+([0-9]{1,10})\s")
_PACKS_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b")
_FIRST = re.compile(rb"/First\s+([0-9]{1,9})\b")
_PAGES = re.compile(rb"/Pages\s+([0-9]{1,10})\s")
_KIDS = re.compile(rb"/Kids\s*(?:\[([^\[\]]*)|([0-9]{1,10})\s+[0-9]+\s+R)")
_LATE_CODES = re.compile(rb"/EarlyChange\s+0\b")
_IMAGE_FILTERS = frozenset(
    (
        *(b"DCTDecode", b"DCT", b"CCITTFaxDecode", b"CCF", b"JPXDecode", b"JBIG2Decode"),
        b"Crypt",
    )
)
_ROW_SIZE = re.compile(rb"/(?:Columns|Colors|BitsPerComponent)\s+(-?[0-9]{1,12})")
_EMPTY_LAST_BLOCK = b"\x03\x00"
_DEFLATED = (b"FlateDecode", b"Fl")


@dataclass(slots=True)
class Stored:
    """An object: where its dictionary lies, and its stream if it has one."""

    data: Data
    start: int
    stop: int
    stream: tuple[int, int] | None = None
    #: The file ends before the stream does.
    is_cut: bool = False
    kept: bytes | None = None

    @property
    def head(self) -> bytes:
        """Give the dictionary, or whatever else the object is, without what its strings say."""
        if self.kept is not None:
            return self.kept
        head = plain(self.data[self.start : min(self.stop, self.start + _LONGEST_HEAD)])
        if self.stream and len(head) <= _LONGEST_KEPT:
            self.kept = head
        return head


@dataclass(slots=True)
class Objects:
    """The objects of a file by number, as far as limits of time and memory allow."""

    data: Data
    #: CPU time of the process at which to stop.
    end: float
    by_number: dict[int, Stored] = field(default_factory=dict)
    root: int = 0
    is_whole: bool = True
    nexts: dict[bytes, int] = field(default_factory=dict)
    packed: int = 0
    unpacked: int = 0

    def find(self) -> Objects:
        """Go through the file once, over streams by their length."""
        position = 0
        while found := _OBJECT.search(self.data, position):
            self._find_root(position, found.start())
            if self.is_over() or len(self.by_number) > _MOST_OBJECTS:
                self.is_whole = False
                return self
            stop = self._next(b"endobj", found.end())
            head_end = None
            if self._next(b"stream", found.end()) < stop:
                head_end = _HEAD_END.search(self.data, found.end(), stop)
            if head_end is None:
                stored = Stored(self.data, found.end(), stop)
            else:
                stored = self._with_stream(found.end(), head_end)
            self.by_number[int(found[1])] = stored
            position = stored.stream[1] if stored.stream else stored.stop
            if stored.stream:
                self._find_root(stored.start, stored.stop)
                if _PACKS_OBJECTS.search(stored.head):
                    self._unpack_objects(stored)
        self._find_root(position, len(self.data))
        return self

    def is_over(self) -> bool:
        """Say whether the time is over; what is not looked at then is remembered."""
        if time.process_time() < self.end:
            return False
        self.is_whole = False
        return True

    def _next(self, word: bytes, position: int) -> int:
        """Find a word; what lies far ahead is remembered, so that no byte is searched twice."""
        if self.nexts.get(word, -1) < position:
            found = self.data.find(word, position)
            self.nexts[word] = found if found >= 0 else len(self.data)
        return self.nexts[word]

    def _find_root(self, start: int, stop: int) -> None:
        found = _ROOT.search(self.data, start, stop)
        self.root = int(found[1]) if found else self.root

    def _with_stream(self, start: int, head_end: re.Match[bytes]) -> Stored:
        begin, size = head_end.end(), len(self.data)
        length = _LENGTH.search(self.data, start, head_end.start())
        stop = begin + int(length[1]) if length else size
        if not self.data[stop : stop + 20].lstrip().startswith(b"endstream"):
            stop = min(self._next(b"endstream", begin), self._next(b"endobj", begin))
        return Stored(self.data, start, head_end.start() + 2, (begin, stop), stop == size)

    def _unpack_objects(self, stored: Stored) -> None:
        content = self.unpack(stored, _MOST_PACKED - self.packed)[0] or b""
        self.packed += len(content)
        first = _FIRST.search(stored.head)
        if first is None or self.packed >= _MOST_PACKED or int(first[1]) > _LONGEST_TABLE:
            self.is_whole = False
            return
        begin = int(first[1])
        words = content[: min(begin, _LONGEST_TABLE)].split()
        numbers = [int(word) for word in words if word.isdigit() and len(word) <= 10]
        starts = [min(begin + offset, len(content)) for offset in numbers[1::2]]
        places = sorted({*starts, len(content)})
        stops = dict(zip(places, [*places[1:], len(content)], strict=True))
        room = len(content)
        for number, start in zip(numbers[::2], starts, strict=False):
            room -= stops[start] - start
            if room < 0:  # some lie upon each other
                self.is_whole = False
                return
            self.by_number[number] = Stored(content, start, stops[start])

    def pages(self) -> list[int]:
        """Give the numbers of the pages that the list of pages holds, in its order."""
        root = self.by_number.get(self.root)
        first = _PAGES.search(root.head) if root else None
        waiting = [int(first[1])] if first else []
        pages: list[int] = []
        lists: dict[int, bool] = {}
        while waiting and not self.is_over():
            number = waiting.pop()
            stored = None if number in lists else self.by_number.get(number)
            kids = _KIDS.search(stored.data, stored.start, stored.stop) if stored else None
            if not lists.setdefault(number, kids is not None):
                pages.append(number)
            elif kids is not None:
                waiting += reversed(self.listed(kids))
                if len(waiting) > _MOST_OBJECTS:
                    self.is_whole = False
                    break
        return pages

    def listed(self, found: re.Match[bytes]) -> list[int]:
        """Give the references in a match: its first group, or the object that its second names."""
        if found[2] is None:
            return references(found[1])
        stored = self.by_number.get(int(found[2]))
        return references(stored.head) if stored else []

    def unpack(self, stored: Stored, most: int) -> tuple[bytes | None, bool]:
        """Unpack a stream: gives its first bytes, and whether it can be decoded to its end.

        What is packed as an image, or in a way that nobody knows, gives None.
        """
        start, stop = stored.stream or (0, 0)
        names = self._filters(stored)
        if names is None:
            return stored.data[start : min(stop, start + most)], not stored.is_cut
        if start == stop:
            return b"", True
        if b"/Predictor" in stored.head and not _is_sound_prediction(stored.head):
            return None, False
        if len(names) == 1 and names[0] in _DEFLATED:
            return self._inflate(stored.data, start, stop, most)
        if not {*_DEFLATED, *FILTERS}.issuperset(names):
            known = {*_DEFLATED, *FILTERS, *_IMAGE_FILTERS}.issuperset(names)
            return None, known and not stored.is_cut
        content, is_sound = stored.data[start : min(stop, start + _LARGEST_COPY)], True
        for name in names:
            if self.is_over() or (name not in _DEFLATED and len(content) > _MOST_SLOW):
                self.is_whole = False
                return None, True
            content, is_sound = self._decode(name, content, stored.head)
            if not is_sound:
                break
        return content[:most], is_sound and not stored.is_cut

    def _filters(self, stored: Stored) -> list[bytes] | None:
        """Give the names of the ways in which a stream is packed; None if it is not.

        An empty name stands for what cannot be understood.
        """
        names: list[bytes] = []
        for name, number in packing_of(stored.head) or ():
            other = self.by_number.get(int(number)) if number else None
            if other and other.stop - other.start <= _LONGEST_PACKING:
                names += (inner for inner, _ in names_in(other.head) or ())
            else:
                names.append(name)
        return names or None

    def _decode(self, name: bytes, data: bytes, head: bytes) -> tuple[bytes, bool]:
        if name in _DEFLATED:
            content, is_sound = self._inflate(data, 0, len(data), MOST_DECODED)
        elif FILTERS[name] is from_lzw and _LATE_CODES.search(head):
            content, is_sound = from_lzw(data, early=0)
        else:
            content, is_sound = FILTERS[name](data)
        if self.is_over() or len(content) >= MOST_DECODED:
            self.is_whole = False
        return content, is_sound

    def _inflate(self, data: Data, start: int, stop: int, most: int) -> tuple[bytes, bool]:
        """Unpack to the end in pieces; a wrong checksum tells of damage, a missing one does not."""
        header = data[start : start + 2]
        if len(header) < 2 or header[0] & 15 != 8 or int.from_bytes(header, "big") % 31:
            return b"", not data[start : min(stop, start + 100)].strip()
        unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
        kept: list[bytes] = []
        size, position, waiting, checksum = 0, start + 2, b"", 1
        while not unpacking.eof and (waiting or position < stop):
            if not waiting:
                waiting = data[position : min(stop, position + _PIECE)]
                position += len(waiting)
            try:
                content = unpacking.decompress(waiting, _PIECE)
            except zlib.error:
                return b"".join(kept), False
            waiting = unpacking.unconsumed_tail
            checksum = zlib.adler32(content, checksum)
            if size < most:
                kept.append(content[: most - size])
            size += len(content)
            self.unpacked += len(content)
            if self.is_over() or self.unpacked > _MOST_UNPACKED:
                self.is_whole = False
                return b"".join(kept), True
        if not unpacking.eof:
            return b"".join(kept), _goes_on_after(unpacking)
        position -= len(unpacking.unused_data)
        told = data[position : min(stop, position + 4)]
        return b"".join(kept), len(told) < 4 or int.from_bytes(told, "big") == checksum


def _goes_on_after(unpacking: Any) -> bool:
    """Say whether a stream without an end stops where its packer handed on all that it had."""
    try:
        return not unpacking.decompress(_EMPTY_LAST_BLOCK, 1) and unpacking.eof
    except zlib.error:
        return False


@contextmanager
def open_objects(path: Path, document: Any, end: float) -> Iterator[Objects | None]:
    """Find the objects of a file; None if it is too large or cannot be decrypted."""
    size = path.stat().st_size
    if pdfium.FPDF_GetSecurityHandlerRevision(document) >= 0:
        copy = _decrypted(path) if size <= _LARGEST_COPY else None
        yield None if copy is None else Objects(copy, end).find()
    elif not 0 < size <= _LARGEST_FILE:
        yield None
    else:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield Objects(data, end).find()


def _decrypted(path: Path) -> bytes | None:
    """Give a copy of a file without encryption, as PDFium writes it, not as it is being read."""
    saved = io.BytesIO()
    document = pypdfium2.PdfDocument(path)
    try:
        document.save(saved, flags=pdfium.FPDF_REMOVE_SECURITY)
    except pypdfium2.PdfiumError:
        return None
    finally:
        document.close()
    return saved.getvalue()


def _is_sound_prediction(head: bytes) -> bool:
    """Say whether the sizes of rows that a stream was packed by can be; else PDFium drops it."""
    sizes = [int(size) for size in _ROW_SIZE.findall(head)]
    bits = 1 if b"/BitsPerComponent" in head else 8
    return all(size > 0 for size in sizes) and bits * math.prod(sizes) < 2**31
