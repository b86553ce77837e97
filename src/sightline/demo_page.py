"""The page of `sightline demo`: what was found in each document, and how much of it is right.

One HTML file that asks for no other and runs no script; its pictures are those of the bundled
documents, so that they are put in as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

from sightline.confidence import confidence_text
from sightline.documents import Document
from sightline.evaluation import DocumentScore
from sightline.html_writing import data_address, page_head, page_part

#: The size of a bar that stands for 100 percent; the style stretches it.
_WIDTH, _HEIGHT = 240, 14


@dataclass(frozen=True, slots=True)
class Result:
    """A document, the links that were found in it, and its scores beside random ones."""

    document: Document
    links: list[dict[str, Any]]
    score: DocumentScore
    random: DocumentScore

    @property
    def chance(self) -> float:
        """The share of true links among all pairs, in percent: what guessing gives as p@C."""
        return 100 * self.score.links / (self.score.sentences * self.score.images)


@dataclass(frozen=True, slots=True)
class MeanScores:
    """Means over documents, in percent, as the paper's tables."""

    name: str
    auc: float
    first: float
    five: float


def mean_scores(results: Sequence[Result], model: str) -> list[MeanScores]:
    """Give the model's scores, those of random similarities, and what chance is on average."""
    chance = fmean(result.chance for result in results)
    return [
        _means(model, [result.score for result in results]),
        _means("random", [result.random for result in results]),
        MeanScores("chance", 50.0, chance, chance),
    ]


def _means(name: str, scores: Sequence[DocumentScore]) -> MeanScores:
    return MeanScores(
        name,
        fmean(score.auc for score in scores),
        fmean(score.precision[1] for score in scores),
        fmean(score.precision[5] for score in scores),
    )


def demo_page(results: Sequence[Result], pages: Sequence[str], alt: str, model: str) -> str:
    """Render the page; `pages` and `alt` are files beside it."""
    results = sorted(results, key=lambda result: -result.score.auc)
    styles = [page_part("sample_page.css"), page_part("demo_page.css")]
    articles = "".join(f'<li><a href="{name}">{name}</a></li>\n' for name in pages)
    return (
        f"{page_head('Sightline demo', styles)}<body>\n"
        "<header><h1>Sightline demo</h1>\n"
        "<p>Which sentence does each image belong to? The model "
        f"<em>{escape(model)}</em> was asked in {len(results)} documents.</p></header>\n<main>\n"
        f"<h2>Articles to open</h2>\n<ul>\n{articles}"
        f'<li><a href="{alt}">{alt}</a>: alternative texts from the article’s own sentences</li>\n'
        f"</ul>\n<h2>Scores</h2>\n{_score_table(results, model)}{_bars(results)}"
        "<h2>Links</h2>\n<p>Each image with the sentence that it was linked to; the documents with "
        "the highest scores come first. A tick says that the link is a true one: a figure and its "
        "caption, or a sentence that cites it, in the guides the text that it stands with. Both "
        "are hard: figures show what a text is about, and seldom what one sentence says.</p>\n"
        f"{''.join(map(_article, results))}</main>\n</body>\n</html>\n"
    )


def _score_table(results: Sequence[Result], model: str) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(one.name)}</th><td>{one.auc:.1f}</td><td>{one.first:.1f}</td>'
        f"<td>{one.five:.1f}</td></tr>\n"
        for one in mean_scores(results, model)
    )
    return (
        "<p>Means over documents, in percent: how often a true link scores higher than a false "
        "one (AUC), and how many of the highest one and five are true.</p>\n<table>\n"
        '<thead><tr><td></td><th scope="col">AUC</th><th scope="col">p@1</th>'
        f'<th scope="col">p@5</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n'
    )


def _bars(results: Sequence[Result]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(_title(one.document))}</th>'
        f"<td>{one.score.sentences}</td><td>{one.score.images}</td>"
        f"<td>{_bar(one.score.auc)}{one.score.auc:.1f}</td></tr>\n"
        for one in results
    )
    return (
        "<table>\n<caption>AUC of each document; the line is chance.</caption>\n"
        '<thead><tr><th scope="col">document</th><th scope="col">sentences</th>'
        '<th scope="col">images</th><th scope="col">AUC</th></tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table>\n"
    )


def _bar(auc: float) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="all" width="{_WIDTH}" height="{_HEIGHT}"/>'
        f'<rect class="part" width="{_WIDTH * auc / 100:.1f}" height="{_HEIGHT}"/>'
        f'<line x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="-3" y2="{_HEIGHT + 3}"/></svg>'
    )


def _article(result: Result) -> str:
    document = result.document
    extra = document.extra
    right = sum(_is_true(result, link) for link in result.links)
    return (
        f"<article>\n<h3>{escape(_title(document))}</h3>\n"
        f'<p class="soft">{right} of {len(result.links)} links are true; {result.chance:.1f} % of '
        f"all pairs are. By {escape(extra['author'])}, {escape(_licence(document))}, "
        f"{escape(extra['source'])}, commit {escape(extra['commit'][:12])}</p>\n"
        f'<div class="images">\n{"".join(_figures(result))}</div>\n</article>\n'
    )


def _figures(result: Result) -> Iterator[str]:
    document = result.document
    sentence_of = {link["image"]: link for link in result.links}
    for index, image in enumerate(document.images):
        link = sentence_of.get(index)
        credit = document.extra["credits"][index]
        alt = escape(document.extra["alts"][index] or "", quote=True)
        yield (
            f'<figure><img alt="{alt}" src="{_address((document.folder or Path()) / image)}">'
            f"<figcaption>{_linked(result, link)}"
            f"{f' <span>Image: {escape(credit)}</span>' if credit else ''}</figcaption></figure>\n"
        )


def _linked(result: Result, link: dict[str, Any] | None) -> str:
    if link is None:
        return "<em>not linked</em>"
    mark = '<strong class="true">✓ true</strong>' if _is_true(result, link) else "✗"
    sure = link["confidence"]
    words = escape(result.document.sentences[link["sentence"]])
    return f"{mark} {words}" + (
        "" if sure is None else f" <em>({escape(confidence_text(sure))} sure)</em>"
    )


def _is_true(result: Result, link: dict[str, Any]) -> bool:
    return (link["sentence"], link["image"]) in (result.document.links or ())


def _address(file: Path) -> str:
    return data_address(file.read_bytes())


def _title(document: Document) -> str:
    title: str = document.extra["title"]
    return title


def _licence(document: Document) -> str:
    licence: str = document.extra["license"]
    return licence.partition(" (")[0]
