"""Shards: found, done once, done again where something is missing, and named where they fail."""

import gzip
import os
import shutil

import numpy as np
import orjson
import pytest
from command_server import sightline
from PIL import Image
from sharded_corpus import WORDS, tiny_model, write_shards

from sightline.corpus import read
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.image_features import StoredImages
from sightline.link_records import link_records
from sightline.linking import LinkChoices
from sightline.problems import SightlineError
from sightline.readers.native import write_jsonl
from sightline.readers.tar_shards import write_shard
from sightline.readers.webdataset import sample_files
from sightline.shard_runs import run_shards
from sightline.shard_work import features_work, link_work, run_unit, work_from_json, work_to_json
from sightline.shards import ShardResult, find_shards, is_shard_folder


@pytest.fixture
def corpus(tmp_path):
    return write_shards(tmp_path)


def all_lines(folder):
    return sorted(
        line for file in folder.glob("*.links.jsonl") for line in file.read_bytes().splitlines()
    )


def run_all(shards, work):
    with work.opened() as unit:
        return [run_unit(unit, work, shard) for shard in shards]


def test_shards_of_folders_and_files(corpus, tmp_path):
    shards, *_ = corpus
    (shards / "_stats.json").write_text("{}")
    (shards / "notes.txt").write_text("no shard")
    found = find_shards([shards], tmp_path / "out")
    assert [shard.name for shard in found] == ["000", "001", "002", "003"]
    assert found[1].source == str(shards / "001.jsonl")
    assert found[1].stats == str(tmp_path / "out" / "001_stats.json")
    assert find_shards([shards / "001.jsonl", f"file://{shards}/000.jsonl"], tmp_path / "out") == [
        found[0],
        found[1],
    ]
    assert is_shard_folder(str(shards))
    (shards / "documents.jsonl").write_text("")
    assert not is_shard_folder(str(shards))
    assert not is_shard_folder(str(tmp_path / "model"))


def test_inputs_that_are_no_shards_are_refused(corpus, tmp_path):
    shards, model, _ = corpus
    with pytest.raises(SightlineError, match="there is no shard"):
        find_shards([model], tmp_path / "out")
    shutil.copy(shards / "000.jsonl", tmp_path / "000.jsonl")
    with pytest.raises(SightlineError, match="one name for their results"):
        find_shards([shards, tmp_path / "000.jsonl"], tmp_path / "out")
    with pytest.raises(SightlineError, match="a folder of their own"):
        find_shards([shards], shards)


def test_a_work_is_the_same_after_a_journey_as_json(corpus):
    _, model, features = corpus
    choices = LinkChoices("top-k", 2, 0.1, 0.0)
    for work in (
        link_work(str(model), features, choices, matrix=True, split="val"),
        features_work("efficientnet-lite0", None, 4),
    ):
        again = work_from_json(work_to_json(work))
        assert again == work
        assert again.key == work.key
    assert (
        link_work(str(model), features, LinkChoices()).key
        != link_work(str(model), features, choices).key
    )


def test_a_shard_gives_the_records_of_its_corpus_and_is_passed_over_afterwards(corpus, tmp_path):
    shards, model, features = corpus
    work = link_work(str(model), features, LinkChoices())
    found = find_shards([shards], tmp_path / "out")
    results = run_all(found, work)
    assert [result.documents for result in results] == [30] * 4
    for shard in found:
        source = StoredImages(FeatureStore.open(features))
        expected = link_records(tiny_model(), read(shard.source, allow_empty=True), source)
        lines = (tmp_path / "out" / f"{shard.name}.links.jsonl").read_bytes().splitlines()
        assert [orjson.loads(line) for line in lines] == list(expected)
        stats = orjson.loads((tmp_path / "out" / f"{shard.name}_stats.json").read_bytes())
        assert stats["documents"] == len(lines)
        assert stats["links"] == sum(len(orjson.loads(line)["links"]) for line in lines)
        assert stats["images"].keys() == {"ok"}
    written = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
    assert [result.before for result in run_all(found, work)] == [True] * 4
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()} == written


@pytest.mark.parametrize("what", ["stats gone", "output gone", "output cut", "input", "choices"])
def test_what_is_not_done_or_was_done_otherwise_is_done_anew(corpus, tmp_path, what):
    shards, model, features = corpus
    work = link_work(str(model), features, LinkChoices())
    found = find_shards([shards / "000.jsonl"], tmp_path / "out")
    run_all(found, work)
    output = tmp_path / "out" / "000.links.jsonl"
    before = output.read_bytes()
    if what == "stats gone":
        (tmp_path / "out" / "000_stats.json").unlink()
    elif what == "output gone":
        output.unlink()
    elif what == "output cut":
        output.write_bytes(before[:100])
    elif what == "input":
        content = (shards / "000.jsonl").read_bytes()
        (shards / "000.jsonl").write_bytes(content + content.splitlines()[0])
    else:
        work = link_work(str(model), features, LinkChoices("dense"))
    (result,) = run_all(found, work)
    assert not result.before
    assert (output.read_bytes() == before) == (what not in ("input", "choices"))


