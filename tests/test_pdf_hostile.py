"""PDF: a file cannot switch off what is counted, nor use up the time in which it is read."""

import time
import zlib

import pytest
from made_files import PdfFile
from test_pdf import texts
from test_pdf_losses import DAMAGED, LINES, PACKED, PATTERNS, SHOWS, UNSEARCHED, counted_with

from sightline.readers import pdf_annotations, pdf_bookmarks, pdf_losses, pdf_structure
from sightline.readers.pdf import read_pdf
from sightline.readers.pdf_filters import from_lzw
from sightline.readers.pdf_objects import _is_sound_prediction
from sightline.readers.pdf_words import packing_of, plain

TEXT = [(50, 700, 10, "Text on the page.")]
FORM = b"/Type /XObject /Subtype /Form /BBox [0 0 600 800]"
TILES = b"/PaintType 1 /TilingType 1 /BBox [0 0 9 9] /XStep 9 /YStep 9"


def left_out(file, tmp_path, words=("Text on the page.",)):
    """Give what is counted, and that the text is read all the same, long before the time is up."""
    path = file.write(tmp_path / "a.pdf")
    start = time.process_time()
    page = read_pdf(path).page
    assert time.process_time() - start < 4
    assert texts(page) == list(words)
    return page.left_out.text


def test_codes_that_clear_the_table_take_no_time(tmp_path):
    cleared = int("100000000" * 8, 2).to_bytes(9, "big") * (15 * 2**20 // 9)
    file = PdfFile().page(TEXT)
    file.stream(b"/Filter [/FlateDecode /LZWDecode]", zlib.compress(cleared))
    assert left_out(file, tmp_path) == {UNSEARCHED: 1}
    start = time.process_time()
    assert from_lzw(cleared[: 2**20]) == (b"", True)
    assert time.process_time() - start < 2


def test_packed_objects_that_lie_upon_each_other_are_not_searched_again_and_again(tmp_path):
    count, size = 100_000, 2_000_000
    table = b" ".join(b"%d %d" % (1000 + i, i % 2 * size) for i in range(count)) + b"\n"
    packed = zlib.compress(table + b" " * size)
    head = b"/Type /ObjStm /N %d /First %d /Filter /FlateDecode"
    file = PdfFile().page(TEXT)
    file.stream(head % (count, len(table)), packed)
    assert left_out(file, tmp_path) == {UNSEARCHED: 1}


def test_packed_objects_may_stand_in_any_order(tmp_path):
    members = b"<< /Type /Page >>", b"<< /Type /Other >>"
    table = b"91 %d 90 0 " % len(members[0])
    file = PdfFile().page(TEXT)
    file.stream(b"/Type /ObjStm /N 2 /First %d" % len(table), table + b"".join(members))
    unlisted = "pages that its list does not hold (number)"
    assert left_out(file, tmp_path) == {unlisted: 1}


def test_a_long_object_that_many_streams_are_packed_by_is_not_read_each_time(tmp_path):
    file = PdfFile().page(TEXT)
    packing = file.add(b"[/AHx]" + b" " * 10**6)
    for _ in range(3_000):
        file.stream(b"/PatternType 1 /Filter %d 0 R" % packing, b"/X Do")
    assert left_out(file, tmp_path) == {DAMAGED: 3_000}


def test_the_search_has_a_share_of_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf_losses, "_SECONDS", 0.0)
    assert left_out(PdfFile().page(TEXT), tmp_path) == {UNSEARCHED: 1}


def test_elements_that_share_their_marks_are_looked_at_within_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf_structure, "_MOST_STEPS", 20_000)
    file = PdfFile()
    marks = file.add(b"[%s]" % b" ".join(b"%d" % mark for mark in range(1_000)))
    root = len(file.objects) + 1_001
    head = b"<< /Type /StructElem /S /Figure /Alt (Alt) /P %d 0 R /Pg %d 0 R /K %d 0 R >>"
    page = root + 2
    elements = [file.add(head % (root, page, marks)) for _ in range(1_000)]
    kids = b" ".join(b"%d 0 R" % element for element in elements)
    file.add(b"<< /Type /StructTreeRoot /K [%s] /ParentTree << /Nums [0 [%s]] >> >>" % (kids, kids))
    file.page(TEXT, extra=b"/StructParents 0")
    assert file.pages == [page]
    path = file.write(tmp_path / "a.pdf")
    tagged = b"/Lang (en-GB) /MarkInfo << /Marked true >> /StructTreeRoot %d 0 R" % root
    path.write_bytes(path.read_bytes().replace(b"/Lang (en-GB)", tagged))
    counted = read_pdf(path).page.left_out.text
    assert counted["behind too many marks of a page (pages)"] == 1


