"""The paper's own release: `docs.json`, splits of documents with labels on images and sentences.

    {"train": [doc, ...], "val": [...], "test": [...]}
    doc = [[[image, label], ...], [[sentence, label], ...], metadata]

An image's label is the index of its sentence and a sentence's label the index of its image; -1
means no link and null means unknown. A link may stand on either side or on both. An image is an
id of `id2row.json`: its file name without folder and extension. Where `write_hessel2019` had to
shorten paths to ids, `image_paths.json` beside it says which path an id was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from sightline.documents import Document, FieldError, document_from_record, kind, split_name
from sightline.files import write_atomically
from sightline.problems import Problems, SightlineError
from sightline.readers.json_records import read_object

FILE_NAME = "docs.json"
_PATHS_NAME = "image_paths.json"

_NO_LINK = -1
_NO_METADATA = "na"


@dataclass(frozen=True, slots=True)
class Stored:
    """What `write_hessel2019` wrote, and what the format had no place for."""

    documents: int
    links_lost: int
    keys_lost: int  # further keys of a document, summed over documents
    splits_lost: int = 0  # documents that had another split, or none


def read_hessel2019(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[Document]:
    """Yield the documents of a release folder, or of its `docs.json`, split after split.

    The file is one JSON value and is read whole, so it has to fit in memory several times over.
    """
    return (document for _, document in numbered_hessel2019(path, problems, allow_empty))


def numbered_hessel2019(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[tuple[str, Document]]:
    """Yield the documents of a release with their places, such as `train[12]`."""
    path = path / FILE_NAME if path.is_dir() else path
    splits = read_object(path, "an object of splits")
    paths = path.with_name(_PATHS_NAME)
    image_paths = read_object(paths, "an object of paths") if paths.is_file() else {}
    for split, docs in splits.items():
        if not isinstance(docs, list):
            problems.add(path, split, None, f"expected a list of documents, found {kind(docs)}")
            continue
        for index, doc in enumerate(docs):
            try:
                document = _document(doc, split, index, image_paths, allow_empty)
            except FieldError as error:
                problems.add(path, f"{split}[{index}]", error.field, error.reason)
            else:
                yield f"{split}[{index}]", document


def write_hessel2019(documents: Iterable[Document], folder: Path) -> Stored:
    """Write documents as `docs.json` in a folder; gives what was and what could not be stored.

    A label holds one link, so documents with many links lose some, as few as can be. An id takes
    the place of the metadata, unless it is the one that reading makes up for that position.
    Other further keys have no place. Documents without a split go to `train`. All three splits
    are written even if empty, because the original code asks for them. An image is written as the
    id that the original code looks up; `image_paths.json` keeps the paths, if any was longer.
    Everything is held in memory until it is written.
    """
    splits: dict[str, list[orjson.Fragment]] = {"train": [], "val": [], "test": []}
    ids = _ImageIds()
    links_lost = keys_lost = splits_lost = 0
    for document in documents:
        split = split_name(document.split) or "train"
        docs = splits.setdefault(split, [])
        image_labels, sentence_labels, links_without_room = _labels(document)
        metadata, keys_without_room = _metadata(document, f"{split}-{len(docs)}")
        names = [ids.of(image) for image in document.images]
        images = list(zip(names, image_labels, strict=True))
        sentences = list(zip(document.sentences, sentence_labels, strict=True))
        try:
            docs.append(orjson.Fragment(orjson.dumps([images, sentences, metadata])))
        except TypeError as error:
            # A lone surrogate, or metadata of a type that JSON has not.
            raise SightlineError(
                f"{folder}: document {document.id!r} cannot be written as JSON: {error}"
            ) from error
        links_lost += links_without_room
        keys_lost += keys_without_room
        splits_lost += document.split != split
    folder.mkdir(parents=True, exist_ok=True)
    if ids.paths:
        write_atomically(folder / _PATHS_NAME, orjson.dumps(ids.paths))
    else:
        (folder / _PATHS_NAME).unlink(missing_ok=True)
    write_atomically(folder / FILE_NAME, orjson.dumps(splits))
    return Stored(sum(map(len, splits.values())), links_lost, keys_lost, splits_lost)


class _ImageIds:
    """Gives each image an id of its own, and keeps the paths of those that it shortened."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._taken: dict[str, int] = {}  # and the number last tried for it

    def of(self, image: str) -> str:
        """Give the file name without folder and extension, made unique if another image has it."""
        if image not in self._ids:
            name = re.split(r"[/\\]", image)[-1]
            wanted = name.rpartition(".")[0] or name
            # What is left of a path such as `a/ .jpg` would be refused when it is read.
            wanted = identifier = wanted if wanted.strip() else image
            while identifier in self._taken:
                self._taken[wanted] += 1
                identifier = f"{wanted}~{self._taken[wanted]}"
            self._taken[identifier] = 1
            self._ids[image] = identifier
            if identifier != image:
                self.paths[identifier] = image
        return self._ids[image]


