"""Alternative text: what the images of an article have, and what its own sentences offer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sightline.alt_audit import LONGEST_ALT, REPLACEABLE, Finding, audit, plain
from sightline.articles import Article
from sightline.image_places import SourcePlaces, find_places
from sightline.pages import BlockKind, Page
from sightline.problems import SightlineError
from sightline.readers import html, markdown
from sightline.sentences import tokenize
from sightline.source_edits import SourceText

#: Kinds of text that can tell what an image shows; headings and code are no sentences anyway.
_MOST_SECONDS = 1.5  # of CPU time for reading a page whose source is looked into again
_NO_CANDIDATES = frozenset((BlockKind.CAPTION, BlockKind.TABLE_ROW, BlockKind.TABLE_CELL))
_FEWEST_TOKENS = 4  # of a sentence that can stand for itself, its full stop included
_CANDIDATES = 5  # of an image


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of the article that may serve as alternative text."""

    #: Its index in the document, and where it stands in the article's text form.
    sentence: int
    span: tuple[int, int]
    text: str
    score: float
    #: How sure its link is; None for a sentence that is not linked or a model without.
    confidence: float | None
    #: The policy linked it to the image.
    linked: bool
    #: It is neither too long nor too short to be read out in place of the image.
    fits: bool
    #: The last heading before it.
    section: str | None = None


@dataclass(frozen=True, slots=True)
class ImageAlt:
    """An image of an article: its alternative text, its faults, and candidates, best first."""

    index: int
    name: str
    alt: str | None
    caption: str | None
    line: int | None
    findings: tuple[Finding, ...]
    candidates: tuple[Candidate, ...] = ()
    #: Why there are no candidates, where the image could not be used.
    status: str | None = None
    reason: str | None = None

    @property
    def needs_text(self) -> bool:
        """Whether what is there may be replaced: nothing of it was written for the image."""
        return any(finding.code in REPLACEABLE for finding in self.findings)


@dataclass(frozen=True, slots=True)
class ArticleAlts:
    """What is known about the alternative texts of one article."""

    article: Article
    images: tuple[ImageAlt, ...]
    #: Where the images stand in the source; None for files that are not text.
    places: SourcePlaces | None
    source: SourceText | None

    @property
    def findings(self) -> int:
        """How many things are wrong."""
        return sum(len(image.findings) for image in self.images)


def audit_article(article: Article) -> ArticleAlts:
    """Audit the alternative texts of an article; no model and no image file is needed."""
    source, places = _places(article)
    found = places.images if places is not None else [None] * len(article.images)
    findings = audit(
        article.page.images, found, empty_is_missing=article.kind in ("markdown", "docx")
    )
    images = tuple(
        ImageAlt(
            index=index,
            name=image.name,
            alt=image.alt,
            caption=image.caption,
            line=place.line if place is not None else None,
            findings=tuple(of_image),
        )
        for index, (image, place, of_image) in enumerate(
            zip(article.images, found, findings, strict=True)
        )
    )
    return ArticleAlts(article, images, places, source)


def without_findings(alts: ArticleAlts, ignored: Collection[str]) -> ArticleAlts:
    """Pass over findings of some codes."""
    images = (
        replace(image, findings=tuple(one for one in image.findings if one.code not in ignored))
        for image in alts.images
    )
    return replace(alts, images=tuple(images)) if ignored else alts


def with_candidates(alts: ArticleAlts, record: dict[str, Any]) -> ArticleAlts:
    """Add candidates out of the article's link record, which has to hold the matrix."""
    article = alts.article
    offered = _offered(article)
    linked = {(link["sentence"], link["image"]): link for link in record["links"]}
    images = []
    for image, status in zip(alts.images, record["images"], strict=True):
        candidates: list[Candidate] = []
        if status["status"] == "ok":
            for sentence, section in offered.items():
                score = record["matrix"][sentence][image.index]
                link = linked.get((sentence, image.index))
                text = article.document.sentences[sentence]
                start, end = article.document.extra["spans"][sentence]
                candidates.append(
                    Candidate(
                        sentence=sentence,
                        span=(start, end),
                        text=text,
                        score=score,
                        confidence=link["confidence"] if link else None,
                        linked=link is not None,
                        fits=_fits(text, image.caption),
                        section=section,
                    )
                )
        candidates.sort(key=lambda c: (not c.fits, not c.linked, -c.score, c.sentence))
        images.append(_with(image, candidates[:_CANDIDATES], status))
    return ArticleAlts(article, tuple(images), alts.places, alts.source)


def _with(image: ImageAlt, candidates: Sequence[Candidate], status: dict[str, Any]) -> ImageAlt:
    return ImageAlt(
        image.index,
        image.name,
        image.alt,
        image.caption,
        image.line,
        image.findings,
        tuple(candidates),
        status["status"],
        status["reason"],
    )


def _offered(article: Article) -> dict[int, str | None]:
    """Give the sentences that may be candidates, with the heading that each stands under."""
    headings = article.document.extra["headings"]
    starts = [start for _, start, _ in headings]
    found: dict[int, str | None] = {}
    seen = set()
    kinds, spans = article.document.extra["kinds"], article.document.extra["spans"]
    for index, (kind, (start, _)) in enumerate(zip(kinds, spans, strict=True)):
        text = plain(article.document.sentences[index])
        if kind in _NO_CANDIDATES or text in seen:
            continue
        seen.add(text)
        before = bisect_right(starts, start) - 1
        found[index] = headings[before][2] if before >= 0 else None
    return found


def _fits(text: str, caption: str | None) -> bool:
    if len(" ".join(text.split())) > LONGEST_ALT or len(tokenize(text)) < _FEWEST_TOKENS:
        return False
    return caption is None or plain(text) != plain(caption)


def _places(article: Article) -> tuple[SourceText | None, SourcePlaces | None]:
    """Find the images in the source, if that is text."""
    # Its source is read up to four times more, in this process.
    if article.kind not in ("html", "markdown") or article.seconds > _MOST_SECONDS:
        return None, None
    in_markdown = article.kind == "markdown"
    try:
        source = SourceText.decode(article.path.read_bytes(), declared=not in_markdown)
        sources = [image.source for image in article.page.images]
        reader = markdown.read_markdown if in_markdown else html_reader(article.path)
        return source, find_places(source, reader, sources, markdown=in_markdown)
    except SightlineError:
        # The article was read; only its lines and the way back to its source are not known.
        return None, None


def html_reader(path: Path) -> Any:
    """Give the function that reads HTML as the article at this path was read."""
    xml = path.suffix.lower() == ".xhtml"

    def read(text: str) -> Page:
        return html.read_html(text, xml=xml)

    return read