def test_what_annotations_draw_has_a_limit(tmp_path, monkeypatch):
    file = PdfFile()
    drawn = file.stream(FORM, b"BT /F0 9 Tf (Stamp.) Tj ET" + b" " * 10_000)
    head = b"<< /Type /Annot /Subtype /Stamp /Rect [50 600 150 620] /AP << /N %d 0 R >> >>"
    stamps = b" ".join(b"%d 0 R" % file.add(head % drawn) for _ in range(20))
    file.page(TEXT, extra=b"/Annots [%s]" % stamps)
    monkeypatch.setattr(pdf_annotations, "_MOST_DRAWN", 100_000)
    assert left_out(file, tmp_path) == {"annotations beyond the limits (number)": 20}


@pytest.mark.parametrize(
    "says",
    [
        *(b"/N 3", b"/Length1 5", b"/FunctionType 4", b"/ShadingType 1", b"/Foo << /N 1 >>"),
        *(b"/Subtype /XML", b"/Subtype /Image", b"/Type /Metadata", b"/Type /XRef"),
    ],
)
def test_contents_of_pages_count_as_damaged_whatever_they_say_of_themselves(tmp_path, says):
    page = counted_with(tmp_path, says + b" /Filter /FlateDecode", PACKED[:-60])
    assert "Line 0." in page.text
    assert page.left_out.text == {DAMAGED: 1}


@pytest.mark.parametrize(
    "packing",
    [
        *(b"/Filter /#46late#44ecode", b"/#46ilter /FlateDecode", b"/Filter%c\n/FlateDecode"),
        *(b"/X (/Filter /DCTDecode) /Filter /Fl", b"/X (\\)((/Filter /DCTDecode))) /Filter /Fl"),
        *(b"/Filter /Fl /X (/Filter /DCTDecode)", b"/Filter /Fl /X << /Filter /DCTDecode >>"),
        *(b"/Filter [%s/FlateDecode]" % (b" " * 300), b"/Filter /DCTDecode /Filter /FlateDecode"),
        b"/Filter [%c\n/FlateDecode]",
    ],
)
def test_damage_is_told_however_the_packing_is_written(tmp_path, packing):
    page = counted_with(tmp_path, packing, PACKED[:-60])
    assert page.left_out.text == {DAMAGED: 1}
    page = counted_with(tmp_path, packing, PACKED)
    assert "Line 49." in page.text
    assert page.left_out.text == {}


def test_contents_packed_in_a_way_that_is_not_understood_count(tmp_path):
    for packing in (b"/Filter 7", b"/Filter [/Fl", b"/Filter 99 0 R"):
        file = PdfFile().page(TEXT)
        file.stream(packing, PACKED)
        assert left_out(file, tmp_path) == {DAMAGED: 1}


def test_words_of_dictionaries():
    assert packing_of(b"<< /Filters /A >>") is packing_of(b"<< /Filter null >>") is None
    assert packing_of(b"<< /Filter [/A 7 0 R] >>") == [(b"A", b""), (b"", b"7")]
    assert plain(b"/A(((((/B)))))/#43 %(\n/D") == b"/A()/C  \n/D"
    assert plain(b"/A#2fB") == b"/A#2fB"  # one name, not two
    start = time.process_time()
    assert plain(b"/A" + b"(\\" * 2**19) == b"/A()"
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("kind", "drawn"),
    [
        *((b"/Pattern#54ype 1", b"(Lost.) Tj"), (b"/PatternType%x\n1", b"(Lost.) Tj")),
        *((b"/PatternType 1", b"(100%)%x\nTj"), (b"/PatternType 1", b"(Lost.)\0Tj")),
        (b"/PatternType 1 /X << /Filter /DCTDecode >>", b"(Lost.) Tj"),
    ],
)
def test_patterns_with_text_count_however_they_are_written(tmp_path, kind, drawn):
    file = PdfFile().page(TEXT)
    file.stream(kind + TILES, SHOWS % drawn)
    assert left_out(file, tmp_path) == {PATTERNS: 1}


