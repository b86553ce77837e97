import dataclasses
import gzip
import random
import sys
import tempfile
import tracemalloc
from collections import Counter
from pathlib import Path

import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from test_documents import BAD, FILLED_TEXT, TEXT, bad_record, document_strategy

from sightline.corpus import read
from sightline.documents import Document, document_to_record
from sightline.problems import MissingExtraError, ProblemError, Problems, SightlineError
from sightline.readers import native
from sightline.readers.hessel2019 import Stored, read_hessel2019, write_hessel2019
from sightline.readers.native import MAX_LINE, read_jsonl, write_jsonl
from sightline.readers.parquet import read_parquet, write_parquet
from sightline.readers.recognition import read_any_parquet

try:
    import pyarrow
    import pyarrow.parquet as parquet
except ImportError:
    pyarrow = None
needs_pyarrow = pytest.mark.skipif(pyarrow is None, reason="needs the extra `parquet`")

GOOD_LINE = b'{"id": "d", "sentences": ["a"], "images": ["x"]}\n'
SUFFIXES = ["", ".gz", ".zst"]

THREE_KINDS_OF_LINKS = [
    Document("unknown", ("a", "b"), ("x", "y"), None, "train"),
    Document("none", ("a", "b"), ("x", "y"), (), "train"),
    Document("known", ("a", "b"), ("x", "y"), ((0, 1), (1, 0)), "train"),
]


def read_bytes(data, tmp_path, *, reader=read_jsonl, name="documents.jsonl", **options):
    """Give the documents that a reader finds in a file of these bytes, and the problems."""
    (tmp_path / name).write_bytes(data)
    problems = Problems()
    return list(reader(tmp_path / name, problems, **options)), problems.first


def many_documents(count):
    """Give documents that hardly compress, so that a compressed file has many blocks."""
    letters = random.Random(0)
    return [Document(f"d{i}", (letters.randbytes(200).hex(),), (f"{i}.jpg",)) for i in range(count)]


# Native


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=30, deadline=None)
@given(documents=st.lists(document_strategy(), max_size=5))
def test_jsonl_round_trip(suffix, documents):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a.jsonl{suffix}")
        problems = Problems()
        assert write_jsonl(documents, str(path)) == len(documents)
        assert list(read_jsonl(path, problems)) == documents
        assert problems.count == 0


@pytest.mark.parametrize(("change", "field", "reason"), BAD)
def test_bad_line_is_reported_and_its_neighbours_are_kept(change, field, reason, tmp_path):
    line = orjson.dumps(bad_record(change)) + b"\n"
    documents, problems = read_bytes(GOOD_LINE + line + GOOD_LINE, tmp_path)
    assert len(documents) == 2
    assert [(p.line, p.field, p.reason) for p in problems] == [(2, field, reason)]
    assert problems[0].file == str(tmp_path / "documents.jsonl")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "not valid JSON at column 1"),
        (GOOD_LINE[:20], "not valid JSON at column 21"),
        (GOOD_LINE.strip() * 2, "not valid JSON at column"),
        (GOOD_LINE.replace(b'"a"', b"NaN").strip(), "not valid JSON at column 27"),
        (GOOD_LINE.replace(b'"a"', b"Infinity").strip(), "not valid JSON at column 27"),
        (GOOD_LINE.replace(b'"a"', b'"\\ud800"').strip(), "not valid JSON at column"),
        (GOOD_LINE.replace(b'"a"', b'"\xff"').strip(), "not valid UTF-8 at byte 28 of the line"),
        (GOOD_LINE.replace(b'"a"', b'"\xed\xa0\x80"').strip(), "not valid UTF-8 at byte 28"),
        (b"[" * 5000, "not valid JSON at column"),
        (b"\0" * 20, "not valid JSON at column 1"),
    ],
)
def test_line_that_is_no_json(line, reason, tmp_path):
    documents, problems = read_bytes(GOOD_LINE + line + b"\n" + GOOD_LINE, tmp_path)
    assert len(documents) == 2
    assert [(p.line, p.field) for p in problems] == [(2, None)]
    assert problems[0].reason.startswith(reason)


