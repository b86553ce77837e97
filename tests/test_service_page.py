"""The web page of the service in a real browser: what goes in, and what everybody can use."""

import base64
import io

import orjson
import pytest
from PIL import Image
from service_helpers import ARTICLE, photograph

pytest_plugins = ["page_browser"]


@pytest.fixture
def article(tmp_path, watched):
    """A folder with an article, its images, and what else lies in folders."""
    folder = tmp_path / "pets"
    (folder / "images").mkdir(parents=True)
    (folder / "article.html").write_text(ARTICLE)
    for name, data in watched.IMAGES.items():
        (folder / name).write_bytes(data)
    (folder / "notes.xyz").write_text("nothing to do with it")
    (folder / ".hidden.html").write_text("<p>Nor this.</p>")
    return folder


def test_an_example_is_shown_with_its_links(watched):
    page, frame = watched.open_example()
    assert page.inner_text("#title") == "Ocean Tides and the Moon"
    assert "OpenStax" in page.inner_text("#note") and "CC BY 4.0" in page.inner_text("#note")
    assert frame.locator("figure img").count() == 5
    assert page.inner_text("#status") == "Every image (MMC4): 5 links."
    assert frame.locator("#count").inner_text() == "5 links" and len(watched.links(frame)) == 5
    frame.locator("#image-1 img").hover()
    assert frame.locator(".sentence.lit").count() >= 1
    frame.locator("nav a[href='#matrix']").click()
    frame.locator("#cells td.link").first.wait_for()
    assert frame.locator("#cells td.link").count() == 5
    page.click("#back")
    assert page.is_visible("#drop") and page.locator("iframe").count() == 0


def test_files_and_folders_by_button_zip_and_drop(watched, article):
    page = watched.open()
    watched.give(page, ("article.html", ARTICLE.encode()), *watched.IMAGES.items())
    frame = watched.frame(page)
    assert frame.locator(".picture img").count() == 2
    assert "missing" in frame.locator("#image-3").inner_text()
    source = frame.locator("#image-1 img").get_attribute("src")
    assert Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))).size == (64, 48)
    page.click("#back")
    watched.give(page, watched.PETS)
    watched.frame(page)
    page.click("#back")
    page.set_input_files("#folder", article)
    frame = watched.frame(page)
    assert frame.locator(".picture img").count() == 2
    page.click("#back")

    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(article)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, "x": 600, "y": 400, "data": data}
        session.send("Input.dispatchDragEvent", event)
        if kind == "dragOver":
            page.locator("#drop.over").wait_for()
    frame = watched.frame(page)
    assert page.inner_text("#title") == "Pets"
    assert frame.locator(".picture img").count() == 2


def test_images_that_a_page_names_are_asked_for(watched):
    page = watched.open()
    watched.give(page, ("article.html", ARTICLE.encode()))
    notice = page.locator("#not-sent span")
    notice.wait_for()
    words = "This page names 3 images that were not sent: dog.jpg, cat.jpg, lost.jpg"
    assert notice.inner_text() == words
    files = [
        {"name": name.rpartition("/")[2], "mimeType": "image/jpeg", "buffer": data}
        for name, data in watched.IMAGES.items()
    ]
    for given, left in ((files[:1], "2 images that were not sent: cat.jpg, lost.jpg"),
                        (files[1:], "1 image that was not sent: lost.jpg")):  # fmt: skip
        with page.expect_file_chooser() as chooser:
            page.click("#add-missing")
        assert chooser.value.is_multiple()
        chooser.value.set_files(given)
        page.locator("#not-sent span", has_text=left).wait_for()
    frame = watched.frame(page)
    assert frame.locator(".picture img").count() == 2
    page.click("#back")
    watched.give(page, watched.PETS)
    watched.frame(page)
    assert not page.is_visible("#not-sent")


def test_images_alone_are_told_to_need_a_text(watched):
    page = watched.open()
    watched.give(page, ("dog.jpg", photograph(1)))
    page.locator("#problem strong", has_text="a document with text is needed").wait_for()
    assert page.locator("#pasted img").count() == 1 and page.is_visible("#text")


def paste(page, text, *images):
    page.evaluate("""([text, images]) => {
        const data = new DataTransfer();
        if (text) data.setData("text/plain", text);
        for (const image of images) {
          const bytes = Uint8Array.from(atob(image), (c) => c.charCodeAt(0));
          data.items.add(new File([bytes], "image.png", { type: "image/png" }));
        }
        document.body.dispatchEvent(
          new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }""", [text, [base64.b64encode(image).decode() for image in images]])  # fmt: skip


def test_pasted_text_and_images(watched):
    page = watched.open()
    submit = page.locator("#paste-form [type=submit]")
    paste(page, "A dog runs over the grass.\n\nA cat sleeps on the sofa.")
    assert submit.is_disabled()
    paste(page, None, photograph(1, form="PNG"), photograph(2, form="PNG"))
    paste(page, None, photograph(3, form="PNG"))
    assert page.locator("#pasted img").count() == 3
    assert page.evaluate("[...document.querySelectorAll('#pasted img')].every(i => i.complete)")
    page.click("[aria-label='Remove image 3']")
    submit.click()
    frame = watched.frame(page)
    assert frame.locator(".picture img").count() == 2
    assert "A cat sleeps on the sofa." in frame.locator("article").inner_text()
    _, data = watched.downloaded(page, "Corrected links")
    truth = orjson.loads(data)
    assert truth["images"] == ["image-1.png", "image-2.png"] and len(truth["links"]) == 2