def test_a_pattern_may_say_elsewhere_that_it_is_one(tmp_path):
    file = PdfFile().page(TEXT)
    file.stream(b"/PatternType %d 0 R" % file.add(b"1") + TILES, SHOWS % b"(Lost.) Tj")
    assert left_out(file, tmp_path) == {PATTERNS: 1}


@pytest.mark.parametrize(("drawn", "count"), [(b"(Mask.) Tj", 1), (b"0 0 5 5 re f", 0)])
def test_text_in_masks_is_counted(tmp_path, drawn, count):
    file = PdfFile()
    group = file.stream(FORM + b"/Group << /S /Transparency >>", SHOWS % drawn)
    mask = file.add(b"<< /Type /ExtGState /SMask << /S /Luminosity /G %d 0 R >> >>" % group)
    file.page(TEXT, extra=b"/ExtGState << /GS %d 0 R >>" % mask)
    expected = {"masks with text (number)": 1} if count else {}
    assert left_out(file, tmp_path) == expected


def test_strings_that_pdfium_cuts_are_counted(tmp_path):
    counts = []
    for length in (32_767, 32_768):
        for word in (b"(%s(b(c)))" % (b"a" * (length - 6)), b"<%s>" % (b"61" * length)):
            drawn = b"BT /F0 0.001 Tf 50 600 Td [%s] TJ ET" % word
            page = counted_with(tmp_path, b"", LINES + drawn)
            counts.append(dict(page.left_out.text))
    cut = {"drawings with strings that are too long (number)": 1}
    assert counts == [{}, {}, cut, cut]


def test_groups_that_are_too_deep_are_counted(tmp_path):
    found = []
    for depth in (40, 41):
        file = PdfFile()
        fonts = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
        inner = file.stream(FORM + fonts, b"BT /F0 9 Tf 50 600 Td (Deep.) Tj ET")
        for _ in range(depth - 1):
            named = b"/Resources << /XObject << /I0 %d 0 R >> >>" % inner
            inner = file.stream(FORM + named, b"/I0 Do")
        file.page(TEXT, images=[(inner, 0, 0, 1, 1)])
        page = read_pdf(file.write(tmp_path / "a.pdf")).page
        found.append(("Deep." in page.text, dict(page.left_out.text)))
    assert found == [(True, {}), (False, {"groups within too many others (number)": 1})]


def test_parts_that_are_missing_are_counted(tmp_path):
    missing = "parts that are missing (number)"
    for extra in (b"/Annots [97 0 R 98 0 R]", b"/Contents [97 0 R 98 0 R]"):
        file = PdfFile().page(TEXT).page(extra=extra)
        assert left_out(file, tmp_path)[missing] == 2
    file = PdfFile().page(TEXT)
    file.stream(FORM + b"/Resources << /XObject << /I0 97 0 R /I1 98 0 R >> >>", b"")
    assert left_out(file, tmp_path) == {missing: 2}


def test_files_that_pages_and_annotations_hold_are_counted(tmp_path):
    file = PdfFile()
    held = file.stream(b"/Type /EmbeddedFile", b"Words.")
    names = file.add(b"<< /Type /Filespec /F (a) /EF << /F %d 0 R /UF %d 0 R >> >>" % (held, held))
    pinned = b"<< /Type /Annot /Subtype /FileAttachment /Rect [9 9 20 20] /FS %d 0 R >>" % names
    file.page(TEXT, extra=b"/AF [%d 0 R] /Annots [%d 0 R]" % (names, file.add(pinned)))
    assert left_out(file, tmp_path) == {"attached files (number)": 1}


@pytest.mark.parametrize(
    ("kind", "words"), [(b"Link", b"/Contents (Words.)"), (b"Redact", b"/OverlayText (Words.)")]
)
def test_what_links_and_redactions_say_is_counted(tmp_path, kind, words):
    file = PdfFile()
    over = b"<< /Type /Annot /Subtype /%s /Rect [9 9 20 20] %s >>" % (kind, words)
    file.page(TEXT, extra=b"/Annots [%d 0 R]" % file.add(over))
    assert left_out(file, tmp_path) == {"comments": 6}


