"""The page of sample documents: everything shown, nothing of a document run or obeyed."""

import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from command_server import sightline
from hypothesis import given, settings
from hypothesis import strategies as st
from test_duplicate_report import picture

from sightline.corpus import read
from sightline.documents import Document
from sightline.images import Decoded, Status
from sightline.readers.native import write_jsonl
from sightline.sample_page import sample_documents, sample_page, write_sample_page

HOSTILE = [
    "<script>document.title='pwned'</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>1</script>",
    "<!--",
    "]]><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt; &amp;amp;",
    "a\0b\x1b[31m\u202ertl",
    "`${1}` {{7*7}}",
]
GREY = Decoded(np.full((4, 6, 3), 128, np.uint8), Status.ok)


class Outline(HTMLParser):
    """The elements and attributes of a page without what they say, and its text."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text, self.attributes = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, tuple(name for name, _ in attributes)))
        self.attributes += [(tag, name, value) for name, value in attributes]

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")


def page_of(name, split, texts, pictures):
    sentences, images = tuple(texts), tuple(texts)
    links = tuple((n, n) for n in range(0, len(texts), 2))
    documents = [Document(name, sentences, images, links, split)]
    return sample_page(name, {split: documents}, dict(zip(images, pictures, strict=True)))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(HOSTILE) | st.text(), min_size=1, max_size=5, unique=True))
def test_no_element_or_attribute_comes_from_a_document(texts):
    pictures = [GREY, Decoded(None, Status.undecodable, texts[0])] * 5
    hostile = Outline(page_of(texts[0], texts[-1], texts, pictures[: len(texts)]))
    tame = Outline(
        page_of("name", "split", [f"t{n}" for n in range(len(texts))], pictures[: len(texts)])
    )
    assert hostile.elements == tame.elements
    # Values are the same too, whatever the document says: its text is only ever text.
    assert hostile.attributes == tame.attributes


def test_the_text_is_all_there_and_only_escaped():
    shown = "".join(Outline(page_of("d", "train", HOSTILE, [GREY] * len(HOSTILE))).text)
    for text in HOSTILE:
        visible = text.replace("\0", "\ufffd").replace("\x1b", "\ufffd").replace("\u202e", "\ufffd")
        assert shown.count(visible) >= 2  # as a sentence and as the name of an image


def test_links_are_badges_on_both_sides():
    documents = [Document("d", ("a", "b"), ("x", "y"), ((1, 0), (0, 0)), "train")]
    outline = Outline(sample_page("c", {"train": documents}, {}))
    targets = [value for tag, name, value in outline.attributes if (tag, name) == ("a", "href")]
    assert targets == ["#d1-v0", "#d1-v0", "#d1-s0", "#d1-s1"]
    ids = {value for _, name, value in outline.attributes if name == "id"}
    assert {target[1:] for target in targets} <= ids


def test_a_policy_lets_nothing_in_but_the_style():
    page = page_of("d", "train", ["a"], [GREY])
    policy = next(v for _, n, v in Outline(page).attributes if v and v.startswith("default-src"))
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in policy
    assert "unsafe" not in policy and "script" not in policy
    assert "<script" not in page


def test_long_documents_are_cut_and_the_page_says_so():
    document = Document("d", ("a b",) * 500 + ("x" * 9999,), ("v",) * 70, (), "train")
    page = sample_page("c", {"train": [document]}, {"v": GREY})
    assert "301 more sentences are not shown." in page
    assert "10 more images are not shown." in page
    assert page.count("<li") == 200 and page.count("<img") == 60
    short = Document("d", ("x" * 9999,), ("v",), (), "train")
    assert len(sample_page("c", {"train": [short]}, {})) < 10_000


def corpus_of(folder, counts):
    documents = [
        Document(f"{split}-{n}", ("A sentence.",), ("one.png", "gone.png"), None, split)
        for split, count in counts.items()
        for n in range(count)
    ]
    write_jsonl(documents, folder / "documents.jsonl")
    return read(folder)


def test_samples_are_of_each_split_and_depend_on_the_seed_alone(tmp_path):
    corpus = corpus_of(tmp_path, {"test": 50, None: 3, "train": 50})
    samples = sample_documents(corpus, 5, seed=1)
    assert {split: len(chosen) for split, chosen in samples.items()} == {
        "train": 5, "test": 5, None: 3,
    }  # fmt: skip
    assert list(samples) == ["train", "test", None]
    numbers = [int(document.id.split("-")[1]) for document in samples["train"]]
    assert numbers == sorted(set(numbers))
    assert samples == sample_documents(corpus, 5, seed=1) != sample_documents(corpus, 5, seed=2)


def test_every_document_has_the_same_chance(tmp_path):
    corpus = corpus_of(tmp_path, {"train": 10})
    drawn = [
        document.id
        for seed in range(1000)
        for document in sample_documents(corpus, 3, seed)["train"]
    ]
    counts = [drawn.count(f"train-{n}") for n in range(10)]
    assert sum(counts) == 3000
    assert min(counts) > 240 and max(counts) < 360  # 300, and four standard deviations


def test_pictures_are_made_anew_and_never_from_outside_the_corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    picture(1).save(folder / "one.png")
    picture(2).save(tmp_path / "secret.png")
    (folder / "link.png").symlink_to("../secret.png")
    images = ("one.png", "../secret.png", str(tmp_path / "secret.png"), "gone.png", "link.png")
    write_jsonl([Document("d", ("s",), images)], folder / "documents.jsonl")
    assert write_sample_page(read(folder), tmp_path / "page.html") == 1
    page = (tmp_path / "page.html").read_text()
    assert page.count("<img") == page.count("data:image/jpeg;base64,") == 1
    assert page.count("No such file in the folder of the corpus.") == 2
    assert page.count("outside the folder of the corpus") == page.count("--copy-images") == 2


def test_on_the_command_line(tmp_path):
    corpus_of(tmp_path, {"train": 3})
    page = tmp_path / "page.html"
    _, words = sightline("corpus", tmp_path, "--no-images", "--sample-page", page, "--samples", 2)
    assert f"2 sample documents in {page}" in words
    assert page.read_text().count("<article") == 2


def test_a_place_where_the_page_cannot_be_is_told_before_the_work(tmp_path):
    corpus_of(tmp_path, {"train": 3})
    before = (tmp_path / "documents.jsonl").read_bytes()
    for page, words in (
        (tmp_path, "it is a folder; name a file in it"),
        (tmp_path / "new" / "page.html", "there is no folder"),
        (tmp_path / "documents.jsonl", "would be lost"),
    ):
        out, said = sightline("corpus", tmp_path, "--sample-page", page, expect=1)
        assert out == "" and words in said
    assert (tmp_path / "documents.jsonl").read_bytes() == before


def test_in_a_browser(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    page = tmp_path / "page.html"
    page.write_text(page_of("d", "train", HOSTILE, [GREY] * len(HOSTILE)), "utf-8", "replace")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in (320, 1280):
            tab = browser.new_page(viewport={"width": width, "height": 800})
            told, asked = [], []
            tab.on("console", lambda message, told=told: told.append(message.text))
            tab.on("dialog", lambda dialog, told=told: told.append(dialog.message))
            tab.on("request", lambda request, asked=asked: asked.append(request.url))
            tab.goto(page.as_uri())
            assert tab.title() == "Sample documents of d"
            assert told == []
            assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]
            assert tab.evaluate("document.images.length") == len(HOSTILE)
            assert tab.evaluate("[...document.images].every(i => i.naturalWidth === 6)")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
