"""MMC4: one JSON object a line, sentences and images apart, with a similarity matrix by CLIP.

    {"text_list": [...], "image_info": [{"image_name", "raw_url", "matched_text_index", ...}],
     "similarity_matrix": images x sentences, "url", "could_have_url_duplicate", ...}

The fields are those of https://github.com/allenai/mmc4. `matched_text_index` is an assignment
that CLIP predicted, not the truth, so the links of a document are unknown unless
`with_matched_links` takes them. Everything but the sentences is kept under the key `mmc4`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

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

NAME = "mmc4"


def read_mmc4(path: Path, problems: Problems, allow_empty: bool = False) -> Iterator[Document]:
    """Yield the documents of an MMC4 shard, plain or compressed."""
    return (document for _, document in numbered_mmc4(path, problems, allow_empty))


def numbered_mmc4(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[tuple[int, Document]]:
    """Yield the documents of an MMC4 shard with their lines."""

    def document(record: object, number: int) -> Document:
        return document_from_mmc4(record, number, allow_empty)

    return numbered_documents(json_lines(path, problems), document, path, problems)


def document_from_mmc4(record: object, place: int | str, allow_empty: bool = False) -> Document:
    """Make a document of an MMC4 record; raises `FieldError` naming the record's own field.

    MMC4 has no ids. The url is one; where the record says that it may not be the only one with
    this url, the place follows; without a url it is the place alone.
    """
    if not isinstance(record, dict):
        raise FieldError(None, f"expected a JSON object, found {kind(record)}")
    rest = record.copy()
    kept = rest.pop(KEY, None)
    sentences = rest.get("text_list")
    infos = rest.get("image_info")
    if type(sentences) is not list:
        raise _list_error(record, "text_list", "strings")
    if type(infos) is not list:
        raise _list_error(record, "image_info", "objects")
    images = _images(infos)
    for index, info in enumerate(infos):
        if not _is_index(info.get("matched_text_index"), len(sentences)):
            raise _matched_error(index, info["matched_text_index"], len(sentences))
    matrix = rest.get("similarity_matrix")
    if matrix is not None and not _fits(matrix, len(images), len(sentences)):
        raise _matrix_error(matrix, len(images), len(sentences))
    rest["text_list"] = None  # keeps its place among the keys
    native = {"id": _id(rest, place), "sentences": sentences, "images": images, NAME: rest}
    if kept is not None:
        restore_fields(native, kept, NAME, {"text_list", "image_info"})
    try:
        return document_out_of(native, allow_empty)
    except FieldError as error:
        field = kept_field(error.field, kept) or _own_field(error.field or "", infos)
        raise FieldError(field, error.reason) from None


def with_matched_links(document: Document) -> Document:
    """Take MMC4's matched sentences as the true links, where no links are known."""
    rest = document.extra.get(NAME)
    if document.links is not None or not isinstance(rest, dict):
        return document
    try:
        matched = [info.get("matched_text_index") for info in rest["image_info"]]
        links = tuple((s, image) for image, s in enumerate(matched) if s is not None)
        if len(matched) == len(document.images) and all(
            type(s) is int and 0 <= s < len(document.sentences) for s, _ in links
        ):
            return replace(document, links=links)
    except (KeyError, TypeError, AttributeError):
        pass  # edited by hand since it was read
    return document


def mmc4_record(document: Document, leftovers: Leftovers) -> dict[str, Any]:
    """Give the MMC4 record of a document; what was read from one comes back key by key.

    An image's first link is its `matched_text_index`. What MMC4 has no field for stands under
    `sightline`.
    """
    rest = document.extra.get(NAME)
    if (
        isinstance(rest, dict)
        and rest.get("text_list", KEY) is None
        and isinstance(rest.get("image_info"), list)
        and KEY not in rest
    ):
        try:
            found = Leftovers()
            record = _record(document, rest, found)
        except (FieldError, TypeError, AttributeError):
            pass  # edited by hand since it was read
        else:
            leftovers.add(found)
            return record
    return _record(document, None, leftovers)


def _record(
    document: Document, rest: dict[str, Any] | None, leftovers: Leftovers
) -> dict[str, Any]:
    record: dict[str, Any] = {} if rest is None else rest.copy()
    record["text_list"] = list(document.sentences)
    record["image_info"] = infos = _infos(document, record.get("image_info", []))
    matrix = record.get("similarity_matrix")
    if matrix is not None and not _fits(matrix, len(infos), len(document.sentences)):
        matrix = None
        del record["similarity_matrix"]
        leftovers.dropped["matrices"] += 1
    matched = _first_links(document)
    for image, info in enumerate(infos):
        before = info.get("matched_text_index")
        if document.links is None and _is_index(before, len(document.sentences)):
            continue
        row = None if matrix is None else matrix[image]
        infos[image] = _with_match(info, matched.get(image), row)
        leftovers.dropped["matches"] += before not in (None, matched.get(image))
    plain = document_from_mmc4(record, 0, allow_empty=True)
    keep = fields_to_keep(document, plain, NAME, leftovers)
    if rest is not None:
        keep.pop(NAME, None)
        if _is_made_up(document.id, rest):
            keep.pop("id", None)
    count_aside(keep, NAME, len(matched), leftovers.aside)
    if keep:
        record[KEY] = keep
    return record


