"""The outermost layer of the service: request ids, logs, numbers, headers of every answer."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sightline.service.errors import ServiceError, problem_response
from sightline.service.logs import LOGGER, log
from sightline.service.metrics import Metrics

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
#: What nginx logs where the client left before it had its answer.
_CLIENT_LEFT = 499
#: What is counted under its own name.
_ROUTES = frozenset(
    (
        *("/v1/link", "/v1/similarity", "/v1/alt", "/v1/models", "/v1/page", "/v1/page/html"),
        *("/healthz", "/readyz", "/metrics", "/openapi.json", "/"),
    )
)
#: Headers of every answer that does not say otherwise itself.
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class _Seen:
    """What happened to one request."""

    request_id: str
    start: float = field(default_factory=time.monotonic)
    status: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class Observation:
    """Wraps the whole app; what is raised within becomes a 500 that names the request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope).get("x-request-id", "")
        sane = asked if _REQUEST_ID.fullmatch(asked) else secrets.token_hex(8)
        seen = _Seen(sane)
        scope.setdefault("state", {})["request_id"] = sane

        async def counted_receive() -> Message:
            message = await receive()
            seen.bytes_in += len(message.get("body", b""))
            return message

        async def counted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = sane
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            seen.bytes_out += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, counted_receive, counted_send)
        except asyncio.CancelledError:
            log("cancelled", logging.WARNING, request_id=sane, path=scope["path"])
            raise
        except ClientDisconnect:
            pass  # in the middle of its request: nobody is there to be answered
        except Exception:
            LOGGER.exception("failed", extra={"fields": {"request_id": sane}})
            if not seen.status:
                error = ServiceError(500, "The service failed; its log has the request's id.")
                await problem_response(error)(scope, counted_receive, counted_send)
        finally:
            self._note(scope, seen)

    def _note(self, scope: Scope, seen: _Seen) -> None:
        seconds = time.monotonic() - seen.start
        path, status = scope["path"], seen.status or _CLIENT_LEFT
        # Paths that somebody made up must not become numbers that are kept.
        route = path if path in _ROUTES else "other"
        method = scope["method"] if scope["method"] in ("GET", "POST") else "other"
        self.metrics.requests.labels(route, method, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        client = scope.get("client") or ("",)
        log(
            "request",
            request_id=seen.request_id,
            method=scope["method"],
            path=path[:200],
            status=status,
            seconds=round(seconds, 4),
            bytes_in=seen.bytes_in,
            bytes_out=seen.bytes_out,
            client=client[0],
        )
