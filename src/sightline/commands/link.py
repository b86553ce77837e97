"""`sightline link`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sightline.commands.options import FeaturesOption, MaxLinksOption, StrictOption
from sightline.console import max_links_from, report, say, say_problems
from sightline.problems import Problems, SightlineError


class PolicyName(StrEnum):
    """How a similarity matrix becomes links."""

    ASSIGNMENT = "assignment"
    DENSE = "dense"
    TOP_K = "top-k"
    THRESHOLD = "threshold"
    MMC4 = "mmc4"


class FormatName(StrEnum):
    """What is written."""

    JSONL = "jsonl"
    HTML = "html"
    ANNOTATIONS = "annotations"
    CSV = "csv"


class UnitName(StrEnum):
    """What one sentence of an article is."""

    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"


def link(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="Articles (HTML, Markdown, PDF, DOCX, EPUB) or corpora.", metavar="INPUT..."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file, or a folder for pages of several articles."),
    ] = None,
    format: Annotated[
        FormatName | None,
        typer.Option(help="By default what the suffix of -o says: .html, .csv, .json or .jsonl."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="A model folder, a CLIP or SigLIP folder, or `default`.")
    ] = "default",
    policy: Annotated[
        PolicyName, typer.Option(help="How links are chosen.")
    ] = PolicyName.ASSIGNMENT,
    max_links: MaxLinksOption = "all",
    threshold: Annotated[
        float, typer.Option(min=-1.0, max=1.0, help="Of the policy threshold: similarity above it.")
    ] = 0.0,
    min_confidence: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out links that are less sure.")
    ] = 0.0,
    unit: Annotated[
        UnitName, typer.Option(help="What an article is cut into.")
    ] = UnitName.SENTENCE,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Fetch remote images of articles.")
    ] = False,
    matrix: Annotated[bool, typer.Option("--matrix", help="Add the similarity matrix.")] = False,
    split: Annotated[str | None, typer.Option(help="Only these documents of a corpus.")] = None,
    features: FeaturesOption = None,
    strict: StrictOption = False,
) -> None:
    """Find which sentence each image of an article or of a corpus's documents belongs to."""
    from sightline.article_links import LinkChoices, link_article, read_articles
    from sightline.articles import is_article
    from sightline.corpus import read
    from sightline.decode_pool import DecodePool
    from sightline.fetching import Fetcher
    from sightline.link_records import link_records, open_images, open_model
    from sightline.link_writing import Linked, form_of, page_files, write_links, write_pages

    articles = [path for path in inputs if is_article(path)]
    form = form_of(output, format.value if format else None, sys.stdout.isatty())
    pages = page_files(output, articles, len(inputs) - len(articles)) if form == "html" else {}
    loaded = open_model(model)
    choices = LinkChoices(policy.value, max_links_from(max_links), threshold, min_confidence)
    fetcher = Fetcher() if fetch else None
    problems = Problems(strict=strict, report=report)
    seen: Counter[str] = Counter()

    def linked(pool: DecodePool) -> Iterator[Linked]:
        for path in dict.fromkeys(inputs):
            if path in articles:
                for article in read_articles([path], problems, unit.value, fetcher):
                    yield Linked(link_article(loaded, article, choices, pool), article)
                continue
            corpus = read(path, split=split, problems=problems, allow_empty=True)
            images = open_images(loaded, corpus, features, say, pool)
            for record in link_records(
                loaded, corpus, images, choices.policy, choices.max_links, matrix,
                choices.threshold, choices.min_confidence,
            ):  # fmt: skip
                yield Linked(record)

    def counted(pool: DecodePool) -> Iterator[Linked]:
        for one in linked(pool):
            seen["documents"] += 1
            seen.update(image["status"] for image in one.record["images"])
            yield one

    with DecodePool() as pool:
        if form == "html":
            facts = (f"model {Path(model).name}", f"policy {policy.value}")
            write_pages(counted(pool), pages, pool, facts, say)
        else:
            write_links(counted(pool), form, output, matrix)
    say_problems(problems)
    if not seen["documents"]:
        raise SightlineError("No document could be linked.")
    if seen.total() > seen["documents"] and not seen["ok"]:
        raise SightlineError("No image could be used; the records say why.")
