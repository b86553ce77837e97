"""The native format: one JSON object a line, plain, gzip, Zstandard or, to read, zip.

Reading goes block by block and line by line, so the size of a corpus does not matter. A bad line
is a problem with its file, line and field; the lines around it are still read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

import orjson

from sightline.documents import (
    Document,
    FieldError,
    document_out_of,
    document_to_record,
    documents_out_of,
)
from sightline.files import atomic_writer
from sightline.problems import Problems, SightlineError
from sightline.readers.compression import (
    BUFFER,
    MAX_BLOCK,
    StreamError,
    compressing,
    decompressed,
)

MAX_LINE = MAX_BLOCK  # bytes

_GROUP = 2**15  # bytes of lines decoded together; more no longer fit the processor's cache
_BOM = b"\xef\xbb\xbf"
_TOO_LONG = b"too long"  # known by identity, and no JSON


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

    def document(record: Any, _: int) -> Document:
        return document_out_of(record, allow_empty, path.parent)

    return numbered_documents(json_lines(path, problems), document, path, problems)


def numbered_documents(
    records: Iterable[tuple[int, Any]],
    to_document: Callable[[Any, int], Document],
    path: Path,
    problems: Problems,
) -> Iterator[tuple[int, Document]]:
    """Yield documents out of the records of a file, each with its number.

    What `to_document`, which gets record and number, finds wrong with one is a problem.
    """
    for number, record in records:
        try:
            document = to_document(record, number)
        except FieldError as error:
            problems.add(path, number, error.field, error.reason)
        else:
            yield number, document


def json_lines(
    path: Path, problems: Problems, most: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield each line's number and its JSON value; a line that has none is a problem.

    `most` is how many lines are looked at, blank ones among them.
    """
    for first, lines in _numbered(path, problems):
        if most is not None and first > most:
            return
        for number, line in enumerate(lines if most is None else lines[: most - first + 1], first):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                _add_problem(problems, path, number, line, error)
            else:
                yield number, value


def write_jsonl(
    documents: Iterable[Document],
    path: str | os.PathLike[str],
    to_record: Callable[[Document], dict[str, Any]] = document_to_record,
) -> int:
    """Write documents to a JSONL file, `.gz` or `.zst` by its name; gives their number.

    The file appears whole or not at all, and the same documents give the same bytes. `to_record`
    makes the JSON object of a document, where it is one of another format. Paths of images stay as
    they are, and are read as relative to the file.
    """
    path, count = Path(path), 0
    with atomic_writer(path) as file, compressing(file, path) as out:
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
        return BufferedReader(FileIO(path), BUFFER)
    except IsADirectoryError:
        raise SightlineError(f"{path} is a folder; expected a file.") from None
    except OSError as error:
        raise SightlineError(f"{path}: cannot be read: {error.strerror}.") from error


def _numbered(path: Path, problems: Problems) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines of a file, many at a time, with the number of the first of them."""
    number = 1
    with open_for_reading(path) as file:
        try:
            for lines in _lines(decompressed(file)):
                if number == 1 and lines:
                    lines[0] = lines[0].removeprefix(_BOM)
                yield number, lines
                number += len(lines)
        except StreamError as error:
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
                    line = readline(BUFFER)
                line = _TOO_LONG
            lines.append(line)
            size += len(line)
            if size >= _GROUP:
                yield lines
                lines, size = [], 0
    except StreamError:
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
