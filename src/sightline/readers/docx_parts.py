"""The parts of a DOCX file: the document itself, what it refers to, and what is beside it."""

from __future__ import annotations

import posixpath
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from sightline.pages import LeftOut
from sightline.problems import SightlineError
from sightline.readers.docx_texts import held, settle_forms
from sightline.safe_xml import attribute, local, parse_xml
from sightline.zip_limits import Archive

INSERTED = "inserted files (bytes)"
UNREADABLE = "parts that cannot be read (number)"
# What the text of a part counts as, by the kind of the relation to it and, for a part without one,
# by the name of its outermost element.
_REASONS = {
    "header": "headers and footers",
    "hdr": "headers and footers",
    "footer": "headers and footers",
    "ftr": "headers and footers",
    "footnotes": "notes",
    "endnotes": "notes",
    "comments": "comments",
    "chart": "charts and diagrams",
    "chartex": "charts and diagrams",
    "chartspace": "charts and diagrams",
    "diagramdata": "charts and diagrams",
    "diagramdrawing": "charts and diagrams",
    "datamodel": "charts and diagrams",
    "glossarydocument": "building blocks",
}
# Relations to pictures, to what says how the document looks, and to what programs note about it.
# fmt: off
_NO_TEXT = frozenset((
    "image", "styles", "styleswitheffects", "theme", "fonttable", "numbering", "settings",
    "websettings", "chartstyle", "chartcolorstyle", "diagramlayout", "diagramquickstyle",
    "diagramcolors", "customxmlprops", "coreproperties", "extendedproperties",
    "customproperties",
))
# fmt: on
_TYPES = "[Content_Types].xml"
# Files of any kind that the document holds as a whole.
_FILES = {
    "afchunk": INSERTED,
    "oleobject": "embedded files (bytes)",
    "package": "embedded files (bytes)",
    "subdocument": "embedded files (bytes)",
}


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that a part refers to: an image, another part, or an address elsewhere."""

    target: str
    is_external: bool
    #: The last word of its type in lower case and without hyphens, such as `coreproperties`.
    kind: str


def main_part(archive: Archive) -> str:
    """Find the document itself, which is almost always `word/document.xml`."""
    for _, relation in _relations_in(archive, "_rels/.rels"):
        if relation.kind == "officedocument" and relation.target in archive:
            return relation.target
    if "word/document.xml" not in archive:
        raise SightlineError("it is not a Word document: it holds no text part.")
    return "word/document.xml"


def read_relations(archive: Archive, part: str) -> dict[str, Relation]:
    """Read what a part refers to, by the ids that it uses for it."""
    folder, name = posixpath.split(part)
    found = _relations_in(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    return {identifier: relation for identifier, relation in found if identifier}


def _relations_in(archive: Archive, name: str) -> list[tuple[str | None, Relation]]:
    """Read a list of relations, with the id of each."""
    folder = posixpath.dirname(posixpath.dirname(name))
    data = archive.find(name)
    relations = []
    for element in parse_xml(data) if data is not None else ():
        target = attribute(element, "Target")
        if target:
            external = (attribute(element, "TargetMode") or "").lower() == "external"
            if not external:
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = (attribute(element, "Type") or "").rpartition("/")[2]
            relation = Relation(target, external, kind.lower().replace("-", ""))
            relations.append((attribute(element, "Id"), relation))
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


def count_other_parts(archive: Archive, read: set[str], left_out: LeftOut, end: float) -> None:
    """Count what is in the parts that were not read, whether or not anything refers to them.

    After a time, as `time.process_time` gives it, parts are only counted.
    """
    lists = [name for name in archive.names() if name.endswith(".rels")]
    kinds: dict[str, list[str]] = defaultdict(list)
    for name in lists:
        for target, kind in _kinds(archive, name, left_out):
            kinds[target].append(kind)
    told = read.union(lists, (_TYPES,))
    for name in archive.names():
        found = kinds[name]
        if name in told:
            continue
        if time.process_time() >= end:
            left_out.text["parts beyond the limit on time (number)"] += 1
        elif file := next((kind for kind in found if kind in _FILES), None):
            left_out.text[_FILES[file]] += archive.size(name)
        else:
            _count_part(archive, name, found, left_out)


def _kinds(archive: Archive, name: str, left_out: LeftOut) -> Iterator[tuple[str, str]]:
    """Yield the parts that a list of relations names, with their kinds; others are counted."""
    try:
        relations = _relations_in(archive, name)
    except SightlineError:
        left_out.text[UNREADABLE] += 1
        return
    for _, relation in relations:
        if not relation.is_external and relation.target in archive:
            yield relation.target, relation.kind
        elif relation.kind in _FILES and relation.is_external:
            left_out.text["documents elsewhere (number)"] += 1
        elif relation.kind in _FILES or relation.kind in _REASONS:
            left_out.text[UNREADABLE] += 1


def _count_part(archive: Archive, name: str, kinds: list[str], left_out: LeftOut) -> None:
    is_plain = bool(kinds) and _NO_TEXT.issuperset(kinds)
    try:
        if not name.endswith(".xml") and not archive.holds_text(name):
            return
        root = parse_xml(archive.read(name))
    except SightlineError:
        left_out.text[UNREADABLE] += not is_plain
        return
    # Whatever it is said to be, a part that begins as a text does is one.
    if is_plain and local(root.tag).lower() not in _REASONS:
        return
    known = next((kind for kind in kinds if kind in _REASONS), local(root.tag).lower())
    reason = _REASONS.get(known, "other parts")
    settle_forms(root, left_out)
    characters, pictures = held(root)
    left_out.text[reason] += characters
    left_out.images[reason] += pictures
