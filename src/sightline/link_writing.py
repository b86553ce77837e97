"""Writes what `sightline link` finds, in the form that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

from sightline.article_links import shown_article
from sightline.article_page import render_article
from sightline.decode_pool import DecodePool
from sightline.files import atomic_writer, write_atomically
from sightline.link_outputs import annotation_collection, csv_lines, readable_lines
from sightline.linked_documents import LinkedDocument
from sightline.problems import SightlineError

Form = Literal["jsonl", "html", "annotations", "csv", "list"]
_SUFFIXES: dict[str, Form] = {
    ".html": "html",
    ".htm": "html",
    ".csv": "csv",
    ".json": "annotations",
    ".jsonld": "annotations",
}


def form_of(output: Path | None, asked: Form | None, on_terminal: bool) -> Form:
    """What to write: what was asked for, else what the suffix says, else what suits the reader."""
    if asked is not None:
        return asked
    if output is None:
        return "list" if on_terminal else "jsonl"
    if output.is_dir():  # for pages
        return "html"
    return _SUFFIXES.get(output.suffix.lower(), "jsonl")


def page_files(output: Path | None, articles: Iterable[Path], others: int) -> dict[Path, Path]:
    """The file of each article's page; one for each, whatever their names have in common."""
    paths = list(dict.fromkeys(articles))
    if others:
        raise SightlineError("Only articles have a page; write corpora as JSONL or CSV.")
    if len(paths) == 1 and output is not None and not output.is_dir():
        return {paths[0]: output}
    if output is None:
        raise SightlineError("Pages need a place: name a file or a folder with -o.")
    if output.exists() and not output.is_dir():
        raise SightlineError(f"{output} is a file; several pages need a folder.")
    files: dict[Path, Path] = {}
    taken: set[str] = set()
    for path in paths:
        name, number = f"{path.stem}.links.html", 2
        while name.casefold() in taken:
            name, number = f"{path.stem}-{number}.links.html", number + 1
        taken.add(name.casefold())
        files[path] = output / name
    return files


def write_links(
    linked: Iterator[LinkedDocument], form: Form, output: Path | None, matrix: bool
) -> None:
    """Write records in any form but pages; a file appears whole or not at all."""
    if form == "annotations":
        import orjson

        pairs = [(one.record, one.article.page.text if one.article else None) for one in linked]
        data = orjson.dumps(annotation_collection(pairs), option=orjson.OPT_INDENT_2) + b"\n"
        _write(output, [data])
    elif form == "csv":
        lines = csv_lines(one.record for one in linked)
        _write(output, (line.encode("utf-8", "replace") for line in lines))
    elif form == "list":
        _write(output, _list(linked))
    else:
        _write(output, _json_lines(linked, matrix))


def write_pages(
    linked: Iterator[LinkedDocument],
    files: dict[Path, Path],
    pool: DecodePool,
    facts: tuple[str, ...],
    say: Callable[[str], None],
) -> None:
    """Write the page of each article into its file."""
    for one in linked:
        if one.article is None:
            continue
        file = files[one.article.path]
        file.parent.mkdir(parents=True, exist_ok=True)
        page = render_article(shown_article(one.article, one.record, pool, facts))
        write_atomically(file, page.encode("utf-8", "replace"))
        say(f"{file}: {len(one.record['links'])} links of {len(one.record['images'])} images")


def _json_lines(linked: Iterator[LinkedDocument], matrix: bool) -> Iterator[bytes]:
    import orjson

    for one in linked:
        record = one.record
        if not matrix:
            record = {key: value for key, value in record.items() if key != "matrix"}
        yield orjson.dumps(record) + b"\n"


def _list(linked: Iterator[LinkedDocument]) -> Iterator[bytes]:
    import os
    import shutil

    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size().columns
    for one in linked:
        for line in readable_lines(one.record, width, colours):
            yield f"{line}\n".encode("utf-8", "replace")


def _write(output: Path | None, pieces: Iterable[bytes]) -> None:
    if output is None:
        _write_to(sys.stdout.buffer, pieces)
        return
    with atomic_writer(output) as file:
        _write_to(file, pieces)


def _write_to(file: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        file.write(piece)
    file.flush()
