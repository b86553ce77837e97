"""Write docs/reference/cli.md, the reference of the command line, out of the commands themselves.

    python scripts/cli_reference.py

`tests/test_docs.py` fails when the page is not what this makes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main

from sightline.cli import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
# typer brings its own copy of click, whose classes have no public names: hence Any.
Command = Any
Parameter = Any

_HEAD = """\
<!-- Made by scripts/cli_reference.py out of the commands; change those, then run it again. -->
# Command line

Data goes to standard output, words to standard error, so that a pipe gets nothing but data. Each
command and option is below with its default. A flag is off unless it is given; an option for which
no default is named is unset. `-h` or `--help` after any command says the same in the terminal.
"""

_TAIL = """\
## Exit codes

| code | meaning |
|---:|---|
| 0 | done; also where the reader of the output left early |
| 1 | nothing usable came out, or a check failed; the last words on standard error say which |
| 2 | wrong usage: an option or an argument that does not exist or does not fit |
| 130 | interrupted (Ctrl-C); what was finished is kept |

## Environment variables

Every option can be given as a variable or in a settings file, by [one rule](../settings.md); some
of `serve` have shorter names, which stand beside them above. Besides, these are read:

| variable | meaning |
|---|---|
| `SIGHTLINE_TOKEN` | the token that `serve` asks for, where no `--token-file` is given |
| `NO_COLOR` | set to anything: no colours in the terminal |
| `XDG_CACHE_HOME` | where converted image networks are kept; by default `~/.cache` |
| `TMPDIR` | folder of temporary files, and of shards that come from an object store |
| `OMP_NUM_THREADS`, `OPENBLAS_NUM_THREADS` | threads of the numerical libraries |
| `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT` | of `train`, set by torchrun |
"""


def reference() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="sightline")
    commands = _commands(root, context)
    parts = [_HEAD, "## Commands\n"]
    panels: dict[str, list[str]] = {}
    for name, command in commands:
        panel = _panel(command, "All")
        line = f"- [`{name}`](#{name}): {_escaped(_first_sentence(command))}"
        panels.setdefault(panel, []).append(line)
    for panel, lines in panels.items():
        parts.append("\n".join([f"**{panel}**\n", *lines, ""]))
    parts += _words(root.epilog)
    parts.append("## Options of all commands\n")
    parts += _parameters(root, context)
    for name, command in commands:
        parts += _section(command, f"sightline {name}", context, 2)
    return "\n".join([*parts, _TAIL])


def _commands(group: Command, context: typer.Context) -> list[tuple[str, Command]]:
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [(name, command) for name, command in found if not command.hidden]


def _panel(one: Command | Parameter, usual: str) -> str:
    """The panel of `--help` that a command or a parameter stands in."""
    panel = getattr(one, "rich_help_panel", None)
    return panel if isinstance(panel, str) else usual


def _section(command: Command, name: str, parent: typer.Context, level: int) -> Iterator[str]:
    """A command: its help, its usage, its parameters, and the commands below it."""
    context = typer.Context(command, info_name=command.name, parent=parent)
    yield f"{'#' * level} {name.removeprefix('sightline ')}\n"
    yield from _words(command.help)
    below = _commands(command, context) if hasattr(command, "list_commands") else []
    words = [_usage(one) for one in command.params if one.param_type_name == "argument"]
    usage = " ".join([name, "[OPTIONS]", *(["COMMAND ..."] if below else words)])
    yield f"```\n{usage}\n```\n"
    if level == 2:
        last = name.split()[-1]
        yield f"How to use it: [{last}](../howto/{last}.md).\n"
    yield from _parameters(command, context)
    yield from _words(command.epilog)
    for child, one in below:
        yield from _section(one, f"{name} {child}", context, level + 1)


def _usage(argument: Parameter) -> str:
    word = argument.metavar or argument.name.upper()
    if argument.nargs != 1 and not word.endswith("..."):
        word += "..."
    return word if argument.required else f"[{word}]"


def _words(text: str | None) -> Iterator[str]:
    """The words of a command; examples, and what click is told not to wrap, as code."""
    for paragraph in inspect.cleandoc(text or "").split("\f")[0].split("\n\n"):
        lines = paragraph.replace("\b\n", "").strip("\n")
        if "\b" in paragraph or lines.startswith(("    ", "# ", "sightline ", "$ ")):
            yield f"```\n{inspect.cleandoc(lines)}\n```\n"
        elif lines:
            yield f"{_escaped(lines)}\n"


def _first_sentence(command: Command) -> str:
    return inspect.cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ")


def _parameters(command: Command, context: typer.Context) -> Iterator[str]:
    """The arguments and options, under the panels that `--help` shows them in."""
    panels: dict[str, list[str]] = {}
    for one in command.params:
        record = one.get_help_record(context)
        if record is None or "--help" in one.opts:
            continue
        usual = "Arguments" if one.param_type_name == "argument" else "Options"
        name = _usage(one) if usual == "Arguments" else _spelled(record[0])
        line = f"- `{name}`: {_meaning(record[1])}"
        panels.setdefault(_panel(one, usual), []).append(line)
    for panel, lines in panels.items():
        yield f"**{panel}**\n"
        yield "\n".join(lines) + "\n"


def _spelled(name: str) -> str:
    """`--workers <int range>` as `--workers INT`; choices and words of our own as they are."""
    name = re.sub(r"<list\[(.*?)\]>", r"<\1>", name)
    kinds = {"str": "TEXT", "int": "INT", "float": "FLOAT", "path": "PATH", "Path": "PATH"}
    return re.sub(
        r"<(.*?)(?: range)?>", lambda found: kinds.get(found.group(1), found.group(1)), name
    )


def _meaning(text: str) -> str:
    """The help of a parameter, then what click adds in brackets, as sentences."""
    found = re.fullmatch(r"(.*?)(?:\s*\[([^\[\]]*)\])?", text, re.DOTALL)
    words, facts = (found.group(1), found.group(2)) if found else (text, None)
    sentences = [_escaped(" ".join(words.split()))] if words.strip() else []
    for fact in (facts or "").split("; "):
        kind, _, value = fact.partition(": ")
        if kind == "default":
            sentences.append(f"Default `{value}`.")
        elif kind == "env var":
            sentences.append(f"Variable `{value}`.")
        elif fact == "required":
            sentences.append("Required.")
        elif fact:
            sentences.append(_range(fact))
    return " ".join(sentences)


def _range(fact: str) -> str:
    """`0<=x<=1` as words."""
    if both := re.fullmatch(r"(.+)<=x<=(.+)", fact):
        return f"From {both.group(1)} to {both.group(2)}."
    if least := re.fullmatch(r"x>=(.+)", fact):
        return f"At least {least.group(1)}."
    return f"`{fact}`."


def _escaped(text: str) -> str:
    """Text for Markdown: `<id>` is no tag, outside code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if place % 2 else part.replace("<", "&lt;") for place, part in enumerate(parts)
    )


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(reference(), "utf-8")
    print(PAGE.relative_to(Path.cwd()))


if __name__ == "__main__":
    main()
