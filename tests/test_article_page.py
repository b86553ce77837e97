"""The page of an article: what it says, that nothing in it can run, and how it behaves."""

import re
from dataclasses import replace

import numpy as np
import orjson
import pytest
from page_tags import Tags, check_markup_is_ours, check_policy

from sightline.article_page import render_article
from sightline.linking import Link
from sightline.pages import Block, BlockKind, Page
from sightline.shown_article import (
    ShownArticle,
    ShownImage,
    cut,
    encode_picture,
    picture_side,
)

HOSTILE = (
    '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>"\'&amp;\x1b '
)


def photograph(seed, height=300, width=400):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 255, (height, width, 3), np.uint8)


def article(confidence=True, hostile="", links=None, **changes):
    """Headings, text, a list, a quote, a table, code; three images, one of them unread."""
    blocks = (
        Block(BlockKind.HEADING, f"Bees{hostile}", 1),
        Block(BlockKind.PARAGRAPH, f"A bee flies.{hostile} It finds a flower. Then it goes home."),
        Block(BlockKind.CAPTION, f"A bee on a flower.{hostile}"),
        Block(BlockKind.LIST_ITEM, "Wings", 1),
        Block(BlockKind.LIST_ITEM, "Legs", 2),
        Block(BlockKind.QUOTE, f"Busy as a bee.{hostile}", 1),
        Block(BlockKind.TABLE_ROW, "Queen | One | Large"),
        Block(BlockKind.CODE, "x = '<bee>'"),
        Block(BlockKind.PARAGRAPH, "The end of the hive."),
    )
    page = Page(None, blocks, ())
    text, starts = page.text, [start for start, _ in page.spans()]
    ends = starts[1] + len("A bee flies." + hostile)
    spans = [(starts[1], ends), (ends + 1, ends + 19), (starts[2], starts[3] - 2)]
    spans += [(starts[i], starts[i] + len(blocks[i].text)) for i in (5, 6, 8)]
    assert text[slice(*spans[1])] == "It finds a flower."
    images = (
        ShownImage("bee.jpg", 2, 0, encode_picture(photograph(0), 400), alt=f"A bee{hostile}",
                   caption=f"A bee on a flower.{hostile}", caption_blocks=(2,)),
        ShownImage(f"lost.jpg{hostile}", 4, None, None, "missing", f"No such file.{hostile}"),
        ShownImage("hive.png", 8, None, encode_picture(photograph(1), 400)),
    )  # fmt: skip
    if links is None:
        links = [(0, 0, 0.9, 0.95), (2, 0, 0.8, 0.7), (4, 2, 0.5, 0.4), (5, 2, 0.3, 0.2)]
    matrix = np.random.default_rng(2).uniform(-0.2, 0.9, (len(spans), 3))
    matrix[:, 1] = np.nan
    return ShownArticle(
        **{
            "title": f"Bees{hostile}",
            "blocks": blocks,
            "spans": tuple(spans),
            "images": images,
            "links": tuple(
                Link(s, v, score, sure if confidence else None) for s, v, score, sure in links
            ),
            "language": f"en{hostile}" if hostile else "en",
            "similarity_SV": matrix,
            "facts": (f"model default{hostile}",),
            "left_out": {"text": {f"navigation{hostile}": 12}, "images": {"trackers": 2}},
            **changes,
        }
    )


def test_hostile_text_stays_text():
    text = render_article(article(hostile=HOSTILE))
    page = Tags(text)
    check_markup_is_ours(page)
    assert not re.search(r'(src|href|action)="(?!data:|#)', text)
    assert "\x1b" not in text
    assert HOSTILE.replace("\x1b", "\ufffd") in "".join(page.text)
    (main,) = page.named("main")
    assert "lang" not in main
    assert HOSTILE.strip() in orjson.loads(page.code[-2][2])["titles"][0]


def test_the_policy_allows_nothing_but_the_pages_own_code():
    check_policy(Tags(render_article(article())))
    check_policy(Tags(render_article(article(), live=True)))


