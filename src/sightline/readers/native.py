"""The native format: one JSON object a line, plain, gzip, Zstandard or, to read, zip.

Reading goes block by block and line by line, so the size of a corpus does not matter. A bad line
is a problem with its file, line and field; the lines around it are still read.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import IO, Any, Protocol

import orjson
import zstandard

from sightline.documents import (
    Document,
    FieldError,
    document_out_of,
    document_to_record,
    documents_out_of,
)
from sightline.files import atomic_writer
from sightline.problems import Problems, SightlineError

MAX_LINE = 64 * 2**20  # bytes; far above any document, far below what exhausts a machine

_GROUP = 2**15  # bytes of lines decoded together; more no longer fit the processor's cache
_BUFFER = 2**18  # bytes; measured: 3 times the line rate of the default on long lines
# So much input gives about MAX_LINE of output at most, and a decompression bomb costs no more
# memory than one long line: deflate reaches 1032:1, Zstandard holds 128 KiB in 4 bytes.
_GZIP_INPUT = MAX_LINE // 2**10
_ZSTD_INPUT = MAX_LINE // 2**15
# The defaults of the gzip and zstd programs.
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte of 0x50 to 0x5f; pzstd begins files with it
_ZIP_MAGIC = b"PK\x03\x04"
_BOM = b"\xef\xbb\xbf"
_TOO_LONG = b"too long"  # known by identity, and no JSON


class _StreamError(Exception):
    """The compressed stream ends early or is damaged; what came before it is good."""


def read_jsonl(path: Path, problems: Problems, allow_empty: bool = False) -> Iterator[Document]:
    """Yield the documents of a JSONL file; whether it is compressed is seen by its first bytes."""
    folder = path.parent
    # Until a document has further keys: the records of a file are alike.
    plain = not allow_empty
    for first, lines in _numbered(path, problems):
        documents = documents_out_of(lines, folder) if plain else None
        if documents is not None:
            yield from documents
            continue
        for number, line in enumerate(lines, first):
            try:
                document = document_out_of(orjson.loads(line), allow_empty, folder)
            except FieldError as error:
                problems.add(path, number, error.field, error.reason)
            except orjson.JSONDecodeError as error:
                _add_problem(problems, path, number, line, error)
            else:
                plain = plain and not document.extra
                yield document


def numbered_jsonl(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[tuple[int, Document]]:
    """Yield the documents of a JSONL file with their lines, in twice the time of `read_jsonl`."""
    for number, record in json_lines(path, problems):
        try:
            document = document_out_of(record, allow_empty, path.parent)
        except FieldError as error:
            problems.add(path, number, error.field, error.reason)
        else:
            yield number, document


def json_lines(path: Path, problems: Problems) -> Iterator[tuple[int, Any]]:
    """Yield each line's number and its JSON value; a line that has none is a problem."""
    for first, lines in _numbered(path, problems):
        for number, line in enumerate(lines, first):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                _add_problem(problems, path, number, line, error)
            else:
                yield number, value


def write_jsonl(
    documents: Iterable[Document],
    path: Path,
    to_record: Callable[[Document], dict[str, Any]] = document_to_record,
) -> int:
    """Write documents to a JSONL file, `.gz` or `.zst` by its name; gives their number.

    The file appears whole or not at all, and the same documents give the same bytes. `to_record`
    makes the JSON object of a document, where it is one of another format.
    """
    count = 0
    with atomic_writer(path) as file, _compressing(file, path) as out:
        for document in documents:
            try:
                line = orjson.dumps(to_record(document), option=orjson.OPT_APPEND_NEWLINE)
            except (FieldError, TypeError) as error:
                # orjson's own error is a TypeError: a lone surrogate, or a type JSON has not.
                raise SightlineError(
                    f"{path}: document {document.id!r} cannot be written as JSON: {error}"
                ) from error
            out.write(line)
            count += 1
    return count


def open_for_reading(path: Path) -> BufferedReader:
    """Open a file of the user's; what the system refuses ends the command with a sentence."""
    try:
        return BufferedReader(FileIO(path), _BUFFER)
    except OSError as error:
        raise SightlineError(f"{path}: cannot be read: {error.strerror}") from error


def _compressing(file: IO[bytes], path: Path) -> AbstractContextManager[_Writer]:
    if path.suffix == ".gz":
        # No name and no time in the header: the bytes depend on the documents alone.
        return gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
    if path.suffix == ".zst":
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True)
        return compressor.stream_writer(file, closefd=False)
    return nullcontext(file)


