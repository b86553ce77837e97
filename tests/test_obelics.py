from dataclasses import replace
from functools import partial

import orjson
import pytest
import test_readers
from hypothesis import given, settings
from hypothesis import strategies as st
from test_documents import EXTRA, FILLED_TEXT, JSON, TEXT, document_strategy
from test_readers import needs_pyarrow

from sightline.corpus import read
from sightline.documents import Document
from sightline.problems import SightlineError
from sightline.readers.kept_fields import Leftovers
from sightline.readers.obelics import (
    document_from_obelics,
    obelics_record,
    read_obelics,
    with_layout_links,
    write_obelics_parquet,
)

# The fields and their types are those of the dataset card; metadata is cut.
RECORD = {
    "images": ["https://a.org/urus.jpg", None, "https://a.org/badge.jpg", None],
    "metadata": '[{"src": "https://a.org/urus.jpg", "alt_text": "A car"}, null, {}, null]',
    "general_metadata": '{"url": "https://a.org/forum/728/", "warc_record_offset": 322560850}',
    "texts": [None, "First.\n\nSecond,\nstill second.", None, "Third."],
}
GOOD_LINE = orjson.dumps(RECORD) + b"\n"


def changed(**changes):
    return {**RECORD, **changes}


read_bytes = partial(test_readers.read_bytes, reader=read_obelics, name="shard.jsonl")


# Reading


def test_paragraphs_are_the_sentences():
    document = document_from_obelics(RECORD, 7)
    assert document.id == "https://a.org/forum/728/"
    assert document.sentences == ("First.", "Second,\nstill second.", "Third.")
    assert document.images == ("https://a.org/urus.jpg", "https://a.org/badge.jpg")
    assert document.links is None
    assert document.extra == {
        "obelics": {**RECORD, "images": None, "texts": [None, "¶\n\n¶", None, "¶"]}
    }
    assert list(document.extra["obelics"]) == list(RECORD)


@pytest.mark.parametrize(
    ("text", "paragraphs", "marked"),
    [
        ("a", ["a"], "¶"),
        ("", [], ""),
        (" \n ", [], " \n "),
        ("a\n\nb", ["a", "b"], "¶\n\n¶"),
        ("a\n\n\n\nb\n\n", ["a", "b"], "¶\n\n\n\n¶\n\n"),
        ("\n\n \n\na\n", ["a\n"], "\n\n \n\n¶"),
        ("a\n\n\nb", ["a", "\nb"], "¶\n\n¶"),
        ("¶\n\n¶", ["¶", "¶"], "¶\n\n¶"),
        ("a\r\n\r\nb", ["a\r\n\r\nb"], "¶"),
    ],
)
def test_text_is_split_and_joined_again(text, paragraphs, marked):
    record = {"texts": [text, "end"], "images": [None, None]}
    document = document_from_obelics(record, 1, allow_empty=True)
    assert list(document.sentences) == [*paragraphs, "end"]
    assert document.extra["obelics"]["texts"] == [marked, "¶"]
    assert obelics_record(document, Leftovers()) == record


def test_an_image_is_linked_to_the_paragraph_that_it_follows_only_when_asked_for():
    document = document_from_obelics(RECORD, 1)
    assert with_layout_links(document).links == ((1, 1),)  # nothing stands before the first
    assert with_layout_links(replace(document, links=())).links == ()
    assert with_layout_links(Document("d", ("a",), ("x",))).links is None
    assert with_layout_links(replace(document, images=("x",))).links is None
    several = document_from_obelics(
        {"texts": ["a\n\nb", None, None, "c", "d"], "images": [None, "x", "y", None, "z"]}, 1
    )
    assert with_layout_links(several).links == ((1, 0), (1, 1), (3, 2))


@pytest.mark.parametrize(
    ("page", "identifier"),
    [
        ('{"url": "https://b.org"}', "https://b.org"),
        ({"url": "https://b.org"}, "https://b.org"),
        ('{"url": 5}', "line-7"),
        ('{"url": " "}', "line-7"),
        ("no json", "line-7"),
        ("[]", "line-7"),
        (None, "line-7"),
        (5, "line-7"),
    ],
)
def test_ids_that_are_made_up_do_not_come_back(page, identifier):
    record = changed(general_metadata=page)
    assert document_from_obelics(record, 7).id == identifier
    assert obelics_record(document_from_obelics(record, 7), Leftovers()) == record


