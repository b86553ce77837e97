"""EPUB: chapters in the order of the spine, images out of the archive; protected books."""

import zipfile

import pytest
from made_files import CONTAINER, epub, picture

from sightline.problems import SightlineError
from sightline.readers.epub import read_epub
from sightline.zip_limits import REPLACED

ENCRYPTION = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
    'xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData><e:EncryptionMethod '
    'Algorithm="{algorithm}"/><e:CipherData><e:CipherReference URI="{name}"/></e:CipherData>'
    "</e:EncryptedData></encryption>"
)


def test_chapters_become_one_page(tmp_path):
    chapters = {
        "text/one.xhtml": '<h1>One</h1><p>First.</p><img src="../img/a%20b.png" alt="A"/>',
        "text/two.xhtml": '<h1>Two</h1><figure><img src="/OEBPS/img/c.png"/><figcaption>See'
        "</figcaption></figure><p>Second.</p>",
    }
    files = {"OEBPS/img/a b.png": picture(1), "OEBPS/img/c.png": picture(2)}
    contents = read_epub(epub(tmp_path / "a.epub", chapters, files))
    page = contents.page
    assert (page.title, page.language) == ("The Book", "en")
    assert [block.text for block in page.blocks] == ["One", "First.", "Two", "See", "Second."]
    first, second = page.images
    assert (first.source, first.block, first.alt) == ("OEBPS/img/a b.png", 1, "A")
    assert (second.source, second.caption) == ("OEBPS/img/c.png", "See")
    assert (second.block, second.offset) == (3, 0)  # it stands at the start of its caption
    assert second.caption_blocks == (3,)
    assert contents.files == files


def test_nothing_outside_the_archive_is_named(tmp_path):
    body = '<p>Text.</p><img src="../../../../etc/passwd"/><img src="http://example.org/a.png"/>'
    contents = read_epub(epub(tmp_path / "a.epub", {"a.xhtml": body}))
    sources = [image.source for image in contents.page.images]
    assert sources == ["etc/passwd", "http://example.org/a.png"]
    assert contents.files == {}


def test_protected_books_are_refused_but_scrambled_fonts_are_not(tmp_path):
    drm = ENCRYPTION.format(algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc",
                            name="OEBPS/a.xhtml")  # fmt: skip
    fonts = ENCRYPTION.format(algorithm="http://www.idpf.org/2008/embedding", name="OEBPS/a.otf")
    chapters = {"a.xhtml": "<p>Text.</p>"}
    path = epub(tmp_path / "a.epub", chapters, extra={"META-INF/encryption.xml": drm})
    with pytest.raises(SightlineError, match="copy protection"):
        read_epub(path)
    path = epub(tmp_path / "a.epub", chapters, extra={"META-INF/encryption.xml": fonts})
    assert read_epub(path).page.text == "Text."


def test_a_damaged_image_costs_only_itself(tmp_path):
    body = '<p>Text.</p><img src="bomb.png"/><img src="good.png"/>'
    files = {"OEBPS/bomb.png": b"\0" * 30_000_000, "OEBPS/good.png": picture()}
    contents = read_epub(epub(tmp_path / "a.epub", {"a.xhtml": body}, files))
    assert list(contents.files) == ["OEBPS/good.png"]
    assert contents.page.left_out.images == {"files that cannot be unpacked": 1}
    assert len(contents.page.images) == 2


def test_a_damaged_chapter_costs_only_itself_unless_it_is_all(tmp_path):
    bomb = "x" * 40_000_000
    path = epub(tmp_path / "a.epub", {"a.xhtml": bomb, "b.xhtml": "<p>Text.</p>"})
    page = read_epub(path).page
    assert page.text == "Text."
    assert page.left_out.text["beyond the limit on bytes (bytes)"] > 40_000_000
    chapters = {"a.xhtml": "x" * 20_000_000}
    with pytest.raises(SightlineError, match="zip bomb"):
        read_epub(epub(tmp_path / "a.epub", chapters))
    page = read_epub(epub(tmp_path / "a.epub", {**chapters, "b.xhtml": "<p>Text.</p>"})).page
    assert page.text == "Text."
    assert page.left_out.text == {"files that cannot be read (number)": 1}


