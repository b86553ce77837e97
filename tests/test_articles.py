"""Articles: every kind of file becomes sentences with places and images with contents."""

import base64
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import docx
import numpy as np
import orjson
import pytest
from command_server import sightline
from made_files import PdfFile, epub, picture

from sightline.article_links import link_file
from sightline.articles import ArticleImages, article_kind, is_article, read_article
from sightline.backbones import load_backbone
from sightline.decode_pool import DecodePool
from sightline.fetching import Fetcher
from sightline.images import Status
from sightline.model import LinkModel
from sightline.problems import SightlineError

HTML = """<!doctype html><title>Foxes</title><article><h1>Foxes</h1>
<p>A fox is red. It runs over the hill every day, as foxes do when they are hungry.</p>
<figure><img src="fox.png" alt="A fox"><figcaption>The fox runs.</figcaption></figure>
<p>An owl sleeps. It wakes at night to hunt, and the mice know it well enough to hide.</p>
<img src="data:image/png;base64,{data}" title="An owl">
<img src="gone.png"><img src="../outside.png"><img src="https://example.org/far.png"></article>"""


@pytest.fixture
def html(tmp_path):
    folder = tmp_path / "article"
    folder.mkdir()
    (folder / "fox.png").write_bytes(picture(1))
    (tmp_path / "outside.png").write_bytes(picture(3))
    path = folder / "a.html"
    path.write_text(HTML.format(data=base64.b64encode(picture(2)).decode()))
    return path


def check(article):
    """Check what holds for every article."""
    text, document = article.page.text, article.document
    for sentence, (start, end) in zip(document.sentences, document.extra["spans"], strict=True):
        assert text[start:end] == sentence
    assert len(article.images) == len(document.images) == len(article.page.images)
    for image, name, position in zip(
        article.images, document.images, document.extra["positions"], strict=True
    ):
        assert image.name == name
        assert image.position == position
        assert 0 <= position <= len(text)
        assert (image.content is None) == (image.status is not None) == (image.reason is not None)
    assert document.folder == article.path.parent
    assert document.id


def test_html(html):
    article = read_article(html)
    check(article)
    assert article.kind == "html"
    assert "A fox is red." in article.document.sentences
    fox, owl, gone, outside, far = article.images
    assert (fox.name, fox.content, fox.alt) == ("fox.png", html.parent / "fox.png", "A fox")
    assert fox.caption == "The fox runs."
    assert (owl.name, owl.content, owl.title) == ("embedded-image-1.png", picture(2), "An owl")
    assert [image.status for image in (gone, outside, far)] == [Status.missing] * 3
    assert "no such file" in gone.reason
    # As much of it as a terminal of 80 columns shows.
    assert outside.reason == "It lies outside the page's folder; name the folder that holds both."
    assert "not fetched" in far.reason
    assert article.page.images[4].source == far.name == "https://example.org/far.png"


def test_units(html):
    whole = read_article(html, unit="paragraph").document.sentences
    assert any(sentence.startswith("A fox is red. It runs") for sentence in whole)