def test_the_article_reads_as_it_did():
    text = render_article(article())
    page = Tags(text)
    words = "".join(page.text)
    order = ["Bees", "A bee flies.", "A bee on a flower.", "Wings", "Busy", "Queen", "The end"]
    places = [words.index(part) for part in order]
    assert places == sorted(places)
    assert [name for name, _ in page.tags if name in ("h1", "blockquote", "pre")] == [
        "h1", "blockquote", "pre",
    ]  # fmt: skip
    # The title is said once; the cells of the row are cells, one sentence through all of them.
    row = re.search(r"<tr><td.*?</tr>", text)[0]
    assert row.count("<td") == 3 and row.count('data-sentence="4"') == 3
    assert row.count('id="sentence-5"') == 1 and row.count("badge") == 2
    # The image stands in a figure with its caption, which is a linked sentence.
    figure = re.search(r"<figure><div>.*?</figure>", text, re.S)[0]
    assert 'id="image-1"' in figure and "A bee on a flower." in figure
    assert re.search(r'<figcaption>.*data-sentence="2"', figure)
    assert "missing: No such file." in words and "lost.jpg" in words
    assert "12 characters of text: navigation" in words and "2 images: trackers" in words
    assert "1 image could not be read" in words


def test_every_link_is_a_badge_and_said_in_words():
    page = Tags(render_article(article()))
    badges = page.named("button", "badge")
    assert [badge["aria-label"] for badge in badges] == [
        "Image 1: A bee, confidence 95 %", "Image 1: A bee, confidence 70 %",
        "Image 3, confidence 40 %", "Image 3, confidence 20 %",
    ]  # fmt: skip
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert len(ids) == len([1 for _, attributes in page.tags if "id" in attributes])
    for name in ("aria-describedby", "aria-details", "aria-labelledby", "for"):
        for _, attributes in page.tags:
            assert name not in attributes or attributes[name] in ids
    assert "“It finds" not in "".join(page.text)
    assert "“A bee flies.”, confidence 95 %" in "".join(page.text)


def test_images_without_a_link_say_why():
    told = article(links=())
    told = replace(told, images=(*told.images[:2], replace(told.images[2], reason="<none> fits")))
    listed = '<a href="#image-3">Image 3</a>: &lt;none&gt; fits</li>'
    assert listed in render_article(told)
    assert listed not in render_article(told, live=True)
    linked = render_article(replace(told, links=(Link(0, 2, 0.5),)))
    assert listed not in linked and "Image 2</a>: No such file.</li>" in linked


def test_without_confidences_scores_are_shown_and_compared_with_the_best():
    shown = article(confidence=False)
    words = "".join(Tags(render_article(shown)).text)
    assert "Score" in words and "0.90" in words and "no probability" in words
    strengths = shown.strengths()
    assert strengths[0] == 1 and strengths == sorted(strengths, reverse=True)
    assert all(0 < strength <= 1 for strength in strengths)


@pytest.mark.parametrize("changes", [
    {"links": []}, {"similarity_SV": None}, {"images": (), "links": [], "similarity_SV": None},
    {"blocks": (), "spans": (), "images": (), "links": [], "similarity_SV": np.zeros((0, 0))},
])  # fmt: skip
def test_what_is_absent_is_no_error(changes):
    page = Tags(render_article(article(**changes)))
    assert len(page.named("main")) == 1
    if changes.get("links") == []:
        assert "No image of this article was linked" in "".join(page.text)


def test_long_matrices_are_cut_to_the_best_sentences_and_the_linked_ones():
    text = "Bee. " * 2000
    spans = tuple((n * 5, n * 5 + 4) for n in range(2000))
    matrix = np.random.default_rng(0).uniform(0, 1, (2000, 3))
    images = tuple(ShownImage(f"{n}.jpg") for n in range(3))
    wide = ShownArticle("Long", (Block(BlockKind.PARAGRAPH, text),), spans, images * 10,
                        (Link(1999, 0, -1.0),), similarity_SV=np.tile(matrix, 10))  # fmt: skip
    page = Tags(render_article(wide))
    (data,) = [code for _, kind, code in page.code if kind == "application/json"]
    rows = [row for row, _, _ in orjson.loads(data)["matrix"]]
    assert len(rows) == 1000 and rows == sorted(rows) and rows[-1] == 1999
    assert "The 1,000 least similar of the sentences are not shown." in "".join(page.text)


def test_pictures_are_bounded_and_encoded_anew():
    large = encode_picture(photograph(0, 900, 2000), picture_side(3))
    assert (large.kind, large.width) == ("image/jpeg", 1120) and large.data[:2] == b"\xff\xd8"
    flat = encode_picture(np.full((50, 50, 3), 200, np.uint8), 40)
    assert (flat.kind, flat.width, flat.data[1:4]) == ("image/png", 40, b"PNG")
    sides = [picture_side(count) for count in (1, 21, 61, 201)]
    assert sides == sorted(sides, reverse=True) and len(set(sides)) == 4


