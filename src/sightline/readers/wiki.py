"""WIKI documents, by the recipe of the paper's supplement: articles with at least 3 images.

Wiki markup is stripped, the text is split into sentences, and the first 100 are kept; an article
with fewer than 10 sentences or fewer than 3 images is left out. Which sentence an image belongs to
is not known. Captions are not part of the text.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Self

import orjson

from sightline.documents import Document
from sightline.image_folders import ImageFolder
from sightline.problems import Problems
from sightline.readers.wiki_articles import Article, read_article_lines, read_imageclef
from sightline.sentence_splitting import sentence_strings
from sightline.splits import random_splits
from sightline.wiki_markup import strip_markup

_MAXIMUM_SENTENCES = 100
_MINIMUM_SENTENCES = 10
MINIMUM_IMAGES = 3


def read_wiki(
    source: Path,
    *,
    language: str,
    seed: int,
    validation: float,
    test: float,
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Document]:
    """Yield the documents of the ImageCLEF collection, a folder, or of articles in JSON lines.

    `validation` and `test` are shares of the documents, or numbers from 1 on. Documents wait for
    their splits in a temporary file, so that the number of articles does not matter.
    """
    if source.is_dir():
        articles = read_imageclef(source, language, MINIMUM_IMAGES, problems, dropped)
    else:
        articles = read_article_lines(source, problems)
    with _Drafts() as drafts:
        for draft in _drafted(articles, source, images, problems, dropped):
            drafts.add(draft)
        invalid: set[str] = set()
        if images is not None:
            listed = dict.fromkeys(image for draft in drafts for image in draft["images"])
            invalid = images.invalid(listed)
        kept = [draft["id"] for draft in drafts if _has_images(draft, invalid, dropped)]
        splits = random_splits(kept, validation, test, seed)
        for draft in drafts:
            if draft["id"] in splits:
                yield _document(draft, splits[draft["id"]], invalid, images)


def article_sentences(wikitext: str) -> list[str]:
    """Give the first sentences of an article, without its markup."""
    sentences: list[str] = []
    for paragraph in strip_markup(wikitext):
        # The quick splitter: on English prose it is the better one too (docs/decisions.md).
        for sentence in sentence_strings(paragraph, fast=True):
            if any(map(str.isalnum, sentence)):
                sentences.append(sentence)
                if len(sentences) == _MAXIMUM_SENTENCES:
                    return sentences
    return sentences


def _drafted(
    articles: Iterator[Article],
    source: Path,
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[dict[str, Any]]:
    """Give the articles that are long enough and, as far as can be seen yet, have images."""
    seen: set[str] = set()
    for article in articles:
        if article.id in seen:
            problems.add(source, article.id, "id", "an article before has the same")
            continue
        seen.add(article.id)
        names = [PurePosixPath(image).name if images else image for image in article.images]
        found = [name for name in names if images is None or images.find(name)]
        dropped["missing images"] += len(names) - len(found)
        if len(found) < MINIMUM_IMAGES:
            dropped[f"articles of fewer than {MINIMUM_IMAGES} images"] += 1
            continue
        sentences = article_sentences(article.text)
        if len(sentences) < _MINIMUM_SENTENCES:
            dropped[f"articles of fewer than {_MINIMUM_SENTENCES} sentences"] += 1
            continue
        yield {
            "id": article.id,
            "title": article.title,
            "sentences": sentences,
            "images": list(dict.fromkeys(found)),
        }


def _has_images(draft: dict[str, Any], invalid: set[str], dropped: Counter[str]) -> bool:
    bad = sum(image in invalid for image in draft["images"])
    dropped["invalid images"] += bad
    enough = len(draft["images"]) - bad >= MINIMUM_IMAGES
    dropped[f"articles of fewer than {MINIMUM_IMAGES} images"] += not enough
    return enough


def _document(
    draft: dict[str, Any], split: str, invalid: set[str], images: ImageFolder | None
) -> Document:
    valid = [image for image in draft["images"] if image not in invalid]
    if images is not None:
        files = (images.find(image) for image in valid)
        valid = [images.name(file) for file in files if file is not None]
    extra = {} if draft["title"] is None else {"title": draft["title"]}
    return Document(draft["id"], tuple(draft["sentences"]), tuple(valid), None, split, extra=extra)


class _Drafts:
    """Records in a temporary file, to go through more than once."""

    def __enter__(self) -> Self:
        self._file = tempfile.TemporaryFile()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, record: dict[str, Any]) -> None:
        """Put one more record at the end."""
        self._file.write(orjson.dumps(record) + b"\n")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        return map(orjson.loads, self._file)
