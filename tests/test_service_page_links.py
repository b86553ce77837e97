"""The web page of the service in a real browser: links looked at, corrected and downloaded."""

import csv
import io

import orjson

pytest_plugins = ["page_browser"]


def test_the_slider_and_the_policies(watched):
    page, frame = watched.open_example()
    before = watched.links(frame)
    frame.locator("#threshold").focus()
    page.keyboard.press("End")
    assert frame.locator("#count").inner_text() == "1 of 5 links"
    assert frame.locator("#level").inner_text() in frame.locator(":focus").get_attribute(
        "aria-valuetext"
    )
    name, data = watched.downloaded(page, "JSONL")
    assert name == "article.links.jsonl" and len(orjson.loads(data)["links"]) == 1
    page.select_option("#policy", label="Best partner of each (dense)")
    frame.locator("#threshold").focus()
    page.keyboard.press("Home")
    dense = watched.links(frame)
    assert len(dense) > len(before) and {v for _, v in dense} == {0, 1, 2, 3, 4}
    assert "dense" in page.inner_text("#status")


def test_the_slider_begins_at_nothing(watched):
    page, frame = watched.open_example()
    page.select_option("#policy", label="One to one (assignment)")
    page.locator("#status", has_text="One to one").wait_for(state="attached")
    weights = frame.locator("tr[data-link] td:last-child").all_inner_texts()
    assert weights and min(map(float, weights)) > 0
    assert frame.locator("#level").inner_text() == "0.00"


def test_links_are_corrected_with_the_mouse(watched):
    page, frame = watched.open_pets()
    found = watched.links(frame)
    page.click("#correct")
    assert page.get_attribute("#correct", "aria-pressed") == "true"
    new = next((s, v) for s in range(5) for v in range(2) if (s, v) not in found)
    frame.locator(f"#sentence-{new[0] + 1}").click(position={"x": 20, "y": 8})
    frame.locator(f"#image-{new[1] + 1} .frame").click()
    frame.locator(".badge.hand").wait_for()
    assert watched.links(frame) == sorted([*found, new])
    assert "linked" in page.inner_text("#status")
    # What was picked stays picked: the list takes a link of the model away.
    gone = next(pair for pair in found if pair[1] == new[1])
    frame.locator(f"#image-{gone[1] + 1} .frame").click()
    frame.locator(f".badge[data-link] >> text={gone[1] + 1}").first.wait_for()
    page.click("#undo")
    page.click("#undo")
    assert not page.is_visible("#undo") and watched.links(frame) == found
    frame.locator("h1").click()
    frame.locator(f"#image-{gone[1] + 1} .frame").click()
    frame.locator(f".choice[data-choice='{gone[0]}']").click()
    assert watched.links(frame) == sorted(set(found) - {gone})
    name, data = watched.downloaded(page, "Corrected links")
    truth = orjson.loads(data)
    assert name == "article.truth.jsonl"
    assert set(truth) == {"id", "sentences", "images", "links"}
    assert truth["links"] == sorted(map(list, set(found) - {gone}))
    assert truth["images"] == ["dog.jpg", "images/cat.jpg", "lost.jpg"]


def test_links_are_corrected_with_the_keyboard_alone(watched):
    page, frame = watched.open_pets()
    found = watched.links(frame)
    page.focus("#correct")
    page.keyboard.press("Space")
    frame.locator("#sentence-5 .pick").focus()
    page.keyboard.press("Enter")
    assert frame.locator(":focus").get_attribute("class") == "go choice"
    frame.locator(".choice[data-choice='2']").focus()  # the image that could not be read
    page.keyboard.press("Enter")
    frame.locator(".badge.hand").wait_for()
    assert watched.links(frame) == sorted([*found, (4, 2)])
    assert frame.locator(":focus").get_attribute("data-choice") == "2"
    assert frame.locator(":focus").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert frame.locator(":focus").get_attribute("class") == "pick"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Delete")
    assert watched.links(frame) == found
    frame.locator("#image-2 .frame").focus()
    page.keyboard.press("Enter")
    assert "image 2" in frame.locator("#shown h2").inner_text()


