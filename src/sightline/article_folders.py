"""Plain folders: articles that are given by the folder they lie in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from sightline.choices import ARTICLE_SUFFIXES
from sightline.corpus import SUFFIXES, read
from sightline.problems import SightlineError
from sightline.readers.page_folder import TEXT_SUFFIX, find_pages, images_in
from sightline.readers.recognition import are_results


def without_folders(inputs: Iterable[Path], dropped: Counter[str] | None = None) -> list[Path]:
    """Give the articles in and below plain folders in place of these; all else stays as it is.

    A text file counts where images lie beside it and no other article: together they are one. A
    folder without any article stays too, for what reads it to say what it is not. `dropped` counts
    what lies in the folders and is no article, but for images.
    """
    found: list[Path] = []
    dropped = Counter() if dropped is None else dropped
    for path in inputs:
        found += _articles_below(path, dropped) or [path] if _is_plain_folder(path) else [path]
    return list(dict.fromkeys(found))


def _is_plain_folder(path: Path) -> bool:
    # A folder with one of these is a corpus or holds shards of one, whatever else is in it, but
    # for results: those of an earlier run may have been written beside its pages.
    if not path.is_dir() or any(
        file.name.endswith(SUFFIXES) and not are_results(file) for file in path.iterdir()
    ):
        return False
    try:
        read(path)
    except SightlineError:
        return True
    return False


def _articles_below(folder: Path, dropped: Counter[str]) -> list[Path]:
    root = folder.resolve()
    by_place: dict[Path, list[Path]] = defaultdict(list)
    for file in find_pages(root, dropped, ARTICLE_SUFFIXES):
        by_place[file.parent].append(folder / file.relative_to(root))
    found: list[Path] = []
    mixed: list[Path] = []
    for place, files in by_place.items():
        articles = [file for file in files if file.suffix.lower() != TEXT_SUFFIX]
        if not articles and images_in(place):
            articles, mixed = (files, mixed) if len(files) == 1 else ([], files)
        dropped["texts without images of their own"] += len(files) - len(articles)
        found += articles
    if mixed and not found:
        raise SightlineError(
            f"{mixed[0].parent}: {len(mixed)} texts lie beside the images, and nothing says which "
            "belong together; put each text with its images into a folder of its own."
        )
    return found
