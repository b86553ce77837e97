"""Writes what `sightline link` finds, in the form that was asked for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

from sightline.article_links import shown_article
from sightline.article_page import render_article
from sightline.choices import LINK_SUFFIXES, LinkFormat
from sightline.decode_pool import DecodePool
from sightline.files import atomic_writer, lies_within, write_atomically, write_out
from sightline.link_outputs import link_pieces, readable_lines, without_matrix
from sightline.linked_documents import LinkedDocument
from sightline.problems import UsageError
from sightline.progress import counted

# Bytes of a page's name before its ending; most systems allow 255 in all.
_LONGEST_STEM = 200
#: What is written: a format of files, or a list to read on a terminal.
Form = Literal[LinkFormat, "list"]


def form_of(
    output: Path | None, asked: LinkFormat | None, on_terminal: bool, is_folder: bool = False
) -> Form:
    """What to write: what was asked for, else what the suffix says, else what suits the reader.

    `is_folder` says that the output is to be a folder, also where there is none yet.
    """
    if asked is not None:
        return asked
    if output is None:
        return "list" if on_terminal else "jsonl"
    if is_folder or output.is_dir():  # for pages
        return "html"
    suffix = output.suffix.lower()
    if suffix and suffix not in LINK_SUFFIXES:
        raise UsageError(
            f"{output}: links are not written as {suffix}; name a file that ends in "
            f"{', '.join(LINK_SUFFIXES)}, or say with --format what it shall hold."
        )
    return LINK_SUFFIXES.get(suffix, "jsonl")


def page_files(
    output: Path | None,
    articles: Iterable[Path],
    others: int,
    ending: str = "links",
    folders: Iterable[Path] = (),
) -> dict[Path, Path]:
    """The file of each article's page; one for each, whatever their names have in common.

    Pages of articles from `folders` lie below `output` as the articles do in these.
    """
    paths = list(dict.fromkeys(articles))
    if others:
        raise UsageError(
            "Only articles have a page; write corpora as JSONL or CSV: -o links.jsonl."
        )
    if len(paths) == 1 and output is not None and not output.is_dir():
        return {paths[0]: output}
    if output is None:
        raise UsageError("Pages need a place: name a file or a folder with -o.")
    if not output.is_dir() and (output.exists() or output.suffix.lower() in (".html", ".htm")):
        raise UsageError(f"{output} is the name of a file; several pages need a folder.")
    files: dict[Path, Path] = {}
    read = {os.path.realpath(path) for path in paths}
    taken: set[str] = set()
    roots = list(folders)
    for path in paths:
        place = place_in(output, path, roots)
        stem = os.fsencode(path.stem)[:_LONGEST_STEM].decode("utf-8", "ignore")
        file, number = place / f"{stem}.{ending}.html", 2
        # Whoever wrote the articles may have put a link in its place, which leads elsewhere.
        while str(file).casefold() in taken or file.is_symlink() or os.path.realpath(file) in read:
            file, number = place / f"{stem}-{number}.{ending}.html", number + 1
        taken.add(str(file).casefold())
        files[path] = file
    return files


def place_in(output: Path, article: Path, folders: Iterable[Path]) -> Path:
    """The folder for an article's page, which lies in the one that it was found in as this does."""
    for folder in folders:
        if article.is_relative_to(folder):
            place = output / article.relative_to(folder).parent
            is_own = lies_within(place, output) and not place.is_symlink()
            return place if is_own else output
    return output


def write_links(
    linked: Iterator[LinkedDocument],
    form: Form,
    output: Path | None,
    matrix: bool,
    colours: bool = False,
) -> None:
    """Write records in any form but pages; a file appears whole or not at all."""
    if form == "list":
        write_pieces(output, _list(linked, colours))
        return
    records = (
        (
            one.record if matrix else without_matrix(one.record),
            one.article.page.text if one.article else None,
        )
        for one in linked
    )
    write_pieces(output, link_pieces(records, form))


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
        links, images = one.record["links"], one.record["images"]
        reasons = Counter(image["reason"] for image in images if image["status"] != "ok")
        each = "; ".join(f"{count}: {reason.rstrip('.')}" for reason, count in reasons.items())
        each = next(iter(reasons)) if len(reasons) == 1 else each
        because = f", {reasons.total()} not read: {each}" if reasons else ""
        say(f"{file}: {counted(len(links), 'link')} of {counted(len(images), 'image')}{because}")


def _list(linked: Iterator[LinkedDocument], colours: bool) -> Iterator[bytes]:
    import shutil

    width = shutil.get_terminal_size().columns
    for one in linked:
        for line in readable_lines(one.record, width, colours):
            yield f"{line}\n".encode("utf-8", "replace")


def write_pieces(output: Path | None, pieces: Iterable[bytes]) -> None:
    """Write to a file, which appears whole or not at all, or to standard output."""
    if output is None:
        write_out(pieces)
        return
    with atomic_writer(output) as file:
        _write_to(file, pieces)


def _write_to(file: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        file.write(piece)
    file.flush()
