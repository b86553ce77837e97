"""A folder of pages as a corpus: which split a page is in, and where its images are."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

from sightline.documents import Document
from sightline.files import write_atomically
from sightline.problems import Problems, SightlineError, UsageError
from sightline.readers.page_folder import PageFolder

#: The folder of a corpus that images are written to.
IMAGES = "images"
_DATA_URI = re.compile(r"data:([\w.+-]*/?[\w.+-]*)((?:;[^;,]*)*),(.*)\Z", re.S | re.I)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}\Z")
_HASH_DIGITS = 16  # of a million images, two are equal with a chance of 1 in 37 million


@dataclass(frozen=True)
class Splits:
    """Which split a page is in: all in one, or shares for validation and test, the rest training.

    A hash of the seed and the page's path decides, so that a page stays in its split when others
    come or go.
    """

    name: str | None = None
    validation: float = 0.0
    test: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        if min(self.validation, self.test) < 0 or self.validation + self.test >= 1:
            raise UsageError(
                f"The shares of validation ({self.validation:g}) and test ({self.test:g}) must not "
                "be negative and must leave some for training."
            )

    def of(self, identifier: str) -> str | None:
        """Give the split of a page."""
        if self.name is not None or not (self.validation or self.test):
            return self.name
        digest = hashlib.sha256(f"{self.seed} {identifier}".encode()).digest()
        place = int.from_bytes(digest[:8], "big") / 2**64
        if place < self.validation:
            return "val"
        return "test" if place < self.validation + self.test else "train"


def page_corpus(
    pages: PageFolder,
    corpus: Path,
    *,
    splits: Splits,
    copy_images: bool,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Document]:
    """Yield the documents of a folder of pages as they stand in a corpus folder.

    Images stay where they are and are named by their path from the corpus, or with `copy_images`
    go to its `images` under a hash of their content, so that no two have one name. Data URIs are
    always written there.
    """
    # A path with `..` in it goes where the links of both folders lead.
    folder, target = pages.folder.resolve(), corpus.resolve()
    for document in pages.documents(problems, dropped):
        images = []
        for image in document.images:
            if image[:5].lower() == "data:":
                images.append(_write_data_uri(image, corpus))
            elif copy_images and (folder / image).is_file():
                images.append(_copy(folder / image, corpus))
            else:
                images.append(Path(os.path.relpath(folder / image, target)).as_posix())
        yield replace(document, images=tuple(images), split=splits.of(document.id))


def decode_data_uri(uri: str) -> tuple[bytes, str] | None:
    """Give the bytes of a data URI and the suffix of a file of its type; None if it is damaged."""
    found = _DATA_URI.match(uri)
    if found is None:
        return None
    data = unquote_to_bytes(found[3])
    if found[2].lower().endswith(";base64"):
        try:
            data = base64.b64decode(re.sub(rb"[^A-Za-z0-9+/]", b"", data) + b"==")
        except binascii.Error:
            return None
    name = re.sub(r"\W.*", "", found[1].lower().rpartition("/")[2])
    return data, "." + {"jpeg": "jpg"}.get(name, name) if name else ""


def _write_data_uri(uri: str, corpus: Path) -> str:
    # What cannot be decoded is written as it is, for the extraction of features to say so.
    data, suffix = decode_data_uri(uri) or (uri.encode("utf-8", "replace"), "")
    return _write(data, suffix, corpus)


def _copy(path: Path, corpus: Path) -> str:
    suffix = _SUFFIX.search(path.name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SightlineError(f"{path}: cannot be read: {error.strerror}") from error
    return _write(data, suffix[0].lower() if suffix else "", corpus)


def _write(data: bytes, suffix: str, corpus: Path) -> str:
    name = f"{IMAGES}/{hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]}{suffix}"
    path = corpus / name
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SightlineError(f"{path.parent}: cannot be made: {error.strerror}") from error
        write_atomically(path, data)
    return name
