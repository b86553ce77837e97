import gzip
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import partial

import orjson
import pytest
import test_readers
from hypothesis import given, settings
from hypothesis import strategies as st
from test_documents import EXTRA, FILLED_TEXT, JSON, TEXT, document_strategy

from sightline.corpus import read
from sightline.documents import Document
from sightline.problems import ProblemError
from sightline.readers.kept_fields import Leftovers
from sightline.readers.mmc4 import document_from_mmc4, mmc4_record, read_mmc4, with_matched_links
from sightline.readers.native import write_jsonl

RECORD = {
    "image_info": [
        {
            "face_detections": None,
            "image_name": "b9.jpg",
            "matched_sim": 0.25,
            "matched_text_index": 2,
            "raw_url": "http://a.org/90.jpg",
        },
        {
            "image_name": "db.jpg",
            "matched_sim": 0.5,
            "matched_text_index": 1,
            "raw_url": "http://x",
        },
    ],
    "similarity_matrix": [[0.125, 0.2, 0.25], [0, 0.5, -0.25]],
    "text_list": ["Lock the door.", "Press the switch.", "Unlock."],
    "url": "http://a.org/48.html",
    "could_have_url_duplicate": 0,
    "language": {"en": 1.0},
}
GOOD_LINE = orjson.dumps(RECORD) + b"\n"


def changed(**changes):
    return {**RECORD, **changes}


def info(**changes):
    return changed(image_info=[RECORD["image_info"][0], {**RECORD["image_info"][1], **changes}])


read_bytes = partial(test_readers.read_bytes, reader=read_mmc4, name="shard.jsonl")


def there_and_back(record, place=1):
    return mmc4_record(document_from_mmc4(record, place, allow_empty=True), Leftovers())


# Reading


def test_sentences_and_images_are_the_documents_and_links_are_unknown():
    document = document_from_mmc4(RECORD, 7)
    assert document.id == "http://a.org/48.html"
    assert document.sentences == ("Lock the door.", "Press the switch.", "Unlock.")
    assert document.images == ("b9.jpg", "db.jpg")
    assert document.links is None
    assert document.split is None
    assert document.extra == {"mmc4": {**RECORD, "text_list": None}}
    assert list(document.extra["mmc4"]) == list(RECORD)


def test_the_record_is_not_changed():
    before = orjson.dumps(RECORD)
    document_from_mmc4(RECORD, 1)
    assert orjson.dumps(RECORD) == before


def test_matches_are_links_only_when_asked_for():
    document = with_matched_links(document_from_mmc4(RECORD, 1))
    assert document.links == ((2, 0), (1, 1))
    known = replace(document, links=())
    assert with_matched_links(known).links == ()
    assert with_matched_links(Document("d", ("a",), ("x",))).links is None
    without = document_from_mmc4(info(matched_text_index=None), 1)
    assert with_matched_links(without).links == ((2, 0),)


@pytest.mark.parametrize("edited", [{}, {"image_info": 3}, {"image_info": [3, 4]}])
def test_matches_that_were_edited_away_are_no_links(edited):
    document = Document("d", ("a",), ("x", "y"), extra={"mmc4": edited})
    assert with_matched_links(document) == document


@pytest.mark.parametrize(
    ("changes", "identifier"),
    [
        ({}, "http://a.org/48.html"),
        ({"could_have_url_duplicate": 1}, "http://a.org/48.html#line-7"),
        ({"url": None}, "line-7"),
        ({"url": " "}, "line-7"),
        ({"url": None, "could_have_url_duplicate": 1}, "line-7"),
    ],
)
def test_ids_that_are_made_up_do_not_come_back(changes, identifier):
    record = changed(**changes)
    assert document_from_mmc4(record, 7).id == identifier
    assert mmc4_record(document_from_mmc4(record, 7), Leftovers()) == record


