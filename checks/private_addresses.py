"""Tries hundreds of ways to make `fetching` connect to an address that is not public.

    python checks/private_addresses.py [--list]

For each address of this machine, of private networks and of the metadata services of clouds, every
way to write it that some program understands: decimal, octal, hexadecimal and short forms, with
overflows and zeros, in IPv6 (mapped, compatible, translated, NAT64, 6to4, ISATAP, Teredo, zones),
in other digits and dots, escaped, behind user names, backslashes, tabs; names that stand for it,
also one of several and by turns (rebinding); redirects to all of them. Two listeners, on 127.0.0.1
and ::1, must see nothing, and no connection may be tried but to addresses that this file's own list
takes for public. The control: where every address is allowed, the listeners are reached in many of
these ways, and an allowed address is. Exit code 1 if an address escapes or the control fails. No
name is looked up in the network. Linux only: other systems have one address of 127.0.0.0/8 alone.
"""

import argparse
import ipaddress
import socket
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

from sightline import fetching
from sightline.fetching import Fetcher, FetchError, FetchLimits

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
IPV4 = ["127.0.0.1", "127.8.9.10", "0.0.0.0", "10.1.2.3", "172.16.0.9", "172.31.255.1",
        "192.168.0.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200",
        "192.0.0.192", "168.63.129.16", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "192.0.2.7", "203.0.113.9"]  # fmt: skip
IPV6 = ["::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1",
        "100::1", "3fff::1", "5f00::1", "2001:2::1"]  # fmt: skip
# The special registries of IANA, written out: not the tables that `fetching` goes by.
SPECIAL = [ipaddress.ip_network(one) for one in (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "168.63.129.16/32",
    "::/3", "2001:db8::/32", "3fff::/20", "4000::/2", "8000::/1", "2001::/32", "2001:2::/48",
)]  # fmt: skip
# The zeros of fullwidth, bold, double-struck, monospace, Arabic and Devanagari digits.
DIGITS = (0xFF10, 0x1D7CE, 0x1D7D8, 0x1D7F6, 0x660, 0x966)
SCHEMES = ["file://{}/etc/passwd", "ftp://{}/", "gopher://{}:70/_x", "dict://{}:11211/", "ldap://{}/",
           "jar:http://{}!/a", "netdoc://{}/", "data:text/html,{}", "blob:http://{}/x", "ws://{}/",
           "view-source:http://{}/", "sftp://{}/", "unix:///{}", "javascript:'{}'"]  # fmt: skip


def in_ipv4(address: str) -> list[str]:
    """Ways to write an IPv4 address as one."""
    a, b, c, d = map(int, address.split("."))
    number = int(ipaddress.IPv4Address(address))
    ways = [
        address, f"{address}.", f"{address}..", str(number), hex(number), f"0X{number:x}",
        f"0{number:o}", f"00{number:o}", str(number + 2**32), str(number + 2**64),
        f"0x{number:016x}",
        f"{a}.{b}.{c * 256 + d}", f"{a}.{(b << 16) + (c << 8) + d}", f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a:#x}.{b}.0{c:o}.{d}",
        f"{a:03d}.{b:03d}.{c:03d}.{d:03d}",
        f"{a:#010x}.{b}.{c}.{d}", f"0000{a:o}.{b}.{c}.{d}", f"{a + 256}.{b}.{c}.{d + 256}",
        f"{a}.{b}.{c}.{d:#x}", f"{a}.0x{(b << 16) + (c << 8) + d:x}", f"+{a}.{b}.{c}.{d}",
        f" {address}", f"{address} ", address.replace(".", "%2e"),
        f"%{ord(address[0]):x}{address[1:]}",
        "".join(f"%{ord(sign):02x}" for sign in address), f"{address}%00.example.org",
        f"{address}\0.example.org", f"{address}%0d%0a", f"{address[0]}\t{address[1:]}",
        f"{address[:-1]}\n{address[-1]}", f"{address[:2]}\u00ad{address[2:]}", f"\u200b{address}",
        *(address.replace(".", dot) for dot in "。．｡․"),
    ]  # fmt: skip
    alphabets = ["".join(chr(start + digit) for digit in range(10)) for start in DIGITS]
    for alphabet in (*alphabets, "⓪①②③④⑤⑥⑦⑧⑨"):
        ways += ["".join(alphabet[int(s)] if s.isdigit() else s for s in address)]
    return ways


