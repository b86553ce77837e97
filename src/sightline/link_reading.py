"""Link records read again: what `sightline link` wrote, as input of `sightline pairs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sightline.documents import Document
from sightline.linked_documents import LinkedDocument
from sightline.problems import Problems
from sightline.readers.native import json_lines

_Place = Annotated[int, msgspec.Meta(ge=0)]


class _Link(msgspec.Struct):
    sentence: _Place
    image: _Place
    score: float
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


class _Image(msgspec.Struct):
    id: str
    status: Annotated[str, msgspec.Meta(max_length=40)]


class _Record(msgspec.Struct):
    id: str
    links: list[_Link]
    images: list[_Image]
    sentences: list[str]


def read_link_records(path: Path, folder: Path, problems: Problems) -> Iterator[LinkedDocument]:
    """Yield the documents and links of a file; paths of images are relative to `folder`."""
    for number, value in json_lines(path, problems):
        try:
            record = msgspec.convert(value, _Record)
        except msgspec.ValidationError as error:
            problems.add(path, number, None, f"not a link record: {error}")
            continue
        if any(
            link.sentence >= len(record.sentences) or link.image >= len(record.images)
            for link in record.links
        ):
            problems.add(path, number, "links", "names a sentence or an image that is not there")
            continue
        images = tuple(image.id for image in record.images)
        document = Document(record.id, tuple(record.sentences), images, folder=folder)
        content: dict[str, Any] = msgspec.to_builtins(record)
        yield LinkedDocument(document, content)
