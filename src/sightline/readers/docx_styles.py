"""What the styles of a DOCX file say of its paragraphs: heading, list, quote, caption, code."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from sightline.pages import BlockKind
from sightline.safe_xml import attribute, local, parse_xml
from sightline.zip_limits import Archive

# Word keeps these names in English whatever its language; the ids are translated.
_HEADING = re.compile(r"heading ([1-9])\Z")
_KINDS = (
    (re.compile(r"caption\b"), BlockKind.CAPTION),
    (re.compile(r"(?:block|intense )?(?:quote|text)\Z|block quotation"), BlockKind.QUOTE),
    (re.compile(r"list (?:bullet|number|paragraph|continue)|list\Z"), BlockKind.LIST_ITEM),
    (re.compile(r"html (?:preformatted|code)|source code|code\b|macro\Z"), BlockKind.CODE),
)
_MAX_CHAIN = 20  # styles based on one another


@dataclass(frozen=True, slots=True)
class Style:
    """A paragraph style, with what it takes over from those it is based on."""

    kind: BlockKind = BlockKind.PARAGRAPH
    level: int = 0
    #: Level in the outline from 0, None for body text.
    outline: int | None = None
    language: str | None = None


def read_styles(archive: Archive, part: str) -> dict[str, Style]:
    """Read the styles that stand beside the document, by id; the default has the id ``."""
    data = archive.find(posixpath.join(posixpath.dirname(part), "styles.xml"))
    if data is None:
        return {}
    root = parse_xml(data)
    elements: dict[str, Element] = {}
    for element in root:
        identifier = attribute(element, "styleId")
        if local(element.tag) == "style" and identifier:
            elements[identifier] = element
    styles = {identifier: _style(identifier, elements) for identifier in elements}
    language = next(
        (attribute(e, "val") for e in root.iter() if local(e.tag) == "lang" and e.attrib), None
    )
    default = next(
        (
            identifier
            for identifier, e in elements.items()
            if attribute(e, "default") in ("1", "true") and attribute(e, "type") == "paragraph"
        ),
        None,
    )
    styles[""] = replace(styles.get(default or "", Style()), language=language)
    return styles


def _style(identifier: str, elements: dict[str, Element]) -> Style:
    """Follow a style to those it is based on; what is said first counts."""
    outline: int | None = None
    for _ in range(_MAX_CHAIN):
        element = elements.get(identifier)
        if element is None:
            break
        children = {local(child.tag): child for child in element}
        name = (attribute(children["name"], "val") or "").lower() if "name" in children else ""
        heading = _HEADING.match(name)
        if heading or name == "title":
            return Style(outline=int(heading[1]) - 1 if heading else 0)
        for pattern, kind in _KINDS:
            if pattern.match(name):
                level = 1 if kind in (BlockKind.LIST_ITEM, BlockKind.QUOTE) else 0
                return Style(kind, level, outline)
        if outline is None and "pPr" in children:
            outline = _outline(children["pPr"])
        if outline is not None:
            break
        identifier = attribute(children["basedOn"], "val") or "" if "basedOn" in children else ""
    return Style(outline=outline)


def _outline(properties: Element) -> int | None:
    for child in properties:
        value = attribute(child, "val") or ""
        if local(child.tag) == "outlineLvl" and value in tuple("012345678"):
            return int(value)
    return None


def is_hidden(run: Element) -> bool:
    """Say whether a run's own properties hide it."""
    properties = next((child for child in run if local(child.tag) == "rPr"), ())
    vanish = next((child for child in properties if local(child.tag) == "vanish"), None)
    return vanish is not None and attribute(vanish, "val") not in ("0", "false", "off")


def number_of(element: Element | None) -> int | None:
    """Give the number that a property has as its value."""
    value = attribute(element, "val") if element is not None else None
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 9 else None
