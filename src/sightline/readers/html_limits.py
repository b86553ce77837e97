"""Bounds for hostile HTML: what the parser would take quadratic time or memory for is cut off.

Lexbor walks up all open elements at many tags, compares each attribute with all before it, and
reopens unclosed formatting elements in every block, as the HTML standard asks: 100,000 open `div`
take 29 s, 100,000 attributes 50 s, and 2,000 unclosed `b` 700 MB (measured). A page that could come
near to that is rewritten first, tag by tag, and loses what goes beyond the limits. Pages that
people wrote stay as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Up to here nothing takes longer than a second, whatever the tags are (measured).
_HARMLESS_TAGS = 10_000
_HARMLESS_TAG = 20_000  # characters
#: Browsers stop at a depth of 512; text that is nested deeper is kept, its elements are not.
MAX_DEPTH = 512
MAX_FORMATTING = 32  # unclosed b, i, font, ...
MAX_ATTRIBUTES = 256  # of a tag
MAX_OPTIONS = 1_000  # of a page; the parser nests them
MAX_ELEMENTS = 1_000_000  # of a page; about 400 MB in the parser

_ATTRIBUTE = (
    r"[\s/]*+=?[^\s/>=]*+"
    r"""(?:\s*+=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>"'][^\s>]*+)?+)?+"""
)
_TAG = rf"<(/?)([a-zA-Z][^\s/>]*+)((?:(?!>){_ATTRIBUTE})*+)(?:>|\Z)"
# A tag, or more than it: a quote begins a value here wherever it follows an equals sign.
_AT_LEAST_TAG = re.compile(
    r"<(?:!--[^-]*+(?:-(?!->)[^-]*+)*+"
    r"|(?:script|SCRIPT|style|STYLE)\b[^<]*+(?:<(?!/[sS])[^<]*+)*+"
    r"""|([a-zA-Z](?:[^>"'=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?)?+|["'])*+))"""
)
_TOKENS = re.compile(rf"<!--(?:-?>|.*?(?:--!?>|\Z))|{_TAG}|<[!?/][^>]*+>?", re.S)
_UNFINISHED = re.compile(r"</?[a-z]|<\?|<!doctype", re.I)
_DECLARATION = re.compile(r"<(?:!doctype|\?xml\s+version)", re.I)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
# Elements whose content is not markup; it is left out, but for those that are shown.
_SHOWN = {"title": "title", "xmp": "pre"}
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])|\Z", re.I)
    for name in ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes", "title")
}
_DRAWINGS = _names("svg math")  # in these, all content is markup
_VOID = _names("area base br col embed hr img input keygen link meta param source track wbr")
# Elements that end by themselves where the next one begins: they do not nest without others.
_SELF_ENDING = _names("p li dt dd tr td th thead tbody tfoot option optgroup")
_OPTIONS = _names("option optgroup")
# An `a` in an `a` ends it, so that no more than one is open.
_FORMATTING = _names("b big code em font i nobr s small strike strong tt u")
_FORMATTING_TAG = re.compile(rf"<(?i:{'|'.join(sorted(_FORMATTING))})(?![^\s/>])")


@dataclass(frozen=True, slots=True)
class Bounded:
    """HTML that is safe to parse, and what it lost, the last two in characters that are no text."""

    html: str
    tags_lost: int = 0
    images_lost: int = 0
    raw_lost: int = 0
    comments_lost: int = 0


def bound_html(html: str) -> Bounded:
    """Give the page itself if it is harmless, else the page without what goes beyond the limits.

    No text is lost: where a tag is dropped, its text stays.
    """
    return Bounded(html) if _is_harmless(html) else _Rewriting(html).run()


def never_closed(html: str) -> int:
    """Count the characters of a tag that takes the rest of the page; parsers drop it all.

    It may be text all the same, as in `if a <b and so on`.
    """
    end = html.rfind(">") + 1
    # Such a tag begins after the last ">", or a quote in it hides that: one that is never closed,
    # which is the last of its kind and follows an equals sign, or one that is closed after it.
    # So few pages are looked at as a whole.
    before = (html[: html.rfind(quote)].rstrip() for quote in "\"'" if quote in html)
    hidden = '"' in html[end:] or "'" in html[end:] or any(b.endswith("=") for b in before)
    return _last_tag(html) if hidden or _UNFINISHED.search(html, end) else 0


