"""Fetching: only public addresses, whatever a name, a redirect or a server says."""

import ipaddress
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

import pytest

from sightline import fetching
from sightline.fetching import Fetcher, FetchError, FetchLimits, is_public

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append((self.path, self.headers["Host"]))
        if self.path.startswith("/redirect/"):
            left = int(self.path.rpartition("/")[2])
            self.send_response(302)
            self.send_header("Location", f"/redirect/{left - 1}" if left > 1 else "/image.png")
            self.end_headers()
        elif self.path == "/elsewhere":
            self.send_response(301)
            self.send_header("Location", "http://10.0.0.1/image.png")
            self.end_headers()
        elif self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", unquote(self.path[4:]))
            self.end_headers()
        elif self.path == "/missing":
            self.send_error(404)
        elif self.path == "/negative":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")
            with suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b"\x89" * 100_000)
                    self.server.sent += 100_000
        elif self.path == "/parts":
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            self.wfile.write(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(PNG), PNG))
        elif self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"\x89")
                time.sleep(0.05)
        else:
            body = b"<!doctype html><p>no image" if self.path == "/page" else PNG
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextmanager
def listener(address):
    with ThreadingHTTPServer((address, 0), Handler) as running:
        running.seen, running.sent = [], 0
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


@pytest.fixture
def server():
    with listener("127.0.0.1") as running:
        yield running


def loopback(address):
    return address.is_loopback


def url(server, path, host="127.0.0.1"):
    return f"http://{host}:{server.server_port}{path}"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1",
        "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        # Metadata services of clouds: Oracle, Azure, Alibaba, Amazon (also by NAT64 and 6to4).
        "192.0.0.192", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::", "::ffff:168.63.129.16",
        # ISATAP, IPv4-compatible and -translated, local NAT64, 6to4 relays, documentation.
        "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1", "::127.0.0.1", "::ffff:0:127.0.0.1",
        "64:ff9b:1::7f00:1", "192.88.99.1", "3fff::1", "fe80::1%1", "0.1.2.3", "5f00::1",
    ],
)  # fmt: skip
def test_addresses_of_this_machine_or_network_are_not_public(address):
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111"])
def test_addresses_that_anybody_can_reach_are_public(address):
    assert is_public(ipaddress.ip_address(address))


def test_an_image_is_fetched_once(server):
    fetcher = Fetcher(allows=loopback)
    assert fetcher.fetch(url(server, "/image.png?a=1 2")) == PNG
    assert fetcher.fetch(url(server, "/image.png?a=1 2")) == PNG
    assert server.seen == [("/image.png?a=1%202", f"127.0.0.1:{server.server_port}")]


def test_this_machine_is_not_reached_by_any_of_its_names(server):
    names = ("127.0.0.1", "localhost", "2130706433", "127.1", "0x7f000001", "[::ffff:127.0.0.1]")
    for host in names:
        with pytest.raises(FetchError):
            Fetcher().fetch(url(server, "/image.png", host))
    assert server.seen == []


# Ways to write 127.0.0.1, some of which only other programs understand.
TRICKS = [
    "127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.0.0.1.", "127.1", "127.0.1",
    "2130706433", "0x7f000001", "0x7F.0.0.1", "0x7f.1", "017700000001", "0177.0.0.1", "0177.1",
    "00000177.0.0.1", "127.000.000.001", "0", "0.0.0.0", "00", "0x0", "4294967296", "6425673729",
    "127.0.0.1.nip.io", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "[::ffff:0.0.0.0]", "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[::1%lo]", "[::1%25lo]",
    "１２７.０.０.１", "127。0。0。1", "127．0．0．1", "①②⑦.⓪.⓪.①", "ｌｏｃａｌｈｏｓｔ",
    "127.0.0\t.1", "127.0\n.0.1", "127.0.0.1\0.example.org", "127.0.0.1%00.example.org",
    "%31%32%37.0.0.1", "a@127.0.0.1", "example.org@127.0.0.1", "example.org:80@127.0.0.1",
    "@127.0.0.1",
]  # fmt: skip


def test_no_trick_reaches_this_machine(server):
    reached = 0
    for host in TRICKS:
        address = url(server, "/image.png", host)
        for written in (address, address[5:], address.replace("http:", "HTTP:")):
            with pytest.raises(FetchError):
                Fetcher(FetchLimits(seconds=3)).fetch(written)
        assert server.seen == [], host
        # The control: where every address is allowed, many of them do get there.
        with suppress(FetchError):
            Fetcher(FetchLimits(seconds=3), lambda _: True).fetch(address)
        reached += bool(server.seen)
        server.seen.clear()
    assert reached >= 15


def test_no_redirect_reaches_an_address_that_is_not_allowed(server):
    """One address of this machine is allowed, another, with a listener of its own, is not."""
    with listener("127.0.0.2") as private:
        hosts = ("127.0.0.2", "2130706434", "0177.0.0.2", "0x7f000002", "127.2",
                 "[::ffff:127.0.0.2]", "127.0.0.2.", "a@127.0.0.2")  # fmt: skip
        targets = [url(private, "/image.png", host) for host in hosts]
        targets += [target[5:] for target in targets]  # with the scheme left out
        targets += ["file:///etc/hostname", "ftp://127.0.0.2/", "gopher://127.0.0.2/", "data:,x",
                    "javascript:1", "http://127.0.0.2:99999/", "http://[", "http://"]  # fmt: skip
        reached = 0
        for target in targets:
            start = url(server, f"/to/{quote(target, safe='')}")
            with pytest.raises(FetchError):
                Fetcher(FetchLimits(seconds=3), lambda a: str(a) == "127.0.0.1").fetch(start)
            assert private.seen == [], target
            with suppress(FetchError):
                Fetcher(FetchLimits(seconds=3), lambda _: True).fetch(start)
            reached += bool(private.seen)
            private.seen.clear()
        assert reached >= 10


