"""Wikipedia articles with lists of their images, from the ImageCLEF collection or from JSON lines.

The ImageCLEF 2010/2011 Wikipedia collection has a file for each image and one for each article:

    metadata/<n>/<image id>.xml
        <image id="244845" file="images/25/244845.jpg">
          <text xml:lang="en">
            <description/> <comment/>
            <caption article="text/en/9/441949">...</caption>
          </text> ...
    text/en/9/441949                        the article, in wikitext

No genuine file was at hand. The names of these elements and attributes are those by which two
published programs read the collection: MUCKE's `CLEF2011WikiMetaIndexer` (github.com/mucke/mucke)
and TextTopicNet's `generate_train_dict.py` (github.com/lluisgomez/TextTopicNet), which also show
that `article` is a path from the collection's folder, empty where there is none, and that the
file it names is wikitext. Anything else in a file is skipped.

Any other dump can be turned into lines like these; `title` may be left out:

    {"id": "441949", "title": "Mauritius", "text": "'''Mauritius''' is ...", "images": ["a.jpg"]}
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from xml.parsers import expat

from sightline.documents import FieldError, kind
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress
from sightline.readers.json_records import as_object, id_field, text_field
from sightline.readers.native import json_lines, open_for_reading

# Bytes. The longest article of the English Wikipedia has about 1 MB, an image's metadata far less.
_LONGEST_ARTICLE = 16 * 2**20
_LONGEST_METADATA = 2**20
_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Article:
    """An article in wikitext and the names of its images; the title where it is known."""

    id: str
    text: str
    images: tuple[str, ...]
    title: str | None = None


def read_article_lines(path: Path, problems: Problems) -> Iterator[Article]:
    """Yield the articles of a JSONL file; a bad line is a problem."""
    for number, value in json_lines(path, problems):
        try:
            record = as_object(value)
            title = record.get("title")
            if title is not None and type(title) is not str:
                raise FieldError("title", f"expected a string or null, found {kind(title)}")
            article = Article(
                id_field(record, "id"), text_field(record, "text"), _image_list(record), title
            )
        except FieldError as error:
            problems.add(path, number, error.field, error.reason)
        else:
            yield article


def read_imageclef(
    folder: Path, language: str, minimum_images: int, problems: Problems, dropped: Counter[str]
) -> Iterator[Article]:
    """Yield the articles of one language that have so many images at least.

    The metadata are read first, all of them: they know the images of an article, the article does
    not. The text of an article is read when it is its turn.
    """
    root = _collection_root(folder)
    for article, images in _images_by_article(root, language, problems).items():
        if len(images) < minimum_images:
            dropped[f"articles of fewer than {minimum_images} images"] += 1
            continue
        text = _read(root / article, _LONGEST_ARTICLE)
        if text is None:
            dropped["articles without a readable text"] += 1
        else:
            yield Article(article, text.decode("utf-8", "replace"), tuple(images))


def _collection_root(folder: Path) -> Path:
    """Find the folder that holds `metadata` and `text`: this one, or `all_text` in it."""
    for root in (folder, folder / "all_text"):
        if (root / _METADATA).is_dir():
            return root
    raise SightlineError(
        f"{folder}: no folder {_METADATA} in it; expected the ImageCLEF Wikipedia collection, or a "
        "file of JSON lines."
    )


def _images_by_article(root: Path, language: str, problems: Problems) -> dict[str, list[str]]:
    """Read all metadata: which images each article has, in the order of their files."""
    articles: dict[str, list[str]] = {}
    with Progress("reading metadata", None, "images") as progress:
        for place, folders, names in os.walk(root / _METADATA):
            folders.sort()
            for name in sorted(names):
                if not name.endswith(".xml"):
                    continue
                progress.advance()
                path = Path(place, name)
                try:
                    image, named = _parse(path, language)
                except FieldError as error:
                    problems.add(path, None, error.field, error.reason)
                    continue
                for article in named:
                    articles.setdefault(article, []).append(image)
    return articles


def _parse(path: Path, language: str) -> tuple[str, list[str]]:
    """Give the file of an image and the articles that show it, out of its metadata."""
    data = _read(path, _LONGEST_METADATA)
    if data is None:
        raise FieldError(None, f"cannot be read, or is longer than {_LONGEST_METADATA:,} bytes")
    metadata = _Metadata(language)
    parser = expat.ParserCreate()
    # Only what a file declares itself could make it grow; nothing else is ever fetched.
    parser.EntityDeclHandler = metadata.refuse_entity
    parser.StartElementHandler = metadata.start
    parser.EndElementHandler = metadata.end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise FieldError(None, f"not valid XML: {error}") from None
    return metadata.image, list(dict.fromkeys(metadata.articles))


class _Metadata:
    """What the metadata of an image say, collected while they are parsed."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.image = ""
        self.articles: list[str] = []
        self._depth = 0
        self._in_language = False

    def refuse_entity(self, name: str, *_: Any) -> None:
        """Stop at a declaration that could be used to make a small file a large one."""
        raise FieldError(None, f"declares the entity {name!r}, which no metadata need")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        if self._depth == 1:
            if name != "image":
                raise FieldError(None, f"expected the element image, found {name}")
            for required in ("id", "file"):
                if not attributes.get(required, "").strip():
                    raise FieldError(f"image/@{required}", "expected, but it is not there")
            self.image = attributes["file"].strip()
        elif self._depth == 2:
            found = attributes.get("xml:lang", attributes.get("lang"))
            self._in_language = name == "text" and found == self.language
        elif name == "caption" and self._depth == 3 and self._in_language:
            article = attributes.get("article", "").strip()
            if article:
                self.articles.append(_inside(article))

    def end(self, _: str) -> None:
        """An element ends."""
        self._depth -= 1


def _inside(article: str) -> str:
    """Refuse a path that leads out of the collection."""
    path = PurePosixPath(article)
    if path.is_absolute() or ".." in path.parts or "\0" in article:
        raise FieldError("caption/@article", f"{article!r} is no path inside the collection")
    return str(path)


def _image_list(record: dict[str, Any]) -> tuple[str, ...]:
    images = record.get("images")
    if not isinstance(images, list):
        found = kind(images) if "images" in record else "no such key"
        raise FieldError("images", f"expected a list of file names, found {found}")
    for index, image in enumerate(images):
        if type(image) is not str or not image.strip():
            raise FieldError(f"images[{index}]", f"expected a file name, found {kind(image)}")
    return tuple(dict.fromkeys(images))


def _read(path: Path, most: int) -> bytes | None:
    """Read a regular file; None if it cannot be read or is longer than that."""
    try:
        if not path.is_file():
            return None
        with open_for_reading(path) as file:
            data = file.read(most + 1)
    except (SightlineError, OSError):
        return None
    return data if len(data) <= most else None