def test_pictures_in_the_reading_order_and_texts_outside_of_it(tmp_path):
    path = epub(tmp_path / "a.epub", {"a.xhtml": "<p>Text.</p>", "b.xhtml": "<p>Loose.</p>"})
    cover = '<item id="p" href="p.png" media-type="image/png"/></manifest><spine>'
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    package = members["OEBPS/content.opf"].decode()
    package = package.replace("</manifest><spine>", cover + '<itemref idref="p"/>')
    package = package.replace('<itemref idref="c1"/>', "")
    changed = {"OEBPS/content.opf": package, "OEBPS/p.png": picture()}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**members, **changed}.items():
            file.writestr(name, data)
    contents = read_epub(path)
    assert [(i.source, i.block) for i in contents.page.images] == [("OEBPS/p.png", -1)]
    assert contents.files == {"OEBPS/p.png": picture()}
    assert contents.page.text == "Text."
    expected = {"files outside the reading order (bytes)": len(members["OEBPS/b.xhtml"])}
    assert contents.page.left_out.text == expected


def test_texts_that_no_chapter_is_are_counted_listed_or_not(tmp_path):
    """Of two items with one name the last is taken, and of two packages the first."""
    second = (
        '<package><manifest><item id="e" href="e.htm" media-type="text/html"/></manifest>'
        '<spine><itemref idref="e"/></spine></package>'
    )
    texts = {name: f"<p>{name}</p>" for name in ("b.xhtml", "c.xml", "d.HTML", "e.htm", "f.txt")}
    others = {"OEBPS/s.css": "p {}", "OEBPS/toc.ncx": "<ncx/>", "second.opf": second}
    files = {**{f"OEBPS/{name}": text for name, text in texts.items()}, **others}
    path = epub(tmp_path / "a.epub", {"a.xhtml": "<p>Text.</p>", "t.xhtml": "<p>One</p>"}, files)
    items = (
        '<item id="c0" href="b.xhtml" media-type="application/xhtml+xml"/>'
        '<item href="c.xml" media-type="application/xml"/>'
        '<item id="f" href="f.txt" media-type="text/plain"/>'
        '<item id="s" href="s.css" media-type="text/css"/><item id="n" media-type="text/html"/>'
    )
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name).decode() for name in file.namelist()}
    package = members["OEBPS/content.opf"].replace("<manifest>", f"<manifest>{items}")
    package = package.replace('href="t.xhtml"', 'href="t.xhtml" properties="nav"')
    container = members["META-INF/container.xml"].replace(
        "</rootfiles>", '<rootfile full-path="second.opf"/></rootfiles>'
    )
    changed = {"OEBPS/content.opf": package, "META-INF/container.xml": container}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**members, **changed}.items():
            file.writestr(name, data)
    page = read_epub(path).page
    assert page.text == "Text."
    assert page.left_out.text == {
        "files outside the reading order (bytes)": sum(map(len, texts.values())),
        "table of contents (bytes)": len(members["OEBPS/t.xhtml"] + others["OEBPS/toc.ncx"]),
    }


def book(tmp_path, items, spine, files, roots="content.opf"):
    """Write a book by hand: items are `(id, href, media type and more)`."""
    listed = "".join(f'<item id="{i}" href="{to}" media-type="{more}/>' for i, to, more in items)
    spine = "".join(f'<itemref idref="{name}" linear="no"/>' for name in spine)
    package = f"<package><manifest>{listed}</manifest><spine>{spine}</spine></package>"
    named = "".join(f'<rootfile full-path="{name}"/>' for name in roots.split())
    path = tmp_path / "book.epub"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("META-INF/container.xml", f"<container>{named}</container>")
        file.writestr("content.opf", package)
        for name, data in files.items():
            file.writestr(name, data)
    return path


PAGE, SVG = 'application/xhtml+xml"', 'image/svg+xml"'


@pytest.mark.parametrize("reference", ["a%20b.xhtml#c", "./x/../a%20b.xhtml?d", "/a b.xhtml"])
def test_any_way_to_name_a_chapter_is_understood(tmp_path, reference):
    items = [("c", reference, PAGE.upper()), ("d", "d.xhtml", 'text/html;charset=utf-8"')]
    files = {"a b.xhtml": "<p>Text.</p>", "d.xhtml": "<p>More.</p>"}
    page = read_epub(book(tmp_path, items, "cd", files)).page
    assert [block.text for block in page.blocks] == ["Text.", "More."]
    assert not page.left_out.to_record()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("b.dat", b"<p>Text</p>", "files outside the reading order (bytes)"),
        ("b", "Text \u00e9".encode("latin-1"), "files outside the reading order (bytes)"),
        ("b.xml", "<p>".encode("utf-16"), "files outside the reading order (bytes)"),
        ("b.xml", "<p>".encode("utf-32-be"), "files outside the reading order (bytes)"),
        ("META-INF/b.txt", b"Text", "files outside the reading order (bytes)"),
        ("toc.ncx", b"<ncx><text>One</text></ncx>", "table of contents (bytes)"),
        ("b.css", b"<p>Text</p>", "files outside the reading order (bytes)"),
        ("b.smil", b"<?xml?><x:html><p>Text</p>", "files outside the reading order (bytes)"),
        ("META-INF/b.xml", b"<x>Text</x>", "files outside the reading order (bytes)"),
        ("b.css", b"p {}", None),
        ("b.css", b"<!-- p {} -->", None),
        ("b.smil", b"<?xml?><smil/>", None),
        ("META-INF/rights.xml", b"<x>No</x>", None),
        ("b.png", picture(), None),
        ("b.otf", b"OTTO\0\x0a", None),
        ("b.txt", b"", None),
    ],
)
def test_files_that_nothing_lists_are_known_by_how_they_begin(tmp_path, name, data, reason):
    files = {"a.xhtml": "<p>Text.</p>", name: data}
    page = read_epub(book(tmp_path, [("a", "a.xhtml", PAGE)], "a", files)).page
    assert page.left_out.text == ({reason: len(data)} if reason else {})