def test_without_a_name_an_image_is_its_url():
    nameless = {"raw_url": "http://a.org/1.jpg"}
    null = {"image_name": None, "raw_url": "http://a.org/2.jpg"}
    record = changed(image_info=[nameless, null])
    assert document_from_mmc4(record, 1).images == ("http://a.org/1.jpg", "http://a.org/2.jpg")
    assert there_and_back(record) == record


BAD = [
    (None, None, "expected a JSON object, found null"),
    ([], None, "expected a JSON object, found a list"),
    ({}, "text_list", "expected a list of strings, found no such key"),
    (changed(text_list="a"), "text_list", "expected a list of strings, found a string"),
    (changed(text_list=["a", "b", 3]), "text_list[2]", "expected a string, found a whole number"),
    (changed(text_list=["a", " ", "c"]), "text_list[1]", "expected a non-empty string, found an"),
    (
        changed(text_list=[], similarity_matrix=None, image_info=[{"image_name": "a"}]),
        "text_list",
        "expected at least one, found an empty list",
    ),
    (changed(image_info=None), "image_info", "expected a list of objects, found null"),
    (changed(image_info={}), "image_info", "expected a list of objects, found an object"),
    (changed(image_info=["a.jpg"]), "image_info[0]", "expected an object, found a string"),
    (changed(image_info=[{}, 3]), "image_info[0].image_name", "expected a string, or a raw_url"),
    (
        changed(image_info=[], similarity_matrix=[]),
        "image_info",
        "expected at least one, found an empty list",
    ),
    (info(image_name=5), "image_info[1].image_name", "expected a string, found a whole number"),
    (info(image_name=""), "image_info[1].image_name", "expected a non-empty string, found an"),
    (
        changed(image_info=[{"raw_url": 5}, {"raw_url": "b"}]),
        "image_info[0].raw_url",
        "expected a string, found a whole number",
    ),
    (
        info(matched_text_index=3),
        "image_info[1].matched_text_index",
        "no sentence 3, the document has 3",
    ),
    (
        info(matched_text_index=-1),
        "image_info[1].matched_text_index",
        "no sentence -1, the document has 3",
    ),
    (
        info(matched_text_index=1.0),
        "image_info[1].matched_text_index",
        "expected the index of a sentence or null, found a fraction",
    ),
    (
        info(matched_text_index=True),
        "image_info[1].matched_text_index",
        "expected the index of a sentence or null, found true",
    ),
    (
        changed(similarity_matrix={}),
        "similarity_matrix",
        "expected a row for each of 2 images, found an object",
    ),
    (
        changed(similarity_matrix=[[1, 2], [1, 2], [1, 2]]),  # sentences x images
        "similarity_matrix",
        "expected a row for each of 2 images, found 3 rows",
    ),
    (
        changed(similarity_matrix=[[1, 2, 3], [1, 2]]),
        "similarity_matrix[1]",
        "expected a number for each of 3 sentences, found a list of 2",
    ),
    (
        changed(similarity_matrix=[[1, 2, 3], None]),
        "similarity_matrix[1]",
        "expected a number for each of 3 sentences, found null",
    ),
    (
        changed(similarity_matrix=[[1, 2, 3], [1, 2, "0.5"]]),
        "similarity_matrix[1][2]",
        "expected a number, found a string",
    ),
    (
        changed(similarity_matrix=[[1, 2, 3], [None, 2, 3]]),
        "similarity_matrix[1][0]",
        "expected a number, found null",
    ),
    (changed(url=5), "url", "expected a string or null, found a whole number"),
    (changed(sightline=5), "sightline", "expected an object, found a whole number"),
    (changed(sightline={"id": 5}), "sightline.id", "expected a non-empty string, found a whole"),
    (changed(sightline={"links": [[3, 0]]}), "sightline.links[0]", "no sentence 3, the document"),
    (changed(sightline={"split": 5}), "sightline.split", "expected a string or null"),
    (changed(sightline={"images": ["a", "b", 5]}), "sightline.images[2]", "expected a string"),
    (changed(sightline={"sentences": 5}), "sightline.sentences", "expected a list of strings"),
]


