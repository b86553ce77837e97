"""Checks on documents: each fault is planted and found, and a sound corpus has none."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.corpus import read
from sightline.corpus_checks import EXAMPLES, Shared, check_documents, split_order
from sightline.documents import Document
from sightline.problems import SightlineError
from sightline.readers.native import write_jsonl

TEXT = ("The cat sat on the mat.", "A dog ran over the road.")


def document(name, split, images, sentences=TEXT, links=None):
    return Document(name, tuple(sentences), tuple(images), links, split)


def check(tmp_path, documents, **options):
    write_jsonl(documents, tmp_path / "documents.jsonl")
    return check_documents(read(tmp_path, **options))


def test_a_sound_corpus_has_no_faults(tmp_path):
    documents = [
        document(name, split, (f"{name}a", f"{name}b"), [f"{name} {text}" for text in TEXT])
        for split in ("train", "val", "test")
        for name in (f"{split}1", f"{split}2", f"{split}3")
    ]
    found = check(tmp_path, documents)
    faults = (found.bad_records, found.duplicate_ids, found.duplicate_documents, found.near_empty)
    assert [(fault.count, fault.first) for fault in faults] == [(0, [])] * 4
    assert found.shared_images == found.shared_sentences == []
    assert found.statistics.documents == {"train": 3, "val": 3, "test": 3}


def test_bad_records_are_counted_once_and_the_first_are_named(tmp_path):
    lines = ["{", '{"id": "a", "sentences": ["b c"], "images": ["x"]}', *["[]"] * 8]
    (tmp_path / "documents.jsonl").write_text("\n".join(lines))
    corpus = read(tmp_path)
    found = check_documents(corpus)
    assert found.bad_records.count == corpus.problems.count == 9
    assert len(found.bad_records.first) == EXAMPLES
    assert "documents.jsonl:3: expected a JSON object" in found.bad_records.first[1]


def test_duplicate_ids_and_duplicate_documents_are_two_things(tmp_path):
    same = ("one.jpg", "two.jpg")
    documents = [
        document("a", "train", same),
        document("b", "train", same),
        document("c", "train", same, reversed(TEXT)),
        document("d", None, ("x", "y")),
        document("d", None, ("y", "x")),
        document("d", None, ("z", "x")),
        document("e", "val", same),
    ]
    found = check(tmp_path, documents)
    assert found.duplicate_ids.count == 2
    file = tmp_path / "documents.jsonl"
    places = [f"{file}:4", f"{file}:5", f"{file}:6"]
    assert found.duplicate_ids.first == [{"id": "d", "places": places}]
    assert (found.duplicate_documents.count, found.duplicate_documents.first) == (
        2,
        [["a", "b"], ["a", "e"]],
    )


def test_nearly_empty_documents(tmp_path):
    documents = [
        document("full", "train", ("a", "b")),
        document("one image", "train", ("a",)),
        document("short", "train", ("a", "b"), ["A dog.", "The cat sat on a mat."]),
    ]
    found = check(tmp_path, documents)
    assert (found.near_empty.count, found.near_empty.first) == (2, ["one image", "short"])


def test_images_that_splits_share_are_named_with_their_documents(tmp_path):
    documents = [
        document("t1", "train", ("a", "b")),
        document("t2", "train", ("b", "c")),
        document("v", "validation", ("c", "d", "e")),
        document("x", "test", ("b", "d", "a", "f")),
        document("none", None, ("a", "b", "c", "d", "e", "f")),
    ]
    assert check(tmp_path, documents).shared_images == [
        Shared(("train", "val"), 1, 3, [{"image": "c", "documents": ["t2", "v"]}]),
        Shared(
            ("train", "test"),
            2,
            4,
            [
                {"image": "a", "documents": ["t1", "x"]},
                {"image": "b", "documents": ["t1", "x"]},
            ],
        ),
        Shared(("val", "test"), 1, 4, [{"image": "d", "documents": ["v", "x"]}]),
    ]
    assert check(tmp_path, documents, split="train").shared_images == []


NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4)


@settings(max_examples=50, deadline=None)
@given(parts=st.lists(st.tuples(st.sampled_from(["train", "val", "test"]), NAMES), min_size=1))
def test_shared_images_are_those_of_plain_sets(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    found = check(folder, [document(str(n), *part) for n, part in enumerate(parts)])
    sets = {split: set() for split, _ in parts}
    for split, images in parts:
        sets[split].update(images)
    expected = [
        (pair, len(sets[pair[0]] & sets[pair[1]]), len(sets[pair[1]]))
        for pair in [("train", "val"), ("train", "test"), ("val", "test")]
        if pair[0] in sets and pair[1] in sets and sets[pair[0]] & sets[pair[1]]
    ]
    assert [(s.splits, s.count, s.total) for s in found.shared_images] == expected
    for shared in found.shared_images:
        assert len(shared.first) == min(shared.count, EXAMPLES)
        for example in shared.first:
            for split, name in zip(shared.splits, example["documents"], strict=True):
                assert parts[int(name)][0] == split
                assert example["image"] in parts[int(name)][1]


def test_sentences_that_splits_share(tmp_path):
    documents = [
        document("t", "train", ("a", "b"), ["One.", "Two.", "Three."]),
        document("v", "val", ("c", "d"), ["Two.", "Two.", "Four.", "one."]),
    ]
    found = check(tmp_path, documents)
    assert found.shared_sentences == [Shared(("train", "val"), 1, 3)]


def test_words_tokens_and_links_are_counted(tmp_path):
    documents = [
        document("a", None, ("x", "y", "z"), ["A b.", "a"], ((0, 0), (1, 0), (0, 2))),
        document("b", None, ("x",), ["a a a"], ()),
        document("c", None, ("x",), ["c"]),
    ]
    found = check(tmp_path, documents)
    assert found.sentence_tokens == Counter({3: 2, 1: 2})
    assert (found.words, found.frequent_words) == (4, 1)  # a five times, b, c, the stop
    assert found.image_links == Counter({2: 1, 0: 2, 1: 1})
    assert found.sentence_links == Counter({2: 1, 1: 1, 0: 1})
    assert found.document_sentences == Counter({1: 2, 2: 1})
    assert found.document_images == Counter({1: 2, 3: 1})
    assert found.statistics.unknown_links == 1


def test_nothing_to_check_is_an_error_that_says_why(tmp_path):
    (tmp_path / "documents.jsonl").write_text("{}\n")
    with pytest.raises(SightlineError, match="no document could be read"):
        check_documents(read(tmp_path))
    with pytest.raises(
        SightlineError, match=r"no document has the split 'x', its splits are train"
    ):
        check(tmp_path, [document("a", "train", ("x",))], split="x")


def test_hundreds_of_splits_are_refused(tmp_path):
    documents = [document(str(n), f"split {n}", ("x",)) for n in range(100)]
    with pytest.raises(SightlineError, match="has the split 'split 32', and 32 others"):
        check(tmp_path, documents)


def test_splits_come_in_the_usual_order():
    assert split_order(["extra", "test", "train"]) == ["train", "test", "extra"]


def test_real_documents(shared_data):
    """34 images of the guides are in both splits, as comparing their names shows."""
    guides = check_documents(read(shared_data / "guides"))
    assert [(s.splits, s.count) for s in guides.shared_images] == [(("train", "val"), 34)]
    assert guides.duplicate_documents.count == 1
    documents = list(read(shared_data / "guides"))
    train, val = (
        {image for d in documents if d.split == split for image in d.images}
        for split in ("train", "val")
    )
    assert len(train & val) == 34
