"""The text of one block while it is gathered: pieces, line breaks and the places of images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

Image = TypeVar("Image")

# Stands for a break or an image among the pieces; the parser lets no NUL through.
_MARK = "\0"


@dataclass(slots=True)
class TextPart(Generic[Image]):
    """Text that makes a block, with its images and the characters before each; or images alone."""

    text: str = ""
    linked: int = 0
    images: list[tuple[Image, int]] = field(default_factory=list)


class TextRun(Generic[Image]):
    """Gathers what stands between two ends of blocks."""

    __slots__ = ("linked", "marks", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        # What each mark stands for: an image, or None for a line break.
        self.marks: list[Image | None] = []
        self.linked = 0

    def add(self, text: str, linked: bool) -> None:
        """Add text, of a link or not."""
        self.pieces.append(text)
        if linked:
            self.linked += len(text.strip())

    def mark(self, image: Image | None) -> None:
        """Add an image, or a line break if None."""
        self.pieces.append(_MARK)
        self.marks.append(image)

    def take(self, preformatted: bool) -> list[TextPart[Image]]:
        """Give what was gathered and begin anew.

        White space counts as one space, unless it is preformatted. Two breaks in a row end a block,
        as a blank line does. Images without text come as a part without text.
        """
        raw, marks, linked = "".join(self.pieces), self.marks, self.linked
        self.pieces, self.marks, self.linked = [], [], 0
        if preformatted:
            return self._preformatted(raw, marks)
        if not marks:
            text = " ".join(raw.split())
            return [TextPart(text, min(linked, len(text)))] if text else []
        parts = _split(raw, marks)
        total = sum(len(part.text) for part in parts)
        for part in parts:
            part.linked = min(linked, total) * len(part.text) // max(total, 1)
        return parts

    def _preformatted(self, raw: str, marks: list[Image | None]) -> list[TextPart[Image]]:
        part: TextPart[Image] = TextPart()
        texts = raw.split(_MARK)
        lines, size = [texts[0]], len(texts[0])
        for text, mark in zip(texts[1:], marks, strict=True):
            if mark is None:
                text = f"\n{text}"
            else:
                part.images.append((mark, size))
            lines.append(text)
            size += len(text)
        joined = "".join(lines)
        part.text = joined.strip("\n").rstrip()
        cut = len(joined) - len(joined.lstrip("\n"))
        part.images = [(i, min(max(o - cut, 0), len(part.text))) for i, o in part.images]
        return [part] if part.text or part.images else []


def _split(raw: str, marks: list[Image | None]) -> list[TextPart[Image]]:
    parts: list[TextPart[Image]] = []
    gathering: _Gathering[Image] = _Gathering()
    texts = raw.split(_MARK)
    gathering.add(texts[0])
    for mark, text in zip(marks, texts[1:], strict=True):
        if mark is not None:
            gathering.images.append((mark, gathering.size))
        elif gathering.breaks and gathering.words:
            parts.append(gathering.take())
        else:
            gathering.breaks += 1
        gathering.add(text)
    if gathering.words or gathering.images:
        parts.append(gathering.take())
    return parts


class _Gathering(Generic[Image]):
    """A part under way: its words, and the white space and breaks since the last of them."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.images: list[tuple[Image, int]] = []
        self.size = self.breaks = 0
        self.space = False

    def add(self, text: str) -> None:
        words = " ".join(text.split())
        if not words:
            self.space = self.space or bool(text)
            return
        if self.words:
            gap = "\n" if self.breaks else " " if self.space or text[0].isspace() else ""
            self.words.append(gap)
            self.size += len(gap)
        self.words.append(words)
        self.size += len(words)
        self.breaks = 0
        self.space = text[-1].isspace()

    def take(self) -> TextPart[Image]:
        part = TextPart("".join(self.words), images=self.images)
        self.words, self.images, self.size, self.breaks, self.space = [], [], 0, 0, False
        return part
