"""What all commands have in common: loading, help, `--quiet` and `--verbose`, values, examples."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sightline.commands.values import (
    Context,
    Parameter,
    UsageSentence,
    place_of,
    use_plain_values,
)
from sightline.console import detail, has_colours, say
from sightline.problems import did_you_mean
from sightline.verbosity import Verbosity, choose_verbosity, is_verbose

Formatter = Any

#: Where a value may stand, as typer names it; the later goes before the earlier.
_PLACES = ("DEFAULT_MAP", "ENVIRONMENT", "COMMANDLINE")


def examples(*pairs: tuple[str, str]) -> str:
    """The end of a command's help: what is done, and the command that does it."""
    lines = [line for words, command in pairs for line in (words and f"# {words}", command) if line]
    # "\b" keeps click's plain help from joining the lines.
    return "\n".join(["Examples:", "", "\b", *lines])


def _be_quiet(context: typer.Context, wanted: bool) -> None:
    if wanted:
        _choose(Verbosity.QUIET, context, "quiet")


def _be_verbose(context: typer.Context, wanted: bool) -> None:
    if wanted:
        _choose(Verbosity.VERBOSE, context, "verbose")


def _choose(wanted: Verbosity, context: Context, name: str) -> None:
    """Take the wish that stands at the higher place; one place must not wish for both."""
    rank = _PLACES.index(context.get_parameter_source(name).name)
    before, its_rank = context.meta.get("sightline.verbosity", (wanted, -1))
    if its_rank > rank:
        return
    if its_rank == rank and before is not wanted:
        raise UsageSentence("--quiet and --verbose contradict each other; give one of them.")
    context.meta["sightline.verbosity"] = (wanted, rank)
    choose_verbosity(wanted)


QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Say nothing but errors; data still goes to standard output.",
        callback=_be_quiet,
        show_envvar=False,
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Tell each step: files, settings, threads, times.",
        callback=_be_verbose,
        show_envvar=False,
    ),
]


@cache
def _options_of_all() -> list[Parameter]:
    """`--quiet` and `--verbose`, which may also stand after the name of a command."""

    def command(quiet: QuietOption = False, verbose: VerboseOption = False) -> None: ...

    one = typer.Typer(add_completion=False)
    one.command()(command)
    options: list[Parameter] = list(typer.main.get_command(one).params)
    for option in options:
        option.expose_value = False
        option.hidden = True  # the help of `sightline` itself has them
    return options


def _shorten(parameters: list[Parameter]) -> None:
    """Leave out of the help what goes without saying."""
    for one in parameters:
        # Every option has a variable, by one rule; only those with a name of their own tell it.
        one.show_envvar = one.envvar is not None
        if getattr(one, "is_flag", False):
            one.metavar = ""
        elif one.param_type_name == "argument":
            one.metavar = one.metavar or one.name.upper()


class _Manners:
    """What commands and groups of them do alike."""

    epilog: str | None
    rich_markup_mode: Any

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments; values are converted without pydantic."""
        use_plain_values(self.get_params(ctx))  # type: ignore[attr-defined]
        rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return rest

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """The words of the usage line, as manuals write them: no braces around what is needed."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def format_help(self, ctx: Context, formatter: Formatter) -> None:
        """Write the help, in colours on terminals alone."""
        from typer import rich_utils

        colours = has_colours(sys.stdout)
        rich_utils.COLOR_SYSTEM = "auto" if colours else None
        rich_utils.FORCE_TERMINAL = True if colours else None
        _shorten(self.get_params(ctx))  # type: ignore[attr-defined]
        if self.rich_markup_mode and self.epilog:
            self.epilog = self.epilog.replace("\b\n", "")
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        except SystemExit:
            sys.exit(0)  # rich ends with 1 where the reader has seen enough


