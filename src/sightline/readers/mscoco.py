"""MSCOCO documents, by the recipe of the paper's supplement, from COCO's caption annotations.

    {"images": [{"id": 9, "file_name": "000000000009.jpg"}, ...],
     "annotations": [{"id": 1, "image_id": 9, "caption": "..."}, ...]}

Half of the images are true, half are fake. Five true and five fake images make a group, groups are
divided into splits, and a group becomes a document: ten images, a caption of each true image and
as many captions of images of other groups of the split, in random order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sightline.distractors import CaptionPool
from sightline.documents import Document, FieldError, Links
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
from sightline.splits import split_size

#: True images of a document, and fake ones, and distractor captions.
_GROUP = 5


@dataclass(slots=True)
class _CaptionedImage:
    """An image and what was written about it, in the order of the annotations' ids."""

    name: str
    captions: list[str]


@dataclass(slots=True)
class _Entry:
    """An image while files are merged: 2014 and 2017 give it different file names."""

    names: set[str] = field(default_factory=set)
    captions: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Group:
    true: list[_CaptionedImage]
    fake: list[_CaptionedImage]


def read_mscoco(
    files: Sequence[Path],
    *,
    seed: int,
    validation: float,
    test: float,
    versions: int,
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Document]:
    """Yield the documents of COCO caption files, which together are one set of images.

    `validation` and `test` are shares of the documents, or numbers from 1 on; the rest is for
    training. A training document has `versions` versions, the v-th with the v-th caption of each
    true image, or fewer if one of its true images has fewer captions; others have one. The same
    images and captions give the same documents, in whichever order the files are named.
    """
    captioned = _captioned_images(files, images, problems, dropped)
    rng = random.Random(seed)
    groups = _groups(captioned, rng)
    validation_size = split_size(len(groups), validation, "val")
    test_size = split_size(len(groups), test, "test")
    train_size = len(groups) - validation_size - test_size
    if train_size < 0:
        raise SightlineError(f"The splits are larger than the {len(groups):,} documents there are.")
    dropped["images left over"] += len(captioned) - 2 * _GROUP * len(groups)
    parts = [
        ("train", groups[:train_size], versions),
        ("val", groups[train_size : train_size + validation_size], 1),
        ("test", groups[train_size + validation_size :], 1),
    ]
    for split, part, count in parts:
        yield from _documents(split, part, count, rng)


def _captioned_images(
    files: Sequence[Path],
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> list[_CaptionedImage]:
    """Merge caption files by image; an image that has no caption, or no file, is left out."""
    entries: dict[int, _Entry] = {}
    for path in files:
        _read_file(path, entries, problems, dropped)
    captioned = []
    for image_id, entry in sorted(entries.items()):
        name = _image_name(image_id, entry, images)
        if name is None:
            dropped["missing images"] += 1
        elif not entry.captions:
            dropped["images without captions"] += 1
        else:
            captions = [caption for _, caption in sorted(entry.captions.items())]
            captioned.append(_CaptionedImage(name, captions))
    return captioned


def _read_file(
    path: Path, entries: dict[int, _Entry], problems: Problems, dropped: Counter[str]
) -> None:
    image_records, annotations = read_lists(path, "images", "annotations")
    for index, record in enumerate(image_records):
        try:
            image = as_object(record)
            number, name = number_field(image, "id"), id_field(image, "file_name")
            entries.setdefault(number, _Entry()).names.add(name)
        except FieldError as error:
            problems.add(path, f"images[{index}]", error.field, error.reason)
    for index, record in enumerate(annotations):
        try:
            _add_caption(as_object(record), entries, dropped)
        except FieldError as error:
            problems.add(path, f"annotations[{index}]", error.field, error.reason)


def _add_caption(
    annotation: dict[str, object], entries: dict[int, _Entry], dropped: Counter[str]
) -> None:
    number, image_id = number_field(annotation, "id"), number_field(annotation, "image_id")
    caption = text_field(annotation, "caption").strip()
    if image_id not in entries:
        raise FieldError("image_id", f"no image has the id {image_id}")
    if not tokenize(caption):
        dropped["captions without tokens"] += 1
    # 2014 and 2017 hold the same annotations under the same ids.
    elif entries[image_id].captions.setdefault(number, caption) != caption:
        raise FieldError("id", f"image {image_id} has another caption with the id {number}")


def _image_name(image_id: int, entry: _Entry, images: ImageFolder | None) -> str | None:
    # The shorter name is that of 2017, whose images the paper takes: no "COCO_val2014_" before it.
    names = sorted(entry.names, key=lambda name: (len(name), name))
    if images is None:
        return names[0]
    for name in (*names, f"{image_id:012d}"):
        if path := images.find(name.rpartition("/")[2]):
            return images.name(path)
    return None


def _groups(captioned: list[_CaptionedImage], rng: random.Random) -> list[_Group]:
    """Pair groups of true with groups of fake images; what does not fill a group is left over."""
    shuffled = rng.sample(captioned, len(captioned))
    half = len(shuffled) // 2
    true, fake = shuffled[:half], shuffled[half:]
    return [
        _Group(true[start : start + _GROUP], fake[start : start + _GROUP])
        for start in range(0, half - _GROUP + 1, _GROUP)
    ]


def _documents(
    split: str, groups: list[_Group], versions: int, rng: random.Random
) -> Iterator[Document]:
    pool = CaptionPool(
        (image.name, caption)
        for group in groups
        for image in (*group.true, *group.fake)
        for caption in image.captions
    )
    for number, group in enumerate(groups):
        captions = [rng.sample(image.captions, len(image.captions)) for image in group.true]
        # The paper makes "(usually) 5": an image with fewer captions cannot have a fifth version,
        # and one with more would give a version in which the other images have no new caption.
        for version in range(min(versions, *map(len, captions))):
            name, extra = f"{split}-{number}", {}
            if versions > 1:
                name, extra = f"{name}-v{version}", {"version": version}
            images = [image.name for image in (*group.true, *group.fake)]
            own = [of_image[version] for of_image in captions]
            sentences = own + pool.draw(_GROUP, images, rng)
            yield Document(name, *_mixed(sentences, images, rng), split, extra)


def _mixed(
    sentences: list[str], images: list[str], rng: random.Random
) -> tuple[tuple[str, ...], tuple[str, ...], Links]:
    """Mix sentences and images, the first of which are linked: their places then tell nothing."""
    sentence_places = rng.sample(range(len(sentences)), len(sentences))
    image_places = rng.sample(range(len(images)), len(images))
    links = zip(sentence_places[:_GROUP], image_places[:_GROUP], strict=True)
    return _placed(sentences, sentence_places), _placed(images, image_places), tuple(sorted(links))


def _placed(values: list[str], places: list[int]) -> tuple[str, ...]:
    """Put each value in its place."""
    return tuple(value for _, value in sorted(zip(places, values, strict=True)))
