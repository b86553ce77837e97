"""PDF: text that lies where PDFium does not look is read or counted."""

import base64
import hashlib
import zlib

import pytest
from made_files import PdfFile
from test_pdf import annotation, texts
from test_pdf_filters import to_lzw, to_runs

from sightline.readers import pdf_losses, pdf_objects
from sightline.readers.pdf import read_pdf

UNSEEN = "hidden annotations that draw text (number)"


def read_under(tmp_path, kind, flags, text=b"Drawn by a mark."):
    file = PdfFile()
    over = annotation(file, kind, (50, 600, 400, 620), text, b"", flags)
    file.page([(50, 700, 10, "Text on the page.")], extra=b"/Annots [%d 0 R]" % over)
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    return texts(page)[1:], page.left_out.text


@pytest.mark.parametrize(
    "kind",
    [
        *(b"Highlight", b"Link", b"Underline", b"Squiggly", b"StrikeOut", b"Text", b"Caret"),
        *(b"FileAttachment", b"Stamp", b"Square", b"Ink"),
    ],
)
def test_text_that_any_annotation_draws_is_read_and_if_hidden_counted(tmp_path, kind):
    assert read_under(tmp_path, kind, 4) == (["Drawn by a mark."], {})
    for flag in (2, 32):
        assert read_under(tmp_path, kind, flag) == ([], {UNSEEN: 1})


def test_text_in_the_window_of_a_comment_is_counted(tmp_path):
    assert read_under(tmp_path, b"Popup", 4) == ([], {UNSEEN: 1})


def test_hidden_marks_without_text_are_not_counted(tmp_path):
    file = PdfFile()
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 100 20]"
    drawn = file.stream(form, b"1 1 0 rg 0 0 100 20 re f")
    head = b"<< /Type /Annot /Subtype /Highlight /Rect [50 600 150 620] /F 2"
    over = file.add(b"%s /AP << /N %d 0 R >> >>" % (head, drawn))
    file.page([(50, 700, 10, "Text on the page.")], extra=b"/Annots [%d 0 R]" % over)
    assert read_pdf(file.write(tmp_path / "a.pdf")).page.left_out.text == {}


DAMAGED = "damaged streams (number)"
UNSEARCHED = "files not searched to the end for lost text (number)"
LINES = b"\n".join(b"BT /F0 10 Tf 50 %d Td (Line %d.) Tj ET" % (700 - 12 * i, i) for i in range(50))
PACKED = zlib.compress(LINES)


def counted_with(tmp_path, dictionary, data, change=lambda data: data):
    """Give what is counted in a file whose second page has such contents."""
    file = PdfFile().page([(50, 700, 10, "Text on the page.")]).page()
    contents = file.stream(dictionary, data)
    fonts = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
    head = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800]"
    file.objects[file.pages[1] - 1] = b"%s /Contents %d 0 R %s >>" % (head, contents, fonts)
    path = file.write(tmp_path / "a.pdf")
    path.write_bytes(change(path.read_bytes()))
    page = read_pdf(path).page
    assert "Text on the page." in page.text
    return page


def sync_flushed(data):
    packing = zlib.compressobj()
    return packing.compress(data) + packing.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    ("filters", "data"),
    [
        (b"/FlateDecode", PACKED[:-60]),
        (b"/FlateDecode", PACKED[:-80] + b"\xff" * 20 + PACKED[-60:]),
        (b"[/FlateDecode]", sync_flushed(LINES)[:-60]),
        (b"[/ASCII85Decode /FlateDecode]", base64.a85encode(PACKED[:-60]) + b"~>"),
        (b"[/ASCIIHexDecode /FlateDecode]", PACKED[:-60].hex().encode() + b">"),
        (b"[/RunLengthDecode /FlateDecode]", to_runs(PACKED[:-60])),
        (b"/RunLengthDecode", to_runs(LINES[:-60], end=False)[:-3]),
        (b"/LZWDecode", to_lzw(LINES)[:-120] + b"\xff" * 120),
    ],
)
def test_streams_that_break_off_are_counted(tmp_path, filters, data):
    page = counted_with(tmp_path, b"/Filter " + filters, data)
    assert "Line 0." in page.text and "Line 49." not in page.text
    assert page.left_out.text == {DAMAGED: 1}


