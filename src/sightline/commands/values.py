"""From what stands on the command line, in the environment or in a settings file to values.

typer does this with pydantic, whose import takes 0.2 s of CPU time in every command, and which
does not know what was probably meant. The kinds of values here are few: text, numbers, choices,
paths, and lists of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from sightline.problems import did_you_mean

# typer's parameters and contexts are those of its own copy of click, which has no public names.
Parameter = Any
Context = Any

if sys.platform == "win32":
    from pathlib import WindowsPath as _SystemPath
else:
    from pathlib import PosixPath as _SystemPath


class NamedFolder(_SystemPath):
    """A path that was given with a slash at its end, of which plain paths keep nothing."""


_TRUE = {"1", "true", "t", "yes", "y", "on"}
_FALSE = {"0", "false", "f", "no", "n", "off"}


def use_plain_values(parameters: Iterable[Parameter]) -> None:
    """Have parameters convert what they are given by the rules of this module."""
    for parameter in parameters:
        # Where typer keeps what it converts with, once it was built.
        if getattr(parameter, "_runtime_param", parameter) is None:
            parameter._runtime_param = _PlainValue()


class _PlainValue:
    """Converts the value of any parameter; takes the place of what typer would build."""

    def coerce(self, value: Any, param: Parameter, ctx: Context) -> Any:
        """The value as the command takes it; a wrong one is an error that names its place."""
        if param.multiple or param.nargs == -1:
            given = value if isinstance(value, list | tuple) else [] if value is None else [value]
            return [converted(one, param, place_of(param, ctx)) for one in given]
        return None if value is None else converted(value, param, place_of(param, ctx))


def place_of(param: Parameter, ctx: Context) -> str:
    """Where the value of a parameter stands, as the beginning of a sentence about it."""
    source = ctx.get_parameter_source(param.name)
    name = source.name if source is not None else ""
    if name == "ENVIRONMENT":
        return variable_of(param, ctx)
    if name == "DEFAULT_MAP":
        return f"{ctx.meta['sightline.settings_file']}: {param.name.replace('_', '-')}"
    return str(param.opts[0] if param.param_type_name == "option" else param.display_name_raw)


def variable_of(param: Parameter, ctx: Context) -> str:
    """The environment variable that a parameter takes its value from."""
    from os import environ

    if param.envvar and environ.get(str(param.envvar)):
        return str(param.envvar)
    return f"{ctx.auto_envvar_prefix}_{param.name.upper()}"


def kind_of(param: Parameter) -> Any:
    """The type of one value of a parameter: str, bool, int, float or Path; a choice is a str."""
    annotation = param.type_descriptor.annotation
    if get_origin(annotation) is list:
        return get_args(annotation)[0]
    return str if get_origin(annotation) is Literal else annotation


def choices_of(param: Parameter) -> tuple[str, ...]:
    """The words that a parameter may be, if it is one of a few."""
    annotation = param.type_descriptor.annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def converted(value: Any, param: Parameter, place: str) -> Any:
    """One value as the command takes it; `typer.BadParameter` says what is wrong with it."""
    if choices := choices_of(param):
        return _choice(value, choices, place)
    kind = kind_of(param)
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return _within(value, param, place) if kind in (int, float) else value
    convert = _CONVERTERS[kind]
    try:
        result = convert(value)
    except (ValueError, TypeError, OverflowError):
        raise _wrong(f"{place} is {value!r}; expected {_EXPECTED[kind]}.") from None
    return _within(result, param, place)


def _choice(value: Any, names: tuple[str, ...], place: str) -> str:
    for name in names:
        if name == value:
            return name
    expected = ", ".join(names[:-1]) + f" or {names[-1]}"
    raise _wrong(f"{place} is {value!r}; expected {expected}.{did_you_mean(str(value), names)}")


def _within(value: Any, param: Parameter, place: str) -> Any:
    least, most = param.min, param.max
    if (least is None or value >= least) and (most is None or value <= most):
        return value
    if least is None:
        expected = f"at most {most:g}"
    else:
        expected = f"at least {least:g}" if most is None else f"{least:g} to {most:g}"
    raise _wrong(f"{place} is {value}; expected {expected}.")


def _wrong(sentence: str) -> typer.TyperException:
    return UsageSentence(sentence)


class UsageSentence(typer.BadParameter):
    """Wrong usage, told in one sentence that names its place itself."""

    def format_message(self) -> str:
        """The sentence as it is."""
        return self.message


def _bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError
    return word in _TRUE


def _text(value: Any) -> str:
    """Text as it is, and a number that a settings file has in place of it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return str(value)


def _int(value: Any) -> int:
    if not isinstance(value, str):
        raise TypeError
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _path(value: Any) -> Path:
    """A path; one that ends in a slash is a folder, also where there is none yet."""
    return NamedFolder(value) if str(value).endswith(("/", os.sep)) else Path(value)


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    bool: _bool,
    str: _text,
    int: _int,
    float: _float,
    Path: _path,
}
_EXPECTED = {
    bool: "true or false",
    str: "text",
    int: "a whole number",
    float: "a number",
    Path: "a path",
}
