"""Throughput of the service beside the bare model called in a loop.

    python benchmarks/service.py --model MODEL [--documents 48] [--rounds 3]

Starts `sightline serve` on a free port of this machine and sends it made-up documents of 10
sentences and 5 photographs of 640 x 480 pixels, each photograph a new one for the cache, as JSON,
from 1, 8 and 64 clients that each wait for their answer. The bare model links as many documents
from files, one after the other: once with `model.link(document)` and once decoding in worker
processes, as `sightline link` does. All contestants take turns in each round, so that a busy
machine slows all alike. CPU time is that of the service with its workers; the clients' own is
said apart.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

# As `sightline serve` does: the products are small, and idle threads of the library burn cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from PIL import Image, ImageFilter

from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.image_features import ImageFiles
from sightline.link_records import link_records, open_model

CLIENTS = (1, 8, 64)
SENTENCES, IMAGES = 10, 5


@dataclass
class Tally:
    """What one contestant did in all rounds."""

    documents: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    client_cpu_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)


def photographs(count: int) -> list[bytes]:
    """Pictures about as hard to decode as photographs of this size (100 kB)."""
    rng = np.random.default_rng(0)
    files = []
    for _ in range(count):
        small = Image.fromarray(rng.integers(0, 256, (48, 64, 3), np.uint8))
        noise = Image.fromarray(rng.integers(0, 256, (480, 640, 3), np.uint8))
        blurred = noise.filter(ImageFilter.GaussianBlur(1))
        image = Image.blend(small.resize((640, 480), Image.Resampling.BICUBIC), blurred, 0.3)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=88)
        files.append(buffer.getvalue())
    return files


class Documents:
    """Documents without end, no two with the same image."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.choose = random.Random(0)
        self.base = photographs(20)
        self.made = 0

    def sentence(self) -> str:
        """About 12 words that the model knows."""
        chosen = self.choose.choices(self.words, k=self.choose.randint(8, 16))
        return " ".join(chosen).capitalize() + "."

    def make(self) -> tuple[list[str], list[bytes]]:
        """Sentences and image files; bytes after an image's end change nothing but its hash."""
        images = []
        for _ in range(IMAGES):
            self.made += 1
            file = self.base[self.made % len(self.base)]
            images.append(file + self.made.to_bytes(8, "little"))
        return [self.sentence() for _ in range(SENTENCES)], images

    def request(self) -> bytes:
        """A whole HTTP request."""
        sentences, images = self.make()
        body = json.dumps(
            {
                "sentences": sentences,
                "images": [{"data": base64.b64encode(image).decode()} for image in images],
            }
        ).encode()
        head = (
            "POST /v1/link HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def document(self, folder: Path) -> Document:
        """The same in files."""
        sentences, images = self.make()
        names = []
        for number, image in enumerate(images):
            names.append(f"{self.made}-{number}.jpg")
            (folder / names[-1]).write_bytes(image)
        return Document(str(self.made), tuple(sentences), tuple(names), folder=folder)


async def answer(reader: asyncio.StreamReader) -> int:
    """Read one answer; gives its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


async def load(port: int, requests: list[bytes], clients: int, tally: Tally) -> None:
    """Send the requests from so many clients at a time."""
    waiting = list(requests)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while waiting:
            request = waiting.pop()
            start = time.perf_counter()
            writer.write(request)
            await writer.drain()
            status = await answer(reader)
            if status != 200:
                raise SystemExit(f"the service answered {status}")
            tally.latencies.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(client() for _ in range(min(clients, len(requests)))))


def tree_cpu(root: int) -> float:
    """CPU seconds of a process and all that it started, living or waited for (Linux)."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents, used = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15])) / ticks
    members = {root}
    while more := {p for p, parent in parents.items() if parent in members} - members:
        members |= more
    return sum(used.get(member, 0.0) for member in members)


def measure_service(port: int, pid: int, requests: list[bytes], clients: int, tally: Tally) -> None:
    """One turn of the service."""
    cpu, own, start = tree_cpu(pid), time.process_time(), time.perf_counter()
    asyncio.run(load(port, requests, clients, tally))
    tally.seconds += time.perf_counter() - start
    tally.client_cpu_seconds += time.process_time() - own
    tally.cpu_seconds += tree_cpu(pid) - cpu
    tally.documents += len(requests)


def measure_bare(model, documents: list[Document], pool: DecodePool | None, tally: Tally) -> None:
    """One turn of the bare model, as `model.link(document)` or with decoding in workers."""
    cpu, start = tree_cpu(os.getpid()), time.perf_counter()
    for document in documents:
        begin = time.perf_counter()
        if pool is None:
            model.link(document)
        else:
            list(link_records(model, [document], ImageFiles(model.image_backbone, pool)))
        tally.latencies.append(time.perf_counter() - begin)
    tally.seconds += time.perf_counter() - start
    tally.cpu_seconds += tree_cpu(os.getpid()) - cpu
    tally.documents += len(documents)


def start_service(model: str, arguments: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """The service on a free port, ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "sightline", "serve"),
            *("--model", model, "--port", str(port)),
            *arguments,
        ],
        stderr=subprocess.DEVNULL,
    )
    for _ in range(600):
        time.sleep(0.1)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return process, port
        except OSError:
            if process.poll() is not None:
                break
    raise SystemExit("the service does not start")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--documents", type=int, default=48, help="of each contestant a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    choices = parser.parse_args()
    model = open_model(choices.model)
    documents = Documents(list(model.vocabulary.words[1:2000]))
    names = ["bare model", "bare, decoding in workers", *(f"service, {n} clients" for n in CLIENTS)]
    tallies = {name: Tally() for name in names}
    # Time enough, so that on a busy machine nobody is sent away.
    arguments = ["--workers", str(choices.workers), "--max-seconds", "600"]
    process, port = start_service(choices.model, arguments)
    try:
        with DecodePool() as pool, tempfile.TemporaryDirectory() as folder:
            measure_bare(model, [documents.document(Path(folder))], None, Tally())
            measure_bare(model, [documents.document(Path(folder))], pool, Tally())
            measure_service(port, process.pid, [documents.request()], 1, Tally())
            for _ in range(choices.rounds):
                for name, workers in zip(names[:2], (None, pool), strict=True):
                    made = [documents.document(Path(folder)) for _ in range(choices.documents)]
                    measure_bare(model, made, workers, tallies[name])
                for name, clients in zip(names[2:], CLIENTS, strict=True):
                    # Fewer documents than clients would leave some without any.
                    count = max(choices.documents, clients)
                    requests = [documents.request() for _ in range(count)]
                    measure_service(port, process.pid, requests, clients, tallies[name])
    finally:
        process.terminate()
        process.wait()
    size = sum(map(len, documents.base)) / len(documents.base)
    print(f"{SENTENCES} sentences and {IMAGES} images of {size / 1000:.0f} kB a document\n")
    print(
        "| contestant | documents/s | of bare | documents/CPU-s | of bare | p50 ms | p99 ms "
        "| clients' CPU |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    bare = tallies[names[0]]
    for name, tally in tallies.items():
        speed = tally.documents / tally.seconds
        thrift = tally.documents / tally.cpu_seconds
        p50, p99 = np.percentile(tally.latencies, (50, 99)) * 1000
        print(
            f"| {name} | {speed:.1f} | {speed * bare.seconds / bare.documents:.0%} "
            f"| {thrift:.1f} | {thrift * bare.cpu_seconds / bare.documents:.0%} "
            f"| {p50:.0f} | {p99:.0f} "
            f"| {tally.client_cpu_seconds / tally.seconds:.0%} |"
        )


if __name__ == "__main__":
    main()
