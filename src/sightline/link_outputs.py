"""Link records in other forms: CSV, W3C Web Annotations, a list to read on a terminal.

Every function takes the records that `sightline link` writes as JSONL. `spans` and `alt`, which
only articles have, are used where they are there.
"""

from __future__ import annotations

import csv
import io
import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from sightline.choices import LinkFormat
from sightline.csv_cells import text_cell
from sightline.linking import LinkChoices, why_unlinked
from sightline.progress import counted
from sightline.shown_article import weight_text

Record = Mapping[str, Any]

#: What each format is called over HTTP.
MEDIA_TYPES: dict[LinkFormat, str] = {
    "jsonl": "application/x-ndjson",
    "html": "text/html",
    "annotations": "application/ld+json",
    "csv": "text/csv",
}

CSV_COLUMNS = (
    "id",
    "image",
    "sentence_index",
    "sentence",
    "score",
    "confidence",
    "start",
    "end",
    "image_index",
)

#: The context of the Web Annotation vocabulary, and the two terms that it does not have.
_CONTEXT: list[Any] = [
    "http://www.w3.org/ns/anno.jsonld",
    {"score": "urn:sightline:score", "confidence": "urn:sightline:confidence"},
]
#: Characters before and after a quote; a sentence that comes twice is told apart by them.
_AROUND = 32
_NAMESPACE = uuid.UUID("7c6a1a52-3f0e-5a8e-9a55-2c9f5b7d1e10")
# What would run where a program makes a link of it is a name like any other.
_IS_IRI = re.compile(r"(?!(?:java|vb|live)script:)[A-Za-z][A-Za-z0-9+.-]+:", re.IGNORECASE)
# What a terminal would obey, or a line could not hold.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def link_pieces(linked: Iterable[tuple[Record, str | None]], form: LinkFormat) -> Iterator[bytes]:
    """Give records in any form but pages, piece by piece.

    Each record comes with the text form that its spans point into, if it is of an article.
    """
    records = (record for record, _ in linked)
    if form == "annotations":
        yield orjson.dumps(annotation_collection(linked), option=orjson.OPT_INDENT_2) + b"\n"
    elif form == "csv":
        yield from map(_encoded, csv_lines(records))
    else:
        yield from (orjson.dumps(record) + b"\n" for record in records)


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "replace")


def without_matrix(record: Record) -> dict[str, Any]:
    """A record as it is written if nobody asked for the similarity matrix."""
    return {key: value for key, value in record.items() if key != "matrix"}


def explained(record: Record, choices: LinkChoices) -> dict[str, Any]:
    """A record for people: the reason of an image that is fine says why it has no link.

    The record needs its matrix.
    """
    images = [dict(image) for image in record["images"]]
    linked = {link["image"] for link in record["links"]}
    usable = [place for place, image in enumerate(images) if image["status"] == "ok"]
    if linked.issuperset(usable):
        return dict(record)
    shape = len(record["sentences"]), len(images)
    similarity_SV = np.array(record["matrix"], np.float64).reshape(shape)[:, usable]
    for place, reason in zip(usable, why_unlinked(similarity_SV, choices), strict=True):
        if place not in linked:
            images[place]["reason"] = reason
    return {**record, "images": images}


# ---- CSV


def csv_lines(records: Iterable[Record]) -> Iterator[str]:
    """The links as lines of CSV, the names of the columns first."""
    yield _csv_line(CSV_COLUMNS)
    for record in records:
        spans = record.get("spans")
        for link in record["links"]:
            sentence, image = link["sentence"], link["image"]
            start, end = spans[sentence] if spans else (None, None)
            yield _csv_line(
                (
                    record["id"],
                    record["images"][image]["id"],
                    sentence,
                    record["sentences"][sentence],
                    link["score"],
                    link["confidence"],
                    start,
                    end,
                    image,
                )
            )


def _csv_line(values: Iterable[object]) -> str:
    buffer = io.StringIO()
    cells = [text_cell(value) if isinstance(value, str) else value for value in values]
    # Python quotes only those line breaks that end its own lines.
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"


# ---- Web Annotations


def annotation_collection(pairs: Iterable[tuple[Record, str | None]]) -> dict[str, Any]:
    """The links as one Web Annotation Collection, one Annotation a link, best first.

    Each record comes with the text form that its spans point into; without one, a sentence is
    known by its words and those of its neighbours alone.
    https://www.w3.org/TR/annotation-model/
    """
    items = [
        _annotation(record, number, text)
        for record, text in pairs
        for number in range(len(record["links"]))
    ]
    name = _name("collection", *(item["id"] for item in items))
    page = {"id": _name("page", name), "type": "AnnotationPage", "startIndex": 0, "items": items}
    collection: dict[str, Any] = {
        "@context": _CONTEXT,
        "id": name,
        "type": "AnnotationCollection",
        "label": "Links between images and sentences",
        "total": len(items),
    }
    # A collection must have a first page only if it has annotations.
    return {**collection, "first": page} if items else collection


