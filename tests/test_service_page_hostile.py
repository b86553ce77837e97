"""Hostile articles, names and corpora in the web page: nothing of them runs or is fetched."""

import html
import re

import orjson
import pytest
from hostile_texts import BEGINNINGS, PAYLOADS, VECTORS
from service_helpers import photograph

pytest_plugins = ["page_browser"]


@pytest.fixture
def hostile(watched):
    """Opens pages in which `owned` can be called, and counts the calls."""
    calls = []

    def opened(path="/", bare=None):
        page = watched.open()
        page.context.expose_binding("owned", lambda _: calls.append(1))
        page.on("framenavigated", lambda frame: watched.note(f"went to {frame.url}")
                if not frame.url.startswith((watched.url, "about:")) else None)  # fmt: skip
        page.goto("about:blank")  # no policy there
        if bare is None:
            page.goto(watched.url + path)
        else:
            page.set_content(bare)
        return page

    opened.calls = calls
    return opened


EVERY = 12  # of so many payloads, one is the alternative text of an image, all are its caption


def article():
    """Every payload as text, as markup, as the address and the title of a link, and in captions."""
    parts = []
    for number, payload in enumerate(PAYLOADS):
        text = html.escape(payload)
        parts.append(f"<p>A cat sleeps. {text}</p><p>{payload}</p>")
        parts.append(f'<p><a href="{text}" title="{text}">The sofa, number {number}.</a></p>')
        if number % EVERY == 0:
            caption = html.escape(" ".join(PAYLOADS[number : number + EVERY]))
            image = f'<img src="{number}.jpg" alt="{text}" title="{text}">'
            parts.append(f"<figure>{image}<figcaption>{caption}</figcaption></figure>")
    title = html.escape(PAYLOADS[2])
    body = "\n".join(parts)
    return f"<!doctype html><html lang='{title}'><title>{title}</title><main>{body}</main>"


def test_there_are_enough_payloads():
    assert len(set(PAYLOADS)) == len(BEGINNINGS) * len(VECTORS) == 240


def test_the_detector_sees_what_runs(hostile, watched):
    """The control: the same payloads in a page without any care."""
    watched.expected = ("",)  # anything may happen there
    asked = []
    page = hostile(bare="<p>plain")
    page.on("request", lambda request: asked.append(request.url))
    for payload in VECTORS[:20]:
        page.evaluate("payload => document.body.insertAdjacentHTML('beforeend', payload)", payload)
    page.wait_for_function("performance.getEntriesByType('resource').length >= 1")
    page.wait_for_timeout(500)
    assert len(hostile.calls) >= 5
    assert any("evil.example" in address for address in asked)


def test_nothing_of_a_hostile_article_runs(hostile, watched, tmp_path):
    page = hostile()
    images = [(f"{n}.jpg", photograph(n)) for n in range(0, len(PAYLOADS), EVERY)]
    watched.give(page, ("it's & owned().html", article().encode()), *images)
    frame = watched.frame(page)
    assert PAYLOADS[2] in page.inner_text("#title")
    text = frame.locator("article").inner_text()
    shown = sum(payload.split("\t")[0].split("\u2028")[0] in text for payload in PAYLOADS)
    assert shown >= 200
    page.click("#correct")
    frame.locator(".sentence.off .pick").first.click()
    frame.locator(".choice[aria-pressed=false]").first.click()
    frame.locator(".badge.hand").wait_for()
    frame.locator("nav a[href='#matrix']").click()
    frame.locator("#cells td").first.wait_for(state="attached")
    frame.locator(".picture .frame").first.click()
    name, _ = watched.downloaded(page, "CSV")
    assert "<" not in name
    file = tmp_path / "kept.html"
    file.write_bytes(watched.downloaded(page, "Page")[1])
    alone = page.context.new_page()
    alone.on("console", lambda message: watched.wrong.append(message.text))
    alone.on("request", lambda request: watched.wrong.append(request.url)
             if not request.url.startswith(("file:", "data:")) else None)  # fmt: skip
    alone.goto(file.as_uri())
    assert alone.locator(".badge").count() >= len(images)
    alone.wait_for_timeout(200)
    assert hostile.calls == []


def test_nothing_of_a_hostile_name_or_answer_runs(hostile, watched):
    watched.expected = ("Failed to load resource",)
    page = hostile()
    problem = page.locator("#problem strong")
    for payload in PAYLOADS[:6]:
        name = payload.replace("/", "-") + ".html"
        watched.give(page, (name, b"<p>A dog.</p>"))
        problem.wait_for()
        assert "cannot be used" in problem.inner_text() or "image" in problem.inner_text()
        page.click("#problem button")
    detail = " ".join(PAYLOADS)
    answer = {"detail": detail, "errors": [{"field": p, "reason": p} for p in PAYLOADS]}
    page.route("**/v1/page", lambda route: route.fulfill(
        status=422, content_type="application/problem+json", body=orjson.dumps(answer).decode(),
    ))  # fmt: skip
    page.click("#examples button")
    problem.wait_for()
    assert PAYLOADS[0] in problem.inner_text()
    page.wait_for_timeout(200)
    assert hostile.calls == []


def test_nothing_of_a_hostile_corpus_runs(hostile, watched):
    page = hostile("/#corpus")
    page.select_option("#which-corpus", "hostile")
    page.locator("#scored", has_text=re.compile("^40 documents$")).wait_for()
    assert PAYLOADS[0] in page.inner_text("#rows")
    for number in (0, 2, 9, 24):
        page.locator("#rows button").nth(number).click()
        page.locator("#status", has_text=f", {number + 1} of 40").wait_for()
        frame = watched.frame(page)
        assert frame.locator(".picture img").count() == 1
    page.wait_for_timeout(200)
    assert hostile.calls == []
