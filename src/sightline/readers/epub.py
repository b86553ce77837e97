"""EPUB books: the chapters of the spine, one after the other, read as HTML pages.

A book is one page: its files are cut where it suits the program that made it, often in the middle
of a chapter, and one file in gives one document out. Chapters begin at headings. This runs in the
child process of `isolation`.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from sightline.pages import Block, LeftOut, Page, PageImage
from sightline.problems import SightlineError
from sightline.readers.contents import Contents, read_image_files
from sightline.readers.html import MAX_BYTES, read_html
from sightline.readers.html_images import is_remote
from sightline.safe_xml import attribute, local, parse_xml
from sightline.zip_limits import Archive

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_XHTML = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/xml")
# What holds text too, though no chapter is read from it.
_TEXTS = (*_XHTML, "text/plain", "application/x-dtbook+xml")
_TEXT_SUFFIXES = (".xhtml", ".xht", ".html", ".htm", ".txt")
_MAX_FILES = 5_000  # of the spine
# These only scramble fonts; the text is readable.
_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


@dataclass(frozen=True, slots=True)
class _Item:
    """A file as the package lists it."""

    name: str
    target: str
    media: str
    is_contents: bool


@dataclass(frozen=True, slots=True)
class _Book:
    title: str | None
    language: str | None
    #: Paths of the files in reading order, and which of them are pictures.
    spine: list[str]
    pictures: set[str]
    left_out: LeftOut


def read_epub(path: Path, *, seconds: float = 8.0) -> Contents:
    """Read a book; raises `SightlineError` whose sentence goes on after the file's name.

    After so many seconds of CPU time it ends with the chapters read so far.
    """
    end = time.process_time() + seconds
    with Archive(path) as archive:
        book = _book(archive)
        _refuse_drm(archive, book)
        blocks: list[Block] = []
        images: list[PageImage] = []
        damage: SightlineError | None = None
        for number, name in enumerate(book.spine):
            if time.process_time() >= end:
                rest = sum(map(archive.size, book.spine[number:]))
                book.left_out.text["beyond the limit on time (bytes)"] = rest
                break
            if name in book.pictures:
                images.append(PageImage(name, len(blocks) - 1))
                continue
            try:
                chapter = _chapter(archive, name, book.left_out)
            except SightlineError as error:
                damage = error
                book.left_out.text["files that cannot be read (number)"] += 1
                continue
            images += _moved(chapter, name, len(blocks))
            blocks += chapter.blocks
        if damage is not None and not blocks and not images:
            raise damage
        sources = (_first_in(archive, image) for image in images)
        files = read_image_files(archive, sources, book.left_out)
    title = book.title or next((b.text for b in blocks if b.level == 1), None)
    left_out = LeftOut(+book.left_out.text, +book.left_out.images)
    return Contents(Page(title, tuple(blocks), tuple(images), book.language, left_out), files)


def _book(archive: Archive) -> _Book:
    package_path = _package_path(archive)
    package = parse_xml(archive.read(package_path))
    items = [
        _Item(
            attribute(element, "id") or "",
            _join(package_path, attribute(element, "href") or ""),
            attribute(element, "media-type") or "",
            "nav" in (attribute(element, "properties") or "").split(),
        )
        for element in _elements(package, "manifest", "item")
    ]
    by_name = {item.name: item for item in items if item.name}
    spine: list[str] = []
    pictures: set[str] = set()
    left_out = LeftOut()
    no_texts: set[str] = set()
    for reference in _elements(package, "spine", "itemref"):
        item = by_name.get(attribute(reference, "idref") or "")
        if item is None or item.target not in archive:
            left_out.text["missing files (number)"] += 1
        elif item.media.startswith("image/"):
            spine.append(item.target)
            pictures.add(item.target)
        elif item.media not in _XHTML:
            no_texts.add(item.target)
            left_out.text["files that are no text (number)"] += 1
        elif not item.is_contents:
            spine.append(item.target)
    if not spine:
        raise SightlineError("it is damaged: its list of chapters is empty.")
    _count_other_texts(archive, items, {*spine, *no_texts}, left_out)
    if len(spine) > _MAX_FILES:
        rest = sum(map(archive.size, spine[_MAX_FILES:]))
        left_out.text["beyond the limit on files (bytes)"] = rest
        del spine[_MAX_FILES:]
    title, language = _metadata(package, "title"), _metadata(package, "language")
    return _Book(title, language, spine, pictures, left_out)


def _count_other_texts(
    archive: Archive, items: list[_Item], in_spine: set[str], left_out: LeftOut
) -> None:
    """Count the files with text that no chapter is; the package need not even list them."""
    texts = {item.target for item in items if item.media in _TEXTS}
    contents = {item.target for item in items if item.is_contents}
    for name in archive.names():
        is_text = name in texts or name.lower().endswith(_TEXT_SUFFIXES)
        if is_text and name not in in_spine:
            what = "table of contents" if name in contents else "files outside the reading order"
            left_out.text[f"{what} (bytes)"] += archive.size(name)


def _package_path(archive: Archive) -> str:
    if _CONTAINER not in archive:
        raise SightlineError("it is not an EPUB book: it holds no META-INF/container.xml.")
    for element in parse_xml(archive.read(_CONTAINER)).iter():
        path = attribute(element, "full-path")
        if local(element.tag) == "rootfile" and path:
            return path
    raise SightlineError("it is damaged: its container names no package.")


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
    spine = set(book.spine)
    for encrypted in parse_xml(data).iter():
        if local(encrypted.tag) != "EncryptedData":
            continue
        elements = {local(element.tag): element for element in encrypted.iter()}
        method, reference = elements.get("EncryptionMethod"), elements.get("CipherReference")
        algorithm = attribute(method, "Algorithm") if method is not None else None
        target = attribute(reference, "URI") or "" if reference is not None else ""
        if algorithm not in _FONT_ALGORITHMS and unquote(target).lstrip("/") in spine:
            raise SightlineError(
                "it is encrypted by a copy protection (DRM), so that only its seller's programs "
                "can read it; use a copy without that."
            )


def _chapter(archive: Archive, name: str, left_out: LeftOut) -> Page:
    """Read one file of the spine; one that is too large is left out."""
    if archive.size(name) > MAX_BYTES:
        left_out.text["beyond the limit on bytes (bytes)"] += archive.size(name)
        return Page(None, (), ())
    page = read_html(archive.read(name), main_content=False, xml=True, images_in_svg=True)
    left_out.update(page.left_out)
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
    return _join(chapter, source.partition("#")[0].partition("?")[0])


def _join(path: str, reference: str) -> str:
    """Give the member that a reference in another one means; it cannot lead out of the archive."""
    folder = posixpath.dirname(path)
    return posixpath.normpath(posixpath.join("/", folder, unquote(reference))).lstrip("/")


def _first_in(archive: Archive, image: PageImage) -> str:
    sources = (image.source, *image.alternatives)
    return next((source for source in sources if source in archive), image.source)