def test_cut():
    assert cut("one  two\nthree", 20) == "one two three"
    assert cut("one two three", 8) == "one two…"
    assert len(cut("x" * 1000, 10)) == 10


# ---- in a browser


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page; fails on any error and on any request but for the page."""
    wrong, contexts = [], []

    def open_page(shown, **options):
        file = tmp_path / "article.links.html"
        file.write_text(render_article(shown), "utf-8")
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | options
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url[:80])
                if not request.url.startswith(("data:", "file:")) else None)  # fmt: skip
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def lit(page):
    script = """[...document.querySelectorAll('.lit')].map(e =>
      'image' in e.dataset ? 'image ' + e.dataset.image : 'sentence ' + e.dataset.sentence)"""
    return sorted(set(page.evaluate(script)))


def test_pointing_lights_up_the_partners_both_ways(opened):
    page = opened(article())
    page.hover("#image-1 img")
    assert lit(page) == ["image 0", "sentence 0", "sentence 2"]
    strengths = [
        page.evaluate(f"document.getElementById('{name}').style.getPropertyValue('--strength')")
        for name in ("sentence-1", "sentence-3")
    ]
    assert strengths == ["0.95", "0.7"]
    assert page.locator("#shown li").count() == 2
    page.hover("#sentence-6")
    assert lit(page) == ["image 2", "sentence 5"]
    assert "confidence 20 %" in page.inner_text("#shown")
    assert page.locator("#shown img").count() == 1
    page.hover("h1")
    assert lit(page) == []
    page.hover("#image-2")
    assert lit(page) == []


def test_the_keyboard_goes_everywhere(opened):
    page = opened(article())
    stops = []
    page.focus("nav a[href='#matrix']")
    for _ in range(8):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("""(() => {
            const active = document.activeElement;
            const part = active.closest('[data-image], [data-sentence]');
            return part ? Object.entries(part.dataset)[0].join(' ') : active.tagName;
        })()"""))  # fmt: skip
    assert stops == [
        "sentence 0", "image 0", "sentence 2", "image 1", "sentence 4", "PRE", "sentence 5",
        "image 2",
    ]  # fmt: skip
    page.focus("#image-1 .frame")
    assert lit(page) == ["image 0", "sentence 0", "sentence 2"]
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.closest('.sentence').id") == "sentence-1"
    assert lit(page) == ["image 0", "sentence 0"]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.closest('.picture').id") == "image-1"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.closest('.sentence').id") == "sentence-3"
    page.keyboard.press("Enter")
    assert page.get_attribute("#sentence-3 .badge", "aria-pressed") == "true"
    page.hover("#sentence-6")
    assert lit(page) == ["image 0", "sentence 2"]
    page.keyboard.press("Escape")
    assert lit(page) == [] and page.locator("[aria-pressed=true]").count() == 0


def test_a_click_pins_and_a_click_beside_lets_go(opened):
    page = opened(article())
    page.click("#image-3 .frame")
    page.hover("h1")
    assert lit(page) == ["image 2", "sentence 4", "sentence 5"]
    page.click("#shown .go >> nth=0")
    assert lit(page) == ["image 2", "sentence 4"]
    page.click("h1")
    assert lit(page) == []


def test_the_slider_leaves_weak_links_out(opened):
    page = opened(article())
    assert page.inner_text("#count") == "4 links"
    # Nobody filtered yet, and the page does not say so.
    assert page.inner_text("#level") == "0 %"
    page.focus("#threshold")
    page.evaluate("t = document.getElementById('threshold'); t.value = 0.5;"
                  "t.dispatchEvent(new Event('input'))")  # fmt: skip
    assert page.inner_text("#count") == "2 of 4 links"
    assert page.inner_text("#level") == "50 %"
    assert page.locator(".badge:visible").count() == 2
    assert page.locator("tr[data-link]:visible").count() == 2
    page.hover("#image-3 img")
    assert lit(page) == []
    page.focus("#threshold")
    page.keyboard.press("End")
    assert page.inner_text("#count") == "1 of 4 links"
    page.keyboard.press("Home")
    assert page.inner_text("#count") == "4 links"


def test_scores_below_nothing_are_within_the_slider(opened):
    page = opened(article(confidence=False, links=[(0, 0, 0.9, 0), (5, 2, -0.25, 0)]))
    assert page.inner_text("#count") == "2 links" and page.inner_text("#level") == "-0.25"


@pytest.mark.parametrize(
    "sure", [(0.9949, "99 %"), (0.995, ">99 %"), (0.99999, ">99 %"), (1.0, "100 %")]
)
def test_what_is_nearly_certain_is_not_called_certain(opened, sure):
    confidence, words = sure
    page = opened(article(links=[(0, 0, 0.9, confidence)]))
    assert page.inner_text("tr[data-link] td >> nth=2") == words
    assert page.get_attribute(".badge", "aria-label") == f"Image 1: A bee, confidence {words}"
    page.hover("#sentence-1")
    assert f"confidence {words}" in page.inner_text("#shown")


NUMBERED = (
    "On the beach our wet dog ran after a green frisbee all afternoon. Later we slept.",
    f"{'x' * 200}. Then.",
    f"{'海' * 120}。次。",
    f"See https://example.org/{'a/' * 60}. Then.",
    "ركض الكلب على الشاطئ خلف القرص الأخضر طوال بعد الظهر. ثم نمنا.",
    f"Combined e{chr(0x301) * 3}. Then.",
)


@pytest.mark.parametrize("text", NUMBERED, ids=["words", "long", "cjk", "url", "arabic", "marks"])
@pytest.mark.parametrize(("count", "narrowest"), [(1, 330), (3, 336), (30, 342)])
def test_a_number_stays_beside_the_last_word_of_its_sentence(opened, text, count, narrowest):
    end = max(text.find(stop) for stop in (". ", "。")) + 1
    links = tuple(Link(0, v, 0.9, 0.9) for v in range(count))
    images = tuple(ShownImage(f"{v}.jpg", 0) for v in range(count))
    blocks = (Block(BlockKind.PARAGRAPH, text),)
    page = opened(ShownArticle("Numbers", blocks, ((0, end),), images, links))
    for width in range(narrowest, 640, 18):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("""() => {
            const end = document.querySelector(".tied").firstChild;
            const letter = document.createRange();
            letter.selectNodeContents(end);
            const word = letter.getBoundingClientRect();
            const number = document.querySelector(".badge").getBoundingClientRect();
            return word.bottom > number.top && word.top < number.bottom
              && document.documentElement.scrollWidth <= innerWidth;
        }"""), width  # fmt: skip
    assert page.inner_text(".sentence").startswith(text[:end])


def test_the_matrix_is_a_table_with_its_links_framed(opened):
    page = opened(article())
    page.click(".bar nav a[href='#matrix']")
    page.wait_for_selector("#cells td.link")
    assert page.locator("#cells tbody tr").count() == 6
    assert page.locator("#cells td.link").count() == 4
    assert page.locator("#cells tbody tr >> nth=0 >> td").all_inner_texts()[1] == "–"
    page.hover("#cells td.link >> nth=0")
    assert "image 1 and “A bee flies.” (link)" in page.inner_text("#readout")


def test_dark_narrow_and_hostile(opened):
    page = opened(article(hostile=HOSTILE), color_scheme="dark",
                  viewport={"width": 390, "height": 800}, has_touch=True)  # fmt: skip
    assert page.title().startswith("Bees</script>")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(24, 23, 21)"
    assert not page.is_visible("#panel")
    assert page.is_visible(".bar a[href='#links']") and page.is_visible(".bar a[href='#matrix']")
    page.tap("#sentence-6")
    assert page.is_visible("#panel") and lit(page) == ["image 2", "sentence 5"]
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth)")


def test_print_shows_numbers_and_the_list_but_no_controls(opened):
    page = opened(article())
    page.emulate_media(media="print")
    assert not page.is_visible(".bar") and not page.is_visible("#panel")
    assert page.locator(".badge:visible").count() == 4
    assert page.is_visible("#links") and page.is_visible("tr[data-link]")
    assert page.pdf()[:4] == b"%PDF"


def test_a_screen_reader_hears_images_and_their_sentences(opened):
    tree = opened(article()).locator("main").aria_snapshot()
    assert 'button "Image 1: A bee"' in tree
    assert 'button "Image 1: A bee, confidence 95 %"' in tree
    assert "heading" in tree and "blockquote" in tree
