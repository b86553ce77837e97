"""PDF: reading order, paragraphs, headings, images by their boxes, captions; hostile files."""

import textwrap
import zlib
from collections import Counter

import pytest
from made_files import PdfFile

from sightline.images import decode
from sightline.pages import BlockKind
from sightline.problems import SightlineError
from sightline.readers import pdf_blank
from sightline.readers.pdf import read_pdf
from sightline.readers.pdf_layout import Box, Line, Picture, reading_order

WORDS = "A fox ran over the hill while small birds sang in all the trees that stood there. "


def column(x, y, words, width=46, size=10, pitch=12):
    lines = textwrap.wrap(words, width)
    return [(x, y - number * pitch, size, line) for number, line in enumerate(lines)]


def texts(page):
    return [block.text for block in page.blocks]


def kinds(page):
    return [(block.kind, block.level) for block in page.blocks]


def test_columns_are_read_one_after_the_other(tmp_path):
    file = PdfFile()
    left = column(50, 700, "Left begins. " + WORDS * 6)
    right = column(320, 700, "Right begins. " + WORDS * 6)
    mixed = [line for pair in zip(left, right, strict=False) for line in pair]
    file.page([(50, 740, 20, "A wide title over both columns"), *mixed])
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert [text.partition(".")[0] for text in texts(page)] == [
        "A wide title over both columns", "Left begins", "Right begins",
    ]  # fmt: skip
    assert kinds(page)[0] == (BlockKind.HEADING, 1)
    assert page.title == "A wide title over both columns"
    assert page.language == "en-GB"
    assert texts(page)[1] == ("Left begins. " + WORDS * 6).strip()


def test_a_paragraph_goes_on_in_the_next_column_and_on_the_next_page(tmp_path):
    file = PdfFile()
    file.page(column(50, 700, WORDS * 3 + "and it goes"))
    file.page(column(50, 700, "on to the end of the story. " + WORDS))
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert len(page.blocks) == 1
    assert "and it goes on to the end" in page.text


def test_hyphens_at_the_end_of_lines(tmp_path):
    lines = ["The gar-", "den and the well-", "known gardens. A well-known garden", "is here."]
    file = PdfFile().page([(50, 700 - 12 * i, 10, line) for i, line in enumerate(lines)])
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    joined = "The garden and the well-known gardens. A well-known garden is here."
    assert texts(page) == [joined]


def test_gaps_and_indents_part_paragraphs_and_bullets_make_items(tmp_path):
    file = PdfFile()
    first = column(50, 700, WORDS * 3)
    second = column(50, first[-1][1] - 30, WORDS * 2)
    y = second[-1][1] - 12
    third = [
        (65, y, 10, "Indented, this begins anew and goes on for a"),
        (50, y - 12, 10, "while."),
    ]
    items = [(50, y - 40, 10, "- One thing"), (50, y - 52, 10, "- Another thing")]
    file.page([*first, *second, *third, *items])
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert kinds(page) == [(BlockKind.PARAGRAPH, 0)] * 3 + [(BlockKind.LIST_ITEM, 1)] * 2
    assert texts(page)[2:] == [
        "Indented, this begins anew and goes on for a while.", "One thing", "Another thing",
    ]  # fmt: skip


def test_headings_by_size_and_weight(tmp_path):
    file = PdfFile()
    file.page(
        [
            (50, 700, 20, "Chapter One"),
            *column(50, 660, WORDS * 3),
            (50, 560, 14, "A section"),
            *column(50, 540, WORDS * 3),
            (50, 440, 10, "1.1 A bold one", True),
            *column(50, 420, WORDS * 3),
        ]
    )
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    headings = [(b.level, b.text) for b in page.blocks if b.kind is BlockKind.HEADING]
    assert headings == [(1, "Chapter One"), (2, "A section"), (3, "1.1 A bold one")]


