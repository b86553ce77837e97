"""What a drawing of a DOCX file holds: pictures with their descriptions, text boxes, word art."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from sightline.readers.docx_texts import is_picture
from sightline.safe_xml import attribute, local

_EMU_PER_PIXEL = 9525
_CHARTS = ("chart", "relIds")
# What these hold is theirs: text boxes are read as text, word art is left out as a whole.
_CLOSED = ("txbxContent", "textpath")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with the texts that describe it."""

    element: Element
    alt: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """The parts of a drawing; width and height in pixels."""

    pictures: list[Picture]
    boxes: list[Element]
    word_art: list[Element]
    #: Charts and diagrams.
    charts: int
    width: int | None
    height: int | None
    decorative: bool


def read_drawing(element: Element) -> Drawing:
    """Take a drawing apart."""
    elements = list(_within(element))
    named = dict(reversed(elements))  # the first of each name
    extent, decorative = named.get("extent"), named.get("decorative")
    return Drawing(
        _described(list(_pictures(element)), named),
        [inner for tag, inner in elements if tag == "txbxContent"],
        [inner for tag, inner in elements if tag == "textpath"],
        sum(tag in _CHARTS for tag, _ in elements),
        _pixels(extent, "cx"),
        _pixels(extent, "cy"),
        decorative is not None and attribute(decorative, "val") in ("1", "true"),
    )


def _within(drawing: Element) -> Iterator[tuple[str, Element]]:
    """Yield the elements of a drawing with their names."""
    waiting = list(reversed(drawing))
    while waiting:
        child = waiting.pop()
        tag = local(child.tag)
        yield tag, child
        if tag not in _CLOSED:
            waiting += reversed(child)


def _described(
    pictures: list[tuple[Element, Element | None]], named: dict[str, Element]
) -> list[Picture]:
    whole = named.get("docPr", named.get("shape") if len(pictures) == 1 else None)
    # Of a picture alone, Word shows the drawing's text; its own is often the name of a file.
    grouped = len(pictures) > 1 or "wgp" in named or "docPr" not in named
    described = []
    for picture, own in pictures:
        by = own if own is not None and grouped else whole
        if by is None:
            described.append(Picture(picture, None, None))
            continue
        alt = attribute(by, "descr")
        alt = attribute(by, "alt") if alt is None else alt
        described.append(Picture(picture, alt, attribute(by, "title")))
    return described


def _pictures(drawing: Element) -> Iterator[tuple[Element, Element | None]]:
    """Yield the pictures of a drawing, each with what describes it and not all of the drawing."""
    waiting: list[tuple[Element, Element | None]] = [(child, None) for child in reversed(drawing)]
    while waiting:
        element, own = waiting.pop()
        tag = local(element.tag)
        if tag not in _CHARTS and is_picture(tag, element):
            yield element, own
        if tag not in _CLOSED:
            described = _own_description(element, own)
            waiting += [(child, described) for child in reversed(element)]


def _own_description(element: Element, outer: Element | None) -> Element | None:
    """Give what describes a shape: itself in VML, in DrawingML what its properties hold."""
    if attribute(element, "alt") is not None:
        return element
    for child in element:
        holder = child if local(child.tag).startswith("nv") else (child,)
        for properties in holder:
            if local(properties.tag) == "cNvPr" and attribute(properties, "descr"):
                return properties
    return outer


def _pixels(extent: Element | None, name: str) -> int | None:
    value = attribute(extent, name) if extent is not None else None
    if not value or not value.isascii() or not value.isdigit() or len(value) > 12:
        return None
    return int(value) // _EMU_PER_PIXEL or None
