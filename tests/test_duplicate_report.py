"""The report of near-duplicate images, on photographs made in the test and on real ones."""

import numpy as np
import orjson
from command_server import sightline
from PIL import Image

from sightline.corpus import read
from sightline.documents import Document
from sightline.duplicate_report import duplicate_images
from sightline.readers.native import write_jsonl


def picture(seed):
    rough = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    return Image.fromarray(rough).resize((320, 240), Image.Resampling.BICUBIC)


def make_corpus(folder):
    picture(1).save(folder / "a.jpg", quality=95)
    picture(1).resize((200, 150)).save(folder / "a-small.jpg", quality=60)
    picture(2).save(folder / "b.png")
    (folder / "broken.jpg").write_bytes(b"not an image")
    documents = [
        Document("one", ("A sentence.",), ("a.jpg", "b.png", "broken.jpg")),
        Document("two", ("Another.",), ("a-small.jpg", "b.png")),
    ]
    write_jsonl(documents, folder / "documents.jsonl")


def test_a_resized_and_resaved_copy_is_found_and_others_are_not(tmp_path):
    make_corpus(tmp_path)
    corpus = read(tmp_path)
    (pair,) = duplicate_images(corpus)
    assert pair.pop("distance") <= 3
    assert list(pair.values()) == ["one", "a.jpg", "two", "a-small.jpg"]
    assert [problem.field for problem in corpus.problems.first] == ["broken.jpg"]


def test_on_the_command_line(tmp_path):
    make_corpus(tmp_path)
    out, words = sightline("duplicates", tmp_path)
    assert orjson.loads(out)["other_image"] == "a-small.jpg"
    assert "broken.jpg" in words and "\n1 pair of near-duplicate images\n" in words
    out, _ = sightline("duplicates", tmp_path, "--threshold", 64)
    assert len(out.splitlines()) == 3  # every pair of the three readable images
    _, words = sightline("duplicates", tmp_path, "--split", "tset", expect=1)
    assert "no document has the split 'tset'" in words


def test_real_guides_have_few(shared_data):
    corpus = read(shared_data / "guides", split="val")
    pairs = list(duplicate_images(corpus))
    images = sum(len(document.images) for document in corpus)
    assert images > 300
    assert len(pairs) < images / 4
