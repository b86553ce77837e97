"""`sightline corpus`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.commands.manners import examples
from sightline.commands.opening import (
    not_over_inputs,
    say_packed_images,
)
from sightline.commands.options import (
    OUTPUT,
    CorpusArgument,
    FeaturesOption,
    JsonOption,
    SplitOption,
    StrictOption,
    file_to_write,
)
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems
from sightline.progress import counted

EXAMPLES = examples(
    (
        "Is it fit to train on? Exit code 1 if splits share images",
        "sightline corpus CORPUS --check",
    ),
    ("Counts alone, without opening the images", "sightline corpus CORPUS --no-images"),
    ("A page of sample documents to look at", "sightline corpus CORPUS --sample-page samples.html"),
)


def corpus(
    corpus: CorpusArgument,
    images: Annotated[
        bool, typer.Option("--images/--no-images", help="Decode the images, look up the features.")
    ] = True,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if splits share images.")
    ] = False,
    sample_page: Annotated[
        Path | None,
        typer.Option(
            help="HTML file of sample documents to write.",
            callback=file_to_write,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(min=1, help="Sample documents of each split.", rich_help_panel=OUTPUT),
    ] = 8,
    seed: Annotated[int, typer.Option(help="Same seed, same samples.", rich_help_panel=OUTPUT)] = 0,
    split: SplitOption = None,
    features: FeaturesOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Check a corpus: counts, duplicates, broken images, leaks.

    A leak is an image that two splits share: what is measured is then too good.
    """
    from sightline import corpus_report
    from sightline.corpus import read

    problems = Problems(strict=strict, report=report)
    opened = read(corpus, split=split, problems=problems)
    not_over_inputs(sample_page, [opened.file])
    if images:
        say_packed_images([corpus], None)
    found = corpus_report.check_corpus(opened, images, features)
    say_problems(problems)
    if json:
        print_json(corpus_report.report_record(found))
    else:
        typer.echo(corpus_report.report_text(found))
    for warning in corpus_report.leak_warnings(found):
        say(warning)
    if sample_page is not None:
        from sightline.sample_page import write_sample_page

        count = write_sample_page(opened, sample_page, samples, seed)
        say(f"{counted(count, 'sample document')} in {sample_page}")
    if check and any(found.leaks.values()):
        raise typer.Exit(1)
