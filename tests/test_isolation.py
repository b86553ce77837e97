"""Isolation: a reader that crashes, hangs, swells or lies is one sentence with the file's name."""

import os
import subprocess
import sys
import time

import pytest
from made_files import PdfFile, epub, picture

from sightline import isolation
from sightline.isolation import ReadingLimits, read_contents
from sightline.problems import SightlineError
from sightline.readers.epub import read_epub
from sightline.readers.page_folder import read_page

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the system keeps no limits")

MISCHIEF = isolation._PROGRAM.replace(
    "_serve(",
    """import os, signal, time
from sightline import isolation
from sightline.pages import Page, PageImage
from sightline.readers.contents import Contents
def mischief(path, kind, seconds):
    what = path.stem
    if what == "segfault": os.kill(os.getpid(), signal.SIGSEGV)
    if what == "killed": os.kill(os.getpid(), signal.SIGKILL)
    if what == "exit": os._exit(7)
    if what == "error": raise ValueError
    if what == "spin":
        while True: pass
    if what == "sleep": time.sleep(60)
    if what == "swell": b"x" * 2_000_000_000
    if what == "print": print("noise", flush=True); os.write(1, b"noise")
    if what == "index": return Contents(Page(None, (), (PageImage("a", 7),)))
    if what == "json": isolation._page_record = lambda page: {"blocks": 1}
    return Contents(Page("title", (), ()))
isolation._read = mischief
_serve(""",
)


def test_the_child_gives_what_the_reader_gives(tmp_path):
    body = '<h1>Ä</h1><p>Text.</p><img src="a.png" alt="Alt"/><figure><img src="b.png"/></figure>'
    files = {"OEBPS/a.png": picture(1), "OEBPS/b.png": picture(2)}
    path = epub(tmp_path / "ä b.epub", {"a.xhtml": body}, files)
    assert read_contents(path, "epub") == read_epub(path)


def test_images_beyond_the_limit_are_counted(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("".join(f"<p>a<img src={number}.png>" for number in range(5_003)))
    page = isolation.read_page_bounded(path).page
    assert [len(page.images), page.images[-1].source] == [5_000, "4999.png"]
    assert page.left_out.images == {"beyond the limits": 3}


def test_blocks_beyond_the_limit_are_counted_with_their_images(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "MAX_BLOCKS", 2)
    path = tmp_path / "a.html"
    path.write_text("<p>a<img src=a.png><p>b<p>cc<img src=c.png><p>ddd")
    page = isolation.read_page_bounded(path).page
    assert (page.text, [image.source for image in page.images]) == ("a\n\nb", ["a.png"])
    assert page.left_out.text == {"beyond the limits": 5}
    assert page.left_out.images == {"beyond the limits": 1}


def test_any_character_comes_out_of_the_child_the_same(tmp_path):
    text = "\u00e9\u4e2d\U0001f600\u2028\x7f"
    path = epub(tmp_path / "a.epub", {"a.xhtml": f"<p>{text}</p><p>&#xd800;</p>"})
    assert read_contents(path, "epub").page == read_epub(path).page


def test_any_name_and_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = epub(tmp_path / os.fsdecode(b"\xff.epub"), {"a.xhtml": "<p>Text.</p>"})
    assert read_contents(path.relative_to(tmp_path), "epub").page.text == "Text."


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("segfault", r"crash \(signal 11\)"),
        ("exit", r"crash \(exit code 7\)"),
        ("error", r"crash \(exit code 1\)"),
        ("killed", "more memory than 0.5 GB"),
        ("swell", "more memory than 0.5 GB"),
        ("spin", "longer than 0.2 s of CPU time"),
        ("sleep", "longer than 2 s; try again"),
        ("index", "crash"),
        ("json", "crash"),
    ],
)
def test_a_child_that_fails_is_a_sentence(tmp_path, monkeypatch, what, words):
    monkeypatch.setattr(isolation, "_PROGRAM", MISCHIEF)
    path = tmp_path / f"{what}.pdf"
    path.write_bytes(b"")
    wall = 2 if what == "sleep" else 60
    limits = ReadingLimits(seconds=0.2, wall_seconds=wall, memory_bytes=500_000_000)
    start = time.monotonic()
    with pytest.raises(SightlineError, match=words) as raised:
        read_contents(path, "pdf", limits)
    assert str(raised.value).startswith(f"{path}: ")
    assert time.monotonic() - start < 8


