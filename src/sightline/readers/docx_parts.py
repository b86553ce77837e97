"""The parts of a DOCX file: the document itself, what it refers to, and what is beside it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message

from sightline.pages import LeftOut, Page
from sightline.problems import SightlineError
from sightline.readers.html import read_html
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
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
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
    data = archive.find(f"{folder}/_rels/{name}.rels")
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


def count_other_parts(archive: Archive, relations: dict[str, Relation], left_out: LeftOut) -> None:
    """Count the text and the images of the parts that are not read."""
    parts = {r.target: _NOT_READ[r.kind] for r in relations.values() if r.kind in _NOT_READ}
    for name, reason in parts.items():
        try:
            root = parse_xml(archive.read(name))
        except SightlineError:
            left_out.text[_UNREADABLE] += 1
            continue
        elements = [(local(element.tag), element) for element in root.iter()]
        characters = sum(len((e.text or "").strip()) for tag, e in elements if tag == "t")
        left_out.text[reason] += characters
        pictures = sum(tag in ("blip", "imagedata") for tag, _ in elements)
        left_out.images[reason] += pictures


def read_inserted(archive: Archive, name: str, left_out: LeftOut) -> Page | None:
    """Read a web page that the document holds as a whole (`altChunk`).

    Programs that make Word files of web pages put all of their text there. Files of other kinds,
    and the images of any, are counted.
    """
    try:
        data = archive.read(name)
    except SightlineError:
        left_out.text[_UNREADABLE] += 1
        return None
    if b"mime-version:" in data[:1024].lower():
        parts = message_from_bytes(data).walk()
        data = next((_decoded(part) for part in parts if part.get_content_subtype() == "html"), b"")
    if not data.lstrip(_BYTE_ORDER_MARK).lstrip().startswith(b"<"):
        left_out.text["inserted files (bytes)"] += archive.size(name)
        return None
    try:
        page = read_html(data, main_content=False)
    except SightlineError:  # it is too large
        left_out.text["inserted files (bytes)"] += archive.size(name)
        return None
    left_out.update(page.left_out)
    left_out.images["inserted files"] += len(page.images)
    return page


def _decoded(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""
