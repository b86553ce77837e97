"""Converting there and back, through every format, and what is said of what is lost."""

import shlex
import tempfile
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from command_server import sightline
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_documents import document_strategy
from test_mmc4 import GOOD_LINE, zipped
from test_mmc4 import RECORD as MMC4_RECORD
from test_obelics import RECORD as OBELICS_RECORD
from test_readers import needs_pyarrow
from test_webdataset import END, JPEG, PNG, entry, sample
from typer.testing import CliRunner

from sightline.cli import app
from sightline.conversion import convert
from sightline.corpus import SplitNotFound, read
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.problems import Problems, SightlineError
from sightline.readers.hessel2019 import Stored, read_hessel2019, write_hessel2019
from sightline.readers.native import write_jsonl

# A format and the name of what is written in it.
LOSSLESS = [
    ("native", "native.jsonl"),
    ("mmc4", "mmc4.jsonl.zst"),
    ("obelics", "obelics.jsonl.gz"),
    ("webdataset", "shard.tar"),
]
ALL = [
    *LOSSLESS,
    ("native", "folder"),
    ("webdataset", "shards"),
    ("hessel2019", "release"),
    pytest.param(("native", "native.parquet"), marks=needs_pyarrow),
    pytest.param(("obelics", "obelics.parquet"), marks=needs_pyarrow),
]


def converted(source, output, to, **options):
    return convert(
        read(source, problems=Problems(strict=True), allow_empty=True), output, to, **options
    )


def through(source, folder, chain):
    """Convert through a chain of formats to the native one; gives the documents and the losses."""
    folder = Path(folder)
    dropped = {}
    for number, (to, name) in enumerate([*chain, ("native", "end.jsonl")]):
        target = folder / str(number)
        target.mkdir()
        conversion = converted(source, target / name, to)
        counts = conversion.leftovers.dropped
        dropped |= {kind: n for kind, n in counts.items() if n and kind != "images without file"}
        source = target / name
    return list(read(source, strict=True, allow_empty=True)), dropped


# There and back


@settings(max_examples=40, deadline=None)
@given(
    documents=st.lists(document_strategy(), min_size=1, max_size=3),
    chain=st.lists(st.sampled_from(LOSSLESS), min_size=1, max_size=3),
)
def test_documents_come_back_through_every_chain(documents, chain):
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(documents, Path(folder, "start.jsonl"))
        found, dropped = through(Path(folder, "start.jsonl"), folder, chain)
    assert found == documents
    assert [list(document.extra) for document in found] == [list(d.extra) for d in documents]
    assert dropped == {}


SIMPLE = [
    Document(
        "a", ("Ein Höhlenbär.", "熊が歩く。"), ("x.jpg", "f/y.png"), ((1, 0), (1, 1)), "train"
    ),
    Document("b", ("One.\n\nTwo.", "Three."), ("https://a.org/z.jpg?w=1",), (), "val"),
    Document("c", ("🐻", "Two."), ("y", "g/y.gif"), None, "test"),
]


@pytest.mark.parametrize("first", ALL)
@pytest.mark.parametrize("second", ALL)
def test_documents_come_back_through_every_pair(first, second, tmp_path):
    write_jsonl(SIMPLE, tmp_path / "start.jsonl")
    found, dropped = through(tmp_path / "start.jsonl", tmp_path, [first, second])
    assert found == SIMPLE
    assert dropped == {}


@pytest.mark.parametrize("record", [MMC4_RECORD, OBELICS_RECORD], ids=["mmc4", "obelics"])
@pytest.mark.parametrize(
    "by", [*LOSSLESS, pytest.param(("native", "native.parquet"), marks=needs_pyarrow)]
)
def test_records_of_others_come_back_byte_by_byte(record, by, tmp_path):
    lines = [orjson.dumps({**record, "n": n}, option=orjson.OPT_APPEND_NEWLINE) for n in range(3)]
    source = tmp_path / "start.jsonl"
    source.write_bytes(b"bad\n".join(lines))  # what is skipped changes the line numbers
    corpus = read(source)
    convert(corpus, tmp_path / by[1], by[0])
    assert corpus.problems.count == 2
    converted(
        tmp_path / by[1], tmp_path / "end.jsonl", "mmc4" if record is MMC4_RECORD else "obelics"
    )
    assert (tmp_path / "end.jsonl").read_bytes() == b"".join(lines)


