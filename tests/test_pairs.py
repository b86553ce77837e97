"""Image-sentence pairs out of articles and corpora."""

import csv
import json
import os
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from command_server import sightline
from PIL import Image
from test_image_features import link_model

from sightline.articles import Article, ArticleImage
from sightline.corpus import read
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.linked_documents import LinkedDocument
from sightline.pages import Page
from sightline.pair_writing import pair_format, write_pairs
from sightline.pairs import Pair, PairChoice
from sightline.problems import SightlineError
from sightline.readers.native import write_jsonl

DOCUMENT = Document("d", ("A dog.", "A cat."), ("a.jpg", "b.jpg", "c.jpg"))


def linked(*links, document=DOCUMENT, contents=(None, None, None)):
    keys = ("sentence", "image", "score", "confidence")
    record = {
        "links": [dict(zip(keys, link, strict=True)) for link in links],
        "images": [{"status": "ok"}, {"status": "ok"}, {"status": "missing"}],
    }
    images = [ArticleImage(name, c, 0) for name, c in zip(document.images, contents, strict=True)]
    article = Article(Path("a.md"), "markdown", Page(None, (), ()), document, tuple(images))
    return LinkedDocument(document, record, article)


def test_links_below_a_limit_are_left_out_and_counted():
    links = [(0, 0, 0.9, 0.9), (1, 1, 0.8, 0.4), (0, 1, 0.1, 0.8)]
    choice = PairChoice(min_confidence=0.5, min_score=0.3)
    (pair,) = choice.pairs_of([linked(*links), linked()])
    assert pair.to_record() == {
        "image": "a.jpg", "sentence": "A dog.", "score": 0.9, "confidence": 0.9,
        "document": "d", "sentence_index": 0, "image_index": 0,
    }  # fmt: skip
    assert (choice.documents, choice.pairs) == (2, 1)
    assert +choice.left_out == {
        "links below the confidence": 1, "links below the score": 1, "images: missing": 2,
        "documents without a link": 1,
    }  # fmt: skip


def test_confidence_can_only_be_asked_of_a_model_that_has_it():
    with pytest.raises(SightlineError, match="not calibrated"):
        list(PairChoice(min_confidence=0.5).pairs_of([linked((0, 0, 0.9, None))]))
    assert len(list(PairChoice().pairs_of([linked((0, 0, 0.9, None))]))) == 1


