"""Plain folders and plain text: what is one article, and which images it has."""

import gzip
import json
import os
import time
from collections import Counter

import pytest
from command_server import sightline
from made_files import picture
from test_image_features import link_model

from sightline.article_folders import without_folders
from sightline.articles import read_article
from sightline.link_writing import page_files
from sightline.problems import SightlineError
from sightline.readers.recognition import are_results
from sightline.readers.text import MAX_BYTES, read_text


def write(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        is_image = file.suffix in (".png", ".jpg")
        file.write_bytes(picture(len(name)) if is_image else b"A fox runs.\n\nAn owl sleeps.\n")
    return folder


def test_a_text_and_images_are_one_article(tmp_path):
    folder = write(tmp_path / "trip", "notes.txt", "b10.png", "b9.jpg", "a b#%20.png", ".x.png")
    assert without_folders([folder, folder]) == [folder / "notes.txt"]
    article = read_article(folder / "notes.txt", images_beside=True)
    assert article.kind == "text"
    assert article.document.sentences == ("A fox runs.", "An owl sleeps.")
    assert [image.name for image in article.images] == ["a b#%20.png", "b9.jpg", "b10.png"]
    assert all(image.content == folder / image.name for image in article.images)
    assert {image.position for image in article.images} == {len(article.page.text)}
    assert read_article(folder / "notes.txt").images == ()


def test_a_page_has_the_images_beside_it_only_if_it_refers_to_none_and_is_alone(tmp_path):
    folder = write(tmp_path, "one.md", "a.png", "b.png")
    assert len(read_article(folder / "one.md", images_beside=True).images) == 2
    (folder / "one.md").write_text("A fox.\n\n![](b.png)\n")
    assert [i.name for i in read_article(folder / "one.md", images_beside=True).images] == ["b.png"]
    write(folder, "two.md")
    assert read_article(folder / "two.md", images_beside=True).images == ()


def test_every_article_in_and_below_a_folder_is_found(tmp_path):
    folder = write(
        tmp_path,
        *("page.html", "page_files/frame.html", "page_files/a.png", "book.epub", "robots.txt"),
        *("sub/report.pdf", "sub/deep/notes.txt", "sub/deep/a.png", "texts/a.txt", "texts/b.txt"),
    )
    write(folder, "style.css", "mixed/a.txt", "mixed/b.txt", "mixed/a.png")
    dropped: Counter[str] = Counter()
    found = [path.relative_to(folder).as_posix() for path in without_folders([folder], dropped)]
    assert found == ["book.epub", "page.html", "sub/deep/notes.txt", "sub/report.pdf"]
    assert +dropped == {
        "files that are no pages": 1,
        "texts without images of their own": 5,
        "pages in folders of saved pages": 1,
    }


def test_corpora_files_and_folders_without_an_article_stay(tmp_path):
    corpus = write(tmp_path / "corpus", "documents.jsonl", "README.md")
    shards = write(tmp_path / "shards", "part-1.jsonl.gz", "README.md")
    images = write(tmp_path / "images", "a.png")
    inputs = [corpus, shards, images, tmp_path / "gone.html"]
    assert without_folders(inputs) == inputs


def test_several_texts_beside_images_are_refused(tmp_path):
    folder = write(tmp_path / "mixed", "a.txt", "b.txt", "a.png")
    with pytest.raises(SightlineError, match="2 texts lie beside the images"):
        without_folders([folder])


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("One.\r\n\r\nTwo.\r\n", ["One.", "Two."]),
        ("A dog\nA cat\n", ["A dog", "A cat"]),
        (f"{'word ' * 12}\n  goes on\n\fNext", [f"{'word ' * 12}goes on", "Next"]),
        ("\ufeffÄpfel", ["Äpfel"]),
        ("", []),
    ],
)
def test_paragraphs_of_text(text, paragraphs):
    page = read_text(text.encode())
    assert [block.text for block in page.blocks] == paragraphs
    assert not page.left_out.to_record()