@needs_pyarrow
def test_nulls_in_objects_in_lists_come_back_from_parquet(tmp_path):
    faces = [{"face": None, "name": "a"}, {"face": None, "name": "b"}]
    documents = [replace(document, extra={"faces": faces}) for document in SIMPLE]
    write_jsonl(documents, tmp_path / "start.jsonl")
    chain = [("native", "native.parquet")]
    assert through(tmp_path / "start.jsonl", tmp_path, chain) == (documents, {})


def test_empty_documents_are_converted_too(tmp_path):
    documents = [Document("a", (), ()), Document("b", ("", "x"), ()), Document("c", (), ("i",))]
    write_jsonl(documents, tmp_path / "start.jsonl")
    found, dropped = through(tmp_path / "start.jsonl", tmp_path, LOSSLESS)
    assert found == documents
    assert dropped == {}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["guides", "openstax"])
def test_real_documents_come_back(name, shared_data, tmp_path):
    documents = list(read(shared_data / name))
    chain = [("obelics", "a.jsonl"), ("mmc4", "b.jsonl")]
    assert through(shared_data / name, tmp_path, chain) == (documents, {})


# What is lost


def test_release_says_what_it_has_no_room_for(tmp_path):
    every = tuple((sentence, image) for sentence in range(3) for image in range(3))
    mmc4, obelics = tmp_path / "mmc4.jsonl", tmp_path / "obelics.jsonl"
    mmc4.write_bytes(orjson.dumps(MMC4_RECORD))
    obelics.write_bytes(orjson.dumps(OBELICS_RECORD))
    documents = [
        Document("a", ("a", "b", "c"), ("x", "y", "z"), every, "dev", {"title": "t", "lang": "en"}),
        *read(mmc4),
        *read(obelics),
    ]
    write_jsonl(documents, tmp_path / "start.jsonl")
    conversion = converted(tmp_path / "start.jsonl", tmp_path / "release", "hessel2019")
    assert +conversion.leftovers.dropped == {
        "links": 3,
        "keys": 4,
        "matrices": 1,
        "positions": 1,
        "splits": 3,
    }