@pytest.mark.parametrize(("record", "field", "reason"), BAD)
def test_bad_record_is_skipped_with_line_and_field(record, field, reason, tmp_path):
    data = GOOD_LINE + orjson.dumps(record) + b"\n" + GOOD_LINE
    documents, problems = read_bytes(data, tmp_path)
    assert len(documents) == 2
    assert [(p.line, p.field) for p in problems] == [(2, field)]
    assert problems[0].reason.startswith(reason)
    assert problems[0].file == str(tmp_path / "shard.jsonl")


def test_strict_stops_at_the_first_problem(tmp_path):
    path = tmp_path / "shard.jsonl"
    path.write_bytes(GOOD_LINE + orjson.dumps(changed(url=5)) + b"\n" + GOOD_LINE)
    documents = iter(read(path, strict=True))
    next(documents)
    with pytest.raises(ProblemError, match=r"shard\.jsonl:2: url: expected a string or null"):
        next(documents)


def test_allow_empty(tmp_path):
    empty = {"text_list": ["", "b"], "image_info": [], "similarity_matrix": []}
    (document,), problems = read_bytes(orjson.dumps(empty), tmp_path, allow_empty=True)
    assert (document.sentences, document.images, problems) == (("", "b"), (), [])
    assert mmc4_record(document, Leftovers()) == empty


def line(old, new):
    assert GOOD_LINE.count(old) == 1
    return GOOD_LINE.strip().replace(old, new)


# After the cases of JSONTestSuite, in the middle of a record that would be good otherwise.
NO_JSON = [
    (line(b"Unlock.", b"\xff"), "not valid UTF-8 at byte"),
    (line(b"Unlock.", b"\xed\xa0\x80"), "not valid UTF-8 at byte"),
    (line(b"Unlock.", b"\\ud800"), "not valid JSON at column"),
    (line(b"Unlock.", b"\t"), "not valid JSON at column"),
    (line(b"0.125", b"NaN"), "not valid JSON at column"),
    (line(b"0.125", b"-Infinity"), "not valid JSON at column"),
    (line(b"0.125", b"1e999"), "not valid JSON at column"),
    (line(b"0.125", b"0.125,"), "not valid JSON at column"),
    (line(b"0.125", b"+1"), "not valid JSON at column"),
    (line(b"0.125", b"01"), "not valid JSON at column"),
    (line(b"-0.25]]", b"-0.25],]"), "not valid JSON at column"),
    (line(b'"en"', b"en"), "not valid JSON at column"),
    (line(b'{"en"', b"{'en'"), "not valid JSON at column"),
    (line(b'{"en":1.0}', b"[" * 100_000 + b"]" * 100_000), "not valid JSON at column"),
    (b"[" * 100_000, "not valid JSON at column"),
    (b'{"a":' * 100_000, "not valid JSON at column"),
    (GOOD_LINE.strip()[:-1], "not valid JSON at column"),
    (GOOD_LINE.strip() + b"}", "not valid JSON at column"),
    (GOOD_LINE.strip() * 2, "not valid JSON at column"),
    (b"\0" * 100, "not valid JSON at column"),
    (b'"text_list"', "expected a JSON object, found a string"),
    (b"{}", "expected a list of strings, found no such key"),
]


@pytest.mark.parametrize(("bad", "reason"), NO_JSON)
@pytest.mark.parametrize("place", [0, 1])  # before and after the record that tells the format
def test_line_that_is_no_json(bad, reason, place, tmp_path):
    lines = [GOOD_LINE, GOOD_LINE]
    lines.insert(place, bad + b"\n")
    path = tmp_path / "shard.jsonl"
    path.write_bytes(b"".join(lines))
    corpus = read(path)
    assert [document.images for document in corpus] == [("b9.jpg", "db.jpg")] * 2
    assert [p.line for p in corpus.problems.first] == [place + 1]
    assert corpus.problems.first[0].reason.startswith(reason)