@pytest.mark.parametrize(
    ("record", "field", "reason"),
    [
        (None, None, "expected a JSON object, found null"),
        ({"texts": []}, "images", "expected a list of strings and nulls, found no such key"),
        (changed(texts="a"), "texts", "expected a list of strings and nulls, found a string"),
        (changed(images=None), "images", "expected a list of strings and nulls, found null"),
        (changed(texts=[None, 1, None, "a"]), "texts[1]", "expected a string or null, found a wh"),
        (changed(images=[{}, None, "a", None]), "images[0]", "expected a string or null, found an"),
        (changed(images=["a"]), "images", "expected as many as texts, 4, found 1"),
        (changed(images=[None] * 4), "images", "expected at least one, found an empty list"),
        (changed(images=["", None, "a", None]), "images", "expected a non-empty string, found an"),
        (changed(texts=[None, " ", None, None]), "texts", "expected at least one, found an empty"),
        (changed(sightline="{"), "sightline", "not valid JSON at column"),
        (changed(sightline="5"), "sightline", "expected an object, found a whole number"),
        (changed(sightline='{"split": 5}'), "sightline.split", "expected a string or null"),
        (changed(sightline='{"images": [5]}'), "sightline.images[0]", "expected a string"),
    ],
)
def test_bad_record_is_skipped_with_line_and_field(record, field, reason, tmp_path):
    data = GOOD_LINE + orjson.dumps(record) + b"\n" + GOOD_LINE
    documents, problems = read_bytes(data, tmp_path)
    assert len(documents) == 2
    assert [(p.line, p.field) for p in problems] == [(2, field)]
    assert problems[0].reason.startswith(reason)


@pytest.mark.parametrize("bad", [b"\xff", b'{"texts": [NaN]}', b"[" * 100_000, GOOD_LINE[:50]])
def test_line_that_is_no_json(bad, tmp_path):
    path = tmp_path / "shard.jsonl"
    path.write_bytes(bad + b"\n" + GOOD_LINE)
    corpus = read(path)
    assert [document.id for document in corpus] == ["https://a.org/forum/728/"]
    assert [p.line for p in corpus.problems.first] == [1]


# Writing


@st.composite
def records(draw):
    entries = draw(
        st.lists(
            st.tuples(st.none(), FILLED_TEXT)
            | st.tuples(TEXT, st.none())
            | st.tuples(st.none() | TEXT.map(lambda text: text + "\n\nmore"), st.none() | TEXT),
            max_size=5,
        )
    )
    record = {"images": [image for _, image in entries], "texts": [text for text, _ in entries]}
    if draw(st.booleans()):
        record["general_metadata"] = draw(st.sampled_from(['{"url": "https://b.org"}', "{}", "x"]))
    keys = TEXT.filter(lambda key: key not in {"sightline", *record})
    record |= draw(st.dictionaries(keys, JSON, max_size=3))
    return dict(draw(st.permutations(list(record.items()))))


@settings(max_examples=80, deadline=None)
@given(record=records(), place=st.integers(1, 10**6))
def test_record_comes_back_byte_by_byte(record, place):
    leftovers = Leftovers()
    document = document_from_obelics(record, place, allow_empty=True)
    assert orjson.dumps(obelics_record(document, leftovers)) == orjson.dumps(record)
    assert not leftovers.dropped.total() and not leftovers.aside.total()


ANY_EXTRA = st.one_of(
    EXTRA,
    st.dictionaries(st.sampled_from(["obelics", "sightline", "texts"]), JSON, max_size=3),
)


@settings(max_examples=80, deadline=None)
@given(document=document_strategy(extra=ANY_EXTRA))
def test_native_document_comes_back(document):
    leftovers = Leftovers()
    record = orjson.loads(orjson.dumps(obelics_record(document, leftovers)))
    dropped = document.extra.get("obelics", 0) is None  # which says that there was no such key
    assert leftovers.dropped.total() == dropped
    if dropped:
        further = {key: value for key, value in document.extra.items() if key != "obelics"}
        document = replace(document, extra=further)
    back = document_from_obelics(record, 3)
    assert back == document
    assert list(back.extra) == list(document.extra)


