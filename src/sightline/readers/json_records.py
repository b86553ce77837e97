"""Datasets that are one JSON object: reading it, and the fields of the records in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from sightline.documents import FieldError, kind
from sightline.problems import SightlineError
from sightline.readers.native import open_for_reading


def read_object(path: Path, expected: str = "a JSON object") -> dict[str, Any]:
    """Give what a file that is one JSON object holds; it is read whole."""
    with open_for_reading(path) as file:
        try:
            content = orjson.loads(file.read())
        except orjson.JSONDecodeError as error:
            raise SightlineError(f"{path}: not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise SightlineError(f"{path}: expected {expected}, found {kind(content)}.")
    return content


def read_lists(path: Path, *names: str) -> list[list[Any]]:
    """Give the named lists of a file that is one JSON object."""
    content = read_object(path)
    for name in names:
        if not isinstance(content.get(name), list):
            found = kind(content[name]) if name in content else "no such key"
            raise SightlineError(f"{path}: {name}: expected a list of records, found {found}.")
    return [content[name] for name in names]


def as_object(record: object) -> dict[str, Any]:
    """Give a record that has to be an object."""
    if not isinstance(record, dict):
        raise FieldError(None, f"expected a JSON object, found {kind(record)}")
    return record


def text_field(record: dict[str, Any], name: str) -> str:
    """Give a field that has to be a string."""
    value = _field(record, name)
    if type(value) is not str:
        raise FieldError(name, f"expected a string, found {kind(value)}")
    return value


def number_field(record: dict[str, Any], name: str) -> int:
    """Give a field that has to be a whole number."""
    value = _field(record, name)
    if type(value) is not int:
        raise FieldError(name, f"expected a whole number, found {kind(value)}")
    return value


def id_field(record: dict[str, Any], name: str) -> str:
    """Give a field that has to be an id: a string with something in it, or a whole number."""
    value = _field(record, name)
    if type(value) is int:
        return str(value)
    if type(value) is not str or not value.strip():
        found = "an empty string" if type(value) is str else kind(value)
        raise FieldError(name, f"expected a non-empty string or a whole number, found {found}")
    return value


def _field(record: dict[str, Any], name: str) -> Any:
    if name not in record:
        raise FieldError(name, "expected, but there is no such key")
    return record[name]
