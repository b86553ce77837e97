"""Ten times as much as the service takes, for a minute, from good clients and bad ones.

    python checks/overload.py [--model MODEL] [--seconds 60] [--times 10] [--requests 64]

Starts `sightline serve` and ten clients for each request that it has room for. Of twenty clients

    11  send documents of 5 photographs, each a new one, as JSON
    3   upload an article with its images as a zip
    2   trickle a body, a byte a second
    1   leaves in the middle of its body
    1   sends more than the limit, announced or in pieces
    1   sends a bomb: an archive that swells, a picture of 49 million pixels in 50 kB
    1   sends nonsense

one request after the other, at once however they were answered. A process of its own asks for
/healthz all along, and a server that does nothing, to see how late this machine itself makes an
answer. Exit code 1 unless every answer is 200, 413, 422, 429 or 503, /healthz always answered
within a second more than that server, the memory of the service and all its children stayed below
2 GB, good requests were served meanwhile, and after it a request is, with nothing left behind.
Without a model, one of random weights is made. Linux only.
"""

import argparse
import asyncio
import base64
import io
import json
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from PIL import Image
from service_helpers import ARTICLE, Service, archive, photograph, tiny_model

ALLOWED = {200, 413, 422, 429, 503}
HEALTHY_SECONDS = 1.0
MOST_BYTES = 2_000_000_000
KINDS = [*["document"] * 11, *["upload"] * 3, *["slow"] * 2, "leaves", "large", "bomb", "nonsense"]
_JSON, _FORM = "application/json", "multipart/form-data; boundary=b"
_LARGE = 40 * 2**20
_SENTENCES = json.dumps(["A dog runs over the grass.", "A cat sleeps on the sofa."] * 5)


