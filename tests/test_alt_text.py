"""The audit of alternative texts and the candidates for new ones."""

import json
from dataclasses import replace

import docx
import numpy as np
import pytest
from command_server import sightline
from made_files import PdfFile, picture
from PIL import Image
from test_image_features import link_model

from sightline.alt_audit import LONGEST_ALT, Code, audit
from sightline.alt_text import audit_article, with_candidates
from sightline.articles import read_article
from sightline.pages import PageImage


def codes(page_image, **options):
    (found,) = audit([page_image], [None], **options)
    return [finding.code for finding in found]


def image(alt, **fields):
    return PageImage(fields.pop("source", "photos/beach.jpg"), 0, alt=alt, **fields)


@pytest.mark.parametrize(
    "alt",
    [
        "IMG_1234.jpg", "beach.JPG", "images/beach.png", "IMG_1234", "DSC00042", "PXL_20230101_1",
        "d41d8cd98f00b204e9800998ecf8427e", "123e4567-e89b-12d3-a456-426614174000", "4711",
        "Screenshot 2023-01-02 at 10.11.12",
    ],
)  # fmt: skip
def test_names_of_files_are_no_text(alt):
    assert codes(image(alt)) == [Code.FILE_NAME]


def test_the_name_of_the_file_itself_is_no_text_unless_it_is_a_word():
    assert codes(image("red-fox", source="a/red-fox.png?w=3")) == [Code.FILE_NAME]
    assert codes(image("Sunset", source="sunset.jpg")) == []


@pytest.mark.parametrize(
    "alt",
    ["image", "Photo", "image1", "figure 2", "picture #3", "alt text", "untitled", "...", "*"],
)
def test_placeholders(alt):
    assert codes(image(alt)) == [Code.PLACEHOLDER]


@pytest.mark.parametrize(
    "alt",
    [
        "A dog runs along the beach.", "Photographers at work", "Logo of the Red Cross", "Bonn",
        "Photosynthesis in a leaf", "Figure skating", "1984, the cover", "Ein Hund", "犬が走る",
        "Covid-19", "F-16", "Apollo 11", "Imagine", "Picasso", "B2B", "decade",
    ],
)  # fmt: skip
def test_texts_that_people_write_are_left_in_peace(alt):
    assert codes(image(alt)) == []


def test_other_faults():
    assert codes(image(None)) == [Code.MISSING]
    assert codes(image(" \n")) == [Code.BLANK]
    assert codes(image("Image of a dog")) == [Code.REDUNDANT_WORDS]
    assert codes(image("A dog.", caption="A dog")) == [Code.SAME_AS_CAPTION]
    assert codes(image("A dog", title="a DOG")) == [Code.SAME_AS_TITLE]
    assert codes(image("a" * 10 + " b" * 70)) == []
    long = ("word " * 40).strip()
    assert len(long) > LONGEST_ALT
    assert codes(image(long)) == [Code.TOO_LONG]


def test_an_empty_text_is_right_for_decoration_only():
    assert codes(image("")) == []
    assert codes(image("", width=100, height=900)) == []
    assert codes(image("", width=640, height=480)) == [Code.EMPTY_CONTENT]
    assert codes(image("", caption="A dog.")) == [Code.EMPTY_CONTENT]
    assert codes(image("", caption="A dog.", decorative=True)) == []
    assert codes(image(None, decorative=True)) == []
    assert codes(image(""), empty_is_missing=True) == [Code.MISSING]


def test_one_text_for_several_images_is_found_on_each():
    images = [image("A dog", source="a"), image("a dog.", source="b"), image("A dog", source="a")]
    found = audit([*images, image("A cat")], [None] * 4)
    assert [[f.code for f in of_image] for of_image in found] == [[Code.REPEATED]] * 3 + [[]]
    assert "image 2" in found[0][0].message
    assert audit(images[::2], [None] * 2) == [[], []]  # the same image twice


PAGE = """<!doctype html><title>Beach</title>
<h1>At the beach</h1>
<!-- <img src="comment.jpg"> -->
<script>document.write('<img src="script.jpg">')</script>
<p>A dog runs along the beach. It is warm.</p>
<img
  src="a.jpg">
<p>{long}</p>
<a href="b.html"><img src="b.jpg" alt=""></a>
<a href="b.html"><img src="c.jpg" alt="">The way home</a>
<figure><img src="d.jpg" alt="A cat sleeps."><figcaption>A cat sleeps.</figcaption></figure>
<pre>&lt;img src="e.jpg"></pre>
""".replace("{long}", "A very long sentence about the cat " * 6 + "ends here.")