def in_ipv6(address: str) -> list[str]:
    """Ways to carry an IPv4 address in an IPv6 one."""
    number = int(ipaddress.IPv4Address(address))
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    both = ["::ffff:{}", "::{}", "::ffff:0:{}", "64:ff9b::{}", "64:ff9b:1::{}", "0:0:0:0:0:ffff:{}",
            "fe80::5efe:{}", "2606:4700::5efe:{}", "2606:4700::200:5efe:{}", "::FFFF:{}",
            "0::0:{}"]  # fmt: skip
    ways = [way.format(form) for way in both for form in (address, f"{high}:{low}")]
    ways += [f"2002:{high}:{low}::", f"2002:{high}:{low}::1", "2001:0:4136:e378:8000:63bf:"
             f"{number >> 16 ^ 0xFFFF:x}:{number & 0xFFFF ^ 0xFFFF:x}"]  # fmt: skip
    return [f"[{way}]" for way in ways] + [f"[::ffff:{address}%25lo]", f"[::ffff:{address}%1]"]


def urls(host: str, port: int) -> list[str]:
    """Ways to put a host into an address."""
    return [f"http://{host}:{port}/a.png", f"https://{host}:{port}/a.png"]


def tricks(address: str, port: int) -> list[str]:
    """Addresses that one program reads in another way than the next."""
    at, good = f"{address}:{port}", "93.184.216.34"
    return [
        f"http://{good}@{at}/", f"http://{good}:80@{at}/", f"http://@{at}/", f"http://a:b@{at}/",
        f"http://{at}#@{good}/", f"http://{at}?@{good}/", f"http://{at}\\@{good}/",
        f"http://{good}\\@{at}/", f"http://{good}#@{at}/", f"http://{good}?@{at}/",
        f"http://{good}%40{at}/", f"http://{good}&@{at}/", f"http://{at}%23@{good}/", f"http:{at}/",
        f"http:/{at}/", f"http:///{at}/", f"http:////{at}/", f"http:\\\\{at}\\", f"//{at}/",
        f"\\\\{at}\\a", f"/\\{at}/", f"HTTP://{at}/", f"hTTp://{at}/", f" http://{at}/", f"\thttp://{at}/",
        f"ht\ntp://{at}/", f"http\t://{at}/", f"http://\t{at}/", f"http://{at}\t/", f"http://{address}:0{port}/",
        f"http://{address}:{port}:80/", f"http://{address}:{port}@80/", f"http://[{address}]:{port}/",
        f"http://({address}):{port}/", f"http://{address},{good}:{port}/", f"http://{address};{good}/",
        f"http://{address}:{port}%2f@{good}/", f"http://{good}/../../{at}/", f"http://{at}/%0d%0aHost:%20x",
        f"url:http://{at}/", f"http://{at}", f"http://{address}\u3002:{port}/", f"http://{address}\uff0f{good}/",
        f"http://{good}\uff20{at}/", f"http://{good}\ufe55@{at}/", f"http://{at}\u2044@{good}/",
        *(scheme.format(at) for scheme in SCHEMES),
    ]  # fmt: skip


class Names:
    """Names that stand for private addresses; what is a number is read as the system reads it."""

    def __init__(self, proper) -> None:
        self.proper, self.asked = proper, {}

    def __call__(self, host, port, *arguments, **named):
        """Be `socket.getaddrinfo`."""
        text = host.decode() if isinstance(host, bytes) else str(host)
        answers = self.answers(text.rstrip(".").lower())
        if answers is None:
            named["flags"] = named.get("flags", 0) | socket.AI_NUMERICHOST
            return self.proper(host, port, *arguments, **named)
        return [one for ip in answers for one in self.proper(ip, port, *arguments, **named)]

    def answers(self, name: str) -> list[str] | None:
        """The addresses of a name that is ours."""
        self.asked[name] = self.asked.get(name, 0) + 1
        if name in ("localhost", "localhost.localdomain", "ip6-localhost", "loopback"):
            return ["127.0.0.1"]
        if name.endswith(".nip.example"):
            return [name.removesuffix(".nip.example").replace("-", ":" if "--" in name else ".")]
        if name.endswith(".both.example"):
            return ["93.184.216.34", name.removesuffix(".both.example").replace("-", ".")]
        if name.endswith(".rebind.example"):
            inner = name.removesuffix(".rebind.example").replace("-", ".")
            return ["93.184.216.34"] if self.asked[name] == 1 else [inner]
        return None


NAMES = ["localhost", "LOCALHOST", "localhost.", "localhost.localdomain", "ip6-localhost",
         "loopback", "ｌｏｃａｌｈｏｓｔ", "ⓛocalhost", "localho\u00adst", "lo\tcalhost",
         "0", "0x0", "00", "[::]", "[0:0:0:0:0:0:0:1]", "[::1%lo]", "[::1%25lo]", "[0000::0001]",
         "[::0.0.0.1]", "[::ffff:0:0]"]  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """Notes who came; `/to/` redirects."""

    def do_GET(self):
        """Answer with an image, or send on."""
        self.server.seen.append(self.path)
        to = self.path.startswith("/to/")
        self.send_response(302 if to else 200)
        if to:
            # As servers send what is not ASCII: the bytes of UTF-8.
            place = unquote(self.path[4:]).encode("utf-8", "replace").decode("latin-1")
            self.send_header("Location", place.replace("\r", "").replace("\n", ""))
        self.end_headers()
        self.wfile.write(PNG)

    def log_message(self, *_):
        """Say nothing."""


