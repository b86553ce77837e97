"""WebDataset: tar shards in which the files of one sample share their name up to the first dot.

    000123.json  000123.0.jpg  000123.1.png     a document and its images
    000124.jpg   000124.txt                     a pair: one image, one sentence

The `.json` is a document in the native format, MMC4's or OBELICS's. Shards are read file after
file, nothing is extracted, and names of files in them are never used as paths. See
https://github.com/webdataset/webdataset for the convention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import orjson

from sightline.documents import Document, FieldError, document_from_record, document_to_record
from sightline.image_headers import SUFFIXES
from sightline.problems import Problems, SightlineError
from sightline.readers.native import MAX_LINE, open_for_reading
from sightline.readers.recognition import document_from_any, format_of
from sightline.readers.tar_members import Member, TarError, tar_members
from sightline.readers.tar_shards import SUFFIX

NAME = "webdataset"
MAX_IMAGE = 100_000_000  # bytes; what `images.Limits` allows a file

_MAX_MEMBERS = 10_000  # of one sample
# The whole path up to the first dot of the file name, as WebDataset's own readers split it.
_NAME = re.compile(r"((?:.*/|)[^./]+)\.([^/]+)", re.S)
# What macOS puts beside every file of an archive: the file's attributes, no content.
_METADATA = "._"
_NUMBERED = re.compile(r"(\d{1,6})\.[^.]+")


@dataclass(frozen=True, slots=True)
class Sample:
    """One document of a shard, and where its images lie; good until the next one is asked for."""

    document: Document
    images: tuple[Member | None, ...]  # None for an image that the shard does not hold
    others: int  # files of the sample that are neither the document nor an image of it
    file: BufferedReader
    #: The shard, and the name that the files of the sample share.
    place: tuple[Path, str]

    def image(self, index: int) -> bytes | None:
        """Read the file of an image, if the shard holds it."""
        member = self.images[index]
        if member is None or member.size > MAX_IMAGE:
            return None
        return _read(self.file, member)


def read_webdataset(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[Document]:
    """Yield the documents of a shard, or of all shards of a folder in the order of their names."""
    for sample in read_samples(path, problems, allow_empty):
        yield sample.document


def read_samples(path: Path, problems: Problems, allow_empty: bool = False) -> Iterator[Sample]:
    """Yield the samples of a shard, or of a folder of shards; a problem's line is the sample."""
    for shard in shards(path) if path.is_dir() else [path]:
        with open_for_reading(shard) as file:
            for key, parts in _groups(shard, file, problems):
                try:
                    yield _sample((shard, key), parts, file, allow_empty)
                except FieldError as error:
                    problems.add(shard, key, error.field, error.reason)


def is_webdataset(path: Path) -> bool:
    """Whether this file of a corpus is a shard, or a folder of shards."""
    return path.suffix == SUFFIX or path.is_dir()


def shards(folder: Path) -> list[Path]:
    """Give the shards of a folder in the order of their names."""
    return sorted(file for file in folder.glob(f"*{SUFFIX}") if file.is_file())


def sample_files(
    document: Document, images: Iterable[tuple[int, str, bytes]]
) -> Iterator[tuple[str, bytes]]:
    """Give the files of a document's sample, for `tar_shards` to write.

    `images` are its image files: index, extension without dot, bytes.
    """
    try:
        record = orjson.dumps(document_to_record(document))
    except (FieldError, TypeError) as error:
        raise SightlineError(
            f"document {document.id!r} cannot be written as JSON: {error}"
        ) from error
    yield "json", record
    for index, extension, data in images:
        yield f"{index}.{extension}", data