@pytest.mark.parametrize(
    "data",
    [
        GOOD_LINE,
        GOOD_LINE.rstrip(),
        b"\xef\xbb\xbf" + GOOD_LINE,
        b"\xef\xbb\xbf\n" + GOOD_LINE,
        b"\n \t\r\n" + GOOD_LINE + b"\n\n   ",
        GOOD_LINE.replace(b"\n", b"\r\n"),
    ],
)
def test_harmless_differences(data, tmp_path):
    documents, problems = read_bytes(data, tmp_path)
    assert documents == [Document("d", ("a",), ("x",))]
    assert problems == []


def test_blank_lines_count_as_lines(tmp_path):
    _, problems = read_bytes(b"\n\n{}\n", tmp_path)
    assert [p.line for p in problems] == [3]


def test_empty_file_has_no_documents_and_no_problems(tmp_path):
    assert read_bytes(b"", tmp_path) == ([], [])


def test_byte_order_mark_is_only_welcome_at_the_start(tmp_path):
    documents, problems = read_bytes(GOOD_LINE + b"\xef\xbb\xbf" + GOOD_LINE, tmp_path)
    assert (len(documents), len(problems)) == (1, 1)


def test_allow_empty_is_handed_on(tmp_path):
    line = b'{"id": "d", "sentences": ["", "b"], "images": []}\n'
    assert read_bytes(line, tmp_path, allow_empty=True) == ([Document("d", ("", "b"), ())], [])
    assert read_bytes(line, tmp_path)[0] == []


def test_strict_stops_at_the_first_problem(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD_LINE + b"{}\n" + b"null\n" + GOOD_LINE)
    documents = read_jsonl(path, Problems(strict=True))
    assert next(documents).id == "d"
    with pytest.raises(ProblemError, match=r"a\.jsonl:2: id: expected") as caught:
        next(documents)
    assert caught.value.problem.line == 2


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_line_over_the_limit_is_skipped(suffix, tmp_path):
    long_line = b'{"id": "' + b"a" * MAX_LINE + b'"}\n'
    data = GOOD_LINE + long_line + GOOD_LINE
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    documents, problems = read_bytes(pack(data), tmp_path)
    assert len(documents) == 2
    assert [(p.line, p.reason) for p in problems] == [(2, "longer than 64 MiB")]


def test_line_over_the_limit_at_the_end_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "MAX_LINE", 100)
    documents, problems = read_bytes(GOOD_LINE + b"a" * 101, tmp_path)
    assert (len(documents), [p.line for p in problems]) == (1, [2])


def test_line_over_the_limit_is_not_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "MAX_LINE", 2**20)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"a" * 2**26 + b"\n" + GOOD_LINE)
    tracemalloc.start()
    try:
        assert len(list(read_jsonl(path, Problems()))) == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**23


