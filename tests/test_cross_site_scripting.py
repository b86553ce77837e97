"""Some hundred payloads of `checks/cross_site_scripting.py` in every page that we render."""

import re

import pytest
from hostile_articles import chunks, html_article, shown
from rendered_pages import pages
from script_payloads import payloads, templates
from script_watch import CHROMIUM, careless, watching

SOME = payloads(every=40)


@pytest.fixture(scope="module")
def watch():
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}")
    with watching() as watch:
        yield watch


def test_there_are_enough_payloads():
    assert len(set(templates())) == len(set(payloads())) > 12_000 and len(SOME) > 300
    assert len(payloads()[7]) < 200 and "alert(7)" in payloads()[7]


def test_the_articles_of_the_check_hold_every_payload():
    assert sum(len(some) for some in chunks(SOME)) == len(SOME)
    article = html_article(["<b>x</b>"])
    assert article.count("&lt;b&gt;x&lt;/b&gt;") >= 6 and shown("A <b>x</b>", ["<b>x</b>"]) == 1


def test_nothing_of_them_runs_in_a_page_of_ours(watch, tmp_path):
    seen = set()
    for name, page in pages(SOME, chunks(SOME)):
        file = tmp_path / "page.html"
        file.write_text(page, "utf-8", "replace")
        opened = watch.open(file.as_uri(), name)
        watch.look(opened)
        opened.close()
        seen.add(re.sub(r" \d+", "", name))
    assert watch.wrong == [] and watch.external() == {}
    assert len(seen) == 8 and watch.looks >= 8


def test_the_same_run_and_call_out_in_a_page_without_care(watch):
    """The control: a watch that saw nothing here would see nothing anywhere."""
    ran, poked, asked = careless(watch, SOME)
    # Which of them need no poke depends on how fast the machine loads hundreds of frames.
    assert len(ran | poked) > 0.25 * len(SOME) and asked > 3


def test_the_watch_sees_markup_that_waits_for_somebody(watch, tmp_path):
    file = tmp_path / "careless.html"
    file.write_text("<p onclick=alert(1)>x</p><a href=javascript:alert(1)>x</a><object></object>")
    page = watch.open(file.as_uri(), "a careless page")
    watch.look(page)
    page.close()
    assert len([words for words in watch.wrong if words.startswith("markup")]) == 3
    watch.wrong.clear()