def test_what_is_refused_is_said_in_words(watched):
    watched.expected = ("Failed to load resource",)
    page = watched.open()
    watched.give(page, ("broken.pdf", b"%PDF-1.7 nothing"))
    problem = page.locator("#problem")
    problem.locator("strong").wait_for()
    assert "pdf" in problem.inner_text().lower() and page.is_visible("#drop")
    watched.give(page, ("notes.xyz", b"x"))
    problem.locator("strong", has_text="There is no article among these files").wait_for()
    problem.locator("button").click()
    assert not problem.is_visible()
    page.route("**/v1/page", lambda route: route.fulfill(
        status=429, content_type="application/problem+json", headers={"Retry-After": "2"},
        body='{"detail": "Too much at a time.", "errors": [{"field": "file", "reason": "<b>"}]}',
    ))  # fmt: skip
    page.click("#examples button")
    problem.locator("strong", has_text="Too much at a time.").wait_for()
    assert "file: <b>" in problem.inner_text() and "in 2 seconds" in problem.inner_text()
    page.unroute("**/v1/page")
    page.route("**/v1/page", lambda route: route.abort())
    page.click("#examples button")
    problem.locator("strong", has_text="cannot be reached").wait_for()


def test_work_can_be_cancelled(watched):
    page = watched.open()
    page.route("**/v1/page", lambda route: None)
    page.click("#examples button")
    page.locator("#cancel").wait_for()
    assert page.inner_text("#work-words").startswith("tides.zip, ")
    assert page.evaluate("document.activeElement.id") == "work-title"
    page.click("#cancel")
    assert page.is_visible("#drop") and page.inner_text("#status") == "Cancelled."
    assert not page.is_visible("#problem")


def test_a_token_is_asked_for(watched):
    watched.expected = ("Failed to load resource",)

    def admit(route):
        if route.request.headers.get("authorization") == "Bearer secret words":
            route.continue_()
        else:
            body = '{"detail": "This service needs a token."}'
            route.fulfill(status=401, content_type="application/problem+json", body=body)

    page = watched.open("/healthz")
    page.route("**/v1/**", admit)
    page.goto(watched.url)
    page.fill("#token-text", "wrong")
    page.keyboard.press("Enter")
    page.locator("#token-text:focus").wait_for()
    page.fill("#token-text", "secret words")
    page.keyboard.press("Enter")
    page.click("#examples button")
    watched.frame(page)
    assert "secret" not in page.url
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


def test_a_phone_in_the_dark(watched):
    size = {"width": 390, "height": 800}
    page = watched.open(viewport=size, has_touch=True, color_scheme="dark")
    width = "document.documentElement.scrollWidth"
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(width) == 390
    assert page.evaluate(background) == "rgb(24, 23, 21)"
    page.click("#examples button")
    frame = watched.frame(page)
    body = frame.locator("body")
    assert page.evaluate(width) == body.evaluate(width) == 390
    assert body.evaluate(background) == "rgb(24, 23, 21)"
    page.tap("#correct")
    frame.locator("#sentence-9").tap()
    frame.locator("#panel.open .choice").first.tap()
    frame.locator(".badge.hand").wait_for()
    bottom = frame.locator("#sentence-9").evaluate("e => e.getBoundingClientRect().bottom")
    top = frame.locator("#panel").evaluate("e => e.getBoundingClientRect().top")
    assert bottom <= top + 1
    page.tap("#downloads summary")
    menu = page.locator("#downloads ul").bounding_box()
    assert menu["x"] >= 0 and menu["x"] + menu["width"] <= 390


def test_a_screen_reader_finds_its_way(watched):
    page = watched.open()
    page.locator("#examples button").first.wait_for()
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(252, 251, 248)"
    tree = page.locator("body").aria_snapshot()
    for part in ('heading "Which sentence', 'button "Choose files"', 'link "Article"', "main",
                 'button "Ocean Tides and the Moon A textbook section', "navigation"):  # fmt: skip
        assert part in tree, part
    page.click("#examples button")
    page.locator("#title:focus").wait_for()
    frame = watched.frame(page)
    tree = page.locator("#viewer").aria_snapshot()
    assert 'combobox "Policy"' in tree and 'button "Correct links"' in tree
    described = frame.locator("#image-1 .frame").get_attribute("aria-describedby")
    assert "Linked to: “" in frame.locator(f"#{described}").text_content()
    labels = frame.locator(".badge").evaluate_all("all => all.map(b => b.ariaLabel)")
    assert len(labels) == 5 and all("Image" in label and "score" in label for label in labels)
    assert page.get_attribute("#frame iframe", "title")


def test_the_policy_is_in_force(watched):
    watched.expected = ("Content Security Policy", "https://example.org")
    page = watched.open()
    page.locator("#examples button").first.wait_for()
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "ran = true";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "https://example.org/x.png";
        document.body.append(image);
        document.body.insertAdjacentHTML("beforeend", "<p style='color:red' onclick='ran=1'>x");
    }""")
    page.click("body > p")
    assert page.evaluate("window.ran") is None
    assert (
        page.evaluate("fetch('https://example.org').then(() => 'sent', () => 'stopped')")
        == "stopped"
    )
    page.click("#examples button")
    frame = watched.frame(page)
    # The frame has no rights over the page around it, nor anything to ask a server for.
    assert frame.locator("body").evaluate("self.origin") == "null"
    asked = frame.locator("body").evaluate(f"fetch('{watched.url}/healthz').then(() => 1, () => 0)")
    assert asked == 0
