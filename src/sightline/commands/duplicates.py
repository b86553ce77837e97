"""`sightline duplicates`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.commands.manners import examples
from sightline.commands.opening import (
    not_over_inputs,
    say_packed_images,
)
from sightline.commands.options import CorpusArgument, SplitOption, StrictOption, file_to_write
from sightline.console import report, say, say_problems, write_lines
from sightline.problems import Problems
from sightline.progress import counted

EXAMPLES = examples(
    ("Pairs of images that are nearly the same", "sightline duplicates CORPUS -o duplicates.jsonl"),
    (
        "Only those that are the same to the bit of their hash",
        "sightline duplicates CORPUS --threshold 0",
    ),
)


def duplicates(
    corpus: CorpusArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSONL file.", callback=file_to_write)
    ] = None,
    threshold: Annotated[int, typer.Option(min=0, max=64, help="Bits of 64 that may differ.")] = 3,
    split: SplitOption = None,
    strict: StrictOption = False,
) -> None:
    """List the near-duplicate images of a corpus, as JSON lines."""
    from sightline.corpus import ALL, read
    from sightline.duplicate_report import duplicate_images

    problems = Problems(strict=strict, report=report)
    opened = read(corpus, split=split, problems=problems)
    not_over_inputs(output, [opened.file])
    say_packed_images([corpus], None)
    if next(iter(opened), None) is None:
        raise opened.split_not_found(split or ALL)
    found = 0

    def pairs() -> Iterator[dict[str, Any]]:
        nonlocal found
        for pair in duplicate_images(opened, threshold):
            found += 1
            yield pair

    write_lines(output, pairs())
    say_problems(problems)
    say(f"{counted(found, 'pair')} of near-duplicate images{f' in {output}' if output else ''}")
