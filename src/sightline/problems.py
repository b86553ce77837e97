"""What went wrong with the user's input, and where: one vocabulary for every reader.

A `SightlineError` ends a command with one sentence and no traceback. A `Problem` is one bad
record among good ones: it is reported, counted and skipped, and the rest goes on, unless the
user asked to be strict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path


class SightlineError(Exception):
    """An error that the user can act on; its message is a whole sentence."""


class UsageError(SightlineError):
    """What was asked for does not exist or does not fit, whatever the input holds."""


class MissingExtraError(SightlineError):
    """A feature needs a package that the installed extras do not bring."""

    def __init__(self, what: str, extra: str) -> None:
        from sightline.installed_packages import install_command

        super().__init__(f"{what} needs an extra: {install_command(extra)}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about a wrong name: the names that are close to it, if any are."""
    from difflib import get_close_matches

    names = {name.casefold(): name for name in known}
    close = [names[name] for name in get_close_matches(word.casefold(), names, n=2)]
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One bad record: where it stands, which field of it, and what is wrong with it."""

    file: str
    # A line number, or a place such as `train[12]` in a file that is one JSON value.
    line: int | str | None
    field: str | None
    reason: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.field}: {self.reason}" if self.field else f"{place}: {self.reason}"


class ProblemError(SightlineError):
    """A problem met where the user asked to stop at the first one."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass
class Problems:
    """Collects the problems of one run: reports each, counts all, keeps the first few.

    `report` is called with each problem (the command line prints it); `strict` raises instead.
    """

    strict: bool = False
    report: Callable[[Problem], None] | None = None
    keep: int = 100
    count: int = 0
    first: list[Problem] = field(default_factory=list)
    #: The first file of which all after some place is lost, if any.
    cut: Problem | None = None

    def add(self, file: str | Path, line: int | str | None, field: str | None, reason: str) -> None:
        """Record one problem; raises `ProblemError` if strict."""
        problem = Problem(str(file), line, field, reason)
        if self.strict:
            raise ProblemError(problem)
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(problem)
        if self.report is not None:
            self.report(problem)

    def cut_off(self, file: str | Path, line: int | str | None, reason: str) -> None:
        """Record that nothing after this place of a file can be read."""
        self.cut = self.cut or Problem(str(file), line, None, reason)
        self.add(file, line, None, reason)
