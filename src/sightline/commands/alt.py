"""`sightline alt`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.commands.manners import examples
from sightline.commands.opening import decoding_processes, open_model
from sightline.commands.options import (
    OUTPUT,
    FetchOption,
    MaxLinksOption,
    ModelOption,
    PolicyName,
    PolicyOption,
    StrictOption,
    ThresholdOption,
)
from sightline.console import max_links_from, print_json, report, say, say_problems
from sightline.problems import Problems, SightlineError

if TYPE_CHECKING:
    from sightline.alt_text import ArticleAlts
    from sightline.alt_writing import Written
    from sightline.linking import LinkChoices


EXAMPLES = examples(
    (
        "What is wrong with an article's alternative texts; exit code 1 if anything is",
        "sightline alt article.html --check",
    ),
    ("Sentences of the article that would do as alternative texts", "sightline alt article.html"),
    (
        "A copy that has them, where they are sure",
        "sightline alt article.html --write better.html --min-confidence 0.8",
    ),
)


def alt(
    inputs: Annotated[
        list[Path],
        typer.Argument(help="Articles, or folders of HTML and Markdown.", metavar="INPUT"),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Audit alone, without a model; exit 1 if it finds any.")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="A copy with alternative texts; a folder for several.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object an article.")] = False,
    model: ModelOption = "default",
    policy: PolicyOption = PolicyName.ASSIGNMENT,
    max_links: MaxLinksOption = "all",
    threshold: ThresholdOption = 0.0,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Of a text that is written; 0.5 if no limit is given.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(min=-1.0, max=1.0, help="Of a text that is written.", rich_help_panel=OUTPUT),
    ] = None,
    fetch: FetchOption = False,
    strict: StrictOption = False,
) -> None:
    """Audit alternative texts, and offer an article's own sentences."""
    from sightline.alt_report import alt_lines, alt_record
    from sightline.alt_text import audit_article
    from sightline.article_links import read_articles
    from sightline.fetching import Fetcher
    from sightline.linking import LinkChoices

    if check and (write is not None or fetch):
        raise typer.BadParameter("--check audits alone; leave --write and --fetch out")
    paths = list(_articles(inputs))
    if not paths:
        places = ", ".join(map(str, inputs))
        raise SightlineError(f"{places}: no HTML or Markdown page lies in this folder.")
    if write is not None and len(paths) > 1 and write.is_file():
        raise typer.BadParameter(f"--write {write} is a file; name a folder for several articles")
    if write is not None and len({path.name for path in paths}) < len(paths):
        raise typer.BadParameter("--write: two articles have one name; write them one by one")
    problems = Problems(strict=strict, report=report)
    seen: Counter[str] = Counter()
    articles = read_articles(paths, problems, fetch=Fetcher() if fetch else None)
    audited = (audit_article(article) for article in articles)
    results: Iterator[tuple[ArticleAlts, Written | None]]
    if check:
        results = ((alts, None) for alts in audited)
    else:
        choices = LinkChoices(policy.value, max_links_from(max_links), threshold)
        limits = (min_confidence, min_score)
        results = _offered(audited, model, choices, write, len(paths), limits)
    for alts, written in results:
        seen.update(articles=1, images=len(alts.images), findings=alts.findings)
        if json:
            print_json(alt_record(alts, written))
        else:
            typer.echo("\n".join(alt_lines(alts, written)))
    say_problems(problems)
    if not seen["articles"]:
        raise SightlineError("No article could be read.")
    if check:
        say(f"{seen['findings']:,} findings in {seen['images']:,} images")
        if seen["findings"] or problems.count:
            raise typer.Exit(1)


def _offered(
    audited: Iterator[ArticleAlts],
    model: str,
    choices: LinkChoices,
    write: Path | None,
    count: int,
    limits: tuple[float | None, float | None],
) -> Iterator[tuple[ArticleAlts, Written | None]]:
    """Add candidates to each article, and write its copy if there is to be one."""
    from sightline.alt_text import with_candidates
    from sightline.alt_writing import choose, write_alts
    from sightline.article_links import link_article
    from sightline.progress import Progress

    loaded = open_model(model)
    with (
        decoding_processes() as pool,
        Progress("alternative texts", count, "articles") as progress,
    ):
        for alts in audited:
            record = link_article(loaded, alts.article, choices, pool)
            offered = with_candidates(alts, record)
            written = None
            if write is not None:
                target = _target(write, alts.article.path, count)
                written = write_alts(offered, choose(offered, *limits), target)
            progress.advance()
            yield offered, written


def _articles(inputs: list[Path]) -> Iterator[Path]:
    """Yield the files that are named, and the pages of the folders."""
    from sightline.readers.page_folder import find_pages

    for path in inputs:
        if path.is_dir():
            yield from find_pages(path.resolve(), Counter())
        else:
            yield path


def _target(write: Path, article: Path, count: int) -> Path:
    if count == 1 and not write.is_dir():
        return write
    write.mkdir(parents=True, exist_ok=True)
    return write / article.name
