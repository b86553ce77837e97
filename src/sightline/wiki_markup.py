"""Wikitext to plain paragraphs: what a reader of the article's running text sees.

The syntax is MediaWiki's (mediawiki.org: Help:Formatting, Help:Links, Help:Images, Help:Tables,
Help:Templates, and the "Markup spec"). Templates are not expanded but left out, as are tables,
references, formulas, galleries and images with their captions. One pass over the text with a stack
of what is open: no recursion and no backtracking, so that the time is linear however the text is
nested or unbalanced. Where a construct is never closed, its content stays and its signs go.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

# Links to these namespaces show no text where they stand: images, categories. In English and, as
# the ImageCLEF collection has them, German and French.
_HIDDEN_NAMESPACES = frozenset(
    ("file", "image", "media", "category", "datei", "bild", "kategorie", "fichier", "catégorie")
)
#: Links to the same article in other languages: de, als, zh-min-nan, simple.
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}(?:-[a-z-]{2,10})?|simple|x-default)\Z")
_NAMESPACE_LENGTH = 40  # characters of a link's target in which a namespace is looked for

# Elements that are left out with their content; what they hold is no wikitext.
_HIDDEN_ELEMENTS = re.compile(
    r"(?:ref|math|chem|ce|gallery|imagemap|timeline|source|syntaxhighlight|score|hiero|graph"
    r"|mapframe|maplink|templatedata|style|script)\Z"
)
_BLOCK_ELEMENTS = re.compile(
    r"(?:p|div|br|hr|li|ul|ol|dl|dt|dd|blockquote|center|h[1-6]|pre|poem)\Z"
)
_PARAGRAPH = "\n\n"

#: Every token begins with one of these.
_SIGN = re.compile(r"[\n<{}\[\]|'_~]")
# In the order in which they are tried. A table begins and ends only at the beginning of a line.
_TOKEN = re.compile(
    r"""
      (?P<comment> <!-- )
    | (?P<tag> <(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*+)(?P<rest>[^<>]*+)> )
    | (?P<table> \n[ \t:*\#;]*+\{\|(?!\}\}) )
    | (?P<table_end> \n[ \t:*\#;]*+\|\} )
    | (?P<open> \{{2,}+ )
    | (?P<close> \}{2,}+ )
    | (?P<link> \[{2,}+ )
    | (?P<external> \[(?:(?:https?:|ftps?:|irc:)?//|mailto:|news:)[^\s\[\]<>|]*+ )
    | (?P<link_end> \]++ )
    | (?P<pipe> \| )
    | (?P<quotes> '{2,}+ )
    | (?P<switch> __[A-Z]{3,30}__ | ~{3,5} )
    """,
    re.X,
)
_HEADING = re.compile(r"=[^\n]*=\Z")
_LIST = re.compile(r"[*#:;]++\s*+|-{4,}+")
_EMPTY_BRACKETS = re.compile(r" ?\([\s,;:–-]*+\)")


@dataclass(slots=True)
class _Open:
    """A construct that is not closed yet."""

    kind: str  # "braces", "table", "link" or "external"
    # How many pieces of output there were before it.
    start: int
    # Braces: how many are not closed.
    width: int = 0
    # Link: where its target begins, and how many pieces there were before its text, if that came.
    target: int = 0
    label: int | None = None


def strip_markup(text: str) -> list[str]:
    """Give the paragraphs and list items of wikitext as plain text, each on one line."""
    return _paragraphs(_Stripper(text).strip())


class _Stripper:
    """Goes through a text once, token by token."""

    # A link deeper inside others than this keeps all of its text: taking its target out of the
    # middle costs as much as it holds.
    _LINK_DEPTH = 40

    def __init__(self, text: str) -> None:
        self.text = f"\n{text}"
        self.out: list[str] = []
        self.stack: list[_Open] = []
        self.open_braces = 0
        # Elements of which no end tag follows any more.
        self.endless: set[str] = set()

    def strip(self) -> str:
        """Give the text without its markup, still with line breaks and the signs of lists."""
        position = scanned = 0
        while sign := _SIGN.search(self.text, scanned):
            token = _TOKEN.match(self.text, sign.start())
            if token is None:
                scanned = sign.end()
                continue
            if token.start() > position:
                self.out.append(self.text[position : token.start()])
            position = scanned = self._token(token)
        self.out.append(self.text[position:])
        return "".join(self.out)

    def _token(self, match: re.Match[str]) -> int:
        """Handle a token; gives where the text goes on."""
        kind, end = match.lastgroup, match.end()
        if kind == "comment":
            found = self.text.find("-->", end)
            return len(self.text) if found < 0 else found + 3
        if kind == "tag":
            return self._tag(match)
        if kind == "table":
            self.out.append("\n")
            self.stack.append(_Open("table", len(self.out)))
        elif kind == "table_end":
            return self._end_table(match)
        elif kind == "open":
            self.stack.append(_Open("braces", len(self.out), width=end - match.start()))
            self.open_braces += 1
        elif kind == "close":
            self._end_braces(end - match.start())
        elif kind == "link":
            self.stack.append(_Open("link", len(self.out), target=end))
        elif kind == "external":
            self.stack.append(_Open("external", len(self.out)))
        elif kind == "link_end":
            self._end_link(end - match.start())
        elif kind == "pipe":
            self._pipe()
        elif kind == "quotes":
            # Two are italics, three bold, five both; what is over is apostrophes.
            count = end - match.start()
            self.out.append("'" * (1 if count == 4 else max(0, count - 5)))
        return end

    def _tag(self, match: re.Match[str]) -> int:
        name, is_end = match["name"].lower(), bool(match["end"])
        is_empty = match["rest"].endswith("/")
        if not is_end and not is_empty and (name == "nowiki" or _HIDDEN_ELEMENTS.match(name)):
            return self._skip_element(name, match.end())
        if name == "table" and not is_empty:
            if is_end:
                self._close("table")
            else:
                self.stack.append(_Open("table", len(self.out)))
        if _BLOCK_ELEMENTS.match(name):
            self.out.append(_PARAGRAPH)
        return match.end()

    def _skip_element(self, name: str, start: int) -> int:
        """Go behind an element whose content is not parsed; one without an end is only a tag."""
        found = None
        if name not in self.endless:
            found = re.compile(rf"</{name}\s*+>", re.I).search(self.text, start)
        if found is None:
            self.endless.add(name)
            return start
        if name == "nowiki":
            self.out.append(self.text[start : found.start()])
        return found.end()

    def _end_table(self, match: re.Match[str]) -> int:
        # Braces come first: what stands here can be the last pipe of a template and its end.
        if self.text.startswith("}", match.end()) and self._innermost_block() == "braces":
            self._pipe()
            return match.end() - 1
        self._close("table")
        return match.end()

    def _innermost_block(self) -> str | None:
        """Drop links that a line of a table shows to be unclosed; gives what they stood in."""
        while self.stack and self.stack[-1].kind in ("link", "external"):
            self.stack.pop()
        return self.stack[-1].kind if self.stack else None

    def _close(self, kind: str) -> None:
        """Leave out what the innermost block holds, if it is of this kind."""
        if self._innermost_block() == kind:
            del self.out[self.stack.pop().start :]

    def _end_braces(self, count: int) -> None:
        """Close templates `{{ }}` and parameters `{{{ }}}`, the widest that both sides allow."""
        while count >= 2 and self.open_braces:
            while self.stack[-1].kind != "braces":
                self.stack.pop()
            braces = self.stack[-1]
            closed = min(count, braces.width, 3)
            del self.out[braces.start :]
            count -= closed
            braces.width -= closed
            if braces.width < 2:
                self.stack.pop()
                self.open_braces -= 1

    def _pipe(self) -> None:
        self.out.append("|")
        top = self.stack[-1] if self.stack else None
        if top is not None and top.kind == "link" and top.label is None:
            top.label = len(self.out)

    def _end_link(self, count: int) -> None:
        """Close links `[[ ]]` and external ones `[ ]`; brackets that close nothing are text."""
        while count and self.stack:
            top = self.stack[-1]
            needed = {"external": 1, "link": 2}.get(top.kind, count + 1)
            if count < needed:
                break
            self.stack.pop()
            count -= needed
            if top.kind == "link":
                self._show_link(top)
        if count == 1:
            self.out.append("]")

    def _show_link(self, link: _Open) -> None:
        """Keep the text of a link; one to an image, a category or another language has none."""
        beginning = self.text[link.target : link.target + _NAMESPACE_LENGTH].lstrip()
        namespace, colon, _ = beginning.partition(":")
        # Articles have names like "CSI: Miami"; languages are written small.
        is_language = _LANGUAGE.match(namespace.strip())
        if colon and (namespace.strip().lower() in _HIDDEN_NAMESPACES or is_language):
            del self.out[link.start :]
        elif link.label is None:
            # [[:Category:Foo]] is a link that shows.
            if beginning.startswith(":") and link.start < len(self.out):
                self.out[link.start] = self.out[link.start].lstrip().removeprefix(":")
        elif len(self.stack) <= self._LINK_DEPTH:
            del self.out[link.start : link.label]


def _paragraphs(text: str) -> list[str]:
    """Join the lines of each paragraph; items of lists are paragraphs of their own."""
    paragraphs: list[list[str]] = [[]]
    for line in text.splitlines():
        line = line.strip()
        # Or a row of a table that is never closed, or never opened.
        if _HEADING.match(line) or line.startswith(("|", "{|")):
            line = ""
        item = _LIST.match(line)
        if not line or item:
            paragraphs.append([])
        if line:
            paragraphs[-1].append(html.unescape(line[item.end() :] if item else line))
    return [joined for paragraph in paragraphs if (joined := _tidy(" ".join(paragraph)))]


def _tidy(paragraph: str) -> str:
    """Make white space single, and drop brackets from which all content was left out."""
    paragraph = " ".join(paragraph.split())
    return _EMPTY_BRACKETS.sub("", paragraph).strip()
