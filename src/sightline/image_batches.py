"""Training batches of images that are decoded as they are needed, and changed at random.

The changes are those of the paper's fine-tuning (supplement, "WIKI Fine-tuning Details"). They
are drawn in the order of the batches from one generator, so that they depend neither on how many
workers decode nor on when these are done.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from sightline.batches import Batch
from sightline.decode_pool import DecodePool
from sightline.image_colours import Pixels
from sightline.image_files import SquarePreprocessing, became_unreadable, decode_files

#: Images are turned by up to so many degrees, either way (the paper's value).
DEGREES = 20.0


@dataclass(frozen=True, slots=True)
class Augmentation:
    """What is done to one image: mirrored, turned about its centre, cropped at a place."""

    flip: bool
    angle: float  # degrees, clockwise
    left: int
    top: int

    @classmethod
    def draw(cls, rng: np.random.Generator, side: int, crop: int) -> Augmentation:
        """A random one, for a crop of a square."""
        left, top = rng.integers(side - crop + 1, size=2).tolist()
        return cls(bool(rng.random() < 0.5), float(rng.uniform(-DEGREES, DEGREES)), left, top)


def augment(square: Pixels, augmentation: Augmentation, crop: int) -> Pixels:
    """The changed image, crop x crop; what turning leaves empty repeats the edge, as in Keras."""
    side = len(square)
    angle = math.radians(augmentation.angle)
    cos, sin = math.cos(angle), math.sin(angle)
    # A turned square reaches so far beyond its old edges.
    edge = math.ceil(side / 2 * (cos + abs(sin) - 1)) + 1
    centre = side / 2
    # From a place in the crop to a place in the image, both seen from the image's centre; one
    # interpolation does it all.
    mirror = -1 if augmentation.flip else 1
    right, down = augmentation.left - centre, augmentation.top - centre
    across = (mirror * cos, mirror * sin, mirror * (cos * right + sin * down) + centre + edge)
    along = (-sin, cos, cos * down - sin * right + centre + edge)
    padded = np.pad(square, ((edge, edge), (edge, edge), (0, 0)), mode="edge")
    image = Image.fromarray(padded)
    return np.asarray(
        image.transform(
            (crop, crop), Image.Transform.AFFINE, (*across, *along), Image.Resampling.BILINEAR
        )
    )


def image_batches(
    batches: Iterable[Batch],
    files: Sequence[Path],
    preprocessing: SquarePreprocessing,
    rng: np.random.Generator,
    pool: DecodePool | None = None,
) -> Iterator[Batch]:
    """The batches with the changed pixels of their images; the pool decodes some images ahead."""
    begun: deque[Batch] = deque()

    def wanted() -> Iterator[Path]:
        for batch in batches:
            begun.append(batch)
            yield from (files[row] for row in batch.image_rows)

    side, crop = preprocessing.side, preprocessing.crop
    pixels: list[Pixels] = []
    for decoded in decode_files(wanted(), preprocessing, pool):
        batch = begun[0]
        if decoded.pixels is None:
            raise became_unreadable(files[batch.image_rows[len(pixels)]], decoded)
        change = Augmentation.draw(rng, side, crop)
        pixels.append(augment(preprocessing.square(decoded.pixels), change, crop))
        if len(pixels) == len(batch.image_rows):
            yield replace(begun.popleft(), pixels=np.stack(pixels))
            pixels = []