def _annotation(record: Record, number: int, text: str | None) -> dict[str, Any]:
    link = record["links"][number]
    article = _iri(record["id"])
    image = record["images"][link["image"]]
    annotation = {
        "id": _name(record["id"], str(link["sentence"]), str(link["image"])),
        "type": "Annotation",
        "motivation": "linking",
        "body": {"id": _image_iri(article, image["id"], link["image"]), "type": "Image"},
        "target": {"source": article, "selector": _selectors(record, link["sentence"], text)},
        "score": link["score"],
    }
    if link["confidence"] is not None:
        annotation["confidence"] = link["confidence"]
    return annotation


def _selectors(record: Record, sentence: int, text: str | None) -> list[dict[str, Any]]:
    sentences = record["sentences"]
    quoted = {"type": "TextQuoteSelector", "exact": sentences[sentence]}
    if text is None or not record.get("spans"):
        before = sentences[sentence - 1] if sentence else ""
        after = sentences[sentence + 1] if sentence + 1 < len(sentences) else ""
        return [{**quoted, "prefix": before[-_AROUND:], "suffix": after[:_AROUND]}]
    start, end = record["spans"][sentence]
    quoted |= {"prefix": text[max(0, start - _AROUND) : start], "suffix": text[end : end + _AROUND]}
    return [quoted, {"type": "TextPositionSelector", "start": start, "end": end}]


def _name(*parts: str) -> str:
    """A name that the same link always has and no other."""
    joined = "\0".join(parts).encode("utf-8", "replace").decode()
    return f"urn:uuid:{uuid.uuid5(_NAMESPACE, joined)}"


def _iri(name: str) -> str:
    """A path as a relative IRI; what is an address already stays so."""
    return name if _IS_IRI.match(name) else quote(name, errors="replace")


def _image_iri(article: str, name: str, number: int) -> str:
    """Where an image is: its address, its file beside the article, or a place in the article."""
    if _IS_IRI.match(name) and not name.startswith("data:"):
        return name
    if name.startswith(("data:", "embedded-image-")) or "/" in name[:1]:
        return f"{article}#image-{number + 1}"
    folder = article.rpartition("/")[0]
    path = quote(name, errors="replace")
    return f"{folder}/{path}" if folder else path


# ---- a list to read


def readable_lines(record: Record, width: int, colours: bool) -> Iterator[str]:
    """The images of a document in order, each with its best sentence, cut to the width."""
    bold, soft, off = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if colours else ("", "", "")
    images, links = record["images"], record["links"]
    counts = (
        f"{counted(len(images), 'image')}, {counted(len(record['sentences']), 'sentence')}, "
        f"{counted(len(links), 'link')}"
    )
    yield f"{bold}{_plain(record.get('title') or record['id'])}{off} {soft}{counts}{off}"
    by_image: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for link in links:
        by_image[link["image"]].append(link)
    names = [_fitted(_short(image["id"]), 24) for image in images]
    column = max((len(name.rstrip()) for name in names), default=0)
    for place, image in enumerate(images):
        number = f"{place + 1:>{len(str(len(images)))}}"
        start = f"  {number}  {names[place][:column]}  "
        if image["status"] != "ok":
            said = f"{image['status'].replace('_', ' ')}: {image['reason'] or ''}"
            yield f"{start}{soft}{_fitted(said, width - len(start)).rstrip()}{off}"
            continue
        found = sorted(by_image[place], key=_weight, reverse=True)
        if not found:
            said = f"no link: {image['reason']}" if image["reason"] else "no link"
            yield f"{start}{soft}{_fitted(said, width - len(start)).rstrip()}{off}"
        for more, link in enumerate(found):
            begin = " " * len(start) if more else start
            measure = "score" if link["confidence"] is None else "confidence"
            weight = f"{weight_text(_weight(link), measure):>6}  "
            room = width - len(begin) - len(weight)
            words = _fitted(record["sentences"][link["sentence"]], room).rstrip()
            yield f"{begin}{bold}{weight}{off}{words}"


def _weight(link: Mapping[str, Any]) -> float:
    return float(link["score"] if link["confidence"] is None else link["confidence"])


def _plain(text: str) -> str:
    """One line without anything that a terminal would obey."""
    return " ".join(_CONTROLS.sub(" ", text).split())


def _short(name: str) -> str:
    return Path(name).name or name


def _fitted(text: str, width: int) -> str:
    """Text cut or filled to so many columns; wide characters take two."""
    from rich.cells import cell_len, set_cell_size

    width = max(width, 12)
    plain = _plain(text[: 4 * width])
    if cell_len(plain) <= width and len(text) <= 4 * width:
        return plain + " " * (width - cell_len(plain))
    return set_cell_size(plain, width - 1).rstrip() + "…"
