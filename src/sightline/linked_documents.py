"""Articles and corpora in, documents with their link records out, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.article_links import language_doubt, link_article, read_articles
from sightline.articles import Article, is_article
from sightline.choices import Unit
from sightline.clip_model import Model
from sightline.corpus import Corpus, read, shard_name
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.fetching import Fetcher
from sightline.image_features import ImageSource
from sightline.link_records import link_records, open_images
from sightline.linking import LinkChoices
from sightline.problems import Problems


@dataclass(frozen=True, slots=True)
class LinkedDocument:
    """A document and its link record, with the article that it is, if it is one."""

    document: Document
    record: dict[str, Any]
    article: Article | None = None

    def content(self, image: int) -> Path | bytes | None:
        """Give the file or the bytes of an image; whether a file is there, reading it tells."""
        if self.article is not None:
            return self.article.images[image].content
        return (self.document.folder or Path()) / self.document.images[image]


def linked_documents(
    inputs: Iterable[Path],
    model: Model,
    choices: LinkChoices,
    pool: DecodePool,
    problems: Problems,
    *,
    unit: Unit = "sentence",
    fetch: Fetcher | None = None,
    folders: Iterable[Path] = (),
    split: str | None = None,
    features: Path | None = None,
    matrix: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[LinkedDocument]:
    """Yield the documents of articles and corpora in their order; what cannot be read is a problem.

    `unit`, `fetch` and `folders`, whose images their articles may show, are for articles;
    `split`, `features` (a store, or a folder with one for each file) and `matrix` for corpora: the
    record of an article always has its matrix.
    """
    corpus, is_empty = None, True
    for path in inputs:
        if is_article(path):
            for article in read_articles([path], problems, unit, fetch, True, folders):
                if doubt := language_doubt(model, article):
                    say(f"{article.path}: {doubt}")
                record = link_article(model, article, choices, pool)
                is_empty = False
                yield LinkedDocument(article.document, record, article)
        else:
            corpus = read(path, split=split, problems=problems, allow_empty=True)
            images = open_images(model, corpus, _store_of(path, features), say, pool)
            for linked in _of_corpus(corpus, model, images, choices, matrix):
                is_empty = False
                yield linked
    if is_empty and corpus is not None and corpus.split is not None and corpus.splits:
        raise corpus.split_not_found(corpus.split)


def _store_of(path: Path, features: Path | None) -> Path | None:
    """The feature store of a corpus: its own in a folder of stores, or the one for all."""
    if features is None:
        return None
    own = features / shard_name(path.name)
    return own if own.is_dir() else features


def _of_corpus(
    corpus: Corpus,
    model: Model,
    images: ImageSource,
    choices: LinkChoices,
    matrix: bool,
) -> Iterator[LinkedDocument]:
    # Documents are linked many at a time, so that records lag behind.
    waiting: deque[Document] = deque()

    def watched() -> Iterator[Document]:
        for document in corpus.documents(corpus.split):
            waiting.append(document)
            yield document

    for record in link_records(model, watched(), images, choices, matrix):
        yield LinkedDocument(waiting.popleft(), record)
