"""XML that nobody vouches for: no entities but HTML's, nothing from elsewhere, bounded depth."""

from __future__ import annotations

import re
from functools import lru_cache
from html.entities import html5
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sightline.problems import SightlineError

MAX_DEPTH = 256
MAX_ELEMENTS = 2_000_000
# A tag up to a reference in an attribute, other than those to characters by number and the five
# that XML has itself.
_KNOWN = rb"&(?:#|amp;|lt;|gt;|quot;|apos;)"
_DOUBLE, _SINGLE = rb'"(?:[^"<&]|%b)*+' % _KNOWN, rb"'(?:[^'<&]|%b)*+" % _KNOWN
_UNKNOWN_IN_TAG = re.compile(
    rb"""<[^<>!?/"']++(?:(?:%b"|%b')[^<>"']*+)*+(?:%b|%b)&""" % (_DOUBLE, _SINGLE, _DOUBLE, _SINGLE)
)


def parse_xml(data: bytes) -> Element:
    """Parse a document; names are `{namespace}name`. Raises `SightlineError`."""
    builder = _Builder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_entities
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.tree.data
    parser.StartDoctypeDeclHandler = builder.document_type
    parser.SkippedEntityHandler = builder.entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise SightlineError(f"it is damaged: bad XML ({error}).") from error
    except (LookupError, ValueError) as error:  # of Python's codecs, of which expat takes a few
        raise SightlineError(
            f"it holds XML in an encoding that cannot be read ({error}); save it as UTF-8."
        ) from error
    # expat drops these without a word. In UTF-16, each character of a tag comes with a zero.
    if builder.has_document_type and _UNKNOWN_IN_TAG.search(data.replace(b"\0", b"")):
        _refuse_elsewhere("an attribute")
    return builder.tree.close()


def _refuse_entities(*_: object) -> None:
    raise SightlineError("it holds XML that declares entities, which such files never need.")


def _refuse_elsewhere(where: str) -> NoReturn:
    raise SightlineError(
        f"it holds XML that refers to entities of another file in {where}, which is never loaded; "
        "put the characters themselves there."
    )


class _FullNames(dict[str, str]):
    """The names as they are given, each worked out once, by expat's."""

    def __missing__(self, name: str) -> str:
        self[name] = full = "{" + name if "}" in name else name
        return full


class _Builder:
    def __init__(self) -> None:
        self.tree = TreeBuilder()
        self.names = _FullNames()
        self.depth = self.elements = 0
        self.has_document_type = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > MAX_DEPTH or self.elements > MAX_ELEMENTS:
            raise SightlineError(
                f"it holds XML of more than {MAX_DEPTH} levels or {MAX_ELEMENTS:,} elements, "
                "the limits."
            )
        names = self.names
        named = {names[key]: value for key, value in attributes.items()} if attributes else {}
        self.tree.start(names[name], named)

    def document_type(self, *_: object) -> None:
        """Note that entities may be declared elsewhere, so that unknown ones are no error."""
        self.has_document_type = True

    def entity(self, name: str, is_parameter: bool) -> None:
        """Take the meaning that a name has in HTML; any other would be lost, and is refused."""
        if is_parameter or f"{name};" not in html5:
            _refuse_elsewhere(f"its text (&{name[:50]};)")
        self.tree.data(html5[f"{name};"])

    def end(self, name: str) -> None:
        self.depth -= 1
        self.tree.end(self.names[name])


@lru_cache(4096)
def local(name: str) -> str:
    """Give a name without its namespace."""
    return name.rpartition("}")[2]


def attribute(element: Element, name: str) -> str | None:
    """Give an attribute by its local name."""
    for key, value in element.attrib.items():
        if local(key) == name:
            return value
    return None