@pytest.mark.parametrize(
    ("odd", "matrix"),
    [
        (line(b'"url":', b'"url":5,"url":'), [0.125, 0.2, 0.25]),  # the last of two keys counts
        (line(b"0.125", b"1" + b"0" * 30), [1e30, 0.2, 0.25]),  # over 64 bits: a fraction
        (line(b"0.125", b"1e-999"), [0.0, 0.2, 0.25]),
        (line(b"0.125", b"-0"), [0, 0.2, 0.25]),
    ],
)
def test_what_json_leaves_open_is_read(odd, matrix, tmp_path):
    (document,), problems = read_bytes(odd, tmp_path)
    assert problems == []
    assert document.extra["mmc4"]["similarity_matrix"][0] == matrix
    assert document.id == RECORD["url"]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_compressed_shards(suffix, tmp_path):
    documents = [document_from_mmc4(RECORD, number) for number in range(3)]
    path = tmp_path / f"shard.jsonl{suffix}"
    write_jsonl(documents, path, lambda document: mmc4_record(document, Leftovers()))
    assert list(read(path)) == documents


def zipped(path, data, name="docs_shard_0_v2.jsonl", compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("README", "x")
        archive.writestr(name, data)
    return path


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_shards_as_they_are_published(compression, tmp_path):
    data = GOOD_LINE * 500 + b"bad\n" + GOOD_LINE
    path = zipped(tmp_path / "docs_shard_0_v2.jsonl.zip", data, compression=compression)
    corpus = read(path)
    assert len(list(corpus)) == 501
    assert [p.line for p in corpus.problems.first] == [501]


@pytest.mark.parametrize(
    ("name", "compression", "damage", "reason"),
    [
        ("a.txt", zipfile.ZIP_DEFLATED, b"", "expected a zip archive with one .jsonl file"),
        ("a.jsonl", zipfile.ZIP_LZMA, b"", "expected a zip archive with one .jsonl file"),
        ("a.jsonl", zipfile.ZIP_DEFLATED, b"\xff" * 50, "the zip archive is damaged"),
    ],
)
def test_zip_archives_of_other_kinds(name, compression, damage, reason, tmp_path):
    path = zipped(tmp_path / "a.jsonl.zip", GOOD_LINE * 500, name, compression)
    data = bytearray(path.read_bytes())
    data[200 : 200 + len(damage)] = damage
    path.write_bytes(data)
    corpus = read(path)
    assert len(list(corpus)) < 500
    assert [p.reason[: len(reason)] for p in corpus.problems.first] == [reason]
    path.write_bytes(data[:300])  # what says where the files are stands at the end
    assert list(read(path)) == []


def test_a_zip_archive_that_points_before_its_beginning(tmp_path):
    path = zipped(tmp_path / "a.jsonl.zip", GOOD_LINE)
    data = bytearray(path.read_bytes())
    place = data.rfind(b"PK\5\6") + 16  # where its list of files is said to begin
    data[place : place + 4] = (2**20).to_bytes(4, "little")
    path.write_bytes(data)
    corpus = read(path)
    assert list(corpus) == []
    assert "the zip archive is damaged" in corpus.problems.first[0].reason


def test_truncated_shard_keeps_what_came_before(tmp_path):
    lines = [orjson.dumps(changed(url=f"http://a.org/{i}")) + b"\n" for i in range(2000)]
    path = tmp_path / "shard.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(lines))[:-2000])
    corpus = read(path)
    found = list(corpus)
    assert 0 < len(found) < 2000
    assert found == [document_from_mmc4(orjson.loads(line), 1) for line in lines[: len(found)]]
    (problem,) = corpus.problems.first
    assert problem.line == len(found) + 1
    assert problem.reason.startswith("the compressed data ends early")


# Writing


JSON_TEXT = TEXT.filter(lambda key: key != "sightline")


@st.composite
def records(draw):
    sentences = draw(st.lists(TEXT, max_size=4))
    names = draw(st.lists(FILLED_TEXT, max_size=4))
    matched = st.none() | st.integers(0, len(sentences) - 1) if sentences else st.none()
    own = {"image_name", "raw_url", "matched_text_index"}
    further = st.dictionaries(TEXT.filter(lambda key: key not in own), JSON, max_size=2)
    infos = []
    for name in names:
        key = draw(st.sampled_from(["image_name", "raw_url"]))
        items = {key: name, "matched_text_index": draw(matched), **draw(further)}
        infos.append(dict(draw(st.permutations(list(items.items())))))
    number = st.floats(-1, 1) | st.integers(-1, 1)
    rows = st.lists(number, min_size=len(sentences), max_size=len(sentences))
    record = {"text_list": sentences, "image_info": infos}
    record |= draw(
        st.dictionaries(JSON_TEXT.filter(lambda key: key not in record), JSON, max_size=3)
    )
    for key, value in (
        ("similarity_matrix", st.lists(rows, min_size=len(names), max_size=len(names))),
        ("url", st.none() | TEXT),
        ("could_have_url_duplicate", st.sampled_from([0, 1])),
    ):
        if draw(st.booleans()):
            record[key] = draw(value)
        else:
            record.pop(key, None)
    return dict(draw(st.permutations(list(record.items()))))


@settings(max_examples=80, deadline=None)
@given(record=records(), place=st.integers(1, 10**6))
def test_record_comes_back_byte_by_byte(record, place):
    leftovers = Leftovers()
    document = document_from_mmc4(record, place, allow_empty=True)
    assert orjson.dumps(mmc4_record(document, leftovers)) == orjson.dumps(record)
    assert not leftovers.dropped.total() and not leftovers.aside.total()


ANY_EXTRA = st.one_of(
    EXTRA,
    st.dictionaries(st.sampled_from(["mmc4", "sightline", "text_list", "url"]), JSON, max_size=4),
)


@settings(max_examples=80, deadline=None)
@given(document=document_strategy(extra=ANY_EXTRA))
def test_native_document_comes_back(document):
    leftovers = Leftovers()
    record = orjson.loads(orjson.dumps(mmc4_record(document, leftovers)))
    dropped = document.extra.get("mmc4", 0) is None  # which says that there was no such key
    assert leftovers.dropped.total() == dropped
    back = document_from_mmc4(record, 3)
    if dropped:
        document = replace(document, extra={k: v for k, v in document.extra.items() if k != "mmc4"})
    assert back == document
    assert list(back.extra) == list(document.extra)
    again = orjson.dumps(mmc4_record(back, Leftovers()))
    assert again == orjson.dumps(mmc4_record(document, Leftovers()))


def test_native_document_has_mmc4s_fields_for_others():
    links = ((2, 0), (0, 0), (1, 2))
    images = ("a.jpg", "b.jpg", "https://c.org/c.jpg")
    document = Document("d", ("a", "b", "c"), images, links, "val", {"title": "t", "lang": "en"})
    leftovers = Leftovers()
    assert mmc4_record(document, leftovers) == {
        "text_list": ["a", "b", "c"],
        "image_info": [
            {"image_name": "a.jpg", "matched_text_index": 2},
            {"image_name": "b.jpg", "matched_text_index": None},
            {"raw_url": "https://c.org/c.jpg", "matched_text_index": 1},
        ],
        "sightline": {
            "id": "d",
            "links": [[2, 0], [0, 0], [1, 2]],
            "split": "val",
            "title": "t",
            "lang": "en",
            "mmc4": None,
        },
    }
    assert +leftovers.aside == {"links": 1, "splits": 1, "keys": 2}
    assert not +leftovers.dropped
    unknown = mmc4_record(replace(document, links=None), Leftovers())
    assert unknown["image_info"][0] == {"image_name": "a.jpg"}


def test_links_take_the_place_of_matches():
    document = replace(document_from_mmc4(RECORD, 1), links=((0, 0), (1, 1)))
    leftovers = Leftovers()
    record = mmc4_record(document, leftovers)
    first, second = record["image_info"]
    assert (first["matched_text_index"], first["matched_sim"]) == (0, 0.125)
    assert second == RECORD["image_info"][1]
    assert record["sightline"] == {"links": [[0, 0], [1, 1]]}
    assert +leftovers.dropped == {"matches": 1}
    none = mmc4_record(replace(document, links=()), Leftovers())
    assert [i["matched_text_index"] for i in none["image_info"]] == [None, None]
    assert "matched_sim" not in none["image_info"][0]
    assert document_from_mmc4(none, 1).links == ()


def test_document_that_lost_a_sentence_loses_the_matrix():
    document = document_from_mmc4(RECORD, 1)
    shorter = replace(document, sentences=document.sentences[:2])
    leftovers = Leftovers()
    record = mmc4_record(shorter, leftovers)
    assert "similarity_matrix" not in record
    assert [i["matched_text_index"] for i in record["image_info"]] == [None, 1]
    assert record["language"] == {"en": 1.0}
    assert +leftovers.dropped == {"matrices": 1, "matches": 1}


def test_document_that_lost_or_renamed_an_image_keeps_what_is_said_of_the_others():
    document = document_from_mmc4(RECORD, 1)
    one = mmc4_record(replace(document, images=("db.jpg",)), Leftovers())
    assert one["image_info"] == [RECORD["image_info"][1]]
    renamed = mmc4_record(replace(document, images=("images/b9.jpg", "db.jpg")), Leftovers())
    assert renamed["image_info"][0] == {**RECORD["image_info"][0], "image_name": "images/b9.jpg"}
    assert renamed["similarity_matrix"] == RECORD["similarity_matrix"]


def test_what_another_program_adds_is_kept():
    record = mmc4_record(Document("d", ("a", "b"), ("x.jpg",)), Leftovers())
    record["similarity_matrix"] = [[0.5, 0.25]]
    document = document_from_mmc4(record, 1)
    assert document.id == "d"
    assert document.extra["mmc4"]["similarity_matrix"] == [[0.5, 0.25]]


# The genuine sample, and a shard of realistic size


@pytest.mark.shared_data
def test_genuine_record_comes_back_byte_by_byte(shared_data):
    path = shared_data / "formats" / "mmc4_readme_example.jsonl"
    genuine = orjson.loads(path.read_bytes())
    (document,) = read(path, strict=True)
    assert len(document.sentences) == 3
    assert document.images == ("b9040a0dbb22.jpg", "db1c21bc8474.jpg")
    assert with_matched_links(document).links == ((2, 0), (1, 1))
    again = mmc4_record(document, Leftovers())
    assert orjson.dumps(again) == orjson.dumps(genuine)


PEAK = """
import resource, sys
from sightline.corpus import read
assert sum(1 for _ in read(sys.argv[1])) == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_shard(tmp_path):
    row = [0.25] * 40
    large = changed(
        text_list=["Press the master door lock switch in as shown to lock all doors."] * 40,
        image_info=[RECORD["image_info"][0]] * 5,
        similarity_matrix=[row] * 5,
    )
    line = orjson.dumps(large) + b"\n"
    peaks = []
    for count in (200, 20_000):  # 100 MB, where the process itself takes half of that
        path = tmp_path / f"{count}.jsonl"
        with path.open("wb") as file:
            for _ in range(count):
                file.write(line)
        command = [sys.executable, "-c", PEAK, str(path), str(count)]
        done = subprocess.run(command, capture_output=True, check=True)
        peaks.append(int(done.stdout) * (1 if sys.platform == "darwin" else 1024))
        path.unlink()
    assert peaks[1] < peaks[0] + 10 * 2**20