def test_markdown(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("# Foxes\n\nA fox is red.\n\n![A fox](fox.png)\n")
    (tmp_path / "fox.png").write_bytes(picture())
    article = read_article(path)
    check(article)
    assert (article.kind, article.images[0].content) == ("markdown", tmp_path / "fox.png")


def test_pdf_docx_and_epub(tmp_path):
    pdf = PdfFile()
    shown = [(pdf.image(), 50, 400, 200, 130)]
    pdf.page([(50, 700, 10, "A fox is red. It runs.")], shown).write(tmp_path / "a.pdf")
    word = docx.Document()
    word.add_paragraph("A fox is red. It runs.")
    (tmp_path / "fox.png").write_bytes(picture())
    word.add_picture(str(tmp_path / "fox.png"))
    word.save(tmp_path / "a.docx")
    body = '<p>A fox is red. It runs.</p><img src="a.png"/><img src="gone.png"/>'
    epub(tmp_path / "a.epub", {"a.xhtml": body}, {"OEBPS/a.png": picture()})
    for kind in ("pdf", "docx", "epub"):
        article = read_article(tmp_path / f"a.{kind}")
        check(article)
        assert article.kind == kind
        assert article.document.sentences == ("A fox is red.", "It runs.")
        assert isinstance(article.images[0].content, bytes)
    assert article.images[1].status is Status.missing


def test_kinds_by_content_and_suffix(tmp_path):
    path = tmp_path / "unknown"
    for data, kind in (
        (b"%PDF-1.4", "pdf"), (b"<!DOCTYPE html><p>", "html"), (b"{}", None), (b"", None),
    ):  # fmt: skip
        path.write_bytes(data)
        assert article_kind(path) == kind
        assert is_article(path) == (kind is not None)
    epub(path, {"a.xhtml": ""})
    assert article_kind(path) == "epub"
    assert not is_article(tmp_path)
    assert not is_article(tmp_path / "absent.html")
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert not is_article(tmp_path / "a.jsonl")


def test_what_is_no_article_is_a_sentence(tmp_path):
    with pytest.raises(SightlineError, match="no such file"):
        read_article(tmp_path / "absent.pdf")
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(SightlineError, match="is not HTML"):
        read_article(tmp_path / "a.jsonl")


def test_remote_images_are_fetched_when_asked(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "fox.png").write_bytes(picture())

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = partial(Quiet, directory=tmp_path / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site = f"http://127.0.0.1:{server.server_port}"
        path = tmp_path / "a.md"
        path.write_text(f"A fox.\n\n![]({site}/fox.png)\n\n![]({site}/gone.png)\n")
        fetched = read_article(path, fetch=Fetcher(allows=lambda address: address.is_loopback))
        refused = read_article(path, fetch=Fetcher())
        server.shutdown()
    check(fetched)
    assert fetched.images[0].content == picture()
    assert "status 404" in fetched.images[1].reason
    assert "not a public address" in refused.images[0].reason


def test_features_of_an_articles_images(html):
    backbone = load_backbone("efficientnet-lite0")
    article = read_article(html)
    with DecodePool(1) as pool:
        statuses, features = ArticleImages([article], backbone, pool).read([article.document])
    words = [status["status"] for status in statuses[0]]
    assert words == ["ok", "ok", "missing", "missing", "missing"]
    assert [status["id"] for status in statuses[0]] == list(article.document.images)
    assert features.shape == (2, backbone.dimension)
    _, again = ArticleImages([article], backbone).read([article.document])
    assert np.allclose(features, again)


def test_what_holds_nothing_is_told(tmp_path):
    for name, content, words in (
        ("a.txt", " \n\n", r"holds no text and no images\."),
        ("a.md", "", r"holds no text and no images\."),
        ("a.html", "<script>x</script>", "but what is left out: scripts and styles"),
    ):
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(SightlineError, match=words):
            read_article(path)


@pytest.mark.parametrize("suffix", [".html", ".txt", ".pdf", ".epub"])
def test_what_is_no_file_in_the_place_of_an_article_is_told_and_not_waited_for(tmp_path, suffix):
    pipe, lost = tmp_path / f"pipe{suffix}", tmp_path / f"lost{suffix}"
    os.mkfifo(pipe)
    lost.symlink_to(tmp_path / "nowhere")
    assert is_article(pipe) and is_article(lost) and not is_article(tmp_path / f"none{suffix}")
    with pytest.raises(SightlineError, match=r"pipe.*: .*is not a regular file\."):
        read_article(pipe)
    with pytest.raises(SightlineError, match=r"lost.*: .*cannot be read: No such file"):
        read_article(lost)


# ---- from Python


def test_a_file_is_linked_as_the_command_links_it(html):
    record = orjson.loads(sightline("link", html, "--policy", "mmc4", "--format", "jsonl")[0])
    found = link_file(str(html), policy="mmc4")
    expected = {name: record[name] for name in ("id", "links", "sentences")}
    assert expected == {name: found.to_dict()[name] for name in expected}
    assert [one["status"] for one in found.images] == [one["status"] for one in record["images"]]
    assert [one["status"] for one in found.images] == ["ok", "ok", "missing", "missing", "missing"]
    assert found.document.sentences[0] == "A fox is red."


@pytest.mark.parametrize(
    ("path", "choices", "sentence"),
    [
        ("https://example.com/a.html", {}, "pages are not downloaded"),
        (".", {}, "is a folder; name the file"),
        ("a.html", {"policy": "dens"}, "policy is 'dens'; expected assignment"),
        ("a.html", {"unit": "word"}, "unit is 'word'; expected sentence"),
    ],
)
def test_what_cannot_be_linked_is_told(html, path, choices, sentence):
    html.with_name("a.html").write_bytes(html.read_bytes())
    place = path if path.startswith("http") else html.parent / path
    with pytest.raises(SightlineError, match=sentence):
        link_file(place, **choices)


def test_a_folder_that_holds_file_and_images_can_be_named(tmp_path, monkeypatch):
    (tmp_path / "ch1").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "fox.png").write_bytes(picture(1))
    guide = tmp_path / "ch1" / "guide.md"
    guide.write_text("A fox runs.\n\n![](../images/fox.png)\n")
    monkeypatch.chdir(tmp_path)
    (without,) = link_file("ch1/guide.md").images
    assert without["status"] == "missing" and "outside the page's folder" in without["reason"]
    for folder in (".", tmp_path):
        found = link_file("ch1/guide.md", folder=folder)
        assert [(image["id"], image["status"]) for image in found.images] == [
            ("../images/fox.png", "ok")
        ]
        assert len(found) == 1


def test_a_file_is_linked_with_remote_images_only_if_asked(tmp_path):
    page = tmp_path / "page.html"
    page.write_text('<p>A fox runs.</p><img src="http://127.0.0.1:9/fox.png">')
    assert "was not fetched" in link_file(page).images[0]["reason"]
    assert "not a public address" in link_file(page, fetch=True).images[0]["reason"]


def test_an_address_is_not_taken_for_a_shard():
    _, words = sightline("link", "https://example.com/a.html", expect=1)
    assert "pages are not downloaded; save the page" in words


def test_a_model_links_documents_and_says_so():
    with pytest.raises(SightlineError, match="found str; for a file there is"):
        LinkModel.from_pretrained("default").link("a.html")


def test_the_pictures_inside_a_file_are_linked(tmp_path):
    chapters = {"a.xhtml": '<p>A dog.</p><img src="b.png"/>'}
    epub(tmp_path / "a.epub", chapters, {"OEBPS/b.png": picture(1)})
    found = link_file(tmp_path / "a.epub", LinkModel.from_pretrained("default"), "mmc4")
    assert [(one.sentence, one.image) for one in found] == [(0, 0)]
