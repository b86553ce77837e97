"""The command line: the app, its commands, and how errors end it.

Data goes to standard output, words to standard error. Exit codes: 0 done, 1 nothing usable or a
failed check, 2 wrong usage. Each command is a file of `commands/` and holds no logic of its own;
it is imported when it is used, and heavy modules where they are used, so that all start at once.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.commands.manners import CommandGroup, QuietOption, VerboseOption, examples
from sightline.commands.settings_file import use_settings_file
from sightline.commands.values import UsageSentence
from sightline.console import complain, say
from sightline.problems import SightlineError, UsageError, did_you_mean
from sightline.verbosity import Verbosity, choose_verbosity

#: What typer exits with after Ctrl-C, which it takes without a word.
_INTERRUPTED = 130


class _Commands(CommandGroup):
    """All commands, by what one wants to do."""

    panels = {  # noqa: RUF012
        "Link documents": ("link", "alt", "pairs", "demo"),
        "Train and measure": ("train", "evaluate", "calibrate", "analyze", "reproduce"),
        "Corpora and features": ("corpus", "build", "convert", "features", "duplicates"),
        "Serve and look after": ("serve", "doctor"),
    }

    def invoke(self, ctx: Any) -> Any:
        """Run the command; that its reader leaves is no error, though typer would end with 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The interpreter flushes what is left at its end, and must not fail at it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        return result


_EXAMPLES = examples(
    ("See what it does, on bundled documents", "sightline demo"),
    ("Link an article, into a page to look at", "sightline link article.html -o links.html"),
    ("Train a model of your own and score it", "sightline train CORPUS -o MODEL"),
    ("", "sightline evaluate MODEL CORPUS"),
    ("Find out what is missing here, and how to get it", "sightline doctor"),
)
_SETTINGS = (
    "Each option may also be set by a variable, such as SIGHTLINE_LINK_POLICY for the --policy of "
    "link, or in sightline.toml, there as policy under a heading with the name of the command."
)

app = typer.Typer(
    cls=_Commands,
    help="Finds which sentence each image of a document belongs to.",
    epilog=f"{_EXAMPLES}\n\n{_SETTINGS}",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "SIGHTLINE"},
)


def main() -> None:
    """Run the command line; user errors are one sentence, never a traceback."""
    choose_verbosity(Verbosity.USUAL)
    try:
        code = typer.main.get_command(app).main(prog_name="sightline", standalone_mode=False)
    except typer.TyperException as error:
        _explain_usage(error)
        sys.exit(error.exit_code)
    except SightlineError as error:
        complain(str(error))
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except typer.Abort:  # what typer makes of an EOFError
        complain("Something that was read ended before its time.")
        sys.exit(1)
    except OSError as error:
        # A full disk or the limit of open files, met where no better sentence is known.
        place = error.filename or "the output"
        complain(f"{place} cannot be read or written: {error.strerror or error}.")
        _forget_output()
        sys.exit(1)
    except MemoryError:
        complain("The memory of this machine, or what its limits allow, is used up.")
        sys.exit(1)
    if code == _INTERRUPTED:
        complain("Interrupted; what was finished is kept, and no file is half written.")
    sys.exit(code or 0)


def _explain_usage(error: Any) -> None:
    """Say what is wrong with the command line, after how it is used."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return  # the help was shown
    context: Any = getattr(error, "ctx", None)
    if context is not None:
        say(context.get_usage())
        say(f"Try '{context.command_path} --help' for help.")
    if context is not None and (option := getattr(error, "option_name", None)):
        known = (name for one in context.command.get_params(context) for name in one.opts)
        sentence = f"{error.message}.{did_you_mean(option, known)}"
        if option == "--config":
            sentence += " It stands before the command: sightline --config FILE ..."
    else:
        sentence = error.format_message().replace("\n\t", " ").removeprefix("Invalid value: ")
    complain(sentence if sentence.endswith((".", "?")) else f"{sentence}.")


def _forget_output() -> None:
    """Leave the interpreter nothing to write at its end, which would fail once more."""
    with suppress(OSError):
        sys.stdout.close()


def _version(wanted: bool) -> None:
    if wanted:
        from sightline import __version__

        typer.echo(f"sightline {__version__}")
        raise typer.Exit


def _settings(context: typer.Context, named: Path | None) -> Path | None:
    if context.resilient_parsing:  # as it is for completion, which says nothing
        return named
    try:
        use_settings_file(context, named)
    except UsageSentence as error:
        # Who asks for help or for what is wrong gets it all the same.
        if not {"--help", "--show-completion", "--install-completion", "doctor"} & {*sys.argv[1:]}:
            raise
        context.meta["sightline.settings_fault"] = error.format_message()
        if "doctor" not in sys.argv[1:]:
            say(f"settings are left alone: {error.format_message()}")
    return named


@app.callback()
def _options(
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    config: Annotated[
        Path | None,
        typer.Option(
            callback=_settings,
            is_eager=True,
            metavar="FILE",
            help="Settings, in TOML; by default sightline.toml of this folder, if it is there.",
            show_envvar=False,
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            allow_from_autoenv=False,
            show_envvar=False,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    pass
