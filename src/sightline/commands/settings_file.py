"""Settings from a TOML file: a table for each command, a key for each option.

The command line goes before the environment, the environment before the file, the file before the
defaults. A file that lies in the working folder may have come with documents that nobody vouches
for: what it decides is told, and what it may decide is limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sightline.commands.values import (
    Context,
    Parameter,
    UsageSentence,
    converted,
    kind_of,
)
from sightline.problems import did_you_mean
from sightline.storage import is_remote, place_of

#: The file that is looked for in the working folder.
NAME = "sightline.toml"
#: Bytes; far more than all options take.
_LARGEST = 2**20
#: Paths of plain data that is read: all that a file which nobody named may choose.
READ_PATHS = {"features", "images", "pages", "word_vectors"}
#: What has to be trusted, reaches out of this machine, or decodes without isolation (--workers 0).
_NEEDS_TRUST = {"backbone", "engine", "engine_address", "fetch", "model", "workers"}
_OPEN_TO_OTHERS = "serve"


def use_settings_file(ctx: Context, named: Path | None) -> None:
    """Take the defaults of options from the file that is named, else from one in this folder."""
    file = named or Path(NAME)
    if named is None and not file.is_file():
        return
    reading = _Reading(file, named is not None)
    ctx.default_map = dict(reading.settings(_parsed(file), ctx.command, ctx, ""))
    ctx.meta["sightline.settings_file"] = str(file)
    ctx.meta["sightline.settings_named"] = named is not None


def _parsed(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageSentence(f"{file} is larger than 1 MiB and no settings file.")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise UsageSentence(f"{file}: the settings cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageSentence(f"{file}: the settings are not UTF-8; save them so.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageSentence(f"{file}: the settings are not TOML: {error}.") from None


class _Reading:
    """Checks the tables of one file against the commands and their options."""

    def __init__(self, file: Path, named: bool) -> None:
        self.file, self.named = file, named

    def settings(
        self, table: dict[str, Any], command: Any, ctx: Context, within: str
    ) -> Iterator[tuple[str, Any]]:
        """Names and values, as click takes them, of a command and those below it."""
        options = dict(_options(command))
        below = set(getattr(command, "commands", ()))
        for key, value in table.items():
            place = f"{self.file}: {f'[{within}] ' if within else ''}{key}"
            name = key.replace("_", "-")
            if isinstance(value, dict) and name in below:
                self._allow_table(name)
                inner = f"{within}.{name}" if within else name
                one = command.get_command(ctx, name)
                yield name, dict(self.settings(value, one, ctx, inner))
            elif not isinstance(value, dict) and (option := options.get(name)):
                self._allow(option, value, place)
                yield option.name, _value(value, option, place)
            else:
                raise UsageSentence(f"{place}: {_unknown(value, name, options, below)}")

    def _allow_table(self, command: str) -> None:
        if not self.named and command == _OPEN_TO_OTHERS:
            raise self._refusal(f"{self.file}: [{command}]")

    def _allow(self, option: Parameter, value: Any, place: str) -> None:
        if self.named:
            return
        is_path = kind_of(option) is Path
        values = value if isinstance(value, list) else [value]
        reaches_out = is_path and any(is_remote(place_of(str(one))) for one in values)
        other_path = is_path and option.name not in READ_PATHS
        if other_path or reaches_out or option.name in _NEEDS_TRUST:
            raise self._refusal(place)

    def _refusal(self, place: str) -> UsageSentence:
        return UsageSentence(
            f"{place}: a file that was only found here may not decide this; if you trust it, "
            f"name it before the command: sightline --config {self.file} ..."
        )


def _unknown(value: Any, name: str, options: dict[str, Any], below: set[str]) -> str:
    if isinstance(value, dict):
        return f"there is no such table.{did_you_mean(name, below)}"
    hint = did_you_mean(name, options)
    if below and not hint:
        hint = f" Options stand below the name of their command, such as [{min(below)}]."
    return f"there is no such setting.{hint}"


def _options(command: Any) -> Iterator[tuple[str, Parameter]]:
    """The options of a command that a file may set, by their names with dashes."""
    for one in command.params:
        if one.param_type_name == "option" and one.expose_value and not one.is_eager:
            yield one.name.replace("_", "-"), one


def _value(value: Any, option: Parameter, place: str) -> Any:
    if option.multiple:
        if not isinstance(value, list):
            raise UsageSentence(f"{place} is {value!r}; expected a list: [{value!r}]")
        return [_typed(one, option, place) for one in value]
    return _typed(value, option, place)


def _typed(value: Any, option: Parameter, place: str) -> Any:
    """A value of TOML's types, which are not mixed up: "3" is no number and 1 is not true."""
    kind = kind_of(option)
    if kind in (bool, int, float) and isinstance(value, str):
        raise UsageSentence(f"{place} is {value!r}, a text; leave the quotes out.")
    if kind is bool and not isinstance(value, bool):
        raise UsageSentence(f"{place} is {value!r}; expected true or false.")
    return converted(value, option, place)