def test_an_image_stands_where_it_is_drawn_with_its_caption(tmp_path):
    file = PdfFile()
    image, other = file.image(1), file.image(2)
    above = column(50, 700, WORDS * 3)
    below = column(50, 300, "Below. " + WORDS * 3)
    caption = (50, 425, 9, "Figure 1: A fox on a hill.")
    file.page([*below, caption, *above], [(image, 50, 450, 200, 130)])
    file.page(column(50, 700, "See it. " + WORDS), [(other, 50, 400, 300, 200)])
    contents = read_pdf(file.write(tmp_path / "a.pdf"))
    page = contents.page
    first, second = page.images
    assert first.caption == "Figure 1: A fox on a hill."
    assert page.blocks[first.caption_blocks[0]].kind is BlockKind.CAPTION
    assert first.block == 0
    assert texts(page)[2].startswith("Below.")
    assert (first.width, first.height) == (200, 130)
    assert second.caption is None
    assert list(contents.files) == ["page-1-image-1.png", "page-2-image-1.png"]
    height, width, _ = decode(contents.files[first.source]).pixels.shape
    assert (width, abs(height - 60) <= 2) == (90, True)  # 200 x 130 points are not quite 3 : 2


def test_what_is_no_picture_is_counted(tmp_path):
    file = PdfFile()
    logo, dot, scan = file.image(1), file.image(2), file.image(3)
    for number in range(3):
        body = column(50, 700, f"Page {number}. " + WORDS)
        header = (250, 780, 8, f"Journal of Foxes {number}")
        shown = [(logo, 500, 700, 60, 40), (dot, 10, 10, 5, 5)]
        if number == 1:
            shown.append((scan, 0, 0, 600, 800))
        file.page([header, *body, (300, 20, 8, str(number + 1))], shown)
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.images == ()
    assert page.left_out.images == {
        "repeated on pages": 3,
        "decoration or off the page": 3,
        "background or scan of a page": 1,
    }
    assert page.left_out.text["headers and footers"] == 3 * len("Journal of Foxes 0") + 3
    assert "Journal" not in page.text


def test_a_number_below_the_text_is_the_pages_and_one_in_the_text_is_not(tmp_path):
    """LaTeX puts page numbers well above the lower margin."""
    file = PdfFile()
    file.page([*column(50, 700, WORDS), (300, 110, 10, "12")])
    file.page([*column(50, 700, WORDS), (50, 400, 10, "13"), (50, 120, 10, "The end.")])
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.left_out.text["headers and footers"] == 2
    assert "12" not in page.text and "13" in page.text


def test_large_images_of_one_size_are_told_apart(tmp_path):
    file = PdfFile()
    large = [file.image(number, (900, 600)) for number in range(3)]
    for image in large:
        file.page(column(50, 700, WORDS), [(image, 50, 300, 300, 200)])
    contents = read_pdf(file.write(tmp_path / "a.pdf"))
    assert len(set(contents.files.values())) == 3


def annotation(file, kind, box, text=None, words=b"", flags=4):
    """Add an annotation that shows some text, and has words that are not shown."""
    appearance = b""
    if text is not None:
        font = b"/Resources << /Font << /F0 %d 0 R >> >>" % file.fonts[0]
        size = box[2] - box[0], box[3] - box[1]
        head = b"/Type /XObject /Subtype /Form /BBox [0 0 %g %g] %s" % (*size, font)
        drawn = file.stream(head, b"BT /F0 10 Tf 2 4 Td (%s) Tj ET" % text)
        appearance = b"/AP << /N %d 0 R >>" % drawn
    rectangle = b"/Rect [%g %g %g %g]" % box
    parts = (kind, rectangle, words, b"/F %d" % flags, appearance)
    return file.add(b"<< /Type /Annot /Subtype /%s %s >>" % (parts[0], b" ".join(parts[1:])))