@pytest.mark.parametrize(
    ("filters", "data"),
    [
        (b"/FlateDecode", PACKED + b"\r\ngarbage after it"),
        (b"/FlateDecode", PACKED[:-4]),  # no checksum
        (b"/FlateDecode", sync_flushed(LINES)),
        (b"/Fl", PACKED),
        (b"[/ASCII85Decode /FlateDecode]", base64.a85encode(PACKED) + b"~>"),
        (b"[/ASCIIHexDecode /FlateDecode]", PACKED.hex().encode() + b">"),
        (b"[/FlateDecode /ASCIIHexDecode]", zlib.compress(LINES.hex().encode() + b">")),
        (b"/RunLengthDecode", to_runs(LINES)),
        (b"/LZWDecode", to_lzw(LINES)),
        (b"/LZWDecode /DecodeParms << /EarlyChange 0 >>", to_lzw(LINES, early=0)),
    ],
)
def test_streams_that_are_read_to_their_end_are_not_counted(tmp_path, filters, data):
    page = counted_with(tmp_path, b"/Filter " + filters, data)
    assert "Line 0." in page.text and "Line 49." in page.text
    assert page.left_out.text == {}


def test_a_filter_elsewhere_is_found(tmp_path):
    file = PdfFile()
    packing = file.add(b"[/FlateDecode]")
    file.stream(b"/Filter %d 0 R" % packing, PACKED[:-60])
    file.stream(b"/Filter %d 0 R" % packing, PACKED)
    path = file.page([(50, 700, 10, "Text on the page.")]).write(tmp_path / "a.pdf")
    assert read_pdf(path).page.left_out.text == {DAMAGED: 1}


def test_a_wrong_length_is_no_damage(tmp_path):
    wrong = b"/Length %d " % len(PACKED), b"/Length 9 "
    page = counted_with(tmp_path, b"/Filter /Fl", PACKED, lambda data: data.replace(*wrong))
    assert "Line 49." in page.text
    assert page.left_out.text == {}


def test_damaged_images_and_streams_that_were_replaced_are_not_counted(tmp_path):
    file = PdfFile()
    file.stream(b"/Subtype /Image /Filter /FlateDecode", PACKED[:-60])
    broken = file.stream(b"/Filter /FlateDecode", PACKED[:-60])
    path = file.page([(50, 700, 10, "Text on the page.")]).write(tmp_path / "a.pdf")
    assert read_pdf(path).page.left_out.text == {DAMAGED: 1}
    data = path.read_bytes()
    data += b"%d 0 obj\n<< >>\nendobj\n" % broken
    update = b"xref\n%d 1\n%010d 00000 n \n" % (broken, data.rindex(b"%d 0 obj" % broken))
    trailer = b"trailer\n<< /Size 20 /Root 1 0 R /Prev %d >>\n" % path.read_bytes().rindex(
        b"xref\n0"
    )
    start = len(data)
    path.write_bytes(data + update + trailer + b"startxref\n%d\n%%%%EOF\n" % start)
    assert read_pdf(path).page.left_out.text == {}


def test_a_stream_that_nothing_ends_is_counted(tmp_path):
    file = PdfFile().page([(50, 700, 10, "Text on the page.")])
    file.stream(b"", LINES)
    path = file.write(tmp_path / "a.pdf")
    start, _, end = path.read_bytes().rpartition(b"endstream\nendobj")
    path.write_bytes(start + b" " * 16 + end)
    page = read_pdf(path).page
    assert (texts(page), page.left_out.text) == (["Text on the page."], {DAMAGED: 1})


def rc4(key, data):
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    out = bytearray()
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