@pytest.fixture
def article(tmp_path):
    (tmp_path / "page.html").write_text(PAGE)
    return read_article(tmp_path / "page.html")


def test_findings_know_their_line_and_whether_a_link_is_left_without_a_name(article):
    alts = audit_article(article)
    found = [(i.name, i.line, [f.code for f in i.findings]) for i in alts.images]
    assert found == [
        ("a.jpg", 6, [Code.MISSING]),
        ("b.jpg", 9, [Code.EMPTY_LINK]),
        ("c.jpg", 10, []),
        ("d.jpg", 11, [Code.SAME_AS_CAPTION]),
    ]
    assert [i.needs_text for i in alts.images] == [True, True, False, False]
    assert alts.findings == 3


def test_lines_of_markdown(tmp_path):
    text = "---\ntitle: x\n---\n\nText ![](a.png) and ![A dog](b.png).\r\n\r\n"
    text += "```\n![](code.png)\n```\n\n[![](c.png)](link)\n\n<img src=d.png>\n"
    (tmp_path / "page.md").write_text(text, newline="")
    alts = audit_article(read_article(tmp_path / "page.md"))
    assert [(i.name, i.line, len(i.findings)) for i in alts.images] == [
        ("a.png", 5, 1), ("b.png", 5, 0), ("c.png", 11, 1), ("d.png", 13, 1),
    ]  # fmt: skip


def record(article, matrix_SV, links=()):
    count = len(article.images)
    return {
        "links": [{"sentence": s, "image": v, "score": 1.0, "confidence": c} for s, v, c in links],
        "images": [{"status": "ok", "reason": None}] * count,
        "matrix": np.asarray(matrix_SV).tolist(),
    }


def test_candidates_fit_are_linked_and_score_in_this_order(article):
    sentences = article.document.sentences
    assert len(sentences) == 5 and sentences[4] == "A cat sleeps."  # the caption, no candidate
    matrix_SV = np.tile([[0.1], [0.3], [0.9], [0.8], [1.0]], 4)
    alts = with_candidates(audit_article(article), record(article, matrix_SV, [(0, 0, 0.8)]))
    first = alts.images[0].candidates
    assert [(c.sentence, c.fits, c.linked) for c in first] == [
        (0, True, True), (1, True, False), (2, False, False), (3, False, False),
    ]  # fmt: skip
    assert (first[0].confidence, first[0].section) == (0.8, "At the beach")
    start, end = first[0].span
    assert article.page.text[start:end] == "A dog runs along the beach."
    assert alts.images[3].caption == "A cat sleeps."


def test_an_image_that_cannot_be_used_has_no_candidates(article):
    broken = record(article, np.full((5, 4), np.nan))
    broken["images"] = [{"status": "missing", "reason": "No file."}] * 4
    alts = with_candidates(audit_article(article), broken)
    assert [(i.candidates, i.status) for i in alts.images] == [((), "missing")] * 4


def test_a_page_whose_images_do_not_read_alike_still_gets_its_audit(article):
    """As when the file changes while it is read."""
    changed = replace(article, page=replace(article.page, images=article.page.images[::-1]))
    alts = audit_article(replace(changed, images=article.images[::-1]))
    assert [i.line for i in alts.images] == [None] * 4
    assert alts.findings == 2  # without places, it cannot tell that the link has no name


# ---- the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alt")
    for name, colour in (("a", "teal"), ("b", "gold"), ("c", "red"), ("d", "navy")):
        Image.new("RGB", (300, 200), colour).save(folder / f"{name}.jpg")
    (folder / "page.html").write_text(PAGE)
    (folder / "good.md").write_text("A dog.\n\n![A dog runs](a.jpg)\n")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    link_model("efficientnet-lite0").save_pretrained(folder)
    return folder


def test_check_needs_no_model_and_exits_1_if_it_finds_anything(folder):
    out, words = sightline("alt", folder / "page.html", "--check", expect=1)
    assert "page.html:6: image 1, a.jpg" in out and "! missing:" in out
    assert "c.jpg" not in out and "3 findings in 4 images of 1 article; --all lists" in words
    out, words = sightline("alt", folder / "good.md", "--check")
    assert out == "" and words == (
        "0 findings in 1 image of 1 article; --all lists the other images too\n"
    )


def test_all_lists_images_and_articles_without_a_finding(folder):
    both = [folder / "page.html", folder / "good.md"]
    out, words = sightline("alt", *both, "--check", "--all", expect=1)
    assert "page.html:10: image 3, c.jpg" in out and "good.md: 1 image, 0 findings" in out
    assert "3 findings in 5 images of 2 articles\n" in words


