"""What the commands say and write: words, problems, JSON."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from sightline.files import write_out
from sightline.problems import MissingExtraError, Problem, Problems
from sightline.progress import counted
from sightline.verbosity import is_quiet, is_verbose

if TYPE_CHECKING:
    from sightline.choices import MaxLinks

#: Problems beyond this many are counted but no longer printed one by one.
_PRINTED_PROBLEMS = 20
_DIGITS = 19  # what has fewer is a number that arrays can hold
# What a terminal obeys. The names of files and documents may be a stranger's.
_CONTROLS = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@contextmanager
def extra_needed(what: str, extra: str) -> Iterator[None]:
    """Turn a missing package into the exact install command."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "sightline":
            raise
        raise MissingExtraError(what, extra) from None


def max_links_from(text: str) -> MaxLinks:
    """The value of --max-links."""
    if text == "all":
        return "all"
    if text == "half":
        return "half"
    if text.isascii() and text.isdigit() and len(text) < _DIGITS and int(text) > 0:
        return int(text)
    raise typer.BadParameter(f"--max-links is {text!r}; expected all, half or a number from 1 on")


def say(words: str) -> None:
    """Words go to standard error; standard output is for data. `--quiet` leaves them out."""
    if not is_quiet():
        typer.echo(_harmless(words), err=True)


def detail(words: str) -> None:
    """Words that `--verbose` alone asks for: what is done, with what, how long it took."""
    if is_verbose():
        typer.echo(_harmless(words), err=True)


def _harmless(words: str) -> str:
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], words)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Tell with `--verbose` how long a step took."""
    started = time.perf_counter()
    yield
    detail(f"{what}: {time.perf_counter() - started:.2f} s")


def complain(words: str) -> None:
    """Say what went wrong, however quiet it is to be."""
    error = coloured("Error:", "red", sys.stderr)
    typer.echo(f"{error} {_harmless(words)}", err=True, color=True)


def has_colours(stream: TextIO) -> bool:
    """Whether what goes to a stream may have colours: on terminals that can show them.

    NO_COLOR (no-color.org) and FORCE_COLOR (force-color.org) decide before the terminal does.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def coloured(words: str, colour: str, stream: TextIO) -> str:
    """Words in a colour, where the stream has colours."""
    return typer.style(words, fg=colour, bold=True) if has_colours(stream) else words


_reported = 0


def report(problem: Problem) -> None:
    """Print a problem, until there have been many."""
    global _reported
    _reported += 1
    if _reported <= _PRINTED_PROBLEMS or is_verbose():
        say(f"skipped {problem}")
    elif _reported == _PRINTED_PROBLEMS + 1:
        say("further problems are only counted; --verbose names each")


def say_problems(problems: Problems) -> None:
    """Say at the end how many records were skipped."""
    if problems.count:
        skipped = counted(problems.count, "bad record was", "bad records were")
        say(f"{skipped} skipped (--strict stops at the first)")


def say_left_out(dropped: Counter[str]) -> None:
    """Say what lies in folders and was not read."""
    if +dropped:
        left_out = ", ".join(f"{what} ({count:,})" for what, count in sorted((+dropped).items()))
        say(f"left out of folders: {left_out}")


def print_json(value: object) -> None:
    """One JSON value to standard output."""
    import orjson

    write_out([orjson.dumps(value) + b"\n"])


def write_lines(path: Path | None, records: Iterator[dict[str, Any]]) -> None:
    """JSON lines to a file, which appears whole or not at all, or to standard output."""
    import orjson

    if path is None:
        write_out(orjson.dumps(record) + b"\n" for record in records)
        return
    from sightline.files import atomic_writer

    with atomic_writer(path) as file:
        for record in records:
            file.write(orjson.dumps(record) + b"\n")
