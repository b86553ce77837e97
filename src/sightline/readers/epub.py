"""EPUB books: the chapters of the spine, one after the other, read as HTML pages.

A book is one page: its files are cut where it suits the program that made it, often in the middle
of a chapter, and one file in gives one document out. Chapters begin at headings. This runs in the
child process of `isolation`.
"""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from sightline.pages import Block, LeftOut, Page, PageImage
from sightline.problems import SightlineError
from sightline.readers.contents import MAX_BLOCKS, Contents, read_image_files
from sightline.readers.epub_files import is_document, is_picture, may_be_read
from sightline.readers.html import MAX_BYTES, read_html
from sightline.readers.html_images import is_remote
from sightline.safe_xml import attribute, local, parse_xml
from sightline.zip_limits import REPLACED, Archive

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PACKAGE = (None, "", "application/oebps-package+xml")
_SVG = "image/svg+xml"
_XHTML = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/xml")
_NCX = "application/x-dtbncx+xml"  # a table of contents of older books
# What holds text, however it begins.
_TEXTS = (*_XHTML, "text/plain", "application/x-dtbook+xml", _NCX)
_MAX_FILES = 5_000  # of the spine
_MAX_CHARACTERS = 16_000_000  # of the book; the Bible has 4 million
_MAX_CHAIN = 20  # items that stand in for one another
_UNREADABLE = "files that cannot be read (number)"


@dataclass(frozen=True, slots=True)
class _Item:
    """A file as the package lists it."""

    name: str
    target: str
    media: str
    #: The name of the item that stands in for one that cannot be read.
    fallback: str | None
    is_contents: bool


@dataclass(frozen=True, slots=True)
class _Spine:
    """Paths of the files in reading order, and which of them are pictures."""

    names: list[str]
    pictures: set[str]
    #: Files that another stands in for.
    replaced: set[str]


@dataclass(frozen=True, slots=True)
class _Book:
    title: str | None
    language: str | None
    packages: list[str]
    #: As all packages list them.
    items: list[_Item]
    spine: _Spine
    left_out: LeftOut


def read_epub(path: Path, *, seconds: float = 8.0) -> Contents:
    """Read a book; raises `SightlineError` whose sentence goes on after the file's name.

    After so many seconds of CPU time it ends with the chapters read so far.
    """
    end = time.process_time() + seconds
    with Archive(path) as archive:
        book = _book(archive)
        _refuse_drm(archive, book)
        blocks, images = _read_chapters(archive, book, end)
        sources = (_first_in(archive, image) for image in images)
        files = read_image_files(archive, sources, book.left_out)
        _count_other_texts(archive, book, set(files))
    title = book.title or next((b.text for b in blocks if b.level == 1), None)
    left_out = LeftOut(+book.left_out.text, +book.left_out.images)
    return Contents(Page(title, tuple(blocks), tuple(images), book.language, left_out), files)


def _read_chapters(
    archive: Archive, book: _Book, end: float
) -> tuple[list[Block], list[PageImage]]:
    blocks: list[Block] = []
    images: list[PageImage] = []
    damage: SightlineError | None = None
    characters = 0
    names, text = book.spine.names[:_MAX_FILES], book.left_out.text
    text["beyond the limit on files (bytes)"] = _bytes(archive, book.spine.names[_MAX_FILES:])
    for number, name in enumerate(names):
        if time.process_time() >= end:
            text["beyond the limit on time (bytes)"] = _bytes(archive, names[number:])
            break
        if len(blocks) >= MAX_BLOCKS or characters >= _MAX_CHARACTERS:
            text["beyond the limit on text (bytes)"] = _bytes(archive, names[number:])
            break
        if name in book.spine.pictures:
            images.append(PageImage(name, len(blocks) - 1))
            continue
        try:
            chapter = _chapter(archive, name, book)
        except SightlineError as error:
            damage = error
            text[_UNREADABLE] += 1
            continue
        characters += sum(len(block.text) for block in chapter.blocks)
        images += _moved(chapter, name, len(blocks))
        blocks += chapter.blocks
    if damage is not None and not blocks and not images:
        raise damage
    return blocks, images


def _bytes(archive: Archive, names: list[str]) -> int:
    return sum(map(archive.size, names))


def _book(archive: Archive) -> _Book:
    """Read the first package; of any others, what they list."""
    packages = _package_paths(archive)
    package = parse_xml(archive.read(packages[0]))
    items, left_out = _items(package, packages[0]), LeftOut()
    spine = _spine(archive, package, items, left_out)
    left_out.text[REPLACED] = archive.replaced
    for path in packages[1:]:
        try:
            items += _items(parse_xml(archive.read(path)), path)
        except SightlineError:
            left_out.text[_UNREADABLE] += 1
    title, language = _metadata(package, "title"), _metadata(package, "language")
    return _Book(title, language, packages, items, spine, left_out)


def _items(package: Element, path: str) -> list[_Item]:
    return [
        _Item(
            attribute(element, "id") or "",
            _join(path, attribute(element, "href") or ""),
            (attribute(element, "media-type") or "").partition(";")[0].strip().lower(),
            attribute(element, "fallback"),
            "nav" in (attribute(element, "properties") or "").split(),
        )
        for element in _elements(package, "manifest", "item")
    ]


