"""Fetching images for `--fetch`, from public addresses only.

A page that somebody else wrote chooses the addresses, so that a careless fetch would let it knock
at the doors of this machine's own network. Every address that a name stands for must be a public
one, the connection is made to the address that was checked, and each redirect is checked anew.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote, urljoin, urlsplit

from sightline.image_headers import recognise
from sightline.problems import SightlineError
from sightline.unpacking import image_extension

_LONGEST_ADDRESS, _LONGEST_HOST = 8_192, 253  # characters; of names, as the DNS has it
_MAX_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
# NAT64 (RFC 6052), 6to4 and ISATAP carry an IPv4 address, which is the one that is reached.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
# Public by Python 3.11's tables, yet no place for images: protocol assignments, among them the
# metadata service of Oracle's cloud; relays of 6to4; the host of Azure's machines; documentation.
_NEVER = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20"))
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What fetching may cost."""

    # Bytes of one image, and of all together.
    image_bytes: int = 50_000_000
    total_bytes: int = 500_000_000
    # From the first step to the last byte of one image, redirects included.
    seconds: float = 20.0
    # Of all images together.
    total_seconds: float = 300.0


class FetchError(SightlineError):
    """An image that was not fetched, and why."""


def is_public(address: Address) -> bool:
    """Say whether an address is one that anybody can reach, not one of this machine or network."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        isatap = int(address) >> 32 & 0xFFFFFFFF in _ISATAP
        if inner is None and (isatap or address in _NAT64):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.scope_id is not None or address.is_site_local:
            return False
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or any(address in network for network in _NEVER)
    )


@dataclass
class Fetcher:
    """Fetches the images of one run, within limits for each and for all; each URL once."""

    limits: FetchLimits = field(default_factory=FetchLimits)
    #: Which addresses may be reached; tests, whose server is on this machine, allow another.
    allows: Callable[[Address], bool] = is_public
    _bytes: int = 0
    _seconds: float = 0.0
    _cache: dict[str, bytes | FetchError] = field(default_factory=dict)

    def fetch(self, url: str) -> bytes:
        """Give the bytes of an image; raises `FetchError`."""
        if url not in self._cache:
            start = time.monotonic()
            try:
                self._cache[url] = self._fetch(url, start)
            except FetchError as error:
                self._cache[url] = error
            finally:
                self._seconds += time.monotonic() - start
        found = self._cache[url]
        if isinstance(found, FetchError):
            raise found
        return found

    def _fetch(self, url: str, start: float) -> bytes:
        if self._seconds > self.limits.total_seconds or self._bytes >= self.limits.total_bytes:
            raise FetchError("Not fetched: the limit on time or bytes for all images is reached.")
        end = start + self.limits.seconds
        for _ in range(_MAX_REDIRECTS + 1):
            target = _parse(url)
            try:
                answer = self._get(target, end)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise FetchError(f"Fetching {_short(url)} failed: {_said(error)}.") from error
            if isinstance(answer, bytes):
                return self._checked(answer, url)
            # A browser would not go from a secure page to an insecure one unseen; nor do we.
            try:
                following = urljoin(target.url, answer)
                scheme = urlsplit(following).scheme
            except ValueError as error:
                raise FetchError(f"{_short(url)} redirects to no valid address.") from error
            if target.scheme == "https" and scheme != "https":
                raise FetchError(f"{_short(url)} redirects from https to something less safe.")
            url = following
        raise FetchError(f"{_short(url)} redirects more than {_MAX_REDIRECTS} times.")

    def _checked(self, data: bytes, url: str) -> bytes:
        """Let through what begins like an image, whatever the server calls it."""
        self._bytes += len(data)
        if image_extension(data) is None:
            kind = recognise(data) or "of no known format"
            raise FetchError(f"{_short(url)} is not an image that can be read, but {kind}.")
        return data

    def _get(self, target: _Target, end: float) -> bytes | str:
        """Give the content, or where the server redirects to."""
        address = self._resolve(target)
        connection = _Connection(target, address, end)
        # A timeout of the socket begins anew with each byte, which a server can send one by one.
        alarm = threading.Timer(_left(end), connection.abort)
        alarm.daemon = True
        alarm.start()
        try:
            connection.request(
                "GET",
                target.path,
                headers={
                    "User-Agent": "sightline",
                    "Accept": "image/*",
                    "Accept-Encoding": "identity",
                    "Connection": "close",
                },
            )
            response = connection.getresponse()
            if response.status in _REDIRECTS and (location := response.getheader("Location")):
                return location
            if response.status != 200:
                raise FetchError(f"{_short(target.url)} answers with status {response.status}.")
            return self._body(response, target, end)
        finally:
            alarm.cancel()
            connection.close()

    def _body(self, response: http.client.HTTPResponse, target: _Target, end: float) -> bytes:
        most = min(self.limits.image_bytes, self.limits.total_bytes - self._bytes)
        data = response.read(most + 1)
        _left(end)  # an aborted connection looks like the end of the content
        if len(data) <= most:
            return data
        self._bytes += len(data)
        raise FetchError(f"{_short(target.url)} has more than {most:,} bytes, the limit.")

    def _resolve(self, target: _Target) -> str:
        """Give an address of the host; every address that it has must be allowed."""
        answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        addresses = [str(answer[4][0]) for answer in answers]
        for address in addresses:
            if not self.allows(ipaddress.ip_address(address)):
                raise FetchError(
                    f"{_short(target.url)} is not fetched: {address} is not a public address."
                )
        if not addresses:
            raise FetchError(f"{target.host} has no address.")
        return addresses[0]


@dataclass(frozen=True, slots=True)
class _Target:
    url: str
    scheme: str
    host: str
    port: int
    path: str


def _parse(url: str) -> _Target:
    """Take a URL apart; only http and https, without a user, at any port that is not special."""
    if len(url) > _LONGEST_ADDRESS:  # before it is looked into, which takes time
        raise FetchError(f"{_short(url[:200])} is not fetched: the address is too long.")
    if url.startswith(("//", "\\\\")):
        url = "https:" + url.replace("\\", "/")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if host and len(host) > _LONGEST_HOST:
            raise FetchError(f"{_short(url)} is not fetched: its host has too long a name.")
        name = host.encode("idna").decode() if host else ""
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    except (ValueError, UnicodeError) as error:
        raise FetchError(f"{_short(url)} is not a valid address.") from error
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not name:
        raise FetchError(f"{_short(url)} is not fetched: only http and https addresses are.")
    if parts.username is not None or parts.password is not None:
        raise FetchError(f"{_short(url)} is not fetched: it holds a user name or a password.")
    port = _PORTS[scheme] if port is None else port
    return _Target(url, scheme, name, port, f"{path}?{query}" if query else path)


class _Response(http.client.HTTPResponse):
    """An answer whose parts have a length: of a negative one all that comes would be read."""

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise http.client.HTTPException("a part of the answer has a negative length")
        return size


class _Connection(http.client.HTTPConnection):
    """A connection to an address that was checked, in the name of the host."""

    response_class = _Response

    def __init__(self, target: _Target, address: str, end: float) -> None:
        super().__init__(target.host, target.port)
        self.target, self.address, self.end = target, address, end
        # The response takes `sock` away; the alarm needs it still.
        self.open: socket.socket | None = None

    def connect(self) -> None:
        """Connect; the certificate must be the host's, not the address's."""
        plain = socket.create_connection((self.address, self.target.port), _left(self.end))
        self.sock = self.open = plain
        if self.target.scheme == "https":
            # The alarm ends what is in `open`, so that is the new socket before it talks.
            secure = ssl.create_default_context().wrap_socket(
                plain, server_hostname=self.target.host, do_handshake_on_connect=False
            )
            self.sock = self.open = secure
            secure.settimeout(_left(self.end))
            secure.do_handshake()
            secure.settimeout(_left(self.end))

    def abort(self) -> None:
        """End all waiting for the server; called from another thread."""
        if self.open is not None:
            with suppress(OSError):
                # Not that of the secure socket, which would take its state away from who waits.
                socket.socket.shutdown(self.open, socket.SHUT_RDWR)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("it takes too long")
    return left


def _said(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


def _short(url: str) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in url)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."
