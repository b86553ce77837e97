"""VIST's two tiers: descriptions in isolation (DII) and stories in sequence (SIS).

    {"annotations": [[{"album_id": "44277", "photo_flickr_id": "1741642",
                       "original_text": "The local parish holds a craft show each year.",
                       "story_id": "45530", "worker_arranged_photo_order": 0, ...}], ...], ...}

A file per split, `train.story-in-sequence.json` and the like; each annotation is the one element
of a list. DII has `photo_order_in_story` and no `story_id`: an album's five photos were captioned
several times over, each photo by itself.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.choices import SPLITS
from sightline.distractors import CaptionPool
from sightline.documents import Document, FieldError, kind, split_name
from sightline.image_folders import ImageFolder
from sightline.problems import Problems, SightlineError
from sightline.readers.json_records import (
    as_object,
    id_field,
    number_field,
    read_lists,
    text_field,
)
from sightline.sentences import tokenize

#: Photos of a story.
_STORY = 5
#: The tiers, as the names of their files have them.
DII, SIS = "description-in-isolation", "story-in-sequence"

_FILE_NAME = re.compile(r"(train|val|validation|dev|test)[._-]")
_ORDER = {DII: "photo_order_in_story", SIS: "worker_arranged_photo_order"}


@dataclass(frozen=True, slots=True)
class _Story:
    id: str
    album: str
    photos: tuple[str, ...]
    captions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Annotation:
    album: str
    story: str | None
    order: int
    photo: str
    text: str


def vist_files(folder: Path, tier: str) -> list[Path]:
    """Give the files of a tier in a folder or below it, train, val, test; some may be absent."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob(f"*{tier}*.json")):
        if match := _FILE_NAME.match(path.name):
            split = split_name(match[1]) or ""
            if split in found:
                raise SightlineError(f"{folder}: two files of {split}: {found[split]} and {path}.")
            found[split] = path
    if not found:
        raise SightlineError(
            f"{folder}: no file train.{tier}.json, val.{tier}.json or test.{tier}.json here."
        )
    return [found[split] for split in SPLITS if split in found]


def read_vist(
    folder: Path,
    tier: str,
    *,
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Document]:
    """Yield a document per story, in VIST's splits: five photos in order and their sentences."""
    for split, stories in _splits(folder, tier, images, problems, dropped):
        for story in stories:
            links = tuple((place, place) for place in range(_STORY))
            yield _document(story, story.captions, links, split, images)


def read_dii_stress(
    folder: Path,
    *,
    seed: int,
    distractors: int,
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Document]:
    """Yield DII's documents with captions of other photos of the split shuffled in."""
    rng = random.Random(seed)
    for split, stories in _splits(folder, DII, images, problems, dropped):
        pool = CaptionPool(
            pair for story in stories for pair in zip(story.photos, story.captions, strict=True)
        )
        for story in stories:
            sentences = [*story.captions, *pool.draw(distractors, story.photos, rng)]
            order = rng.sample(range(len(sentences)), len(sentences))
            links = tuple((order.index(place), place) for place in range(_STORY))
            mixed = tuple(sentences[place] for place in order)
            yield _document(story, mixed, tuple(sorted(links)), split, images)


def _document(
    story: _Story,
    sentences: tuple[str, ...],
    links: tuple[tuple[int, int], ...],
    split: str,
    images: ImageFolder | None,
) -> Document:
    names = tuple(_image_name(photo, images) for photo in story.photos)
    return Document(story.id, sentences, names, links, split, {"album_id": story.album})


def _image_name(photo: str, images: ImageFolder | None) -> str:
    path = images.find(photo) if images is not None else None
    return photo if images is None or path is None else images.name(path)


def _splits(
    folder: Path,
    tier: str,
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[tuple[str, list[_Story]]]:
    """Yield each split and its stories, without those of which a photo cannot be had."""
    for path in vist_files(folder, tier):
        match = _FILE_NAME.match(path.name)
        split = split_name(match[1] if match else None) or ""
        stories = list(_stories(path, tier, problems, dropped))
        if images is not None:
            stories = _with_images(stories, images, dropped)
        yield split, stories


def _with_images(stories: list[_Story], images: ImageFolder, dropped: Counter[str]) -> list[_Story]:
    invalid = images.invalid(dict.fromkeys(photo for story in stories for photo in story.photos))
    kept = []
    for story in stories:
        if any(images.find(photo) is None for photo in story.photos):
            dropped["stories with a missing image"] += 1
        elif not invalid.isdisjoint(story.photos):
            dropped["stories with an invalid image"] += 1
        else:
            kept.append(story)
    return kept


def _stories(path: Path, tier: str, problems: Problems, dropped: Counter[str]) -> Iterator[_Story]:
    (records,) = read_lists(path, "annotations")
    # By story or, in DII, by album: the annotations of each place. DII has no ids of stories, but
    # a fixed set of photos per album with several captions each, so that the n-th captions of all
    # photos make the n-th document.
    groups: dict[str, list[list[_Annotation]]] = {}
    for index, record in enumerate(records):
        try:
            annotation = _annotation(record, tier)
            places = groups.setdefault(annotation.story or annotation.album, _no_places())
            if annotation.story and places[annotation.order]:
                reason = f"story {annotation.story} has another photo in place {annotation.order}"
                raise FieldError(_ORDER[tier], reason)
            places[annotation.order].append(annotation)
        except FieldError as error:
            problems.add(path, f"annotations[{index}]", error.field, error.reason)
    for places in groups.values():
        counts = list(map(len, places))
        dropped["stories of fewer than five photos"] += max(counts) - min(counts)
        for number, photos in enumerate(zip(*places, strict=False)):
            if all(tokenize(photo.text) for photo in photos):
                yield _story(number, photos)
            else:
                dropped["stories with a sentence without tokens"] += 1


def _no_places() -> list[list[_Annotation]]:
    return [[] for _ in range(_STORY)]


def _story(number: int, photos: tuple[_Annotation, ...]) -> _Story:
    album = photos[0].album
    return _Story(
        photos[0].story or f"{album}-{number}",
        album,
        tuple(photo.photo for photo in photos),
        tuple(photo.text for photo in photos),
    )


def _annotation(record: object, tier: str) -> _Annotation:
    if not isinstance(record, list) or len(record) != 1:
        found = f"a list of {len(record)}" if isinstance(record, list) else kind(record)
        raise FieldError(None, f"expected a list of one annotation, found {found}")
    fields: dict[str, Any] = as_object(record[0])
    annotation = _Annotation(
        album=id_field(fields, "album_id"),
        story=id_field(fields, "story_id") if tier == SIS else None,
        order=number_field(fields, _ORDER[tier]),
        photo=id_field(fields, "photo_flickr_id"),
        text=text_field(fields, "original_text").strip(),
    )
    if not 0 <= annotation.order < _STORY:
        raise FieldError(_ORDER[tier], f"expected 0 to {_STORY - 1}, found {annotation.order}")
    return annotation