def test_equal_pairs_are_given_once():
    choice = PairChoice()
    other = Document("e", DOCUMENT.sentences, ("x.jpg", "y.jpg", "z.jpg"))
    same = [linked((0, 0, 0.9, None), (1, 0, 0.8, None))] * 2
    inside = [
        linked((0, 0, 0.9, None), document=document, contents=(b"jpeg", None, None))
        for document in (DOCUMENT, other)
    ]
    found = list(choice.pairs_of([*same, *inside, linked((0, 0, 0.9, None), document=other)]))
    assert [(p.document, p.sentence_index) for p in found] == [
        ("d", 0), ("d", 1), ("d", 0), ("e", 0),
    ]  # fmt: skip
    assert choice.left_out["repeated pairs"] == 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two documents, an article, and a model of random weights."""
    folder = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(1)
    for name in ("a.jpg", "b.png", "c.jpg"):
        small = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8))
        small.resize((200, 150)).save(folder / name)
    (folder / "text.jpg").write_text("no image")
    documents = [
        Document("one", ("A dog.", "A cat.", "="), ("a.jpg", "gone.jpg", "b.png")),
        Document("two", ("A dog.", "A cat."), ("text.jpg", "c.jpg")),
        Document("two again", ("A dog.", "A cat."), ("text.jpg", "c.jpg")),
    ]
    write_jsonl(documents, folder / "corpus.jsonl")
    (folder / "article.md").write_text("A dog runs.\n\n![](a.jpg)\n\nA cat sleeps.\n")
    link_model("efficientnet-lite0").save_pretrained(folder / "model")
    return folder


def run(folder, output, *options, inputs=("corpus.jsonl", "article.md"), expect=0):
    paths = [folder / name for name in inputs]
    options = ["--model", folder / "model", "--policy", "mmc4", "-o", output, *options]
    return sightline("pairs", *paths, *options, expect=expect)


def test_jsonl_and_csv_hold_the_same_pairs(folder, tmp_path):
    out, words = run(folder, tmp_path / "pairs.jsonl", "--json")
    summary = json.loads(out)
    records = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert summary["pairs"] == len(records) == 4
    assert summary["documents"] == 4
    assert summary["left_out"] == {
        "images: missing": 1, "images: undecodable": 2, "repeated pairs": 1,
    }  # fmt: skip
    assert "left out: repeated pairs (1)" in words
    for record in records:
        assert (tmp_path / record["image"]).is_file()
        assert record["confidence"] is None and -1 <= record["score"] <= 1
    assert {record["document"] for record in records[:3]} == {"one", "two"}
    run(folder, tmp_path / "pairs.csv")
    with (tmp_path / "pairs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    sentences = [record["sentence"] for record in records]
    assert [row["sentence"] for row in rows] == ["'=" if s == "=" else s for s in sentences]
    assert [float(row["score"]) for row in rows] == [record["score"] for record in records]


def test_a_folder_of_shards_gives_the_pairs_of_its_files_with_a_store_each(folder, tmp_path):
    shards, stores = tmp_path / "shards", tmp_path / "stores"
    shards.mkdir()
    for name in ("a.jpg", "b.png", "c.jpg"):
        (shards / name).write_bytes((folder / name).read_bytes())
    first, *others = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
    (shards / "one.jsonl").write_text(first)
    (shards / "two.jsonl").write_text("".join(others))
    sightline("features", shards, "-o", stores)
    run(folder, tmp_path / "files.jsonl", inputs=(shards / "one.jsonl", shards / "two.jsonl"))
    options = ("--features", stores)
    _, words = run(folder, tmp_path / "shards.jsonl", *options, inputs=[shards])
    assert "image files are read" not in words
    of_files, of_shards = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("files.jsonl", "shards.jsonl")
    )
    assert len(of_shards) == 3
    for one, other in zip(of_files, of_shards, strict=True):
        assert one.pop("score") == pytest.approx(other.pop("score"), abs=1e-3)  # float16 features
        assert one == other


def test_link_records_give_the_pairs_of_their_documents_without_a_model(folder, tmp_path):
    run(folder, tmp_path / "anew.jsonl", inputs=["corpus.jsonl"])
    links = tmp_path / "links" / "corpus.links.jsonl"
    links.parent.mkdir()
    given = ("--model", folder / "model", "--policy", "mmc4")
    sightline("link", folder / "corpus.jsonl", *given, "-o", links)
    with links.open("a") as file:
        file.write('{"id": "x", "sentences": ["A."], "images": [], "links": [{"sentence": 0}]}\n')
        link = '{"sentence": 1, "image": 0, "score": 0.5, "confidence": null}'
        image = '{"id": "a.jpg", "status": "ok"}'
        rest = f'"sentences": ["A."], "images": [{image}], "links": [{link}]'
        file.write(f'{{"id": "y", {rest}}}\n')
    again = ("--images", folder, "--model", tmp_path / "no model")
    _, words = sightline("pairs", links.parent, *again, "-o", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "anew.jsonl").read_bytes()
    assert "corpus.links.jsonl:4: not a link record" in words
    assert "corpus.links.jsonl:5: links: names a sentence or an image that is not there" in words
    wrong = ("--images", tmp_path / "none", "-o", tmp_path / "none.jsonl")
    _, words = sightline("pairs", links, *wrong, expect=1)
    assert words == f"Error: --images {tmp_path / 'none'}: there is no such folder.\n"
    _, words = sightline("pairs", links, "-o", tmp_path / "pairs.tar")
    assert "0 pairs" in words and "name that folder with --images" in words


def test_webdataset_holds_the_files_as_they_are(folder, tmp_path):
    run(folder, tmp_path / "pairs.tar")
    with tarfile.open(tmp_path / "pairs.tar") as tar:
        members = {member.name: tar.extractfile(member).read() for member in tar}
    assert len(members) == 12
    files = {path.read_bytes(): path.suffix for path in folder.glob("[abc].*")}
    for number in range(4):
        record = json.loads(members[f"{number:09d}.json"])
        assert members[f"{number:09d}.txt"].decode() == record["sentence"]
        (name,) = (n for n in members if n[:9] == f"{number:09d}" and n[-3:] in ("jpg", "png"))
        assert files[members[name]] == name[-4:]
    pairs = list(read(tmp_path / "pairs.tar"))
    assert len(pairs) == 4 and all(len(p.sentences) == len(p.images) == 1 for p in pairs)
    run(folder, tmp_path / "shards", "--format", "webdataset")
    shard = tmp_path / "shards" / "000000.tar"
    assert shard.read_bytes() == (tmp_path / "pairs.tar").read_bytes()


def test_what_the_decoder_refuses_is_not_copied(tmp_path):
    Image.new("RGB", (9, 9)).save(tmp_path / "good.png")
    data = (tmp_path / "good.png").read_bytes()
    contents = [data, b"no image", data[:20], None, tmp_path / "good.png", tmp_path / "gone.png"]
    pairs = [
        Pair("x", "A dog.", 0.5, None, "d", 0, n, content) for n, content in enumerate(contents)
    ]
    left_out = Counter()
    with DecodePool(workers=1) as pool:
        count = write_pairs(pairs, tmp_path / "pairs.tar", "webdataset", pool, left_out)
    assert count == 2
    assert left_out["pairs without an image file"] == 2 and left_out.total() == 4


def test_images_inside_an_article_are_counted_where_there_is_no_room_for_them(tmp_path):
    left_out = Counter()
    pair = Pair("x", "A dog.", 0.5, None, "d", 0, 0, b"bytes")
    with DecodePool(workers=1) as pool:
        assert write_pairs([pair], tmp_path / "pairs.csv", "csv", pool, left_out) == 1
    assert left_out.total() == 1


def test_limits_and_failures_leave_no_file(folder, tmp_path):
    run(folder, tmp_path / "p.jsonl", "--min-score", "1")
    assert (tmp_path / "p.jsonl").read_bytes() == b""
    output = tmp_path / "new.jsonl"
    _, words = run(folder, output, "--min-confidence", "0.5", expect=1)
    assert "not calibrated" in words
    _, words = run(folder, tmp_path / "pairs", expect=2)
    assert "--format" in words
    (folder / "empty.jsonl").write_text("")
    run(folder, output, inputs=["empty.jsonl"], expect=1)
    assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl"]


def test_the_format_is_told_by_the_name_or_by_the_user(tmp_path):
    assert pair_format(tmp_path / "a.CSV", None) == "csv"
    assert pair_format(tmp_path / "a.tar", None) == "webdataset"
    assert pair_format(tmp_path / "a.txt", "jsonl") == "jsonl"


def link_records(file, images, confidences=None):
    count = len(images)
    links = [{"sentence": n, "image": n, "score": 0.5} for n in range(count)]
    for link, confidence in zip(links, confidences or (), strict=False):
        link["confidence"] = confidence
    record = {
        "id": "d",
        "sentences": [f"Number {n}." for n in range(count)],
        "images": [{"id": image, "status": "ok"} for image in images],
        "links": links,
    }
    file.write_text(json.dumps(record) + "\n")
    return file


def test_no_link_leads_an_image_of_elsewhere_into_pairs(tmp_path):
    corpus, elsewhere = tmp_path / "corpus", tmp_path / "elsewhere"
    for place in (corpus, elsewhere):
        place.mkdir()
        Image.new("RGB", (90, 60), "teal").save(place / "a.png")
    (corpus / "link.png").symlink_to("../elsewhere/a.png")
    (corpus / "folder").symlink_to("../elsewhere")
    (corpus / "loop.png").symlink_to("loop.png")
    (corpus / os.fsdecode(b"own\xff.png")).write_bytes((corpus / "a.png").read_bytes())
    (corpus / "own.png").symlink_to(os.fsdecode(b"own\xff.png"))
    odd = ["../a\0b", "/\0", "../corpus/loop.png", "loop.png"]
    images = ["a.png", "own.png", "link.png", "folder/a.png", *odd]
    links = link_records(corpus / "links.jsonl", images)
    for name in ("pairs.tar", "pairs.jsonl", "pairs.csv"):
        sightline("pairs", links, "--images", corpus, "-o", tmp_path / name)
    with tarfile.open(tmp_path / "pairs.tar") as archive:
        assert len(archive.getnames()) == 6  # two pairs
    assert len((tmp_path / "pairs.jsonl").read_text().splitlines()) == len(images)


def test_some_records_without_a_confidence_end_no_run(tmp_path):
    Image.new("RGB", (90, 60), "teal").save(tmp_path / "a.png")
    images, known = ["a.png"] * 3, [None, 0.9, 0.2]
    links = link_records(tmp_path / "links.jsonl", images, known)
    options = ("--images", tmp_path, "--min-confidence", "0.5", "-o", tmp_path / "pairs.csv")
    _, words = sightline("pairs", links, *options)
    assert "1 pair of" in words and "left out: links without a confidence (1)" in words
    link_records(links, images, [None] * 3)
    _, words = sightline("pairs", links, *options, expect=1)
    assert "not calibrated" in words
    link_records(links, images, [2.0, 0.9, 0.9])
    _, words = sightline("pairs", links, *options, expect=1)
    assert "links.jsonl:1: not a link record" in words


def test_no_image_outside_the_folder_of_a_corpus_is_copied(tmp_path):
    corpus, elsewhere = tmp_path / "corpus", tmp_path / "elsewhere"
    for place in (corpus, elsewhere):
        place.mkdir()
        Image.new("RGB", (90, 60), "teal").save(place / "a.png")
    images = ["a.png", "../elsewhere/a.png", str(elsewhere / "a.png"), "x" * 5_000]
    record = {
        "id": "d",
        "sentences": ["One.", "Two.", "Three.", "Four."],
        "images": [{"id": image, "status": "ok"} for image in images],
        "links": [{"sentence": n, "image": n, "score": 0.5} for n in range(4)],
    }
    links = corpus / "links.jsonl"
    links.write_text(json.dumps(record) + "\n")
    _, words = sightline("pairs", links, "-o", tmp_path / "a.tar")
    assert "left out: pairs whose image lies outside the corpus's folder (2)" in words
    assert "with --images" in words
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert len(archive.getnames()) == 3  # one pair
    sightline("pairs", links, "-o", tmp_path / "b.jsonl")
    assert len((tmp_path / "b.jsonl").read_text().splitlines()) == 4
    choice = PairChoice(images=tmp_path)
    document = Document("d", ("One.",), ("../elsewhere/a.png",), folder=corpus)
    link = {"sentence": 0, "image": 0, "score": 0.5, "confidence": None}
    one = LinkedDocument(document, {"links": [link], "images": [{"status": "ok"}]})
    assert [pair.is_outside for pair in choice.pairs_of([one])] == [False]
    assert [pair.is_outside for pair in PairChoice().pairs_of([one])] == [True]


def test_images_inside_of_shards_are_said_not_to_be_looked_at(folder, tmp_path):
    shards = tmp_path / "shards"
    sightline("convert", folder / "corpus.jsonl", shards, "--to", "webdataset")
    given = ("--model", folder / "model")
    for command in (
        ("pairs", shards, *given, "-o", tmp_path / "p.jsonl"),
        ("corpus", shards),
        ("duplicates", shards),
    ):
        _, words = sightline(*command)
        hint = f"unpack them with 'sightline convert {shards} FOLDER --to native'"
        assert words.count(hint) == 1
    (shards / "more.jsonl").write_text("")
    _, words = sightline("corpus", shards, expect=1)
    assert "shards of several kinds, .tar and more.jsonl" in words
