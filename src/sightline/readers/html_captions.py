"""Which images of a walk are the same, and which blocks are their captions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from sightline.pages import BlockKind
from sightline.readers.html_parts import Walk, WalkedImage

#: A source that a page shows more often is an ornament of it: a bullet, a smiley, a divider.
_MOST_REPETITIONS = 3
_MOST_CAPTIONS = 8  # blocks of the caption of one image
# What sizes of one image differ in: the end of the name and the query.
_SIZE_IN_NAME = re.compile(r"[-_]\d{2,4}x\d{2,4}(?=\.\w+$)")


def drop_repeated_images(walk: Walk) -> None:
    """Leave out ornaments, and what `noscript` repeats of the lazy images before it."""
    keys = [_key(image) for image in walk.images]
    shown = {key for key, image in zip(keys, walk.images, strict=True) if not image.in_noscript}
    counts = Counter(keys)
    kept: list[WalkedImage] = []
    lazy: WalkedImage | None = None  # the last one that nothing stands in for yet
    for key, image in zip(keys, walk.images, strict=True):
        if not image.in_noscript and image.tag.lazy:
            lazy = image
        if image.in_noscript and (key in shown or (lazy and lazy.block == image.block)):
            walk.left_out.images["repeated in noscript"] += 1
            lazy = None
        elif counts[key] > _MOST_REPETITIONS:
            walk.left_out.images["ornament"] += 1
        else:
            kept.append(image)
    _renumber(walk, kept)


def _renumber(walk: Walk, kept: list[WalkedImage]) -> None:
    if len(kept) == len(walk.images):
        return
    chosen = {id(image) for image in kept}
    before = [0]
    for image in walk.images:
        before.append(before[-1] + (id(image) in chosen))
    for box in walk.boxes:
        box.first_image, box.last_image = before[box.first_image], before[box.last_image]
    walk.images = kept


def _key(image: WalkedImage) -> str:
    source = image.tag.sources[0]
    if source.startswith("data:"):
        return source
    return _SIZE_IN_NAME.sub("", source.partition("?")[0].partition("#")[0])


def assign_captions(walk: Walk) -> None:
    """Give each image its captions: what describes it, what its figure has, what is beside it.

    Captions of table rows are there already.
    """
    taken = {block for image in walk.images for block in image.captions}
    captions: dict[int, list[int]] = defaultdict(list)
    for index, block in enumerate(walk.blocks):
        if block.kind is BlockKind.CAPTION and block.figure >= 0 and index not in taken:
            captions[block.figure].append(index)
    figures: dict[int, list[WalkedImage]] = defaultdict(list)
    # The images that stand in a block or right before it, and those right after it.
    at: dict[int, list[WalkedImage]] = defaultdict(list)
    after: dict[int, list[WalkedImage]] = defaultdict(list)
    for image in walk.images:
        figures[image.figure].append(image)
        at[_place(image)].append(image)
        if image.offset is None:
            after[image.block].append(image)
        for name in (image.described_by or "").split()[:_MOST_CAPTIONS]:
            described = walk.described.get(name, [])
            image.captions = image.captions + described[:_MOST_CAPTIONS]
    for figure, found in captions.items():
        if figure in figures:
            _share(found, figures[figure])
        else:
            for image in at[found[0]] or after[found[-1]]:
                image.captions = image.captions or found
    for image in walk.images:
        image.captions = image.captions[:_MOST_CAPTIONS]


def _place(image: WalkedImage) -> int:
    """Give the block that an image stands in or right before."""
    return image.block + 1 if image.offset is None else image.block


def _share(captions: list[int], images: list[WalkedImage]) -> None:
    """Give the images of a figure its captions: each those after it, or those of the next that has.

    Captions before the first image belong to the images that have none after them.
    """
    groups: list[list[int]] = [[] for _ in range(len(images) + 1)]
    number = 0
    for caption in captions:
        while number < len(images) and _place(images[number]) <= caption:
            number += 1
        groups[number].append(caption)
    following: list[int] = next((g for g in reversed(groups) if g), [])
    for image, own in zip(reversed(images), reversed(groups[1:]), strict=True):
        following = own or following
        image.captions = image.captions or following
