import copy
import dataclasses
import pickle
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.documents import (
    FIELDS,
    Document,
    FieldError,
    document_from_record,
    document_out_of,
    document_to_record,
    documents_out_of,
    split_name,
)
from sightline.problems import SightlineError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FILLED_TEXT = TEXT.filter(str.strip)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
EXTRA = st.dictionaries(TEXT.filter(lambda key: key not in FIELDS), JSON, max_size=4)
SPLITS = st.none() | st.sampled_from(["train", "val", "test"]) | TEXT


@st.composite
def document_strategy(draw, extra=EXTRA, split=SPLITS, identifier=FILLED_TEXT):
    sentences = draw(st.lists(FILLED_TEXT, min_size=1, max_size=6))
    images = draw(st.lists(FILLED_TEXT, min_size=1, max_size=6))
    link = st.tuples(st.integers(0, len(sentences) - 1), st.integers(0, len(images) - 1))
    links = draw(st.none() | st.lists(link, unique=True, max_size=12).map(tuple))
    return Document(
        draw(identifier), tuple(sentences), tuple(images), links, draw(split), draw(extra)
    )


GOOD = {"id": "d", "sentences": ["a", "b", "c"], "images": ["x", "y"], "links": [[0, 1]]}

# What is put into a good record (or the whole record), the field that is named, the reason.
BAD = [
    (None, None, "expected a JSON object, found null"),
    ([], None, "expected a JSON object, found a list"),
    ("text", None, "expected a JSON object, found a string"),
    (3, None, "expected a JSON object, found a whole number"),
    ({"id": None}, "id", "expected a non-empty string, found null"),
    ({"id": 7}, "id", "expected a non-empty string, found a whole number"),
    ({"id": ""}, "id", "expected a non-empty string, found an empty one"),
    ({"id": " \n"}, "id", "expected a non-empty string, found an empty one"),
    ({"sentences": None}, "sentences", "expected a list of strings, found null"),
    ({"sentences": "a b c"}, "sentences", "expected a list of strings, found a string"),
    ({"sentences": {}}, "sentences", "expected a list of strings, found an object"),
    ({"sentences": []}, "sentences", "expected at least one, found an empty list"),
    ({"sentences": ["a", 1, "c"]}, "sentences[1]", "expected a string, found a whole number"),
    ({"sentences": ["a", "b", None]}, "sentences[2]", "expected a string, found null"),
    ({"sentences": ["a", ["b"]]}, "sentences[1]", "expected a string, found a list"),
    (
        {"sentences": ["a", "b", ""]},
        "sentences[2]",
        "expected a non-empty string, found an empty one",
    ),
    # U+3000 is the space of Chinese text.
    (
        {"sentences": ["\t\u3000", "b"]},
        "sentences[0]",
        "expected a non-empty string, found an empty one",
    ),
    # The first bad one is named, whichever kind it is.
    ({"sentences": ["", None]}, "sentences[0]", "expected a non-empty string, found an empty one"),
    ({"sentences": [None, ""]}, "sentences[0]", "expected a string, found null"),
    ({"images": 1.5}, "images", "expected a list of strings, found a fraction"),
    ({"images": []}, "images", "expected at least one, found an empty list"),
    ({"images": ["x", True]}, "images[1]", "expected a string, found true"),
    ({"images": ["", "y"]}, "images[0]", "expected a non-empty string, found an empty one"),
    ({"links": {}}, "links", "expected a list of pairs or null, found an object"),
    ({"links": False}, "links", "expected a list of pairs or null, found false"),
    ({"links": [0, 1]}, "links[0]", "expected a [sentence, image] pair, found a whole number"),
    ({"links": [[0, 0], [1]]}, "links[1]", "expected a [sentence, image] pair, found a list of 1"),
    ({"links": [[0, 1, 2]]}, "links[0]", "expected a [sentence, image] pair, found a list of 3"),
    ({"links": ["01"]}, "links[0]", "expected a [sentence, image] pair, found a string"),
    ({"links": [None]}, "links[0]", "expected a [sentence, image] pair, found null"),
    ({"links": [[True, 0]]}, "links[0]", "expected two whole numbers, found true"),
    ({"links": [[0, False]]}, "links[0]", "expected two whole numbers, found false"),
    ({"links": [[0, 1.0]]}, "links[0]", "expected two whole numbers, found a fraction"),
    ({"links": [["0", 1]]}, "links[0]", "expected two whole numbers, found a string"),
    ({"links": [[0, None]]}, "links[0]", "expected two whole numbers, found null"),
    ({"links": [[3, 0]]}, "links[0]", "no sentence 3, the document has 3"),
    ({"links": [[-1, 0]]}, "links[0]", "no sentence -1, the document has 3"),
    ({"links": [[0, 0], [2, 1], [2, 2]]}, "links[2]", "no image 2, the document has 2"),
    ({"links": [[0, -1]]}, "links[0]", "no image -1, the document has 2"),
    ({"split": 1}, "split", "expected a string or null, found a whole number"),
    ({"split": ["train"]}, "split", "expected a string or null, found a list"),
]


def bad_record(change):
    return {**GOOD, **change} if isinstance(change, dict) else change


@pytest.mark.parametrize(("change", "field", "reason"), BAD)
def test_bad_record_names_field_and_reason(change, field, reason):
    with pytest.raises(FieldError) as caught:
        document_from_record(bad_record(change))
    assert (caught.value.field, caught.value.reason) == (field, reason)
    assert isinstance(caught.value, SightlineError)


