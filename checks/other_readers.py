"""Compares what our readers find in articles with what other, simpler readers find in them.

    pip install pypdf pdfminer.six
    python checks/other_readers.py FOLDER... [--plant] [--list]

Of PDFs the others are pypdf and pdfminer.six; of HTML, EPUB and DOCX all text of their tags, by
Python's own parsers. Words of four letters and more that the others find have to be among what ours
gives, or so many signs have to be counted as left out. A file is

    same      no word is missing, or the others find none
    counted   words are missing, and as many signs or some things ("pages (number)") are counted
    refused   ours gives an error with a reason
    lost      words are missing that nothing counts

Exit code 1 if any is lost. `--plant` drops the longest block of each article: the control. `--list`
also shows those that are counted and refused. What is written from right to left, and formulas,
come in another order from each reader, so that some files may have to be looked at.
"""

import argparse
import io
import logging
import re
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from html.parser import HTMLParser
from operator import and_
from pathlib import Path
from xml.etree import ElementTree

from sightline.articles import Article, article_kind, read_article
from sightline.problems import SightlineError

MOST_PAGES = 30  # of a PDF: the others take a second for some
_WORD = re.compile(r"[^\W\d_]{4,}")
_WORDML = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BREAKS = {f"{_WORDML}{name}" for name in ("p", "br", "cr", "tab")}


class _Texts(HTMLParser):
    """All text of a page but scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.skipped = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag in ("script", "style"):
            self.skipped = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self.skipped:
            self.skipped = ""

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.texts.append(data)


def pypdf_text(path: Path) -> Iterator[str]:
    """Yield the pages' text, as pypdf finds it."""
    import pypdf

    for page, _ in zip(pypdf.PdfReader(path).pages, range(MOST_PAGES), strict=False):
        yield f"{page.extract_text()}\n"


def pdfminer_text(path: Path) -> Iterator[str]:
    """Yield the pages' text, as pdfminer.six finds it."""
    from pdfminer.high_level import extract_text

    yield extract_text(path, maxpages=MOST_PAGES)


def html_text(path: Path) -> Iterator[str]:
    """Yield the text of a page."""
    yield _page_text(path.read_bytes())


def epub_text(path: Path) -> Iterator[str]:
    """Yield the text of all pages in a book, in whichever order."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.lower().endswith((".xhtml", ".html", ".htm")):
                yield f"{_page_text(archive.read(name))}\n"


def docx_text(path: Path) -> Iterator[str]:
    """Yield the text of all parts."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("word/") and name.endswith(".xml"):
                part = ElementTree.parse(io.BytesIO(archive.read(name)))
                for node in part.iter():
                    yield " " if node.tag in _BREAKS else ""
                    yield node.text or "" if node.tag == f"{_WORDML}t" else ""


def _page_text(data: bytes) -> str:
    page = _Texts()
    page.feed(data.decode("utf-8", "ignore"))
    return " ".join(page.texts)


OTHERS: dict[str, list[Callable[[Path], Iterator[str]]]] = {
    "pdf": [pypdf_text, pdfminer_text],
    "html": [html_text],
    "epub": [epub_text],
    "docx": [docx_text],
}


def missing(path: Path, kind: str, text: str) -> dict[str, int]:
    """Give the words that all others find and that are not in our text, with their number.

    Others part and join words where ours does not: spaces are of no account, and what only one of
    them finds is most often two words of neighbouring lines. In formulas each has an order of its
    own: words whose letters are all there are there.
    """
    ours = "".join(re.findall(r"[^\W\d_]", _usual(text)))
    spare = Counter(ours)
    found: list[Counter[str]] = []
    for other in OTHERS[kind]:
        try:
            theirs = Counter(_WORD.findall(_usual("".join(other(path)))))
        except Exception:  # whatever they raise for damaged files
            continue
        found += [theirs] if theirs else []
    everywhere = reduce(and_, found, found[0]) if found else Counter[str]()
    spare.subtract("".join(everywhere.elements()))
    absent = {word: count for word, count in everywhere.items() if word not in ours}
    return {word: n for word, n in absent.items() if min(spare[letter] for letter in word) < 0}


def _usual(text: str) -> str:
    """Give a text in its usual form: no ligatures, no capitals."""
    return unicodedata.normalize("NFKC", text).casefold()


def text_of(article: Article, plant: bool) -> str:
    """Give all text of an article, but for the longest block if it is to be lost."""
    page = article.page
    blocks = sorted((block.text for block in page.blocks), key=len)
    kept = blocks[:-1] if plant else blocks
    alts = [text for image in page.images for text in (image.alt, image.caption) if text]
    return " ".join([*kept, page.title or "", *alts])


def verdict_of(path: Path, plant: bool) -> tuple[str, str]:
    """Read a file and compare; gives what became of it, and the details."""
    try:
        article = read_article(path)
    except SightlineError as error:
        return "refused", str(error)
    lost = missing(path, article.kind, text_of(article, plant))
    if not lost:
        return "same", ""
    left_out = article.page.left_out.text
    signs = sum(len(word) * count for word, count in lost.items())
    things = any(reason.endswith(")") for reason in +left_out)
    is_counted = things or left_out.total() >= signs
    details = f"{signs} signs in {', '.join(list(lost)[:6])}; counted: {dict(left_out)}"
    return "counted" if is_counted else "lost", details


def main() -> int:
    """Print the counts, and the files of which something is lost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--plant", action="store_true", help="lose a block of each article")
    parser.add_argument("--list", action="store_true", help="print all that are not the same")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the others warn of every damage
    counts: Counter[str] = Counter()
    for path in sorted(path for folder in given.folders for path in folder.rglob("*")):
        if not path.is_file() or article_kind(path) not in OTHERS:
            continue
        verdict, details = verdict_of(path, given.plant)
        counts[verdict] += 1
        if verdict == "lost" or (given.list and verdict != "same"):
            print(f"{verdict}: {path}: {details}", flush=True)
    names = ("same", "counted", "refused", "lost")
    print(f"{counts.total()} files: " + ", ".join(f"{counts[name]} {name}" for name in names))
    return 1 if counts["lost"] or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
