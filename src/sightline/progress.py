"""Progress of anything that takes over two seconds: a bar on a terminal, plain lines elsewhere.

All of it goes to standard error; standard output is for data. `--quiet` shows none.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Self, TextIO

from sightline.verbosity import is_quiet

#: Plain lines come this often, in seconds, so that a log file stays readable.
_LINE_EVERY = 10.0
#: Nothing is shown for work shorter than this, in seconds.
_SILENT_FOR = 2.0


def duration(seconds: float) -> str:
    """Seconds as people say them: 45 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number of things as people say it: 1 image, 2,000 images."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def silent(words: str) -> None:
    """Nobody listens: the default of what says something and is called from Python."""


class Progress:
    """Counts done units and shows the rate and the time left."""

    def __init__(
        self, title: str, total: int | None, unit: str, stream: TextIO | None = None
    ) -> None:
        self.title, self.total, self.unit = title, total, unit
        self.stream = stream or sys.stderr
        self.done = 0
        self.started = self.shown = time.monotonic()
        # A dumb terminal cannot go back to the beginning of a line.
        self.on_terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.on_terminal and self.shown > self.started:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def advance(self, count: int = 1, note: str = "") -> None:
        """Some more units are done; `note` is shown beside the rate."""
        self.done += count
        if is_quiet():
            return
        now = time.monotonic()
        every = 0.1 if self.on_terminal else _LINE_EVERY
        if now - self.started >= _SILENT_FOR and now - self.shown >= every:
            self.shown = now
            line = self._line(now - self.started, note)
            self.stream.write(f"\r\x1b[K{line}" if self.on_terminal else f"{line}\n")
            self.stream.flush()

    def _line(self, seconds: float, note: str) -> str:
        rate = self.done / seconds
        parts = [f"{rate:,.1f} {self.unit}/s", note]
        if self.total:
            parts.insert(0, f"{100 * self.done / self.total:3.0f} %")
            if rate > 0:
                parts.append(f"{duration((self.total - self.done) / rate)} left")
        return f"{self.title}: {', '.join(part for part in parts if part)}"
