"""Makes the pictures of pages that the documentation shows, of bundled and of drawn documents.

    python scripts/screenshots.py docs/images --browser /usr/bin/chromium

Runs the commands of the how-to pages in a temporary folder, opens what they write in Chromium and
takes a picture of each: always the same size, with the same part of the page in view. Needs the
extras `dev` and a Chromium.
"""

from __future__ import annotations

import argparse
import html
import io
import json
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

from picture_pages import STYLE, picture_tag, terminal_page
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from shown_commands import blocks

from sightline.features import FeatureStore

WIDTH, HEIGHT = 1200, 750
#: Of the pictures, on the disk; a page of documentation loads several.
MOST_BYTES = 80_000
DOCS = Path(__file__).resolve().parents[1] / "docs"
#: An article that comes with the service, and the image of its surest link.
TIDES = DOCS.parent / "src" / "sightline" / "service" / "examples" / "tides" / "article.html"
SUREST = "[data-image='2']"
BUILT = ("--unit", "sentence", "--links-from-layout", "--copy-images")


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


def guam(folder: Path) -> None:
    """The folder of pages of the tutorial on sites."""
    demo(folder)
    first = next(one for one in blocks(_tutorial("link_a_site")) if one.is_run)
    shell(first.body, folder)


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
    guam(folder)
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
def train(page: Any, folder: Path) -> Iterator[bytes]:
    """Loss and AUC over the epochs, as the report draws them."""
    with reproduce(page, folder):
        yield at(page, "#figures")


@contextmanager
def analyze(page: Any, folder: Path) -> Iterator[bytes]:  # noqa: ARG001
    """The analysis in the report on the textbooks."""
    page.goto((DOCS.parent / "results" / "reproduce" / "openstax" / "report.html").as_uri())
    yield at(page, "#analysis")


def at(page: Any, part: str) -> bytes:
    """A picture of a page from one of its parts on."""
    page.locator(part).evaluate("part => part.scrollIntoView({behavior: 'instant'})")
    picture: bytes = page.screenshot()
    return picture


@contextmanager
def alt(page: Any, folder: Path) -> Iterator[bytes]:
    """The report on the alternative texts of the page of the tutorial on sites."""
    guam(folder)
    sightline(folder, "alt", "site/guam.html", "--all", "-o", "alt.html")
    page.goto((folder / "alt.html").as_uri())
    yield page.screenshot()


@contextmanager
def demo_index(page: Any, folder: Path) -> Iterator[bytes]:
    """The first page of the demo."""
    page.goto((demo(folder) / "index.html").as_uri())
    yield page.screenshot()


@contextmanager
def build(page: Any, folder: Path) -> Iterator[bytes]:
    """What became of a page: its document, with the links that its layout gives."""
    guam(folder)
    shell("mkdir -p one && cp -r site/images site/guam.html one", folder)
    sightline(folder, "build", "pages", "one", "-o", "built", *BUILT)
    sightline(folder, "corpus", "built", "--sample-page", "built.html", "--samples", "1")
    page.goto((folder / "built.html").as_uri())
    yield page.screenshot()


@contextmanager
def convert(page: Any, folder: Path) -> Iterator[bytes]:
    """One document in three formats."""
    record = {
        "id": "guam",
        "sentences": ["Palms stand in rows.", "A snake came by ship."],
        "images": ["palms.jpg", "snake.jpg"],
        "links": [[0, 0], [1, 1]],
        "split": "train",
    }
    (folder / "one.jsonl").write_text(json.dumps(record))
    shown = {"native": record}
    for name in ("mmc4", "obelics"):
        sightline(folder, "convert", "one.jsonl", f"one.{name}.jsonl", "--to", name)
        shown[name] = json.loads((folder / f"one.{name}.jsonl").read_text())
    columns = (
        f"<div><h2>--to {name}</h2><pre>{html.escape(json.dumps(one, indent=1))}</pre></div>"
        for name, one in shown.items()
    )
    page.set_content(f"{STYLE}<div class=columns>{''.join(columns)}</div>")
    yield page.screenshot()


