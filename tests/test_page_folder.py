import os
import re
import shlex
from collections import Counter
from pathlib import Path

import orjson
import pytest
from command_server import sightline
from PIL import Image

from sightline.corpus import read
from sightline.page_corpus import Splits, decode_data_uri, page_corpus
from sightline.pages import PageImage
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.readers.page_folder import PageFolder, find_image, find_pages

PIXEL = (
    "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==" + "A" * 200
)


def draw(path, colour="teal"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (64, 48), colour).save(path, format="JPEG")


@pytest.fixture
def site(tmp_path):
    """A small site: two pages with images, one without, a saved page, and a secret beside it."""
    folder = tmp_path / "site"
    draw(folder / "img" / "a b.jpg")
    draw(folder / "guide" / "1.jpg", "gold")
    draw(folder / "Saved_files" / "x.jpg", "red")
    draw(tmp_path / "secret.jpg", "black")
    (folder / "guide" / "index.md").write_text(
        "# Guide\n\nMix the flour and the water.\n\n![one](../img/a%20b.jpg)\n\n"
        "Bake it for an hour.\n\n- Let it rest. ![two](1.jpg)\n"
    )
    (folder / "Saved.html").write_text(
        "<title>Saved</title><h1>Saved</h1><p>A saved page with its folder.</p>"
        "<img src='./Saved_files/x.jpg' srcset='https://h.org/x.jpg 2x' alt='X'>"
        "<p>More of it.</p><img src='https://h.org/remote.jpg'><img src='../secret.jpg'>"
        "<img src='/etc/passwd'><img src='file:///etc/passwd'><img src='gone.jpg'>"
        "<img src='/img/a b.jpg'>"
    )
    (folder / "Saved_files" / "frame.html").write_text("<p>A frame</p><img src=x.jpg>")
    (folder / "plain.md").write_text("No image here.\n")
    (folder / "wordless.htm").write_text("<img src='img/a b.jpg'>")
    return folder


def documents(folder, problems=None, **options):
    dropped = Counter()
    found = list(PageFolder(folder, **options).documents(problems or Problems(), dropped))
    return found, dropped


def test_each_page_with_text_and_images_is_a_document(site):
    found, dropped = documents(site)
    assert [document.id for document in found] == ["Saved.html", "guide/index.md"]
    saved, guide = found
    assert guide.sentences == (
        "Mix the flour and the water.",
        "Bake it for an hour.",
        "Let it rest.",
    )
    assert guide.images == ("img/a b.jpg", "guide/1.jpg")
    assert guide.links is None
    assert saved.images == ("Saved_files/x.jpg", "gone.jpg", "img/a b.jpg")
    assert saved.extra["alts"] == ["X", None, None]
    assert saved.extra["left_out"]["images"] == {
        "outside the folder": 3,
        "remote, not fetched": 1,
    }
    assert +dropped == {
        "pages without an image": 1,
        "pages without text": 1,
        "pages in folders of saved pages": 1,
        "images: outside the folder": 3,
        "images: remote, not fetched": 1,
    }


def test_links_from_layout(site):
    found, _ = documents(site, links_from_layout=True)
    assert found[1].links == ((0, 0), (2, 1))


def test_missing_images_stay_and_are_counted_or_are_left_out(site):
    pages = PageFolder(site)
    list(pages.documents(Problems(), Counter()))
    assert pages.missing == 1
    found, dropped = documents(site, skip_missing=True)
    assert found[0].images == ("Saved_files/x.jpg", "img/a b.jpg")
    assert dropped["images: missing"] == 1


def test_images_of_kinds_that_are_never_read_stay_and_are_counted_or_are_left_out(site):
    # Known by their content: this photograph has the name of a drawing, and the other way round.
    draw(site / "photo.svg")
    (site / "drawing.png").write_text("<svg xmlns='http://www.w3.org/2000/svg'></svg>")
    (site / "unknown.jpg").write_text("nothing known: its status is undecodable, a fault to see")
    inside = f"data:image/svg+xml;base64,{'A' * 2000}"
    names = ["photo.svg", "drawing.png", "unknown.jpg", inside]
    images = "".join(f'<img src="{name}" width="300" height="200">' for name in names)
    (site / "Saved.html").write_text(f"<p>A saved page with its folder.</p>{images}")
    pages = PageFolder(site)
    saved, _ = pages.documents(Problems(), Counter())
    assert saved.images == tuple(names) and pages.unsupported == 2
    (saved, _), dropped = documents(site, skip_missing=True)
    assert saved.images == ("photo.svg", "unknown.jpg")
    assert dropped["images: of a kind that is never read, such as SVG"] == 2


