"""Makes the pictures of pages that the documentation shows, of bundled and of drawn documents.

    python scripts/screenshots.py docs/images --browser /usr/bin/chromium

Runs the commands of the how-to pages in a temporary folder, opens what they write in Chromium and
takes a picture of each: always the same size, with the same part of the page in view. Needs the
extras `dev` and a Chromium.
"""

from __future__ import annotations

import argparse
import io
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from shown_commands import blocks

WIDTH, HEIGHT = 1200, 750
#: Of the pictures, on the disk; a page of documentation loads several.
MOST_BYTES = 80_000
DOCS = Path(__file__).resolve().parents[1] / "docs"
#: An article that comes with the service, and the image of its surest link.
TIDES = DOCS.parent / "src" / "sightline" / "service" / "examples" / "tides" / "article.html"
SUREST = "[data-image='2']"


def main() -> None:
    """Take all pictures, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--only", action="append", choices=list(PICTURES))
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=arguments.browser, args=["--no-sandbox"]
        )
        for name in arguments.only or PICTURES:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            with PICTURES[name](page, Path(folder)) as taken:
                save(taken, arguments.output / f"{name}.jpg")
            page.close()
        browser.close()


def sightline(folder: Path, *words: str) -> None:
    """Run a command in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sightline", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def save(picture: bytes, file: Path) -> None:
    """Write a picture as JPEG, as good as the limit of bytes allows."""
    with Image.open(io.BytesIO(picture)) as opened:
        image = opened.convert("RGB").resize(
            (WIDTH * 3 // 4, HEIGHT * 3 // 4), Image.Resampling.LANCZOS
        )
    for quality in range(88, 40, -4):
        data = io.BytesIO()
        image.save(data, "JPEG", quality=quality, optimize=True, progressive=True)
        if data.tell() <= MOST_BYTES:
            break
    file.write_bytes(data.getvalue())
    print(f"{file}: {data.tell():,} bytes, quality {quality}")


def demo(folder: Path) -> Path:
    """The files of `sightline demo`, made once."""
    if not (folder / "sightline-demo").exists():
        sightline(folder, "demo", "-o", "sightline-demo")
    return folder / "sightline-demo"


def drawings(folder: Path) -> Path:
    """The corpus and the features of the tutorial on training, made once."""
    made = folder / "drawings"
    if not made.exists():
        made.mkdir()
        for block in blocks(_tutorial("train_on_your_corpus")):
            if "sightline train" in block.body:
                break
            if block.is_run:
                shell(block.body, made)
    return made


def _tutorial(name: str) -> str:
    return (DOCS / "tutorials" / f"{name}.md").read_text("utf-8")


def shell(commands: str, folder: Path) -> None:
    """Run commands of a tutorial in a folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}
    subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def article(page: Any, folder: Path) -> Iterator[bytes]:
    """The page of an article, its surest link pointed at, which is right."""
    sightline(folder, "link", str(TIDES), "-o", "tides.links.html")
    page.goto((folder / "tides.links.html").as_uri())
    point_at(page.locator(SUREST).first)
    yield page.screenshot()


def point_at(image: Any) -> None:
    """Point at an image, with its caption in view and text around both."""
    where = "{block: 'center', behavior: 'instant'}"
    image.evaluate(f"image => image.closest('figure').scrollIntoView({where})")
    image.hover()


@contextmanager
def site(page: Any, folder: Path) -> Iterator[bytes]:
    """The page that the tutorial on sites writes, its surest link pointed at."""
    demo(folder)
    first = next(one for one in blocks(_tutorial("link_a_site")) if one.is_run)
    shell(first.body, folder)
    sightline(folder, "link", "site/guam.html", "-o", "guam.links.html")
    page.goto((folder / "guam.links.html").as_uri())
    page.locator("[data-image='0']").first.hover()
    yield page.screenshot()


@contextmanager
def corpus(page: Any, folder: Path) -> Iterator[bytes]:
    """Sample documents of the tutorial's corpus."""
    made = drawings(folder)
    sightline(made, "corpus", "corpus", "--sample-page", "samples.html", "--samples", "3")
    page.goto((made / "samples.html").as_uri())
    yield page.screenshot()


@contextmanager
def reproduce(page: Any, folder: Path) -> Iterator[bytes]:
    """The report of a small reproduction on the tutorial's corpus."""
    made = drawings(folder)
    rows = ("--rows", "Random, DC mean, AP mean", "--dimension", "32", "--epochs", "15")
    rest = ("--learning-rate", "0.005", "--minimum-count", "2")
    sightline(made, "reproduce", "corpus", "-o", "out", *rows, *rest)
    page.goto((made / "out" / "report.html").as_uri())
    yield page.screenshot()


@contextmanager
def service(page: Any, folder: Path) -> Iterator[bytes]:
    """The web page of the service with its example."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "sightline", "serve", "--port", str(port)]
    server = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/readyz")
        page.goto(f"http://127.0.0.1:{port}/")
        page.locator("#examples button").first.click()
        point_at(page.frame_locator("#frame iframe").locator(SUREST).first)
        yield page.screenshot()
    finally:
        server.terminate()
        server.wait()


def _wait(address: str) -> None:
    for _ in range(120):
        try:
            with urllib.request.urlopen(address):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    raise SystemExit(f"{address} does not answer")


PICTURES = {
    "page": article,
    "site": site,
    "corpus": corpus,
    "reproduce": reproduce,
    "service": service,
}

if __name__ == "__main__":
    main()
