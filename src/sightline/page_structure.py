"""What the tree of a page says beyond its blocks: which image names a link, which tag holds a text.

The tags in question carry their number in the source (`image_places`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from sightline.readers.html_limits import bound_html
from sightline.readers.html_tags import BLOCKS, IMAGES, SKIPPED

_NUMBER = "data-sightline"


@dataclass
class Structure:
    """What was found, by the numbers of images and blocks."""

    #: Images in links that have no text and no other name.
    unnamed: set[int] = field(default_factory=set)
    #: The first block of each text, spaces left out.
    blocks: dict[str, int] = field(default_factory=dict)


@dataclass
class _Link:
    named: bool
    images: list[int] = field(default_factory=list)


def read_structure(html: str, number_in_alt: Callable[[str | None], int | None]) -> Structure:
    """Read a numbered page; images that have no attribute for it carry their number in the alt."""
    parser = LexborHTMLParser(bound_html(html).html.encode("utf-8", "replace"))
    walk = _Walk(number_in_alt)
    if parser.root is not None:
        walk.run(parser.root)
    return walk.finish()


class _Walk:
    def __init__(self, number_in_alt: Callable[[str | None], int | None]) -> None:
        self.number_in_alt = number_in_alt
        self.links: list[_Link] = []
        self.texts: dict[int, list[str]] = {}
        self.link: _Link | None = None
        self.block: int | None = None

    def run(self, root: LexborNode) -> None:
        """Walk in a loop, so that no depth is too deep."""
        stack: list[tuple[LexborNode, _Link | None, int | None]] = []
        node = root
        while True:
            tag = node.tag or ""
            before = self.link, self.block
            child = None
            if tag == "-text":
                self._text(node.text_content or "")
            elif tag in IMAGES:
                self._image(node.attributes)
            elif tag not in SKIPPED and tag[:1] not in ("-", "!"):
                self._open(tag, node)
                child = node.child
            if child is not None:
                stack.append((node, *before))
                node = child
                continue
            self.link, self.block = before
            while (following := node.next) is None:
                if not stack:
                    return
                node, self.link, self.block = stack.pop()
            node = following

    def finish(self) -> Structure:
        """Give what was found."""
        structure = Structure()
        for link in self.links:
            if not link.named:
                structure.unnamed.update(link.images)
        for number, pieces in self.texts.items():
            structure.blocks.setdefault("".join("".join(pieces).split()), number)
        return structure

    def _open(self, tag: str, node: LexborNode) -> None:
        if tag == "a":
            attributes = node.attributes
            if "href" in attributes:
                named = attributes.get("aria-label") or attributes.get("title")
                self.link = _Link(bool(named and named.strip()))
                self.links.append(self.link)
        elif tag in BLOCKS:
            number = node.attributes.get(_NUMBER) or ""
            self.block = int(number) if number.isdigit() else None

    def _text(self, text: str) -> None:
        if self.block is not None:
            self.texts.setdefault(self.block, []).append(text)
        if self.link is not None and not text.isspace():
            self.link.named = True

    def _image(self, attributes: dict[str, str | None]) -> None:
        if self.link is None:
            return
        alt = attributes.get("alt")
        number = attributes.get(_NUMBER) or ""
        if number.isdigit():
            self.link.images.append(int(number))
            self.link.named = self.link.named or bool(alt and alt.strip())
        elif (in_alt := self.number_in_alt(alt)) is not None:
            self.link.images.append(in_alt)
