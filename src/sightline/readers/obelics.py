"""OBELICS: texts and images of a web page in one order, as parallel lists with nulls.

    {"images": [url, null, ...], "texts": [null, text, ...], "metadata": "[...]",
     "general_metadata": "{...}"}

The fields are those of https://huggingface.co/datasets/HuggingFaceM4/OBELICS; `metadata` and
`general_metadata` are JSON in a string. A file is JSON lines or Parquet. A text holds paragraphs
with an empty line between them, and each paragraph is a sentence of the document. Where texts and
images stand is kept under the key `obelics` with everything else: a text as its paragraphs' marks,
so that text after text comes back letter by letter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from sightline.documents import Document, FieldError, document_out_of, kind
from sightline.problems import Problems
from sightline.readers.kept_fields import (
    KEY,
    Leftovers,
    count_aside,
    fields_to_keep,
    kept_field,
    restore_fields,
)
from sightline.readers.native import json_lines, numbered_documents
from sightline.readers.parquet import parquet_rows, write_parquet

NAME = "obelics"
#: The columns of a Parquet file in OBELICS's own order.
_COLUMNS = {"images": "texts", "metadata": "text", "general_metadata": "text", "texts": "texts"}

_BREAK = "\n\n"
_MARK = "¶"  # stands for a paragraph


def read_obelics(path: Path, problems: Problems, allow_empty: bool = False) -> Iterator[Document]:
    """Yield the documents of OBELICS records in JSON lines or in a Parquet file."""
    return (document for _, document in numbered_obelics(path, problems, allow_empty))


def numbered_obelics(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[tuple[int, Document]]:
    """Yield the documents of OBELICS records with their lines or rows."""

    def document(record: object, number: int) -> Document:
        return document_from_obelics(record, number, allow_empty)

    is_parquet = path.suffix == ".parquet"
    rows = parquet_rows(path, problems, ("texts", "images")) if is_parquet else None
    return numbered_documents(rows or json_lines(path, problems), document, path, problems)


def document_from_obelics(record: object, place: int | str, allow_empty: bool = False) -> Document:
    """Make a document of an OBELICS record; raises `FieldError` naming the record's own field.

    OBELICS has no ids: the url of the page is one, and without a url it is the place.
    """
    if not isinstance(record, dict):
        raise FieldError(None, f"expected a JSON object, found {kind(record)}")
    rest = record.copy()
    kept = rest.pop(KEY, None)
    texts, images = (_strings_and_nulls(record, name) for name in ("texts", "images"))
    if len(texts) != len(images):
        raise FieldError("images", f"expected as many as texts, {len(texts)}, found {len(images)}")
    sentences: list[str] = []
    rest["texts"] = [text if text is None else _marked(text, sentences) for text in texts]
    # Elsewhere than where there is no text, images are rare.
    usual = all(
        (image is None) != (text is None) for text, image in zip(texts, images, strict=True)
    )
    rest["images"] = None if usual else [image is not None for image in images]
    native = {
        "id": _id(rest, place),
        "sentences": sentences,
        "images": [image for image in images if image is not None],
        NAME: rest,
    }
    if kept is not None:
        kept = _decoded(kept)
        restore_fields(native, kept, NAME, {"texts", "images"})
    try:
        return document_out_of(native, allow_empty)
    except FieldError as error:
        # Not which one: it is counted without those that are null.
        own = "images" if str(error.field).startswith("images") else "texts"
        raise FieldError(kept_field(error.field, kept) or own, error.reason) from None


def with_layout_links(document: Document) -> Document:
    """Link each image to the paragraph that it follows, where no links are known."""
    places = _places(document.extra.get(NAME), document)
    if document.links is not None or places is None:
        return document
    links = ((place - 1, image) for image, place in enumerate(places) if place > 0)
    return replace(document, links=tuple(links))


def write_obelics_parquet(documents: Iterable[Document], path: Path, leftovers: Leftovers) -> int:
    """Write documents as OBELICS records to a Parquet file; gives their number."""
    return write_parquet(documents, path, lambda d: obelics_record(d, leftovers), _COLUMNS)


def obelics_record(document: Document, leftovers: Leftovers) -> dict[str, Any]:
    """Give the OBELICS record of a document; what was read from one comes back key by key.

    A document that comes with no places of its images gets them from its links: an image stands
    after the first sentence that it is linked to, and before all text if there is none. What
    OBELICS has no field for stands under `sightline`, as JSON in a string like its metadata.
    """
    rest = document.extra.get(NAME)
    if not isinstance(rest, dict) or not isinstance(rest.get("texts"), list) or KEY in rest:
        rest = None
    links = document.links or ()
    record: dict[str, Any] = {"images": None, "texts": None} if rest is None else rest.copy()
    places = _places(rest, document)
    if places is not None:
        _fill(record, document)
        expressed = len({(place - 1, image) for image, place in enumerate(places)} & {*links})
    else:
        expressed = _lay_out(record, document)
        if rest is not None:
            leftovers.dropped["positions"] += 1
            # It says one thing for each position, which are others now.
            leftovers.dropped["keys"] += record.pop("metadata", None) is not None
    plain = document_from_obelics(record, 0, allow_empty=True)
    keep = fields_to_keep(document, plain, NAME, leftovers)
    if rest is not None:
        keep.pop(NAME, None)
        if document.id == plain.id or re.fullmatch(r"line-\d+", document.id):
            keep.pop("id", None)
    count_aside(keep, NAME, expressed, leftovers.aside)
    if keep:
        record[KEY] = orjson.dumps(keep).decode()
    return record


def _marked(text: str, sentences: list[str]) -> str:
    """Add a text's paragraphs to the sentences; gives the text with a mark for each of them."""
    pieces = text.split(_BREAK)
    for index, piece in enumerate(pieces):
        if piece and not piece.isspace():
            sentences.append(piece)
            pieces[index] = _MARK
    return _BREAK.join(pieces)