def test_further_keys_and_bad_lines_among_many(tmp_path):
    documents = many_documents(1000)
    documents[300] = dataclasses.replace(documents[300], extra={"title": "t"})
    lines = [orjson.dumps(document_to_record(document)) + b"\n" for document in documents]
    lines[100:101] = [b"{\n", b" \n"]
    lines[700] = b'{"id": 7}\n'
    found, problems = read_bytes(b"".join(lines), tmp_path)
    assert found == documents[:100] + documents[101:699] + documents[700:]
    assert [(p.line, p.field) for p in problems] == [(101, None), (701, "id")]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_stream_cut_anywhere_keeps_what_came_before(suffix, tmp_path):
    documents = many_documents(30)
    path = tmp_path / f"a.jsonl{suffix}"
    write_jsonl(documents, path)
    data = path.read_bytes()
    cuts = range(4, len(data), 31)
    assert len(cuts) > 100
    for cut in cuts:
        path.write_bytes(data[:cut])
        problems = Problems()
        found = list(read_jsonl(path, problems))
        assert found == documents[: len(found)]
        assert [problem.line for problem in problems.first] == [len(found) + 1]
        assert "ends early" in problems.first[0].reason


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_stream_cut_in_the_middle_keeps_about_half(suffix, tmp_path):
    documents = many_documents(3000)
    path = tmp_path / f"a.jsonl{suffix}"
    write_jsonl(documents, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    problems = Problems()
    found = list(read_jsonl(path, problems))
    assert found == documents[: len(found)]
    # Zstandard decodes whole blocks of 128 KiB, some 280 documents here.
    assert 1000 < len(found) < 2000
    assert [problem.line for problem in problems.first] == [len(found) + 1]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damaged_stream_keeps_what_came_before(suffix, tmp_path):
    documents = many_documents(3000)
    path = tmp_path / f"a.jsonl{suffix}"
    write_jsonl(documents, path)
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 2, len(data) // 2 + 64):
        data[place] ^= 0xFF
    path.write_bytes(data)
    problems = Problems(keep=10_000)
    found = list(read_jsonl(path, problems))
    assert found[:1000] == documents[:1000]
    assert len(found) < 3000
    # The last and not the only one: gzip may decode rubbish until its checksum says so.
    assert problems.first[-1].reason.startswith("the compressed data is damaged, here or earlier")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_joined_compressed_files_are_one_file(suffix, tmp_path):
    path = tmp_path / f"a.jsonl{suffix}"
    write_jsonl(THREE_KINDS_OF_LINKS, path)
    path.write_bytes(path.read_bytes() * 2)
    problems = Problems()
    assert list(read_jsonl(path, problems)) == THREE_KINDS_OF_LINKS * 2
    assert problems.count == 0


def test_padded_gzip_and_zstandard_with_a_skippable_frame(tmp_path):
    assert read_bytes(gzip.compress(GOOD_LINE) + b"\0" * 512, tmp_path)[1] == []
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    documents, problems = read_bytes(skippable + zstandard.compress(GOOD_LINE), tmp_path)
    assert (len(documents), problems) == (1, [])


def test_compression_is_seen_by_content_not_by_name(tmp_path):
    for data in (GOOD_LINE, gzip.compress(GOOD_LINE), zstandard.compress(GOOD_LINE)):
        for suffix in SUFFIXES:
            path = tmp_path / f"a.jsonl{suffix}"
            path.write_bytes(data)
            assert len(list(read_jsonl(path, Problems(strict=True)))) == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_written_bytes_depend_on_the_documents_alone(suffix, tmp_path):
    first, second = tmp_path / f"first.jsonl{suffix}", tmp_path / f"second.jsonl{suffix}"
    write_jsonl(THREE_KINDS_OF_LINKS, first)
    write_jsonl(iter(THREE_KINDS_OF_LINKS), second)
    assert first.read_bytes() == second.read_bytes()
    # In gzip's header: no flags, so no file name, and no time.
    gzip_head = b"\x1f\x8b\x08" + b"\0" * 5
    magic = {"": b"{", ".gz": gzip_head, ".zst": b"\x28\xb5\x2f\xfd"}[suffix]
    assert first.read_bytes().startswith(magic)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_failed_writing_leaves_the_old_file(suffix, tmp_path):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(b"old")

    def documents():
        yield THREE_KINDS_OF_LINKS[0]
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_jsonl(documents(), path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize(
    "document",
    [
        Document("bad", ("\ud800",), ("x",)),
        Document("bad", ("a",), ("x",), extra={"when": object()}),
        Document("bad", ("a",), ("x",), extra={"sentences": ["b"]}),
    ],
)
def test_document_that_json_cannot_hold_is_named(document, tmp_path):
    with pytest.raises(SightlineError, match="document 'bad' cannot be written as JSON"):
        write_jsonl([document], tmp_path / "a.jsonl")


def test_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(SightlineError, match=r"a\.jsonl: cannot be read: No such file"):
        next(read_jsonl(tmp_path / "a.jsonl", Problems()))


# Parquet

# One type a key, and no null: what a Parquet column can hold without loss.
COLUMNS = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXT,
        "score": st.floats(allow_nan=False),
        "year": st.integers(-(2**63), 2**63 - 1),
        "checked": st.booleans(),
        "alts": st.lists(TEXT, max_size=3),
        "source": st.fixed_dictionaries({"name": TEXT, "page": st.integers(0, 9)}),
        "": TEXT,
    },
)


