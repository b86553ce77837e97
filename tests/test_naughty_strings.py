"""Texts that break programs go in as documents and come out unchanged, or are named and skipped."""

import csv
import io
import os
import subprocess
import sys

import numpy as np
import orjson
import pytest
from sharded_corpus import tiny_model

from sightline.corpus import read
from sightline.corpus_checks import check_documents
from sightline.csv_cells import text_cell
from sightline.features import write_feature_store
from sightline.link_outputs import annotation_collection, csv_lines, readable_lines
from sightline.problems import Problems

NAUGHTY = [
    " ",
    "\t\u00a0\u3000\u2003",
    "\x00",
    "a\x00b",
    "\x01\x02\x07\x08\x1b[31mred\x1b[0m\x7f\x85",
    "line\nbreak\r\nand\u2028more\u2029",
    "\ufeffmark of byte order",
    "\ufffe\uffff\U0010ffff",
    "\u202eright to left\u202c \u2066isolated\u2069 \u200fmark",
    "zero\u200bwidth\u200d\u200c\u2060\u00adspaces",
    "👩‍👩‍👧‍👦 👍🏿 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇺🇳 ❤️",
    "Z̡͖̜̯͈̰a̸̢͙l̷̡̛g̴͕̀o̵̗͝" * 20,
    "e\u0301 é \u212b Å ﬁ ǆ ß İ ı",
    "العربية עברית 日本語 한국어 ไทย हिन्दी ꧅ 𒈙",
    "𝕿𝖍𝖊 ｆｕｌｌ ⓒⓘⓡⓒⓛⓔ",
    "'; DROP TABLE documents; --",
    '" OR "1"="1',
    "<script>alert(1)</script><!--",
    "]]></x><![CDATA[",
    "&lt;&#0;&nbsp;&",
    "%s%s%n %d {0} {} {__class__} ${x} #{x} `id` $(id)",
    "=HYPERLINK(1)",
    "+1-2@SUM(A1)",
    "-1",
    '"quoted, with commas","and ""doubled""',
    "\\",
    "\\u0000 \\x00 \\ud800",
    "NaN",
    "-Infinity",
    "null",
    "1e999",
    "0x7fffffffffffffff",
    "../../../etc/passwd",
    "..\\..\\windows\\system32",
    "/dev/zero",
    "file:///etc/passwd",
    "CON",
    "nul.txt",
    "COM1.jpg",
    ".",
    "..",
    "~",
    "name. ",
    "x" * 1_000_000,
    "w " * 200_000,
    "." * 100_000,
    "a" * 255 + ".jpg",
    "1" * 5000,
]
#: Lines that are no documents: the reason that is given, by the line.
BAD = {
    rb'{"id":"1","sentences":["\ud800"],"images":["i"]}': "surrogate",
    b'{"id":"1","sentences":["\xff"],"images":["i"]}': "not valid UTF-8 at byte 25",
    b'{"id":"1","sentences":["\xed\xa0\x80"],"images":["i"]}': "not valid UTF-8",
    b'{"id":"1","sentences":[NaN],"images":["i"]}': "not valid JSON",
    b'{"id":"1","sentences":[Infinity],"images":["i"]}': "not valid JSON",
    b'{"id":"1","sentences":[1e999],"images":["i"]}': "",
    b'{"id":"","sentences":["a"],"images":["i"]}': "id",
    b'{"id":"1","sentences":[],"images":["i"]}': "sentences",
    b'{"id":"1","sentences":["a"],"images":[[]]}': "images",
    b"[" * 100_000 + b"]" * 100_000: "not valid JSON",
    b'{"id":"1","sentences":["a"],"images":["i"],"links":[[0,99999999999999999999]]}': "",
    b'{"id":"1","sentences":["a"],"images":["i"],"links":[[0,-1]]}': "links",
    b"\x00": "not valid JSON",
    b'"' + b"9" * 1_000_000: "not valid JSON",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Each text as id, sentences and images of a document; features are random numbers."""
    folder = tmp_path_factory.mktemp("naughty")
    texts = [text for text in NAUGHTY if text.strip()]
    records = [
        {"id": text, "sentences": [text, "a dog runs", text], "images": [text, f"{number}"]}
        for number, text in enumerate(texts)
    ]
    (folder / "documents.jsonl").write_bytes(b"\n".join(map(orjson.dumps, records)))
    images = list(dict.fromkeys(image for record in records for image in record["images"]))
    vectors = np.random.default_rng(2).normal(size=(len(images), 1280))
    write_feature_store(folder / "features", "efficientnet-lite0", images, vectors, {})
    return folder, records


@pytest.fixture(scope="module")
def linked(corpus):
    """What the command writes with the bundled model."""
    folder, _ = corpus
    done = subprocess.run(
        [sys.executable, "-m", "sightline", "link", str(folder), "--policy", "dense"],
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr[-2000:]
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def test_every_text_comes_back_as_it_was(corpus, linked):
    _, records = corpus
    assert len(linked) == len(records) > 40
    for record, found in zip(records, linked, strict=True):
        assert found["id"] == record["id"] and found["sentences"] == record["sentences"]
        assert [image["id"] for image in found["images"]] == record["images"]
        assert {image["status"] for image in found["images"]} == {"ok"}
        assert found["links"]
        numbers = [link[key] for link in found["links"] for key in ("score", "confidence")]
        assert np.isfinite(numbers).all()
    # The control: a change of one character would be noticed.
    assert linked[0]["sentences"] != [*records[0]["sentences"][:2], records[0]["id"] + "\u200b"]


def test_csv_annotations_and_lists_hold_every_text(linked):
    before = csv.field_size_limit(2**31 - 1)
    try:
        rows = list(csv.reader(io.StringIO("".join(csv_lines(linked)), newline="")))
    finally:
        csv.field_size_limit(before)
    expected = [
        [text_cell(record["id"]), text_cell(record["sentences"][link["sentence"]])]
        for record in linked
        for link in record["links"]
    ]
    assert [[row[0], row[3]] for row in rows[1:]] == expected
    collection = orjson.loads(
        orjson.dumps(annotation_collection((record, None) for record in linked))
    )
    quoted = [item["target"]["selector"][0]["exact"] for item in collection["first"]["items"]]
    assert quoted == [r["sentences"][link["sentence"]] for r in linked for link in r["links"]]
    for record in linked:
        for line in readable_lines(record, 80, colours=False):
            assert not set(line) & {"\x00", "\x1b", "\n", "\r", "\u202e"}


def test_bad_lines_are_named_by_file_and_line_and_their_neighbours_kept(tmp_path):
    good = b'{"id":"good","sentences":["a"],"images":["i"]}'
    lines = [good, *(line for bad in BAD for line in (bad, good))]
    file = tmp_path / "documents.jsonl"
    file.write_bytes(b"\n".join(lines))
    problems = Problems()
    documents = list(read(tmp_path, problems=problems).documents())
    assert [document.id for document in documents] == ["good"] * (len(BAD) + 1)
    assert [(one.file, one.line) for one in problems.first] == [
        (str(file), 2 * number + 2) for number in range(len(BAD))
    ]
    for one, reason in zip(problems.first, BAD.values(), strict=True):
        assert reason in f"{one.field} {one.reason}"
        assert len(one.reason) < 300


def test_ids_that_come_twice_are_counted_and_never_mixed_up(tmp_path):
    records = [
        {"id": name, "sentences": [f"the dog {n}"], "images": [f"i{n}"]}
        for n, name in enumerate(["a", "b", "a", "A", "a "])
    ]
    (tmp_path / "documents.jsonl").write_bytes(b"\n".join(map(orjson.dumps, records)))
    assert check_documents(read(tmp_path)).duplicate_ids.count == 1
    model = tiny_model()
    features = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    documents = list(read(tmp_path).documents())
    assert [d.sentences[0][-1] for d in documents] == list("01234")
    matrices = model.similarity_matrices(documents, features)
    for number, document in enumerate(documents):
        alone = model.similarity_matrix(document, features[number : number + 1])
        np.testing.assert_allclose(matrices[number], alone, atol=2e-6)
