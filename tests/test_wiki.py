"""The WIKI builder on small collections in both shapes, sound and broken."""

import re
import shlex
from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest
from command_server import sightline
from PIL import Image

from sightline.image_folders import ImageFolder
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.readers.wiki import article_sentences, read_wiki
from sightline.readers.wiki_articles import read_imageclef

METADATA = """<?xml version="1.0" encoding="UTF-8" ?>
<image id="{id}" file="images/1/{id}.jpg">
  <name>A picture {id}.jpg</name>
  <text xml:lang="en">
    <description>Shown &amp; described</description>
    <comment/>
    {captions}
    <new_element><caption article="text/en/1/nested"/></new_element>
  </text>
  <text xml:lang="de"><description/><comment/><caption article="text/de/1/7">Bild</caption></text>
  <comment>({{{{Information}}}})</comment>
  <license>GFDL</license>
</image>
"""


def caption(article):
    return f'<caption article="{article}">A caption that is not part of the text.</caption>'


def wikitext(sentences, markup="{{Infobox|a=b}}\n"):
    body = " ".join(
        f"Sentence '''number''' {place} of the [[article]]." for place in range(sentences)
    )
    return f"{markup}{body}\n== References ==\n[[Category:A]]"


class Collection:
    """A folder in the layout of ImageCLEF's collection, to put things in."""

    def __init__(self, folder):
        self.folder = folder
        self.images = 0
        (folder / "metadata" / "1").mkdir(parents=True)

    def article(self, number, sentences=12, images=3, **options):
        path = self.folder / "text" / "en" / "1" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wikitext(sentences, **options))
        for _ in range(images):
            self.image(caption(f"text/en/1/{number}"))

    def image(self, captions):
        self.images += 1
        content = METADATA.format(id=self.images, captions=captions)
        self.metadata(f"{self.images:03}.xml", content)

    def metadata(self, name, content):
        (self.folder / "metadata" / "1" / name).write_text(content)


@pytest.fixture
def collection(tmp_path):
    return Collection(tmp_path / "clef")


def build(source, *, images=None, problems=None, seed=1, language="en", share=0.0):
    dropped = Counter()
    documents = read_wiki(
        source,
        language=language,
        seed=seed,
        validation=share,
        test=share,
        images=images,
        problems=problems or Problems(strict=True),
        dropped=dropped,
    )
    return list(documents), +dropped


def test_documents_have_sentences_images_and_unknown_links(collection):
    collection.article(10, sentences=12, images=4)
    (document,), dropped = build(collection.folder)
    assert document.id == "text/en/1/10"
    assert document.sentences[0] == "Sentence number 0 of the article."
    assert len(document.sentences) == 12
    assert document.images == tuple(f"images/1/{number}.jpg" for number in (1, 2, 3, 4))
    assert document.links is None
    assert document.split == "train"
    assert not dropped


def test_the_paper_s_limits(collection):
    collection.article(10, sentences=10, images=3)
    collection.article(11, sentences=9, images=3)
    collection.article(12, sentences=10, images=2)
    collection.article(13, sentences=150, images=3)
    documents, dropped = build(collection.folder)
    assert [len(document.sentences) for document in documents] == [10, 100]
    assert dropped == {
        "articles of fewer than 10 sentences": 1,
        "articles of fewer than 3 images": 1,
    }


def test_only_articles_of_the_language_and_only_captions_name_them(collection):
    collection.article(10)
    collection.image('<caption article="">No article</caption>')
    collection.image("")
    path = collection.folder / "text" / "de" / "1" / "7"
    path.parent.mkdir(parents=True)
    path.write_text(wikitext(20))
    assert [document.id for document in build(collection.folder)[0]] == ["text/en/1/10"]
    (german,), _ = build(collection.folder, language="de")
    assert german.id == "text/de/1/7"
    assert len(german.images) == 5


