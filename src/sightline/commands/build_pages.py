"""`sightline build pages`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from sightline.commands import completions
from sightline.commands.manners import examples
from sightline.commands.options import (
    INPUT,
    OUTPUT,
    SPLITS,
    CorpusFolderOption,
    JsonOption,
    SeedOption,
    StrictOption,
    UnitOption,
)
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems
from sightline.progress import counted

EXAMPLES = examples(
    (
        "Pages with the links that their layout shows",
        "sightline build pages site/ -o CORPUS --links-from-layout",
    ),
    (
        "With the images inside, and a tenth of the pages to validate with",
        "sightline build pages site/ -o CORPUS --copy-images --skip-missing --validation 0.1",
    ),
)


def pages(
    folder: Annotated[Path, typer.Argument(help="Folder of HTML and Markdown pages.")],
    output: CorpusFolderOption,
    links_from_layout: Annotated[
        bool,
        typer.Option(
            "--links-from-layout",
            help="Link images to the text they stand in.",
            rich_help_panel=INPUT,
        ),
    ] = False,
    unit: UnitOption = "paragraph",
    minimum_tokens: Annotated[
        int, typer.Option(help="Shorter text is left out.", rich_help_panel=INPUT)
    ] = 0,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing",
            help="Leave out images whose file is missing or never read, such as SVG.",
            rich_help_panel=INPUT,
        ),
    ] = False,
    copy_images: Annotated[
        bool,
        typer.Option(
            "--copy-images",
            help="Copy images into the corpus, by content.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    split: Annotated[
        str | None,
        typer.Option(
            help="The split of all pages.",
            autocompletion=completions.new_splits,
            rich_help_panel=SPLITS,
        ),
    ] = None,
    validation: Annotated[
        float, typer.Option(help="Share of pages for validation.", rich_help_panel=SPLITS)
    ] = 0.0,
    test: Annotated[
        float, typer.Option(help="Share of pages for test.", rich_help_panel=SPLITS)
    ] = 0.0,
    seed: SeedOption = 1,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """HTML and Markdown pages with images: a document a page, its text blocks the sentences."""
    from sightline.building import build_corpus
    from sightline.corpus_statistics import statistics_table
    from sightline.isolation import read_page_bounded
    from sightline.page_corpus import Splits, page_corpus
    from sightline.readers.page_folder import PageFolder

    if split is not None and (validation or test):
        raise typer.BadParameter("--split puts all pages in one; leave --validation and --test out")
    splits = Splits(split, validation, test, seed)
    reader = PageFolder(
        folder,
        unit,
        links_from_layout,
        minimum_tokens,
        skip_missing,
        read=lambda path: read_page_bounded(path).page,
    )
    problems = Problems(strict=strict, report=report)
    dropped: Counter[str] = Counter()
    options = {
        "folder": str(folder),
        "links_from_layout": links_from_layout,
        "unit": unit,
        "minimum_tokens": minimum_tokens,
        "skip_missing": skip_missing,
        "copy_images": copy_images,
        "split": split,
        "validation": validation,
        "test": test,
        "seed": seed,
    }
    statistics = build_corpus(
        "pages",
        page_corpus(
            reader,
            output,
            splits=splits,
            copy_images=copy_images,
            problems=problems,
            dropped=dropped,
        ),
        output,
        inputs=[],
        options=options,
        problems=problems,
        dropped=dropped,
    )
    say_problems(problems)
    for what, count in sorted((+dropped).items()):
        say(f"left out: {what} ({count:,})")
    _say_unusable(reader.missing, "has no file", "have no file")
    _say_unusable(
        reader.unsupported, "is of a kind that is never read", "are of kinds that are never read"
    )
    say(f"{counted(statistics.total, 'document')} in {output}")
    if json:
        record = {
            "dropped": dict(sorted((+dropped).items())),
            "missing_images": reader.missing,
            "unsupported_images": reader.unsupported,
        }
        print_json({**statistics.to_record(), **record})
    else:
        typer.echo(statistics_table("pages", statistics, None))


def _say_unusable(count: int, one: str, many: str) -> None:
    if count:
        images = counted(
            count, f"image {one} and stays as it is", f"images {many} and stay as they are"
        )
        say(
            f"{images}: train and evaluate skip the documents, link tells the status; "
            "--skip-missing leaves them out"
        )