def test_the_pages_of_a_folder_are_named_as_the_folder_was(folder):
    out, _ = sightline("alt", folder.name, "--check", expect=1, cwd=folder.parent)
    assert f"\n  {folder.name}/page.html:6: image 1" in f"\n{out}"
    assert str(folder.parent) not in out
    out, _ = sightline("alt", ".", "--check", expect=1, cwd=folder)
    assert out.startswith("page.html: 4 images")


def test_the_report_as_a_page_as_json_and_as_text(folder, model, tmp_path):
    page = tmp_path / "report.html"
    options = ["--model", model, "--policy", "mmc4", "-o", page]
    out, words = sightline("alt", folder / "page.html", *options)
    shown = page.read_text()
    assert out == "" and f"{page}: 4 images, 3 findings" in words
    assert shown.startswith("<!doctype html>") and shown.count("<img ") == 4
    assert "Sentences on offer, a linked one first" in shown and "policy mmc4" in shown
    out, _ = sightline("alt", folder / "page.html", "--model", model)
    before, _, offered = out.partition("a linked one first, then by score:\n    1. ")
    assert "    1. " not in before and "    2. " in offered
    sightline("alt", folder / "page.html", "--check", "-o", page, expect=1)
    assert "Sentences on offer" not in page.read_text()
    sightline("alt", folder, "--check", "-o", tmp_path / "pages", expect=1)
    assert {f.name for f in (tmp_path / "pages").iterdir()} == {"good.alt.html", "page.alt.html"}
    _, words = sightline("alt", folder, "--check", "-o", page, expect=2)
    assert "several pages need a folder" in words
    sightline("alt", folder, "--check", "-o", tmp_path / "r.jsonl", expect=1)
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2
    sightline("alt", folder, "--check", "-o", tmp_path / "r.txt", expect=1)
    assert (tmp_path / "r.txt").read_text().startswith(f"{folder}/page.html: 4 images")
    sightline("alt", folder, "--check", "-o", page, "--json", expect=2)


def test_a_report_never_takes_the_place_of_an_article(folder):
    before = (folder / "page.html").read_bytes()
    _, words = sightline("alt", folder, "--check", "-o", folder / "page.html", expect=1)
    assert "write to another file" in words and (folder / "page.html").read_bytes() == before


@pytest.mark.parametrize("name", ["fixed.docx", "guide.md", "page.xhtml", "table.csv", "a.jpg"])
def test_a_report_is_not_written_under_the_name_of_something_else(folder, tmp_path, name):
    (tmp_path / name).write_bytes(b"mine")
    for json_too in ((), ("--json",)):
        given = ("--check", "-o", tmp_path / name, *json_too)
        _, words = sightline("alt", folder / "good.md", *given, expect=2)
        ending = name.partition(".")[2]
        expected = f"a report is not written as .{ending}; name .html, .jsonl or .txt."
        assert f"Error: {tmp_path / name}: {expected}" in words
        assert (f"is --write {tmp_path / name}." in words) == (ending in ("docx", "md", "xhtml"))
    assert (tmp_path / name).read_bytes() == b"mine"


def test_a_copy_is_not_written_under_the_name_of_another_kind(folder, tmp_path):
    for name in ("guide.md", "report.docx", "a.jpg"):
        (tmp_path / name).write_bytes(b"mine")
        # The model is none: the name is looked at before.
        given = ("--write", tmp_path / name, "--model", tmp_path / "none")
        _, words = sightline("alt", folder / "page.html", *given, expect=2)
        assert f"{tmp_path / name}: a copy of {folder / 'page.html'} is no ." in words
        assert words.endswith("end its name in .html.\n")
        assert (tmp_path / name).read_bytes() == b"mine"


