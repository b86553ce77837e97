"""`sightline convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.choices import CorpusFormat
from sightline.commands.manners import examples
from sightline.commands.options import (
    CorpusArgument,
    JsonOption,
    SplitOption,
    StrictOption,
)
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems, SightlineError
from sightline.progress import counted

if TYPE_CHECKING:
    from collections import Counter


EXAMPLES = examples(
    ("MMC4's documents as a corpus to train on", "sightline convert mmc4.jsonl CORPUS --to native"),
    (
        "WebDataset shards of the training documents",
        "sightline convert CORPUS SHARDS --to webdataset --split train --shard-size 500",
    ),
)


def convert(
    corpus: CorpusArgument,
    to: Annotated[CorpusFormat, typer.Option(help="The format to write.")],
    place: Annotated[
        Path | None,
        typer.Argument(help="A file or folder to write; or name it with -o.", metavar="OUTPUT"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUTPUT", help="The same as the argument OUTPUT."),
    ] = None,
    split: SplitOption = None,
    links_from_matches: Annotated[
        bool, typer.Option("--links-from-matches", help="Take MMC4's matches for true links.")
    ] = False,
    links_from_layout: Annotated[
        bool, typer.Option("--links-from-layout", help="Link images to the text they follow.")
    ] = False,
    shard_size: Annotated[
        int | None, typer.Option(min=1, metavar="MB", help="Megabytes of a WebDataset shard.")
    ] = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Write a corpus in another format.

    What that format has no room for is told.
    """
    from sightline import conversion
    from sightline.corpus import read

    if place is not None and output is not None:
        raise typer.BadParameter(f"two outputs, {place} and -o {output}; name one of them")
    output = place or output
    if output is None:
        raise typer.BadParameter(
            f"no output; name a file or folder: convert CORPUS OUTPUT --to {to}"
        )
    if shard_size is not None and (to != "webdataset" or output.suffix == ".tar"):
        raise typer.BadParameter("--shard-size goes with --to webdataset and a folder to write")
    problems = Problems(strict=strict, report=report)
    opened = read(corpus, split=split, problems=problems, allow_empty=True)
    target = conversion.output_path(output, to)
    if target.resolve() in (opened.file.resolve(), opened.root.resolve()):
        raise SightlineError(f"{target} is what is read, and would be lost; write elsewhere.")
    done = conversion.convert(
        opened,
        output,
        to,
        links_from_matches=links_from_matches,
        links_from_layout=links_from_layout,
        shard_bytes=None if shard_size is None else shard_size * 10**6,
    )
    say_problems(problems)
    say(f"{counted(done.documents, 'document')} written to {done.output}")
    if done.unpacked:
        say(f"{counted(done.unpacked, 'image')} written beside them")
    _say_counts("dropped, because the format has no room for them", done.leftovers.dropped)
    _say_counts("kept under the key sightline, which others do not read", done.leftovers.aside)
    if done.images_at is not None:
        say(f"image paths are still relative to {done.images_at}; put the images beside the output")
    if json:
        print_json(
            {
                "documents": done.documents,
                "skipped": problems.count,
                "dropped": {kind: count for kind, count in done.leftovers.dropped.items() if count},
                "aside": {kind: count for kind, count in done.leftovers.aside.items() if count},
                "unpacked": done.unpacked,
                "output": str(done.output),
            }
        )


def _say_counts(what: str, counts: Counter[str]) -> None:
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    if listed:
        say(f"{what}: {listed}")
