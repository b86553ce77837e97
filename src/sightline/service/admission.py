"""Who is let in, with how much, and for how long.

Every request: the host that it names and the token. Requests that make work also: the model must
be loaded, there must be room, the body is counted as it arrives, and the work is cancelled when
the time is up or the client has left. A refused request is told before it costs anything.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sightline.service.errors import ServiceError, busy, problem_response, too_large
from sightline.service.limits import ServiceLimits
from sightline.service.metrics import Metrics
from sightline.service.pace import Pace

_ALWAYS_OPEN = frozenset(("/healthz", "/readyz"))
#: The files of the web page, which hold nothing of anybody; the page itself sends the token.
_PAGE, _PAGE_FILES = "/", "/page/"
#: Of a refused request, the rest of the body is read so long and so far, because a client that is
#: still sending does not see the answer before.
_DRAIN_SECONDS = 5.0
#: So many requests are let in however slow they are; further ones if all that are under way can be
#: expected to be answered in this share of the time limit.
_ALWAYS_ROOM = 8
_SAFE_SHARE = 0.6
#: A body that after so many seconds has come slower than this, in bytes a second, gives its place
#: to a request that finds none: somebody may open connections only to hold them.
_SLOW_SECONDS, _SLOW_BYTES = 2.0, 4_096


class Admission:
    """Lets requests in or refuses them."""

    def __init__(
        self,
        app: ASGIApp,
        limits: ServiceLimits,
        metrics: Metrics,
        is_ready: Callable[[], bool],
        token: str | None = None,
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        """Without `hosts`, a request may name any."""
        self.app = app
        self.limits = limits
        self.metrics = metrics
        self.is_ready = is_ready
        self.token = token.encode() if token else None
        self.hosts = hosts
        self.active = 0
        self.held_bytes = 0
        self.arriving: set[_Body] = set()
        self.pace = Pace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body(self, receive, Headers(scope=scope).get("expect", ""))
        try:
            self._check_sender(scope)
            if scope["path"].startswith("/v1/") and not self.is_ready():
                raise busy(503, "The model is not loaded yet.")
            if scope["method"] == "POST":
                self._check_room(scope)
                await self._admit(scope, body, send)
            else:
                await self.app(scope, receive, send)
        except ServiceError as error:
            await body.drain()
            await problem_response(error)(scope, receive, send)

    def _check_sender(self, scope: Scope) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        if self.hosts and path not in _ALWAYS_OPEN:
            # A page elsewhere may have its name resolved to this machine (DNS rebinding).
            host = headers.get("host", "").lower()
            name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
            if name not in self.hosts:
                raise ServiceError(421, f"This service is not called {name[:100]!r}.")
        is_page = scope["method"] in ("GET", "HEAD") and (
            path == _PAGE or path.startswith(_PAGE_FILES)
        )
        if self.token is None or is_page or path in _ALWAYS_OPEN:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        sent = given.strip().encode("utf-8", "replace")
        if scheme.lower() != "bearer" or not hmac.compare_digest(sent, self.token):
            raise ServiceError(
                401,
                "This service needs a token: Authorization: Bearer TOKEN.",
                [("Authorization", "no token, or not the right one")],
                {"WWW-Authenticate": "Bearer"},
            )

    def _check_room(self, scope: Scope) -> None:
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > self.limits.body_bytes:
            raise self.body_error()
        slow = [body for body in self.arriving if body.is_slow()]
        working = self.active - len(slow)
        wait = min(self.pace.seconds(working), self.limits.seconds)
        # What cannot be in time anyway would only keep the others from it.
        expected = self.pace.seconds(working + 1)
        if working >= _ALWAYS_ROOM and expected > _SAFE_SHARE * self.limits.seconds:
            words = f"{working} requests are under way, and take too long already."
            raise busy(429, words, wait)
        if self.active >= self.limits.requests:
            if not slow:
                words = f"{self.active} requests are under way, as many as may be."
                raise busy(429, words, wait)
            min(slow, key=lambda body: body.began).push_out()

    def body_error(self) -> ServiceError:
        """The error for a body over the limit."""
        return too_large("body", f"The body has more than {self.limits.body_bytes:,} bytes.")

    async def _admit(self, scope: Scope, body: _Body, send: Send) -> None:
        """Run the app until it is done, the time is up, or the client has left."""
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if not started:
                await body.drain()
                started = True
                if message["status"] == 200:
                    self.pace.answer()
            await send(message)

        if not self.active:
            self.pace.begin()
        self.active += 1
        self.arriving.add(body)
        self.metrics.active.set(self.active)
        work = asyncio.ensure_future(self.app(scope, body.receive, sending))
        leaving = asyncio.ensure_future(body.client_leaves())
        try:
            await asyncio.wait(
                (work, leaving),
                timeout=self.limits.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            # First, because the app takes it for a client that has left, whom nobody answers.
            if body.is_pushed_out and not started:
                await _cancel(work)
                raise busy(503, "The body comes too slowly, and others wait.")
            if work.done():
                await work
            elif not leaving.done() and not started:
                await _cancel(work)
                body.abandon()
                words = f"The request takes longer than {self.limits.seconds:g} s."
                raise busy(503, words, self.pace.seconds(self.active))
        finally:
            self.arriving.discard(body)
            await _cancel(work)
            await _cancel(leaving)
            self.active -= 1
            self.held_bytes -= body.size
            self.metrics.active.set(self.active)


class _Body:
    """The body of one request on its way in."""

    def __init__(self, admission: Admission, receive: Receive, expect: str) -> None:
        self.admission = admission
        self._receive = receive
        self._waits = expect.lower() == "100-continue"
        self._complete = asyncio.Event()
        self._left = asyncio.Event()
        self._begun = False
        self.size = 0
        self.began = time.monotonic()
        self.is_pushed_out = False

    def is_slow(self) -> bool:
        """Whether it has come so slowly that others should not wait for it."""
        seconds = time.monotonic() - self.began
        return seconds > _SLOW_SECONDS and self.size < _SLOW_BYTES * seconds

    def push_out(self) -> None:
        """Give its place to another."""
        self.is_pushed_out = True
        self.admission.arriving.discard(self)
        self._complete.set()
        self._left.set()

    async def receive(self) -> Message:
        """The next piece; raises `ServiceError` if that is one too many."""
        if self._complete.is_set():
            await self._left.wait()
            return {"type": "http.disconnect"}
        self._begun = True
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._left.set()
            self._complete.set()
            return message
        if not message.get("more_body", False):
            self._complete.set()
            self.admission.arriving.discard(self)
        self._count(len(message.get("body", b"")))
        return message

    def _count(self, size: int) -> None:
        self.size += size
        self.admission.held_bytes += size
        limits = self.admission.limits
        if self.size > limits.body_bytes:
            raise self.admission.body_error()
        if self.admission.held_bytes > limits.bodies_bytes:
            raise busy(503, "The requests under way have too many bytes together.")

    async def client_leaves(self) -> None:
        """Wait until the client has closed the connection."""
        await self._complete.wait()
        while not self._left.is_set():
            if (await self._receive())["type"] == "http.disconnect":
                self._left.set()

    def abandon(self) -> None:
        """Wait for no more of a body that was too long in coming."""
        self._complete.set()

    async def drain(self) -> None:
        """Throw the rest of the body away, if the client is sending it anyway."""
        if self._complete.is_set() or (self._waits and not self._begun):
            return
        dropped, most = 0, 2 * self.admission.limits.body_bytes
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while dropped <= most:
                    message = await self._receive()
                    dropped += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        break
        self._complete.set()


async def _cancel(task: asyncio.Future[None]) -> None:
    """Cancel a task and wait for it; what it has to say is of no interest any more."""
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