@pytest.mark.parametrize(("data", "counted"), [(PACKED, {}), (PACKED[:-60], {DAMAGED: 1})])
def test_an_encrypted_file_is_searched_too(tmp_path, data, counted):
    """The standard handler (version 1) with no password, which every program opens."""
    padding = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
    key = hashlib.md5(padding + b"1" * 32 + (2**32 - 4).to_bytes(4, "little") + b"\0").digest()[:5]
    file = PdfFile()

    def encrypted(number, content):
        return rc4(hashlib.md5(key + number.to_bytes(5, "little")).digest()[:10], content)

    own = len(file.objects) + 1
    head = b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream"
    file.add(head % (len(data), encrypted(own, data)))
    fonts = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
    start = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents"
    file.pages.append(file.add(b"%s %d 0 R %s >>" % (start, own, fonts)))
    path = file.write(tmp_path / "a.pdf")
    handler = (
        b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>] /Root"
    )
    known = b"31" * 32, rc4(key, padding).hex().encode()
    path.write_bytes(path.read_bytes().replace(b"/Root", handler % known))
    page = read_pdf(path).page
    assert "Line 0." in page.text
    assert page.left_out.text == counted


@pytest.mark.parametrize("limit", ["_LARGEST_FILE", "_MOST_OBJECTS", "_MOST_UNPACKED"])
def test_files_beyond_the_limits_are_counted(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(pdf_objects, limit, 2)
    assert counted_with(tmp_path, b"/Filter /Fl", PACKED).left_out.text == {UNSEARCHED: 1}


PATTERNS = "patterns with text (number)"
SIGNS = "signs drawn with other fonts (number)"
SHOWS = b"BT /F0 9 Tf 1 1 Td %s ET"


@pytest.mark.parametrize(
    ("drawn", "count"),
    [
        *((SHOWS % b"(Lost.) Tj", 1), (SHOWS % b"[(Lo) 3 (st.)]TJ", 1), (SHOWS % b"<41> '", 1)),
        *((SHOWS % b'1 1 (Lost.) "', 1), (b"0 0 5 5 re f", 0), (b"/Form Do", 1)),
    ],
)
@pytest.mark.parametrize("packing", [b"", b"/Filter /FlateDecode"])
def test_text_in_patterns_and_in_signs_is_counted(tmp_path, drawn, count, packing):
    file = PdfFile()
    fonts = b"/Font << /F0 %d 0 R >>" % file.fonts[0]
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << %s >>" % fonts
    inner = file.stream(form, SHOWS % b"(Lost.) Tj")
    data = zlib.compress(drawn) if packing else drawn
    resources = b"/Resources << %s /XObject << /Form %d 0 R >> >>" % (fonts, inner)
    tiles = b"/PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 9 9] /XStep 9 /YStep 9"
    pattern = file.stream(b"%s %s %s" % (tiles, resources, packing), data)
    sign = file.stream(
        packing, zlib.compress(b"9 0 d0 " + drawn) if packing else b"9 0 d0 " + drawn
    )
    listed = file.add(b"<< /a %d 0 R >>" % sign)
    for signs in (b"<< /a %d 0 R >>" % sign, b"%d 0 R" % listed):
        head = b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 9 9] /FontMatrix [.1 0 0 .1 0 0]"
        encoding = b"/Encoding << /Differences [97 /a] >> /FirstChar 97 /LastChar 97 /Widths [9]"
        file.fonts.append(
            file.add(b"%s %s /CharProcs %s %s >>" % (head, encoding, signs, resources))
        )
    extra = b"/Pattern << /P %d 0 R >>" % pattern
    file.page([(50, 700, 10, "Text on the page.")], extra=extra)
    expected = {PATTERNS: count, SIGNS: count} if count else {}
    assert read_pdf(file.write(tmp_path / "a.pdf")).page.left_out.text == expected


