"""`sightline alt`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sightline.choices import ARTICLE_SUFFIXES
from sightline.commands.manners import examples
from sightline.commands.opening import decoding_processes, folders_of, not_over_inputs, open_model
from sightline.commands.options import (
    OUTPUT,
    FetchOption,
    MaxLinksOption,
    ModelOption,
    PolicyOption,
    StrictOption,
    ThresholdOption,
    existing,
    link_choices,
    page_places,
)
from sightline.commands.values import NamedFolder, UsageSentence
from sightline.console import report, say, say_left_out, say_problems
from sightline.problems import Problems, SightlineError, UsageError, did_you_mean
from sightline.progress import counted

if TYPE_CHECKING:
    from sightline.alt_text import ArticleAlts
    from sightline.alt_writing import Written
    from sightline.decode_pool import DecodePool
    from sightline.linking import LinkChoices

    _Results = Iterator[tuple[ArticleAlts, Written | None]]

#: How the names of reports end.
_REPORTS = ("", ".html", ".htm", ".jsonl", ".json", ".txt")

EXAMPLES = examples(
    (
        "What is wrong with an article's alternative texts; exit code 1 if anything is",
        "sightline alt article.html --check",
    ),
    ("Sentences of the article that would do as alternative texts", "sightline alt article.html"),
    ("The same as a page, with the pictures", "sightline alt article.html -o report.html"),
    (
        "A copy that has them, where they are sure",
        "sightline alt article.html --write better.html --min-confidence 0.8",
    ),
)


def _known_codes(codes: list[str] | None) -> list[str] | None:
    from sightline.alt_audit import Code

    for code in codes or ():
        if code not in list(Code):
            raise UsageSentence(
                f"There is no finding {code!r}; known are {', '.join(Code)}."
                f"{did_you_mean(code, map(str, Code))}"
            )
    return codes


def alt(
    inputs: Annotated[
        list[Path],
        typer.Argument(help="Articles, or folders of them.", metavar="INPUT", callback=existing),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Audit alone, without a model; exit 1 if it finds any.")
    ] = False,
    all: Annotated[bool, typer.Option("--all", help="List images without a finding too.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Report: .html for a page, .jsonl for JSON, .txt; a folder for pages.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="A copy with alternative texts; a folder for several.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FINDING",
            help="A finding to pass over, such as too-long; may be repeated.",
            callback=_known_codes,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object an article.")] = False,
    model: ModelOption = "default",
    policy: PolicyOption = "assignment",
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
    from sightline.alt_text import audit_article, without_findings
    from sightline.article_links import read_articles
    from sightline.fetching import Fetcher
    from sightline.link_writing import write_pieces

    if check and (write is not None or fetch):
        raise typer.BadParameter("--check audits alone; leave --write and --fetch out")
    paths = list(_articles(inputs))
    if not paths:
        places = ", ".join(map(str, inputs))
        raise SightlineError(
            f"{places}: no HTML, Markdown, PDF, DOCX or EPUB article lies in this folder."
        )
    form = _form(output, json)
    folders = folders_of(inputs)
    copies = {} if write is None else _copies(write, paths, folders)
    not_over_inputs(output, paths)
    is_folder = output is not None and not output.suffix
    pages = page_places(output, form, paths, folders, ending="alt", is_folder=is_folder)
    problems = Problems(strict=strict, report=report)
    seen: Counter[str] = Counter()
    fetcher = Fetcher() if fetch else None
    articles = read_articles(paths, problems, fetch=fetcher, folders=folders)
    audited = (without_findings(audit_article(article), ignore or ()) for article in articles)
    choices = link_choices(policy, max_links, threshold)
    limits = (min_confidence, min_score)
    with decoding_processes() as pool:
        results: _Results = ((alts, None) for alts in audited)
        if not check:
            results = _offered(audited, model, choices, pool, copies, len(paths), limits)
        results = _counted(results, seen)
        if form == "html":
            facts = () if check else (f"model {Path(model).name}", f"policy {policy}")
            _write_pages(results, pages, pool, facts)
        else:
            write_pieces(output, _lines(results, form, every_image=all))
    say_problems(problems)
    _say_counts(seen, output, listed=all or form != "text")
    if write is not None:
        files = f" into {counted(len(copies), 'copy', 'copies')}" if len(copies) > 1 else ""
        say(f"{write}: {counted(seen['written'], 'alternative text')} written{files}")
    if check and (seen["findings"] or problems.count):
        raise typer.Exit(1)


def _form(output: Path | None, json: bool) -> Literal["html", "json", "text"]:
    """What the report is, by the name of its file as `link` has it."""
    from sightline.alt_writing import WRITABLE

    suffix = output.suffix.lower() if output is not None else ""
    if output is not None and not output.is_dir() and suffix not in _REPORTS:
        words = f"{output}: a report is not written as {suffix}; name .html, .jsonl or .txt."
        if ARTICLE_SUFFIXES.get(suffix) in WRITABLE:
            words += f" A copy of the article with its texts filled in is --write {output}."
        raise UsageError(words)
    if output is not None and (output.is_dir() or suffix in ("", ".html", ".htm")):
        if json:
            raise typer.BadParameter(f"-o {output} is for pages; leave --json out")
        return "html"
    return "json" if json or suffix in (".json", ".jsonl") else "text"


def _copies(write: Path, paths: list[Path], folders: list[Path]) -> dict[Path, Path]:
    """Where the copy of each article goes; of folders, copies lie as the articles do."""
    from sightline.alt_writing import WRITABLE
    from sightline.articles import article_kind
    from sightline.link_writing import place_in

    copied = [path for path in paths if article_kind(path) in WRITABLE]
    if len(paths) > 1 and write.is_file():
        raise typer.BadParameter(f"--write {write} is a file; name a folder for several articles")
    if not copied:
        raise UsageError(
            f"{paths[0]}: copies are made of HTML, Markdown and DOCX files; leave --write out."
        )
    if reported := len(paths) - len(copied):
        files = counted(reported, "file is", "files are")
        say(f"{files} reported on alone: copies are made of HTML, Markdown and DOCX files")
    is_folder = write.is_dir() or isinstance(write, NamedFolder)
    if len(paths) > 1 or folders or is_folder:
        copies = {path: place_in(write, path, folders) / path.name for path in copied}
        if len(set(copies.values())) < len(copied):
            raise typer.BadParameter("--write: two articles have one name; write them one by one")
        return copies
    ending, own = write.suffix.lower(), paths[0].suffix.lower()
    if ending not in ("", own) and ARTICLE_SUFFIXES.get(ending) != article_kind(paths[0]):
        expected = own or ".html"
        raise UsageError(
            f"{write}: a copy of {paths[0]} is no {ending} file; end its name in {expected}."
        )
    return {paths[0]: write}


def _counted(results: _Results, seen: Counter[str]) -> _Results:
    for alts, written in results:
        silent = sum(not image.findings for image in alts.images)
        seen.update(articles=1, images=len(alts.images), findings=alts.findings, silent=silent)
        seen["written"] += len(written.written) if written is not None else 0
        yield alts, written
    # Before a file gets its name: no article, no report.
    if not seen["articles"]:
        raise SightlineError("No article could be read.")


def _lines(results: _Results, form: str, *, every_image: bool) -> Iterator[bytes]:
    import orjson

    from sightline.alt_report import alt_lines, alt_record

    for alts, written in results:
        if form == "json":
            yield orjson.dumps(alt_record(alts, written)) + b"\n"
        else:
            for line in alt_lines(alts, written, every_image=every_image):
                yield f"{line}\n".encode("utf-8", "replace")


def _write_pages(
    results: _Results, pages: dict[Path, Path], pool: DecodePool, facts: tuple[str, ...]
) -> None:
    from sightline.alt_page import alt_page, alt_pictures
    from sightline.files import write_atomically

    for alts, _ in results:
        file = pages[alts.article.path]
        file.parent.mkdir(parents=True, exist_ok=True)
        page = alt_page(alts, alt_pictures(alts.article, pool), facts)
        write_atomically(file, page.encode("utf-8", "replace"))
        say(f"{file}: {counted(len(alts.images), 'image')}, {counted(alts.findings, 'finding')}")


def _say_counts(seen: Counter[str], output: Path | None, *, listed: bool) -> None:
    images = f"{counted(seen['images'], 'image')} of {counted(seen['articles'], 'article')}"
    words = f"{counted(seen['findings'], 'finding')} in {images}"
    words += "" if output is None else f"; the report is in {output}"
    say(words if listed or not seen["silent"] else f"{words}; --all lists the other images too")


def _offered(
    audited: Iterator[ArticleAlts],
    model: str,
    choices: LinkChoices,
    pool: DecodePool,
    copies: dict[Path, Path],
    count: int,
    limits: tuple[float | None, float | None],
) -> _Results:
    """Add candidates to each article, and write its copy if there is to be one."""
    from sightline.alt_text import with_candidates
    from sightline.alt_writing import choose, write_alts
    from sightline.article_links import language_doubt, link_article
    from sightline.progress import Progress

    loaded = open_model(model)
    with Progress("alternative texts", count, "articles") as progress:
        for alts in audited:
            if doubt := language_doubt(loaded, alts.article):
                say(f"{alts.article.path}: {doubt}")
            record = link_article(loaded, alts.article, choices, pool)
            offered = with_candidates(alts, record)
            written = None
            if target := copies.get(alts.article.path):
                target.parent.mkdir(parents=True, exist_ok=True)
                written = write_alts(offered, choose(offered, *limits), target)
            progress.advance()
            yield offered, written


def _articles(inputs: list[Path]) -> Iterator[Path]:
    """Yield the files that are named, and the articles of the folders."""
    from sightline.readers.page_folder import TEXT_SUFFIX, find_pages

    kinds = ARTICLE_SUFFIXES.keys() - {TEXT_SUFFIX}  # plain text cannot hold alternative texts
    dropped: Counter[str] = Counter()
    for path in inputs:
        if path.is_dir():
            root = path.resolve()
            yield from (path / page.relative_to(root) for page in find_pages(root, dropped, kinds))
        else:
            yield path
    say_left_out(dropped)