def listening(address: str, port: int = 0):
    """A listener in a thread of its own."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = type("Server", (ThreadingHTTPServer,), {"address_family": family})
    running = server((address, port), Handler)
    running.seen, running.daemon_threads = [], True
    threading.Thread(target=running.serve_forever, daemon=True).start()
    return running


class Check:
    """All attempts, and what came of them."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.door = listening("127.0.0.1")
        self.port = self.door.server_port
        self.doors = [self.door]
        with suppress(OSError):  # no IPv6 here
            self.doors.append(listening("::1", self.port))
        self.first = listening("127.0.0.77")  # an allowed address that redirects
        self.connected: list[str] = []
        self.proper = socket.create_connection
        self.tried = self.escaped = self.reached = 0

    def connect(self, address, *arguments, **named):
        """Note a connection; only those to this machine are made, there is nobody else."""
        self.connected.append(str(address[0]))
        if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
            raise OSError("not connected: this is a check")
        return self.proper(address, *arguments, **named)

    def attempt(self, url: str, allows=fetching.is_public) -> None:
        """Fetch an address; nobody but an allowed address may be reached."""
        self.tried += 1
        self.connected.clear()
        wrong = None
        try:
            # What is fetched from the allowed address itself is no escape.
            Fetcher(FetchLimits(seconds=3), allows).fetch(url)
        except FetchError:
            pass
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        private = [one for one in self.connected if one != "127.0.0.77" and self.is_special(one)]
        seen = any(door.seen for door in self.doors)
        if wrong or private or seen:
            self.escaped += 1
            print(f"ESCAPED {url!r}: {wrong}, connected to {self.connected}")
        elif self.shown:
            print(f"refused {url!r}")
        for door in self.doors:
            door.seen.clear()

    @staticmethod
    def is_special(address: str) -> bool:
        """By this file's own list."""
        one = ipaddress.ip_address(address.partition("%")[0])
        return any(one.version == network.version and one in network for network in SPECIAL)

    def control(self, url: str) -> None:
        """Fetch with every address allowed; counts those that arrive."""
        with suppress(FetchError):
            Fetcher(FetchLimits(seconds=3), lambda _: True).fetch(url)
        self.reached += any(door.seen for door in self.doors)
        for door in self.doors:
            door.seen.clear()


def all_urls(port: int) -> list[str]:
    """Every attempt, each once."""
    hosts = [way for address in IPV4 for way in (*in_ipv4(address), *in_ipv6(address))]
    hosts += [f"[{address}]" for address in IPV6] + NAMES
    for address in IPV4[:8]:
        dashed = address.replace(".", "-")
        hosts += [f"{dashed}.nip.example", f"{dashed}.both.example"]
    found = [url for host in hosts for url in urls(host, port)]
    found += [trick for address in ("127.0.0.1", "[::1]", "169.254.169.254", "localhost")
              for trick in tricks(address, port)]  # fmt: skip
    return list(dict.fromkeys(found))


def main() -> int:
    """Run all attempts and the control; print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="print every attempt")
    check = Check(parser.parse_args().list)
    fetching.socket.getaddrinfo = Names(socket.getaddrinfo)
    fetching.socket.create_connection = check.connect
    attempts = all_urls(check.port)
    for url in attempts:
        check.attempt(url)
    direct = check.tried
    start = f"http://127.0.0.77:{check.first.server_port}/to/"
    plain = [url for url in attempts if url.startswith(("http:", "//")) or "://" not in url]
    for url in plain:
        check.attempt(start + quote(url, safe=""), lambda one: str(one) == "127.0.0.77")
    redirected = check.tried - direct
    for address in IPV4[:8]:
        host = f"{address.replace('.', '-')}.rebind.example"
        for _ in range(3):
            check.attempt(f"http://{host}:{check.port}/a.png")
    rebound = check.tried - direct - redirected
    for url in plain:
        check.control(url)
    first = check.reached
    for url in plain:
        check.control(start + quote(url, safe=""))
    own = f"http://127.0.0.1:{check.port}/a.png"
    allowed = Fetcher(allows=lambda one: one.is_loopback).fetch(own)
    print(
        f"{direct:,} addresses, {redirected:,} redirects, {rebound} rebindings: {check.escaped} "
        f"escaped; control: {first:,} addresses and {check.reached - first:,} redirects arrive "
        f"where all are allowed, an allowed one {'arrives' if allowed == PNG else 'does not'}"
    )
    good = not check.escaped and first > 30 and check.reached - first > 30 and allowed == PNG
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
