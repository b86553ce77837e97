"""Every page that the library renders, made of hostile texts: nothing of them may become markup."""

import io
import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from sightline.alt_page import alt_page
from sightline.alt_text import audit_article, with_candidates
from sightline.analysis_tables import Table
from sightline.article_page import render_article
from sightline.articles import Article, ArticleImage
from sightline.demo_page import Result, demo_page
from sightline.documents import Document
from sightline.evaluation import score_document
from sightline.images import Decoded, Status
from sightline.linking import Link
from sightline.notebook import document_html
from sightline.pages import Page, page_to_document
from sightline.readers.html import read_html
from sightline.readers.markdown import read_markdown
from sightline.report.page import Page as ReportPage
from sightline.report.page import PageFigure, render
from sightline.report.shown_documents import Chosen, page_record
from sightline.sample_page import sample_page
from sightline.shown_article import ShownArticle, ShownImage

_OF_DOCUMENT = 60  # sentences, as many as the pages show


def pages(texts, chunks):
    """Yield the name and the HTML of each page."""
    for number, some in enumerate(chunks):
        for reader in (read_html, read_markdown):
            page = merged([reader(text) for text in some])
            name = f"{reader.__name__} of markup {number}"
            yield name, render_article(_shown(page, some[0]))
            yield f"{name}, alternative texts", _alt_page(page, some[0])
    with tempfile.TemporaryDirectory() as folder:
        yield from _corpus_pages(documents(texts, Path(folder)))


def merged(read):
    """One page of several, each of which was read alone: what one swallows is its own."""
    blocks, images = [], []
    for page in read:
        shift = len(blocks)
        for image in page.images:
            moved = tuple(block + shift for block in image.caption_blocks)
            images.append(replace(image, block=image.block + shift, caption_blocks=moved))
        blocks += page.blocks
    languages = [page.language for page in read if page.language]
    return Page(read[0].title, tuple(blocks), tuple(images), (languages or [None])[0])


def _shown(page, title):
    images = tuple(
        ShownImage(i.source, i.block, i.offset, None, "missing", f"No file {i.source}.", i.alt,
                   i.caption, i.caption_blocks)
        for i in page.images
    )  # fmt: skip
    spans = tuple(page.spans())
    links = tuple(
        Link(s, v, 0.5) for s, v in zip(range(len(spans)), range(len(images)), strict=False)
    )
    similarity_SV = np.full((len(spans), len(images)), 0.25)
    return ShownArticle(title, page.blocks, spans, images, links, page.language, similarity_SV,
                        (title,), {"text": {title: 3}, "images": {title: 4}})  # fmt: skip


def _alt_page(page, title):
    document = page_to_document(page, title)
    images = tuple(
        ArticleImage(image.source, None, 0, image.alt, image.caption, image.title)
        for image in page.images
    )
    article = Article(Path("none.pdf"), "pdf", page, document, images)
    alts = audit_article(article)
    record = {
        "links": [], "sentences": document.sentences,
        "images": [{"status": "ok", "reason": title} for _ in images],
        "matrix": [[0.25] * len(images) for _ in document.sentences],
    }  # fmt: skip
    return alt_page(with_candidates(alts, record), {}, (title,))


def documents(texts, folder):
    """Documents of so many texts as a page shows, with a picture that can be read."""
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "JPEG")
    (folder / "real.jpg").write_bytes(buffer.getvalue())
    made = []
    for start in range(0, len(texts), _OF_DOCUMENT):
        some = tuple(texts[start : start + _OF_DOCUMENT])
        extra = dict.fromkeys(("title", "author", "license", "source", "commit"), some[0])
        made.append(
            Document(some[-1], some, some, ((0, 0),), some[0],
                     {**extra, "alts": some, "credits": some}, folder)
        )  # fmt: skip
    return made


def _corpus_pages(made):
    reasons = itertools.cycle([text for one in made for text in one.sentences])
    pictures = {v: Decoded(None, Status.missing, next(reasons)) for one in made for v in one.images}
    first = made[0].sentences[0]
    yield "sample page", sample_page(first, {first: made, None: made[:1]}, pictures)
    yield (
        "notebook output",
        "".join(
            document_html(one, [Link(n, n, 0.5) for n in range(len(one.images))])
            + document_html(one)
            for one in made
        ),
    )
    real = [replace(one, images=("real.jpg",) * len(one.sentences)) for one in made]
    yield "demo page", demo_page([_result(one) for one in real], ["a.links.html"], "a.txt", first)
    records = [
        page_record(Chosen(one, 50.0, "hardest"), np.eye(len(one.sentences)), text=True)
        for one in made
    ]
    for record in records:
        for image in record["images"]:
            image.append(-1)
    table = Table(first, list(made[0].sentences[:3]), [list(made[0].sentences[:3])], [first])
    facts = {first: {text: text for one in made for text in one.sentences}}
    figure = PageFigure(b"", "image/png", first, first)
    yield (
        "report",
        render(
            ReportPage(
                first, [first], [first], {}, [figure], [table], [first], records, [], first, facts
            )
        ),
    )


def _result(document):
    links = [{"sentence": n, "image": n, "confidence": 0.5} for n in range(len(document.images))]
    score = score_document(document.id, np.eye(2), [(0, 0)])
    return Result(document, links, score, score)