def test_what_lies_over_the_page_is_read_and_what_is_not_shown_is_counted(tmp_path):
    file = PdfFile()
    over = [
        annotation(file, b"Widget", (50, 600, 400, 620), b"A filled in field.", b"/FT /Tx /V (no)"),
        annotation(
            file, b"FreeText", (50, 500, 400, 520), b"A note on the page.", b"/Contents (n)"
        ),
        annotation(file, b"FreeText", (50, 400, 400, 420), None, b"/Contents (undrawn)"),
        annotation(file, b"Text", (500, 700, 520, 720), None, b"/Contents (A comment.)"),
        annotation(file, b"FreeText", (50, 300, 400, 320), b"unseen", b"/Contents (unseen)", 2),
        annotation(file, b"Link", (50, 680, 400, 720)),
    ]
    extra = b"/Annots [%s]" % b" ".join(b"%d 0 R" % number for number in over)
    file.page([(50, 700, 10, "Text on the page.")], extra=extra)
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert texts(page) == ["Text on the page.", "A filled in field.", "A note on the page."]
    assert page.left_out.text == {
        "form fields and notes that are not drawn": 7,
        "comments": 10,
        "hidden": 6,
        "hidden annotations that draw text (number)": 1,
    }


def test_pages_without_text_among_others_are_counted(tmp_path):
    file = PdfFile()
    file.page([(50, 700, 10, "Text on the page.")])
    file.page(images=[(file.image(), 0, 0, 600, 800)])
    file.page()  # is empty
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.left_out.text == {"pages without text: scans or drawings (number)": 1}
    assert page.left_out.images == {"background or scan of a page": 1}


PACKED = zlib.compress(b"BT /F0 10 Tf 50 700 Td (These words are lost.) Tj ET")


def with_second_page(file, contents, extra=b""):
    """Add two pages: the contents of the second one are as given."""
    file.page([(50, 700, 10, "Text on the page.")]).page()
    head = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800]"
    file.objects[file.pages[1] - 1] = b"%s %s %s >>" % (head, contents, extra)
    return file


@pytest.mark.parametrize(
    ("filters", "data"),
    [
        (b"/Filter /FlateDecode", b"x\x9c" + b"\xff" * 100),
        (b"/Filter /FlateDecode", PACKED[:10]),
        (b"/Filter [/FlateDecode]", b"junk"),
        (b"/Filter /FooDecode", PACKED),
        (b"", b"\x80\x90\xa0" * 20),
        (b"", b"/Missing Do"),
    ],
)
def test_pages_that_cannot_be_decoded_are_counted(tmp_path, filters, data):
    file = PdfFile()
    reference = b"/Contents %d 0 R" % file.stream(filters, data)
    stamp = annotation(file, b"Stamp", (50, 600, 400, 620), b"A stamp.")
    with_second_page(file, reference, b"/Annots [%d 0 R]" % stamp)
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert texts(page) == ["Text on the page.", "A stamp."]
    damaged = Counter({"damaged streams (number)": filters != b""})
    assert page.left_out.text == {"pages that cannot be decoded (number)": 1, **+damaged}


def test_contents_that_are_not_there_are_counted(tmp_path):
    file = PdfFile()
    with_second_page(file, b"/Contents %d 0 R" % file.add(b"null"))
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.left_out.text == {"pages that cannot be decoded (number)": 1}


def test_contents_that_a_damaged_file_lost_are_counted(tmp_path):
    path = with_second_page(PdfFile(), b"/Contents 99 0 R").write(tmp_path / "a.pdf")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"startxref", b"startxxxx").replace(b"xref\n0", b"xrxx\n9"))
    page = read_pdf(path).page
    assert texts(page) == ["Text on the page."]
    missing = {"parts that are missing (number)": 1}
    assert page.left_out.text == {"pages that cannot be decoded (number)": 1, **missing}


def test_blank_pages_are_not_counted(tmp_path):
    file = PdfFile()
    plain, empty = (
        file.stream(b"", b"q 1 0 0 1 0 0 cm Q"),
        file.stream(b"/Filter /FlateDecode", b""),
    )
    packed = file.stream(b"/Filter [ /FlateDecode ]", zlib.compress(b"q\nQ\n"))
    both, none = file.add(b"[%d 0 R %d 0 R]" % (plain, packed)), file.add(b"[]")
    file.page([(50, 700, 10, "Text on the page.")]).page()
    for contents in (
        *(b"", b"/Contents []", b"/Contents %d 0 R" % plain, b"/Contents %d 0 R" % empty),
        *(b"/Contents %d 0 R" % both, b"/Contents [%d 0 R %d 0 R]" % (packed, empty)),
        b"/Contents %d 0 R" % none,
    ):
        head = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800]"
        file.pages.append(file.add(b"%s %s >>" % (head, contents)))
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.left_out.text == {}