def test_a_name_that_changes_its_address_after_the_check_gains_nothing(server, monkeypatch):
    """DNS rebinding: the first answer is public, all later ones are this machine."""
    proper, asked, connected = fetching.socket.getaddrinfo, [], []

    def resolve(host, *arguments, **named):
        if host == "rebind.example":
            asked.append(host)
            host = "93.184.216.34" if len(asked) == 1 else "127.0.0.1"
        return proper(host, *arguments, **named)

    def connect(address, *_):
        connected.append(address[0])
        raise OSError("no network in tests")

    monkeypatch.setattr(fetching.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(fetching.socket, "create_connection", connect)
    for _ in range(3):
        with pytest.raises(FetchError):
            Fetcher().fetch(url(server, "/image.png", "rebind.example"))
    assert connected == ["93.184.216.34"]
    assert len(asked) == 3


def test_proxies_of_the_environment_are_not_used(server, monkeypatch):
    """A proxy would look the name up again, where we cannot check it."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
    with pytest.raises(FetchError):
        Fetcher(FetchLimits(seconds=1)).fetch("http://10.0.0.1/a.png")
    assert server.seen == []


def test_one_private_address_among_public_ones_is_enough_to_refuse(server, monkeypatch):
    answers = [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("127.0.0.1", 80))]
    monkeypatch.setattr(fetching.socket, "getaddrinfo", lambda *_, **__: answers)
    with pytest.raises(FetchError, match=r"127\.0\.0\.1 is not a public address"):
        Fetcher().fetch("http://example.org/a.png")


def test_the_connection_is_made_to_the_checked_address(server, monkeypatch):
    """A second look-up could give another address than the one that was checked."""
    looked_up = []
    proper = fetching.socket.getaddrinfo

    def resolve(host, *arguments, **named):
        looked_up.append(host)
        return proper("127.0.0.1" if host == "example.org" else host, *arguments, **named)

    monkeypatch.setattr(fetching.socket, "getaddrinfo", resolve)
    fetched = Fetcher(allows=loopback).fetch(url(server, "/image.png", "example.org"))
    assert fetched == PNG
    assert looked_up.count("example.org") == 1
    assert server.seen == [("/image.png", f"example.org:{server.server_port}")]


def test_redirects_are_followed_and_checked(server):
    fetcher = Fetcher(allows=loopback)
    assert fetcher.fetch(url(server, "/redirect/5")) == PNG
    with pytest.raises(FetchError, match="redirects more than 5 times"):
        fetcher.fetch(url(server, "/redirect/6"))
    with pytest.raises(FetchError, match=r"10\.0\.0\.1 is not a public address"):
        fetcher.fetch(url(server, "/elsewhere"))


def test_content_decides_the_type(server):
    with pytest.raises(FetchError, match="but HTML"):
        Fetcher(allows=loopback).fetch(url(server, "/page"))


def test_limits_on_bytes_and_time(server):
    with pytest.raises(FetchError, match="more than 50 bytes"):
        Fetcher(FetchLimits(image_bytes=50), loopback).fetch(url(server, "/image.png"))
    start = time.monotonic()
    with pytest.raises(FetchError, match="failed"):
        Fetcher(FetchLimits(seconds=0.3), loopback).fetch(url(server, "/slow"))
    assert time.monotonic() - start < 2
    fetcher = Fetcher(FetchLimits(total_bytes=len(PNG)), loopback)
    assert fetcher.fetch(url(server, "/1.png")) == PNG
    with pytest.raises(FetchError, match="for all images"):
        fetcher.fetch(url(server, "/2.png"))


def test_parts_of_an_answer_have_a_length(server):
    assert Fetcher(allows=loopback).fetch(url(server, "/parts")) == PNG
    with pytest.raises(FetchError, match="negative length"):
        Fetcher(allows=loopback).fetch(url(server, "/negative"))
    time.sleep(0.2)
    assert server.sent < 10_000_000


def test_a_slow_handshake_ends_when_the_time_is_over():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(FetchError, match="failed"):
            address = f"https://127.0.0.1:{silent.getsockname()[1]}/a.png"
            Fetcher(FetchLimits(seconds=0.5), loopback).fetch(address)
    assert time.monotonic() - start < 3


def test_long_addresses_are_refused_before_anything_is_made_of_them():
    start = time.process_time()
    for address in ("http://" + "\ufdfa" * 500_000 + "/", "http://" + "a" * 254 + "/"):
        with pytest.raises(FetchError, match="too long"):
            Fetcher(allows=loopback).fetch(address)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "address",
    ["ftp://example.org/a", "file:///etc/passwd", "http://user:word@example.org/", "http://",
     "http://[", "gopher://x", "data:image/png;base64,AA", "dict://x:11211/",
     "http://a:99999/", "http://a:-1/", "http://127.0.0.1:0x50/", "jar:http://a!/b",
     "javascript:alert(1)", "http://\ud800/", "http://a/\ud800", "http://a/?\ud800"],
)  # fmt: skip
def test_other_addresses_are_refused(address):
    with pytest.raises(FetchError):
        Fetcher(allows=loopback).fetch(address)


def test_a_server_that_says_no(server):
    with pytest.raises(FetchError, match="status 404"):
        Fetcher(allows=loopback).fetch(url(server, "/missing"))
    with pytest.raises(FetchError, match="failed"):
        Fetcher(allows=loopback).fetch("http://127.0.0.1:1/a.png")