def test_bookmarks_that_no_page_shows_are_counted(tmp_path, monkeypatch):
    file = PdfFile().page(TEXT)
    first = len(file.objects) + 1
    outline = file.add(b"<< /First %d 0 R /Last %d 0 R >>" % (first + 1, first + 2))
    file.add(b"<< /Title (TEXT on the  page) /Parent %d 0 R /Next %d 0 R >>" % (first, first + 2))
    loop = b"/Next %d 0 R /First %d 0 R" % (first + 1, first + 2)
    file.add(b"<< /Title (Beside) /Parent %d 0 R %s >>" % (first, loop))
    path = file.write(tmp_path / "a.pdf")
    named = b"/Lang (en-GB) /Outlines %d 0 R" % outline
    path.write_bytes(path.read_bytes().replace(b"/Lang (en-GB)", named))
    assert read_pdf(path).page.left_out.text == {"bookmarks": 6}
    monkeypatch.setattr(pdf_bookmarks, "_MOST_BOOKMARKS", 1)
    assert read_pdf(path).page.left_out.text == {"bookmarks beyond the limits (files)": 1}


@pytest.mark.parametrize(
    ("stands", "counted"),
    [(b" ", 1), (b"\x01\x02", 1), (b"b", 1), (b"", 0), (b"A long line of plain words.", 0)],
)
def test_text_that_fewer_words_stand_for_is_counted(tmp_path, stands, counted):
    words = b"BT /F0 10 Tf 50 500 Td (A long line of visible words.) Tj ET"
    drawn = b"/Span << /ActualText (%s) >> BDC %s EMC" % (stands, words)
    file = PdfFile().page([(50, 700, 10, "Text on the page.")], drawn=drawn)
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.left_out.text["text that fewer words stand for (pieces)"] == counted


def test_a_sign_that_stands_for_a_ligature_is_no_loss(tmp_path):
    drawn = b"/Span << /ActualText (ffi) >> BDC BT /F0 10 Tf 50 500 Td (X) Tj ET EMC"
    file = PdfFile().page([(50, 700, 10, "Text on the page.")], drawn=drawn)
    assert read_pdf(file.write(tmp_path / "a.pdf")).page.left_out.text == {}


@pytest.mark.parametrize("mode", [b"R", b"D"])
def test_what_annotations_show_under_a_mouse_is_counted(tmp_path, mode):
    file = PdfFile()
    form = (
        b"/Type /XObject /Subtype /Form /BBox [0 0 100 20] /Resources << /Font << /F0 %d 0 R >> >>"
    )
    shapes = file.stream(form % file.fonts[0], b"0 0 9 9 re f")
    words = file.stream(form % file.fonts[0], b"BT /F0 10 Tf 2 5 Td (Pressed.) Tj ET")
    looks = b"/AP << /N %d 0 R /%s %d 0 R >>" % (shapes, mode, words)
    stamp = b"<< /Type /Annot /Subtype /Stamp /Rect [50 600 150 620] /F 4 %s >>" % looks
    file.page([(50, 700, 10, "Text.")], extra=b"/Annots [%d 0 R]" % file.add(stamp))
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.left_out.text == {"hidden annotations that draw text (number)": 1}


@pytest.mark.parametrize("sizes", [b"/Columns 2000000000", b"/Columns -5", b"/Columns 0"])
def test_rows_that_cannot_be_are_damage(tmp_path, sizes):
    assert not _is_sound_prediction(b"<< /DecodeParms << /Predictor 15 %s >> >>" % sizes)
    assert _is_sound_prediction(b"<< /DecodeParms << /Predictor 15 /Columns 5 /Colors 3 >> >>")


@pytest.mark.parametrize(
    ("state", "drawn", "counted"),
    [(b"", b"(Words.)", 1), (b"/AS /Off", b"(Words.)", 1), (b"/AS /On", b"(Words.)", 0),
     (b"/AS /Off", b"(4)", 0)],
)  # fmt: skip
def test_what_annotations_show_in_another_state_is_counted(tmp_path, state, drawn, counted):
    file = PdfFile()
    fonts = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 100 20] " + fonts
    words = file.stream(form, b"BT /F0 10 Tf 2 5 Td %s Tj ET" % drawn)
    shapes = file.stream(form, b"0 0 9 9 re f")
    looks = b"/AP << /N << /On %d 0 R /Off %d 0 R >> >> %s" % (words, shapes, state)
    stamp = b"<< /Type /Annot /Subtype /Stamp /Rect [50 600 150 620] /F 4 %s >>" % looks
    file.page([(50, 700, 10, "Text.")], extra=b"/Annots [%d 0 R]" % file.add(stamp))
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.left_out.text["hidden annotations that draw text (number)"] == counted
