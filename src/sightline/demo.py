"""What `sightline demo` does: the bundled documents linked, scored, and shown.

They are sections of open textbooks and guides, with the true links (`data/demo/README.md` says
whose they are). Everything is written into one folder; the documents are copied there first, so
that each step can be repeated by hand.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from sightline.alt_report import alt_lines
from sightline.alt_text import audit_article, with_candidates
from sightline.article_links import link_article, read_articles
from sightline.baselines import random_baseline
from sightline.clip_model import Model
from sightline.corpus import read
from sightline.decode_pool import DecodePool
from sightline.demo_page import Result, demo_page
from sightline.evaluation import DocumentScore, score_document
from sightline.files import write_atomically
from sightline.link_writing import page_files, write_links, write_pages
from sightline.linked_documents import LinkedDocument, linked_documents
from sightline.linking import LinkChoices
from sightline.problems import Problems, SightlineError

#: The documents come from this split of the data that models are trained on.
SPLIT = "val"
_ARTICLES = ("threats-to-biodiversity.html", "solenoid-valve-cable-fix.md")
#: Says that a folder was written by a demo and may be written again.
_MARK = ".sightline-demo"


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """Where everything of one demo lies."""

    root: Path

    @property
    def documents(self) -> Path:
        """The corpus, with the articles and all images."""
        return self.root / "documents"

    @property
    def articles(self) -> list[Path]:
        """The articles among the documents."""
        return [self.documents / name for name in _ARTICLES]

    @property
    def links(self) -> Path:
        """The link records of the corpus."""
        return self.root / "links.jsonl"

    @property
    def alt(self) -> Path:
        """The report on the first article's alternative texts."""
        return self.root / "alt.txt"

    @property
    def index(self) -> Path:
        """The page that shows what was found and how much of it is right."""
        return self.root / "index.html"


def copy_documents(root: Path) -> DemoFolder:
    """Copy the bundled documents into a folder, new or a demo's."""
    folder = DemoFolder(root)
    if not root.is_dir() and (root.exists() or root.suffix.lower() in (".html", ".htm")):
        raise SightlineError(f"{root} is the name of a file; name a folder with -o.")
    if root.is_dir() and any(root.iterdir()) and not (root / _MARK).exists():
        raise SightlineError(
            f"{root} holds files that no demo wrote, and nothing there is touched; name another "
            "folder with -o."
        )
    root.mkdir(parents=True, exist_ok=True)
    (root / _MARK).touch()
    with as_file(files("sightline") / "data" / "demo") as bundled:
        shutil.copytree(bundled, folder.documents, dirs_exist_ok=True)
    return folder


def link_corpus(model: Model, folder: DemoFolder, pool: DecodePool) -> list[Result]:
    """Link the corpus, write its records, and score it beside random similarities."""
    linked = list(
        linked_documents(
            [folder.documents], model, LinkChoices(), pool, Problems(strict=True), matrix=True
        )
    )
    write_links(iter(linked), "jsonl", folder.links, False)
    by_chance = random_baseline(read(folder.documents), SPLIT).scores
    return [
        Result(one.document, one.record["links"], _score(one), random)
        for one, random in zip(linked, by_chance, strict=True)
    ]


def _score(one: LinkedDocument) -> DocumentScore:
    """The document's scores, as `sightline evaluate` gives them."""
    score = score_document(
        one.document.id, np.array(one.record["matrix"]), one.document.links or ()
    )
    if score is None:
        raise SightlineError(f"{one.document.id} has no true links to score against.")
    return score


def link_articles(
    model: Model,
    folder: DemoFolder,
    pool: DecodePool,
    facts: tuple[str, ...],
    say: Callable[[str], None],
) -> list[Path]:
    """Write the page of each article; gives their files."""
    pages = page_files(folder.root, folder.articles, 0)
    linked = linked_documents(folder.articles, model, LinkChoices(), pool, Problems(strict=True))
    write_pages(linked, pages, pool, facts, say)
    return list(pages.values())


def report_alt(model: Model, folder: DemoFolder, pool: DecodePool) -> int:
    """Write the report on the first article's alternative texts; gives the number of findings."""
    (article,) = read_articles(folder.articles[:1], Problems(strict=True))
    alts = with_candidates(
        audit_article(article), link_article(model, article, LinkChoices(), pool)
    )
    lines = alt_lines(alts, every_image=False)
    write_atomically(folder.alt, "".join(f"{line}\n" for line in lines).encode())
    return alts.findings


def write_index(folder: DemoFolder, results: list[Result], pages: list[Path], model: str) -> None:
    """Write the page that leads to all others."""
    page = demo_page(results, [page.name for page in pages], folder.alt.name, model)
    write_atomically(folder.index, page.encode())