class Command(_Manners, TyperCommand):
    """A command that tells with `--verbose` what it was given and what it took."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        _shorten(self.params)
        self.params = [*self.params, *_options_of_all()]

    def invoke(self, ctx: Context) -> Any:
        """Run the command."""
        if is_verbose():
            _tell_machine()
        _tell_settings(self.params, ctx)
        _tell_unknown_variables(self.params, ctx)
        started = time.perf_counter()
        try:
            return super().invoke(ctx)
        finally:
            detail(_cost(ctx.command_path, time.perf_counter() - started))


class CommandGroup(_Manners, TyperGroup):
    """Commands of which each is imported when it is used, as all would take longer than one.

    Help and completion, which only list them, get along without their options.
    """

    #: The names of the commands, by the panels in which the help shows them.
    panels: Mapping[str, tuple[str, ...]] = {}
    _listing = False

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.panels:
            self.commands = _ModulesOfCommands(self.panels)  # type: ignore[assignment]

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002
        """The names of the commands, in the order of their panels."""
        return list(self.commands)

    def get_command(self, ctx: Context, cmd_name: str) -> Any:
        """The command of a name; while they are listed, one that knows what it is for alone."""
        if self._listing and isinstance(self.commands, _ModulesOfCommands):
            return self.commands.described(cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Context, formatter: Formatter) -> None:
        """Write the help, with the list of commands."""
        self._listing = True
        super().format_help(ctx, formatter)
        self._listing = False

    def shell_complete(self, ctx: Context, incomplete: str) -> Any:
        """The commands and options that begin so."""
        self._listing = True
        found = super().shell_complete(ctx, incomplete)
        self._listing = False
        return found


class _ModulesOfCommands(Mapping[str, Any]):
    """Commands by their names; each is the function of its name in the module of its name."""

    def __init__(self, panels: Mapping[str, tuple[str, ...]]) -> None:
        self._panels = {name: panel for panel, names in panels.items() for name in names}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        panel = self._panels[name]
        if name not in self._loaded:
            self._loaded[name] = _load(name, panel)
        return self._loaded[name]

    def described(self, name: str) -> TyperCommand:
        """A command that cannot be run: its name, its panel and what it is for."""
        found = _of_module(name)
        words = found.info.help if isinstance(found, typer.Typer) else getdoc(found)
        return TyperCommand(name, help=words, rich_help_panel=self._panels[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._panels)

    def __len__(self) -> int:
        return len(self._panels)


def _of_module(name: str) -> Any:
    """What a module of a command calls by its own name: a function, or several commands."""
    return getattr(import_module(f"sightline.commands.{name}"), name)


def _load(name: str, panel: str) -> Any:
    found = _of_module(name)
    if not isinstance(found, typer.Typer):
        one = typer.Typer(add_completion=False)
        epilog = import_module(f"sightline.commands.{name}").EXAMPLES
        one.command(name, cls=Command, epilog=epilog)(found)
        found = one
    command: Any = typer.main.get_command(found)
    command.rich_help_panel = panel
    return command


def _tell_machine() -> None:
    import platform

    from sightline import __version__
    from sightline.machine import usable_cores

    threads = os.environ.get("OMP_NUM_THREADS")
    bound = f", OMP_NUM_THREADS={threads}" if threads else ""
    python = f"Python {platform.python_version()}"
    detail(f"sightline {__version__}, {python}, {usable_cores():g} cores{bound}, in {Path.cwd()}")


def _tell_settings(parameters: list[Parameter], ctx: Context) -> None:
    """Say what a settings file that nobody named decides, and with `--verbose` all that is set."""
    file = ctx.meta.get("sightline.settings_file")
    decided = []
    for one in parameters:
        source = ctx.get_parameter_source(one.name)
        if source is None or source.name == "DEFAULT" or not one.expose_value:
            continue
        value = _shown(ctx.params[one.name])
        if source.name == "DEFAULT_MAP":
            decided.append(f"{one.name.replace('_', '-')} = {value}")
        else:
            detail(f"{place_of(one, ctx)} = {value}")
    if decided:
        tell = detail if ctx.meta.get("sightline.settings_named") else say
        tell(f"settings of {file}: {', '.join(decided)}")


def _tell_unknown_variables(parameters: list[Parameter], ctx: Context) -> None:
    """Say which variables were probably meant for this command, but name none of its options."""
    prefix = f"{ctx.auto_envvar_prefix}_"
    known = {f"{prefix}{one.name.upper()}" for one in parameters}
    known |= {str(one.envvar) for one in parameters if one.envvar}
    for name in sorted(os.environ):
        if name.startswith(prefix) and name not in known:
            say(f"{name} is set, but there is no such option.{did_you_mean(name, known)}")
    of_serve, own = "SIGHTLINE_MODEL", f"{prefix}MODEL"
    if own in known and of_serve not in known and of_serve in os.environ and own not in os.environ:
        say(f"{of_serve} is for serve; the model of this command is {own}.")


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _cost(command: str, seconds: float) -> str:
    """How long a command took, and what of the machine."""
    from sightline.machine import peak_memory_bytes

    times = os.times()
    used = times.user + times.system + times.children_user + times.children_system
    words = f"{command}: {seconds:.2f} s, {used:.2f} s of CPU time with its start"
    if (peak := peak_memory_bytes()) is not None:
        words += f", {peak / 1e6:,.0f} MB of memory at most"
    return words