@pytest.mark.parametrize("data", [b"%PDF-1.4\n\0", b"PK\x03\x04\0", b"\xd0\xcf\x11\xe0\0"])
def test_documents_of_other_formats_in_a_book_are_counted(tmp_path, data):
    files = {"a.xhtml": "<p>Text.</p>", "b.bin": data}
    page = read_epub(book(tmp_path, [("a", "a.xhtml", PAGE)], "a", files)).page
    assert page.left_out.text == {"documents in the book (number)": 1}


def test_a_chapter_that_is_listed_again_is_read_once(tmp_path):
    items = [("a", "a.xhtml#1", PAGE), ("b", "a.xhtml#2", PAGE), ("p", "p.png", 'image/png"')]
    files = {"a.xhtml": "<p>Text.</p>", "p.png": picture()}
    page = read_epub(book(tmp_path, items, "aabpp", files)).page
    assert (page.text, len(page.images)) == ("Text.", 1)
    assert page.left_out.text == {"files that are listed again (number)": 3}


@pytest.mark.parametrize("limit", ["MAX_BLOCKS", "_MAX_CHARACTERS"])
def test_what_is_beyond_the_limit_on_text_is_counted(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(f"sightline.readers.epub.{limit}", 2)
    files = {f"{n}.xhtml": "<p>a</p>" for n in range(4)}
    items = [(str(n), name, PAGE) for n, name in enumerate(files)]
    page = read_epub(book(tmp_path, items, "0123", files)).page
    assert [block.text for block in page.blocks] == ["a", "a"]
    assert page.left_out.text == {"beyond the limit on text (bytes)": 2 * len("<p>a</p>")}


def test_chapters_of_other_packages_are_counted_whatever_they_are_called(tmp_path):
    second = '<package><manifest><item href="b.css" media-type="text/html"/></manifest></package>'
    files = {"a.xhtml": "<p>Text.</p>", "second.xml": second, "b.css": "\0\0\0", "third": "<x"}
    roots = "content.opf second.xml third"
    page = read_epub(book(tmp_path, [("a", "a.xhtml", PAGE)], "a", files, roots)).page
    assert page.left_out.text == {
        "files outside the reading order (bytes)": 3,
        "files that cannot be read (number)": 1,
    }


def test_a_file_that_is_not_read_gives_way_to_what_stands_in_for_it(tmp_path):
    items = [
        ("a", "a.pdf", 'application/pdf" fallback="b"'), ("b", "b.xml", 'x/y" fallback="c"'),
        ("c", "c.xhtml", PAGE), ("d", "d.bin", 'x/y" fallback="d"'),
    ]  # fmt: skip
    files = {"a.pdf": "%PDF", "b.xml": "<x/>", "c.xhtml": "<p>Text.</p>", "d.bin": "\0"}
    page = read_epub(book(tmp_path, items, "ad", files)).page
    assert page.text == "Text."
    assert page.left_out.text == {
        "files that are no text (number)": 2,
        "files outside the reading order (bytes)": len("<x/>"),
    }


def test_a_chapter_that_is_a_drawing_is_read_as_one(tmp_path):
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg"><text>Drawn</text><image href="p.png"/></svg>'
    )
    files = {"s.svg": drawing, "p.png": picture()}
    contents = read_epub(book(tmp_path, [("s", "s.svg", SVG)], "s", files))
    assert [image.source for image in contents.page.images] == ["p.png"]
    assert contents.page.left_out.text == {"inline svg": 5}