def test_pages_of_which_it_cannot_be_told_are_counted(tmp_path, monkeypatch):
    path = PdfFile().page([(50, 700, 10, "Text on the page.")]).page().write(tmp_path / "a.pdf")
    monkeypatch.setattr(pdf_blank, "_LARGEST_FILE", 100)
    assert read_pdf(path).page.left_out.text == {"pages that cannot be decoded (number)": 1}


@pytest.mark.parametrize(
    ("on_page", "inherited"),
    [
        (b"/MediaBox [600 800 0 0]", b""),
        (b"/MediaBox [0 800 600 0]", b""),
        (b"/MediaBox [0 0 600 800] /CropBox [600 800 0 0]", b""),
        (b"/MediaBox [0 0 600 800] /CropBox [0 0 0 0]", b""),
        (b"/MediaBox [0 0 600 100] /CropBox [600 800 0 200]", b""),  # they share nothing
        (b"/MediaBox [0 0 0 0]", b""),
        (b"/MediaBox []", b""),
        (b"", b""),
        (b"", b"/MediaBox [0 2000 600 -50]"),
    ],
)
def test_boxes_may_have_any_corners_be_empty_or_inherited(tmp_path, on_page, inherited):
    file = PdfFile().page([(50, 1700 if inherited else 700, 10, "Text on the page.")])
    page = file.pages[0] - 1
    file.objects[page] = file.objects[page].replace(b"/MediaBox [0 0 600 800]", on_page)
    path = file.write(tmp_path / "a.pdf")
    data = path.read_bytes().replace(b"/Type /Pages", b"/Type /Pages " + inherited)
    path.write_bytes(data)
    page = read_pdf(path).page
    assert texts(page) == ["Text on the page."]
    assert page.left_out.text == {}


def count_over_page(tmp_path, kind, words, flags=4, fields=True):
    """Give what is counted of an annotation that is not drawn; words are its own and objects."""
    file = PdfFile()
    for number, value in enumerate(words[1:]):
        assert file.add(value) == 5 + number  # after two fonts
    over = annotation(file, kind, (50, 600, 400, 620), None, words[0], flags)
    file.page([(50, 700, 10, "Text on the page.")], extra=b"/Annots [%d 0 R]" % over)
    path = file.write(tmp_path / "a.pdf")
    form = b"/AcroForm << /Fields [%s] >> /Lang" % (b"%d 0 R" % over if fields else b"")
    path.write_bytes(path.read_bytes().replace(b"/Lang", form))
    page = read_pdf(path).page
    assert texts(page) == ["Text on the page."]
    return page.left_out.text


STREAM = b"<< /Length 9 >>\nstream\nAll of it\nendstream"
FRAME = b"<< /Subtype /Form /BBox [0 0 9 9] /Length 15 >>\nstream\n0 0 350 20 re S\nendstream"
PARENT = b"<< /FT /Tx /T (a) /V (All of it) >>"
NOT_DRAWN = "form fields and notes that are not drawn"
UNREADABLE = "annotations that cannot be read (number)"


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ((b"/FT /Tx /T (a) /V (All of it)",), {NOT_DRAWN: 9}),
        ((b"/FT /Tx /T (a) /V 5 0 R", b"(All of it)"), {NOT_DRAWN: 9}),
        ((b"/FT /Tx /T (a) /V 5 0 R", STREAM), {NOT_DRAWN: 9}),
        ((b"/FT /Tx /T (a) /RV (<p>All of <b>it</b></p>)",), {NOT_DRAWN: 9}),
        ((b"/FT /Tx /T (a) /V (All of it) /AP << /N 5 0 R >>", FRAME), {NOT_DRAWN: 9}),
        ((b"/FT /Ch /T (a) /V [(All of) (it)] /Opt [(All of) (no) (it)]",), {NOT_DRAWN: 8}),
        ((b"/FT /Ch /T (a) /V 5 0 R /Opt [(one) (no) (it)]", b"[(one) (it)]"), {NOT_DRAWN: 5}),
        ((b"/FT /Btn /T (a) /V /Yes",), {}),
        ((b"/FT /Btn /T (a) /Ff 65536 /MK << /CA (Push) >>",), {
            "buttons that are not drawn (number)": 1}),
        ((b"/FT /Sig /T (a) /V 5 0 R", b"<< /Type /Sig >>"), {}),
    ],
)  # fmt: skip
def test_values_of_fields_that_are_not_drawn_are_counted(tmp_path, words, counted):
    assert count_over_page(tmp_path, b"Widget", words) == counted


