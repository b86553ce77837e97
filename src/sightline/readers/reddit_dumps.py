"""Reddit submissions, from the monthly dumps that Pushshift made: JSON lines, compressed or not.

    {"id": "5gnfr3", "subreddit": "DIY", "score": 1480, "url": "http://imgur.com/a/4ov7Z",
     "is_self": false, "domain": "imgur.com", "title": "...", ...}

These are the fields of Reddit's own API, described with the dumps (Baumgartner et al., "The
Pushshift Reddit Dataset", ICWSM 2020). `RS_2013-01.bz2` and the like are bzip2, xz or Zstandard.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import orjson
import zstandard

from sightline.documents import FieldError
from sightline.problems import Problems
from sightline.progress import Progress
from sightline.readers.compression import Decoder, decompressed_blocks
from sightline.readers.json_records import as_object, id_field, number_field, text_field
from sightline.readers.native import MAX_LINE, open_for_reading

# The dumps are packed with `zstd --long=31`: unpacking takes 2 GiB of memory, and zstandard has to
# be told that this is meant. It is also the most that its 32-bit builds could address.
_ZSTD_WINDOW = 2**31
_XZ_MEMORY = 2**31
# Bytes read at a time. Few, because these formats can hold 10,000 times as much or more.
_BLOCK = 2**12
# Progress is told of so many lines at a time: a call for each would take as long as reading it.
_LINES = 10_000
_DAMAGE = (OSError, EOFError, MemoryError, lzma.LZMAError, zlib.error, zstandard.ZstdError)
_ALBUM = re.compile(r"https?://(?:[\w-]+\.)*imgur\.com/(?:[^?#]*/)?a/([A-Za-z0-9-]+)", re.I)


@dataclass(frozen=True, slots=True)
class Post:
    """A submission that links to an album."""

    id: str
    album: str
    score: int
    title: str | None


def read_posts(
    files: Iterable[Path],
    *,
    subreddit: str,
    minimum_score: int,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Post]:
    """Yield the submissions to a subreddit that link to an imgur album, with such a score at least.

    Lines that do not name the subreddit anywhere are not even parsed; that is most of them.
    """
    name, elsewhere = subreddit.lower().encode(), f"submissions not to {subreddit}"
    with Progress("reading dumps", None, "submissions") as progress:
        for path in files:
            for number, line in _lines(path, problems):
                if not number % _LINES:
                    progress.advance(_LINES)
                if name not in line.lower():
                    dropped[elsewhere] += bool(line)
                    continue
                try:
                    post = _post(orjson.loads(line), subreddit, minimum_score, dropped)
                except orjson.JSONDecodeError as error:
                    problems.add(path, number, None, f"not valid JSON: {error.msg}")
                except FieldError as error:
                    problems.add(path, number, error.field, error.reason)
                else:
                    if post is not None:
                        yield post


def album_id(url: str) -> str | None:
    """Give the id of the imgur album that a URL leads to; None if it leads to none."""
    found = _ALBUM.match(url)
    # Newer ones have words before it: /a/a-table-of-oak-4ov7Z
    return found[1].rpartition("-")[2] or None if found else None


def _post(value: object, subreddit: str, minimum_score: int, dropped: Counter[str]) -> Post | None:
    record = as_object(value)
    if text_field(record, "subreddit").lower() != subreddit.lower():
        dropped[f"submissions not to {subreddit}"] += 1
        return None
    score = number_field(record, "score")
    if score < minimum_score:
        dropped[f"submissions with a score below {minimum_score}"] += 1
        return None
    album = None if record.get("is_self") is True else album_id(text_field(record, "url"))
    if album is None:
        dropped["submissions that link to no imgur album"] += 1
        return None
    title = record.get("title")
    return Post(id_field(record, "id"), album, score, title if type(title) is str else None)


# ---- lines of compressed files


def _lines(path: Path, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a dump with their numbers; of a damaged one, those before the damage."""
    number = 0
    parts: list[bytes] = []
    length = 0
    with open_for_reading(path) as file:
        try:
            for block in _blocks(file):
                first, newline, rest = block.partition(b"\n")
                length += len(first)
                if length <= MAX_LINE:
                    parts.append(first)
                if not newline:
                    continue
                number += 1
                if length <= MAX_LINE:
                    yield number, b"".join(parts)
                else:
                    problems.add(path, number, None, f"longer than {MAX_LINE // 2**20} MiB")
                *whole, last = rest.split(b"\n")
                yield from enumerate(whole, start=number + 1)
                number += len(whole)
                parts, length = [last], len(last)
        except _DAMAGE as error:
            reason = f"the compressed data is damaged or cut off, here or earlier ({error})"
            problems.add(path, number + 1, None, reason)
            return
    if length and length <= MAX_LINE:
        yield number + 1, b"".join(parts)


def _blocks(file: BufferedReader) -> Iterator[bytes]:
    """Decompress by what the file begins with; streams that were joined follow each other."""
    new = _decoder(file.peek(6))
    if new is None:
        while block := file.read(_BLOCK * 64):
            yield block
    else:
        yield from decompressed_blocks(file, _BLOCK, new)


def _decoder(start: bytes) -> Callable[[], Decoder] | None:
    if start.startswith(b"BZh"):
        return bz2.BZ2Decompressor
    if start.startswith(b"\xfd7zXZ"):
        return lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    if start.startswith(b"\x1f\x8b"):
        return lambda: zlib.decompressobj(wbits=31)
    # Or a skippable frame, which some tools begin with.
    if start.startswith(b"\x28\xb5\x2f\xfd") or start[1:4] == b"\x2a\x4d\x18":
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
    return None
