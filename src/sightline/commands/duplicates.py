"""`sightline duplicates`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.commands.manners import examples
from sightline.commands.options import CorpusArgument, SplitOption, StrictOption
from sightline.console import report, say_problems, write_lines
from sightline.problems import Problems

EXAMPLES = examples(
    ("Pairs of images that are nearly the same", "sightline duplicates CORPUS -o duplicates.jsonl"),
    (
        "Only those that are the same to the bit of their hash",
        "sightline duplicates CORPUS --threshold 0",
    ),
)


def duplicates(
    corpus: CorpusArgument,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSONL file.")] = None,
    threshold: Annotated[int, typer.Option(min=0, help="Bits of 64 that may differ.")] = 3,
    split: SplitOption = None,
    strict: StrictOption = False,
) -> None:
    """List the near-duplicate images of a corpus, as JSON lines."""
    from sightline.corpus import read
    from sightline.duplicate_report import duplicate_images

    problems = Problems(strict=strict, report=report)
    opened = read(corpus, split=split, problems=problems)
    write_lines(output, duplicate_images(opened, threshold))
    say_problems(problems)
