"""From a submission to its answer: the record, and the record in another form."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any, TypeVar

import orjson
from starlette.responses import Response

from sightline.alt_page import alt_page, alt_pictures
from sightline.alt_report import alt_lines, alt_record
from sightline.alt_text import ArticleAlts, ImageAlt, with_candidates
from sightline.article_links import link_article, shown_article
from sightline.article_page import render_article
from sightline.articles import Article
from sightline.clip_model import Model
from sightline.decode_pool import DecodePool
from sightline.image_features import FloatArray
from sightline.images import Decoded, Interpolation
from sightline.link_outputs import MEDIA_TYPES, explained, link_pieces, without_matrix
from sightline.link_records import link_records
from sightline.problems import SightlineError
from sightline.service.engine import Engine, KnownImages, with_vectors
from sightline.service.errors import invalid
from sightline.service.schemas import AltForm, Form
from sightline.service.submissions import Submission

Record = dict[str, Any]
Result = TypeVar("Result")

_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
_ARTICLE_KEYS = ("title", "lang", "spans", "left_out")


async def link_submission(engine: Engine, submission: Submission) -> Record:
    """The record of a submission, with its matrix."""
    # Both go through their networks at the same time, together with those of other requests.
    images, vectors = await _both(engine, submission)
    return await engine.in_thread(_record, engine.model, submission, images, vectors)


async def finish_in_thread(
    engine: Engine,
    submission: Submission,
    record: Record,
    finish: Callable[[Article, Record, DecodePool], Result],
) -> Result:
    """Draw something of an article; stops decoding its pictures when the request is cancelled."""
    pool = _StoppablePool(engine.pool)
    article = submission.article
    whole = {**{key: article.document.extra[key] for key in _ARTICLE_KEYS}, **record}
    try:
        return await engine.in_thread(finish, article, whole, pool)
    finally:
        pool.stopped.set()


async def link_response(
    engine: Engine, submission: Submission, record: Record, form: Form
) -> Response:
    """The answer of /v1/link in the form that was asked for."""
    if form == "html":
        facts = (f"model {engine.shown_name}", f"policy {submission.options.policy}")

        def draw(article: Article, whole: Record, pool: DecodePool) -> str:
            told = explained(whole, submission.options.choices())
            return render_article(shown_article(article, told, pool, facts))

        return html_response(await finish_in_thread(engine, submission, record, draw))
    return await engine.in_thread(_written, submission, record, form)


async def alt_response(engine: Engine, submission: Submission, form: AltForm) -> Response:
    """The answer of /v1/alt."""
    record = await link_submission(engine, submission)
    alts = await engine.in_thread(_alts, submission, record)
    if form == "html":

        def draw(article: Article, _: Record, pool: DecodePool) -> str:
            facts = (f"model {engine.shown_name}", f"policy {submission.options.policy}")
            return alt_page(alts, alt_pictures(article, pool), facts)

        return html_response(await finish_in_thread(engine, submission, record, draw))
    return await engine.in_thread(_written_alts, alts, form)


def similarity_record(record: Record) -> Record:
    """The part of a record that /v1/similarity gives."""
    return {key: record[key] for key in ("id", "matrix", "images", "sentences")}


def json_response(value: object) -> Response:
    """JSON that no cache keeps."""
    return Response(
        orjson.dumps(value), media_type="application/json", headers={"Cache-Control": "no-store"}
    )


def html_response(page: str) -> Response:
    """A page of our renderer; the policy in its head is said in the header as well."""
    found = _POLICY.search(page)
    policy = unescape(found[1]) if found else "default-src 'none'"
    return Response(
        page.encode("utf-8", "replace"),
        media_type="text/html",
        headers={
            "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
            "Cache-Control": "no-store",
        },
    )


async def _both(engine: Engine, submission: Submission) -> tuple[KnownImages, FloatArray]:
    sentences = asyncio.ensure_future(engine.encode_sentences(submission.document.sentences))
    try:
        return await engine.encode_images(submission.images), await sentences
    finally:
        sentences.cancel()


def _record(
    model: Model, submission: Submission, images: KnownImages, vectors: FloatArray
) -> Record:
    choices = submission.options.choices()
    prepared = with_vectors(model, vectors)
    try:
        if submission.is_article:
            return link_article(prepared, submission.article, choices, None, images)
        (record,) = link_records(prepared, [submission.document], images, choices, matrix=True)
    except SightlineError:
        if choices.min_confidence <= 0:
            raise
        raise invalid(
            "min_confidence",
            "this model was not calibrated, so that its links have no confidence; leave it out, "
            "or choose by score with the policy threshold",
        ) from None
    return record


def _written(submission: Submission, record: Record, form: Form) -> Response:
    if not submission.options.matrix:
        record = without_matrix(record)
    if form == "json":
        return json_response(record)
    text = submission.article.page.text if submission.is_article else None
    return _no_store(b"".join(link_pieces([(record, text)], form)), MEDIA_TYPES[form])


def _alts(submission: Submission, record: Record) -> ArticleAlts:
    article = submission.article
    images = tuple(
        ImageAlt(index, image.name, image.alt, image.caption, audited.line, audited.findings)
        for index, (image, audited) in enumerate(zip(article.images, submission.audit, strict=True))
    )
    return with_candidates(ArticleAlts(article, images, None, None), record)


def _written_alts(alts: ArticleAlts, form: AltForm) -> Response:
    if form == "text":
        text = "\n".join(alt_lines(alts)) + "\n"
        return _no_store(text.encode("utf-8", "replace"), "text/plain; charset=utf-8")
    return json_response(alt_record(alts))


def _no_store(data: bytes, media_type: str) -> Response:
    return Response(data, media_type=media_type, headers={"Cache-Control": "no-store"})


class _StoppablePool(DecodePool):
    """The engine's decoders for one request, until that is over."""

    def __init__(self, pool: DecodePool) -> None:
        super().__init__(pool.workers, pool.limits, pool.ahead)
        self.pool = pool
        self.stopped = threading.Event()

    def decode_many(
        self,
        sources: Iterable[Path | bytes],
        shorter_side: int | None = None,
        interpolation: Interpolation = "bicubic",
    ) -> Iterator[Decoded]:
        """Decode as the pool does; raises once the request is over."""
        for decoded in self.pool.decode_many(sources, shorter_side, interpolation):
            if self.stopped.is_set():
                raise SightlineError("The request is over.")
            yield decoded