@pytest.mark.parametrize("counts", ["5", "[1]", '{"icons": "many"}', '{"icons": null}'])
def test_counts_that_are_none_are_no_answer(counts):
    """A child that a hostile file took over may say anything."""
    page = f'{{"title": null, "blocks": [], "images": [], "left_out": {{"text": {counts}}}}}'
    answer = f'{{"page": {page}, "files": []}}'.encode()
    data = isolation._LENGTH.pack(len(answer)) + answer
    command = [sys.executable, "-c", f"import sys; sys.stdout.buffer.write({data!r})"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert isolation._receive(child) is None


def test_what_a_library_prints_is_not_among_the_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "_PROGRAM", MISCHIEF)
    path = tmp_path / "print.pdf"
    path.write_bytes(b"")
    assert read_contents(path, "pdf").page.title == "title"


def test_errors_of_the_reader_name_the_file(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.7 nothing")
    with pytest.raises(SightlineError, match=r"a\.pdf: it is damaged"):
        read_contents(path, "pdf")
    with pytest.raises(SightlineError, match="cannot be read"):
        read_contents(tmp_path / "absent.pdf", "pdf")
    with pytest.raises(SightlineError, match="larger than 0 MiB"):
        read_contents(path, "pdf", ReadingLimits(file_bytes=3))


def test_a_pdf_whose_streams_swell_is_bounded(tmp_path):
    """An image of 20,000 x 20,000 pixels that is not there."""
    file = PdfFile()
    kind = b"/Type /XObject /Subtype /Image /ColorSpace /DeviceRGB /BitsPerComponent 8"
    huge = file.stream(b"%s /Width 20000 /Height 20000" % kind, b"\0")
    file.page([(50, 700, 10, "Some text.")], [(huge, 50, 300, 200, 200)])
    contents = read_contents(file.write(tmp_path / "a.pdf"), "pdf")
    assert len(contents.page.images) == 1
    assert contents.files == {}


def long_page(path, text, size):
    path.write_text(text * (size // len(text) + 1))
    return path


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.txt"])
def test_a_large_page_is_read_in_a_child_and_comes_out_the_same(tmp_path, monkeypatch, name):
    path = long_page(tmp_path / name, "Some text ends here.\n\n", isolation._SMALL_PAGE)
    found = isolation.read_page_bounded(path)
    assert found.page == read_page(path)
    assert 0 < found.seconds < 10
    (tmp_path / f"small-{name}").write_text("Text.")
    monkeypatch.setattr(isolation, "_PROGRAM", "raise SystemExit(3)")
    assert isolation.read_page_bounded(tmp_path / f"small-{name}").page.text == "Text."
    with pytest.raises(SightlineError, match=rf"{name}: it makes its reader crash"):
        isolation.read_page_bounded(path)


def test_a_large_page_that_takes_too_long_is_a_sentence(tmp_path):
    path = long_page(tmp_path / "a.md", "a\n", 2_000_000)
    limits = ReadingLimits(seconds=0.5)
    with pytest.raises(SightlineError, match=r"a\.md: reading it takes longer than 0\.5 s of CPU"):
        isolation.read_page_bounded(path, limits)


def test_errors_of_pages_name_the_file(tmp_path):
    path = long_page(tmp_path / "a.md", "word ", 2**24)
    with pytest.raises(SightlineError, match=rf"{path}: The page is larger than 16 MiB"):
        isolation.read_page_bounded(path)
    with pytest.raises(SightlineError, match=rf"{tmp_path}: The page is not a regular file"):
        isolation.read_page_bounded(tmp_path)
    with pytest.raises(SightlineError, match=r"absent\.md: The page cannot be read"):
        isolation.read_page_bounded(tmp_path / "absent.md")