def test_a_pattern_too_long_or_too_deep_to_be_searched_is_counted(tmp_path, monkeypatch):
    def counted(*drawings):
        file = PdfFile()
        head, inner = b"/Subtype /Form /PatternType 1 /BBox [0 0 9 9]", b""
        for drawing in drawings:
            named = b"/Resources << /XObject << /Form %s >> >>" % inner if inner else b""
            inner = b"%d 0 R" % file.stream(head + named, drawing)
        path = file.page([(50, 700, 10, "Text on the page.")]).write(tmp_path / "a.pdf")
        return read_pdf(path).page.left_out.text.get(PATTERNS, 0)

    frame, inner = b"0 0 5 5 re f", b"/Form Do"
    assert counted(frame, *[inner] * 3) == 0
    monkeypatch.setattr(pdf_losses, "_DEEPEST_DRAWING", 1)
    assert counted(frame, *[inner] * 3) == 2  # of which one draws the other
    monkeypatch.setattr(pdf_losses, "_LONGEST_DRAWING", len(frame))
    assert counted(frame) == 1


UNLISTED = "pages that its list does not hold (number)"


def test_pages_that_no_list_holds_are_counted(tmp_path):
    file = PdfFile()
    for number in range(4):
        file.page([(50, 700, 10, f"Text of page {number}.")])
    del file.pages[2]
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert "page 3." in page.text and "page 2." not in page.text
    assert page.left_out.text == {UNLISTED: 1}


def test_pages_beyond_the_count_of_their_list_are_counted(tmp_path):
    file = PdfFile()
    for number in range(4):
        file.page([(50, 700, 10, f"Text of page {number}.")])
    path = file.write(tmp_path / "a.pdf")
    path.write_bytes(path.read_bytes().replace(b"/Count 4", b"/Count 2"))
    page = read_pdf(path).page
    assert "page 1." in page.text and "page 2." not in page.text
    assert page.left_out.text == {UNLISTED: 2}


def test_pages_in_packed_objects_and_in_lists_of_lists_are_found(tmp_path):
    """PDFium reads the pages by a table in a stream; the object that packs them follows it."""
    file = PdfFile()
    contents = [file.stream(b"", SHOWS % b"(Page %d.) Tj" % number) for number in range(3)]
    head = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R %s >>"
    fonts = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
    first = len(file.objects) + 2
    members = [
        *(head % (number, fonts) for number in contents),
        b"<< /Type /Pages /Parent 2 0 R /Kids %d 0 R /Count 2 >>" % (first + 4),
        b"[%d 0 R %d 0 R]" % (first, first + 1),
    ]
    starts = [sum(len(member) + 1 for member in members[:i]) for i in range(len(members))]
    table = b" ".join(b"%d %d" % (first + i, start) for i, start in enumerate(starts)) + b" "
    kind = b"/Type /ObjStm /N %d /First %d /Filter /FlateDecode" % (len(members), len(table))
    packed = file.stream(kind, zlib.compress(table + b"\n".join(members)))
    file.pages = [first + 3]
    path = file.write(tmp_path / "a.pdf")
    data = path.read_bytes().replace(b"/Count 1", b"/Count 2")
    data = data[: data.rindex(b"xref\n0")]
    rows = [b"\0\0\0\0\xff"]
    for number in range(1, packed + 1):
        place = data.index(b"\n%d 0 obj" % number) + 1
        rows.append(b"\1" + place.to_bytes(3, "big") + b"\0")
    rows += [b"\2" + packed.to_bytes(3, "big") + bytes([i]) for i in range(len(members))]
    rows.append(b"\1" + len(data).to_bytes(3, "big") + b"\0")
    table = b"".join(rows)
    dictionary = b"/Type /XRef /Size %d /W [1 3 1] /Root 1 0 R" % len(rows)
    stream = b"<< %s /Length %d >>\nstream\n%s\nendstream" % (dictionary, len(table), table)
    update = b"%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n"
    path.write_bytes(data + update % (len(rows) - 1, stream, len(data)))
    page = read_pdf(path).page
    assert "Page 0." in page.text and "Page 1." in page.text
    assert page.left_out.text == {UNLISTED: 1}


NO_SIZE = "text without a size (pieces)"


