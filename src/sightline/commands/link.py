"""`sightline link`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sightline.commands.options import (
    DocumentsArgument,
    FeaturesOption,
    FetchOption,
    MaxLinksOption,
    ModelOption,
    PolicyName,
    PolicyOption,
    SplitOption,
    StrictOption,
    ThresholdOption,
    UnitName,
    UnitOption,
)
from sightline.commands.shards import (
    EngineAddressOption,
    EngineName,
    EngineOption,
    ShardWorkersOption,
    is_sharded,
    work_on_shards,
)
from sightline.console import max_links_from, report, say, say_problems
from sightline.problems import Problems, SightlineError


class FormatName(StrEnum):
    """What is written."""

    JSONL = "jsonl"
    HTML = "html"
    ANNOTATIONS = "annotations"
    CSV = "csv"


def link(
    inputs: DocumentsArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file, or a folder for pages or for shards."),
    ] = None,
    format: Annotated[
        FormatName | None,
        typer.Option(help="By default what the suffix of -o says: .html, .csv, .json or .jsonl."),
    ] = None,
    model: ModelOption = "default",
    policy: PolicyOption = PolicyName.ASSIGNMENT,
    max_links: MaxLinksOption = "all",
    threshold: ThresholdOption = 0.0,
    min_confidence: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out links that are less sure.")
    ] = 0.0,
    unit: UnitOption = UnitName.SENTENCE,
    fetch: FetchOption = False,
    matrix: Annotated[bool, typer.Option("--matrix", help="Add the similarity matrix.")] = False,
    split: SplitOption = None,
    features: FeaturesOption = None,
    workers: ShardWorkersOption = None,
    engine: EngineOption = EngineName.LOCAL,
    engine_address: EngineAddressOption = None,
    strict: StrictOption = False,
) -> None:
    """Find which sentence each image of an article or of a corpus's documents belongs to.

    A folder of shards in gives a folder of shards out; run again, it completes what is missing.
    """
    from sightline.article_folders import without_folders
    from sightline.articles import is_article
    from sightline.decode_pool import DecodePool
    from sightline.fetching import Fetcher
    from sightline.link_records import open_model
    from sightline.link_writing import form_of, page_files, write_links, write_pages
    from sightline.linked_documents import LinkedDocument, linked_documents
    from sightline.linking import LinkChoices

    choices = LinkChoices(policy.value, max_links_from(max_links), threshold, min_confidence)
    to_folder = output is not None and not output.suffix
    if (
        workers is not None
        or engine is not EngineName.LOCAL
        or is_sharded(inputs, output, tar_folders=to_folder)
    ):
        from sightline.shard_work import link_work

        if format not in (None, FormatName.JSONL):
            raise SightlineError("Shards are written as JSONL; leave --format out.")
        work = link_work(model, features, choices, matrix=matrix, split=split, strict=strict)
        work_on_shards(inputs, output, work, engine, workers, engine_address)
        return
    inputs = without_folders(inputs)
    articles = [path for path in inputs if is_article(path)]
    form = form_of(output, format.value if format else None, sys.stdout.isatty())
    pages = page_files(output, articles, len(inputs) - len(articles)) if form == "html" else {}
    loaded = open_model(model)
    problems = Problems(strict=strict, report=report)
    seen: Counter[str] = Counter()

    def linked(pool: DecodePool) -> Iterator[LinkedDocument]:
        for one in linked_documents(
            inputs, loaded, choices, pool, problems,
            unit=unit.value, fetch=Fetcher() if fetch else None,
            split=split, features=features, matrix=matrix, say=say,
        ):  # fmt: skip
            seen["documents"] += 1
            seen.update(image["status"] for image in one.record["images"])
            yield one

    with DecodePool() as pool:
        if form == "html":
            facts = (f"model {Path(model).name}", f"policy {policy.value}")
            write_pages(linked(pool), pages, pool, facts, say)
        else:
            write_links(linked(pool), form, output, matrix)
    say_problems(problems)
    if not seen["documents"]:
        raise SightlineError("No document could be linked.")
    if seen.total() > seen["documents"] and not seen["ok"]:
        raise SightlineError("No image could be used; the records say why.")