def test_an_image_in_two_articles(collection):
    collection.article(10, images=2)
    collection.article(11, images=2)
    collection.image(caption("text/en/1/10") + caption("text/en/1/11") + caption("text/en/1/11"))
    documents, _ = build(collection.folder)
    assert [document.images[2:] for document in documents] == [("images/1/5.jpg",)] * 2


def test_the_folder_all_text_is_found(collection, tmp_path):
    collection.article(10)
    (tmp_path / "download").mkdir()
    collection.folder.rename(tmp_path / "download" / "all_text")
    assert len(build(tmp_path / "download")[0]) == 1


BOMB = """<!DOCTYPE image [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<image id="1" file="images/1/1.jpg"><name>&b;</name></image>"""


@pytest.mark.parametrize(
    ("content", "field", "reason"),
    [
        (BOMB, None, "declares the entity 'a'"),
        ("<image id='1' file='a.jpg'>", None, "not valid XML"),
        ("", None, "not valid XML"),
        ("\0" * 10, None, "not valid XML"),
        ("<article id='1' file='a.jpg'/>", None, "expected the element image, found article"),
        ("<image file='a.jpg'/>", "image/@id", "expected, but it is not there"),
        ("<image id='1' file=' '/>", "image/@file", "expected, but it is not there"),
        (
            METADATA.format(id=1, captions=caption("../../secret")),
            "caption/@article",
            "no path inside the collection",
        ),
        (
            METADATA.format(id=1, captions=caption("/etc/passwd")),
            "caption/@article",
            "no path inside the collection",
        ),
        ("<image id='1' file='a.jpg'>" + " " * 2**20 + "</image>", None, "longer than 1,048,576"),
    ],
)
def test_bad_metadata_are_problems_and_the_rest_is_read(collection, content, field, reason):
    collection.article(10)
    collection.metadata("000.xml", content)
    problems = Problems()
    documents, _ = build(collection.folder, problems=problems)
    assert len(documents) == 1
    (problem,) = problems.first
    assert problem.file.endswith("000.xml")
    assert problem.field == field
    assert reason in problem.reason
    with pytest.raises(ProblemError):
        build(collection.folder)


def test_deeply_nested_and_external_metadata_do_no_harm(collection):
    collection.article(10)
    collection.metadata(
        "a.xml", "<image id='1' file='a.jpg'>" + "<a>" * 9_000 + "</a>" * 9_000 + "</image>"
    )
    outside = '<!DOCTYPE image SYSTEM "http://a.invalid/x"><image id="2" file="b.jpg">&x;</image>'
    collection.metadata("b.xml", outside)
    assert len(build(collection.folder)[0]) == 1


def test_an_article_without_text_is_counted(collection):
    collection.article(10)
    (collection.folder / "text" / "en" / "1" / "10").unlink()
    collection.article(11)
    (collection.folder / "text" / "en" / "1" / "11").write_bytes(
        b"\xff\xfe" + wikitext(12).encode()
    )
    documents, dropped = build(collection.folder)
    assert [document.id for document in documents] == ["text/en/1/11"]
    assert dropped == {"articles without a readable text": 1}


def test_a_folder_that_is_no_collection(tmp_path):
    with pytest.raises(SightlineError, match="no folder metadata in it"):
        list(read_imageclef(tmp_path, "en", 3, Problems(), Counter()))


# ---- articles as JSON lines


def record(number, **changes):
    images = [f"{number}_{place}.jpg" for place in range(3)]
    return {"id": f"a{number}", "text": wikitext(12), "images": images, **changes}


