"""The documentation as a site opened from a disk: its search works, and nothing is fetched."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def opened(browser):
    """Open a file in a browser; gives the page, what it asked for and what went wrong in it."""
    page = browser.new_page()
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def open_file(file):
        page.goto(file.as_uri())
        return page

    yield open_file
    page.close()
    assert asked and not wrong
    assert not [address for address in asked if not address.startswith(("file:", "data:"))]


def test_a_worker_answers_where_browsers_start_none(opened, tmp_path):
    shim = (ROOT / "docs" / "iframe-worker.js").read_text("utf-8")
    (tmp_path / "iframe-worker.js").write_text(shim)
    (tmp_path / "twice.js").write_text('addEventListener("message", e => postMessage(2 * e.data))')
    (tmp_path / "index.html").write_text(
        "<!doctype html><body><script src=iframe-worker.js></script><script>"
        'const worker = new Worker("twice.js"), answers = [];'
        'worker.addEventListener("message", e => answers.push(e.data));'
        "worker.postMessage(21); worker.postMessage(4)</script>"
    )
    page = opened(tmp_path / "index.html")
    page.wait_for_function("answers.length === 2")
    assert page.evaluate("answers") == [42, 8]


@pytest.fixture
def site(tmp_path):
    """Build the documentation; gives its folder."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason="the extra docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    subprocess.run([*command, "--site-dir", str(tmp_path)], cwd=ROOT, check=True, timeout=120)
    return tmp_path


def test_the_search_finds_a_page_from_a_page_in_a_folder(site, opened):
    page = opened(site / "howto" / "link.html")
    page.click(".md-search__input")
    page.keyboard.type("calibrate")
    page.wait_for_selector(".md-search-result__link")
    found = [link.get_attribute("href") for link in page.locator(".md-search-result__link").all()]
    assert (site / "howto" / "calibrate.html").as_uri() in {
        address.partition("?")[0] for address in found
    }