def _spine(archive: Archive, package: Element, items: list[_Item], left_out: LeftOut) -> _Spine:
    by_name = {item.name: item for item in items if item.name}
    spine, listed = _Spine([], set(), set()), set[str]()
    for reference in _elements(package, "spine", "itemref"):
        item = by_name.get(attribute(reference, "idref") or "")
        shown = _shown(archive, item, by_name)
        if item is None or item.target not in archive:
            left_out.text["missing files (number)"] += 1
        elif shown is not item:
            spine.replaced.add(item.target)
            left_out.text["files that are no text (number)"] += 1
        if shown is None or shown.is_contents:
            continue
        if shown.target in listed:
            left_out.text["files that are listed again (number)"] += 1
        else:
            listed.add(shown.target)
            spine.names.append(shown.target)
            if shown.media.startswith("image/") and shown.media != _SVG:
                spine.pictures.add(shown.target)
    if not spine.names:
        raise SightlineError("it is damaged: its list of chapters is empty.")
    return spine


def _shown(archive: Archive, item: _Item | None, by_name: dict[str, _Item]) -> _Item | None:
    """Follow an item to the first in its place that can be read; None if there is none."""
    for _ in range(_MAX_CHAIN):
        if item is None:
            break
        if item.target in archive and (item.media in _XHTML or item.media.startswith("image/")):
            return item
        item = by_name.get(item.fallback or "")
    return None


def _count_other_texts(archive: Archive, book: _Book, images: set[str]) -> None:
    """Count the files with text that no chapter is; no package need list them."""
    media = {item.target: item.media for item in book.items}
    contents = {item.target for item in book.items if item.is_contents}
    pictures = book.spine.pictures | images
    told = {*book.packages, *book.spine.names, *book.spine.replaced} - pictures
    for name in archive.names():
        if name in told:
            continue
        try:
            if name in pictures and is_picture(archive, name):
                continue
            is_text = media.get(name) in _TEXTS or may_be_read(archive, name)
            if not is_text and is_document(archive, name):
                book.left_out.text["documents in the book (number)"] += 1
        except SightlineError:
            book.left_out.text[_UNREADABLE] += 1
            continue
        if is_text:
            is_list = name in contents or media.get(name) == _NCX or name.lower().endswith(".ncx")
            what = "table of contents" if is_list else "files outside the reading order"
            book.left_out.text[f"{what} (bytes)"] += archive.size(name)


def _package_paths(archive: Archive) -> list[str]:
    """Give the packages that the container names, which may be several forms of the book."""
    if _CONTAINER not in archive:
        raise SightlineError("it is not an EPUB book: it holds no META-INF/container.xml.")
    roots = [e for e in parse_xml(archive.read(_CONTAINER)).iter() if local(e.tag) == "rootfile"]
    paths = (attribute(e, "full-path") for e in roots if attribute(e, "media-type") in _PACKAGE)
    found = list(dict.fromkeys(path for path in paths if path))
    if not found:
        raise SightlineError("it is damaged: its container names no package.")
    return found


def _elements(package: Element, parent: str, name: str) -> Iterator[Element]:
    for element in package:
        if local(element.tag) == parent:
            yield from (child for child in element if local(child.tag) == name)


def _metadata(package: Element, name: str) -> str | None:
    for element in _elements(package, "metadata", name):
        text = " ".join((element.text or "").split())
        if text:
            return text
    return None


def _refuse_drm(archive: Archive, book: _Book) -> None:
    data = archive.find(_ENCRYPTION)
    if data is None:
        return
    spine = set(book.spine.names)
    for element in parse_xml(data).iter():
        is_encrypted = local(element.tag) == "CipherReference"
        if is_encrypted and _join("", attribute(element, "URI") or "") in spine:
            raise SightlineError(
                "it is encrypted by a copy protection (DRM), so that only its seller's programs "
                "can read it; use a copy without that."
            )


def _chapter(archive: Archive, name: str, book: _Book) -> Page:
    """Read one file of the spine; one that is too large is left out."""
    left_out = book.left_out
    if archive.size(name) > MAX_BYTES:
        left_out.text["beyond the limit on bytes (bytes)"] += archive.size(name)
        return Page(None, (), ())
    page = read_html(archive.read(name), main_content=False, xml=True, images_in_svg=True)
    left_out.update(page.left_out)
    told = (book.title, *(block.text for block in page.blocks))
    if page.title and page.title not in told:
        left_out.text["titles of files"] += len(page.title)
    return page


def _moved(chapter: Page, name: str, blocks: int) -> Iterator[PageImage]:
    """Yield a chapter's images as they stand in the book."""
    for image in chapter.images:
        sources = [_resolve(name, source) for source in (image.source, *image.alternatives)]
        yield replace(
            image,
            source=sources[0],
            alternatives=tuple(sources[1:]),
            block=image.block + blocks,
            caption_blocks=tuple(block + blocks for block in image.caption_blocks),
        )


def _resolve(chapter: str, source: str) -> str:
    if is_remote(source) or source[:5].lower() == "data:":
        return source
    return _join(chapter, source)


def _join(path: str, reference: str) -> str:
    """Give the member that a reference in another one means; it cannot lead out of the archive."""
    folder, name = posixpath.dirname(path), unquote(re.split("[#?]", reference, maxsplit=1)[0])
    return posixpath.normpath(posixpath.join("/", folder, name)).lstrip("/")


def _first_in(archive: Archive, image: PageImage) -> str:
    sources = (image.source, *image.alternatives)
    return next((source for source in sources if source in archive), image.source)