def write_lines(path, *records):
    lines = [line if isinstance(line, bytes) else orjson.dumps(line) for line in records]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_articles_as_json_lines(tmp_path):
    path = write_lines(
        tmp_path / "articles.jsonl",
        record(1, title="One", further=[1]),
        record(2, id=2, title=None),
    )
    (first, second), _ = build(path)
    assert first.extra == {"title": "One"}
    assert (second.id, second.extra) == ("2", {})
    assert first.images == ("1_0.jpg", "1_1.jpg", "1_2.jpg")
    assert len(first.sentences) == 12
    assert first.links is second.links is None


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"{", None),
        (b"[]", None),
        (record(1, id=""), "id"),
        (record(1, id=None), "id"),
        (record(1, text=None), "text"),
        (record(1, title=3), "title"),
        (record(1, images="a.jpg"), "images"),
        (record(1, images=["a.jpg", ""]), "images[1]"),
        ({"id": "a", "text": "b"}, "images"),
        ({"id": "a", "images": []}, "text"),
        (record(2), "id"),
    ],
)
def test_bad_lines_are_problems(tmp_path, line, field):
    path = write_lines(tmp_path / "articles.jsonl", record(2), line, record(3))
    problems = Problems()
    documents, _ = build(path, problems=problems)
    assert [document.id for document in documents] == ["a2", "a3"]
    assert [problem.field for problem in problems.first] == [field]


def test_splits_are_drawn_by_seed_in_proportion(tmp_path):
    path = write_lines(tmp_path / "articles.jsonl", *map(record, range(48)))
    documents, _ = build(path, share=1 / 16)
    assert Counter(document.split for document in documents) == {"train": 42, "val": 3, "test": 3}
    assert build(path, share=1 / 16)[0] == documents
    assert build(path, share=1 / 16, seed=2)[0] != documents
    numbers, _ = build(path, share=5)
    assert Counter(document.split for document in numbers) == {"train": 38, "val": 5, "test": 5}
    with pytest.raises(SightlineError, match="cannot have 60 of 48"):
        build(path, share=30)


def test_missing_and_broken_images_are_dropped(tmp_path):
    folder = tmp_path / "images"
    (folder / "deep").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in ("1_0.jpg", "1_1.jpg", "deep/1_2.jpg", "2_0.jpg", "2_1.jpg"):
        Image.fromarray(rng.integers(0, 255, (20, 20, 3), np.uint8)).save(folder / name)
    (folder / "2_2.jpg").write_bytes(b"\xff\xd8\xff broken")
    (folder / "1_3.jpg").write_bytes(b"")
    names = [f"https/x/1_{place}.jpg" for place in range(5)]
    path = write_lines(tmp_path / "articles.jsonl", record(1, images=names), record(2), record(3))
    images = ImageFolder.open(folder, tmp_path / "corpus")
    (document,), dropped = build(path, images=images)
    assert document.images == tuple(
        f"../images/{n}" for n in ("1_0.jpg", "1_1.jpg", "deep/1_2.jpg")
    )
    assert dropped == {
        "missing images": 4,
        "invalid images": 2,
        "articles of fewer than 3 images": 2,
    }


def test_sentences_without_letters_or_digits_do_not_count():
    text = "First one here. \n\n• … •\n\n!!!\n\nSecond one here."
    assert article_sentences(text) == ["First one here.", "Second one here."]


def test_the_command_writes_a_corpus(collection, tmp_path):
    for number in range(20):
        collection.article(number)
    output = tmp_path / "corpus"
    names = {"COLLECTION": collection.folder, "CORPUS": output}
    page = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    (command,) = re.findall(r"^sightline (build wiki .*)", page, re.MULTILINE)
    arguments = [names.get(word, word) for word in shlex.split(command)]
    out, words = sightline(*arguments)
    assert "18/1/1" in out and "N/A" in out and "14K/1K/1K" in out
    assert "images were not looked for" in words
    again = tmp_path / "again"
    sightline(*arguments, "-o", again)
    for file in ("documents.jsonl", "manifest.json"):
        assert (output / file).read_bytes() == (again / file).read_bytes()
    lines = (output / "documents.jsonl").read_bytes().splitlines()
    assert len(lines) == 20
    assert "links" not in orjson.loads(lines[0])