def test_word_and_pdf_files_of_folders_are_audited_and_what_can_be_is_copied(model, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.png").write_bytes(picture())
    (site / "good.md").write_text("A dog runs on the beach.\n\n![A dog runs](a.png)\n")
    (site / "~$word.docx").write_text("Word has the file open")
    sightline("alt", site, "--check")
    word = docx.Document()
    word.add_paragraph("A dog runs along the beach.")
    word.add_picture(str(site / "a.png"))
    word.save(site / "word.docx")
    pdf = PdfFile()
    image = pdf.image()
    pdf.page([(50, 700, 12, "A cat sleeps in the sun.")], [(image, 50, 400, 200, 150)])
    pdf.write(site / "paper.pdf")
    out, words = sightline("alt", site, "--check", expect=1)
    assert "word.docx: 1 image, 1 finding" in out and "paper.pdf: 1 image, 1 finding" in out
    assert "left out of folders: files that are no pages (1)\n" in words
    given = ("--model", model, "--policy", "mmc4", "--min-score", "-1", "--write", tmp_path / "new")
    out, words = sightline("alt", site, *given)
    assert "1 file is reported on alone: copies are made of HTML, Markdown and DOCX" in words
    assert "paper.pdf: 1 image, 1 finding" in out
    assert {file.name for file in (tmp_path / "new").iterdir()} == {"good.md", "word.docx"}
    assert read_article(tmp_path / "new/word.docx").images[0].alt == "A dog runs along the beach."
    given = ("--model", tmp_path / "none", "--write", tmp_path / "new.pdf")
    _, words = sightline("alt", site / "paper.pdf", *given, expect=2)
    assert "paper.pdf: copies are made of HTML, Markdown and DOCX files; leave --write out" in words


def test_check_of_a_folder_and_of_what_cannot_be_read(folder):
    out, _ = sightline("alt", folder, "--check", "--json", expect=1)
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["findings"] for r in records] == [0, 3]
    assert "candidates" not in records[1]["images"][0]
    (folder / "bad.docx").write_bytes(b"PK no archive")
    sightline("alt", folder / "good.md", folder / "bad.docx", "--check", expect=1)
    report = folder / "report.txt"
    _, words = sightline("alt", folder / "bad.docx", "--check", "-o", report, expect=1)
    assert "skipped" in words and "No article could be read." in words
    assert not report.exists()
    sightline("alt", folder / "good.md", "--check", "--write", folder / "x.md", expect=2)
    sightline("alt", folder / "good.md", folder / "good.md", "--write", folder / "x", expect=2)


def test_json_has_candidates_and_what_was_written(folder, model):
    before = (folder / "page.html").read_bytes()
    options = ["--model", model, "--policy", "mmc4", "--json"]
    options += ["--write", folder / "copy.html"]
    _, words = sightline("alt", folder / "page.html", *options, expect=1)
    assert "--min-score" in words and not (folder / "copy.html").exists()
    out, _ = sightline("alt", folder / "page.html", *options, "--min-score", "-1")
    found = json.loads(out)
    assert [w["image"] for w in found["written"]] == [0, 1]
    assert {w["alt"] for w in found["written"]} == {"A dog runs along the beach.", "It is warm."}
    assert found["images"][0]["candidates"][0]["score"] <= 1
    assert (folder / "page.html").read_bytes() == before
    _, words = sightline("alt", folder / "copy.html", "--check", expect=1)
    assert "1 finding in" in words  # the repeated caption, which someone wrote


def test_a_file_that_is_not_there_is_told_with_what_was_probably_meant(folder):
    _, words = sightline("alt", folder / "pag.html", "--check", expect=1)
    assert words.startswith(f"Error: {folder / 'pag.html'}: no such file or folder.")
    assert "Did you mean 'page.html'" in words


def test_copies_of_a_folder_lie_as_their_articles_do(model, tmp_path):
    Image.new("RGB", (64, 64), "teal").save(tmp_path / "x.jpg")
    for name in ("a", "b"):
        place = tmp_path / "site" / name
        place.mkdir(parents=True)
        (place / "index.html").write_text('<p>A wall is teal.</p><img src="../../x.jpg">')
    options = ("--model", model, "--min-score", -1, "--write", tmp_path / "out")
    _, words = sightline("alt", tmp_path / "site", *options)
    out = tmp_path / "out"
    copies = sorted(file.relative_to(out).as_posix() for file in out.rglob("*.html"))
    assert copies == ["a/index.html", "b/index.html"]
    assert "alternative texts written into 2 copies" in words


def test_findings_can_be_passed_over(folder):
    page = folder / "page.html"
    out, _ = sightline("alt", page, "--check", "--json", expect=1)
    codes = {one["code"] for image in json.loads(out)["images"] for one in image["findings"]}
    assert len(codes) > 1
    first, *others = sorted(codes)
    out, _ = sightline("alt", page, "--check", "--json", "--ignore", first, expect=1)
    left = {one["code"] for image in json.loads(out)["images"] for one in image["findings"]}
    assert left == set(others)
    ignored = [word for code in codes for word in ("--ignore", code)]
    sightline("alt", page, "--check", *ignored)
    _, words = sightline("alt", page, "--check", "--ignore", "mising", expect=2)
    assert "Did you mean 'missing'?" in words