@pytest.mark.parametrize("key", ["id", "sentences", "images"])
def test_missing_key_is_not_called_null(key):
    record = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(FieldError, match="found no such key") as caught:
        document_from_record(record)
    assert caught.value.field == key


def test_unknown_no_and_known_links_are_three_things():
    absent = {name: value for name, value in GOOD.items() if name != "links"}
    assert document_from_record(absent).links is None
    assert document_from_record({**GOOD, "links": None}).links is None
    assert document_from_record({**GOOD, "links": []}).links == ()
    assert document_from_record(GOOD).links == ((0, 1),)


def test_link_that_is_there_twice_is_kept_once_in_its_first_place():
    record = {**GOOD, "links": [[2, 1], [0, 0], [2, 1], [1, 0], [0, 0]]}
    assert document_from_record(record).links == ((2, 1), (0, 0), (1, 0))


@pytest.mark.parametrize(
    "change",
    [
        {"sentences": []},
        {"images": []},
        {"sentences": [], "images": []},
        {"sentences": ["a", "", " "]},
        {"images": ["", "y"]},
    ],
)
def test_allow_empty_lets_empty_parts_pass_and_keeps_their_places(change):
    record = {"id": "d", "sentences": ["a"], "images": ["x"], **change}
    document = document_from_record(record, allow_empty=True)
    assert list(document.sentences) == record["sentences"]
    assert list(document.images) == record["images"]
    with pytest.raises(FieldError):
        document_from_record(record)


def test_allow_empty_still_refuses_what_is_wrong():
    empty = [change for change, _, reason in BAD if "empty" in reason and "id" not in change]
    refused = [bad_record(change) for change, _, _ in BAD if change not in empty]
    assert len(refused) > 30
    for record in refused:
        with pytest.raises(FieldError):
            document_from_record(record, allow_empty=True)


@given(document_strategy())
def test_record_round_trip(document):
    record = document_to_record(document)
    assert document_from_record(record) == document
    assert list(document_from_record(record).extra) == list(document.extra)


@given(document_strategy())
def test_record_is_json_with_its_keys_in_order(document):
    record = document_to_record(document)
    assert orjson.loads(orjson.dumps(record)) == record
    assert ("links" in record) == (document.links is not None)
    assert ("split" in record) == (document.split is not None)
    fields = [key for key in FIELDS if key in record]
    assert list(record) == [*fields, *document.extra]


def test_reading_a_record_does_not_change_it():
    record = {**GOOD, "title": "t"}
    document_from_record(record)
    assert record == {**GOOD, "title": "t"}


def test_further_key_may_not_pass_for_a_field():
    document = Document("d", ("a",), ("x",), extra={"title": "t", "links": [[0, 0]]})
    with pytest.raises(FieldError, match="is a field of the document itself"):
        document_to_record(document)


def test_document_is_frozen_and_can_be_in_a_set():
    document = document_from_record({**GOOD, "title": "t"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        document.id = "other"
    assert len({document, document_from_record({**GOOD, "title": "t"})}) == 1


def test_split_names():
    assert [split_name(name) for name in ("val", "validation", "dev")] == ["val"] * 3
    assert [split_name(name) for name in ("train", "test", "Val", "", None)] == [
        "train",
        "test",
        "Val",
        "",
        None,
    ]


def one_by_one(lines):
    return [document_out_of(orjson.loads(line), folder=Path("f")) for line in lines]


@given(st.lists(document_strategy(), max_size=4))
def test_documents_made_together_are_those_made_one_by_one(documents):
    lines = [orjson.dumps(document_to_record(document)) for document in documents]
    together = documents_out_of(lines, Path("f"))
    if any(document.extra for document in documents):
        assert together is None
    else:
        assert together == documents == one_by_one(lines)
        assert all(document.folder == Path("f") for document in together)


@pytest.mark.parametrize("change", [change for change, _, _ in BAD])
def test_documents_are_not_made_together_if_one_is_bad(change):
    lines = [orjson.dumps(GOOD), orjson.dumps(bad_record(change))]
    assert documents_out_of(lines[:1]) is not None
    assert documents_out_of(lines) is None


EDITS = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from([*map(chr, range(128)), "\xff", "1.0", "\\u"])),
    min_size=1,
    max_size=3,
)


@given(EDITS, st.booleans())
def test_what_is_made_together_of_damaged_lines_is_no_more_than_one_by_one(edits, insert):
    line = bytearray(b'{"id":"a","sentences":["b","\\n c"],"images":["d"],"links":[[1,0]]}')
    for place, text in edits:
        place %= len(line)
        line[place : place + (not insert)] = text.encode("latin-1")
    together = documents_out_of([bytes(line)], Path("f"))
    if together is not None:
        assert together == one_by_one([bytes(line)])


@pytest.mark.parametrize("make", ["together", "one by one"])
def test_documents_that_readers_make_are_like_any_other(make):
    line = b'{"id": "d", "sentences": ["a", "b"], "images": ["x"], "links": [[1, 0], [1, 0]]}'
    (document,) = documents_out_of([line], Path("f")) if make == "together" else one_by_one([line])
    other = Document("d", ("a", "b"), ("x",), ((1, 0),), folder=Path("f"))
    assert type(document) is Document
    assert (document, hash(document), repr(document)) == (other, hash(other), repr(other))
    with pytest.raises(dataclasses.FrozenInstanceError):
        document.id = "e"
    for same in (
        copy.copy(document),
        copy.deepcopy(document),
        pickle.loads(pickle.dumps(document)),
    ):
        assert (same, same.folder) == (document, Path("f"))
    assert dataclasses.replace(document, id="e", folder=None).sentences == ("a", "b")
