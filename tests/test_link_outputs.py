"""Links as CSV, Web Annotations, a list, and `sightline link` on real articles."""

import base64
import csv
import io
import os
import pty
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import get_args

import numpy as np
import orjson
import pytest
from command_server import sightline
from PIL import Image

from sightline.article_links import link_file
from sightline.choices import LinkFormat
from sightline.corpus import read
from sightline.csv_cells import text_cell
from sightline.link_outputs import (
    CSV_COLUMNS,
    MEDIA_TYPES,
    annotation_collection,
    csv_lines,
    explained,
    link_pieces,
    readable_lines,
)
from sightline.link_writing import form_of, page_files
from sightline.linking import LinkChoices
from sightline.model import LinkModel
from sightline.model_files import expected_shapes
from sightline.problems import SightlineError
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary

TEXT = 'Bees\n\nA "bee", flies.  It finds.\n\nIt finds. Ärger 🐝 ends.'
SENTENCES = ['A "bee", flies.', "It finds.", "It finds.", "Ärger 🐝 ends."]
SPANS = [[6, 21], [23, 32], [34, 43], [44, 58]]


def record(confidence=0.5, **changes):
    return {
        "id": "folder/my bees.html",
        "links": [
            {"sentence": 2, "image": 1, "score": 0.75, "confidence": confidence},
            {"sentence": 0, "image": 0, "score": 0.5, "confidence": confidence},
        ],
        "images": [
            {"id": "img/a b.jpg", "status": "ok", "reason": None},
            {"id": "https://bees.example/b.jpg", "status": "ok", "reason": None},
            {"id": "c.jpg", "status": "missing", "reason": "No such file."},
            {"id": "d.jpg", "status": "ok", "reason": None},
        ],
        "sentences": SENTENCES,
        "spans": SPANS,
        **changes,
    }


def test_the_spans_of_these_tests_are_right():
    assert [TEXT[start:end] for start, end in SPANS] == SENTENCES


def test_no_sign_in_a_cell_begins_a_row():
    sentences = ["A\r=cmd|' /C calc'!A0", "-", "B\n=1+1", "-"]
    text = "".join(csv_lines([record(id="x\r=1+1", sentences=sentences)]))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == 3 and all(row[0] in ("id", "x\r=1+1") for row in rows)
    assert "\r\n" not in text


def test_csv_gives_back_what_was_put_in():
    text = "".join(csv_lines([record(), record(None, id="d", spans=None)]))
    rows = list(csv.reader(io.StringIO(text)))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert rows[1] == ["folder/my bees.html", "https://bees.example/b.jpg", "2", "It finds.",
                       "0.75", "0.5", "34", "43", "1"]  # fmt: skip
    assert rows[2][3] == SENTENCES[0]
    assert rows[3][5:] == ["", "", "", "1"] and len(rows) == 5


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("-a", "'-a"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("'=1", "''=1"),
        ("It's +1.", "It's +1."),
        ("'Tis", "'Tis"),
        ("", ""),
    ],
)
def test_no_text_of_a_cell_is_a_formula(text, cell):
    """One apostrophe less gives the text back; numbers stay numbers."""
    assert text_cell(text) == cell
    sentences = [text, *SENTENCES[1:]]
    link = {"sentence": 0, "image": 0, "score": -0.5, "confidence": None}
    lines = csv_lines([record(id="d", sentences=sentences, links=[link])])
    _, row = csv.reader(io.StringIO("".join(lines), newline=""))
    assert row[3:5] == [cell, "-0.5"]


def test_annotations_have_what_the_model_asks_for():
    collection = annotation_collection([(record(), TEXT)])
    assert collection["@context"][0] == "http://www.w3.org/ns/anno.jsonld"
    assert collection["type"] == "AnnotationCollection" and collection["total"] == 2
    page = collection["first"]
    assert page["type"] == "AnnotationPage" and page["startIndex"] == 0
    names = [collection["id"], page["id"], *(item["id"] for item in page["items"])]
    assert len(set(names)) == 4 and all(name.startswith("urn:uuid:") for name in names)
    first, second = page["items"]
    for item in (first, second):
        assert item["type"] == "Annotation" and item["motivation"] == "linking"
        assert item["target"]["source"] == "folder/my%20bees.html"
        assert item["body"]["type"] == "Image"
    assert first["body"]["id"] == "https://bees.example/b.jpg"
    assert second["body"]["id"] == "folder/img/a%20b.jpg"
    assert (first["score"], first["confidence"]) == (0.75, 0.5)


