"""The parts of a DOCX file: the document itself, what it refers to, and what is beside it."""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from xml.etree.ElementTree import Element

from sightline.pages import LeftOut, Page
from sightline.problems import SightlineError
from sightline.readers.html import read_html
from sightline.readers.html_encoding import decode_html
from sightline.safe_xml import attribute, local, parse_xml
from sightline.zip_limits import Archive

# Parts that are not read, by the last word of the relation to them, and what their text counts as.
_NOT_READ = {
    "header": "headers and footers",
    "footer": "headers and footers",
    "footnotes": "notes",
    "endnotes": "notes",
    "comments": "comments",
    "chart": "charts and diagrams",
    "chartEx": "charts and diagrams",
    "diagramData": "charts and diagrams",
    "glossaryDocument": "building blocks",
}
_INSERTED = "inserted files (bytes)"
# Files of any kind that the document holds as a whole.
_FILES = {
    "aFChunk": _INSERTED,
    "oleObject": "embedded files (bytes)",
    "package": "embedded files (bytes)",
}
_CHART_TEXT = ("v", "pt")  # labels and values, in charts of both kinds
_CHARSET = re.compile(r"[\w.:-]+", re.A)
_UNREADABLE = "parts that cannot be read (number)"


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that a part refers to: an image, another part, or an address elsewhere."""

    target: str
    is_external: bool
    #: The last word of its type, such as `image` or `header`.
    kind: str


def main_part(archive: Archive) -> str:
    """Find the document itself, which is almost always `word/document.xml`."""
    relations = archive.find("_rels/.rels")
    if relations is not None:
        for relation in parse_xml(relations):
            if (attribute(relation, "Type") or "").endswith("/officeDocument"):
                target = (attribute(relation, "Target") or "").lstrip("/")
                if target in archive:
                    return target
    if "word/document.xml" not in archive:
        raise SightlineError("it is not a Word document: it holds no text part.")
    return "word/document.xml"


def read_relations(archive: Archive, part: str) -> dict[str, Relation]:
    """Read what a part refers to, by the ids that it uses for it."""
    folder, name = posixpath.split(part)
    data = archive.find(posixpath.join(folder, "_rels", f"{name}.rels"))
    relations: dict[str, Relation] = {}
    for relation in parse_xml(data) if data is not None else ():
        identifier, target = attribute(relation, "Id"), attribute(relation, "Target")
        if identifier and target:
            external = attribute(relation, "TargetMode") == "External"
            if not external:
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = (attribute(relation, "Type") or "").rpartition("/")[2]
            relations[identifier] = Relation(target, external, kind)
    return relations


def read_title(archive: Archive) -> str | None:
    """Read the title that the file's properties give."""
    data = archive.find("docProps/core.xml")
    if data is None:
        return None
    for element in parse_xml(data):
        if local(element.tag) == "title":
            return " ".join((element.text or "").split()) or None
    return None


def characters_of(tag: str, element: Element) -> int:
    """Count the characters that an element itself holds, whether between its tags or in one."""
    if tag in ("t", "delText"):
        return len(element.text or "")
    if tag == "textpath":
        return len(attribute(element, "string") or "")
    if tag == "listEntry":
        return len(attribute(element, "val") or "")
    if tag == "listItem":
        return len(attribute(element, "displayText") or attribute(element, "value") or "")
    return 1 if tag == "sym" else 0


def count_other_parts(
    archive: Archive, relations: dict[str, Relation], read: set[str], left_out: LeftOut
) -> None:
    """Count what is in the parts that are not read, and in those that they refer to in turn."""
    waiting, seen = list(relations.values()), set(read)
    while waiting:
        relation = waiting.pop()
        if relation.target in seen:
            continue
        if relation.kind in _FILES:
            seen.add(relation.target)
            _count_file(archive, relation, left_out)
        elif relation.kind in _NOT_READ:
            seen.add(relation.target)
            try:
                root = parse_xml(archive.read(relation.target))
                waiting += read_relations(archive, relation.target).values()
            except SightlineError:
                left_out.text[_UNREADABLE] += 1
            else:
                _count_part(root, _NOT_READ[relation.kind], left_out)


def _count_file(archive: Archive, relation: Relation, left_out: LeftOut) -> None:
    if relation.is_external:
        left_out.text["documents elsewhere (number)"] += 1
    elif relation.target in archive:
        left_out.text[_FILES[relation.kind]] += archive.size(relation.target)
    else:
        left_out.text[_UNREADABLE] += 1


def _count_part(root: Element, reason: str, left_out: LeftOut) -> None:
    characters = pictures = 0
    for element in root.iter():
        tag = local(element.tag)
        characters += characters_of(tag, element)
        if tag in _CHART_TEXT:
            characters += len((element.text or "").strip())
        pictures += tag in ("blip", "imagedata")
    left_out.text[reason] += characters
    left_out.images[reason] += pictures


def read_inserted(archive: Archive, name: str, left_out: LeftOut) -> list[Page]:
    """Read the web pages in a file that the document holds as a whole (`altChunk`).

    Programs that make Word files of web pages put all of their text there. Files of other kinds,
    and the images of any, are counted.
    """
    try:
        data = archive.read(name)
    except SightlineError:
        left_out.text[_UNREADABLE] += 1
        return []
    sources, lost = [data], 0
    if b"mime-version:" in data[:1024].lower():
        parts = list(message_from_bytes(data).walk())
        sources = [_with_charset(part) for part in parts if part.get_content_subtype() == "html"]
        plain = (_decoded(part) for part in parts if part.get_content_type() == "text/plain")
        lost = sum(map(len, plain))
    pages = []
    for source in sources:
        page = _read_page(source)
        if page is None:
            lost += len(source)
            continue
        left_out.update(page.left_out)
        left_out.images["inserted files"] += len(page.images)
        pages.append(page)
    left_out.text[_INSERTED] += lost if pages else archive.size(name)
    return pages


def _read_page(data: bytes) -> Page | None:
    if decode_html(data).text.lstrip().startswith("<"):
        with suppress(SightlineError):  # it is too large
            return read_html(data, main_content=False)
    return None


def _with_charset(part: Message) -> bytes:
    """Give a page that declares the encoding which the message names for it.

    One with a byte order mark, and one in UTF-16, shows its encoding itself.
    """
    data, charset = _decoded(part).lstrip(), part.get_content_charset() or ""
    if data.startswith(b"<") and b"\0" not in data[:4] and _CHARSET.fullmatch(charset):
        return f'<meta charset="{charset}">'.encode() + data
    return data


def _decoded(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""