def test_inherited_values_are_counted(tmp_path):
    file = PdfFile()
    over = annotation(file, b"Widget", (50, 600, 400, 620), None, b"/Parent 6 0 R")
    assert file.add(PARENT.replace(b">>", b"/Kids [%d 0 R] >>" % over)) == 6
    file.page([(50, 700, 10, "Text on the page.")], extra=b"/Annots [%d 0 R]" % over)
    path = file.write(tmp_path / "a.pdf")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"/Lang", b"/AcroForm << /Fields [6 0 R] >> /Lang"))
    assert read_pdf(path).page.left_out.text == {NOT_DRAWN: 9}
    path.write_bytes(data)  # without a form nobody knows of what is inherited
    assert read_pdf(path).page.left_out.text == {UNREADABLE: 1}


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ((b"/Contents 5 0 R", b"(All of it)"), 9),
        ((b"/Contents 5 0 R", STREAM), 9),
        ((b"/RC (<p>All of <b>it</b></p>)",), 9),
        ((b"/Contents [(All of it)]",), UNREADABLE),
        ((b"/Contents 5 0 R", b"[(All of it)]"), UNREADABLE),
    ],
)
@pytest.mark.parametrize(
    ("kind", "reason"),
    [(b"Text", "comments"), (b"Popup", "comments"), (b"FreeText", NOT_DRAWN)],
)
def test_comments_are_counted_however_they_are_kept(tmp_path, kind, reason, words, counted):
    expected = {UNREADABLE: 1} if counted == UNREADABLE else {reason: counted}
    assert count_over_page(tmp_path, kind, words) == expected


def test_values_outside_of_the_form_and_hidden_ones_are_counted(tmp_path):
    words = b"/FT /Tx /T (a) /V 5 0 R"
    assert count_over_page(tmp_path, b"Widget", (words, b"(All)"), fields=False) == {NOT_DRAWN: 3}
    assert count_over_page(tmp_path, b"Widget", (words, b"(All)"), flags=2) == {"hidden": 3}
    counted = count_over_page(tmp_path, b"Widget", (words, b"[(All)]"), fields=False)
    assert counted == {UNREADABLE: 1}


def test_a_page_of_pictures_without_text_is_told(tmp_path):
    file = PdfFile()
    file.page([], [(file.image(), 0, 0, 600, 800)])
    with pytest.raises(SightlineError, match=r"no text.*OCR"):
        read_pdf(file.write(tmp_path / "a.pdf"))


def test_a_page_whose_text_is_left_out_is_told(tmp_path):
    file = PdfFile().page([(50, 5000, 10, "Off the page.")])
    with pytest.raises(SightlineError, match=r"no text but what is left out: off the page\."):
        read_pdf(file.write(tmp_path / "a.pdf"))


def test_a_turned_page_reads_like_an_upright_one(tmp_path):
    words = [(50, 700, 10, "unused")]
    file = PdfFile().page(words, size=(600, 800))
    # The same text written upwards, on a page that is shown turned.
    lines = textwrap.wrap(WORDS * 3, 46)
    content = b"\n".join(
        b"BT /F0 10 Tf 0 1 -1 0 %d 50 Tm (%s) Tj ET" % (100 + 12 * i, line.encode())
        for i, line in enumerate(lines)
    )
    number = file.stream(b"", content)
    file.objects[file.pages[0] - 1] = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Rotate 90 /Contents %d 0 R "
        b"/Resources << /Font << /F0 %d 0 R >> >> >>" % (number, file.fonts[0])
    )
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert page.text == (WORDS * 3).strip()