def _groups(
    shard: Path, file: BufferedReader, problems: Problems
) -> Iterator[tuple[str, dict[str, Member]]]:
    """Yield each sample's key and its files by what follows the key; neighbours belong together."""
    key: str | None = None
    parts: dict[str, Member] = {}
    try:
        for member in tar_members(file):
            name = _NAME.fullmatch(member.name)
            if member.other is not None:
                problems.add(shard, member.name, None, f"{member.other}, which is ignored")
            elif name is not None:
                if name[1] != key:
                    if key is not None:
                        yield key, parts
                    key, parts = name[1], {}
                _add(shard, member, name[2].lower(), parts, problems)
            elif not member.name.rpartition("/")[2].startswith(_METADATA):
                problems.add(shard, member.name, None, "ignored: no part of a sample by its name")
    except TarError as error:
        problems.cut_off(shard, key, f"{error}; what came before is kept")
        cut = _NAME.fullmatch(error.name)
        if cut is not None and cut[1] == key:
            return
    if key is not None:
        yield key, parts


def _add(
    shard: Path, member: Member, extension: str, parts: dict[str, Member], problems: Problems
) -> None:
    if extension in parts:
        problems.add(shard, member.name, None, "a second file of this name, which is ignored")
    elif len(parts) >= _MAX_MEMBERS:
        reason = f"ignored: its sample has more than {_MAX_MEMBERS:,} files"
        problems.add(shard, member.name, None, reason)
    else:
        parts[extension] = member


def _sample(
    place: tuple[Path, str], parts: dict[str, Member], file: BufferedReader, allow_empty: bool
) -> Sample:
    key = place[1]
    record = _json(parts, file)
    pictures = {ext: member for ext, member in parts.items() if _is_image(ext)}
    names = [f"images/{member.name.rpartition('/')[2]}" for member in pictures.values()]
    if isinstance(record, dict) and format_of(record) is not None:
        if "sentences" in record:
            record.setdefault("id", key)
            record.setdefault("images", names)
        document = document_from_any(record, key, allow_empty)
        used = {"json"}
    elif "txt" in parts:
        # What else is said of the pair, by img2dataset for one, is kept.
        further = {NAME: {"json": record}} if "json" in parts else {}
        text = _text(parts["txt"], file)
        pair = {"id": key, "sentences": [text], "images": names, **further}
        document = document_from_record(pair, allow_empty)
        used = {"json", "txt"}
    else:
        raise FieldError(None, "expected a document in a .json file or a text in a .txt file")
    images = _find_images(document, pictures)
    placed = {member.name for member in images if member is not None}
    return Sample(document, images, len(parts.keys() - used) - len(placed), file, place)


def _find_images(document: Document, pictures: dict[str, Member]) -> tuple[Member | None, ...]:
    """Find each image's file: by its number, by its name, or as the only one."""
    numbered = {
        int(ext.partition(".")[0]): m for ext, m in pictures.items() if _NUMBERED.fullmatch(ext)
    }
    named = {m.name.rpartition("/")[2].lower(): m for m in pictures.values()} | pictures
    if len(pictures) == len(document.images) == 1:
        return tuple(pictures.values())
    if numbered:
        return tuple(numbered.get(index) for index in range(len(document.images)))
    return tuple(named.get(image.rpartition("/")[2].lower()) for image in document.images)


def _is_image(extension: str) -> bool:
    return f".{extension.rpartition('.')[2]}" in SUFFIXES


def _json(parts: dict[str, Member], file: BufferedReader) -> Any:
    if "json" not in parts:
        return None
    data = _read_limited(parts["json"], file)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        reason = f"not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise FieldError("json", reason) from None


def _text(member: Member, file: BufferedReader) -> str:
    try:
        return _read_limited(member, file).decode().strip()
    except UnicodeDecodeError as error:
        raise FieldError("txt", f"not valid UTF-8 at byte {error.start + 1}") from None


def _read_limited(member: Member, file: BufferedReader) -> bytes:
    if member.size > MAX_LINE:
        extension = member.name.rpartition(".")[2]
        raise FieldError(extension, f"longer than {MAX_LINE // 2**20} MiB")
    return _read(file, member)


def _read(file: BufferedReader, member: Member) -> bytes:
    file.seek(member.offset)
    return file.read(member.size)
