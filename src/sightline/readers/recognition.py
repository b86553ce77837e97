"""Which format a record is in, by its keys: native, MMC4 or OBELICS; or a result of ours.

The three share file types, so the first record of a file that has a format's keys decides for the
file, and each document of a WebDataset shard for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from sightline.documents import Document, document_from_record
from sightline.problems import Problems, SightlineError
from sightline.readers.mmc4 import document_from_mmc4, numbered_mmc4, read_mmc4
from sightline.readers.native import json_lines, numbered_jsonl, read_jsonl
from sightline.readers.obelics import document_from_obelics, numbered_obelics, read_obelics
from sightline.readers.parquet import numbered_parquet, parquet_columns, read_parquet

#: Lines at the head of a file that may tell what it is; without an answer in them it is taken for
#: native, which then reports what is wrong. A few kilobytes may unpack to millions of lines.
_MOST_LINES = 1000
# Keys that no format of documents has together.
_PAIR = {"image", "sentence", "score", "document"}
_AUDIT = {"article", "findings", "images"}


def format_of(keys: Collection[str]) -> str | None:
    """Name the format that has these keys; None if no format has."""
    if "sentences" in keys:
        return "native"
    if "text_list" in keys or "image_info" in keys:
        return "mmc4"
    return "obelics" if "texts" in keys else None


def are_link_records(path: Path) -> bool:
    """Whether a JSONL file holds link records; the first that has images decides."""
    return _first_told(path, _is_link_record)


def are_results(path: Path) -> bool:
    """Whether a JSONL file holds what Sightline writes: link records, pairs or an audit."""
    return _first_told(path, _is_result)


def _first_told(path: Path, told: Callable[[dict[str, Any]], bool | None]) -> bool:
    if ".jsonl" not in path.suffixes or not path.is_file():
        return False
    try:
        for _, record in json_lines(path, Problems(keep=0), _MOST_LINES):
            answer = told(record) if isinstance(record, dict) else False
            if answer is not None:
                return answer
    except SightlineError:  # who reads the file says why it cannot be
        pass
    return False


def _is_link_record(record: dict[str, Any]) -> bool | None:
    """Images of link records are objects, those of documents are names; None if there are none."""
    images = record.get("images")
    if not isinstance(images, list) or "links" not in record:
        return False
    return isinstance(images[0], dict) if images else None


def _is_result(record: dict[str, Any]) -> bool | None:
    return record.keys() >= _PAIR or record.keys() >= _AUDIT or _is_link_record(record)


def document_from_any(record: dict[str, object], place: str, allow_empty: bool) -> Document:
    """Make a document of a record in whichever format it is."""
    name = format_of(record)
    if name == "mmc4":
        return document_from_mmc4(record, place, allow_empty)
    if name == "obelics":
        return document_from_obelics(record, place, allow_empty)
    return document_from_record(record, allow_empty)


def read_any_jsonl(path: Path, problems: Problems, allow_empty: bool = False) -> Iterator[Document]:
    """Yield the documents of a JSONL file, in the format of its first record."""
    return _READERS[_jsonl_format(path)](path, problems, allow_empty)


def read_any_parquet(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[Document]:
    """Yield the documents of a Parquet file, in the format that its columns tell."""
    is_obelics = format_of(parquet_columns(path)) == "obelics"
    return (read_obelics if is_obelics else read_parquet)(path, problems, allow_empty)


def numbered_any(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[tuple[int, Document]]:
    """Yield the documents of a JSONL or Parquet file with their lines or rows."""
    if path.suffix == ".parquet":
        is_obelics = format_of(parquet_columns(path)) == "obelics"
        return (numbered_obelics if is_obelics else numbered_parquet)(path, problems, allow_empty)
    return _NUMBERED[_jsonl_format(path)](path, problems, allow_empty)


_READERS: dict[str, Callable[[Path, Problems, bool], Iterator[Document]]] = {
    "native": read_jsonl,
    "mmc4": read_mmc4,
    "obelics": read_obelics,
}
_NUMBERED: dict[str, Callable[[Path, Problems, bool], Iterator[tuple[int, Document]]]] = {
    "native": numbered_jsonl,
    "mmc4": numbered_mmc4,
    "obelics": numbered_obelics,
}


def _jsonl_format(path: Path) -> str:
    for _, record in json_lines(path, Problems(keep=0), _MOST_LINES):
        if isinstance(record, dict) and (name := format_of(record)) is not None:
            if name == "native" and _is_link_record(record):
                raise SightlineError(
                    f"{path}: these are link records, not documents; name what they were made "
                    "of, or make pairs of them with 'sightline pairs'."
                )
            return name
    return "native"
