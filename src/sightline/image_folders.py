"""The folder of image files that belongs to a dataset: which images are there, and are sound."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sightline.decode_pool import DecodePool
from sightline.problems import SightlineError
from sightline.progress import Progress

# Small pixels come back from the decoders at once; what is damaged shows all the same.
_SHORTER_SIDE = 16


@dataclass(frozen=True, eq=False)
class ImageFolder:
    """Image files by name and by id, wherever they lie below a folder.

    The documents of the corpus folder name an image by its path from there.
    """

    folder: Path
    corpus: Path
    _files: dict[str, Path]

    @classmethod
    def open(cls, folder: Path, corpus: Path) -> ImageFolder:
        """List the files below a folder; of two with one name, the first by path is taken."""
        if not folder.is_dir():
            raise SightlineError(f"{folder}: no such folder of images.")
        files: dict[str, Path] = {}
        for place, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = Path(place, name)
                files.setdefault(name, path)
                files.setdefault(path.stem, path)
        if not files:
            raise SightlineError(f"{folder}: no files in this folder of images.")
        return cls(folder, corpus, files)

    def find(self, image: str) -> Path | None:
        """Give the file of an image, by its file name or by its id; None if it is missing."""
        return self._files.get(image)

    def name(self, path: Path) -> str:
        """Give the name that documents of the corpus use for a file."""
        return Path(os.path.relpath(path, self.corpus)).as_posix()

    def invalid(self, images: Iterable[str]) -> set[str]:
        """Decode every image that is there, in isolation; gives those that cannot be."""
        found = {image: path for image in images if (path := self.find(image)) is not None}
        invalid = set()
        with DecodePool() as pool, Progress("checking images", len(found), "images") as progress:
            decoded = pool.decode_many(found.values(), _SHORTER_SIDE)
            for image, result in zip(found, decoded, strict=True):
                if result.pixels is None:
                    invalid.add(image)
                progress.advance()
        return invalid