def test_articles_that_no_corpus_is_built_from_are_counted_apart(site):
    for name in ("a.pdf", "b.DOCX", "c.epub", "d.css"):
        (site / name).write_text("x")
    _, dropped = documents(site)
    assert dropped["PDF, DOCX and EPUB files, which no corpus is built from"] == 3
    assert dropped["files that are no pages"] == 1


def test_units_and_short_text(site):
    (site / "guide" / "index.md").write_text("One sentence. And two.\n\n![x](1.jpg)\n\nShort\n")
    found, _ = documents(site, unit="sentence", minimum_tokens=3, links_from_layout=True)
    assert found[1].sentences == ("One sentence.", "And two.")
    assert found[1].links == ((0, 0), (1, 0))
    assert found[1].extra["left_out"]["text"] == {"short": 5}


def test_links_out_of_the_folder_are_not_followed(site, tmp_path):
    draw(tmp_path / "outside" / "o.jpg")
    (tmp_path / "outside" / "page.md").write_text("Text ![x](o.jpg)\n")
    (site / "linked").symlink_to(tmp_path / "outside")
    (site / "page.md").symlink_to(tmp_path / "outside" / "page.md")
    (site / "img" / "out.jpg").symlink_to(tmp_path / "secret.jpg")
    (site / "inner.md").symlink_to(site / "plain.md")
    (site / ".git").mkdir()
    (site / ".git" / "page.md").write_text("Text ![x](a.jpg)\n")
    (site / "z.md").write_text("Text ![x](img/out.jpg) ![y](linked/o.jpg) ![z](guide/1.jpg)\n")
    found, dropped = documents(site)
    assert [document.id for document in found] == ["Saved.html", "guide/index.md", "z.md"]
    assert found[2].images == ("guide/1.jpg",)
    assert dropped["links to folders"] == 1
    assert dropped["links to pages outside the folder"] == 1
    assert dropped["folders whose name begins with a dot"] == 1
    assert dropped["images: outside the folder"] == 5
    assert dropped["pages without an image"] == 2  # one of them by a link within the folder


def test_a_link_to_itself_is_a_problem(site):
    (site / "itself.md").symlink_to(site / "itself.md")
    problems = Problems()
    assert len(list(PageFolder(site).documents(problems, Counter()))) == 2
    assert [Path(problem.file).name for problem in problems.first] == ["itself.md"]


def test_pages_in_folders_of_saved_pages_are_counted(site, tmp_path):
    inner = site / "Saved_files" / "more" / ".deep"
    inner.mkdir(parents=True)
    (inner / "page.MD").write_text("A page")
    (inner / "style.css").write_text("p {}")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "page.md").write_text("A page")
    (site / "plain_files").symlink_to(tmp_path / "outside")
    dropped = Counter()
    paths = [path.name for path in find_pages(site.resolve(), dropped)]
    assert paths == ["Saved.html", "index.md", "plain.md", "wordless.htm"]
    assert +dropped == {"pages in folders of saved pages": 2, "links to folders": 1}
    dropped = Counter()
    find_pages(site.resolve(), dropped, {".css"})
    assert dropped["pages in folders of saved pages"] == 1


def test_pages_come_sorted(site):
    paths = [path.name for path in find_pages(site.resolve(), Counter())]
    assert paths == ["Saved.html", "index.md", "plain.md", "wordless.htm"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1.jpg", ("guide/1.jpg", None)),
        ("./1.jpg#top", ("guide/1.jpg", None)),
        ("1.jpg?v=2", ("guide/1.jpg", None)),
        ("..\\img\\a b.jpg", ("img/a b.jpg", None)),
        ("../img/a%20b.jpg", ("img/a b.jpg", None)),
        ("/img/a%20b.jpg", ("img/a b.jpg", None)),
        ("q%3Fw=1.jpg", ("guide/q?w=1.jpg", None)),
        ("q?w=1.jpg", ("guide/q?w=1.jpg", None)),
        ("50%25.jpg", ("guide/50%.jpg", None)),
        ("gone.jpg?x", ("guide/gone.jpg", "missing")),
        ("../../secret.jpg", ("../../secret.jpg", "outside the folder")),
        ("%2e%2e/%2e%2e/secret.jpg", ("%2e%2e/%2e%2e/secret.jpg", "outside the folder")),
        ("/etc/passwd", ("/etc/passwd", "outside the folder")),
        ("C:\\x.jpg", ("C:\\x.jpg", "outside the folder")),
        ("file:1.jpg", ("file:1.jpg", "outside the folder")),
        ("//h.org/1.jpg", ("//h.org/1.jpg", "remote, not fetched")),
        ("HTTPS://h.org/1.jpg", ("HTTPS://h.org/1.jpg", "remote, not fetched")),
        ("", ("", "outside the folder")),
        ("a\0b", ("a\0b", "outside the folder")),
        ("x" * 5_000, ("guide/" + "x" * 5_000, "missing")),
    ],
)
def test_sources(site, source, expected):
    draw(site / "guide" / "q?w=1.jpg")
    draw(site / "guide" / "50%.jpg")
    root = site.resolve()
    assert find_image(PageImage(source, 0), root / "guide", root) == expected