def test_what_would_run_is_no_address_of_an_annotation():
    hostile = record(id="JavaScript:alert(1)")
    hostile["images"][0]["id"] = "vbscript:x"
    hostile["images"][1]["id"] = "javascript:alert(1)"
    items = annotation_collection([(hostile, TEXT)])["first"]["items"]
    assert [item["body"]["id"] for item in items] == ["javascript%3Aalert%281%29", "vbscript%3Ax"]
    assert all(item["target"]["source"] == "JavaScript%3Aalert%281%29" for item in items)


def test_selectors_find_the_sentence_among_equal_ones():
    items = annotation_collection([(record(), TEXT)])["first"]["items"]
    for item, link in zip(items, record()["links"], strict=True):
        quote, position = item["target"]["selector"]
        assert (quote["type"], position["type"]) == ("TextQuoteSelector", "TextPositionSelector")
        start, end = position["start"], position["end"]
        assert [start, end] == SPANS[link["sentence"]]
        assert TEXT[start:end] == quote["exact"]
        whole = quote["prefix"] + quote["exact"] + quote["suffix"]
        assert TEXT.count(whole) == 1
        assert TEXT.index(whole) + len(quote["prefix"]) == start


def test_annotations_of_a_corpus_quote_alone_and_no_links_make_no_page():
    plain = record(None, spans=None)
    (item, _) = annotation_collection([(plain, None)])["first"]["items"]
    (quote,) = item["target"]["selector"]
    assert quote == {"type": "TextQuoteSelector", "exact": "It finds.", "prefix": "It finds.",
                     "suffix": "Ärger 🐝 ends."}  # fmt: skip
    assert "confidence" not in item
    empty = annotation_collection([(record(links=[]), TEXT)])
    assert empty["total"] == 0 and "first" not in empty
    assert annotation_collection([(plain, None)]) == annotation_collection([(plain, None)])


def test_the_list_fits_the_width_and_obeys_no_text():
    hostile = ["\x1b[31mred\x07 " + "蜂" * 200, *SENTENCES[1:]]
    lines = list(readable_lines(record(sentences=hostile, title="B\x1b[2Jees"), 60, False))
    assert "\x1b" not in "".join(lines) and "\x07" not in "".join(lines)
    from rich.cells import cell_len

    assert all(cell_len(line) <= 60 for line in lines)
    assert lines[0] == "B [2Jees 4 images, 4 sentences, 2 links"
    assert lines[1].startswith("  1  a b.jpg") and " 50 % " in lines[1] and lines[1].endswith("…")
    assert "missing: No such file." in lines[3] and lines[4].endswith("no link")
    scores = list(readable_lines(record(None), 60, True))
    assert "0.75" in scores[2] and "\x1b[1m" in scores[2]


def test_an_image_without_a_link_says_why_to_people_alone():
    matrix = np.full((4, 4), -0.5)
    matrix[2, 1], matrix[0, 0], matrix[:, 2] = 0.75, 0.5, np.nan
    given = record(matrix=matrix.tolist())
    told = explained(given, LinkChoices())
    assert list(readable_lines(told, 80, False))[4].endswith(
        "no link: no sentence is similar to it"
    )
    assert told["images"][:3] == given["images"][:3]
    assert given["images"][3]["reason"] is None


@pytest.mark.parametrize(
    ("output", "asked", "terminal", "expected"),
    [
        (None, None, True, "list"),
        (None, None, False, "jsonl"),
        (None, "csv", True, "csv"),
        ("a.HTML", None, False, "html"),
        ("a.csv", None, False, "csv"),
        ("a.json", None, False, "annotations"),
        ("a.jsonld", None, False, "annotations"),
        ("a.jsonl", None, False, "jsonl"),
        ("a.html", "jsonl", False, "jsonl"),
    ],
)
def test_the_form_follows_the_suffix_and_the_reader(tmp_path, output, asked, terminal, expected):
    assert form_of(output and tmp_path / output, asked, terminal) == expected


