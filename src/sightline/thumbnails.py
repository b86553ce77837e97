"""Small pictures of a corpus's images for figures and pages, decoded where they can do no harm."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from PIL import Image

from sightline.decode_pool import DecodePool
from sightline.features import FeatureStore
from sightline.files import lies_within
from sightline.html_writing import data_address
from sightline.image_colours import Pixels
from sightline.image_headers import SUFFIXES

# Corpora that name images by id keep the files here, if they have them.
_FOLDER = "images"
_SUFFIXES = sorted(SUFFIXES, key=(".jpg", ".png").__contains__, reverse=True)  # the usual first
#: A picture more elongated than this is cut to it from its middle.
_LONGEST = 2.0
_QUALITY = 75


def read_thumbnails(
    root: Path, images: Iterable[str], side: int, workers: int | None = None
) -> dict[str, Pixels]:
    """Pictures of at most `side` pixels for those images of a corpus that have a readable file."""
    files = {
        image: file
        for image in dict.fromkeys(images)
        if (file := image_file(root, image)) is not None
    }
    thumbnails: dict[str, Pixels] = {}
    if not files:
        return thumbnails
    with DecodePool(workers) as pool:
        decoded = pool.decode_many(files.values(), side)
        for image, result in zip(files, decoded, strict=True):
            if result.pixels is not None:
                thumbnails[image] = _shrunk(result.pixels, side)
    return thumbnails


def image_file(root: Path, image: str) -> Path | None:
    """The file of an image, given by path or by id; None if there is none within the corpus.

    A path that leads out of the corpus's folder is refused: what the page shows may be published.
    """
    if "\0" in image or leads_outside(image):
        return None
    by_id = FeatureStore.image_id(image)
    candidates = [root / image, *(root / _FOLDER / f"{by_id}{suffix}" for suffix in _SUFFIXES)]
    for candidate in candidates:
        try:
            if candidate.is_file():
                return candidate if lies_within(candidate, root) else None
        except OSError:  # a name that is too long
            return None
    return None


def leads_outside(image: str) -> bool:
    """Say whether the path of an image leads out of the corpus's folder, on any system."""
    paths = PurePosixPath(image), PureWindowsPath(image)
    return any(path.anchor or ".." in path.parts for path in paths)


def _shrunk(pixels: Pixels, side: int) -> Pixels:
    height, width = pixels.shape[:2]
    across, down = min(width, int(height * _LONGEST) or 1), min(height, int(width * _LONGEST) or 1)
    left, top = (width - across) // 2, (height - down) // 2
    picture = Image.fromarray(pixels[top : top + down, left : left + across])
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return np.asarray(picture)


def jpeg_address(pixels: Pixels) -> str:
    """A picture as it stands in a page."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=_QUALITY)
    return data_address(buffer.getvalue())
