"""A model, files and a running service for the tests of `sightline serve`."""

import io
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

from sightline.model import LinkModel
from sightline.model_files import expected_shapes
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary

WORDS = ("<unk>", "dog", "cat", "runs", "sleeps", "grass", "sofa", "the", "a", ".")


def tiny_model():
    """A model of random weights: what is answered does not depend on how good its links are."""
    settings = Settings(dimension=8, sentence_encoder="attention", word_dimension=5)
    rng = np.random.default_rng(0)
    shapes = expected_shapes(settings, len(WORDS), 1280)
    weights = {name: rng.normal(0, 0.3, shape).astype("f4") for name, shape in shapes.items()}
    return LinkModel(settings, Vocabulary(WORDS), weights, "efficientnet-lite0")


def photograph(number=1, size=(64, 48), form="JPEG"):
    noise = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, form)
    return buffer.getvalue()


ARTICLE = (
    "<!doctype html><html lang=en><title>Pets</title><body><main><h1>Pets</h1>"
    "<p>A dog runs over the grass. It is a happy dog and the grass is green.</p>"
    '<figure><img src="dog.jpg" alt="A dog"><figcaption>The dog in May.</figcaption></figure>'
    "<p>A cat sleeps on the sofa, which is where all cats like to be.</p>"
    '<img src="images/cat.jpg"><img src="lost.jpg" alt="Lost">'
    "<p>That is the end of a long day.</p></main></body></html>"
)


def archive(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return buffer.getvalue()


class Service:
    """`sightline serve` in a process of its own."""

    def __init__(self, model, *arguments, folder, **environment):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log.jsonl"
        command = [sys.executable, "-m", "sightline", "serve", "--port", self.port]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*map(str, command), "--model", str(model), *map(str, arguments)],
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder), **environment},
            )

    def wait(self):
        for _ in range(1200):
            if self.process.poll() is not None:
                raise AssertionError(self.log.read_text())
            if self.status("/readyz") == 200:
                return self
            time.sleep(0.1)
        raise AssertionError("the service is not ready after two minutes")

    def status(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def metric(self, line):
        """The value of one line of /metrics."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=30) as answer:
            for found in answer.read().decode().splitlines():
                if found.startswith(line + " "):
                    return float(found.rpartition(" ")[2])
        return 0.0

    def memory(self):
        """Bytes of the service and all its children, pages that they share counted once."""
        parents, total = {}, 0
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    parents.setdefault(int(fields[1]), []).append(int(folder.name))
        found = [self.process.pid]
        for one in found:
            found += parents.get(one, ())
            with suppress(OSError):
                for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += 1024 * int(line.split()[1])
        return total

    def connect(self, path="/v1/link", length=None, kind="application/json", body=b""):
        """A connection with a request whose body is not all sent yet."""
        connection = socket.create_connection(("127.0.0.1", self.port), 60)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {length if length is not None else len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        return connection

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()


def status_of(connection):
    """The status of the answer on a connection."""
    with connection, connection.makefile("rb") as file:
        return int(file.readline().split()[1])


def files_below(folder):
    """All files; folders that a service is just removing are passed over."""
    return {Path(place, file) for place, _, files in os.walk(folder) for file in files}
