"""Compressed files: gzip, Zstandard or, to read, zip, known by their first bytes.

They are read block by block. A damaged file gives all that stands before the damage.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, Protocol

import zstandard

#: Bytes that are decompressed at a time; far above any document, far below what exhausts a machine.
MAX_BLOCK = 64 * 2**20
BUFFER = 2**18  # bytes; measured: 3 times the line rate of the default on long lines
# So much input gives about MAX_BLOCK of output at most, and a decompression bomb costs no more
# memory than one long line: deflate reaches 1032:1, Zstandard holds 128 KiB in 4 bytes.
_GZIP_INPUT = MAX_BLOCK // 2**10
_ZSTD_INPUT = MAX_BLOCK // 2**15
# The defaults of the gzip and zstd programs.
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte of 0x50 to 0x5f; pzstd begins files with it
_ZIP_MAGIC = b"PK\x03\x04"


class StreamError(Exception):
    """The compressed stream ends early or is damaged; what came before it is good."""


def compressing(file: IO[bytes], path: Path) -> AbstractContextManager[_Writer]:
    """Compress what is written to a file, as the file's name says."""
    if path.suffix == ".gz":
        # No name and no time in the header: the bytes depend on the documents alone.
        return gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
    if path.suffix == ".zst":
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True)
        return compressor.stream_writer(file, closefd=False)
    return nullcontext(file)


class _Writer(Protocol):
    def write(self, data: bytes, /) -> int: ...


class Decoder(Protocol):
    """What decompresses one stream of a file."""

    @property
    def eof(self) -> bool:
        """Whether the stream is over."""

    @property
    def unused_data(self) -> bytes:
        """What it was given of the next stream."""

    def decompress(self, data: bytes, /) -> bytes:
        """Give what these bytes hold."""


def decompressed(file: BufferedReader) -> BufferedReader:
    """Give what a file holds; where that ends too early, reading raises `StreamError`."""
    start = file.peek(4)[:4]
    if start.startswith(_GZIP_MAGIC):
        blocks = _blocks(file, _GZIP_INPUT, lambda: zlib.decompressobj(wbits=31))
    elif start == _ZSTD_MAGIC or start[1:] == _ZSTD_SKIPPABLE:
        blocks = _blocks(file, _ZSTD_INPUT, zstandard.ZstdDecompressor().decompressobj)
    elif start == _ZIP_MAGIC:
        blocks = _zip_blocks(file)
    else:
        return file
    return BufferedReader(_BlockFile(blocks), BUFFER)


def _blocks(file: BufferedReader, size: int, new: Callable[[], Decoder]) -> Iterator[bytes]:
    try:
        yield from decompressed_blocks(file, size, new)
    except EOFError:
        reason = "the compressed data ends early"
        raise StreamError(reason) from None
    except (zlib.error, zstandard.ZstdError) as error:
        reason = f"the compressed data is damaged, here or earlier ({error})"
        raise StreamError(reason) from None


def decompressed_blocks(
    file: BufferedReader, size: int, new: Callable[[], Decoder]
) -> Iterator[bytes]:
    """Decompress stream after stream: joining two compressed files is a common way to append.

    The file objects of gzip and zstandard will not do: one loses the good bytes before an early
    end, the other takes it for the end. Here that is an `EOFError`, once the good bytes are out.
    """
    decoder: Decoder | None = None
    while data := file.read(size):
        while data:
            decoder = decoder or new()
            yield decoder.decompress(data)
            if not decoder.eof:
                break
            data = decoder.unused_data.lstrip(b"\0")  # gzip allows padding after a stream
            decoder = None
    if decoder is not None:
        raise EOFError("it ends early")


def _zip_blocks(file: BufferedReader) -> Iterator[bytes]:
    """Decompress the one .jsonl file of a zip archive, which is how MMC4's shards are published."""
    import zipfile

    # The others are decompressed without a limit on what comes out.
    known = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    try:
        with zipfile.ZipFile(file) as archive:
            found = [info for info in archive.infolist() if info.filename.endswith(".jsonl")]
            if len(found) != 1 or found[0].compress_type not in known:
                raise StreamError("expected a zip archive with one .jsonl file, deflated")
            with archive.open(found[0]) as member:
                while block := member.read(BUFFER):
                    yield block
    # zipfile raises the last three for what it cannot do, such as passwords, and for places before
    # the beginning of the file.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
        raise StreamError(f"the zip archive is damaged, here or earlier ({error})") from None


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
