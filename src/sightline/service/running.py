"""Runs the application in uvicorn, in one process or in several."""

from __future__ import annotations

import errno
import math
import os
import signal
import socket
from contextlib import suppress

import uvicorn

from sightline.link_records import open_model
from sightline.problems import SightlineError
from sightline.service.app import create_app
from sightline.service.configuration import Configuration
from sightline.service.logs import log_config

#: Seconds that an idle connection is kept.
_KEEP_ALIVE = 10
#: Without a sign of life for so long, one of several processes is replaced. On a busy machine the
#: usual 5 s are not enough to start.
_HEALTH_SECONDS = 60
_LAST_PORT = 65535


def run(configuration: Configuration, host: str, port: int, workers: int) -> None:
    """Serve until told to stop; requests that are under way are finished."""
    _check_listening(host, port)
    shared = {
        "host": host,
        "port": port,
        "log_config": log_config(),
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": _KEEP_ALIVE,
        "timeout_graceful_shutdown": math.ceil(configuration.limits.stop_seconds),
        "timeout_worker_healthcheck": _HEALTH_SECONDS,
        "workers": workers,
        "lifespan": "on",
    }
    if workers == 1:
        app = create_app(configuration)
        server = uvicorn.Server(uvicorn.Config(app, **shared))  # type: ignore[arg-type]
        with suppress(KeyboardInterrupt, SystemExit):  # uvicorn exits where it cannot listen
            _serve(server)
        if failure := app.state.service.failure:
            raise SightlineError(failure)
        if not server.started:
            raise SightlineError(
                f"The service cannot listen at {host}:{port}; name another --host or --port."
            )
        return
    # A model that cannot be loaded is told once, not by workers that are started again and again.
    open_model(configuration.model)
    uvicorn.run("sightline.service.app:from_environment", factory=True, **shared)  # type: ignore[arg-type]


def _check_listening(host: str, port: int) -> None:
    """Refuse a place where nothing can listen, before a log for machines begins."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as place:
            if os.name == "posix":  # as the server itself: a port that was just left is free
                place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            place.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            other = port + 1 if port < _LAST_PORT else port - 1
            raise SightlineError(f"Port {port} is in use; try --port {other}.") from None
        raise SightlineError(
            f"The service cannot listen at {host}:{port} ({error.strerror}); name another --host "
            "or --port."
        ) from None


def _serve(server: uvicorn.Server) -> None:
    """Run a server to its end; the signal that stopped it is not raised again."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    # Uvicorn ends by raising what it caught; a stop that was asked for is no failure.
    for number in handlers:
        signal.signal(number, signal.SIG_IGN)
    try:
        server.run()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
