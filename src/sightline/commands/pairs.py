"""`sightline pairs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.choices import PairFormat
from sightline.commands.manners import examples
from sightline.commands.opening import (
    articles_and_corpora,
    decoding_processes,
    files_of_shards,
    folders_of,
    no_document,
    not_over_inputs,
    open_model,
    say_packed_images,
)
from sightline.commands.options import (
    INPUT,
    LINKS,
    OUTPUT,
    FeaturesOption,
    FetchOption,
    JsonOption,
    MaxLinksOption,
    MinConfidenceOption,
    ModelOption,
    PolicyOption,
    SplitOption,
    StrictOption,
    ThresholdOption,
    UnitOption,
    existing,
    link_choices,
)
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems, SightlineError
from sightline.progress import counted

if TYPE_CHECKING:
    from sightline.decode_pool import DecodePool
    from sightline.linked_documents import LinkedDocument


EXAMPLES = examples(
    (
        "Pairs of a corpus whose links are sure",
        "sightline pairs CORPUS -o pairs.jsonl --min-confidence 0.8",
    ),
    (
        "Pairs with their images, as WebDataset shards to train on",
        "sightline pairs articles/ -o PAIRS --format webdataset",
    ),
    (
        "Pairs of links that were found before, whose image paths begin in SHARDS",
        "sightline pairs LINKS --images SHARDS -o pairs.jsonl --min-confidence 0.8",
    ),
)


def pairs(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="Articles, folders of them, corpora, folders of shards, or what link wrote.",
            metavar="INPUT",
            callback=existing,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="A file, or a folder for WebDataset shards.",
            rich_help_panel=OUTPUT,
        ),
    ],
    format: Annotated[
        PairFormat | None,
        typer.Option(help="By default what the suffix of -o says.", rich_help_panel=OUTPUT),
    ] = None,
    model: ModelOption = "default",
    policy: PolicyOption = "assignment",
    max_links: MaxLinksOption = "all",
    threshold: ThresholdOption = 0.0,
    min_confidence: MinConfidenceOption = 0.0,
    min_score: Annotated[
        float | None,
        typer.Option(
            min=-1.0, max=1.0, help="Leave out pairs of a lower score.", rich_help_panel=LINKS
        ),
    ] = None,
    unit: UnitOption = "sentence",
    fetch: FetchOption = False,
    split: SplitOption = None,
    features: FeaturesOption = None,
    images: Annotated[
        Path | None,
        typer.Option(
            help="Where image paths of link records begin, and images of corpora may lie too.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Write image-sentence pairs out of articles or corpora.

    Link records, which `sightline link` writes, are taken as they are, without a model.
    """
    from sightline.fetching import Fetcher
    from sightline.link_reading import read_link_records
    from sightline.linked_documents import linked_documents
    from sightline.pair_writing import NO_FILE, NOT_THERE, OUTSIDE, pair_format, write_pairs
    from sightline.pairs import PairChoice
    from sightline.progress import Progress
    from sightline.readers.recognition import are_link_records

    to = pair_format(output, format)
    if images is not None and not images.is_dir():
        raise SightlineError(f"--images {images}: there is no such folder.")
    paths = articles_and_corpora(files_of_shards(inputs))
    not_over_inputs(output, paths)
    records = dict.fromkeys(filter(are_link_records, paths))
    paths = [path for path in paths if path not in records]
    loaded = open_model(model) if paths else None
    say_packed_images(inputs, None)
    choices = link_choices(policy, max_links, threshold)
    problems = Problems(strict=strict, report=report)
    choice = PairChoice(min_confidence, min_score, images)

    def found(pool: DecodePool) -> Iterator[LinkedDocument]:
        for path in records:
            yield from read_link_records(path, images or path.parent, problems)
        if loaded is not None:
            yield from linked_documents(
                paths, loaded, choices, pool, problems,
                unit=unit, fetch=Fetcher() if fetch else None, folders=folders_of(inputs),
                split=split, features=features, say=say,
            )  # fmt: skip

    def linked(pool: DecodePool) -> Iterator[LinkedDocument]:
        with Progress("pairs", None, "documents") as progress:
            for one in found(pool):
                progress.advance(note=counted(choice.pairs, "pair"))
                yield one
        # Before the file gets its name: no document, no file.
        if not choice.documents:
            raise no_document(problems)

    with decoding_processes() as pool:
        count = write_pairs(choice.pairs_of(linked(pool)), output, to, pool, choice.left_out)
    say_problems(problems)
    written = counted(count, "pair")
    say(f"{written} of {counted(choice.documents, 'document')} written to {output}")
    left_out = {reason: number for reason, number in choice.left_out.items() if number}
    for reason, number in left_out.items():
        say(f"left out: {reason} ({number:,})")
    if OUTSIDE in left_out:
        through = ", where links lead to," if images is not None else ""
        say(f"Name the folder of these images{through} with --images, if they may be copied.")
    if records and images is None and {NO_FILE, NOT_THERE} & left_out.keys():
        say(
            "Link records do not say where their image paths begin; name that folder with --images."
        )
    if json:
        print_json(
            {
                "pairs": count,
                "documents": choice.documents,
                "skipped": problems.count,
                "left_out": left_out,
                "output": str(output),
            }
        )