def test_the_first_source_that_exists_is_taken(site):
    root = site.resolve()
    image = PageImage("https://h.org/x.jpg", 0, alternatives=("big.jpg", "1.jpg"))
    assert find_image(image, root / "guide", root) == ("guide/1.jpg", None)


def test_pages_that_cannot_be_read_are_problems(site, monkeypatch):
    monkeypatch.setattr("sightline.readers.html.MAX_BYTES", 300)
    problems = Problems()
    found, _ = documents(site, problems)
    assert [document.id for document in found] == ["guide/index.md"]
    (problem,) = problems.first
    assert problem.file.endswith("Saved.html")
    with pytest.raises(ProblemError, match="larger than"):
        documents(site, Problems(strict=True))


def test_a_pipe_is_not_waited_for(site):
    os.mkfifo(site / "pipe.md")
    problems = Problems()
    assert len(documents(site, problems)[0]) == 2
    assert "not a regular file" in problems.first[0].reason


def test_a_name_that_is_no_text_is_a_problem(site):
    path = os.fsencode(site) + b"/caf\xe9.md"
    with open(path, "wb") as file:  # noqa: PTH123 a name in bytes
        file.write(b"Text ![x](guide/1.jpg)")
    problems = Problems()
    found, _ = documents(site, problems)
    assert len(found) == 2
    assert "not valid UTF-8" in problems.first[0].reason


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SightlineError, match="no such folder"):
        documents(tmp_path / "nothing")


# ---- corpora


def test_a_page_keeps_its_split_when_others_come():
    splits = Splits(validation=0.2, test=0.3, seed=7)
    found = [splits.of(f"page-{number}") for number in range(2_000)]
    counts = Counter(found)
    assert abs(counts["val"] - 400) < 60 and abs(counts["test"] - 600) < 70
    assert counts["train"] == 2_000 - counts["val"] - counts["test"]
    assert [splits.of(f"page-{number}") for number in range(10)] == found[:10]
    assert Splits(validation=0.2, test=0.3, seed=8).of("page-1") in ("train", "val", "test")
    assert Splits().of("x") is None
    assert Splits("test").of("x") == "test"
    with pytest.raises(SightlineError, match="must leave some for training"):
        Splits(validation=0.5, test=0.5)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("data:image/png;base64,QUJD", (b"ABC", ".png")),
        ("DATA:image/jpeg;charset=x;BASE64, QU JD\n", (b"ABC", ".jpg")),
        ("data:image/svg+xml,%3Csvg%3E,x", (b"<svg>,x", ".svg")),
        ("data:,x", (b"x", "")),
        ("data:image/png;base64,A", None),
        ("data:nothing", None),
    ],
)
def test_data_uris(uri, expected):
    assert decode_data_uri(uri) == expected


def test_images_are_named_from_the_corpus_or_copied_into_it(site, tmp_path):
    (site / "guide" / "index.md").write_text(
        f"One.\n\n![a](1.jpg) ![b](../img/a%20b.jpg) ![c](none.jpg)\n\n![d]({PIXEL})\n"
    )
    corpus = tmp_path / "deep" / "corpus"
    corpus.mkdir(parents=True)
    for copy in (False, True):
        found = page_corpus(
            PageFolder(site),
            corpus,
            splits=Splits("test"),
            copy_images=copy,
            problems=Problems(),
            dropped=Counter(),
        )
        images = {document.id: document.images for document in found}["guide/index.md"]
        assert images[2] == "../../site/guide/none.jpg"
        for image, original in ((images[0], "guide/1.jpg"), (images[1], "img/a b.jpg")):
            assert (corpus / image).read_bytes() == (site / original).read_bytes()
            assert image.startswith("images/") == copy
        assert (corpus / images[3]).read_bytes().startswith(b"GIF89a")
        assert images[3].endswith(".gif")


