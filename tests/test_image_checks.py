"""Checks on image files and features, on files that are broken in the test."""

import numpy as np
import orjson
import pytest
from test_duplicate_report import picture

from sightline.corpus import read
from sightline.corpus_checks import Shared
from sightline.documents import Document
from sightline.features import FeatureStore, write_feature_store
from sightline.image_checks import check_features, check_images, has_image_files
from sightline.readers.native import write_jsonl


@pytest.fixture
def corpus(tmp_path):
    """Copies in val of training images: by name, byte for byte, smaller; and broken files."""
    picture(1).save(tmp_path / "one.jpg", quality=95)
    picture(2).save(tmp_path / "two.png")
    picture(1).resize((200, 150)).save(tmp_path / "one-small.jpg", quality=60)
    (tmp_path / "two-copy.png").write_bytes((tmp_path / "two.png").read_bytes())
    picture(3).save(tmp_path / "three.jpg")
    (tmp_path / "text.jpg").write_bytes(b"not an image")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "one.jpg").read_bytes()[:300])
    documents = [
        Document("t", ("s",), ("one.jpg", "two.png", "text.jpg"), split="train"),
        Document("v", ("s",), ("one-small.jpg", "cut.jpg", "three.jpg", "one.jpg"), split="val"),
        Document("w", ("s",), ("two-copy.png", "gone.jpg", "one.jpg"), split="val"),
    ]
    write_jsonl(documents, tmp_path / "documents.jsonl")
    return read(tmp_path)


def test_broken_files_keep_their_reasons(corpus):
    found = check_images(corpus, total=8)
    assert found.checked == 8
    assert found.statuses == {"ok": 5, "undecodable": 2, "missing": 1}
    assert found.broken.count == 3
    assert [(b["image"], b["document"], b["status"]) for b in found.broken.first] == [
        ("text.jpg", "t", "undecodable"),
        ("cut.jpg", "v", "undecodable"),
        ("gone.jpg", "w", "missing"),
    ]
    assert all(broken["reason"] for broken in found.broken.first)


def test_copies_in_another_split_are_found_by_their_bytes_and_by_their_look(corpus):
    found = check_images(corpus, total=8)
    bytes_example = {"images": ["two.png", "two-copy.png"], "documents": ["t", "w"]}
    assert found.same_bytes == [Shared(("train", "val"), 1, 3, [bytes_example])]
    look_example = {"images": ["one.jpg", "one-small.jpg"], "documents": ["t", "v"]}
    assert found.look_alikes == [Shared(("train", "val"), 1, 3, [look_example])]


def test_whether_there_are_files(corpus, tmp_path):
    assert has_image_files(corpus)
    for file in (*tmp_path.glob("*.jpg"), *tmp_path.glob("*.png")):
        file.unlink()
    assert not has_image_files(corpus)


def test_names_that_no_file_can_have(tmp_path):
    record = {"id": "a", "sentences": ["s"], "images": ["x" * 5000, "a\0b", "/", "../.."]}
    (tmp_path / "documents.jsonl").write_bytes(orjson.dumps(record))
    corpus = read(tmp_path)
    assert not has_image_files(corpus)
    assert check_images(corpus, total=4, workers=1).statuses == {"missing": 4}


def test_features_without_a_row_and_with_numbers_that_are_none(corpus, tmp_path):
    ids = ["one", "two", "three", "text", "cut", "one-small", "not in the corpus"]
    vectors = np.ones((len(ids), 4), np.float32)
    write_feature_store(tmp_path / "features", "net", ids, vectors, {})
    file = tmp_path / "features" / "net.npy"
    stored = np.load(file)
    stored[[2, 6], 1] = np.nan
    np.save(file, stored)
    found = check_features(corpus, FeatureStore.open(tmp_path / "features"), total=8)
    assert found.checked == 8
    assert (found.missing.count, found.missing.first) == (
        2,
        [{"image": "two-copy.png", "document": "w"}, {"image": "gone.jpg", "document": "w"}],
    )
    assert (found.damaged.count, found.damaged.first) == (
        1,
        [{"image": "three.jpg", "document": "v"}],
    )