def _last_tag(html: str) -> int:
    place, drawings = 0, Counter[str]()
    while (token := _TOKENS.search(html, place)) is not None:
        place = token.end()
        if token[2] is None:  # a comment or the like
            if _UNFINISHED.match(token[0]) and token[0][-1] != ">":
                return len(html) - token.start()
            continue
        if token.end(3) == len(html):  # without its ">"
            return len(html) - token.start()
        name = token[2].lower()
        if name == "plaintext" and not token[1]:
            return 0
        if name in _DRAWINGS:
            drawings[name] = max(0, drawings[name] + (-1 if token[1] else 1))
        elif name in _RAW and not token[1] and not drawings.total():
            place = _raw_end(html, name, place)[1]
    return 0


def _raw_end(html: str, name: str, start: int) -> tuple[int, int]:
    """Find where the content of such an element ends, and its end tag."""
    end = _RAW[name].search(html, start)
    assert end is not None  # \Z always matches
    return end.start(), html.find(">", end.end()) + 1 or len(html)


def _is_harmless(html: str) -> bool:
    """Decide it fast, for almost every page."""
    count = html.count("<")
    if count > _HARMLESS_TAGS:
        return False
    # No block reopens more formatting elements than there are on the page.
    if count**2 > MAX_ELEMENTS and count * len(_FORMATTING_TAG.findall(html)) > MAX_ELEMENTS:
        return False
    return max(map(len, _AT_LEAST_TAG.findall(html)), default=0) <= _HARMLESS_TAG


class _Rewriting:
    """One pass over the tokens of a page.

    What is written holds no comments and no raw text, so that the parser sees the tags that were
    counted here and no others.
    """

    def __init__(self, html: str) -> None:
        self.html = html
        self.out: list[str] = []
        self.open: Counter[str] = Counter()
        self.depth = self.formatting = self.options = self.elements = 0
        self.tags_lost = self.images_lost = self.raw_lost = self.comments_lost = 0

    def run(self) -> Bounded:
        """Write the page anew."""
        html, place = self.html, 0
        while (token := _TOKENS.search(html, place)) is not None:
            self._text(place, token.start())
            place = token.end()
            if token[2] is None:  # a comment or the like
                self.comments_lost += 0 if _DECLARATION.match(token[0]) else len(token[0])
                continue
            name = token[2].lower()
            if name in _RAW and not token[1]:
                place = self._raw(name, place)
            elif name != "plaintext":
                self._tag(token, name)
        self._text(place, len(html))
        lost = (self.tags_lost, self.images_lost, self.raw_lost, self.comments_lost)
        return Bounded("".join(self.out), *lost)

    def _text(self, start: int, end: int) -> None:
        if end > start:
            # A `<` that begins no tag here must not begin one for the parser.
            self.out.append(self.html[start:end].replace("<", "&lt;"))

    def _raw(self, name: str, start: int) -> int:
        end, place = _raw_end(self.html, name, start)
        if name in _SHOWN:
            self.out.append(f"<{_SHOWN[name]}>")
            self._text(start, end)
            self.out.append(f"</{_SHOWN[name]}>")
        else:
            self.raw_lost += end - start
        return place

    def _tag(self, token: re.Match[str], name: str) -> None:
        counted = name not in _VOID and name not in _SELF_ENDING
        if token[1]:
            if self.open[name]:
                self._count(name, -1)
        elif self._is_too_much(name, counted):
            self.tags_lost += 1
            self.images_lost += name == "img"
            self.out.append(" ")
            return
        else:
            # The parser opens all that is unclosed of these again in each new block.
            self.elements += 1 + (0 if name in _FORMATTING else self.formatting)
            if counted and not (name == "a" and self.open["a"]):
                self._count(name, 1)
        self.out.append(self._bounded_attributes(token))

    def _is_too_much(self, name: str, counted: bool) -> bool:
        if name in _FORMATTING and self.formatting >= MAX_FORMATTING:
            return True
        if name in _OPTIONS:
            self.options += 1
            return self.options > MAX_OPTIONS
        return self.elements >= MAX_ELEMENTS or (counted and self.depth >= MAX_DEPTH)

    def _count(self, name: str, change: int) -> None:
        self.open[name] += change
        self.depth += change
        self.formatting += change if name in _FORMATTING else 0

    def _bounded_attributes(self, token: re.Match[str]) -> str:
        # An attribute has at least one character and a space or a slash before it.
        if len(token[3]) <= 2 * MAX_ATTRIBUTES:
            return token[0]
        place = 0
        for _ in range(MAX_ATTRIBUTES):
            found = _ATTRIBUTES.match(token[3], place)
            if found is None or found.end() == place:
                return token[0]
            place = found.end()
        if place == len(token[3]):
            return token[0]
        self.tags_lost += 1
        return f"<{token[1]}{token[2]}{token[3][:place]}>"