def test_titles_of_chapters_that_their_text_does_not_repeat_are_counted(tmp_path):
    chapters = ("<title>Told</title><h1>Told</h1>", "<title>Untold</title><p>Text.</p>")
    files = {f"{n}.xhtml": text for n, text in enumerate(chapters)}
    items = [(str(n), name, PAGE) for n, name in enumerate(files)]
    page = read_epub(book(tmp_path, items, "01", files)).page
    assert page.left_out.text == {"titles of files": len("Untold")}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_chapter_that_another_of_its_name_replaces_is_counted(tmp_path):
    path = book(tmp_path, [("a", "a.xhtml", PAGE)], "a", {"a.xhtml": "<p>Old.</p>"})
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("a.xhtml", "<p>New.</p>")
    page = read_epub(path).page
    assert page.text == "New."
    assert page.left_out.text == {REPLACED: 1}


def test_scrambled_chapters_are_refused_like_encrypted_ones(tmp_path):
    scrambled = ENCRYPTION.format(algorithm="http://www.idpf.org/2008/embedding", name="a%20b")
    files = {"a b": "<p>Text.</p>", "META-INF/encryption.xml": scrambled}
    with pytest.raises(SightlineError, match="copy protection"):
        read_epub(book(tmp_path, [("a", "a%20b", PAGE)], "a", files))


def test_a_text_in_the_reading_order_that_is_no_page_is_counted_once(tmp_path):
    path = epub(tmp_path / "a.epub", {"a.xhtml": "<p>Text.</p>", "b.txt": "Plain."})
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name).decode() for name in file.namelist()}
    package = members["OEBPS/content.opf"].replace(
        'href="b.txt" media-type="application/xhtml+xml"', 'href="b.txt" media-type="text/plain"'
    )
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**members, "OEBPS/content.opf": package}.items():
            file.writestr(name, data)
    page = read_epub(path).page
    assert page.text == "Text."
    assert page.left_out.text == {"files that are no text (number)": 1}


def test_chapters_whose_names_have_prefixes(tmp_path):
    path = epub(tmp_path / "a.epub", {"a.xhtml": ""}, {"OEBPS/x.png": picture()})
    chapter = (
        '<?xml version="1.0"?><h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:head>'
        "<h:title>Title</h:title><h:style>p {}</h:style></h:head><h:body><h:p>One</h:p>"
        '<h:p>Two</h:p><h:img src="x.png"/></h:body></h:html>'
    )
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**members, "OEBPS/a.xhtml": chapter}.items():
            file.writestr(name, data)
    contents = read_epub(path)
    assert [block.text for block in contents.page.blocks] == ["One", "Two"]
    assert [image.source for image in contents.page.images] == ["OEBPS/x.png"]
    assert contents.page.left_out.text == {"scripts and styles": 4, "titles of files": 5}


def test_missing_parts_are_told(tmp_path):
    path = epub(tmp_path / "a.epub", {})
    with pytest.raises(SightlineError, match="list of chapters is empty"):
        read_epub(path)
    for members, words in (
        ({"mimetype": "application/epub+zip"}, "not an EPUB book"),
        ({"META-INF/container.xml": "<container/>"}, "names no package"),
        ({"META-INF/container.xml": CONTAINER}, "holds no 'OEBPS/content.opf'"),
    ):
        with zipfile.ZipFile(path, "w") as file:
            for name, data in members.items():
                file.writestr(name, data)
        with pytest.raises(SightlineError, match=words):
            read_epub(path)


def test_what_is_beyond_the_time_is_counted(tmp_path):
    chapters = {"a.xhtml": "<p>Text.</p>", "b.xhtml": "<p>More.</p>"}
    page = read_epub(epub(tmp_path / "a.epub", chapters), seconds=0).page
    assert page.blocks == ()
    assert page.left_out.text["beyond the limit on time (bytes)"] > 100


def test_texts_that_pass_for_pictures_are_counted(tmp_path):
    chapter = '<p>Words.</p><img src="note.html"/><img src="a.png"/>'
    files = {"OEBPS/note.html": "<p>Hidden words.</p>", "OEBPS/a.png": picture()}
    path = epub(tmp_path / "a.epub", {"one.xhtml": chapter}, files)
    page = read_epub(path).page
    assert page.left_out.text == {"files outside the reading order (bytes)": 20}


def test_drawings_are_counted_unless_they_are_shown(tmp_path):
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><text>Words.</text></svg>'
    files = {"OEBPS/shown.svg": drawing, "OEBPS/other.svg": drawing}
    path = epub(tmp_path / "a.epub", {"one.xhtml": '<p>Words.</p><img src="shown.svg"/>'}, files)
    counted = {"files outside the reading order (bytes)": len(drawing)}
    assert read_epub(path).page.left_out.text == counted
