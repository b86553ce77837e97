"""The command line: the app, its commands, and how errors end it.

Data goes to standard output, words to standard error. Exit codes: 0 done, 1 nothing usable or a
failed check, 2 wrong usage. Each command is a file of `commands/` and holds no logic of its own;
heavy modules are imported where they are used, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

from sightline.commands.alt import alt
from sightline.commands.analyze import analyze
from sightline.commands.build import build
from sightline.commands.calibrate import calibrate
from sightline.commands.convert import convert
from sightline.commands.corpus import corpus
from sightline.commands.demo import demo
from sightline.commands.duplicates import duplicates
from sightline.commands.evaluate import evaluate
from sightline.commands.features import features
from sightline.commands.link import link
from sightline.commands.pairs import pairs
from sightline.commands.reproduce import reproduce
from sightline.commands.serve import serve
from sightline.commands.train import train
from sightline.console import say
from sightline.problems import SightlineError

#: What typer exits with after Ctrl-C, which it takes without a word.
_INTERRUPTED = 130

app = typer.Typer(
    help="Finds which sentence each image of a document belongs to.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    demo,
    link,
    alt,
    pairs,
    train,
    calibrate,
    evaluate,
    features,
    corpus,
    duplicates,
    analyze,
    reproduce,
    convert,
    serve,
):
    app.command()(command)
app.add_typer(build)


def main() -> None:
    """Run the command line; user errors are one sentence, never a traceback."""
    try:
        app()
    except SightlineError as error:
        say(f"Error: {error}")
        sys.exit(1)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            say("Interrupted; what was finished is kept.")
        raise
    except BrokenPipeError:
        # The reader of our output left; nothing is wrong.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        # A full disk or the limit of open files, met where no better sentence is known.
        place = error.filename or "the output"
        say(f"Error: {place} cannot be read or written: {error.strerror or error}.")
        _forget_output()
        sys.exit(1)
    except MemoryError:
        say("Error: The memory of this machine, or what its limits allow, is used up.")
        sys.exit(1)


def _forget_output() -> None:
    """Leave the interpreter nothing to write at its end, which would fail once more."""
    with suppress(OSError):
        sys.stdout.close()


def _version(wanted: bool) -> None:
    if wanted:
        from sightline import __version__

        typer.echo(f"sightline {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
