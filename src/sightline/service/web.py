"""The web page of the service, and what only the page asks for.

The page is plain files in `page/`, sent with a policy that lets nothing but them run. An article
is drawn by the renderer of `sightline link` (`live_article`) and shown in a frame without rights.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from typing import Annotated, Any, Literal, TypeVar

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from sightline.article_page import live_hashes
from sightline.articles import Article
from sightline.choices import LinkFormat
from sightline.decode_pool import DecodePool
from sightline.link_outputs import MEDIA_TYPES, link_pieces
from sightline.service.answers import html_response
from sightline.service.bundled_examples import EXAMPLES
from sightline.service.corpus_view import CorpusView, Sort
from sightline.service.errors import ServiceError, busy, from_validation, invalid
from sightline.service.live_article import corrected_article, live_article
from sightline.service.submissions import read_form

Result = TypeVar("Result")
#: Makes something of an article and its record, which has its matrix.
Finish = Callable[[Article, dict[str, Any], DecodePool], Result]
#: Reads a request as `POST /v1/link` does, links it, and finishes it in a thread, while the files
#: of the upload are there.
LinkUpload = Callable[[Request, Finish[Any]], Awaitable[Any]]

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: Rows of the list of documents in one answer.
_MOST_ROWS = 200
#: Documents of corpora that are linked and drawn at a time; others wait.
_DRAWN_AT_ONCE = 2


# ---- the page itself


def page_routes() -> APIRouter:
    """The files of the page; they hold nothing that needs a token."""
    router = APIRouter(include_in_schema=False)

    @router.head("/")
    @router.get("/")
    async def index(request: Request) -> Response:
        return _file("index.html", request)

    @router.get("/page/{name}")
    async def file(name: str, request: Request) -> Response:
        return _file(name, request)

    return router


@lru_cache
def page_files() -> Mapping[str, bytes]:
    """The files of the page by name; nothing else is ever sent."""
    folder = files("sightline.service") / "page"
    names = [file.name for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES]
    return {name: (folder / name).read_bytes() for name in names}


@lru_cache
def page_policy() -> str:
    """What the page may do: run its own files, and ask its own server.

    The frame of an article inherits this policy and has its own on top, so that its scripts and
    styles are named here too.
    """
    scripts, styles = live_hashes()
    return (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' {styles}; "
        "img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _file(name: str, request: Request) -> Response:
    content = page_files().get(name)
    if content is None:
        raise ServiceError(404, f"There is no page file {name!r}.")
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {
        "Content-Security-Policy": page_policy(),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
        "ETag": tag,
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])


# ---- what the page asks for


Place = Annotated[int, Field(ge=0, lt=2**31)]


class LinkedImage(BaseModel):
    """An image of a link record."""

    id: str


class CorrectedLink(BaseModel):
    """A link, of the model or of a person; only a link to an unread image has no score."""

    sentence: Place
    image: Place
    score: float | None = None
    confidence: float | None = None


class CorrectedRecord(BaseModel):
    """A link record as the page has it, with corrections."""

    model_config = ConfigDict(extra="ignore")
    id: str
    sentences: list[str]
    images: list[LinkedImage]
    links: list[CorrectedLink]
    spans: list[tuple[Place, Place]] | None = None


class FormRequest(BaseModel):
    """A record to be written in another form, with the text that its spans point into."""

    record: CorrectedRecord
    text: str | None = None


def web_routes(link_upload: LinkUpload, corpora: Sequence[CorpusView] = ()) -> APIRouter:
    """What the page asks for beyond the API; no part of the API that is described to programs."""
    router = APIRouter(prefix="/v1", include_in_schema=False)

    @router.get("/examples")
    def examples() -> Response:
        return _json([one.to_record() for one in EXAMPLES])

    @router.get("/examples/{name}")
    def example(name: str) -> Response:
        for one in EXAMPLES:
            if one.name == name:
                return Response(one.archive(), media_type="application/zip")
        raise ServiceError(404, f"There is no example {name!r}.")

    @router.post("/page")
    async def page(request: Request) -> Response:
        engine = request.app.state.service.engine_now()
        finish = partial(
            live_article,
            calibration=engine.model.calibration,
            facts=(f"model {engine.shown_name}",),
            model=engine.model,
        )
        return _json(await link_upload(request, finish))

    @router.post("/page/html")
    async def corrected_page(request: Request) -> Response:
        form = await read_form(request, request.app.state.service.configuration.limits)
        record = _corrected(form.get("record"))

        def finish(article: Article, found: dict[str, Any], pool: DecodePool) -> str:
            _check_places(record, len(found["sentences"]), len(found["images"]))
            links = [link.model_dump() for link in record.links]
            return corrected_article(article, found, links, pool, ("corrected by hand",))

        return html_response(await link_upload(request, finish))

    @router.post("/forms/{form}")
    async def other_form(form: Literal["csv", "annotations"], request: Request) -> Response:
        asked = _validated(FormRequest, await request.body())
        return await run_in_threadpool(_form, form, asked)

    router.include_router(_corpus_routes(corpora))
    return router


def _form(form: LinkFormat, asked: FormRequest) -> Response:
    record = asked.record
    _check_places(record, len(record.sentences), len(record.images))
    if record.spans is not None and len(record.spans) != len(record.sentences):
        raise invalid("spans", "as many as sentences are needed")
    pieces = link_pieces([(record.model_dump(), asked.text)], form)
    headers = {"Cache-Control": "no-store"}
    return Response(b"".join(pieces), media_type=MEDIA_TYPES[form], headers=headers)


def _check_places(record: CorrectedRecord, sentences: int, images: int) -> None:
    for number, link in enumerate(record.links):
        if link.sentence >= sentences or link.image >= images:
            raise invalid(f"links.{number}", "no such sentence or no such image")


def _corrected(text: object) -> CorrectedRecord:
    if not isinstance(text, str):
        raise invalid("record", "required")
    return _validated(CorrectedRecord, text.encode("utf-8", "replace"))


Model = TypeVar("Model", bound=BaseModel)


def _validated(model: type[Model], data: bytes) -> Model:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise from_validation(error) from error


# ---- corpora


def _corpus_routes(corpora: Sequence[CorpusView]) -> APIRouter:
    router = APIRouter(prefix="/corpora")
    views = dict(enumerate(corpora))
    room = asyncio.Semaphore(_DRAWN_AT_ONCE)

    def view(number: int) -> CorpusView:
        if number not in views:
            raise ServiceError(404, f"There is no corpus {number}.")
        return views[number]

    @router.get("")
    def listed() -> Response:
        return _json([one.state() for one in corpora])

    @router.get("/{number}/documents")
    def documents(
        number: int,
        sort: Sort = "corpus",
        descending: bool = False,
        split: str | None = None,
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = _MOST_ROWS,
    ) -> Response:
        corpus = view(number)
        corpus.start()
        total, rows = corpus.listed(sort, descending, split, offset, limit)
        answer = {"state": corpus.state(), "total": total, "rows": [r.to_record() for r in rows]}
        return _json(answer)

    @router.get("/{number}/documents/{index}")
    async def document(number: int, index: int) -> Response:
        corpus = view(number)
        corpus.start()
        if corpus.is_read and not 0 <= index < len(corpus.documents):
            raise ServiceError(404, f"There is no document {index}.")
        if not corpus.is_read:
            raise busy(503, "The corpus is still being read.")
        async with room:
            return await run_in_threadpool(lambda: _json(corpus.document(index)))

    return router


def _json(value: Any) -> Response:
    data = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(data, media_type="application/json", headers={"Cache-Control": "no-store"})