class Load:
    """All clients, and what they were answered."""

    def __init__(self, service: Service, seconds: float) -> None:
        self.service = service
        self.seconds = seconds
        self.end = 0.0
        self.statuses: dict[str, Counter] = defaultdict(Counter)
        self.slowest = 0.0
        self.bodies = _bodies()
        # Photographs differ by a comment, so that none is in the cache and none costs us much.
        pictures = (photograph(number, (320, 240)) for number in range(60))
        self.photographs = [base64.b64encode(picture[2:]).decode() for picture in pictures]
        self.sent = 0

    async def run(self, clients: int) -> None:
        """Have all clients at it until the end."""
        self.end = time.monotonic() + self.seconds
        kinds = [KINDS[number % len(KINDS)] for number in range(clients)]
        await asyncio.gather(*(self._client(kind) for kind in kinds))

    async def _client(self, kind: str) -> None:
        while time.monotonic() < self.end:
            start = time.monotonic()
            try:
                async with asyncio.timeout(90):
                    status = await self._request(kind)
            except TimeoutError:
                status = "no answer in 90 s"
            except OSError as error:
                status = type(error).__name__
            self.statuses[kind][status] += 1
            self.slowest = max(self.slowest, time.monotonic() - start)
            # Who leaves does not wait for an answer; a flood of such is another matter.
            await asyncio.sleep(1 if kind == "leaves" else 0.05)

    async def _request(self, kind: str) -> int | str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.service.port)
        try:
            if kind == "slow":
                return await self._trickle(reader, writer)
            if kind == "large":
                return await self._large(reader, writer)
            body, media = self._document() if kind == "document" else self._other(kind)
            writer.write(_head(media, len(body)))
            if kind == "leaves":
                writer.write(body[: len(body) // 2])
                await writer.drain()
                return "left"
            writer.write(body)
            return await _status(reader)
        finally:
            writer.close()

    def _document(self) -> tuple[bytes, str]:
        images = []
        for _ in range(5):
            self.sent += 1
            # The start of a JPEG and a comment, 15 bytes, so that base64 needs no padding.
            start = b"\xff\xd8\xff\xfe\x00\x0b%09d" % self.sent
            rest = self.photographs[self.sent % len(self.photographs)]
            images.append(f'{{"data": "{base64.b64encode(start).decode()}{rest}"}}')
        return f'{{"sentences": {_SENTENCES}, "images": [{", ".join(images)}]}}'.encode(), _JSON

    def _other(self, kind: str) -> tuple[bytes, str]:
        self.sent += 1
        choices = self.bodies[kind]
        return choices[self.sent % len(choices)]

    async def _trickle(self, reader, writer) -> int | str:
        """A body of a megabyte at a byte a second, until there is an answer."""
        writer.write(_head(_JSON, 2**20))
        answer = asyncio.ensure_future(_status(reader))
        while not answer.done():
            if time.monotonic() > self.end + 60:
                answer.cancel()
                return "never answered"
            writer.write(b" ")
            await asyncio.wait([answer], timeout=1)
        return answer.result()

    async def _large(self, reader, writer) -> int | str:
        """More than may be sent: announced as such, or in pieces of which nobody knows the end."""
        self.sent += 1
        chunked = self.sent % 2
        writer.write(_head(_JSON, None if chunked else _LARGE))
        answer = asyncio.ensure_future(_status(reader))
        piece = b" " * 2**20
        sent = 0
        while not answer.done() and sent < _LARGE:
            writer.write(b"100000\r\n" + piece + b"\r\n" if chunked else piece)
            sent += len(piece)
            await writer.drain()
        if chunked and not answer.done():
            writer.write(b"0\r\n\r\n")
        return await answer


def _head(media: str, length: int | None) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = ("POST /v1/link HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {media}", size, "", "")
    return "\r\n".join(lines).encode()


async def _status(reader) -> int | str:
    try:
        line = await reader.readline()
    except OSError:
        line = b""
    return int(line.split()[1]) if line else "no answer"


def _form(name: str, data: bytes) -> tuple[bytes, str]:
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + data + b"\r\n--b--\r\n", _FORM


def _bodies() -> dict[str, list[tuple[bytes, str]]]:
    images = {"dog.jpg": photograph(1, (320, 240)), "images/cat.jpg": photograph(2, (320, 240))}
    article = archive({"article.html": ARTICLE, **images})
    swelling = archive({"a.html": "<p>A dog.", "b.png": b"\0" * 300_000_000})
    buffer = io.BytesIO()
    Image.new("L", (7000, 7000)).save(buffer, "PNG")
    picture = archive({"a.html": '<p>A dog runs.<img src="b.png">', "b.png": buffer.getvalue()})
    nonsense = [
        b"{",
        b"[]",
        b"null",
        b'{"sentences": 3, "images": []}',
        b"\xff\xfe",
        b'{"a"' * 9999,
    ]
    leaving = json.dumps({"sentences": ["A dog."] * 1000, "images": []}).encode()
    return {
        "upload": [_form("article.zip", article)],
        "bomb": [_form("bomb.zip", swelling), _form("picture.zip", picture)],
        "nonsense": [(text, _JSON) for text in nonsense],
        "leaves": [(leaving, _JSON), _form("article.zip", article)],
    }


# ---- what the service is like meanwhile


#: Asks for both addresses in turn; the second is a server that does nothing else (`BARE`).
POLL = """
import sys, time, urllib.request
worst, asked, failed = {}, 0, 0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for address in sys.argv[2:]:
        start = time.monotonic()
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                failed += answer.status != 200
        except OSError:
            failed += 1
        worst[address] = max(worst.get(address, 0.0), time.monotonic() - start)
    asked += 1
    time.sleep(0.1)
print(*worst.values(), asked, failed)
"""
BARE = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass
class Measured:
    """What the service was like under load: bytes, and seconds of an answer."""

    memory: int
    health: float
    bare: float
    asked: int
    failed: int


async def _measured(load: Load, clients: int, seconds: float) -> Measured:
    """The load, and meanwhile the most memory and how /healthz was answered."""
    most = 0

    async def sample() -> None:
        nonlocal most
        while True:
            most = max(most, await asyncio.to_thread(load.service.memory))
            await asyncio.sleep(0.5)

    pipe = asyncio.subprocess.PIPE
    bare = await asyncio.create_subprocess_exec(sys.executable, "-c", BARE, stdout=pipe)
    port = int(await bare.stdout.readline())
    poll = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", POLL, str(seconds)),
        *(f"{load.service.url}/healthz", f"http://127.0.0.1:{port}/"),
        stdout=pipe,
    )
    sampling = asyncio.create_task(sample())
    await load.run(clients)
    sampling.cancel()
    output, _ = await poll.communicate()
    bare.kill()
    await bare.wait()
    health, idle, asked, failed = output.split()
    return Measured(most, float(health), float(idle), int(asked), int(failed))


def _afterwards(service: Service, load: Load) -> float:
    """Seconds of a normal request after it all."""
    for _ in range(600):
        if service.metric("sightline_requests_active") == 0:
            break
        time.sleep(0.1)
    body, media = load._document()
    start = time.monotonic()
    request = urllib.request.Request(f"{service.url}/v1/link", body, {"Content-Type": media})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200 and len(json.load(answer)["links"]) == 5
    return time.monotonic() - start


def main() -> int:
    """Run; prints what was answered, and what is wrong with it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--requests", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = given.model or folder / "tiny"
        if given.model is None:
            tiny_model().save_pretrained(model)
        service = Service(model, "--max-requests", given.requests, folder=folder).wait()
        try:
            return _run(service, folder, given)
        finally:
            service.stop()


def _run(service: Service, folder: Path, given) -> int:
    before = service.memory()
    load = Load(service, given.seconds)
    clients = given.times * given.requests
    print(f"{clients} clients, room for {given.requests}, {given.seconds:g} s", flush=True)
    seen = asyncio.run(_measured(load, clients, given.seconds))
    for kind in dict.fromkeys(KINDS):
        counts = ", ".join(f"{n:,} x {s}" for s, n in load.statuses[kind].most_common())
        print(f"{kind:>9}: {counts}")
    print(f"/healthz {seen.asked:,} times, at worst {seen.health:.2f} s; an idle server beside it "
          f"{seen.bare:.2f} s; slowest of all answers {load.slowest:.1f} s")  # fmt: skip
    after = _afterwards(service, load)
    time.sleep(1)
    left = list(folder.glob("sightline-serve-*/*"))
    now = service.memory()
    megabytes = [f"{number / 1e6:.0f} MB" for number in (before, seen.memory, now)]
    print("memory {} before, {} at most, {} after".format(*megabytes))
    print(f"a request after it all: {after:.2f} s")
    wrong = []
    answers = {s for counts in load.statuses.values() for s in counts if s != "left"}
    if answers - ALLOWED:
        wrong.append(f"other answers: {answers - ALLOWED}")
    if seen.failed or seen.health > HEALTHY_SECONDS + seen.bare:
        wrong.append(f"/healthz failed {seen.failed} times, took {seen.health:.2f} s at worst")
    if seen.memory > MOST_BYTES:
        wrong.append(f"{seen.memory / 1e6:.0f} MB of memory")
    if not load.statuses["document"][200] or not load.statuses["upload"][200]:
        wrong.append("no good request was served meanwhile")
    if left or b"Traceback" in service.log.read_bytes():
        wrong.append(f"left behind: {left[:3]}, or an exception in the log")
    print("\n".join(wrong) or "as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
