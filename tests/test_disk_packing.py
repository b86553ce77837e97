"""Documents packed into files are those packed in memory, and training on them is the same."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from sightline import disk_packing, training
from sightline.batches import open_features
from sightline.corpus import read
from sightline.problems import Problems, SightlineError
from sightline.readers.native import write_jsonl
from sightline.settings import Settings
from sightline.training_data import prepare

ARRAYS = ("token_ids", "token_start", "sentence_start", "image_rows", "image_start", "group")


def corpus_of(textbooks, folder, splits):
    """60 sections on two shelves; some have unknown links, one an image without features."""
    documents = []
    for place, document in enumerate(islice(read(textbooks).documents("train"), 60)):
        links = None if place % 5 == 0 else document.links
        images = ("no-such-image", *document.images) if place == 9 else document.images
        document = replace(document, images=images, links=None if place == 9 else links)
        document = replace(document, split=splits[place % len(splits)])
        documents.append(replace(document, extra={"shelf": str(place // 3 % 2)}))
    write_jsonl(documents, folder / "documents.jsonl")
    (folder / "features").symlink_to(textbooks / "features")
    return folder


@pytest.mark.parametrize(
    "splits",
    [("train", "train", "val"), (None,), ("train",), (None, "val", "test", "train")],
    ids=["both", "no-split", "no-validation", "mixed"],
)
def test_files_hold_what_memory_would(textbooks, tmp_path, monkeypatch, splits):
    monkeypatch.setattr(disk_packing, "_DOCUMENTS_AT_ONCE", 7)  # so that chunks have edges
    corpus_of(textbooks, tmp_path, splits)
    settings = Settings(negative_documents=1, minimum_count=2, negatives_within="shelf")
    found = []
    for folder in (None, tmp_path / "packed"):
        said, problems = [], Problems()
        corpus = read(tmp_path, problems=problems)
        data = prepare(corpus, open_features(corpus), settings, problems, said.append, None, folder)
        found.append((data, said, [str(problem) for problem in problems.first]))
    (memory, *words), (disk, *words_of_disk) = found
    assert words == words_of_disk and len(words[1]) == 1
    assert memory.vocabulary == disk.vocabulary
    assert memory.fingerprint(settings) == disk.fingerprint(settings)
    seen = 0
    for one, other in ((memory.training, disk.training), (memory.validation, disk.validation)):
        for name in ARRAYS:
            assert getattr(one, name).dtype == getattr(other, name).dtype
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert list(one.ids) == list(other.ids) and list(one.links) == list(other.links)
        assert one.cut_sentences == other.cut_sentences
        seen += len(other)
    assert seen > 20


def test_training_on_disk_gives_the_same_bytes_and_leaves_nothing_behind(textbooks, tmp_path):
    folder = corpus_of(textbooks, tmp_path, ("train", "train", "val"))
    settings = Settings(dimension=16, epochs=2, negative_documents=4, learning_rate=1e-3)
    outputs = tmp_path / "memory", tmp_path / "disk"
    for output in outputs:
        training.train(read(folder), output, settings, pack_on_disk=output.name == "disk")
    for name in ("model.safetensors", "checkpoint.safetensors"):
        assert (outputs[0] / name).read_bytes() == (outputs[1] / name).read_bytes()
    assert not (outputs[1] / "packed").exists()


def test_a_corpus_that_is_too_small_is_refused_and_its_files_go(textbooks, tmp_path):
    folder = corpus_of(textbooks, tmp_path, ("train", "val"))
    with pytest.raises(SightlineError, match=r"usable training documents.* fit here"):
        training.train(
            read(folder), tmp_path / "m", Settings(negative_documents=40), pack_on_disk=True
        )
    assert not (tmp_path / "m" / "packed").exists()