@needs_pyarrow
@settings(max_examples=50, deadline=None)
@given(documents=st.lists(document_strategy(extra=COLUMNS), max_size=5))
def test_parquet_round_trip(documents):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        problems = Problems()
        assert write_parquet(documents, path) == len(documents)
        assert list(read_parquet(path, problems)) == documents
        assert problems.count == 0
        assert [p.name for p in Path(folder).iterdir()] == [path.name]


@needs_pyarrow
def test_long_rows_of_a_small_file_are_made_one_by_one(tmp_path):
    documents = [Document(str(n), ("x" * 5_000_000,), ("a.jpg",)) for n in range(40)]
    path = tmp_path / "a.parquet"
    write_parquet(documents, path)
    assert path.stat().st_size < 2_000_000
    tracemalloc.start()
    lengths = [len(document.sentences[0]) for document in read_parquet(path, Problems())]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lengths == [5_000_000] * 40 and peak < 60_000_000


def test_parquet_columns_and_types(tmp_path):
    write_parquet(THREE_KINDS_OF_LINKS, tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["id", "sentences", "images", "links", "split"]
    assert str(table.schema.field("links").type) == "list<element: list<element: int64>>"
    assert table.column("links").to_pylist() == [None, [], [[0, 1], [1, 0]]]


def numbered(count, **extra):
    return [Document(f"d{i}", ("a",), ("x",), extra=dict(extra)) for i in range(count)]


@needs_pyarrow
@pytest.mark.parametrize(
    ("early", "late"),
    [({}, {"k": "text"}), ({"k": []}, {"k": ["text"]}), ({"k": 1}, {"k": 0.5}), ({"k": 1}, {})],
)
def test_parquet_column_type_may_show_late(early, late, tmp_path):
    documents = numbered(600, **early) + numbered(1, **late)
    write_parquet(documents, tmp_path / "a.parquet")
    assert list(read_parquet(tmp_path / "a.parquet", Problems())) == documents


@needs_pyarrow
@pytest.mark.parametrize("count", [1, 512])  # mixed within a batch, and from batch to batch
@pytest.mark.parametrize(
    ("one", "other"), [(1, "text"), (True, 1), ([1], 1), (2**60 + 1, 0.5), ({"a": 1}, "a")]
)
def test_parquet_refuses_a_key_of_mixed_types(count, one, other, tmp_path):
    documents = numbered(count, good=1, key=one) + numbered(1, good=1, key=other)
    with pytest.raises(SightlineError, match="The key 'key' cannot be a Parquet column"):
        write_parquet(documents, tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


@needs_pyarrow
def test_parquet_refuses_what_it_cannot_hold(tmp_path):
    with pytest.raises(SightlineError, match="cannot be written as Parquet"):
        write_parquet(numbered(1, key={}), tmp_path / "a.parquet")
    with pytest.raises(SightlineError, match="'sentences' cannot be a Parquet column"):
        write_parquet([Document("d", ("\ud800",), ("x",))], tmp_path / "a.parquet")


@needs_pyarrow
def test_parquet_bad_rows(tmp_path):
    rows = {
        "id": ["good", None, "blank sentence", "no image", "bad link", "good too"],
        "sentences": [["a"], ["a"], ["a", " "], ["a"], ["a"], ["a"]],
        "images": [["x"], ["x"], ["x"], [], ["x"], ["x"]],
        "links": [None, None, None, None, [[0, 0], [0, 1]], [[0, 0]]],
    }
    parquet.write_table(pyarrow.table(rows), tmp_path / "a.parquet")
    problems = Problems()
    found = list(read_parquet(tmp_path / "a.parquet", problems))
    assert [(document.id, document.links) for document in found] == [
        ("good", None),
        ("good too", ((0, 0),)),
    ]
    assert [(p.line, p.field) for p in problems.first] == [
        (2, "id"),
        (3, "sentences[1]"),
        (4, "images"),
        (5, "links[1]"),
    ]
    assert len(list(read_parquet(tmp_path / "a.parquet", Problems(), allow_empty=True))) == 4
    with pytest.raises(ProblemError, match=r"a\.parquet:2: id"):
        list(read_parquet(tmp_path / "a.parquet", Problems(strict=True)))


@needs_pyarrow
def test_parquet_without_a_needed_column(tmp_path):
    parquet.write_table(pyarrow.table({"id": ["a"], "text": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(SightlineError, match="missing: images, sentences"):
        next(read_parquet(tmp_path / "a.parquet", Problems()))


@needs_pyarrow
def test_parquet_text_that_is_not_utf8(tmp_path):
    good = pyarrow.array(["a", "b", "c"])
    offsets, text = pyarrow.array([0, 1, 2, 3], pyarrow.int32()), b"a\xffc"
    ids = pyarrow.StringArray.from_buffers(3, offsets.buffers()[1], pyarrow.py_buffer(text))
    lists = pyarrow.ListArray.from_arrays(offsets, good)
    table = pyarrow.table({"id": ids, "sentences": lists, "images": lists})
    parquet.write_table(table, tmp_path / "a.parquet")
    problems = Problems()
    assert [d.id for d in read_parquet(tmp_path / "a.parquet", problems)] == ["a", "c"]
    assert [p.line for p in problems.first] == [2]
    assert problems.first[0].reason.startswith("not valid UTF-8")


@needs_pyarrow
def test_file_that_is_no_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    for data in (b"", GOOD_LINE, b"PAR1" + b"\0" * 50 + b"PAR1"):
        path.write_bytes(data)
        with pytest.raises(SightlineError, match=r"a\.parquet: cannot be read as Parquet"):
            next(read_parquet(path, Problems()))


@needs_pyarrow
def test_damaged_parquet_keeps_the_rows_before(tmp_path):
    path = tmp_path / "a.parquet"
    documents = many_documents(1000)
    write_parquet(documents, path)
    third = parquet.ParquetFile(path).metadata.row_group(2).column(1)
    data = bytearray(path.read_bytes())
    start = third.dictionary_page_offset or third.data_page_offset
    for place in range(start, start + third.total_compressed_size):
        data[place] ^= 0xFF
    path.write_bytes(data)
    problems = Problems()
    assert list(read_parquet(path, problems)) == documents[:512]
    assert [p.line for p in problems.first] == [513]
    assert problems.first[0].reason.startswith("the Parquet data is damaged from here on")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"Reading Parquet .*\[parquet\]'"):
        next(read_parquet(path, Problems()))
    with pytest.raises(MissingExtraError, match=r"Writing Parquet .*\[parquet\]'"):
        write_parquet([], path)


# The paper's release


def write_release(folder, splits):
    folder.joinpath("docs.json").write_bytes(orjson.dumps(splits))
    return folder


def read_release(folder, docs, **options):
    problems = Problems()
    write_release(folder, {"train": docs})
    return list(read_hessel2019(folder, problems, **options)), problems.first


@pytest.mark.parametrize(
    ("image_labels", "sentence_labels", "links"),
    [
        ([None, None], [None, None, None], None),
        ([-1, -1], [-1, -1, -1], ()),
        ([-1, -1], [None, None, None], ()),
        ([None, None], [-1, -1, -1], ()),
        ([2, -1], [-1, -1, -1], ((2, 0),)),  # on the image's side only, as in the release
        ([-1, -1], [-1, -1, 0], ((2, 0),)),
        ([2, -1], [-1, -1, 0], ((2, 0),)),  # on both sides, and still one link
        ([2, 0], [None, None, None], ((2, 0), (0, 1))),
        ([None, None], [1, -1, 0], ((0, 1), (2, 0))),
        ([0, 0], [1, 1, 1], ((0, 0), (0, 1), (1, 1), (2, 1))),
    ],
)
def test_labels_of_the_release(image_labels, sentence_labels, links, tmp_path):
    images = [list(pair) for pair in zip("xy", image_labels, strict=True)]
    sentences = [list(pair) for pair in zip("abc", sentence_labels, strict=True)]
    found, problems = read_release(tmp_path, [[images, sentences, "name"]])
    assert problems == []
    assert found == [Document("name", ("a", "b", "c"), ("x", "y"), links, "train")]


IMAGES, SENTENCES = [["x", 1], ["y", -1]], [["a", -1], ["b", 0]]


@pytest.mark.parametrize(
    ("doc", "field", "reason"),
    [
        (None, None, "expected [images, sentences, metadata], found null"),
        (
            [IMAGES, SENTENCES],
            None,
            "expected [images, sentences, metadata], found a list of 2",
        ),
        ([{}, SENTENCES, "na"], "images", "expected a list of [value, label] pairs, found an obj"),
        ([[["x", 0], "y"], SENTENCES, "na"], "images[1]", "expected a [value, label] pair"),
        ([IMAGES, [["a"], ["b", 0]], "na"], "sentences[0]", "expected a [value, label] pair"),
        ([[["x", 2], ["y", -1]], SENTENCES, "na"], "images[0][1]", "no sentence 2, the document"),
        ([[["x", 1], ["y", -2]], SENTENCES, "na"], "images[1][1]", "no sentence -2, the document"),
        ([IMAGES, [["a", 0], ["b", 5]], "na"], "sentences[1][1]", "no image 5, the document has 2"),
        ([[["x", 1], ["y", None]], SENTENCES, "na"], "images[1][1]", "null (unknown) among labels"),
        ([[["x", None], ["y", 0]], SENTENCES, "na"], "images[0][1]", "null (unknown) among labels"),
        ([IMAGES, [["a", -1], ["b", None]], "na"], "sentences[1][1]", "null (unknown) among"),
        ([[["x", True], ["y", 0]], SENTENCES, "na"], "images[0][1]", "expected an index, -1 or nu"),
        ([[["x", "1"], ["y", 0]], SENTENCES, "na"], "images[0][1]", "expected an index, -1 or nul"),
        ([IMAGES, [["a", 0.0], ["b", 0]], "na"], "sentences[0][1]", "expected an index, -1 or nu"),
        ([[[7, 1], ["y", -1]], SENTENCES, "na"], "images[0]", "expected a string, found a whole"),
        ([IMAGES, [["a", -1], ["  ", 0]], "na"], "sentences[1]", "expected a non-empty string"),
        ([[], [["a", -1]], "na"], "images", "expected at least one, found an empty list"),
    ],
)
def test_bad_document_of_the_release(doc, field, reason, tmp_path):
    good = [IMAGES, SENTENCES, "na"]
    found, problems = read_release(tmp_path, [good, doc, good])
    assert [document.id for document in found] == ["train-0", "train-2"]
    assert [(p.line, p.field) for p in problems] == [("train[1]", field)]
    assert problems[0].reason.startswith(reason)
    assert problems[0].file == str(tmp_path / "docs.json")


def test_release_strict_stops_at_the_first(tmp_path):
    write_release(tmp_path, {"train": [], "val": [[IMAGES, SENTENCES, "na"], 1, 2]})
    documents = read_hessel2019(tmp_path, Problems(strict=True))
    assert next(documents).id == "val-0"
    with pytest.raises(ProblemError, match=r"docs\.json:val\[1\]: expected"):
        next(documents)


def test_release_with_documents_that_lack_images(tmp_path):
    docs = [[[], [["a", None]], "na"], [[], [["a", -1]], "na"]]
    found, problems = read_release(tmp_path, docs, allow_empty=True)
    assert problems == []
    assert [document.links for document in found] == [None, ()]


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b'{"train": [NaN]}', b'{"train": ['])
def test_file_that_is_no_release(data, tmp_path):
    tmp_path.joinpath("docs.json").write_bytes(data)
    with pytest.raises(SightlineError, match=r"docs\.json: (not valid JSON|expected an object)"):
        next(read_hessel2019(tmp_path, Problems()))


def test_split_of_the_release_that_is_no_list(tmp_path):
    write_release(tmp_path, {"train": {}, "test": [[IMAGES, SENTENCES, "na"]]})
    problems = Problems()
    assert [d.split for d in read_hessel2019(tmp_path, problems)] == ["test"]
    assert [p.line for p in problems.first] == ["train"]


@pytest.mark.parametrize("metadata", ["na", "", " ", None, 7, {"url": "u"}, ["a"]])
def test_metadata_that_is_no_id_comes_back(metadata, tmp_path):
    docs = [[IMAGES, SENTENCES, "name"], [IMAGES, SENTENCES, metadata]]
    found, _ = read_release(tmp_path, docs)
    assert [document.id for document in found] == ["name", "train-1"]
    assert [document.extra for document in found] == [{}, {"metadata": metadata}]
    assert write_hessel2019(found, tmp_path / "again") == Stored(2, 0, 0)
    again = orjson.loads((tmp_path / "again" / "docs.json").read_bytes())
    assert [doc[2] for doc in again["train"]] == ["name", metadata]


def test_ids_of_the_release_outlive_a_selection(tmp_path):
    found, _ = read_release(tmp_path, [[IMAGES, SENTENCES, m] for m in ("na", "na", {"u": 1})])
    assert write_hessel2019(found[1:], tmp_path / "part") == Stored(2, 0, 1)
    part = list(read_hessel2019(tmp_path / "part", Problems()))
    assert [document.id for document in part] == ["train-1", "train-2"]


RELEASE_IDS = FILLED_TEXT.filter(lambda identifier: identifier != "na")
RELEASE_DOCUMENTS = document_strategy(
    extra=st.just({}), split=st.sampled_from(["train", "val", "test"]), identifier=RELEASE_IDS
)


@settings(max_examples=100, deadline=None)
@given(documents=st.lists(RELEASE_DOCUMENTS, max_size=4))
def test_release_round_trip(documents):
    documents.sort(key=lambda document: ["train", "val", "test"].index(document.split))
    with tempfile.TemporaryDirectory() as folder:
        stored = write_hessel2019(documents, Path(folder))
        problems = Problems()
        found = list(read_hessel2019(Path(folder), problems))
    assert problems.count == 0
    assert stored.documents == len(found) == len(documents)
    assert stored.links_lost == sum(map(least_loss, documents))
    lost = 0
    for before, after in zip(documents, found, strict=True):
        assert (before.id, before.split) == (after.id, after.split)
        assert (before.sentences, before.images) == (after.sentences, after.images)
        assert (before.links is None) == (after.links is None)
        assert set(after.links or ()) <= set(before.links or ())
        lost += len(before.links or ()) - len(after.links or ())
    assert lost == stored.links_lost


def least_loss(document):
    """Give how many links have to go: in each connected part, those beyond one a label."""
    part_of = {}
    for link in document.links or ():
        ends = {("sentence", link[0]), ("image", link[1])}
        for end in list(ends):
            ends |= part_of.get(end, set())
        part_of.update(dict.fromkeys(ends, ends))
    links = Counter(id(part_of["image", image]) for _, image in document.links or ())
    parts = {id(part): part for part in part_of.values()}
    return sum(max(0, links[key] - len(part)) for key, part in parts.items())


def test_release_loses_no_more_links_than_it_must(tmp_path):
    # About as many links as labels, in any order: long chains, some of which end and some not.
    choose = random.Random(0)
    documents = []
    for _ in range(2000):
        sizes = choose.randint(1, 9), choose.randint(1, 9)
        every = [(sentence, image) for sentence in range(sizes[0]) for image in range(sizes[1])]
        links = choose.sample(every, min(len(every), choose.randint(0, sum(sizes))))
        sentences, images = (tuple("s" * size) for size in sizes)
        documents.append(Document("d", sentences, images, tuple(links)))
    least = sum(map(least_loss, documents))
    assert 0 < least < sum(len(document.links) for document in documents) / 4
    assert write_hessel2019(documents, tmp_path).links_lost == least


def test_release_loses_links_only_beyond_its_labels(tmp_path):
    every = tuple((sentence, image) for sentence in range(3) for image in range(3))
    documents = [
        Document("star", ("a", "b", "c"), ("x",), ((0, 0), (1, 0), (2, 0)), "train"),
        Document("every", ("a", "b", "c"), ("x", "y", "z"), every, "train"),
    ]
    assert write_hessel2019(documents, tmp_path) == Stored(2, 9 - 6, 0)
    star, some = read_hessel2019(tmp_path, Problems())
    assert set(star.links) == set(documents[0].links)
    assert len(some.links) == 6


def test_release_has_no_place_for_some_things(tmp_path):
    documents = [
        Document("d", ("a",), ("x",), None, None, {"title": "t", "lang": "en"}),
        Document("e", ("a",), ("x",), None, "validation", {"metadata": {"url": "u"}}),
        Document("f", ("a",), ("x",), None, "train-extra"),
    ]
    assert write_hessel2019(documents, tmp_path) == Stored(3, 0, 3, splits_lost=2)
    splits = orjson.loads((tmp_path / "docs.json").read_bytes())
    assert {split: [doc[2] for doc in docs] for split, docs in splits.items()} == {
        "train": ["d"],
        "val": ["e"],
        "test": [],
        "train-extra": ["f"],
    }


def test_release_names_the_document_that_json_cannot_hold(tmp_path):
    with pytest.raises(SightlineError, match="document 'bad' cannot be written as JSON"):
        write_hessel2019([Document("bad", ("\ud800",), ("x",))], tmp_path / "out")
    assert not (tmp_path / "out").exists()


# All formats


def write_as(kind, documents, folder):
    if kind == "hessel2019":
        write_hessel2019(documents, folder)
        return folder
    path = folder / f"documents.{kind}"
    (write_parquet if kind == "parquet" else write_jsonl)(documents, path)
    return path


KINDS = [
    "jsonl",
    "jsonl.gz",
    "jsonl.zst",
    pytest.param("parquet", marks=needs_pyarrow),
    "hessel2019",
]


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_no_and_known_links_survive_every_format(kind, tmp_path):
    path = write_as(kind, THREE_KINDS_OF_LINKS, tmp_path)
    found = list(read(path, strict=True))
    assert [document.links for document in found[:2]] == [None, ()]
    assert set(found[2].links) == {(0, 1), (1, 0)}


@pytest.mark.shared_data
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "count"), [("openstax", 1128), ("guides", 618)])
def test_real_documents_survive_every_format(name, count, kind, shared_data, tmp_path):
    documents = list(read(shared_data / name, strict=True))
    assert len(documents) == count
    found = list(read(write_as(kind, documents, tmp_path), strict=True))
    if kind == "hessel2019":  # groups documents by split and links by side, and drops other keys
        documents.sort(key=lambda document: document.id)
        found.sort(key=lambda document: document.id)
        for before, after in zip(documents, found, strict=True):
            assert (after.id, after.split) == (before.id, before.split)
            assert (after.sentences, after.images) == (before.sentences, before.images)
            assert set(after.links) == set(before.links)
    else:
        assert found == documents
        assert [list(d.extra) for d in found] == [list(d.extra) for d in documents]


