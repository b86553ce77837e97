"""Plain text: paragraphs between blank lines, and nothing else; its images lie beside the file."""

from __future__ import annotations

import re

from sightline.pages import Block, BlockKind, LeftOut, Page
from sightline.problems import SightlineError
from sightline.readers.html_encoding import decode_html

MAX_BYTES = 16 * 2**20
# A line that is shorter was ended on purpose, not by an editor that breaks lines: those fill at the
# least two thirds of 70 columns.
_SHORTEST_WRAPPED = 46
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read_text(data: bytes) -> Page:
    """Read a text file; raises `SightlineError` only if it is larger than the limit."""
    if len(data) > MAX_BYTES:
        raise SightlineError(f"The text is larger than {MAX_BYTES // 2**20} MiB, the limit.")
    decoded = decode_html(data, declared=False)
    text = decoded.text.replace("\0", "")
    zeros = len(decoded.text) - len(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
    paragraphs = (found for part in _BLANK_LINES.split(text) for found in _unwrapped(part))
    blocks = tuple(Block(BlockKind.PARAGRAPH, paragraph) for paragraph in paragraphs)
    left_out = LeftOut()
    left_out.text["invalid bytes"] += decoded.replaced + zeros
    left_out.text = +left_out.text
    return Page(None, blocks, (), left_out=left_out)


def _unwrapped(part: str) -> list[str]:
    """Join the lines that an editor broke; those that were ended on purpose are paragraphs."""
    paragraphs: list[list[str]] = []
    is_wrapped = False
    for line in (" ".join(line.split()) for line in part.split("\n")):
        if is_wrapped and line:
            paragraphs[-1].append(line)
        elif line:
            paragraphs.append([line])
        is_wrapped = len(line) >= _SHORTEST_WRAPPED
    return [" ".join(lines) for lines in paragraphs]