def test_text_in_another_encoding_and_text_beyond_the_limit():
    assert read_text("Käse".encode("latin-1")).blocks[0].text == "Käse"
    with pytest.raises(SightlineError, match="16 MiB"):
        read_text(b"x" * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le-sig", "utf-32-be-sig"]
)
@pytest.mark.parametrize("text", ["Hello", "Grüße – „ja“ 😀", "Привет, мир", "Καλημέρα", "مرحبا"])
def test_text_in_wide_encodings(text, encoding):
    codec = encoding.removesuffix("-sig")
    start = "\ufeff" if codec != encoding else ""
    page = read_text(f"{start}{text}\n\n{text}".encode(codec))
    assert [block.text for block in page.blocks] == [text, text]
    assert not page.left_out.to_record()


@pytest.mark.parametrize(
    ("data", "texts", "invalid"),
    [
        (b"One\0\0 two\0", ["One two"], 3),
        (b"\0" * 7, [], 7),
        (b"ab\0", ["ab"], 1),
        ("Hello".encode("utf-32-le"), ["Hello"], 15),
        ("\ufeffA\0B".encode("utf-16-le"), ["AB"], 1),
        (b"a\0b\0c", ["ab\ufffd"], 1),
    ],
)
def test_zeros_in_text_are_removed_and_counted(data, texts, invalid):
    page = read_text(data)
    assert [block.text for block in page.blocks] == texts
    assert page.left_out.text == {"invalid bytes": invalid}


def test_a_folder_is_linked_and_made_pairs_of(tmp_path):
    folder = write(tmp_path / "trip", "notes.txt", "a.png", "b.png")
    link_model("efficientnet-lite0").save_pretrained(tmp_path / "model")
    out, _ = sightline("link", folder, "--model", tmp_path / "model", "--unit", "paragraph")
    record = json.loads(out)
    assert record["id"].endswith("trip/notes.txt")
    assert [image["status"] for image in record["images"]] == ["ok", "ok"]
    options = ["--model", tmp_path / "model", "--policy", "threshold", "--threshold", "-1"]
    sightline("pairs", folder, *options, "-o", tmp_path / "pairs.jsonl")
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert {pair["image"] for pair in pairs} == {"trip/a.png", "trip/b.png"}


def test_a_second_run_does_not_read_what_the_first_wrote(tmp_path):
    folder = write(tmp_path / "site", "a.md", "b.html", "style.css", "a.png")
    link_model("efficientnet-lite0").save_pretrained(tmp_path / "model")
    command = ["link", folder, "--model", tmp_path / "model", "-o"]
    for _ in range(2):
        _, words = sightline(*command, folder / "links", "--format", "html")
        assert sorted(file.name for file in folder.glob("links/*")) == [
            "a.links.html", "b.links.html",
        ]  # fmt: skip
    left_out = "files that Sightline wrote (2), files that are no pages (1)"
    assert f"left out of folders: {left_out}\n" in words
    _, words = sightline(*command, tmp_path / "links.jsonl")
    ids = [json.loads(line)["id"] for line in (tmp_path / "links.jsonl").open()]
    assert ids == [str(folder / "a.md"), str(folder / "b.html")]


