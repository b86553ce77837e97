"""Documents and results in a notebook: static HTML that a browser shows and that runs nothing."""

import re
from html.parser import HTMLParser

import pytest
from hostile_texts import PAYLOADS
from service_helpers import photograph

from sightline import Document, DocumentLinks, Link

pytest_plugins = ["page_browser"]

#: What JupyterLab leaves of an output that it does not trust (packages/apputils/src/sanitizer.ts):
#: of these tags, of these attributes, and of the style the properties that are asked for here.
TAGS = {
    "div", "span", "b", "img", "details", "summary", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
ATTRIBUTES = {"class", "style", "dir", "alt", "title", "width", "height", "src"}
PROPERTIES = {
    "max-width", "line-height", "margin", "margin-top", "margin-bottom", "padding", "padding-left",
    "border", "border-left", "border-radius", "display", "vertical-align", "opacity", "font-size",
    "text-align",
}  # fmt: skip


class Elements(HTMLParser):
    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.found, self.open, self.text = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def check(html):
    """Only what passes the sanitizer, all elements closed, nothing fetched."""
    elements = Elements(html)
    assert not elements.open
    for tag, attributes in elements.found:
        assert tag in TAGS
        assert attributes.keys() <= ATTRIBUTES
        assert attributes.get("src", "data:image/").startswith("data:image/")
        for declaration in attributes.get("style", "").split(";"):
            assert declaration.partition(":")[0] in {*PROPERTIES, ""}
            assert "url" not in declaration
    return elements


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(3):
        (tmp_path / f"images/{number}.jpg").write_bytes(photograph(number, (400, 300)))
    return tmp_path


@pytest.fixture
def document(folder):
    images = ("images/0.jpg", "images/1.jpg", "images/2.jpg", "images/lost.jpg")
    sentences = ("A dog runs.", "A cat sleeps.", "The end.")
    return Document("pets", sentences, images, ((0, 0),), "test", {"title": "Pets"}, folder)


def test_a_document_shows_its_true_links(document):
    elements = check(document._repr_html_())
    text = "".join(elements.text)
    assert "Pets 3 sentences · 4 images · 1 true link · split test" in text
    assert text.index("A dog runs.") < text.index("images[0]") < text.index("A cat sleeps.")
    assert "Images without a linkimages[1]" in text
    assert "lost.jpg" in text
    pictures = [attributes for tag, attributes in elements.found if tag == "img"]
    assert len(pictures) == 3
    assert all(int(a["width"]) <= 160 and int(a["height"]) <= 160 for a in pictures)


def test_links_that_were_found_say_how_sure_they_are_and_which_are_true(document):
    found = DocumentLinks(document, [Link(0, 0, 0.9, 0.84), Link(2, 1, 0.4, 0.31)])
    text = "".join(check(found._repr_html_()).text)
    assert "images[0] · confidence 84 % · true" in text
    assert "images[1] · confidence 31 %Images" in text
    unsure = DocumentLinks(document, [Link(0, 0, 0.9), Link(2, 1, 0.4)])
    assert "images[1] · score 0.40" in "".join(check(unsure._repr_html_()).text)
    assert "0 links" in DocumentLinks(document)._repr_html_()


def test_documents_without_links_files_or_anything_are_shown(tmp_path):
    for document in (
        Document("a", ("x",), ("nothing",)),
        Document("b", (), ()),
        Document("c", ("x",), ("../../etc/passwd", "/etc/hostname", "a\0b", "\ud800", "x" * 5000)),
        Document("d", ("x",), ("images/no.jpg",), folder=tmp_path / "gone"),
    ):
        elements = check(document._repr_html_())
        assert not [tag for tag, _ in elements.found if tag == "img"]
        assert document.id in "".join(elements.text)


def test_pictures_from_outside_the_folder_are_not_put_into_the_notebook(folder):
    """Whoever wrote the corpus chose the paths; whoever shows it may publish the notebook."""
    (folder / "corpus").mkdir()
    paths = (str(folder / "images/0.jpg"), "../images/1.jpg")
    for place in (folder / "corpus", None):
        elements = check(Document("a", ("x",), paths, folder=place)._repr_html_())
        assert not [tag for tag, _ in elements.found if tag == "img"]
        assert "0.jpg" in "".join(elements.text) and "1.jpg" in "".join(elements.text)


def test_long_documents_stay_short_and_keep_their_links(folder):
    sentences = tuple(f"Sentence {number}. " + "word " * 400 for number in range(500))
    images = tuple(f"images/{number}.jpg" for number in range(400))
    for number in range(3, 40):
        (folder / f"images/{number}.jpg").write_bytes(photograph(number, (300, 900)))
    document = Document("long", sentences, images, folder=folder)
    found = DocumentLinks(document, [Link(480, 30, 0.9), Link(250, 399, 0.8)])
    html = found._repr_html_()
    text = "".join(check(html).text)
    folds = "".join(re.findall("<details.*?</details>", html))
    for number in (0, 249, 250, 251, 480):
        assert f"Sentence {number}." in text
        assert f"Sentence {number}." not in folds
    assert "Sentence 20." in folds
    assert "248 more sentences" in text
    assert "… 208 sentences …" in text
    assert "Sentence 100." not in text
    assert html.count("<img") <= 24
    assert "images[30] · score 0.90" in text
    assert "… 338 images …" in text
    assert len(html) < 800_000


def test_many_links_show_each_picture_once(folder):
    sentences = tuple(f"Sentence {number}." for number in range(300))
    document = Document("dense", sentences, ("images/0.jpg", "images/1.jpg"), folder=folder)
    found = DocumentLinks(document, [Link(s, s % 2, 0.9 - s / 1000) for s in range(300)])
    html = found._repr_html_()
    assert html.count("<img") == 2
    assert "239 more sentences, 239 of them linked" in "".join(check(html).text)
    assert len(html) < 300_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Documents in which everything is hostile, as they and their links are shown."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "a.jpg").write_bytes(photograph())
    shown = []
    for start in range(0, len(PAYLOADS), 80):
        texts = tuple(PAYLOADS[start : start + 80])
        name = texts[start // 8]
        document = Document(
            name, texts, ("a.jpg", *texts), ((0, 0),), name, {"title": name}, folder
        )
        links = DocumentLinks(document, [Link(n, n, 0.5, 0.5) for n in range(80)])
        shown += [document._repr_html_(), links._repr_html_()]
    return shown


def test_nothing_that_a_document_says_is_markup(hostile):
    assert len(hostile) == 6
    for html in hostile:
        elements = check(html)
        assert sum(tag == "img" for tag, _ in elements.found) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_and_runs_nothing(browser, hostile, document, scheme):
    found = DocumentLinks(document, [Link(0, 0, 0.9, 0.84), Link(2, 1, 0.4, 0.31)])
    ground, ink = {"light": ("#ffffff", "#111111"), "dark": ("#111111", "#eeeeee")}[scheme]
    body = "".join([found._repr_html_(), *hostile])
    page = browser.new_page(viewport={"width": 900, "height": 700})
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url))
    page.expose_function("owned", lambda: wrong.append("owned"))
    style = f"background:{ground};color:{ink}"
    page.set_content(f"<!doctype html><meta charset=utf-8><body style='{style}'>{body}</body>")
    wrong[:] = [one for one in wrong if not one.startswith("data:image/")]
    assert not wrong
    outputs = page.locator(".sightline")
    assert outputs.count() == 1 + len(hostile)
    first = outputs.first
    script = "image => [image.complete, image.naturalWidth]"
    sizes = first.locator("img").evaluate_all(f"images => images.map({script})")
    assert len(sizes) == 3
    assert all(complete and width > 0 for complete, width in sizes)
    # The text has the colour of the page around it.
    colour = "element => getComputedStyle(element).color"
    assert first.get_by_text("A dog runs.").evaluate(colour) == page.locator("body").evaluate(
        colour
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # The control: what is not escaped is seen to run.
    page.set_content(f"<body>{''.join(PAYLOADS[:40])}</body>")
    page.wait_for_timeout(100)
    assert "owned" in wrong
    page.close()