@pytest.mark.parametrize(
    "drawn",
    [
        b"BT /F0 0 Tf 50 600 Td (Lost.) Tj ET",
        b"BT /F0 0.001 Tf 50 600 Td (Lost.) Tj ET",
        b"BT /F0 10 Tf 0 0 0 0 50 600 Tm (Lost.) Tj ET",
        b"BT /F0 1 Tf 0 0 0 10 50 600 Tm (Lost.) Tj ET",
        b"q 0 0 0 0 50 600 cm BT /F0 10 Tf (Lost.) Tj ET Q",
        b"BT /F0 10 Tf 0 Tz 50 600 Td (Lost.) Tj 100 Tz ET",
    ],
)
def test_text_without_a_size_is_counted_also_in_groups(tmp_path, drawn):
    file = PdfFile()
    fonts = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
    head = b"/Type /XObject /Subtype /Form /BBox [0 0 600 800] %s" % fonts
    group = file.stream(head, drawn)
    file.page([(50, 700, 10, "Text on the page.")], drawn=drawn)
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert (texts(page), page.left_out.text) == (["Text on the page."], {NO_SIZE: 1})
    file.page(images=[(group, 0, 0, 1, 1)])
    assert read_pdf(file.write(tmp_path / "b.pdf")).page.left_out.text[NO_SIZE] == 2


def test_spaces_and_small_text_are_not_counted_as_text_without_a_size(tmp_path):
    drawn = b"BT /F0 10 Tf 50 600 Td ( ) Tj ET BT /F0 1 Tf 50 500 Td (Small.) Tj ET"
    page = read_pdf(
        PdfFile().page([(50, 700, 10, "Large.")], drawn=drawn).write(tmp_path / "a.pdf")
    ).page
    assert "Small." in page.text
    assert page.left_out.text == {}


STAND = "texts that stand for pictures"


def tagged(tmp_path, elements, drawn, images=(), pages=1, groups=(), is_tagged=True, over=b""):
    """Read a file whose elements (bytes of a dictionary, with marks from 0) stand on each page."""
    file = PdfFile()
    fonts = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
    head = b"/Type /XObject /Subtype /Form /BBox [0 0 600 800] %s" % fonts
    forms = [(file.stream(head, content), 0, 0, 1, 1) for content in groups]
    shown = [(file.image(number), *place) for number, *place in images]
    root = file.add(b"")
    parent = file.add(b"") if over else root
    numbers, rows = [], []
    for number in range(pages):
        own = []
        page = len(file.objects) + len(elements) + 2  # after its contents
        for mark, element in enumerate(elements):
            start = b"<< /Type /StructElem /P %d 0 R /Pg %d 0 R /K %d" % (parent, page, mark)
            own.append(file.add(b"%s %s >>" % (start, element)))
        content = drawn + b"".join(
            b"/Figure << /MCID %d >> BDC q %g 0 0 %g %g %g cm /I%d Do Q EMC\n"
            % (mark, *(value for value in (w, h, x, y)), image)
            for mark, (image, x, y, w, h) in enumerate(shown + forms, 1 if drawn else 0)
        )
        text = [(50, 700, 10, "Text on the page.")]
        file.page(text, extra=b"/StructParents %d" % number, drawn=content)
        names = b" ".join(b"/I%d %d 0 R" % (image, image) for image, *_ in shown + forms)
        file.objects[-1] = file.objects[-1].replace(b"/XObject <<", b"/XObject << " + names)
        assert file.pages[-1] == page
        numbers += own
        rows.append(b"%d [%s]" % (number, b" ".join(b"%d 0 R" % one for one in own)))
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    if over:
        outer = b"<< /Type /StructElem /S /Sect /P %d 0 R %s /K [%s] >>" % (root, over, kids)
        file.objects[parent - 1] = outer
        kids = b"%d 0 R" % parent
    tree = b"/K [%s] /ParentTree << /Nums [%s] >>" % (kids, b" ".join(rows))
    file.objects[root - 1] = b"<< /Type /StructTreeRoot %s >>" % tree
    path = file.write(tmp_path / "a.pdf")
    told = b"/MarkInfo << /Marked true >>" if is_tagged else b""
    catalog = b"%s /StructTreeRoot %d 0 R /Lang" % (told, root)
    path.write_bytes(path.read_bytes().replace(b"/Lang", catalog))
    page = read_pdf(path).page
    assert "Text on the page." in page.text
    return page


