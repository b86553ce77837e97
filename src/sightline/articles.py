"""Articles: the files that people feed to `sightline link`, with all that is known of their images.

An article is a page (`pages`), the document made of it, and for each image what to decode: a file
beside the article, bytes out of it, or nothing and why. `ArticleImages` gives their features.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeGuard, get_args

import numpy as np

from sightline.backbones import Backbone
from sightline.choices import ARTICLE_SUFFIXES, ArticleKind, ContainerKind, Unit
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.fetching import Fetcher
from sightline.image_features import FloatArray, ImageStatus
from sightline.image_headers import recognise
from sightline.images import Decoded, Status, decode
from sightline.isolation import read_contents, read_page_bounded
from sightline.page_corpus import decode_data_uri
from sightline.pages import Page, PageImage, page_to_document
from sightline.problems import SightlineError
from sightline.readers.html_images import is_remote
from sightline.readers.page_folder import find_image, with_images_beside

#: Of the address of a page.
NOT_DOWNLOADED = "pages are not downloaded; save the page with its images, and name its file"
_NOT_FETCHED = "The image is remote and was not fetched."
_OUTSIDE = "It lies outside the page's folder; name the folder that holds both."
_ABSENT = "There is no such file beside the article."
_NOT_INSIDE = "The file does not hold this image."
_DAMAGED_URI = "The data URI is damaged."
_MOST_FETCHED_SOURCES = 3  # of one image: sizes and formats of it
_IMAGES_AT_ONCE = 16  # in one run of the network


@dataclass(frozen=True, slots=True)
class ArticleImage:
    """One image of an article, and what its article says of it."""

    #: Its path from the article's folder or within the file, its URL, or a name made up for it.
    name: str
    #: What `images.decode` takes; None where there is nothing to decode.
    content: Path | bytes | None
    #: Character offset in the text form of the page.
    position: int
    #: None: the article says nothing; empty: the article says that it is decoration.
    alt: str | None = None
    caption: str | None = None
    title: str | None = None
    decorative: bool = False
    #: Only where there is nothing to decode.
    status: Status | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Article:
    """An article: `page.images[i]`, `document.images[i]` and `images[i]` are one image.

    The page keeps the sources as they are written; the document has the names of the images. Its
    `extra` holds `spans`, `kinds`, `headings`, `positions` and `left_out` (docs/formats).
    """

    path: Path
    kind: ArticleKind
    page: Page
    document: Document
    images: tuple[ArticleImage, ...]
    #: CPU time that reading its file took.
    seconds: float = 0.0


def article_kind(path: Path) -> ArticleKind | None:
    """Tell by its first bytes, then by its suffix, what kind of article a file is, if any.

    Of what cannot be looked into, such as a pipe or a link that leads nowhere, the suffix tells it,
    so that reading it says what is wrong.
    """
    kind = ARTICLE_SUFFIXES.get(path.suffix.lower())
    if not path.is_file():
        return kind if path.is_symlink() or (path.exists() and not path.is_dir()) else None
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as error:
        if kind is not None:
            return kind
        raise SightlineError(f"{path}: cannot be read: {error.strerror}.") from error
    if head.lstrip().startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"PK") and b"mimetypeapplication/epub+zip" in head[30:64]:
        return "epub"
    return "html" if kind is None and recognise(head) == "HTML" else kind


def _is_container(kind: ArticleKind) -> TypeGuard[ContainerKind]:
    return kind in get_args(ContainerKind)


def is_article(path: Path) -> bool:
    """Say whether `read_article` is the function to read a file with."""
    return article_kind(path) is not None


def read_article(
    path: str | Path,
    *,
    unit: Unit = "sentence",
    fetch: Fetcher | None = None,
    images_beside: bool = False,
    folders: Iterable[Path] = (),
) -> Article:
    """Read an article; raises `SightlineError` that names the file if it cannot be.

    PDF, DOCX and EPUB files and large pages are parsed in a child process under limits. Remote
    images are fetched only with `fetch`; local ones are read only from the article's folder, or
    from all of the first of `folders` that it lies in. With `images_beside`, a page that refers to
    no image has those of its folder, if no other page is there.
    """
    path = Path(path)
    kind = article_kind(path)
    if kind is None:
        raise SightlineError(f"{path}: {_no_article(path)}.")
    files: dict[str, bytes] | None = None
    if _is_container(kind):
        contents = read_contents(path, kind)
        page, files = contents.page, contents.files
    else:
        contents = read_page_bounded(path)
        page = contents.page
        page = with_images_beside(page, path) if images_beside else page
    if not page.blocks and not page.images:
        raise SightlineError(f"{path}: {_nothing(page)}.")
    finder = _ImageFinder(path, files, fetch, folders)
    found = [finder.find(image) for image in page.images]
    named = replace(
        page,
        images=tuple(
            replace(image, source=name)
            for image, (name, _, _) in zip(page.images, found, strict=True)
        ),
    )
    document = page_to_document(named, _identifier(path), unit=unit, read_seconds=contents.seconds)
    document = replace(document, folder=path.parent)
    placed = zip(page.images, document.extra["positions"], found, strict=True)
    images = tuple(_article_image(*one) for one in placed)
    return Article(path, kind, page, document, images, contents.seconds)


def _article_image(image: PageImage, position: int, found: _Found) -> ArticleImage:
    name, content, reason = found
    return ArticleImage(
        name=name,
        content=content,
        position=position,
        alt=image.alt,
        caption=image.caption,
        title=image.title,
        decorative=image.decorative,
        status=Status.missing if content is None else None,
        reason=reason,
    )


def _nothing(page: Page) -> str:
    """Say of a page without text and images what was left out of it."""
    left_out = page.left_out.to_record()
    reasons = ", ".join(dict.fromkeys(reason for counts in left_out.values() for reason in counts))
    return "holds no text and no images" + (f" but what is left out: {reasons}" if reasons else "")


_Found = tuple[str, Path | bytes | None, str | None]


def _no_article(path: Path) -> str:
    if str(path).startswith(("http:/", "https:/")):
        return NOT_DOWNLOADED
    if path.is_dir():
        return "is a folder; name the file of one article"
    return "is not HTML, Markdown, text, PDF, DOCX or EPUB" if path.exists() else "no such file"


class _ImageFinder:
    """Finds what to decode for the images of one article."""

    def __init__(
        self,
        path: Path,
        files: dict[str, bytes] | None,
        fetch: Fetcher | None,
        folders: Iterable[Path],
    ) -> None:
        self.folder = path.parent.resolve()
        around = (folder.resolve() for folder in folders)
        self.root = next((one for one in around if self.folder.is_relative_to(one)), self.folder)
        #: Those inside a file that holds its images; a page has none.
        self.files = files or {}
        self.is_container = files is not None
        self.fetch = fetch
        self.made_up = 0

    def find(self, image: PageImage) -> _Found:
        """Give the name of an image, its content, and the reason if there is none."""
        sources = (image.source, *image.alternatives)
        for source in sources:
            if source in self.files:
                return source, self.files[source], None
            if source[:5].lower() == "data:":
                return self._data_uri(source)
        if not self.is_container:
            name, reason = find_image(image, self.folder, self.root)
            if self.root != self.folder and reason in (None, "missing"):
                name = Path(os.path.relpath(self.root / name, self.folder)).as_posix()
            if reason is None:
                return name, self.folder / name, None
            if reason == "missing" and not (self.fetch and any(map(is_remote, sources))):
                return name, None, _ABSENT
        remote = [source for source in sources if is_remote(source)]
        if remote:
            return self._remote(remote)
        return image.source, None, _NOT_INSIDE if self.is_container else _OUTSIDE

    def _data_uri(self, uri: str) -> _Found:
        self.made_up += 1
        decoded = decode_data_uri(uri)
        name = f"embedded-image-{self.made_up}{decoded[1] if decoded else ''}"
        return (name, decoded[0], None) if decoded else (name, None, _DAMAGED_URI)

    def _remote(self, sources: Sequence[str]) -> _Found:
        if self.fetch is None:
            return sources[0], None, _NOT_FETCHED
        reasons = []
        for source in sources[:_MOST_FETCHED_SOURCES]:
            try:
                return source, self.fetch.fetch(source), None
            except SightlineError as error:
                reasons.append(str(error))
        return sources[0], None, reasons[0]


def _identifier(path: Path) -> str:
    """Give the path as text, whatever bytes it holds."""
    return os.fsencode(path.as_posix()).decode("utf-8", "replace")


@dataclass(frozen=True, eq=False)
class ArticleImages:
    """The features of articles' images (an `image_features.ImageSource`)."""

    articles: Sequence[Article]
    backbone: Backbone
    #: Worker processes to decode in; without them, this process decodes.
    pool: DecodePool | None = None

    def read(self, documents: Sequence[Document]) -> tuple[list[list[ImageStatus]], FloatArray]:
        """Decode the images of the articles that the documents were made of, known by their id."""
        articles = {article.document.id: article for article in self.articles}
        statuses: list[list[ImageStatus]] = []
        vectors = [np.empty((0, self.backbone.dimension), np.float32)]
        for document in documents:
            found: list[ImageStatus] = []
            images = articles[document.id].images
            for image, (decoded, vector) in zip(images, self._encode(images), strict=True):
                status = {"id": image.name, "status": str(decoded.status), "reason": decoded.reason}
                found.append(status)
                if vector is not None:
                    vectors.append(vector[None])
            statuses.append(found)
        return statuses, np.concatenate(vectors)

    def _encode(
        self, images: Sequence[ArticleImage]
    ) -> Iterator[tuple[Decoded, FloatArray | None]]:
        """Yield what became of each image, with its features where it could be decoded."""
        decoded = self._decode(images)
        while group := list(islice(decoded, _IMAGES_AT_ONCE)):
            inputs = [self.backbone.preprocess(d.pixels) for d in group if d.pixels is not None]
            vectors = iter(self.backbone.features(np.stack(inputs)) if inputs else ())
            for result in group:
                yield result, None if result.pixels is None else next(vectors)

    def _decode(self, images: Sequence[ArticleImage]) -> Iterator[Decoded]:
        preprocessing = self.backbone.preprocessing
        side, interpolation = preprocessing.shorter_side, preprocessing.interpolation
        contents = (image.content for image in images if image.content is not None)
        if self.pool is not None:
            results = self.pool.decode_many(contents, side, interpolation)
        else:
            results = (decode(c, side, interpolation=interpolation) for c in contents)
        for image in images:
            if image.content is not None:
                yield next(results)
            else:
                yield Decoded(None, image.status or Status.missing, image.reason)
