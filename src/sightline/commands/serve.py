"""`sightline serve`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.commands.options import FetchOption
from sightline.console import extra_needed, say
from sightline.problems import SightlineError

if TYPE_CHECKING:
    from sightline.service.configuration import Configuration

_MEGABYTE = 2**20


def serve(
    model: Annotated[
        str,
        typer.Option(
            help="A model folder, a CLIP or SigLIP folder, or `default`.", envvar="SIGHTLINE_MODEL"
        ),
    ] = "default",
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 for all.", envvar="SIGHTLINE_HOST")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, envvar="SIGHTLINE_PORT")] = 8000,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes, each with its model.", envvar="SIGHTLINE_WORKERS")
    ] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Ask for the token in this file; or set SIGHTLINE_TOKEN."),
    ] = None,
    fetch: FetchOption = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this origin read answers; repeatable."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that requests may use; repeatable."),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="A corpus to look at on the web page; repeatable."),
    ] = None,
    max_body: Annotated[
        int, typer.Option(min=1, help="Megabytes of a request.", envvar="SIGHTLINE_MAX_BODY")
    ] = 32,
    max_images: Annotated[
        int, typer.Option(min=1, help="Images of a document.", envvar="SIGHTLINE_MAX_IMAGES")
    ] = 200,
    max_sentences: Annotated[
        int, typer.Option(min=1, help="Of a document.", envvar="SIGHTLINE_MAX_SENTENCES")
    ] = 5_000,
    max_pixels: Annotated[
        int, typer.Option(min=1, help="Of an image.", envvar="SIGHTLINE_MAX_PIXELS")
    ] = 50_000_000,
    max_seconds: Annotated[
        float, typer.Option(min=0.1, help="For a request.", envvar="SIGHTLINE_MAX_SECONDS")
    ] = 30.0,
    max_requests: Annotated[
        int, typer.Option(min=1, help="Under way at a time.", envvar="SIGHTLINE_MAX_REQUESTS")
    ] = 64,
) -> None:
    """Serve linking over HTTP, with a web page; listens on this machine only by default."""
    # Products of small matrices are slower with more threads, and each idle thread burns a core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with extra_needed("The service", "serve"):
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    from sightline.service.configuration import Configuration
    from sightline.service.limits import ServiceLimits

    usual = ServiceLimits()
    limits = ServiceLimits(
        body_bytes=max_body * _MEGABYTE,
        bodies_bytes=max(usual.bodies_bytes, 4 * max_body * _MEGABYTE),
        unpacked_bytes=max(usual.unpacked_bytes, 4 * max_body * _MEGABYTE),
        images=max_images,
        sentences=max_sentences,
        pixels=max_pixels,
        seconds=max_seconds,
        requests=max_requests,
    )
    configuration = Configuration(
        model=model,
        host=host,
        token=_token(token_file),
        fetch=fetch,
        cors=tuple(cors or ()),
        hosts=tuple(allowed_host or ()),
        corpora=tuple(str(path.resolve()) for path in corpus or ()),
        limits=limits,
    )
    if host not in ("127.0.0.1", "localhost", "::1") and configuration.token is None:
        say(f"Anybody who reaches {host} can use this service; --token-file asks for a token.")
    _run(configuration, host, port, workers)


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("SIGHTLINE_TOKEN") or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SightlineError(f"{file}: the token cannot be read ({error}).") from None
    if not token:
        raise SightlineError(f"{file}: the token is empty.")
    return token


def _run(configuration: Configuration, host: str, port: int, workers: int) -> None:
    from sightline.service.running import run

    configuration.to_environment()
    if workers == 1:
        run(configuration, host, port, workers)
        return
    with tempfile.TemporaryDirectory(prefix="sightline-metrics-") as folder:
        # Has to be known before the first number is made.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        run(configuration, host, port, workers)
