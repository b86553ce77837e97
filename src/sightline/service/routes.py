"""The API: what programs ask for."""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from sightline.link_outputs import MEDIA_TYPES
from sightline.model import LinkModel
from sightline.service.answers import (
    alt_response,
    finish_in_thread,
    json_response,
    link_response,
    link_submission,
    similarity_record,
)
from sightline.service.engine import Engine
from sightline.service.errors import invalid
from sightline.service.limits import ServiceLimits
from sightline.service.metrics import MEDIA_TYPE
from sightline.service.openapi import (
    ALT_BODY,
    ALT_RESPONSES,
    LINK_BODY,
    LINK_RESPONSES,
    PLAIN_RESPONSES,
    SIMILARITY_RESPONSES,
)
from sightline.service.schemas import AltForm, ArticleOptions, Form, Health, ModelList
from sightline.service.state import ServiceState
from sightline.service.web import Finish, LinkUpload

Result = TypeVar("Result")

#: What a program that says what it accepts gets, if it does not ask for a form.
_ACCEPTED: dict[str, Form] = {
    "application/json": "json",
    **{kind: form for form, kind in MEDIA_TYPES.items()},
}
#: The limits that a client can keep to.
_TOLD = (
    *("body_bytes", "images", "sentences", "characters", "pairs", "pixels"),
    *("seconds", "requests"),
)


def api_routes(state: ServiceState) -> APIRouter:
    """All routes of the API."""
    router = APIRouter()
    router.include_router(_linking(state))
    router.include_router(_operation(state))
    return router


def link_upload(state: ServiceState) -> LinkUpload:
    """What the web page needs: read a request as `POST /v1/link` does, and finish it otherwise."""

    async def linked(request: Request, finish: Finish[Result]) -> Result:
        engine = state.engine_now()
        async with state.reception.take(request, engine, others=True) as submission:
            record = await link_submission(engine, submission)
            return await finish_in_thread(engine, submission, record, finish)

    return linked


def _linking(state: ServiceState) -> APIRouter:
    known_only = [Depends(_check_parameters)]
    router = APIRouter(prefix="/v1", tags=["linking"], dependencies=known_only)

    @router.post("/link", openapi_extra=LINK_BODY, responses=LINK_RESPONSES, response_model=None)
    async def link(request: Request, format: Form | None = None) -> Response:
        """Find which sentence each image of a document or an article belongs to.

        The body is a JSON document with its images, or a form with one `file` (HTML, Markdown,
        text, PDF, DOCX, EPUB, a zip of one of them with its images, or a JSON document) and
        further `images`. The answer is the record that `sightline link` writes; `format`, or the
        `Accept` header, asks for it as JSON lines, CSV, Web Annotations or a page to look at.
        """
        engine = state.engine_now()
        form = format or _accepted(request)
        async with state.reception.take(request, engine) as submission:
            record = await link_submission(engine, submission)
            return await link_response(engine, submission, record, form)

    @router.post(
        "/similarity",
        openapi_extra=LINK_BODY,
        responses=SIMILARITY_RESPONSES,
        response_model=None,
    )
    async def similarity(request: Request) -> Response:
        """Compare each sentence with each image: the matrix of cosine similarities."""
        engine = state.engine_now()
        async with state.reception.take(request, engine) as submission:
            record = await link_submission(engine, submission)
        return await engine.in_thread(json_response, similarity_record(record))

    @router.post("/alt", openapi_extra=ALT_BODY, responses=ALT_RESPONSES, response_model=None)
    async def alt(request: Request, format: AltForm = "json") -> Response:
        """Audit the alternative texts of an article, and offer its own sentences as texts.

        The answer is the record that `sightline alt --json` writes, or its report as text or as a
        page.
        """
        engine = state.engine_now()
        async with state.reception.take(request, engine, audit=True) as submission:
            return await alt_response(engine, submission, format)

    return router


def _operation(state: ServiceState) -> APIRouter:
    router = APIRouter(tags=["operation"])

    @router.get("/v1/models", responses=PLAIN_RESPONSES)
    async def models() -> ModelList:
        """The model that is loaded, and what one request may hold."""
        record = _model_record(state.engine_now(), state.configuration.limits)
        return ModelList.model_validate({"models": [record]})

    @router.head("/healthz", include_in_schema=False)
    @router.get("/healthz")
    async def healthz() -> Health:
        """Say that the process lives."""
        return Health(status="ok")

    @router.head("/readyz", include_in_schema=False)
    @router.get("/readyz", responses=PLAIN_RESPONSES)
    async def readyz() -> Health:
        """Say whether requests are answered: the model is loaded."""
        state.engine_now()
        return Health(status="ok")

    @router.get("/metrics", response_class=Response, responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Numbers."}
    })  # fmt: skip
    async def metrics() -> Response:
        """Numbers for Prometheus."""
        return Response(state.metrics.text(), media_type=MEDIA_TYPE)

    return router


def _model_record(engine: Engine, limits: ServiceLimits) -> dict[str, Any]:
    """What is said of a model."""
    model = engine.model
    return {
        "name": engine.shown_name,
        "backbone": model.backbone,
        "dimension": engine.dimension,
        "words": len(model.vocabulary) if isinstance(model, LinkModel) else None,
        "calibrated": model.calibration is not None,
        "limits": {name: getattr(limits, name) for name in _TOLD},
    }


def _check_parameters(request: Request) -> None:
    """Refuse what the route does not read in its address: unseen, its default would hold."""
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    for name, value in request.query_params.items():
        if name in known:
            continue
        if name in ArticleOptions.model_fields:
            raise invalid(name, f"belongs into the body (-F {name}={value[:20]})")
        raise invalid(name, "no such query parameter")


def _accepted(request: Request) -> Form:
    """The form that an Accept header asks for; JSON for what is not known."""
    for part in request.headers.get("accept", "").split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in _ACCEPTED:
            return _ACCEPTED[kind]
    return "json"