PICTURE = (1, 50, 300, 300, 200)


@pytest.mark.parametrize("key", [b"Alt", b"ActualText"])
def test_the_text_of_a_picture_is_its_alt(tmp_path, key):
    page = tagged(tmp_path, [b"/S /Figure /%s (A fox.)" % key], b"", [PICTURE])
    assert [image.alt for image in page.images] == ["A fox."]
    assert page.left_out.text == {}


def test_texts_of_pictures_that_are_left_out_are_counted(tmp_path):
    figure = [b"/S /Figure /Alt (A fox.)"]
    assert tagged(tmp_path, figure, b"", [(1, 0, 0, 600, 800)]).left_out.text == {STAND: 6}
    repeated = tagged(tmp_path, figure, b"", [PICTURE], pages=3)
    assert (repeated.images, repeated.left_out.text[STAND]) == ((), 18)
    drawn = b"/Figure << /MCID 0 >> BDC 50 50 100 100 re f EMC "
    assert tagged(tmp_path, figure, drawn).left_out.text == {STAND: 6}
    assert tagged(tmp_path, figure, b"").left_out.text == {STAND: 6}  # it has no mark


def test_texts_within_elements_that_have_one_too_are_found(tmp_path):
    figure, words = [b"/S /Figure /Alt (A fox.)"], [b"/S /P"]
    page = tagged(tmp_path, figure, b"", [PICTURE], over=b"/Alt (A part.)")
    assert [image.alt for image in page.images] == ["A fox."]
    assert page.left_out.text == {STAND: 7}
    drawn = b"/P << /MCID 0 >> BDC BT /F0 10 Tf 50 500 Td (A fax.) Tj ET EMC "
    page = tagged(tmp_path, words + figure, drawn, [PICTURE], over=b"/Alt (A part.)")
    assert [image.alt for image in page.images] == ["A fox."]
    assert page.left_out.text == {}


def test_spaces_beside_a_drawing_are_no_text(tmp_path):
    drawn = b"/P << /MCID 0 >> BDC BT /F0 10 Tf 9 9 Td ( ) Tj ET 50 50 9 9 re f EMC "
    page = tagged(tmp_path, [b"/S /Figure /Alt (A fox.)"], drawn)
    assert page.left_out.text == {STAND: 6}


def test_texts_of_pictures_in_a_file_without_tags_are_counted(tmp_path):
    figure = [b"/S /Figure /Alt (A fox.)"]
    page = tagged(tmp_path, figure, b"", [PICTURE], is_tagged=False)
    assert page.left_out.text == {"figures with texts, of a file without tags (number)": 1}


def test_texts_that_stand_for_text_are_not_counted(tmp_path):
    drawn = b"/Span << /MCID 0 >> BDC BT /F0 10 Tf 50 500 Td (A fax.) Tj ET EMC "
    page = tagged(tmp_path, [b"/S /Span /ActualText (A fox.)"], drawn)
    assert "A fax." in page.text
    assert page.left_out.text == {}
    page = tagged(tmp_path, [b"/S /Figure /Alt (A fox.)"], b"", groups=[drawn[27:-5]])
    assert "A fax." in page.text
    assert page.left_out.text == {}


@pytest.mark.parametrize("key", [b"Alt", b"ActualText"])
def test_texts_that_marks_give_for_drawings_are_counted(tmp_path, key):
    shape, words = b"5 5 9 9 re f 50 50 9 9 re f", b"BT /F0 10 Tf 50 500 Td (A fax.) Tj ET"
    start = b"/Span << /%s (A fox.) >> BDC %s EMC"
    for drawn, counted in ((shape, {STAND: 6}), (words, {}), (shape + b" " + words, {})):
        file = PdfFile().page([(50, 700, 10, "Text on the page.")], drawn=start % (key, drawn))
        page = read_pdf(file.write(tmp_path / "a.pdf")).page
        assert page.left_out.text == counted
        assert ("A f" in page.text) == (not counted)
