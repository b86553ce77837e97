"""How much is said on standard error: errors alone, the usual, or every step."""

from __future__ import annotations

from enum import IntEnum


class Verbosity(IntEnum):
    """What `--quiet` and `--verbose` choose."""

    QUIET = 0
    USUAL = 1
    VERBOSE = 2


_chosen = Verbosity.USUAL


def choose_verbosity(wanted: Verbosity) -> None:
    """Say that much from now on, in this process."""
    global _chosen
    _chosen = wanted


def is_quiet() -> bool:
    """Whether nothing but errors is to be said."""
    return _chosen is Verbosity.QUIET


def is_verbose() -> bool:
    """Whether every step is to be told."""
    return _chosen is Verbosity.VERBOSE