def test_a_model_that_changed_under_its_name_is_another_work(corpus, tmp_path):
    _, model, features = corpus
    before = link_work(str(model), features, LinkChoices()).key
    tiny_model("gru").save_pretrained(model)
    assert link_work(str(model), features, LinkChoices()).key != before


def damage(shards):
    """Break three of four shards, each in its way; gives what must be said of them."""
    content = (shards / "000.jsonl").read_bytes()
    (shards / "000.jsonl").unlink()
    (shards / "000.jsonl.gz").write_bytes(gzip.compress(content)[:-400])
    (shards / "001.jsonl").write_bytes(os.urandom(2000).replace(b"\n", b" ") + b"\n")
    (shards / "002.jsonl").unlink()
    (shards / "002.jsonl").symlink_to(shards / "002.jsonl")  # no file can be opened there
    return {"000": "ends early", "001": "no document could be read", "002": "002.jsonl"}


def test_damaged_shards_are_named_and_the_others_done(corpus, tmp_path):
    shards, model, features = corpus
    expected = damage(shards)
    _, words = sightline(
        "link", shards, "-o", tmp_path / "out", "--model", model, "--features", features,
        "--workers", 2, expect=1,
    )  # fmt: skip
    summary = words[words.index("1 of 4 shards done") :]
    for name, reason in expected.items():
        assert f"failed: {name}: " in summary
        assert reason in summary
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "003.links.jsonl", "003_stats.json", "manifest.json",
    ]  # fmt: skip
    manifest = orjson.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert not manifest["complete"]
    assert manifest["failed"].keys() == expected.keys()
    assert manifest["totals"]["documents"] == 30


def test_a_result_that_cannot_be_written_leaves_nothing_behind(corpus, tmp_path):
    """A limit on the size of files, which is what a full disk looks like to a writer."""
    shards, model, features = corpus
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))

    command = (
        "link", shards, "-o", tmp_path / "out", "--model", model, "--features", features,
        "--workers", 1,
    )  # fmt: skip
    work = link_work(str(model), features, LinkChoices())
    # The first shard alone has so few documents that its result is small enough.
    lines = (shards / "000.jsonl").read_bytes().splitlines(keepends=True)
    (shards / "000.jsonl").write_bytes(b"".join(lines[:3]))
    _, words = sightline(*command, expect=1, preexec_fn=limit)
    assert words.count("\nfailed: ") == 3
    assert "File too large" in words
    assert [file.name for file in (tmp_path / "out").glob("*.links.jsonl")] == ["000.links.jsonl"]
    assert not list((tmp_path / "out").glob(".sightline-*"))
    with_room = run_shards([shards], tmp_path / "out", work, workers=1)
    assert [result.before for result in with_room.results] == [True, False, False, False]
    assert len(all_lines(tmp_path / "out")) == 93


def test_the_command_decides_what_a_folder_of_shards_is(corpus, tmp_path):
    shards, model, features = corpus
    common = ("--model", model, "--features", features)
    _, words = sightline("link", shards, "-o", tmp_path / "out", *common)
    assert "4 of 4 shards done, 120 documents" in words
    assert orjson.loads((tmp_path / "out" / "manifest.json").read_bytes())["complete"]
    _, words = sightline("link", f"file://{shards}", "-o", tmp_path / "out", *common)
    assert "4 of 4 shards are done already" in words
    _, words = sightline("link", shards, "-o", tmp_path / "links.jsonl", *common, expect=2)
    assert "need a folder" in words
    # One file without --workers is a corpus, as ever.
    out, _ = sightline("link", shards / "001.jsonl", *common)
    assert sorted(out.encode().splitlines()) == sorted(
        (tmp_path / "out" / "001.links.jsonl").read_bytes().splitlines()
    )


def test_features_of_shards_then_links_with_a_store_per_shard(tmp_path):
    """Tar shards, whose images are unpacked on the way, and JSONL shards beside image files."""
    rng = np.random.default_rng(0)
    shards = tmp_path / "shards"
    (shards / "images").mkdir(parents=True)
    for number in range(2):
        files = []
        for image in ("a", "b"):
            path = shards / "images" / f"{number}{image}.jpg"
            Image.fromarray(rng.integers(0, 255, (64, 64, 3), np.uint8)).save(path)
            files.append(path)
        document = Document(
            f"d{number}", tuple(WORDS[1:4]), tuple(f"images/{file.name}" for file in files)
        )
        if number:
            write_jsonl([document], shards / "one.jsonl")
        else:
            images = [(v, "jpg", file.read_bytes()) for v, file in enumerate(files)]
            write_shard([sample_files(document, images)], shards / "two.tar")
    _, words = sightline("features", shards, "-o", tmp_path / "features", "--workers", 1)
    assert "2 of 2 shards done" in words
    for name in ("one", "two"):
        assert len(FeatureStore.open(tmp_path / "features" / name)) == 2
        stats = orjson.loads((tmp_path / "features" / f"{name}_stats.json").read_bytes())
        assert stats["images"] == {"ok": 2}
    again = run_shards(
        [shards], tmp_path / "features", features_work("efficientnet-lite0", None, 8)
    )
    assert [result.before for result in again.results] == [True, True]


def test_a_result_survives_json():
    result = ShardResult(shard="x", documents=3, images={"ok": 2}, error="no")
    assert ShardResult.from_json(result.to_json()) == result