def _document(
    doc: object, split: str, index: int, image_paths: dict[str, Any], allow_empty: bool
) -> Document:
    if not isinstance(doc, list) or len(doc) != 3:
        found = f"a list of {len(doc)}" if isinstance(doc, list) else kind(doc)
        raise FieldError(None, f"expected [images, sentences, metadata], found {found}")
    images, image_labels = _pairs(doc[0], "images")
    sentences, sentence_labels = _pairs(doc[1], "sentences")
    _check_labels(image_labels, "images", len(sentences))
    _check_labels(sentence_labels, "sentences", len(images))
    record: dict[str, Any] = {
        "id": f"{split}-{index}",
        "sentences": sentences,
        "images": [
            image_paths.get(image, image) if isinstance(image, str) else image for image in images
        ],
        "links": _links(image_labels, sentence_labels),
        "split": split,
    }
    metadata = doc[2]
    if isinstance(metadata, str) and metadata.strip() and metadata != _NO_METADATA:
        record["id"] = metadata
    else:
        record["metadata"] = metadata
    return document_from_record(record, allow_empty)


def _pairs(items: object, name: str) -> tuple[list[Any], list[Any]]:
    """Take [value, label] pairs apart; the values are checked with the document."""
    if not isinstance(items, list):
        raise FieldError(name, f"expected a list of [value, label] pairs, found {kind(items)}")
    for index, item in enumerate(items):
        if not isinstance(item, list) or len(item) != 2:
            raise FieldError(f"{name}[{index}]", "expected a [value, label] pair")
    return [item[0] for item in items], [item[1] for item in items]


def _check_labels(labels: list[Any], name: str, others: int) -> None:
    """Refuse labels that are no index of the other side, and a side that is known in part."""
    if all(label is None for label in labels):
        return
    for index, label in enumerate(labels):
        field = f"{name}[{index}][1]"
        if label is None:
            raise FieldError(field, "null (unknown) among labels that are known")
        if type(label) is not int:
            raise FieldError(field, f"expected an index, -1 or null, found {kind(label)}")
        if not _NO_LINK <= label < others:
            other = "sentence" if name == "images" else "image"
            raise FieldError(field, f"no {other} {label}, the document has {others}")


def _links(image_labels: list[Any], sentence_labels: list[Any]) -> list[list[int]] | None:
    """Join the links of both sides; None if neither side is known."""
    if all(label is None for label in (*image_labels, *sentence_labels)):
        return None
    none = (None, _NO_LINK)
    by_image = [[sentence, image] for image, sentence in enumerate(image_labels)]
    by_sentence = [[sentence, image] for sentence, image in enumerate(sentence_labels)]
    return [link for link in by_image if link[0] not in none] + [
        link for link in by_sentence if link[1] not in none
    ]


def _metadata(document: Document, made_up_id: str) -> tuple[Any, int]:
    """Choose what stands in the metadata's place; also gives how many keys then have none."""
    extra = document.extra
    if "metadata" in extra and document.id == made_up_id:
        return extra["metadata"], len(extra) - 1
    # Metadata that says nothing are no loss.
    empty = "metadata" in extra and extra["metadata"] in (_NO_METADATA, "", None)
    return document.id, len(extra) - empty


def _labels(document: Document) -> tuple[list[int | None], list[int | None], int]:
    """Give the labels of images and of sentences, and how many links found no room in them."""
    if document.links is None:
        return [None] * len(document.images), [None] * len(document.sentences), 0
    image_labels: list[int | None] = [_NO_LINK] * len(document.images)
    sentence_labels: list[int | None] = [_NO_LINK] * len(document.sentences)
    lost = 0
    for sentence, image in document.links:
        lost += not _place(sentence, image, image_labels, sentence_labels)
    return image_labels, sentence_labels, lost


def _place(sentence: int, image: int, image_labels: list[Any], sentence_labels: list[Any]) -> bool:
    """Put a link on its image; the link that stood there moves to its sentence, and so on.

    That is cuckoo hashing: a chain that ends has passed no label more than twice, and one that
    does not end shows that these links outnumber the labels they could stand on.
    """
    for _ in range(len(image_labels) + len(sentence_labels)):
        image_labels[image], sentence = sentence, image_labels[image]
        if sentence == _NO_LINK:
            return True
        sentence_labels[sentence], image = image, sentence_labels[sentence]
        if image == _NO_LINK:
            return True
    return False