@pytest.mark.parametrize(
    "name", ["links.md", "links.txt", "a.PDF", "a.docx", "a.xlsx", "a.jsonl.bak"]
)
def test_a_name_of_another_kind_of_file_is_refused(name):
    with pytest.raises(SightlineError, match="links are not written as"):
        form_of(Path(name), None, False)
    assert form_of(Path(name), "csv", False) == "csv"


def test_pages_have_a_file_each(tmp_path):
    one, other = tmp_path / "a" / "index.html", tmp_path / "b" / "index.md"
    assert page_files(tmp_path / "x.html", [one], 0) == {one: tmp_path / "x.html"}
    files = page_files(tmp_path / "out", [one, other], 0)
    assert [file.name for file in files.values()] == ["index.links.html", "index-2.links.html"]
    with pytest.raises(SightlineError, match="-o"):
        page_files(None, [one], 0)
    with pytest.raises(SightlineError, match="Only articles"):
        page_files(tmp_path / "x.html", [one], 1)
    (tmp_path / "file").touch()
    with pytest.raises(SightlineError, match="several pages need a folder"):
        page_files(tmp_path / "file", [one, other], 0)
    with pytest.raises(SightlineError, match="several pages need a folder"):
        page_files(tmp_path / "new.html", [one, other], 0)


def test_every_format_has_its_own_content_and_media_type():
    assert MEDIA_TYPES.keys() == {*get_args(LinkFormat)}
    assert len({*MEDIA_TYPES.values()}) == len(MEDIA_TYPES)
    texts = MEDIA_TYPES.keys() - {"html"}  # whose pages are drawn elsewhere
    contents = {b"".join(link_pieces([(record(), TEXT)], form)) for form in texts}
    assert len(contents) == len(texts) and all(b"It finds." in content for content in contents)


# ---- the command


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory, textbooks):
    """A model of random weights: what is written does not depend on how good its links are."""
    folder = tmp_path_factory.mktemp("tiny") / "m"
    documents = islice(read(textbooks).documents("train"), 40)
    vocabulary = Vocabulary.from_sentences([s for d in documents for s in d.sentences], 1)
    settings = Settings(dimension=8, word_dimension=4)
    rng = np.random.default_rng(0)
    weights = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in expected_shapes(settings, len(vocabulary), 1280).items()
    }
    LinkModel(settings, vocabulary, weights, "efficientnet-lite0").save_pretrained(folder)
    return folder


@pytest.fixture
def articles(tmp_path):
    """Two articles: HTML with a file, an embedded and a lost image; Markdown with one image."""
    rng = np.random.default_rng(0)
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (80, 90, 3), np.uint8)).save(buffer, "PNG")
    (tmp_path / "bee.png").write_bytes(buffer.getvalue())
    embedded = base64.b64encode(buffer.getvalue()).decode()
    (tmp_path / "bees.html").write_text(
        "<!doctype html><html lang=en><title>Bees</title><body><main><h1>Bees</h1>"
        "<p>A cell is the smallest unit of life. It was seen by Hooke in a thin piece of cork.</p>"
        '<figure><img src="bee.png" alt="A cell"><figcaption>The cell under a microscope.'
        "</figcaption></figure><p>Plants turn light into sugar, which all animals live from.</p>"
        f'<img src="data:image/png;base64,{embedded}" alt="A leaf" width=90 height=80>'
        '<p>The end of a long day.</p><img src="lost.png" alt="Lost"></main></body></html>'
    )
    (tmp_path / "notes.md").write_text("# Notes\n\nThe heart beats.\n\n![A heart](bee.png)\n")
    return tmp_path


