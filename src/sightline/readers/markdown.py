"""Markdown pages, by way of HTML: what Markdown renders to is what its HTML reader reads.

So `<img>`, `<figure>` and `<details>` in Markdown, whether they hold Markdown or stand in it, are
read by the same walk as any page's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sightline.pages import Page
from sightline.problems import SightlineError
from sightline.readers.html import read_html
from sightline.readers.html_encoding import decode_html

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_BYTES = 16 * 2**20  # of a page
# The parser takes 0.1 ms for each bracket that nothing closes (measured); pages that people wrote
# close theirs, so that beyond this many the brackets are taken for text.
_MAX_OPEN_BRACKETS = 10_000
# Steps in which the parser looks for the ends of labels, of 1 to 6 microseconds. Pages that people
# wrote take one for 50 characters; where labels lie within labels, each is gone through again for
# all that lie around it, and 2 kB took 8 million steps. Beyond these, brackets are taken for text.
_STEPS_A_CHARACTER, _STEPS_A_PAGE = 4, 20_000
# Rows of a table that are too short are filled up by the parser, with 65,536 cells for a table of
# 2 kB. Where a page would get more than these, its tables are taken for text.
_MAX_EMPTY_CELLS = 20_000

# YAML between lines of `---` or TOML between lines of `+++`, at the very start.
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_FRONT_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*(.+?)[ \t]*$", re.M | re.I)
# Fences of containers, and attributes of an image: extensions that many tools share.
_FENCE = re.compile(r"[ \t]*:{3,}[ \t]*[\w-]*[ \t]*(?:\{[^{}\n]*\})?")
_ATTRIBUTES = re.compile(r"\{:?[ \t]*[#.\w][^{}\n]*\}")


_DEFINED = ("label", "href", "title")
_LOST = "lost"
_STEPS = "steps"


def read_markdown(data: bytes | str) -> Page:
    """Read a page; raises `SightlineError` only if it is larger than the limit."""
    if len(data) > MAX_BYTES:
        raise SightlineError(f"The page is larger than {MAX_BYTES // 2**20} MiB, the limit.")
    replaced = 0
    if isinstance(data, bytes):
        decoded = decode_html(data, declared=False)
        data, replaced = decoded.text, decoded.replaced
    text = data.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    text = text[front.end() :] if front else text
    environment: dict[str, Any] = {}
    page = read_html(render_markdown(text, environment), main_content=False)
    page.left_out.text.update(environment[_LOST])
    page.left_out.text["link definitions"] += _definitions(environment)
    page.left_out.text["invalid bytes"] += replaced
    page.left_out.text["front matter"] += front.end() if front else 0
    page.left_out.text = +page.left_out.text
    title = _front_title(front[2] or "") if front else None
    return replace(page, title=title) if title else page


def render_markdown(text: str, environment: dict[str, Any] | None = None) -> str:
    """Render Markdown to HTML that holds all of its text; it is for reading, not for showing.

    What it defines for links is no text, and is put into `environment`, with the count of what is
    not rendered.
    """
    links = text.count("[") - text.count("]") <= _MAX_OPEN_BRACKETS
    tables = "|" not in text or _empty_cells(text) <= _MAX_EMPTY_CELLS
    parser = _parser(links, tables)
    environment = {} if environment is None else environment
    steps = environment[_STEPS] = _STEPS_A_CHARACTER * len(text) + _STEPS_A_PAGE
    tokens = parser.parse(text, environment)
    if _is_cut_off(tokens, parser.options["maxNesting"]):
        # Below the deepest nesting the parser drops everything. Without nesting there is no such.
        parser = _parser(links, tables, nesting=False)
        environment.clear()
        environment[_STEPS] = steps
        tokens = parser.parse(text, environment)
    dropped = sum(_drop_extensions(t.children or ()) for t in tokens if t.type == "inline")
    cells = _surplus_cells(tokens, text) if tables and "|" in text else 0
    environment[_LOST] = {
        "marks for programs": dropped,
        "cells beyond a table's columns": cells,
        "languages of code": sum(len(t.info.strip()) for t in tokens if t.type == "fence"),
    }
    rendered: str = parser.renderer.render(tokens, parser.options, environment)
    return rendered


@cache
def _parser(links: bool, tables: bool, nesting: bool = True) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"html": True})
    # Nothing here follows a link; what a source may be is decided where it is resolved.
    parser.validateLink = lambda _: True  # type: ignore[method-assign, assignment]
    skip_token = parser.inline.skipToken

    def skip_token_bounded(state: StateInline) -> None:
        state.env[_STEPS] -= 1
        if state.env[_STEPS] < 0:
            state.pos = state.posMax  # so that no label ends
        else:
            skip_token(state)

    parser.inline.skipToken = skip_token_bounded  # type: ignore[method-assign]
    if not links:
        parser.disable(["link", "image"])
    if not tables:
        parser.disable(["table"])
    if not nesting:
        parser.disable(["blockquote", "list", "code"])
    return parser


def _definitions(environment: dict[str, Any]) -> int:
    """Count the characters of link definitions: names, addresses and titles."""
    defined = environment.get("references", {})
    entries = [*defined.values(), *environment.get("duplicate_refs", [])]
    texts = (entry.get(key) or "" for entry in entries for key in _DEFINED)
    return sum(map(len, defined)) + sum(map(len, texts))


def _empty_cells(text: str) -> int:
    """Count, on the high side, the cells that rows of tables lack."""
    cells = columns = 0
    for line in text.split("\n"):
        row = line.strip(" \t>")
        if not row:
            columns = 0
        elif columns:
            cells += max(0, columns - row.count("|"))
        if "|" in row and "-" in row and not row.strip("|:- \t"):
            columns = row.count("|") + 1
    return cells


def _is_cut_off(tokens: Sequence[Token], limit: int) -> bool:
    return any(token.nesting == 1 and token.level >= limit - 2 for token in tokens)


def _drop_extensions(children: Sequence[Token]) -> int:
    """Drop what stands in the text for programs: fences, and attributes after an image.

    Gives how many characters that were.
    """
    dropped = 0
    for before, token in zip([None, *children], children, strict=False):
        if token.type == "text":
            size = len(token.content)
            if before is not None and before.type == "image":
                token.content = _ATTRIBUTES.sub("", token.content, count=1)
            if (fence := _FENCE.match(token.content)) is not None:
                token.content = token.content[fence.end() :]
            dropped += size - len(token.content)
    return dropped


def _surplus_cells(tokens: Sequence[Token], text: str) -> int:
    """Count the letters of cells that rows have beyond the columns of their table.

    By the rules they are no part of it, and the parser drops them.
    """
    lines = text.split("\n")
    surplus = row = 0
    in_body = False
    for token in tokens:
        if token.type in ("tbody_open", "tbody_close"):
            in_body = token.type == "tbody_open"
        elif token.type == "tr_open" and in_body and token.map:
            row = _letters(lines[token.map[0]])
        elif token.type == "inline" and in_body:
            row -= _letters(token.content)
        elif token.type == "tr_close" and in_body:
            surplus += max(0, row)
            row = 0
    return surplus


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _front_title(front: str) -> str | None:
    found = _FRONT_TITLE.search(front)
    return found[1].strip("\"'").strip() or None if found else None
