"""`sightline serve`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.commands import completions
from sightline.commands.manners import examples
from sightline.commands.options import INPUT, WORK, FetchOption, known_model
from sightline.console import extra_needed, say
from sightline.problems import SightlineError

if TYPE_CHECKING:
    from sightline.service.configuration import Configuration

_MEGABYTE = 2**20

EXAMPLES = examples(
    ("On this machine; open http://127.0.0.1:8000", "sightline serve"),
    (
        "For others, who need the token in a file",
        "sightline serve --host 0.0.0.0 --token-file token.txt",
    ),
    ("With a corpus to look at, in two processes", "sightline serve --corpus CORPUS --workers 2"),
)

# Panels of `--help`, besides those that commands share.
_REACH = "Who can reach it"
_LIMITS = "Limits of a request"


def _limit(what: str, variable: str, least: float = 1) -> Any:
    """The shape of an option that limits what a request may cost."""
    return typer.Option(
        min=least, help=what, envvar=f"SIGHTLINE_MAX_{variable}", rich_help_panel=_LIMITS
    )


def serve(
    model: Annotated[
        str,
        typer.Option(
            help="A model folder, a CLIP or SigLIP folder, `default` or hf://owner/name.",
            envvar="SIGHTLINE_MODEL",
            autocompletion=completions.models,
            callback=known_model,
        ),
    ] = "default",
    host: Annotated[
        str,
        typer.Option(
            help="Where to listen; 0.0.0.0 for all.",
            envvar="SIGHTLINE_HOST",
            rich_help_panel=_REACH,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="Port to listen at; 0 for any that is free.",
            envvar="SIGHTLINE_PORT",
            rich_help_panel=_REACH,
        ),
    ] = 8000,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes, each with its model.",
            envvar="SIGHTLINE_WORKERS",
            rich_help_panel=WORK,
        ),
    ] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="Ask for the token in this file; or set SIGHTLINE_TOKEN.", rich_help_panel=_REACH
        ),
    ] = None,
    fetch: FetchOption = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Let pages of this origin read answers; repeatable.",
            rich_help_panel=_REACH,
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name that requests may use; repeatable.",
            rich_help_panel=_REACH,
        ),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="A corpus to look at on the web page; repeatable.", rich_help_panel=INPUT
        ),
    ] = None,
    max_body: Annotated[int, _limit("Megabytes of a request.", "BODY")] = 32,
    max_images: Annotated[int, _limit("Images of a document.", "IMAGES")] = 200,
    max_sentences: Annotated[int, _limit("Sentences of a document.", "SENTENCES")] = 5_000,
    max_pixels: Annotated[int, _limit("Pixels of an image.", "PIXELS")] = 50_000_000,
    max_seconds: Annotated[float, _limit("Seconds for a request.", "SECONDS", 0.1)] = 30.0,
    max_requests: Annotated[int, _limit("Requests under way at a time.", "REQUESTS")] = 64,
) -> None:
    """Serve linking over HTTP, with a web page.

    It listens on this machine only, unless --host says otherwise.
    """
    # Products of small matrices are slower with more threads, and each idle thread burns a core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with extra_needed("The service", "serve"):
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    from sightline.corpus import read
    from sightline.service.configuration import Configuration
    from sightline.service.limits import ServiceLimits

    for path in corpus or ():
        read(path)  # says what is wrong with it before a log for machines begins
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
    if sys.stderr.isatty():  # where the log is for machines
        shown = f"[{host}]" if ":" in host else host
        say(f"The page is at http://{shown}:{port}/ in a moment; Ctrl-C ends the service.")
    _run(configuration, host, port, workers)


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("SIGHTLINE_TOKEN") or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SightlineError(f"{file}: the token cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SightlineError(f"{file}: the token is not text in UTF-8.") from None
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