class _Writer(Protocol):
    def write(self, data: bytes, /) -> int: ...


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _decompressed(file: BufferedReader) -> BufferedReader:
    start = file.peek(4)[:4]
    if start.startswith(_GZIP_MAGIC):
        blocks = _blocks(file, _GZIP_INPUT, lambda: zlib.decompressobj(wbits=31))
    elif start == _ZSTD_MAGIC or start[1:] == _ZSTD_SKIPPABLE:
        blocks = _blocks(file, _ZSTD_INPUT, zstandard.ZstdDecompressor().decompressobj)
    elif start == _ZIP_MAGIC:
        blocks = _zip_blocks(file)
    else:
        return file
    return BufferedReader(_BlockFile(blocks), _BUFFER)


def _blocks(file: BufferedReader, size: int, new: Callable[[], _Decoder]) -> Iterator[bytes]:
    """Decompress stream after stream: joining two compressed files is a common way to append.

    The file objects of gzip and zstandard will not do: one loses the good bytes before an early
    end, the other takes it for the end.
    """
    decoder: _Decoder | None = None
    while data := file.read(size):
        while data:
            decoder = decoder or new()
            try:
                block = decoder.decompress(data)
            except (zlib.error, zstandard.ZstdError) as error:
                reason = f"the compressed data is damaged, here or earlier ({error})"
                raise _StreamError(reason) from None
            yield block
            if not decoder.eof:
                break
            data = decoder.unused_data.lstrip(b"\0")  # gzip allows padding after a stream
            decoder = None
    if decoder is not None:
        raise _StreamError("the compressed data ends early, the lines before this one are kept")


def _zip_blocks(file: BufferedReader) -> Iterator[bytes]:
    """Decompress the one .jsonl file of a zip archive, which is how MMC4's shards are published."""
    import zipfile

    # The others are decompressed without a limit on what comes out.
    known = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    try:
        with zipfile.ZipFile(file) as archive:
            found = [info for info in archive.infolist() if info.filename.endswith(".jsonl")]
            if len(found) != 1 or found[0].compress_type not in known:
                raise _StreamError("expected a zip archive with one .jsonl file, deflated")
            with archive.open(found[0]) as member:
                while block := member.read(_BUFFER):
                    yield block
    # zipfile raises the last two for versions of the format, and for passwords, that it cannot do.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _StreamError(f"the zip archive is damaged, here or earlier ({error})") from None


class _BlockFile(RawIOBase):
    """Blocks of bytes as a file, for the line buffering that Python does well."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _numbered(path: Path, problems: Problems) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines of a file, many at a time, with the number of the first of them."""
    number = 1
    with open_for_reading(path) as file:
        try:
            for lines in _lines(_decompressed(file)):
                if number == 1 and lines:
                    lines[0] = lines[0].removeprefix(_BOM)
                yield number, lines
                number += len(lines)
        except _StreamError as error:
            problems.cut_off(path, number, str(error))


def _lines(file: BufferedReader) -> Iterator[list[bytes]]:
    """Yield the lines in groups of about _GROUP bytes.

    A line over MAX_LINE is thrown away piece by piece, and _TOO_LONG stands in its place.
    """
    readline = file.readline
    lines: list[bytes] = []
    size = 0
    try:
        while line := readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                while line and not line.endswith(b"\n"):
                    line = readline(_BUFFER)
                line = _TOO_LONG
            lines.append(line)
            size += len(line)
            if size >= _GROUP:
                yield lines
                lines, size = [], 0
    except _StreamError:
        yield lines  # they are good
        raise
    yield lines


def _add_problem(
    problems: Problems, path: Path, number: int, line: bytes, error: orjson.JSONDecodeError
) -> None:
    """Say what is wrong with a line that is no JSON, unless it is blank."""
    if line is _TOO_LONG:
        problems.add(path, number, None, f"longer than {MAX_LINE // 2**20} MiB")
    elif line and not line.isspace():
        problems.add(path, number, None, _json_reason(line, error))


def _json_reason(line: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as bad:
        return f"not valid UTF-8 at byte {bad.start + 1} of the line"
    # Not str(error), whose "line 1" would be taken for a line of the file.
    return f"not valid JSON at column {error.colno}: {error.msg}"
