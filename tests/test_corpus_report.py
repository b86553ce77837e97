"""`sightline corpus` as a user meets it."""

import re
from pathlib import Path

import orjson
import pytest
from command_server import sightline
from test_duplicate_report import picture

from sightline.corpus import read
from sightline.corpus_report import check_corpus, leak_warnings, report_text
from sightline.documents import Document
from sightline.readers.native import write_jsonl

TEXT = ("The cat sat on the mat.", "A dog ran over the road.")


@pytest.fixture(scope="module")
def leaking(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("leaking")
    picture(1).save(tmp_path / "one.png")
    picture(2).save(tmp_path / "two.png")
    picture(3).save(tmp_path / "three.png")
    (tmp_path / "two-copy.png").write_bytes((tmp_path / "two.png").read_bytes())
    documents = [
        Document("t", TEXT, ("one.png", "two.png"), ((0, 1),), "train"),
        Document("u\x1b[31m", TEXT, ("one.png", "two.png"), None, "train"),
        Document("v", TEXT, ("one.png", "two-copy.png", "gone\n.png"), (), "test"),
    ]
    write_jsonl(documents, tmp_path / "documents.jsonl")
    return tmp_path


@pytest.fixture(scope="module")
def shown(leaking):
    return sightline("corpus", leaking)


def test_a_leak_is_loud_and_fails_the_check_only(leaking, shown):
    out, words = shown
    assert "LEAK: test shares 1 of its 3 images with train: " in words
    assert "one.png in t and v" in words
    assert "LEAK: test shares 1 of its 1 images with train under other names" in words
    assert "two.png = two-copy.png in t and v" in words
    assert "LEAK of images" in out
    sightline("corpus", leaking, "--check", "--no-images", expect=1)
    sightline("corpus", leaking, "--check", "--no-images", "--split", "train")


def test_the_text_says_what_was_found_and_no_control_characters(shown):
    out, words = shown
    assert "2/0/1" in out
    assert "duplicate documents  1: t = u?[31m" in out
    assert "unknown links        1 document (33.3 %)" in out
    assert "3 ok, 1 missing (gone?.png: The file cannot be read: no such file." in out
    assert "tokens per sentence (mean 7.0, median 7, most 7)\n  7  ####" in out
    assert not set("\x1b\x07") & set(out + words)


def test_a_split_may_have_any_name(tmp_path):
    documents = [
        Document(f"d{split}", TEXT, ("a",), None, split) for split in ("\x07", "\x1b[2J", "")
    ]
    write_jsonl(documents, tmp_path / "documents.jsonl")
    report = check_corpus(read(tmp_path), images=False)
    words = report_text(report) + "".join(leak_warnings(report))
    assert words.count("LEAK") == 6
    assert all(character.isprintable() or character == "\n" for character in words)


def test_json_is_one_object_with_everything(leaking):
    record = orjson.loads(sightline("corpus", leaking, "--json")[0])
    assert record["statistics"]["splits"] == {"train": 2, "test": 1}
    assert record["tokens_per_sentence"]["bins"] == [[7, 7, 6]]
    assert record["links_per_image"] == {
        "mean": 0.2, "median": 0.0, "maximum": 1, "bins": [[0, 0, 4], [1, 1, 1]],
    }  # fmt: skip
    assert record["unknown_links_share"] == pytest.approx(1 / 3)
    assert record["shared_sentences"][0]["share"] == 1
    (leak,) = record["leaks"]["same_name"]
    assert leak == {
        "splits": ["train", "test"], "count": 1, "total": 3, "share": pytest.approx(1 / 3),
        "first": [{"image": "one.png", "documents": ["t", "v"]}],
    }  # fmt: skip
    assert record["leaks"]["same_bytes"][0]["first"][0]["images"] == ["two.png", "two-copy.png"]
    assert record["leaks"]["look_alikes"] == []
    assert record["image_files"]["statuses"] == {"ok": 3, "missing": 1}
    assert record["image_files"]["broken"]["first"][0]["image"] == "gone\n.png"
    assert record["features"] is None


def test_without_images_no_file_is_opened(leaking):
    out, words = sightline("corpus", leaking, "--no-images")
    assert "image files          not looked at" in out
    assert "one.png in t and v" in words and "two-copy.png" not in words


def test_a_corpus_of_features_only(textbooks):
    out, _ = sightline("corpus", textbooks)
    assert "image files          none here, only features" in out
    assert f"images looked up in {textbooks / 'features'}" in out
    assert "without a row      0\n  NaN or infinity    0" in out


def test_the_commands_of_the_docs(textbooks, tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    commands = re.findall(r"^sightline (corpus .*)", page, re.M)
    assert len(commands) == 3
    for command in commands:
        words = [{"CORPUS": textbooks}.get(word, word) for word in command.split()]
        out, _ = sightline(*words, cwd=tmp_path)
        assert "unique_images" in out if "--json" in words else "# imgs" in out
    assert (tmp_path / "samples.html").is_file()


def test_nothing_usable(tmp_path):
    (tmp_path / "documents.jsonl").write_text("[]\n")
    _, words = sightline("corpus", tmp_path, expect=1)
    assert "no document could be read" in words
