"""Saved web pages: pages per CPU-second, images, captions and words kept, beside trafilatura.

    python benchmarks/pages.py FOLDER [--rounds 3]

FOLDER holds pages as `*.html`. What a page's content is, is known for those that have it beside
them as `<page>.expected`, in HTML: its words and its images. Of all pages, the figures with an
image and a `figcaption` outside navigation, asides and footers are taken for main images. An image
is known by the name of its file. The contestants take turns, page by page.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import trafilatura
from lxml import etree, html

from sightline.readers.html import read_html

#: The words of a page, and the sources of its images.
Content = tuple[str, list[str]]
_FURNITURE = "ancestor::nav|ancestor::aside|ancestor::footer"


@dataclass
class Score:
    """What one contestant did."""

    seconds: float = 0.0
    images: list[int] = field(default_factory=lambda: [0, 0])
    figures: list[int] = field(default_factory=lambda: [0, 0])
    captions: list[int] = field(default_factory=lambda: [0, 0])
    words: list[float] = field(default_factory=list)


def sightline(data: bytes) -> Content:
    """Ours: blocks and images."""
    page = read_html(data)
    sources = [source for image in page.images for source in (image.source, *image.alternatives)]
    return "\n".join(block.text for block in page.blocks), sources


def peer(data: bytes, fast: bool) -> Content:
    """Trafilatura with its images, as XML."""
    found = trafilatura.extract(
        data, output_format="xml", include_images=True, include_comments=False, fast=fast
    )
    if not found:
        return "", []
    tree = etree.fromstring(found.encode())
    return " ".join(tree.itertext()), [one.get("src") or "" for one in tree.iter("graphic")]


CONTESTANTS: dict[str, Callable[[bytes], Content]] = {
    "sightline": sightline,
    "trafilatura": lambda data: peer(data, fast=False),
    "trafilatura, fast": lambda data: peer(data, fast=True),
}


def name_of(source: str) -> str:
    """The name of an image's file."""
    return unquote(re.split(r"[?#]", unquote(source))[0].rstrip("/").rpartition("/")[2])


def figures(data: bytes) -> list[tuple[set[str], str]]:
    """The names of the image of each captioned figure, and its caption."""
    found = []
    for figure in html.fromstring(data).iter("figure"):
        captions = [" ".join(c.text_content().split()) for c in figure.iter("figcaption")]
        sources = [
            source.strip().split()[0]
            for element in figure.iter("img", "source")
            for key in ("src", "data-src", "srcset", "data-srcset")
            for source in re.split(r",\s", element.get(key) or "")
            if source.strip() and not source.startswith("data:")
        ]
        if any(captions) and sources and not figure.xpath(_FURNITURE):
            found.append(({name_of(source) for source in sources}, captions[0]))
    return found


def f1(expected: str, found: str) -> float:
    """How well the words of two texts agree."""
    wanted, given = Counter(expected.split()), Counter(found.split())
    return 2 * (wanted & given).total() / max(1, wanted.total() + given.total())


def judge(score: Score, page: Path, data: bytes, content: Content) -> None:
    """Add what was kept of one page."""
    text, names = " ".join(content[0].split()), {name_of(source) for source in content[1]}
    for sources, caption in figures(data):
        score.figures[0] += bool(sources & names)
        score.figures[1] += 1
        score.captions[0] += caption[:60] in text
        score.captions[1] += 1
    expected = page.with_suffix(".expected")
    if expected.exists():
        tree = html.fromstring(expected.read_bytes())
        wanted = [name_of(image.get("src") or "") for image in tree.iter("img")]
        score.images[0] += sum(name in names for name in wanted)
        score.images[1] += len(wanted)
        score.words.append(f1(tree.text_content(), text))


def main() -> None:
    """Read every page by each contestant, several times, and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pages = sorted(options.folder.glob("*.html"))
    scores = {name: Score() for name in CONTESTANTS}
    for number, page in enumerate(pages):
        data = page.read_bytes()
        for turn in range(options.rounds):
            names = list(CONTESTANTS)
            for name in names[(number + turn) % 3 :] + names[: (number + turn) % 3]:
                started = time.process_time()
                content = CONTESTANTS[name](data)
                scores[name].seconds += time.process_time() - started
                if not turn:
                    judge(scores[name], page, data, content)
    size = sum(page.stat().st_size for page in pages)
    print(f"{len(pages)} pages, {size / 1e6:.1f} MB, {options.rounds} rounds")
    print(f"{'':18} pages/CPU-s  ratio  figures      captions     known images  F1 of words")
    slowest = max(score.seconds for score in scores.values())
    for name, score in scores.items():
        rate = len(pages) * options.rounds / score.seconds
        kept = (f"{a:4}/{b:<4}" for a, b in (score.figures, score.captions, score.images))
        words = sum(score.words) / max(1, len(score.words))
        ratio = slowest / score.seconds
        print(f"{name:18} {rate:11.1f} {ratio:6.1f}  {'    '.join(kept)}     {words:.3f}")


if __name__ == "__main__":
    main()
