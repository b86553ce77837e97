"""Rows out of memory as a corpus: dictionaries, as a `datasets.Dataset` or any loop gives them.

A row has the fields of the native format. Arrays stand for lists, and an image may be given as
what it is instead of where it lies: the bytes of a file, `{"bytes": ..., "path": ...}` as
`datasets` has it, or a Pillow image. Such images are written to files, so that everything that
reads a corpus can read them.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from sightline.corpus import Corpus
from sightline.documents import Document, FieldError, document_out_of, kind
from sightline.files import write_atomically
from sightline.image_headers import EXTENSIONS, recognise
from sightline.problems import Problems, SightlineError

#: Where images that came without a file are written, within the corpus's folder.
IMAGES = "images"
#: How such a corpus is called in problems and messages.
NAME = "rows"

# A dot within a name would be taken for the beginning of a suffix.
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_STEM = 40


def documents_from(
    rows: Iterable[Mapping[str, Any]],
    *,
    folder: str | os.PathLike[str] | None = None,
    split: str | None = None,
    strict: bool = False,
    problems: Problems | None = None,
    allow_empty: bool = False,
) -> Corpus:
    """Make a corpus of dictionaries: a `datasets.Dataset`, a list, a generator.

    Image paths are relative to `folder`, by default the working folder; images that are given as
    bytes or pictures are written to `images/` in it, for which it has to be named, and each once.
    A bad row is a problem with its number, counted from 1; the other arguments are those of `read`.
    Rows that can be gone through only once are kept in memory.
    """
    _check_rows(rows)
    if problems is None:
        problems = Problems(strict=strict)
    elif strict and not problems.strict:
        raise ValueError("strict contradicts the given problems, which are not strict")
    root = Path(folder) if folder is not None else Path()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SightlineError(
            f"{root} cannot be the folder of images: {error.strerror}; name another."
        ) from error
    kept = list(rows) if isinstance(rows, Iterator) else rows
    images = _ImageFolder(root if folder is not None else None)

    def read(_: Path, found: Problems, empty: bool) -> Iterator[Document]:
        for number, row in enumerate(kept, 1):
            try:
                yield document_out_of(_record(row, images), empty, root)
            except FieldError as error:
                found.add(NAME, number, error.field, error.reason)

    return Corpus(Path(NAME), root, read, split, problems, allow_empty)


def _check_rows(rows: object) -> None:
    """Refuse what gives its columns or its parts where rows are expected."""
    if isinstance(rows, Mapping):
        names = ", ".join(map(repr, list(rows)[:5]))
        raise SightlineError(
            f"Expected rows, found one dictionary; give one of its parts: {names}."
        )
    for method, call in (("to_pylist", "to_pylist()"), ("iterrows", "to_dict('records')")):
        if hasattr(rows, method):
            raise SightlineError(f"Expected rows, found a table; give its rows: table.{call}.")


def _record(row: object, images: _ImageFolder) -> Any:
    if not isinstance(row, Mapping):
        return row
    # A table has every column in every row: null says that the document has no such key.
    record = {key: _plain(value) for key, value in row.items() if value is not None}
    if isinstance(record.get("images"), list):
        record["images"] = [images.name(i, image) for i, image in enumerate(record["images"])]
    return record


def _plain(value: Any) -> Any:
    """Lists and plain values in place of arrays and tuples."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


class _ImageFolder:
    """Gives the path of an image; one that has none is written to a file."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def name(self, place: int, image: Any) -> Any:
        field = f"images[{place}]"
        if isinstance(image, os.PathLike):
            return os.fspath(image)
        path = None
        if isinstance(image, Mapping):
            image, path = image.get("bytes"), image.get("path")
            if image is None:
                return path
        if hasattr(image, "save") and hasattr(image, "size"):
            path = path or getattr(image, "filename", None)
            image = _png(image, field)
        if not isinstance(image, bytes | bytearray | memoryview):
            if image is None or isinstance(image, str):
                return image
            raise FieldError(field, f"expected a path, bytes or a picture, found {kind(image)}")
        return self._written(bytes(image), path, field)

    def _written(self, data: bytes, path: object, field: str) -> str:
        if self.folder is None:
            raise SightlineError(
                f"{field} holds the image itself; name a folder that it can be written to: "
                "documents_from(rows, folder=...)."
            )
        digest = hashlib.sha256(data).hexdigest()[:16]
        extension = EXTENSIONS.get(recognise(data) or "")
        suffix = f".{extension}" if extension else ""
        name = f"{IMAGES}/{_stem(path)}{digest}{suffix}"
        file = self.folder / name
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            write_atomically(file, data)
        return name


def _stem(path: object) -> str:
    """The name that an image had, as far as it can be part of a file's name."""
    if not isinstance(path, str):
        return ""
    name = PurePosixPath(PureWindowsPath(path).as_posix()).stem
    plain = _UNSAFE.sub("-", name)[:_STEM].strip("-")
    return f"{plain}-" if plain else ""


def _png(picture: Any, field: str) -> bytes:
    buffer = io.BytesIO()
    try:
        known = picture if picture.mode in ("1", "L", "LA", "P", "RGB", "RGBA") else None
        (known or picture.convert("RGB")).save(buffer, "PNG")
    except (OSError, ValueError, SyntaxError) as error:
        raise FieldError(field, f"a picture that cannot be written: {error}") from error
    return buffer.getvalue()
