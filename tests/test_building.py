"""Corpus folders as `sightline build` writes them."""

import hashlib
import re
import shlex
from collections import Counter
from pathlib import Path

import orjson
import pytest
from command_server import sightline
from counted_corpora import corpus_statistics
from test_mscoco import coco
from test_recipeqa import textual
from test_recipeqa import write as write_questions
from test_vist import SIS, dii_folder, sis_story
from test_vist import write as write_annotations

from sightline.building import build_corpus
from sightline.corpus import read
from sightline.documents import Document
from sightline.problems import Problems, SightlineError

DOCUMENT = Document("a", ("A cat.",), ("a.jpg",), ((0, 0),), "train")


def build(documents, output, dropped=None, inputs=()):
    return build_corpus(
        "sis",
        documents,
        output,
        inputs=inputs,
        options={"images": None},
        problems=Problems(),
        dropped=Counter() if dropped is None else dropped,
    )


def test_manifest_says_where_the_documents_come_from(tmp_path):
    (tmp_path / "in.json").write_bytes(b"{}")
    dropped = Counter({"stories with a missing image": 3, "others": 0})
    statistics = build(iter([DOCUMENT]), tmp_path / "out", dropped, [tmp_path / "in.json"])
    manifest = orjson.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest.pop("sightline")
    assert manifest == {
        "builder": "sis",
        "options": {"images": None},
        "inputs": [{"file": "in.json", "sha256": hashlib.sha256(b"{}").hexdigest()}],
        "dropped": {"stories with a missing image": 3},
        "bad_records": 0,
        "statistics": statistics.to_record(),
    }
    assert list(read(tmp_path / "out")) == [DOCUMENT]


def test_no_document_is_an_error_that_leaves_the_old_corpus(tmp_path):
    build([DOCUMENT], tmp_path / "out")
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    with pytest.raises(SightlineError, match=r"3 stories dropped.*nothing was written"):
        build([], tmp_path / "out", Counter({"stories": 3}))

    def failing():
        yield DOCUMENT
        raise SightlineError("the input is broken")

    with pytest.raises(SightlineError, match="the input is broken"):
        build(failing(), tmp_path / "out")
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(SightlineError, match="cannot be made a folder"):
        build([DOCUMENT], tmp_path / "out")


@pytest.fixture
def datasets(tmp_path):
    """Small made-up datasets, by the words that the documentation has for them."""
    for number, split in enumerate(("train", "val", "test")):
        stories = [a for story in range(4) for a in sis_story(f"{number}{story}")]
        write_annotations(tmp_path / "VIST" / "sis", SIS, split, stories)
    dii_folder(tmp_path / "VIST" / "dii", (20, 5, 5))
    train = [textual(f"r{n}", [1, 2, 1]) for n in range(40)]
    return {
        "captions_train2014.json": coco(tmp_path / "coco.json", dict.fromkeys(range(1, 201), 5)),
        "VIST": tmp_path / "VIST",
        "train.json": write_questions(tmp_path / "train.json", train),
        "val.json": write_questions(
            tmp_path / "val.json", [textual(f"t{n}", [2, 1]) for n in range(5)]
        ),
    }


EXPECTED = {
    "mscoco": ({"train": 60, "val": 4, "test": 4}, 0.05),
    "dii": ({"train": 60, "val": 15, "test": 15}, 0.2),
    "sis": ({"train": 4, "val": 4, "test": 4}, 0.2),
    "dii-stress": ({"train": 60, "val": 15, "test": 15}, 0.02),
    "rqa": ({"train": 35, "val": 5, "test": 5}, (40 / 3 + 5 / 2) / 45),
}


def documented_commands():
    text = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    for line in re.findall(r"^sightline build (.*)", text, re.MULTILINE):
        name, *words = shlex.split(line, comments=True)
        if name in EXPECTED:
            yield name, words


def test_each_documented_command_builds_a_corpus_twice_alike(tmp_path, datasets):
    seen = []
    for name, words in documented_commands():
        output, again = tmp_path / name, tmp_path / "again"
        arguments = [{**datasets, "CORPUS": output}.get(word, word) for word in words]
        out, said = sightline("build", name, *arguments)
        lines = [line.split() for line in out.splitlines()]
        assert lines[2][0] == name and lines[3][:2] == ["the", "paper"]
        assert f"documents in {output}" in said
        assert "images were not looked for" in said
        statistics = corpus_statistics(read(output))
        counts, density = EXPECTED[name]
        assert statistics.documents == counts
        assert statistics.density == pytest.approx(density)
        out, _ = sightline("build", name, *arguments, "-o", again, "--json")
        printed = orjson.loads(out)
        assert printed.pop("dropped") == {}
        assert printed == statistics.to_record()
        for file in ("documents.jsonl", "manifest.json"):
            assert (output / file).read_bytes() == (again / file).read_bytes()
        seen.append(name)
    assert seen == list(EXPECTED)


def test_bad_records_and_bad_files_end_with_words(tmp_path, datasets):
    captions = datasets["captions_train2014.json"]
    content = orjson.loads(captions.read_bytes())
    content["annotations"].append({"id": 1, "image_id": 2})
    captions.write_bytes(orjson.dumps(content))
    out = ["-o", tmp_path / "out"]
    _, words = sightline("build", "mscoco", captions, *out)
    assert "annotations[1000]: caption: expected" in words
    assert "1 bad record was skipped" in words
    _, words = sightline("build", "mscoco", captions, *out, "--strict", expect=1)
    assert "annotations[1000]" in words
    _, words = sightline("build", "sis", tmp_path / "VIST" / "dii", *out, expect=1)
    assert "no file train.story-in-sequence.json" in words
    _, words = sightline("build", "dii", datasets["VIST"], *out, "--images", "no", expect=1)
    assert "no such folder of images" in words


def test_cocos_own_captions_have_features(tmp_path, shared_data):
    """What is built from the shared captions names images that the shared features hold."""
    inputs = [shared_data / "coco" / "captions_val.json"]
    sightline("build", "mscoco", *inputs, "-o", tmp_path / "coco")
    features = shared_data / "coco" / "features"
    out, _ = sightline(
        "evaluate", "random", tmp_path / "coco", "--split", "val", "--features", features, "--json"
    )
    assert orjson.loads(out)["documents"] == 76
