"""The application: routes, layers around them, and the model that is loaded while they start."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from sightline import __version__
from sightline.problems import SightlineError
from sightline.service.admission import Admission
from sightline.service.configuration import Configuration
from sightline.service.corpus_view import CorpusView
from sightline.service.engine import load_engine
from sightline.service.errors import ServiceError, from_request_faults, problem_response
from sightline.service.logs import log
from sightline.service.metrics import Metrics
from sightline.service.observation import Observation
from sightline.service.reader_pool import ReaderPool
from sightline.service.routes import api_routes, link_upload
from sightline.service.state import ServiceState
from sightline.service.submissions import Reception
from sightline.service.web import page_routes, web_routes

_DESCRIPTION = "Finds which sentence each image of a document belongs to."


def from_environment() -> FastAPI:
    """The application of a worker process."""
    return create_app(Configuration.from_environment())


def create_app(configuration: Configuration) -> FastAPI:
    """The application; its lifespan loads the model."""
    limits = configuration.limits
    metrics = Metrics()
    reception = Reception(
        Path(tempfile.gettempdir()),
        ReaderPool(os.cpu_count() or 1, limits),
        limits,
        configuration.fetch,
        asyncio.Semaphore(limits.articles),
    )
    state = ServiceState(configuration, metrics, reception)
    app = FastAPI(
        title="Sightline",
        version=__version__,
        description=_DESCRIPTION,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=partial(_lifespan, state=state),
    )
    app.state.service = state
    app.include_router(api_routes(state))
    app.include_router(page_routes())
    _add_errors(app)
    # The last layer is the outermost.
    app.add_middleware(
        Admission,
        limits=limits,
        metrics=metrics,
        is_ready=lambda: state.engine is not None,
        token=configuration.token,
        hosts=configuration.allowed_hosts,
    )
    if configuration.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(configuration.cors),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.add_middleware(Observation, metrics=metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI, state: ServiceState) -> AsyncIterator[None]:
    """Load the model while the first requests may already ask how it goes."""
    with tempfile.TemporaryDirectory(prefix="sightline-serve-") as folder:
        state.reception = replace(state.reception, folder=Path(folder))
        views: list[CorpusView] = []
        loading = asyncio.create_task(_load(app, state, views))
        try:
            yield
        finally:
            loading.cancel()
            with suppress(asyncio.CancelledError):
                await loading
            for view in views:
                await asyncio.to_thread(view.stop)
            await state.reception.readers.close()
            if state.engine is not None:
                await state.engine.stop()
            log("stopped")


async def _load(app: FastAPI, state: ServiceState, views: list[CorpusView]) -> None:
    configuration = state.configuration
    try:
        engine = await asyncio.to_thread(
            load_engine, configuration.model, configuration.limits, state.metrics
        )
        for corpus in configuration.corpora:
            opened = partial(CorpusView, Path(corpus), engine.model, engine.pool)
            views.append(await asyncio.to_thread(opened))
        await state.reception.readers.start()
    except (SightlineError, OSError) as error:
        state.failure = str(error)
        log("the model cannot be loaded", logging.ERROR, reason=str(error))
        # Nothing will ever be answered; whoever started the service shall see that.
        os.kill(os.getpid(), signal.SIGTERM)
        return
    # Only now, because these routes ask for views that need the model.
    app.include_router(web_routes(link_upload(state), views))
    engine.start()
    state.engine = engine
    state.metrics.ready.set(1)
    log("ready", model=engine.name, backbone=engine.model.backbone)


def _add_errors(app: FastAPI) -> None:
    """Every error is problem details."""

    @app.exception_handler(ServiceError)
    async def service_error(_: Request, error: ServiceError) -> Response:
        return problem_response(error)

    @app.exception_handler(RequestValidationError)
    async def query_error(_: Request, error: RequestValidationError) -> Response:
        return problem_response(from_request_faults(error.errors()))

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        return problem_response(ServiceError(error.status_code, str(error.detail), (), headers))
