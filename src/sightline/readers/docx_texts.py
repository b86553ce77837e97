"""All texts and pictures that Word's XML holds, so that none is lost without being counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from sightline.pages import LeftOut
from sightline.safe_xml import attribute, local

_SPACE = re.compile(r"[ \t\r\n\u00a0]+")
_FORMS = "other forms of what is read"
# Choices within each other; of deeper ones all other forms are counted, compared with nothing.
_MOST_DEPTH = 8
# Elements with an attribute that is shown as text; the first of these that is there.
_SHOWN = {
    "textpath": ("string",),
    "listEntry": ("val",),
    "listItem": ("displayText", "value"),
}
_PICTURES = frozenset(("blip", "imagedata", "chart", "relIds"))
_FILLS = ("fill", "stroke")  # of VML, which may be pictures
# Elements that hold no text but where a drawing stands.
_POSITIONS = frozenset(
    ("posOffset", "align", "pctWidth", "pctHeight", "pctPosHOffset", "pctPosVOffset")
)
_POSITION = re.compile(r"\s*(?:-?\d+|left|right|cent(?:er|re)|inside|outside|top|bottom)\s*", re.A)


class ParagraphText:
    """The text of a paragraph under way: no spaces in a row, and none at the ends of its lines.

    It is kept in pieces, since adding to a long string copies it.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        #: Characters so far.
        self.length = 0

    def add(self, text: str) -> None:
        """Add text of the line under way."""
        text = _SPACE.sub(" ", text)
        if not self._pieces or self._pieces[-1][-1] in " \n":
            text = text.lstrip(" ")
        self._append(text)

    def end_line(self) -> None:
        """Begin another line, unless there is none so far."""
        if not self._pieces:
            return
        last = self._pieces.pop()
        self.length -= len(last)
        self._append(last.rstrip(" "))
        self._append("\n")

    def _append(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self.length += len(text)

    def whole(self) -> str:
        """Give all of it."""
        return "".join(self._pieces).rstrip()


@dataclass(frozen=True, slots=True)
class _Held:
    """What an element holds, and how many choices between forms lie within each other in it."""

    characters: int
    pictures: int
    depth: int


def texts_of(root: Element) -> Iterator[str]:
    """Yield every text in an element, wherever it stands; of attributes those that are shown."""
    for element in root.iter():
        yield from _own_texts(element)
        if element.tail and element is not root:
            yield element.tail.strip()


def _own_texts(element: Element) -> Iterator[str]:
    tag = local(element.tag)
    if element.text:
        if tag in ("t", "delText"):
            yield element.text
        elif tag not in _POSITIONS or not _POSITION.fullmatch(element.text):
            yield element.text.strip()
    if tag in _SHOWN:
        values = (attribute(element, name) for name in _SHOWN[tag])
        yield next(filter(None, values), "")
    elif tag == "sym":
        yield "?"  # a character of a font that gives it no meaning


def is_picture(tag: str, element: Element) -> bool:
    """Say whether an element is a picture, chart or diagram."""
    if tag in _FILLS:
        return any(name.endswith(("}id", "}relid")) for name in element.attrib)
    return tag in _PICTURES


def held(root: Element) -> tuple[int, int]:
    """Count the characters and the pictures in an element."""
    found = _measure(root, {})
    return found.characters, found.pictures


def _measure(root: Element, settled: Mapping[Element, _Held]) -> _Held:
    """Count what is in an element, without going into those that were measured before."""
    characters = pictures = depth = 0
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.tail and element is not root:
            characters += len(element.tail.strip())
        if element in settled:
            characters += settled[element].characters
            pictures += settled[element].pictures
            depth = max(depth, settled[element].depth)
        else:
            characters += sum(map(len, _own_texts(element)))
            pictures += is_picture(local(element.tag), element)
            waiting.extend(element)
    return _Held(characters, pictures, depth)


def settle_forms(root: Element, left_out: LeftOut) -> None:
    """Keep of several forms of one thing (`AlternateContent`) that which holds most.

    Word writes what is new in an older form too, mostly with the same texts. Those that the form
    which is kept does not hold are counted.
    """
    found = [element for element in root.iter() if local(element.tag) == "AlternateContent"]
    settled: dict[Element, _Held] = {}
    for alternatives in reversed(found):  # the inner ones first
        if len(alternatives) < 2:
            continue
        forms = {form: _measure(form, settled) for form in alternatives}
        kept = max(forms, key=lambda form: forms[form].characters + forms[form].pictures)
        most = forms.pop(kept)
        settled[alternatives] = replace(most, depth=most.depth + 1)
        is_deep = settled[alternatives].depth > _MOST_DEPTH
        texts = Counter[str]() if is_deep else Counter(texts_of(kept))
        for form, other in forms.items():
            lost = Counter(texts_of(form))
            lost[(form.tail or "").strip()] += 1
            left_out.text[_FORMS] += sum(len(t) * max(0, n - texts[t]) for t, n in lost.items())
            left_out.images[_FORMS] += max(0, other.pictures - most.pictures)
        alternatives[:] = [kept]