def test_a_broken_table_of_objects_is_rebuilt(tmp_path):
    path = PdfFile().page(column(50, 700, WORDS)).write(tmp_path / "a.pdf")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"startxref", b"startxxxx").replace(b"xref\n0", b"xrxx\n9"))
    assert read_pdf(path).page.text == WORDS.strip()


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"%PDF-1.7\nnothing here", b"\0" * 1000])
def test_damaged_files_are_a_sentence(tmp_path, data):
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    with pytest.raises(SightlineError, match="damaged"):
        read_pdf(path)


def test_an_encrypted_file_is_a_sentence(tmp_path):
    """The standard handler with a user password that is not the empty one."""
    path = PdfFile().page(column(50, 700, WORDS)).write(tmp_path / "a.pdf")
    handler = (
        b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"31" * 32 + b"> "
        b"/U <" + b"32" * 32 + b"> >> /ID [<00> <00>] /Root"
    )
    path.write_bytes(path.read_bytes().replace(b"/Root", handler))
    with pytest.raises(SightlineError, match="encrypted with a password"):
        read_pdf(path)


def test_reading_stops_at_the_limit_on_time(tmp_path):
    file = PdfFile()
    for _ in range(3):
        file.page(column(50, 700, WORDS))
    with pytest.raises(SightlineError, match="no text"):
        read_pdf(file.write(tmp_path / "a.pdf"), seconds=0)


def test_three_columns_and_a_picture_across_two():
    def line(x, y, words):
        return Line(words, Box(x, y, x + 90, y + 10), 10)

    names = ["first column text", "second column text", "third column text"]
    lower = [line(100 * c, 100 - 12 * i, f"{names[c]} {i}") for c in range(3) for i in range(4)]
    wide = Picture("wide", Box(0, 150, 290, 250))
    upper = [line(100 * c, 300 - 12 * i, f"{names[c]} up {i}") for c in range(3) for i in range(4)]
    columns = reading_order([*lower, wide, *upper])
    flat = [item.text if isinstance(item, Line) else item.name for c in columns for item in c]
    expected = [f"{name} up {i}" for name in names for i in range(4)]
    expected += ["wide"] + [f"{name} {i}" for name in names for i in range(4)]
    assert flat == expected


def test_cells_of_a_table_stay_in_their_rows():
    cells = [
        Line(f"r{r}c{c}", Box(100 * c, 500 - 12 * r, 100 * c + 30, 510 - 12 * r), 10)
        for c in range(4)
        for r in range(5)
    ]
    (column,) = reading_order(cells)
    assert [row.text for row in column] == [f"r{r}c0 | r{r}c1 | r{r}c2 | r{r}c3" for r in range(5)]


def test_text_that_cannot_be_read_is_counted(tmp_path):
    file = PdfFile()
    name = b"/Type /Font /BaseFont /Ryumin-Light"
    system = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >>"
    font = file.add(b"<< %s /Subtype /CIDFontType0 %s >>" % (name, system))
    vertical = b"/Subtype /Type0 /Encoding /UniJIS-UCS2-V /DescendantFonts [%d 0 R]" % font
    file.fonts.append(file.add(b"<< %s %s >>" % (name, vertical)))
    drawn = b"BT /F2 10 Tf 300 700 Td <5E8F5E8F5E8F5E8F> Tj ET"
    file.page([(50, 700, 10, "Text on\x01 the\x1c page.")], drawn=drawn)
    page = read_pdf(file.write(tmp_path / "a.pdf")).page
    assert texts(page)[0] == "Text on the page."
    assert page.left_out.text["signs without a meaning"] == 2
    # Where a Japanese font is installed, PDFium takes it in place of the one that is lacking.
    lacking = page.left_out.text["text in fonts that the file lacks (pieces)"]
    assert (lacking == 1) != ("序" in page.text)
