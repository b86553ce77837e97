"""What `fuzz_parsers.py` calls: our parsers of documents, pages and texts, and rules about them.

A target takes any bytes and a folder of its own. It may give a value, count problems, or raise
`SightlineError`; an exception of any other kind, a broken rule (`AssertionError`) among them, is a
finding. `SEEDS` are sound inputs to begin with.
"""

import io
import re
import sys
import tarfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from made_files import CONTAINER, epub, picture
from word_pages import MARKS, TAGS, lost_letters, page_with_words
from word_trees import lost_in, tree_with_words, write_document

from sightline import fetching, isolation
from sightline.csv_cells import text_cell
from sightline.documents import document_from_record, document_to_record
from sightline.pages import page_to_document
from sightline.problems import Problems
from sightline.readers.docx import read_docx
from sightline.readers.epub import read_epub
from sightline.readers.hessel2019 import read_hessel2019
from sightline.readers.html import read_html
from sightline.readers.html_images import parse_srcset
from sightline.readers.kept_fields import Leftovers
from sightline.readers.markdown import read_markdown
from sightline.readers.mmc4 import document_from_mmc4, mmc4_record, read_mmc4
from sightline.readers.native import read_jsonl
from sightline.readers.obelics import document_from_obelics, obelics_record, read_obelics
from sightline.readers.page_folder import PageImage, find_image
from sightline.readers.pdf import read_pdf
from sightline.readers.text import read_text
from sightline.readers.webdataset import read_samples
from sightline.safe_xml import parse_xml
from sightline.sentence_splitting import LANGUAGES, split_sentences
from sightline.sentences import plain_text, tokens_of
from sightline.source_edits import SourceText, splice
from sightline.tag_attributes import find_attribute, one_line, set_attribute
from sightline.wiki_markup import strip_markup
from sightline.zip_limits import Archive

RECORD = {"id": "a", "sentences": ["One.", "Two."], "images": ["a.jpg"], "links": [[1, 0]]}
MMC4 = {
    "text_list": ["One.", "Two."],
    "url": "http://a",
    "similarity_matrix": [[0.1, 0.2]],
    "image_info": [{"image_name": "a.jpg", "matched_text_index": 1, "matched_sim": 0.2}],
}
OBELICS = {
    "texts": ["One.\n\nTwo.", None],
    "images": [None, "http://a/b.jpg"],
    "metadata": "[null, {}]",
    "general_metadata": '{"url": "http://a"}',
}
RELEASE = {"train": [[[["a", 0]], [["One.", 0], ["Two.", -1]], "na"]], "val": [], "test": []}
PAGE = (
    '<!doctype html><html lang="en"><head><title>T</title><base href="http://a/b/"></head><body>'
    '<nav><a href="x">Home</a></nav><article><h1>T</h1><p>Some text, and <b>more</b> of it.</p>'
    '<figure><img src="a.png" srcset="b.png 2x, c.png 3x" alt="Alt"><figcaption>A cat.'
    "</figcaption></figure><table><tr><td>1<td>2</table><ul><li>One<li>Two</ul></article>"
)
MARKDOWN = (
    "---\ntitle: T\n---\n# Head\n\nSome *text* [a](b 'c') ![d](e.png){.f}\n\n> - quote\n>   1. x\n"
    "\n|a|b|\n|-|-|\n|1|2|\n\n```\ncode\n```\n<div>html</div>\n\n[r]: u\n[r] `c` \\* &amp; <http://a>"
)
PICTURE = picture(1, (9, 6))
_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\x2a\x4d\x18")
_SPACE = re.compile(r"\s+")