@pytest.mark.shared_data
def test_real_release(shared_data, tmp_path):
    documents = list(read(shared_data / "coco", strict=True))
    assert Counter(d.split for d in documents) == {"train": 25000, "val": 1000, "test": 1000}
    assert {len(document.links) for document in documents} == {5}
    assert write_hessel2019(documents, tmp_path) == Stored(27000, 0, 0)
    # The image's side is where the release has its links, and where they are written.
    assert orjson.loads((tmp_path / "docs.json").read_bytes()) == orjson.loads(
        (shared_data / "coco" / "docs.json").read_bytes()
    )


@needs_pyarrow
def test_parquet_that_confuses_pyarrow_is_refused_or_counted(tmp_path):
    """Names of columns that are no text, and times that Python has not."""
    path = tmp_path / "a.parquet"
    write_parquet([Document("a", ("s",), ("v",), extra={"aaaa": "x"})], path)
    path.write_bytes(path.read_bytes().replace(b"aaaa", b"\xff\xff\xff\xff"))
    with pytest.raises(SightlineError, match=r"a\.parquet: cannot be read as Parquet"):
        list(read_any_parquet(path, Problems()))
    columns = {"id": ["a", "b"], "sentences": [["s"]] * 2, "images": [["v"]] * 2}
    times = pyarrow.array([0, 2**62], pyarrow.timestamp("ms"))
    parquet.write_table(pyarrow.table(columns | {"when": times}), path)
    problems = Problems()
    assert [document.id for document in read_any_parquet(path, problems)] == ["a"]
    assert (problems.count, problems.first[0].line) == (1, 2)
    assert "cannot be read" in problems.first[0].reason
