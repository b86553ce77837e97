"""XML that nobody vouches for: no entities, nothing from elsewhere, bounded depth and size."""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sightline.problems import SightlineError

MAX_DEPTH = 256
MAX_ELEMENTS = 2_000_000


def parse_xml(data: bytes) -> Element:
    """Parse a document; names are `{namespace}name`. Raises `SightlineError`."""
    builder = _Builder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_entities
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.tree.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise SightlineError(f"it is damaged: bad XML ({error}).") from error
    return builder.tree.close()


def _refuse_entities(*_: object) -> None:
    raise SightlineError("it holds XML that declares entities, which such files never need.")


class _Builder:
    def __init__(self) -> None:
        self.tree = TreeBuilder()
        self.depth = self.elements = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > MAX_DEPTH or self.elements > MAX_ELEMENTS:
            raise SightlineError(
                f"it holds XML of more than {MAX_DEPTH} levels or {MAX_ELEMENTS:,} elements, "
                "the limits."
            )
        named = {_full(key): value for key, value in attributes.items()}
        self.tree.start(_full(name), named)

    def end(self, name: str) -> None:
        self.depth -= 1
        self.tree.end(_full(name))


def local(name: str) -> str:
    """Give a name without its namespace."""
    return name.rpartition("}")[2]


def attribute(element: Element, name: str) -> str | None:
    """Give an attribute by its local name."""
    return next((value for key, value in element.attrib.items() if local(key) == name), None)


def _full(name: str) -> str:
    return "{" + name if "}" in name else name