@contextmanager
def duplicates(page: Any, folder: Path) -> Iterator[bytes]:
    """Pairs of images that look the same, as the command lists them."""
    made = drawings(folder)
    sightline(made, "duplicates", "corpus", "-o", "duplicates.jsonl")
    pairs = [json.loads(line) for line in (made / "duplicates.jsonl").read_text().splitlines()]
    shown = (
        f"<figure>{picture_tag(made / 'corpus' / one['image'])}"
        f"{picture_tag(made / 'corpus' / one['other_image'])}"
        f"<figcaption>{one['document']} and {one['other_document']}: distance {one['distance']}"
        "</figcaption></figure>"
        for one in pairs[:12]
    )
    page.set_content(f"{STYLE}<div class=figures>{''.join(shown)}</div>")
    yield page.screenshot()


@contextmanager
def features(page: Any, folder: Path) -> Iterator[bytes]:
    """Images of the demo, and the row of numbers that each has in the store."""
    documents = demo(folder) / "documents"
    sightline(folder, "features", str(documents), "-o", "features")
    store = FeatureStore.open(folder / "features")
    rows = []
    for image in list(store.id2row)[:8]:
        (vector,) = store.vectors(store.rows([image]))
        levels = 255 * (1 - vector / vector.max())
        strip = Image.fromarray(levels.clip(0, 255).astype("uint8")[None]).resize((1280, 56), 0)
        file = next((documents / "images").glob(f"{image}.*"))
        numbers = " ".join(f"{value:.2f}" for value in vector[:12])
        rows.append(
            f"<tr><td>{picture_tag(file)}<td>{picture_tag(strip)}<br><code>{numbers} ...</code>"
        )
    page.set_content(f"{STYLE}<table>{''.join(rows)}</table>")
    yield page.screenshot()


@contextmanager
def pairs(page: Any, folder: Path) -> Iterator[bytes]:
    """The surest pairs of the demo's documents."""
    options = ("-o", "pairs.jsonl", "--min-confidence", "0.2")
    sightline(folder, "pairs", str(demo(folder) / "documents"), *options)
    found = [json.loads(line) for line in (folder / "pairs.jsonl").read_text().splitlines()]
    shown = (
        f"<figure class=pair>{picture_tag(folder / one['image'])}"
        f"<figcaption>{html.escape(one['sentence'])}<br><b>{one['confidence']:.0%}</b>"
        "</figcaption></figure>"
        for one in sorted(found, key=lambda one: -one["confidence"])[:8]
    )
    page.set_content(f"{STYLE}<div class=figures>{''.join(shown)}</div>")
    yield page.screenshot()


@contextmanager
def doctor(page: Any, folder: Path) -> Iterator[bytes]:
    """What the command says on a terminal."""
    page.set_content(terminal_page(folder, "sightline doctor"))
    yield page.screenshot()


@contextmanager
def settings(page: Any, folder: Path) -> Iterator[bytes]:
    """What is set and by whom, on a terminal."""
    demo(folder)
    shown = [one for one in blocks((DOCS / "howto" / "settings.md").read_text()) if one.is_run]
    shell(shown[0].body, folder)
    page.set_content(terminal_page(folder, shown[1].body.strip()))
    yield page.screenshot()
    (folder / "sightline.toml").unlink()


@contextmanager
def evaluate(page: Any, folder: Path) -> Iterator[bytes]:
    """A corpus with the model: documents by their AUC, wrong and missed links marked."""
    documents = str(demo(folder) / "documents")
    with served(folder, "--corpus", documents) as address:
        page.goto(f"{address}/#corpus")
        page.locator("#scored", has_text="9 documents").wait_for()
        page.locator("#rows button").first.click()
        frame = page.frame_locator("#frame iframe")
        frame.locator("[data-image='0']").first.scroll_into_view_if_needed()
        page.wait_for_timeout(1000)  # for the pictures
        yield page.screenshot()


@contextmanager
def service(page: Any, folder: Path) -> Iterator[bytes]:
    """The web page of the service with its example."""
    with served(folder) as address:
        page.goto(f"{address}/")
        page.locator("#examples button").first.click()
        point_at(page.frame_locator("#frame iframe").locator(SUREST).first)
        yield page.screenshot()


@contextmanager
def served(folder: Path, *options: str) -> Iterator[str]:
    """The address of a service that is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "sightline", "serve", "--port", str(port), *options]
    server = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/readyz")
        yield f"http://127.0.0.1:{port}"
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
    "alt": alt,
    "analyze": analyze,
    "build": build,
    "convert": convert,
    "demo": demo_index,
    "doctor": doctor,
    "duplicates": duplicates,
    "evaluate": evaluate,
    "features": features,
    "pairs": pairs,
    "settings": settings,
    "train": train,
}

if __name__ == "__main__":
    main()