def test_release_has_the_ids_that_the_original_code_looks_up(tmp_path):
    images = ("images/x.jpg", "y.tar.gz", "z", "a\\b.png", "https://a.org/q.jpg")
    clashes = ("other/x.jpg", "x", "x~2", "images/.jpg")
    documents = [
        Document("d", ("a",), images, None, "train"),
        Document("e", ("a",), (*clashes, "images/x.jpg"), None, "train"),
    ]
    assert write_hessel2019(documents, tmp_path) == Stored(2, 0, 0)
    (first, _, _), (second, _, _) = orjson.loads((tmp_path / "docs.json").read_bytes())["train"]
    assert [image for image, _ in first] == [FeatureStore.image_id(image) for image in images]
    assert [image for image, _ in second] == ["x~2", "x~3", "x~2~2", ".jpg", "x"]
    assert list(read_hessel2019(tmp_path, Problems(strict=True))) == documents
    # Where nothing is shortened there is nothing to keep, and nothing old is left.
    write_hessel2019([Document("d", ("a",), ("z",), None, "train")], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["docs.json"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{"])
def test_broken_paths_of_a_release(content, tmp_path):
    write_hessel2019([Document("d", ("a",), ("f/x.jpg",))], tmp_path)
    (tmp_path / "image_paths.json").write_bytes(content)
    with pytest.raises(
        SightlineError, match=r"image_paths\.json: (not valid JSON|expected an obj)"
    ):
        list(read(tmp_path))


def test_links_from_matches_and_from_layout(tmp_path):
    for name, record in (("mmc4", MMC4_RECORD), ("obelics", OBELICS_RECORD)):
        (tmp_path / f"{name}.jsonl").write_bytes(orjson.dumps(record))
    converted(tmp_path / "mmc4.jsonl", tmp_path / "a.jsonl", "native", links_from_matches=True)
    converted(tmp_path / "obelics.jsonl", tmp_path / "b.jsonl", "native", links_from_layout=True)
    assert [document.links for document in read(tmp_path / "a.jsonl")] == [((2, 0), (1, 1))]
    assert [document.links for document in read(tmp_path / "b.jsonl")] == [((1, 1),)]


# Images


@pytest.fixture
def with_images(tmp_path):
    folder = tmp_path / "corpus"
    (folder / "images").mkdir(parents=True)
    Image.new("RGB", (30, 20), "teal").save(folder / "images" / "teal.jpg")
    Image.new("RGB", (30, 20), "gold").save(folder / "images" / "gold.png")
    (folder / "notes.jpg").write_bytes(b"no image")
    images = ("images/teal.jpg", "images/gold.png", "images/absent.jpg", "notes.jpg", "bad\0name")
    documents = [
        Document("a", ("a",), images),
        Document("b", ("b",), ("images/gold.png", "http://a.org/b.jpg")),
    ]
    write_jsonl(documents, folder / "documents.jsonl")
    return folder


@pytest.mark.parametrize("name", ["shard.tar", "shards"])
def test_images_go_into_shards_and_come_out_again(name, with_images, tmp_path):
    conversion = converted(with_images, tmp_path / name, "webdataset")
    assert +conversion.leftovers.dropped == {"images without file": 4}
    again = converted(tmp_path / name, tmp_path / "again.tar", "webdataset")
    assert +again.leftovers.dropped == {"images without file": 4}
    back = converted(tmp_path / "again.tar", tmp_path / "back", "native")
    assert back.unpacked == 3
    assert +back.leftovers.dropped == {"images without file": 4}
    assert list(read(tmp_path / "back")) == list(read(with_images))
    for image in ("images/teal.jpg", "images/gold.png"):
        assert (tmp_path / "back" / image).read_bytes() == (with_images / image).read_bytes()
    assert len(list((tmp_path / "back").rglob("*.*"))) == 3


def test_shards_of_strangers_are_unpacked_under_safe_names(tmp_path):
    images = ["../../evil.jpg", "documents.jsonl", "images/ok.jpg", "https://a.org/x.jpg"]
    record = {"id": "d", "sentences": ["a"], "images": images}
    data = sample("../../0", record, JPEG, PNG, JPEG, b"#!/bin/sh") + entry("1.cls", b"5")
    data += entry("1.jpg", PNG) + entry("1.txt", b"A dog.")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "shard.tar").write_bytes(data + END)
    out = tmp_path / "out" / "native"
    conversion = converted(tmp_path / "in" / "shard.tar", out, "native")
    assert conversion.unpacked == 4
    assert +conversion.leftovers.dropped == {"images without file": 1, "other files": 1}
    first, second = read(out)
    assert first.images[2:] == ("images/ok.jpg", "https://a.org/x.jpg")
    assert second.images == ("images/1.jpg",)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    expected = {f"out/native/{name}" for name in (*first.images[:3], "images/1.jpg")}
    assert written == {"in/shard.tar", "out/native/documents.jsonl", *expected}
    assert all(image.startswith("images/") for image in first.images[:3])


def test_images_of_the_same_name_in_two_shards(tmp_path):
    (tmp_path / "in").mkdir()
    for number, data in enumerate((JPEG, PNG)):
        shard = entry("0.jpg", data) + entry("0.txt", b"A dog.") + END
        (tmp_path / "in" / f"{number}.tar").write_bytes(shard)
    converted(tmp_path / "in", tmp_path / "out", "native")
    found = [document.images[0] for document in read(tmp_path / "out")]
    assert [(tmp_path / "out" / image).read_bytes() for image in found] == [JPEG, PNG]


# What is written and what is not


@pytest.mark.parametrize(
    ("name", "to"),
    [("a.json", "native"), ("a.parquet", "mmc4"), ("a.jsonl", "webdataset"), ("a.tar", "native"),
     ("docs.json", "hessel2019"), ("a.tar", "obelics")],
)  # fmt: skip
def test_wrong_name(name, to, tmp_path):
    write_jsonl(SIMPLE, tmp_path / "start.jsonl")
    with pytest.raises(SightlineError, match=rf"{name} cannot be written as {to}; expected a "):
        converted(tmp_path / "start.jsonl", tmp_path / name, to)
    assert [path.name for path in tmp_path.iterdir()] == ["start.jsonl"]


@pytest.mark.parametrize(("to", "name"), [*LOSSLESS, ("webdataset", "shards"), ("hessel2019", "r")])
def test_without_a_document_nothing_is_written(to, name, tmp_path):
    start = tmp_path / "start.jsonl"
    start.write_bytes(b"bad\n")
    with pytest.raises(SightlineError, match="no document could be converted"):
        convert(read(start), tmp_path / name, to)
    write_jsonl(SIMPLE, start)
    with pytest.raises(SplitNotFound, match="its splits are train, val, test"):
        convert(read(start, split="held-out"), tmp_path / name, to)
    assert [path.name for path in tmp_path.iterdir()] == ["start.jsonl"]


def test_what_json_cannot_hold_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.jsonl"
    write_jsonl(SIMPLE, path)
    before = path.read_bytes()
    converted(path, path, "mmc4")  # onto itself
    assert list(read(path)) == SIMPLE
    converted(path, path, "native")
    assert path.read_bytes() == before


def test_splits(tmp_path):
    write_jsonl(SIMPLE, tmp_path / "start.jsonl")
    converted(tmp_path / "start.jsonl", tmp_path / "all.tar", "webdataset")
    for source in ("start.jsonl", "all.tar"):
        corpus = read(tmp_path / source, split="validation")
        assert convert(corpus, tmp_path / "val.jsonl", "native").documents == 1
        assert list(read(tmp_path / "val.jsonl")) == [SIMPLE[1]]


# The command


def test_commands_of_the_documentation(tmp_path, monkeypatch):
    page = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    block = page.partition("## Converting")[2].split("```")[1]
    monkeypatch.chdir(tmp_path)
    zipped(Path("docs_shard_0_v2.jsonl.zip"), GOOD_LINE * 3)
    seen = 0
    for line in block.strip().splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
        assert "3 documents written" in done.stderr
        seen += 1
    assert seen == 7
    assert list(read("UNPACKED")) == list(read("CORPUS"))
    assert len(list(read("RELEASE"))) == 3


def test_command_says_what_became_of_it(with_images, tmp_path):
    documents = [
        replace(document, links=((0, 0),), split="val", extra={"title": "t"})
        for document in read(with_images)
    ]
    write_jsonl(documents, with_images / "documents.jsonl")
    with (with_images / "documents.jsonl").open("ab") as file:
        file.write(b"bad\n")
    out, words = sightline("convert", with_images, tmp_path / "a.jsonl", "--to", "mmc4", "--json")
    assert orjson.loads(out) == {
        "documents": 2,
        "skipped": 1,
        "dropped": {},
        "aside": {"splits": 2, "keys": 2},
        "unpacked": 0,
        "output": str(tmp_path / "a.jsonl"),
    }
    assert "documents.jsonl:3: not valid JSON" in words
    assert "1 bad record was skipped" in words
    assert f"2 documents written to {tmp_path / 'a.jsonl'}" in words
    assert "kept under the key sightline, which others do not read: 2 splits, 2 keys" in words
    assert f"image paths are still relative to {with_images}" in words
    out, words = sightline("convert", with_images, tmp_path / "r", "--to", "hessel2019")
    assert out == ""
    assert "dropped, because the format has no room for them: 2 keys" in words
    out, words = sightline(
        "convert", with_images, tmp_path / "s", "--to", "webdataset", "--shard-size", 1
    )
    assert "dropped, because the format has no room for them: 4 images without file" in words
    assert "image paths" not in words
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["000000.tar"]


def test_the_output_is_an_argument_or_an_option(with_images, tmp_path):
    sightline("convert", with_images, tmp_path / "a.jsonl", "--to", "mmc4")
    sightline("convert", with_images, "-o", tmp_path / "b.jsonl", "--to", "mmc4")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    both = (tmp_path / "c.jsonl", "-o", tmp_path / "d.jsonl")
    _, words = sightline("convert", with_images, *both, "--to", "mmc4", expect=2)
    assert "two outputs" in words and not (tmp_path / "c.jsonl").exists()
    _, words = sightline("convert", with_images, "--to", "mmc4", expect=2)
    assert "no output; name a file or folder: convert CORPUS OUTPUT --to mmc4" in words


@pytest.mark.parametrize("output", ["c", "c/documents.jsonl", "./c/../c/"])
def test_what_is_read_is_not_written_over(tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    Path("c").mkdir()
    write_jsonl(SIMPLE, Path("c/documents.jsonl"))
    before = Path("c/documents.jsonl").read_bytes()
    arguments = ["convert", "c", output, "--to", "native", "--split", "val"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1 and "is what is read, and would be lost" in str(done.exception)
    assert Path("c/documents.jsonl").read_bytes() == before


def test_command_in_the_wrong(with_images, tmp_path):
    out = tmp_path / "a.tar"
    _, words = sightline("convert", with_images, out, expect=2)
    assert "--to" in words
    wrong = ("convert", with_images, out, "--to", "webdataset", "--shard-size", 5)
    assert "--shard-size goes with" in sightline(*wrong, expect=2)[1]
    (with_images / "documents.jsonl").write_bytes(b"bad\n")
    _, words = sightline("convert", with_images, out, "--to", "webdataset", "--strict", expect=1)
    assert "Error: " in words and "documents.jsonl:1: not valid JSON" in words
    assert not out.exists()
