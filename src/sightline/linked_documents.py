"""Articles and corpora as documents with their link records and images, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sightline.articles import ArticleImages, read_article
from sightline.clip_model import ClipModel
from sightline.corpus import Corpus
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.image_features import ImageSource
from sightline.link_records import link_records
from sightline.linking import MaxLinks, Policy
from sightline.model import LinkModel
from sightline.pairs import LinkedDocument
from sightline.problems import Problems, SightlineError


def links_of_article(
    path: Path,
    model: LinkModel | ClipModel,
    policy: Policy,
    max_links: MaxLinks,
    pool: DecodePool,
    problems: Problems,
) -> Iterator[LinkedDocument]:
    """Yield the document of an article, or nothing and a problem."""
    try:
        article = read_article(path)
    except SightlineError as error:
        problems.add(path, None, None, str(error).removeprefix(f"{path}: "))
        return
    images = ArticleImages([article], model.image_backbone, pool)
    contents = [image.content for image in article.images]
    for record in link_records(model, [article.document], images, policy, max_links):
        yield article.document, record, contents.__getitem__


def links_of_corpus(
    corpus: Corpus,
    model: LinkModel | ClipModel,
    images: ImageSource,
    policy: Policy,
    max_links: MaxLinks,
) -> Iterator[LinkedDocument]:
    """Yield the documents of a corpus in their order."""
    # Documents are linked many at a time, so that records lag behind.
    waiting: deque[Document] = deque()

    def watched() -> Iterator[Document]:
        for document in corpus:
            waiting.append(document)
            yield document

    for record in link_records(model, watched(), images, policy, max_links):
        document = waiting.popleft()
        yield document, record, partial(_file, document)


def _file(document: Document, image: int) -> Path:
    """Give the path of an image; whether there is a file is seen where it is read."""
    return (document.folder or Path()) / document.images[image]