def _fill(record: dict[str, Any], document: Document) -> None:
    """Put sentences and images where the record was read to have them."""
    sentences, images = iter(document.sentences), iter(document.images)
    marked, slots = record["texts"], record.get("images")
    texts = [text if text is None else _unmarked(text, sentences) for text in marked]
    slots = [text is None for text in texts] if slots is None else slots
    record["texts"] = texts
    record["images"] = [next(images) if slot else None for slot in slots]


def _unmarked(text: str, sentences: Iterator[str]) -> str:
    pieces = text.split(_BREAK)
    return _BREAK.join(next(sentences) if piece == _MARK else piece for piece in pieces)


def _places(rest: object, document: Document) -> list[int] | None:
    """Give how many sentences stand before each image; None if that is not known any more."""
    if not isinstance(rest, dict) or not isinstance(rest.get("texts"), list):
        return None
    texts, slots = rest["texts"], rest.get("images")
    if slots is None:
        slots = [text is None for text in texts]
    if not isinstance(slots, list) or len(slots) != len(texts):
        return None
    places, sentences = [], 0
    for text, slot in zip(texts, slots, strict=True):
        if text is not None and not isinstance(text, str):
            return None
        sentences += text.split(_BREAK).count(_MARK) if text else 0
        if slot:
            places.append(sentences)
    # Fewer or more than it was read with, or edited by hand.
    fits = sentences == len(document.sentences) and len(places) == len(document.images)
    return places if fits else None


def _lay_out(record: dict[str, Any], document: Document) -> int:
    """Give images a place by their first link; also gives how many links that expresses."""
    first: dict[int, int] = {}
    for sentence, image in document.links or ():
        first.setdefault(image, sentence)
    after = defaultdict(list)
    for image, name in enumerate(document.images):
        after[first.get(image, -1)].append((None, name))
    entries: list[tuple[str | None, str | None]] = [*after[-1]]
    paragraphs: list[str] = []
    for index, paragraph in enumerate(document.sentences):
        paragraphs.append(paragraph)
        if index in after or index == len(document.sentences) - 1:
            entries += [(_BREAK.join(paragraphs), None), *after[index]]
            paragraphs = []
    record["texts"] = [text for text, _ in entries]
    record["images"] = [name for _, name in entries]
    return len(first)


def _id(rest: dict[str, Any], place: int | str) -> str:
    page = rest.get("general_metadata")
    if isinstance(page, str):
        try:
            page = orjson.loads(page)
        except orjson.JSONDecodeError:
            page = None
    url = page.get("url") if isinstance(page, dict) else None
    if isinstance(url, str) and url.strip():
        return url
    return f"line-{place}" if isinstance(place, int) else place


def _decoded(kept: object) -> object:
    if not isinstance(kept, str):
        return kept
    try:
        return orjson.loads(kept)
    except orjson.JSONDecodeError as error:
        raise FieldError(KEY, f"not valid JSON at column {error.colno}: {error.msg}") from None


def _strings_and_nulls(record: dict[str, Any], name: str) -> list[str | None]:
    values = record.get(name)
    if not isinstance(values, list):
        found = kind(values) if name in record else "no such key"
        raise FieldError(name, f"expected a list of strings and nulls, found {found}")
    for index, value in enumerate(values):
        if value is not None and type(value) is not str:
            reason = f"expected a string or null, found {kind(value)}"
            raise FieldError(f"{name}[{index}]", reason)
    return values