def _path(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _lines(data: bytes) -> int | None:
    """How many records a JSONL file has; None where it is compressed."""
    if data.startswith(_MAGIC[:3]) or data[1:4] == _MAGIC[3]:
        return None
    return sum(bool(line.removeprefix(b"\xef\xbb\xbf").strip()) for line in data.split(b"\n"))


def native(data: bytes, folder: Path) -> None:
    """Native JSON lines: each is a document or a problem, and a document comes back."""
    problems = Problems()
    documents = list(read_jsonl(_path(folder, "a.jsonl", data), problems))
    assert _lines(data) in (None, len(documents) + problems.count)
    for document in documents:
        again = document_from_record(orjson.loads(orjson.dumps(document_to_record(document))))
        assert again == document
    slow = list(read_jsonl(folder / "a.jsonl", Problems(), allow_empty=True))
    assert [d for d in slow if d in documents] == documents


def mmc4(data: bytes, folder: Path) -> None:
    """MMC4: each line is a document or a problem, and a record comes back."""
    problems = Problems()
    documents = list(read_mmc4(_path(folder, "a.jsonl", data), problems))
    assert _lines(data) in (None, len(documents) + problems.count)
    for document in documents:
        again = document_from_mmc4(mmc4_record(document, Leftovers()), 1)
        assert (again.sentences, again.images) == (document.sentences, document.images)


def obelics(data: bytes, folder: Path) -> None:
    """OBELICS: each line is a document or a problem, and a record comes back."""
    problems = Problems()
    documents = list(read_obelics(_path(folder, "a.jsonl", data), problems))
    assert _lines(data) in (None, len(documents) + problems.count)
    for document in documents:
        again = document_from_obelics(obelics_record(document, Leftovers()), 1)
        assert (again.sentences, again.images) == (document.sentences, document.images)


def release(data: bytes, folder: Path) -> None:
    """The paper's release: each document is read or a problem."""
    docs, _, paths = data.partition(b"\0paths\0")
    (folder / "image_paths.json").unlink(missing_ok=True)
    if paths:
        _path(folder, "image_paths.json", paths)
    problems = Problems()
    documents = list(read_hessel2019(_path(folder, "docs.json", docs), problems))
    splits = orjson.loads(docs)
    expected = sum(len(split) if isinstance(split, list) else 1 for split in splits.values())
    assert len(documents) + problems.count == expected


def webdataset(data: bytes, folder: Path) -> None:
    """Tar shards: no image is larger than the archive."""
    for sample in read_samples(_path(folder, "a.tar", data), Problems()):
        for index in range(len(sample.images)):
            assert len(sample.image(index) or b"") <= len(data)
        orjson.dumps(document_to_record(sample.document))


def _check_page(page) -> None:
    """Places within the page, and every sentence where it says it is."""
    assert isolation._is_sound(page)
    document = page_to_document(page, "a", unit="sentence")
    text, place = page.text, 0
    for sentence, (start, end) in zip(document.sentences, document.extra["spans"], strict=True):
        assert place <= start < end <= len(text)
        assert text[start:end] == sentence
        place = end
    orjson.dumps(document_to_record(document))


def _visible(text: str) -> str:
    return _SPACE.sub("", text)


def _check_no_word_is_lost(text: str, page) -> None:
    assert lost_letters(text, page) <= page.left_out.text.total()


def html(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """HTML; of a page without any markup all text stays, of any other all is read or counted."""
    words = page_with_words(data[:600], TAGS)
    _check_no_word_is_lost(words, read_html(words, xml=len(data) % 2 == 0))
    page = read_html(data)
    _check_page(page)
    text = data.decode("utf-8", "replace")
    if text.isprintable() and not set("<&\ufffd") & set(text) and not text.startswith("\ufeff"):
        assert _visible("".join(block.text for block in page.blocks)) == _visible(text)


def markdown(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """Markdown, by the same rules."""
    words = page_with_words(data[:600], MARKS + TAGS)
    _check_no_word_is_lost(words, read_markdown(words))
    page = read_markdown(data.decode("utf-8", "replace"))
    _check_page(page)
    text = data.decode("utf-8", "replace")
    if re.fullmatch(r"[a-z \n]*", text):
        assert _visible("".join(block.text for block in page.blocks)) == _visible(text)


def text(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """Plain text: all of it stays."""
    page = read_text(data)
    _check_page(page)
    if data.isascii() and min(data, default=9) > 8:  # by such UTF-16 is known without its mark
        assert _visible("".join(block.text for block in page.blocks)) == _visible(data.decode())


def epub_parts(data: bytes, folder: Path) -> None:
    """A book whose chapter, list of files and container are any bytes."""
    parts = data.split(b"\0part\0", 2)
    chapter, package, container = parts + [b""] * (3 - len(parts))
    others = {"OEBPS/content.opf": package} if package else {}
    others |= {"META-INF/container.xml": container} if container else {}
    chapters = {"a.xhtml": chapter.decode("utf-8", "replace")}
    path = epub(folder / "a.epub", chapters, {"OEBPS/a.png": PICTURE}, others)
    _check_page(read_epub(path).page)


def docx_parts(data: bytes, folder: Path) -> None:
    """A Word document of any bytes and relations; of any tree all is read or counted."""
    import zipfile

    tree = tree_with_words(data)
    for place in ("body", "notes"):
        path = write_document(folder / "a.docx", **{place: tree})
        assert lost_in(tree, read_docx(path).page) == (0, 0)
    document, _, relations = data.partition(b"\0part\0")
    with zipfile.ZipFile(folder / "a.docx", "w") as file:
        file.writestr("_rels/.rels", DOCX_RELATIONS)
        file.writestr("word/document.xml", document)
        file.writestr("word/_rels/document.xml.rels", relations)
        file.writestr("word/media/a.png", PICTURE)
    _check_page(read_docx(folder / "a.docx").page)


def archive(data: bytes, folder: Path) -> None:
    """ZIP files: what is unpacked keeps to the limits."""
    with Archive(_path(folder, "a.zip", data)) as opened:
        for name in opened.names():
            opened.size(name)
            opened.find(name)


def xml(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """XML without entities."""
    parse_xml(data)


def pdf(data: bytes, folder: Path) -> None:
    """PDF, in this process; `isolation` would contain what crashes here."""
    _check_page(read_pdf(_path(folder, "a.pdf", data), seconds=5).page)


def edits(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """Changing an attribute of a page's source: it is there, and no other byte is changed."""
    source = SourceText.decode(data, declared=True)
    assert source.encode(source.text) == data
    for tag in list(re.finditer(r"<img(?=[\s/>])", source.text))[:5]:
        value = one_line(source.text[:20])
        start, end, new = set_attribute(source, tag.end(), "alt", value)
        changed = splice(source.text, [(start, end, new)])
        assert changed[:start] + changed[start + len(new) :] == (
            source.text[:start] + source.text[end:]
        )
        found = find_attribute(changed, tag.end(), "alt")
        assert found is not None
        assert found[2] == value or not value.isprintable() or "\x00" in value


def wiki(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """Wikitext: paragraphs of one line; text without any sign stays."""
    wikitext = data.decode("utf-8", "replace")
    paragraphs = strip_markup(wikitext)
    assert all(paragraph.strip() and "\n" not in paragraph for paragraph in paragraphs)
    if re.fullmatch(r"[a-z0-9 \n.,]*", wikitext):
        assert _visible("".join(paragraphs)) == _visible(wikitext)


def cells(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """CSV cells: no formula, and the text comes back."""
    plain = data.decode("utf-8", "replace")
    cell = text_cell(plain)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
    assert cell == plain or cell[1:] == plain


def sentences(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """Sentences and words: in order, within the text, and no letter is lost."""
    language = LANGUAGES[data[0] % len(LANGUAGES)] if data else "en"
    words = data[1:].decode("utf-8", "replace")
    for fast in (True, False):
        spans = split_sentences(words, fast=fast, language=language)
        place = 0
        for start, end in spans:
            assert place <= start < end <= len(words)
            assert not words[place:start].strip()
            place = end
        assert not words[place:].strip()
    plain = plain_text(words)
    tokens = tokens_of(plain)
    assert all(token and not token.isspace() for token in tokens)
    letters = Counter(c for c in plain if c.isalpha())
    assert letters == Counter(c for token in tokens for c in token if c.isalpha())


def sources(data: bytes, folder: Path) -> None:
    """Sources of images: sets of them, addresses to fetch, files beside the page."""
    source = data.decode("utf-8", "replace")
    list(parse_srcset(source))
    with suppress(fetching.FetchError):
        fetching._parse(source)
    name, reason = find_image(PageImage(source, 0), folder, folder)
    if reason is None and source[:5].lower() != "data:":
        assert (folder / name).resolve().is_relative_to(folder.resolve())


DOCX_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
_DOCX = (
    b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:a="'
    b'http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.'
    b'openxmlformats.org/officeDocument/2006/relationships" xmlns:wp="http://schemas.openxmlformats'
    b'.org/drawingml/2006/wordprocessingDrawing"><w:body><w:p><w:r><w:t>Text.</w:t></w:r></w:p>'
    b'<w:tbl><w:tr><w:tc><w:p><w:r><w:drawing><wp:inline><wp:extent cx="9525" cy="9525"/><wp:docPr'
    b' id="1" descr="Alt"/><a:blip r:embed="rId9"/></wp:inline></w:drawing></w:r></w:p></w:tc>'
    b"</w:tr></w:tbl></w:body></w:document>\0part\0"
    + DOCX_RELATIONS.replace("word/document.xml", "media/a.png").replace("rId1", "rId9").encode()
)


def _tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as file:
        members = {"1.json": orjson.dumps(RECORD), "1.0.png": PICTURE, "2.txt": b"Text."}
        for name, content in (members | {f"{'x' * 120}.jpg": b"\xff\xd8\xff"}).items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def _made(make) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        make(path)
        return path.read_bytes()


def _pdf() -> bytes:
    from made_files import PdfFile

    file = PdfFile()
    form = b"/Subtype /Form /PatternType 1 /BBox [0 0 90 20] /Resources << /Font << /F0 3 0 R >> >>"
    drawing = file.stream(form, b"BT /F0 9 Tf 1 1 Td (A mark.) Tj ET")
    over = b"/Annots [<< /Subtype /Highlight /Rect [9 9 99 29] /AP << /N %d 0 R >> >>]" % drawing
    shown = [(file.image(1), 50, 300, 90, 60)]
    return _made(file.page([(50, 700, 10, "Some text.")], shown, extra=over).write)


def _jsonl(record: dict) -> list[bytes]:
    line = orjson.dumps(record)
    return [line + b"\n" + line, line]


#: Targets by name, with a function that gives their seeds.
TARGETS = {
    "native": (native, lambda: _jsonl(RECORD)),
    "mmc4": (mmc4, lambda: _jsonl(MMC4)),
    "obelics": (obelics, lambda: _jsonl(OBELICS)),
    "release": (release, lambda: [
        orjson.dumps(RELEASE), orjson.dumps(RELEASE) + b'\0paths\0{"a":"b"}']),
    "webdataset": (webdataset, lambda: [_tar()]),
    "html": (html, lambda: [PAGE.encode(), PAGE.encode("utf-16")]),
    "markdown": (markdown, lambda: [MARKDOWN.encode()]),
    "text": (text, lambda: [b"One line.\n\nAnother one."]),
    "epub": (epub_parts, lambda: [
        PAGE.encode(), b"<p>A</p>\0part\0" + _PACKAGE,
        b"<p>A</p>\0part\0" + _PACKAGE + b"\0part\0" + CONTAINER.encode()]),
    "docx": (docx_parts, lambda: [_DOCX]),
    "archive": (archive, lambda: [_made(lambda path: epub(path, {"a.xhtml": "<p>A</p>"}))]),
    "xml": (xml, lambda: [_DOCX.partition(b"\0")[0], CONTAINER.encode()]),
    "pdf": (pdf, lambda: [_pdf()]),
    "edits": (edits, lambda: [PAGE.encode(), b'<img src=a alt="b">', "<img alt='ä'/>".encode()]),
    "wiki": (wiki, lambda: [b"'''A''' [[b|c]] {{t|[[File:x]]}} <ref>y</ref>\n{|\n|z\n|}\n* i"]),
    "cells": (cells, lambda: [b"=1+1", "＝x".encode(), b"'a"]),
    "sentences": (sentences, lambda: [
        b"\x06Dr. A. Smith paid $3.50 (see Fig. 2). \"Why?\" he said... Yes! 1. One\n- Two",
        "\x16你好。他说：“好！”然后走了。".encode(), "\x0dمرحبا. كيف؟".encode()]),
    "sources": (sources, lambda: [b"a.png 1x, b.png 2x", b"http://a@[::1]:80/x?y#z", b"../../a"]),
}  # fmt: skip
_PACKAGE = (
    b'<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/'
    b'1.1/"><dc:title>T</dc:title></metadata><manifest><item id="c" href="a.xhtml" media-type='
    b'"application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
)
