"""The attributes of a tag in the source of a page: where they stand, and how to set one.

Tags are cut as the HTML standard's tokenizer cuts them, so that what is found here is what a
browser finds; of an attribute that is there twice, the first counts.
"""

from __future__ import annotations

import html
import re

from sightline.source_edits import Edit, SourceText

_SPACE = r"[\t\n\f\r ]"
_ATTRIBUTE = re.compile(
    r"[\t\n\f\r /]*+"
    r"(?P<name>=?[^\t\n\f\r />=]*+)"
    rf"(?P<rest>{_SPACE}*+={_SPACE}*+"
    r"""(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'|(?P<unclosed>["'])"""
    r"""|(?P<bare>[^\t\n\f\r >"'][^\t\n\f\r >]*+))?+)?+"""
)
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ufffe\uffff]+")


def one_line(text: str) -> str:
    """Give a text as one line: no breaks, no control characters, no half surrogate pairs."""
    clean = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub(" ", clean).strip()


def find_attribute(text: str, place: int, name: str) -> tuple[int, int, str] | None:
    """Find an attribute of the tag whose name ends at `place`: its start, its end, its value."""
    while place < len(text):
        found = _ATTRIBUTE.match(text, place)
        assert found is not None  # it matches the empty string
        if found["unclosed"]:  # all that follows is in the quote: no browser sees this tag
            return None
        if found["name"].lower() == name:
            value = found["double"] or found["single"] or found["bare"] or ""
            return found.start("name"), found.end(), html.unescape(value)
        if found.end() == place or text[found.end() : found.end() + 1] == ">":
            return None
        place = found.end()
    return None


def set_attribute(source: SourceText, place: int, name: str, value: str) -> Edit:
    """Give the edit that sets an attribute of the tag whose name ends at `place`."""
    written = source.held(html.escape(one_line(value), quote=True))
    found = find_attribute(source.text, place, name)
    if found is None:
        return place, place, f' {name}="{written}"'
    start, end, _ = found
    return start, end, f'{name}="{written}"'