def test_links_place_the_images_of_a_native_document():
    links = ((2, 0), (0, 0), (0, 1))
    document = Document("d", ("a", "b", "c", "d"), ("x", "y", "z"), links, None, {"title": "t"})
    leftovers = Leftovers()
    record = obelics_record(document, leftovers)
    assert record["texts"] == [None, "a", None, "b\n\nc", None, "d"]
    assert record["images"] == ["z", None, "y", None, "x", None]
    assert +leftovers.aside == {"links": 1, "keys": 1}
    assert orjson.loads(record["sightline"]) == {
        "id": "d",
        "images": ["x", "y", "z"],
        "links": [[2, 0], [0, 0], [0, 1]],
        "title": "t",
        "obelics": None,
    }
    plain = document_from_obelics({key: record[key] for key in ("texts", "images")}, 1)
    assert with_layout_links(plain).links == ((0, 1), (2, 2))


def test_sentences_that_are_no_paragraphs_come_back_whole():
    document = Document("d", ("a\n\nb", " c\n", "\nd"), ("x",))
    record = obelics_record(document, Leftovers())
    assert record["texts"] == [None, "a\n\nb\n\n c\n\n\n\nd"]
    assert document_from_obelics(record, 1) == document


def test_document_that_was_edited_loses_its_positions():
    document = document_from_obelics(RECORD, 1)
    leftovers = Leftovers()
    record = obelics_record(replace(document, sentences=("First.",)), leftovers)
    assert +leftovers.dropped == {"positions": 1, "keys": 1}
    assert record == {
        "images": ["https://a.org/urus.jpg", "https://a.org/badge.jpg", None],
        "general_metadata": RECORD["general_metadata"],
        "texts": [None, None, "First."],
    }
    odd = Document("d", ("a",), ("x",), extra={"obelics": {"texts": [5], "images": [True]}})
    assert document_from_obelics(obelics_record(odd, Leftovers()), 1).sentences == ("a",)


def test_links_of_a_record_that_has_positions_leave_them_alone():
    document = replace(document_from_obelics(RECORD, 1), links=((1, 1), (2, 0)))
    leftovers = Leftovers()
    record = obelics_record(document, leftovers)
    assert {key: record[key] for key in RECORD} == RECORD
    assert +leftovers.aside == {"links": 1}  # the other is where the image stands
    assert document_from_obelics(record, 1) == document


def test_what_another_program_adds_is_kept():
    record = obelics_record(Document("d", ("a",), ("x",)), Leftovers())
    document = document_from_obelics({**record, "metadata": "[{}, null]"}, 1)
    assert document.id == "d"
    assert document.extra["obelics"]["metadata"] == "[{}, null]"


# Parquet


@needs_pyarrow
def test_parquet(tmp_path):
    from pyarrow import parquet

    documents = [document_from_obelics(RECORD, 1) for _ in range(300)]
    path = tmp_path / "shard.parquet"
    assert write_obelics_parquet(documents, path, Leftovers()) == 300
    assert parquet.read_schema(path).names == list(RECORD)
    assert parquet.read_table(path).to_pylist() == [RECORD] * 300
    assert list(read(path, strict=True)) == documents
    native = Document("d", ("a", "b"), ("x",), ((0, 0),), "val", {"title": "t", "n": [1, 0.5]})
    assert write_obelics_parquet([documents[0], native], path, Leftovers()) == 2
    assert list(read(path, strict=True)) == [documents[0], native]


@needs_pyarrow
def test_bad_rows_of_parquet(tmp_path):
    import pyarrow
    from pyarrow import parquet

    rows = {
        "texts": [["a", None], ["a"], None],
        "images": [[None, "x"], [None, "x"], ["x"]],
    }
    parquet.write_table(pyarrow.table(rows), tmp_path / "a.parquet")
    corpus = read(tmp_path / "a.parquet")
    assert [document.id for document in corpus] == ["line-1"]
    assert [(p.line, p.field) for p in corpus.problems.first] == [(2, "images"), (3, "texts")]
    del rows["images"]
    parquet.write_table(pyarrow.table(rows), tmp_path / "a.parquet")
    with pytest.raises(SightlineError, match="missing: images"):
        list(read(tmp_path / "a.parquet"))