def test_records_of_an_article_have_the_keys_of_any_document_and_more(tiny_model, articles):
    out, _ = sightline("link", articles / "bees.html", "--model", tiny_model)
    (found,) = [orjson.loads(line) for line in out.splitlines()]
    assert list(found)[:4] == ["id", "links", "images", "sentences"] and "matrix" not in found
    assert [image["status"] for image in found["images"]] == ["ok", "ok", "missing"]
    assert [image["alt"] for image in found["images"]] == ["A cell", "A leaf", "Lost"]
    assert found["images"][0]["caption"] == "The cell under a microscope."
    assert len(found["spans"]) == len(found["sentences"]) == 5
    assert {link["image"] for link in found["links"]} <= {0, 1}
    out, _ = sightline("link", articles / "bees.html", "--model", tiny_model, "--matrix",
                       "--unit", "paragraph", "--policy", "mmc4")  # fmt: skip
    found = orjson.loads(out)
    assert len(found["sentences"]) == 4 and len(found["matrix"]) == 4
    assert found["matrix"][0][2] is None and len(found["links"]) == 2


def test_every_form_of_output(tiny_model, articles):
    folder = articles / "out"
    folder.mkdir()
    link = ["link", articles / "bees.html", "--model", tiny_model, "--policy", "mmc4", "-o"]
    _, words = sightline(*link, folder / "bees.links.html")
    assert "2 links of 3 images" in words
    page = (folder / "bees.links.html").read_text()
    assert page.startswith("<!doctype html>") and page.count("<img ") == 2
    sightline(*link, folder / "bees.csv")
    assert len((folder / "bees.csv").read_text().splitlines()) == 3
    sightline(*link, folder / "bees.json")
    assert orjson.loads((folder / "bees.json").read_bytes())["total"] == 2


def test_several_articles_and_a_corpus_in_one_run(tiny_model, articles, textbooks):
    both = [articles / "bees.html", articles / "notes.md"]
    sightline("link", *both, "--model", tiny_model, "-o", articles / "pages", "--format", "html")
    names = sorted(file.name for file in (articles / "pages").iterdir())
    assert names == ["bees.links.html", "notes.links.html"]
    out, _ = sightline("link", both[1], textbooks, both[0], "--model", tiny_model, "--split", "val")
    ids = [orjson.loads(line)["id"] for line in out.splitlines()]
    assert ids[0].endswith("notes.md") and ids[-1].endswith("bees.html") and len(ids) > 10


def test_what_cannot_be_done_is_said(tiny_model, articles, textbooks):
    bees = articles / "bees.html"
    link = ["link", bees, "--model", tiny_model, "--policy", "mmc4"]
    _, words = sightline(*link, "--min-confidence", "0.5", expect=1)
    assert "not calibrated" in words
    _, words = sightline(*link, "--format", "html", expect=2)
    assert "-o" in words
    _, words = sightline("link", textbooks, "--model", tiny_model, "-o", "x.html", expect=2)
    assert "Only articles" in words
    before = bees.read_bytes()
    _, words = sightline("link", bees, "-o", bees, expect=1)
    assert "write to another file" in words and bees.read_bytes() == before
    (articles / "broken.docx").write_bytes(b"PK nothing")
    _, words = sightline("link", articles / "broken.docx", "--model", tiny_model, expect=1)
    assert "broken.docx" in words and "No document could be linked" in words


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_options_without_effect_and_images_that_were_not_read_are_told(tiny_model, articles):
    model = ["--model", tiny_model]
    options = ["--threshold", "0.5", "--split", "test", "--features", "nowhere"]
    page = articles / "page.html"
    _, words = sightline("link", articles / "bees.html", *model, *options, "-o", page)
    assert "--threshold is for --policy threshold, and has no effect with" in words
    assert "--split is for corpora" in words and "--features is for corpora" in words
    assert " of 3 images, 1 not read: There is no such file beside the article" in words
    options = ["--policy", "threshold", "--threshold", "0.5"]
    _, words = sightline("link", articles / "bees.html", *model, *options, "-o", page)
    assert "no effect" not in words
    _, words = sightline("link", articles / "bees.html", "--config", "x.toml", expect=2)
    assert "It stands before the command: sightline --config FILE" in words