def _infos(document: Document, infos: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give what is said of each image, under the name that the document has for it."""
    if len(infos) != len(document.images):
        by_name = {_name(info): info for info in infos}
        infos = [by_name.get(image, {}) for image in document.images]
    return [
        info if _name(info) == image else _renamed(info, image)
        for image, info in zip(document.images, infos, strict=True)
    ]


def _name(info: dict[str, Any]) -> Any:
    name = info.get("image_name")
    return info.get("raw_url") if name is None else name


def _renamed(info: dict[str, Any], image: str) -> dict[str, Any]:
    if not info and image.startswith(("http://", "https://")):
        return {"raw_url": image}
    return {**info, "image_name": image}


def _with_match(
    info: dict[str, Any], sentence: int | None, similarities: list[float] | None
) -> dict[str, Any]:
    """Let a link, or that there is none, take the place of what CLIP matched the image with."""
    if "matched_text_index" in info and info["matched_text_index"] == sentence:
        return info
    info = {**info, "matched_text_index": sentence}
    info.pop("matched_sim", None)
    if sentence is not None and similarities is not None:
        info["matched_sim"] = similarities[sentence]
    return info


def _first_links(document: Document) -> dict[int, int]:
    first: dict[int, int] = {}
    for sentence, image in document.links or ():
        first.setdefault(image, sentence)
    return first


def _id(rest: dict[str, Any], place: int | str) -> str:
    url = rest.get("url")
    if url is not None and type(url) is not str:
        raise FieldError("url", f"expected a string or null, found {kind(url)}")
    if url and not url.isspace() and not rest.get("could_have_url_duplicate"):
        return url
    place = f"line-{place}" if isinstance(place, int) else place
    return f"{url}#{place}" if url and not url.isspace() else place


def _is_made_up(identifier: str, rest: dict[str, Any]) -> bool:
    """Whether reading makes up this id, there or on another line."""
    made_up = _id(rest, 0)
    if not made_up.endswith("line-0"):
        return identifier == made_up
    start = made_up.removesuffix("0")
    return (
        identifier.startswith(start) and re.fullmatch(r"\d+", identifier[len(start) :]) is not None
    )


def _images(infos: list[Any]) -> list[str]:
    try:
        images = [info["image_name"] for info in infos]
    except (KeyError, TypeError):
        images = [None]
    if None not in images:
        return images
    images = []
    for index, info in enumerate(infos):
        if not isinstance(info, dict):
            raise FieldError(f"image_info[{index}]", f"expected an object, found {kind(info)}")
        images.append(_name(info))
        if images[-1] is None:
            reason = "expected a string, or a raw_url in its place, found neither"
            raise FieldError(f"image_info[{index}].image_name", reason)
    return images


def _is_index(matched: object, sentences: int) -> bool:
    return matched is None or (type(matched) is int and 0 <= matched < sentences)


def _fits(matrix: object, images: int, sentences: int) -> bool:
    if type(matrix) is not list or len(matrix) != images:
        return False
    try:
        for row in matrix:
            if type(row) is not list or len(row) != sentences:
                return False
            # Raises on anything but numbers; true passes for 1. To look at the type of each
            # would take a fifth of a document's time.
            sum(row)
    except TypeError:
        return False
    return True


def _matrix_error(matrix: Any, images: int, sentences: int) -> FieldError:
    name = "similarity_matrix"
    if not isinstance(matrix, list) or len(matrix) != images:
        found = f"{len(matrix)} rows" if isinstance(matrix, list) else kind(matrix)
        return FieldError(name, f"expected a row for each of {images} images, found {found}")
    for index, row in enumerate(matrix):
        if not isinstance(row, list) or len(row) != sentences:
            found = f"a list of {len(row)}" if isinstance(row, list) else kind(row)
            reason = f"expected a number for each of {sentences} sentences, found {found}"
            return FieldError(f"{name}[{index}]", reason)
        for column, number in enumerate(row):
            if not isinstance(number, int | float):
                reason = f"expected a number, found {kind(number)}"
                return FieldError(f"{name}[{index}][{column}]", reason)
    return FieldError(name, "expected images x sentences numbers")


def _matched_error(index: int, matched: object, sentences: int) -> FieldError:
    if type(matched) is int:
        reason = f"no sentence {matched}, the document has {sentences}"
    else:
        reason = f"expected the index of a sentence or null, found {kind(matched)}"
    return FieldError(f"image_info[{index}].matched_text_index", reason)


def _list_error(record: dict[str, Any], name: str, of: str) -> FieldError:
    found = kind(record[name]) if name in record else "no such key"
    return FieldError(name, f"expected a list of {of}, found {found}")


def _own_field(field: str, infos: list[Any]) -> str:
    """Name sentences and images of the native document as MMC4 names them."""
    name, bracket, index = field.partition("[")
    if name == "sentences":
        return f"text_list{bracket}{index}"
    if not bracket:
        return "image_info"
    info = infos[int(index.rstrip("]"))]
    return f"image_info[{index}.{'image_name' if 'image_name' in info else 'raw_url'}"