def test_the_documented_commands_build_corpora_to_use(site, tmp_path):
    names = {"PAGES": site}
    page = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    commands = re.findall(r"^sightline (build pages .*)", page, re.MULTILINE)
    assert len(commands) == 3
    for number, command in enumerate(commands):
        names["CORPUS"] = tmp_path / f"corpus-{number}"
        out, words = sightline(*(names.get(word, word) for word in shlex.split(command)))
        assert "left out: images: remote, not fetched (1)" in words
        assert "left out: pages without an image (1)" in words
        assert f"2 documents in {names['CORPUS']}" in words
        assert out.splitlines()[-1].split()[0] == "pages"
    plain, linked, copied = (list(read(tmp_path / f"corpus-{n}")) for n in range(3))
    assert [document.id for document in plain] == ["Saved.html", "guide/index.md"]
    assert [document.links for document in plain] == [None, None]
    assert {document.split for document in linked} == {"test"}
    assert linked[1].links == ((0, 0), (2, 1))
    assert all(image.startswith("images/") for image in copied[1].images)
    manifest = orjson.loads((tmp_path / "corpus-1" / "manifest.json").read_bytes())
    assert manifest["options"]["links_from_layout"] is True


def test_the_corpus_works_with_features_and_evaluation(site, tmp_path):
    corpus = tmp_path / "corpus"
    options = ["--links-from-layout", "--split", "test", "--skip-missing"]
    sightline("build", "pages", site, "-o", corpus, *options)
    sightline("features", corpus, "-o", corpus / "features", "--workers", 0)
    out, _ = sightline("evaluate", "random", corpus, "--json")
    assert orjson.loads(out)["documents"] == 2


def test_build_pages_says_what_is_missing_and_prints_json(site, tmp_path):
    corpus = tmp_path / "corpus"
    shares = ["--validation", "0.3", "--test", "0.3"]
    out, words = sightline("build", "pages", site, "-o", corpus, "--json", *shares)
    assert "1 image has no file and stays as it is: train" in words
    assert "--skip-missing" in words
    record = orjson.loads(out)
    assert record["missing_images"] == 1 and record["unsupported_images"] == 0
    assert record["dropped"]["pages without text"] == 1
    before = (corpus / "documents.jsonl").read_bytes()
    sightline("build", "pages", site, "-o", corpus, *shares)
    assert (corpus / "documents.jsonl").read_bytes() == before


def test_build_pages_refuses_what_makes_no_sense(site, tmp_path):
    wrong = ["--split", "test", "--test", "0.5"]
    sightline("build", "pages", site, "-o", tmp_path / "c", *wrong, expect=2)
    _, words = sightline("build", "pages", tmp_path / "none", "-o", tmp_path / "c", expect=1)
    assert "no such folder" in words
    (tmp_path / "empty").mkdir()
    _, words = sightline("build", "pages", tmp_path / "empty", "-o", tmp_path / "c", expect=1)
    assert "No document of pages could be built" in words
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "documents.jsonl").write_text("mine")
    _, words = sightline("build", "pages", site, "-o", tmp_path / "own", expect=1)
    assert "holds a documents.jsonl that no builder wrote" in words
    assert (tmp_path / "own" / "documents.jsonl").read_text() == "mine"
    for _ in range(2):  # what it built itself it builds anew
        sightline("build", "pages", site, "-o", tmp_path / "c")


def test_the_words_of_a_reader_that_keeps_to_limits_name_the_page_once(tmp_path, monkeypatch):
    from sightline import isolation

    monkeypatch.setattr(isolation, "_SMALL_PAGE", 10)
    monkeypatch.setattr(isolation, "_PROGRAM", "raise SystemExit(3)")
    (tmp_path / "a.html").write_text("<p>Some text.</p><img src=a.png>")
    (tmp_path / "b.html").write_text("<p>B")
    problems = Problems()
    folder = PageFolder(tmp_path, read=lambda path: isolation.read_page_bounded(path).page)
    assert list(folder.documents(problems, Counter())) == []
    (problem,) = problems.first
    assert problem.file == str(tmp_path / "a.html")
    assert problem.reason.startswith("it makes its reader crash (exit code 3)")