@pytest.mark.parametrize("command", ["link", "alt"])
@pytest.mark.parametrize("name", ["a.html", "a.jsonl"])
def test_no_folder_is_made_for_a_file(command, name, articles, tmp_path):
    output = tmp_path / "no" / "such" / name
    _, words = sightline(command, articles / "bees.html", "-o", output, expect=1)
    assert f"there is no folder {output.parent}; make it first." in words
    assert not (tmp_path / "no").exists()


def test_a_terminal_gets_the_list(tiny_model, articles):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "sightline", "link", articles / "bees.html"]
    command += ["--model", tiny_model, "--policy", "mmc4"]
    env = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": ""}
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, check=True, env=env)
    os.close(theirs)
    words = os.read(ours, 65536).decode()
    os.close(ours)
    said = done.stderr.decode()
    assert said.count("\n") == 1 and "knows only" in said  # a tiny model
    assert "\x1b[1mBees\x1b[0m" in words and "3 images, 5 sentences, 2 links" in words
    assert "missing:" in words and len(words.splitlines()) == 4


def test_a_language_that_the_model_does_not_know_is_told(tmp_path):
    for name, text in (
        ("de", "Der Hund läuft über die Wiese. Am Abend saßen wir alle am Feuer."),
        (
            "fr",
            "Une femme en robe rouge marche le long de la plage, et le chat dort dans la maison.",
        ),
        ("en", "The dog runs across the meadow. In the evening we all sat by the fire."),
    ):
        (tmp_path / f"{name}.md").write_text(f"{text}\n\n![](dog.png)\n")
    Image.new("RGB", (90, 90), "teal").save(tmp_path / "dog.png")
    _, words = sightline("link", tmp_path, "-o", tmp_path / "links.jsonl")
    assert f"{tmp_path / 'de.md'}: the model knows only " in words
    # Nearly every word of it is known: the short ones of French are in English texts, too.
    assert f"{tmp_path / 'fr.md'}: the model finds next to none of its most common" in words
    assert "en.md" not in words
    _, words = sightline("alt", tmp_path / "de.md")
    assert f"{tmp_path / 'de.md'}: the model knows only " in words
    with pytest.warns(UserWarning, match=r"de\.md: the model knows only"):
        link_file(tmp_path / "de.md")


def test_images_without_a_text_are_told_how_to_get_one(tmp_path):
    photo = tmp_path / "photo"  # known by its content, whatever its name
    Image.new("RGB", (8, 8)).save(photo, "PNG")
    for command in (["link", photo], ["pairs", photo, "-o", tmp_path / "pairs.jsonl"]):
        _, words = sightline(*command, expect=1)
        assert words.startswith(f"Error: {photo} is an image alone; ") and ".txt or .md" in words
    photo.rename(tmp_path / "photo.png")
    _, words = sightline("link", tmp_path, expect=1)
    assert words.startswith(f"Error: {tmp_path} holds images alone; ")
    (tmp_path / "notes.xyz").write_text("Bees.")
    _, words = sightline("link", tmp_path / "notes.xyz", expect=1)
    assert "It is not an HTML, Markdown, PDF, DOCX or EPUB article either." in words


def test_a_corpus_is_not_written_over(tmp_path):
    documents = tmp_path / "documents.jsonl"
    documents.write_text("{}\n")
    for command in ("link", "pairs"):
        _, words = sightline(command, tmp_path, "-o", documents, expect=1)
        assert "would be lost" in words and documents.read_text() == "{}\n"


def test_a_corpus_that_gives_no_document_says_why(tiny_model, tmp_path):
    record = {"id": "a", "sentences": ["A."], "images": ["a.jpg"], "split": "train"}
    (tmp_path / "some.jsonl").write_bytes(orjson.dumps(record))
    (tmp_path / "none.jsonl").touch()
    link = ["--model", tiny_model, "-o", tmp_path / "links.jsonl"]
    _, words = sightline("link", tmp_path / "some.jsonl", "--split", "tset", *link, expect=1)
    assert "no document has the split 'tset', its splits are train;" in words
    _, words = sightline("link", tmp_path / "none.jsonl", *link, expect=1)
    assert "No document could be linked; the input holds none." in words
