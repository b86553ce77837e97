"""`sightline doctor`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from sightline.commands.manners import examples
from sightline.commands.options import JsonOption
from sightline.console import coloured, print_json

if TYPE_CHECKING:
    from sightline.doctor import Finding

EXAMPLES = examples(
    ("Is all here? Exit code 1 if linking does not work", "sightline doctor"),
    ("For a report of an error", "sightline doctor --json > doctor.json"),
)

#: Sign and colour of each status, and the sign where the output cannot show it.
_SIGNS = {
    "ok": ("✓", "green", "ok"),
    "lacking": ("–", "yellow", "--"),
    "failed": ("✗", "red", "NO"),
}


def doctor(context: typer.Context, json: JsonOption = False) -> None:
    """See what works here, and how to get what is missing.

    Links a bundled article to see that linking works; exits with 1 if it does not.
    """
    from sightline.doctor import examine

    found = []
    settings = (context.meta.get(f"sightline.settings_{what}") for what in ("file", "fault"))
    for finding in examine(*settings):
        found.append(finding)
        if not json:
            typer.echo(_lines(finding), color=True)
    works = all(finding.status != "failed" for finding in found)
    if json:
        print_json({"ok": works, "findings": [finding.to_record() for finding in found]})
    if not works:
        raise typer.Exit(1)


def _lines(finding: Finding) -> str:
    sign, colour, plain = _SIGNS[finding.status]
    try:
        sign.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        sign = plain
    line = f"{coloured(sign, colour, sys.stdout)} {finding.what}: {finding.words}"
    return f"{line}\n    to change that: {finding.remedy}" if finding.remedy else line
