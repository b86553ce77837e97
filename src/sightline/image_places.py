"""Where the images of a page stand in the source of its file.

A reader gives images without their places. So a copy of the source is read, in which whatever may
be an image carries its number as alternative text: the number that comes back with an image tells
where it stands. What only looks like an image (in a comment, a script, a block of code) does not
come back, and so nothing here has to know why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.page_structure import Structure, read_structure
from sightline.pages import Page
from sightline.readers.html_tags import BLOCKS
from sightline.readers.markdown import render_markdown
from sightline.source_edits import Edit, SourceText, splice

# Characters for private use, which no page's text needs.
_BEGIN, _END = "\ue000\ue001", "\ue001\ue000"
_NUMBER = re.compile(f"{_BEGIN}(\\d+);(.*?)(?:{_END})?\\Z", re.S)
_AFTER_NAME = r"(?=[\t\n\f\r />])"
_IMAGE_TAG = re.compile(rf"<(?:img|image|amp-img|amp-anim){_AFTER_NAME}", re.I)
# Where Markdown has an address, which may be `<img/one.jpg>`.
_BEFORE_ADDRESS = re.compile(r"\](?:\(|:)\s*\Z")
_BLOCK_TAG = re.compile(rf"<(?:{'|'.join(sorted(BLOCKS))}){_AFTER_NAME}", re.I)
_BRACKET = re.compile(r"\\[\s\S]|!?\[|\]")
_LABEL = re.compile(r"^[ >\t]*\[((?:[^\[\]\\]|\\.)+)\]:", re.M)
_LONGEST_LABEL = 999  # characters, as CommonMark says


@dataclass(frozen=True, slots=True)
class ImagePlace:
    """Where an image stands in the source text."""

    #: Where the name of its tag ends, or in Markdown the bracket opens.
    place: int
    line: int
    #: In Markdown, where the bracket closes; None for a tag.
    end: int | None = None
    #: In Markdown, the name that it refers to by its own text, as in `![name]`; where that ends.
    label: str | None = None
    label_end: int = 0
    #: It stands in a link that nothing else gives a name to.
    names_link: bool = False


@dataclass(frozen=True)
class SourcePlaces:
    """The places of a page's images, in their order, and of the elements that hold its text."""

    images: Sequence[ImagePlace | None]
    #: Where the names of the tags end, by number, and the numbers by text without spaces.
    block_tags: Sequence[int]
    blocks: dict[str, int]

    def element_of(self, text: str) -> int | None:
        """Find the element whose text this is: where the name of its tag ends."""
        number = self.blocks.get("".join(text.split()))
        return None if number is None else self.block_tags[number]


def find_places(
    source: SourceText, read: Callable[[str], Page], images: Sequence[str], *, markdown: bool
) -> SourcePlaces:
    """Find the images that `read` gives, whose sources are `images`.

    An image that cannot be found is None; so are all, if the copy does not read as the original.
    """
    found = _markdown_places(source) if markdown else []
    tags = [
        match.end()
        for match in _IMAGE_TAG.finditer(source.text)
        if not (markdown and _is_address(source.text, match.start()))
    ]
    lines = source.lines()
    found += [ImagePlace(place, lines.at(place)) for place in tags]
    text = source.readable()
    numbered = splice(text, [edit for n, place in enumerate(found) for edit in _mark(place, n)])
    page = read(numbered)
    blocks = [match.end() for match in _BLOCK_TAG.finditer(text)] if not markdown else []
    if markdown:
        structure = read_structure(render_markdown(numbered), _number)
    else:
        edits = [(place, place, f" data-sightline={n} ") for n, place in enumerate(tags)]
        edits += [(place, place, f" data-sightline={n} ") for n, place in enumerate(blocks)]
        structure = read_structure(splice(text, edits), _number)
    same = [image.source for image in page.images] == list(images)
    numbers = [_number(image.alt) if same else None for image in page.images]
    places = [None if n is None else _with_link(found[n], n, structure) for n in numbers]
    return SourcePlaces(places if same else [None] * len(images), blocks, structure.blocks)


def _is_address(text: str, place: int) -> bool:
    return _BEFORE_ADDRESS.search(text, max(0, place - 100), place) is not None


def _number(alt: str | None) -> int | None:
    match = _NUMBER.match(alt or "")
    return int(match[1]) if match else None


def _with_link(place: ImagePlace, number: int, structure: Structure) -> ImagePlace:
    if number not in structure.unnamed:
        return place
    # fmt: off
    return ImagePlace(
        place.place, place.line, place.end, place.label, place.label_end, names_link=True
    )
    # fmt: on


def _mark(place: ImagePlace, number: int) -> list[Edit]:
    """Give the edits that write an image's number into it."""
    mark = f"{_BEGIN}{number};"
    if place.end is None:
        return [(place.place, place.place, f" alt={mark} ")]
    if place.label is not None:
        return [(place.place, place.label_end, f"{mark}{_END}][{place.label}]")]
    return [(place.place, place.place, mark), (place.end, place.end, _END)]


def _markdown_places(source: SourceText) -> list[ImagePlace]:
    """Find what may be images in Markdown's own notation: `![text](...)` and the like."""
    text, lines = source.text, source.lines()
    labels = {_folded(label) for label in _LABEL.findall(text)}
    found: list[ImagePlace] = []
    opened: list[tuple[int, bool]] = []
    for token in _BRACKET.finditer(text):
        if token[0][0] == "\\":
            continue
        if token[0] != "]":
            opened.append((token.end(), token[0] == "!["))
            continue
        if not opened:
            continue
        start, is_image = opened.pop()
        if not is_image:
            continue
        end = token.start()
        after = text[end + 1 : end + 3]
        if after[:1] == "(" or (after[:1] == "[" and after != "[]"):
            found.append(ImagePlace(start, lines.at(start), end))
        elif end - start <= _LONGEST_LABEL and _folded(text[start:end]) in labels:
            label_end = end + (3 if after == "[]" else 1)
            found.append(ImagePlace(start, lines.at(start), end, text[start:end], label_end))
    return sorted(found, key=lambda place: place.place)


def _folded(label: str) -> str:
    return " ".join(label.split()).casefold()
