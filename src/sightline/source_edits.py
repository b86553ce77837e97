"""Changing a few places of a text file and no byte of the rest."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from sightline.problems import SightlineError
from sightline.readers.html_encoding import decode_html

#: Start and end of what is replaced, and what stands there instead.
Edit = tuple[int, int, str]

_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LINE_END = re.compile(r"\r\n?|\n")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class SourceText:
    """The text of a file such that the same bytes can be made of it, invalid ones too."""

    text: str
    encoding: str
    #: The byte order mark.
    start: bytes = b""

    @classmethod
    def decode(cls, data: bytes, *, declared: bool) -> SourceText:
        """Decode as the readers do; refuses a file whose bytes would not come back."""
        encoding = decode_html(data, declared=declared).encoding
        start = next((bom for bom in _BOMS if data.startswith(bom)), b"")
        try:
            text = data[len(start) :].decode(encoding, "surrogateescape")
            source = cls(text, encoding, start)
            if source.encode(text) == data:
                return source
        except UnicodeError:
            pass
        raise SightlineError(
            f"The file cannot be changed in place: some of its bytes are no {encoding}; save it as "
            "UTF-8 and try again."
        )

    def encode(self, text: str) -> bytes:
        """Give the bytes of a changed text."""
        return self.start + text.encode(self.encoding, "surrogateescape")

    def held(self, text: str) -> str:
        """Give a new piece with references for the characters that the file's encoding lacks."""
        if self._holds(text):
            return text
        return "".join(c if self._holds(c) else f"&#{ord(c)};" for c in text)

    def _holds(self, text: str) -> bool:
        try:
            # Some encodings take a character for another that looks like it.
            return text.encode(self.encoding).decode(self.encoding) == text
        except UnicodeError:
            return False

    def readable(self) -> str:
        """Give the text with a replacement character for each byte that is none."""
        return _SURROGATES.sub("\ufffd", self.text)

    def lines(self) -> Lines:
        """Give what tells the line of a place."""
        return Lines([0, *(found.end() for found in _LINE_END.finditer(self.text))])


@dataclass(frozen=True)
class Lines:
    """Where the lines of a text begin."""

    starts: Sequence[int]

    def at(self, place: int) -> int:
        """Give the number of the line that a place is in, from 1."""
        return bisect_right(self.starts, place)


def splice(text: str, edits: Sequence[Edit]) -> str:
    """Make all edits; they must not overlap. Of two at one place, the first given comes first."""
    pieces, place = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[place:start], new]
        place = end
    return "".join([*pieces, text[place:]])