def test_results_beside_pages_make_no_shards_of_these(tmp_path):
    site = write(tmp_path / "site", "a.png", "b.png")
    (site / "page.md").write_text("A fox runs.\n\n![A fox](a.png)\n\nAn owl sleeps.\n")
    link_model("efficientnet-lite0").save_pretrained(tmp_path / "model")
    model = ["--model", tmp_path / "model", "--policy", "mmc4"]
    for _ in range(2):
        _, words = sightline("link", site, *model, "-o", site / "links.jsonl")
    assert "left out of folders: files that Sightline wrote (1)\n" in words
    (site / "page.md").write_text("A fox runs.\n\n![An owl](b.png)\n\nAn owl sleeps.\n")
    sightline("alt", site, "--check", "-o", site / "audit.jsonl")
    for _ in range(2):
        _, words = sightline("pairs", site, *model, "-o", site / "pairs.jsonl")
        pair = json.loads((site / "pairs.jsonl").read_text())
        assert pair["image"] == "b.png"  # of the page as it is now
    assert "left out of folders: files that Sightline wrote (3)\n" in words
    (site / "page.md").unlink()
    _, words = sightline("pairs", site, "-o", tmp_path / "old.jsonl")
    assert json.loads((tmp_path / "old.jsonl").read_text())["image"] == "site/a.png"
    for command in ("corpus", "link"):
        _, words = sightline(command, site / "links.jsonl", expect=1)
        assert f"{site / 'links.jsonl'}: these are link records, not documents; " in words
    (site / "pairs.jsonl").unlink()
    (site / "audit.jsonl").unlink()
    _, words = sightline("corpus", site, expect=1)
    assert "no documents in this folder, but link records, not documents" in words


def test_a_corpus_with_its_links_beside_it_stays_a_corpus(tmp_path):
    corpus = write(tmp_path / "corpus", "README.md", "a.png")
    document = {"id": "x", "sentences": ["A fox runs."], "images": ["a.png"]}
    (corpus / "documents.jsonl").write_text(json.dumps(document))
    model = ["--policy", "mmc4"]
    sightline("link", corpus, *model, "-o", corpus / "links.jsonl")
    document["id"] = "new"
    (corpus / "documents.jsonl").write_text(json.dumps(document))
    sightline("pairs", corpus, *model, "-o", tmp_path / "pairs.jsonl")
    assert json.loads((tmp_path / "pairs.jsonl").read_text())["document"] == "new"


def test_packed_lines_beside_articles_take_no_time(tmp_path):
    (tmp_path / "a.md").write_text("A wall.")
    (tmp_path / "notes.jsonl.gz").write_bytes(gzip.compress(b"\n" * 50_000_000))
    empty = b'{"links": [], "images": []}\n'
    (tmp_path / "links.jsonl.gz").write_bytes(gzip.compress(empty * 2_000_000))
    started = time.process_time()
    found = [are_results(tmp_path / name) for name in ("notes.jsonl.gz", "links.jsonl.gz")]
    assert found == [False, False] and time.process_time() - started < 1


@pytest.mark.parametrize("command", ["link", "alt"])
def test_links_to_themselves_end_no_run(tmp_path, command):
    site, output = tmp_path / "site", tmp_path / "out"
    (site / "sub").mkdir(parents=True)
    for place in (site, site / "sub"):
        (place / "a.md").write_text("A wall.")
    (site / "loop.html").symlink_to("loop.html")
    output.mkdir()
    (output / "sub").symlink_to("sub")
    _, words = sightline(command, site, "-o", f"{output}/")
    assert "loop.html" in words and "1 bad record" in words
    names = sorted(file.name for file in output.iterdir() if not file.is_symlink())
    assert len(names) == 2 and all(name.endswith(".html") for name in names)


def test_pages_of_a_folder_lie_as_its_articles_do(tmp_path):
    names = ("settings.md", "howto/settings.md", "howto/settings.html", "howto/more/a.md")
    site = write(tmp_path / "site", *names, "howto/b.png")
    link_model("efficientnet-lite0").save_pretrained(tmp_path / "model")
    out = tmp_path / "out"
    command = ["link", site, "--format", "html", "-o", out]
    _, words = sightline(*command, "--model", tmp_path / "model")
    assert {file.relative_to(out).as_posix() for file in out.rglob("*.html")} == {
        "settings.links.html",
        "howto/settings.links.html",
        "howto/settings-2.links.html",
        "howto/more/a.links.html",
    }
    assert f"{out}/howto/more/a.links.html: " in words
    sightline("link", site / "settings.md", "-o", f"{out}2/", "--model", tmp_path / "model")
    assert [file.name for file in (tmp_path / "out2").iterdir()] == ["settings.links.html"]
    _, words = sightline("link", site / "settings.md", "-o", "-", "--format", "csv", expect=1)
    assert "leave -o out for the standard output" in words
    sightline("alt", site, "--check", "-o", tmp_path / "alts")
    assert (tmp_path / "alts/howto/settings.alt.html").is_file()