def test_everything_can_be_downloaded(watched):
    page, frame = watched.open_pets()
    page.click("#correct")
    frame.locator("#sentence-5").click(position={"x": 20, "y": 8})
    frame.locator(".choice[data-choice='2']").click()  # could not be read, so that it has no link
    frame.locator(".badge.hand").wait_for()
    pairs = watched.links(frame)
    assert (4, 2) in pairs

    _, data = watched.downloaded(page, "JSONL")
    record = orjson.loads(data)
    assert sorted((link["sentence"], link["image"]) for link in record["links"]) == pairs
    assert record["title"] == "Pets" and len(record["spans"]) == 5 and "matrix" not in record
    name, data = watched.downloaded(page, "CSV")
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert name == "article.links.csv" and len(rows) == len(pairs)
    assert {row["sentence"] for row in rows} >= {"That is the end of a long day."}
    _, data = watched.downloaded(page, "Annotations")
    items = orjson.loads(data)["first"]["items"]
    assert len(items) == len(pairs)
    assert all(len(item["target"]["selector"]) == 2 for item in items)
    _, data = watched.downloaded(page, "Alt-text report")
    assert b"lost.jpg" in data and b"missing" in data
    name, data = watched.downloaded(page, "Page")
    assert name == "article.links.html" and data.count(b'class="badge"') == len(pairs)
    kept = watched.contexts[0].new_page()
    kept.set_content(data.decode())
    assert "3" in kept.locator("#sentence-5 .badge").all_inner_texts()


def test_a_corpus_is_sorted_and_stepped_through(watched):
    from playwright.sync_api import expect

    page = watched.open("/#corpus")
    page.locator("#rows button").nth(3).wait_for()
    page.locator("#scored", has_text="4 documents").wait_for()

    def shown_aucs():
        texts = page.locator("#rows .numbers > span:first-child").all_inner_texts()
        return [float(text.split()[-1]) for text in texts if text.startswith("AUC")]

    aucs = shown_aucs()
    assert len(aucs) == 4 and aucs == sorted(aucs)
    with page.expect_response("**/documents?*descending=true*") as event:
        page.select_option("#direction", "down")
    rows = event.value.json()["rows"]
    assert [row["auc"] for row in rows] == sorted((row["auc"] for row in rows), reverse=True)
    titles = [row["title"] for row in rows]
    expect(page.locator("#rows .name")).to_have_text(titles)

    def current():
        return page.locator("#rows [aria-current] .name").inner_text()

    page.keyboard.press("j")
    page.locator("#status", has_text="1 of 4, AUC").wait_for()
    frame = watched.frame(page)
    assert current() == titles[0] == page.inner_text("#title")
    frame.locator("#cells td[data-true]").first.wait_for()
    assert frame.locator("#cells td[data-true]").count() == 2
    assert frame.locator(".picture img").count() == 2
    assert frame.locator(".badge.right, .badge.wrong").count() >= 2
    frame.locator("#readout").click()
    page.keyboard.press("j")
    page.locator("#status", has_text="2 of 4").wait_for()
    page.keyboard.press("ArrowDown")
    page.locator("#status", has_text="3 of 4").wait_for()
    page.keyboard.press("k")
    page.locator("#status", has_text="2 of 4").wait_for()
    assert current() == titles[1]
    page.click("#next")
    page.locator("#status", has_text="3 of 4").wait_for()
    page.click("#correct")
    watched.frame(page).locator(".pick").nth(2).click()
    frame.locator(".choice[aria-pressed=false]").first.click()
    frame.locator(".badge.hand").wait_for()
    page.click("#previous")
    page.locator("#status", has_text="2 of 4").wait_for()
    _, data = watched.downloaded(page, "Corrected links")
    first, second = map(orjson.loads, data.splitlines())
    assert {first["id"], second["id"]} <= {f"pets-{n}" for n in range(4)}
    assert [2, 0] in first["links"] or [2, 1] in first["links"]
