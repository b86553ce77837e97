"""`sightline link`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.choices import LinkFormat
from sightline.commands.manners import examples
from sightline.commands.opening import (
    articles_and_corpora,
    decoding_processes,
    folders_of,
    no_document,
    not_over_inputs,
    open_model,
    say_packed_images,
)
from sightline.commands.options import (
    OUTPUT,
    DocumentsArgument,
    FeaturesOption,
    FetchOption,
    MaxLinksOption,
    MinConfidenceOption,
    ModelOption,
    PolicyOption,
    SplitOption,
    StrictOption,
    ThresholdOption,
    UnitOption,
    link_choices,
    page_places,
)
from sightline.commands.shards import (
    EngineAddressOption,
    EngineOption,
    ShardWorkersOption,
    is_sharded,
    work_on_shards,
)
from sightline.commands.values import NamedFolder
from sightline.console import detail, has_colours, report, say, say_problems
from sightline.problems import Problems, SightlineError, UsageError
from sightline.progress import counted

if TYPE_CHECKING:
    from sightline.decode_pool import DecodePool

EXAMPLES = examples(
    (
        "The links of an article, as a page to look at",
        "sightline link article.html -o article.links.html",
    ),
    (
        "The test documents of a corpus, with a model of your own",
        "sightline link CORPUS --model MODEL --split test -o links.jsonl",
    ),
    (
        "A folder of shards, four at a time; run again, it completes them",
        "sightline link SHARDS -o LINKS --workers 4",
    ),
)


def link(
    inputs: DocumentsArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A file, or a folder for pages (PAGES/) or for shards.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format: Annotated[
        LinkFormat | None,
        typer.Option(
            help="By default what the suffix of -o says: .html, .csv, .json or .jsonl.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    model: ModelOption = "default",
    policy: PolicyOption = "assignment",
    max_links: MaxLinksOption = "all",
    threshold: ThresholdOption = 0.0,
    min_confidence: MinConfidenceOption = 0.0,
    unit: UnitOption = "sentence",
    fetch: FetchOption = False,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Add the similarity matrix.", rich_help_panel=OUTPUT)
    ] = False,
    split: SplitOption = None,
    features: FeaturesOption = None,
    workers: ShardWorkersOption = None,
    engine: EngineOption = "local",
    engine_address: EngineAddressOption = None,
    strict: StrictOption = False,
) -> None:
    """Find which sentence each image of a document belongs to.

    Documents are articles, or those of a corpus.
    A folder of shards in gives a folder of shards out;
    run again, it completes what is missing.
    """
    from sightline.articles import is_article
    from sightline.fetching import Fetcher
    from sightline.link_outputs import explained
    from sightline.link_writing import form_of, write_links, write_pages
    from sightline.linked_documents import LinkedDocument, linked_documents

    choices = link_choices(policy, max_links, threshold, min_confidence)
    to_folder = output is not None and not output.suffix
    if workers is not None and all(map(is_article, inputs)):
        _say_unused("shards", "articles", workers=workers)
        workers = None
    if (
        workers is not None
        or engine != "local"
        or is_sharded(inputs, output, tar_folders=to_folder)
    ):
        from sightline.shard_work import link_work

        if format not in (None, "jsonl"):
            raise UsageError("Shards are written as JSONL; leave --format out.")
        _say_unused("articles", "shards", unit=unit != "sentence", fetch=fetch)
        work = link_work(model, features, choices, matrix=matrix, split=split, strict=strict)
        work_on_shards(inputs, output, work, engine, workers, engine_address)
        return
    folders = folders_of(inputs)
    inputs = articles_and_corpora(inputs)
    not_over_inputs(output, inputs)
    articles = [path for path in inputs if is_article(path)]
    others = len(inputs) - len(articles)
    say_packed_images(inputs, features, ", or name a folder with -o")
    if not others:
        _say_unused("corpora", "articles", split=split, features=features)
    if not articles:
        _say_unused("articles", "corpora", unit=unit != "sentence", fetch=fetch)
    _say_unused("shards", "other inputs", engine_address=engine_address)
    is_folder = isinstance(output, NamedFolder)
    form = form_of(output, format, sys.stdout.isatty(), is_folder)
    # A folder of one article gives a folder, too.
    is_folder = is_folder or (bool(folders) and output is not None and not output.suffix)
    pages = page_places(output, form, articles, folders, others=others, is_folder=is_folder)
    if form not in ("jsonl", "html"):
        _say_unused("JSONL", "other forms", matrix=matrix)
    for_people = form in ("html", "list")
    loaded = open_model(model)
    problems = Problems(strict=strict, report=report)
    seen: Counter[str] = Counter()

    def linked(pool: DecodePool) -> Iterator[LinkedDocument]:
        for one in linked_documents(
            inputs, loaded, choices, pool, problems,
            unit=unit, fetch=Fetcher() if fetch else None, folders=folders,
            split=split, features=features, matrix=matrix or for_people, say=say,
        ):  # fmt: skip
            seen["documents"] += 1
            if one.article is not None:
                sizes = (
                    counted(len(one.record[f"{what}s"]), what)
                    for what in ("link", "image", "sentence")
                )
                detail(f"{one.article.path}: {', '.join(sizes)}")
            seen.update(image["status"] for image in one.record["images"])
            yield replace(one, record=explained(one.record, choices)) if for_people else one

    with decoding_processes() as pool:
        if form == "html":
            facts = (f"model {Path(model).name}", f"policy {policy}")
            write_pages(linked(pool), pages, pool, facts, say)
        else:
            write_links(linked(pool), form, output, matrix, has_colours(sys.stdout))
            if output is not None:
                unread = seen.total() - seen["documents"] - seen["ok"]
                but = f"; {counted(unread, 'image')} not read" if unread else ""
                say(f"{output}: {counted(seen['documents'], 'document')} linked, as {form}{but}")
    say_problems(problems)
    if not seen["documents"]:
        raise no_document(problems)
    if seen.total() > seen["documents"] and not seen["ok"]:
        where = "in full in a file: -o links.jsonl" if output is None else f"in {output}"
        raise SightlineError(f"No image could be used; why stands beside each, {where}.")


def _say_unused(meant: str, given: str, **options: object) -> None:
    for name, value in options.items():
        if value:
            say(f"--{name.replace('_', '-')} is for {meant}, and has no effect on {given}.")