def test_no_page_leaves_the_folder_for_pages(tmp_path):
    named = [tmp_path / "a/../../x.md", tmp_path / "b/y.md", tmp_path / "a/z/Y.md"]
    found = page_files(tmp_path / "out", named, 0, folders=[tmp_path / "a"])
    places = [file.relative_to(tmp_path / "out").as_posix() for file in found.values()]
    assert places == ["x.links.html", "y.links.html", "z/Y.links.html"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_no_page_takes_the_place_of_an_article_or_follows_a_link(tmp_path):
    site = write(tmp_path / "site", "a.md", "a.links.html", "sub/b.md", "c.md", f"{'n' * 250}.md")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "victim.txt").write_text("years of work")
    (site / "c.links.html").symlink_to(tmp_path / "victim.txt")
    out = tmp_path / "out"
    out.mkdir()
    (out / "sub").symlink_to(tmp_path / "elsewhere")
    articles = without_folders([site])
    within = page_files(site, articles, 0, folders=[site])
    assert not set(within.values()) & set(articles)
    assert within[site / "a.md"].name == "a-2.links.html"
    assert within[site / "c.md"].name == "c-2.links.html"
    assert all(len(os.fsencode(file.name)) <= 255 for file in within.values())
    assert page_files(out, articles, 0, folders=[site])[site / "sub/b.md"] == out / "b.links.html"
    sightline("alt", site, "--check", "-o", out)
    assert (tmp_path / "victim.txt").read_text() == "years of work"
    assert not any((tmp_path / "elsewhere").iterdir())


# ---- images elsewhere in the folder that was named


def test_articles_of_a_folder_show_images_from_all_of_it(tmp_path):
    site = write(tmp_path / "site", "img/a.png", "guides/b.png")
    write(tmp_path, "secret.png")
    (site / "img/out.png").symlink_to(tmp_path / "secret.png")
    sources = [
        "../img/a.png",
        "/img/a.png",
        "b.png",
        "../../secret.png",
        "../img/out.png",
        "../c.png",
    ]
    page = site / "guides/page.html"
    page.write_text("<p>A fox runs.</p>" + "".join(f"<img src='{one}'>" for one in sources))
    images = read_article(page, folders=[tmp_path / "other", site]).images
    assert [(image.name, image.content) for image in images] == [
        ("../img/a.png", site / "guides/../img/a.png"),
        ("../img/a.png", site / "guides/../img/a.png"),
        ("b.png", site / "guides/b.png"),
        ("../../secret.png", None),
        ("../img/out.png", None),
        ("../c.png", None),
    ]
    assert [image.content for image in read_article(page).images][:3] == [
        None,
        None,
        page.parent / "b.png",
    ]


def test_the_commands_read_images_of_the_folder_that_is_named(tmp_path):
    site = write(tmp_path / "site", "img/a.png")
    (site / "guides").mkdir()
    (site / "guides/page.html").write_text("<p>A fox runs.</p><img src='../img/a.png' alt='b c d'>")
    record = json.loads(sightline("link", site, "--format", "jsonl")[0])
    assert [(one["id"], one["status"]) for one in record["images"]] == [("../img/a.png", "ok")]
    sightline("pairs", site, "-o", tmp_path / "pairs.jsonl", "--policy", "mmc4")
    pair = json.loads((tmp_path / "pairs.jsonl").read_text())
    assert pair["image"] == "site/img/a.png"
    audited = json.loads(sightline("alt", site, "--json")[0])
    assert audited["images"][0]["candidates"]
    alone, _ = sightline("link", site / "guides/page.html", "--format", "jsonl", expect=1)
    assert "name the folder that holds both" in json.loads(alone)["images"][0]["reason"]
