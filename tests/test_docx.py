"""DOCX: structure and images in their order, alt and captions; hostile files."""

import io
import time
import zipfile
from email import message_from_string

import docx
import pytest
from docx.oxml import parse_xml as docx_xml
from docx.shared import Inches, Pt
from hypothesis import given, settings
from hypothesis import strategies as st
from made_files import picture
from word_trees import lost_in, tree_with_words, write_document

from sightline.pages import BlockKind
from sightline.problems import SightlineError
from sightline.readers import docx_inserted
from sightline.readers.docx import read_docx
from sightline.zip_limits import REPLACED

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def save(document, tmp_path):
    path = tmp_path / "a.docx"
    document.save(path)
    return path


def rewrite(path, name, change):
    """Change one member of an archive."""
    with zipfile.ZipFile(path) as file:
        members = {member: file.read(member) for member in file.namelist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, data in members.items():
            file.writestr(member, data)
    return path


def add_picture(paragraph, number=1, alt=None, width=2):
    shape = paragraph.add_run().add_picture(io.BytesIO(picture(number)), Inches(width))
    if alt is not None:
        shape._inline.docPr.set("descr", alt)
    return shape


def test_structure_is_kept_in_order(tmp_path):
    document = docx.Document()
    document.core_properties.title = "The  title"
    document.add_heading("Chapter", 1)
    document.add_heading("Section", 2)
    document.add_paragraph("Some text.\tWith a tab.")
    document.add_paragraph("An item", style="List Bullet")
    document.add_paragraph("Quoted", style="Quote")
    table = document.add_table(2, 2)
    for row in range(2):
        for column in range(2):
            table.cell(row, column).text = f"r{row}c{column}"
    document.add_paragraph("The end.")
    page = read_docx(save(document, tmp_path)).page
    assert [(b.kind, b.level, b.text) for b in page.blocks] == [
        (BlockKind.HEADING, 1, "Chapter"),
        (BlockKind.HEADING, 2, "Section"),
        (BlockKind.PARAGRAPH, 0, "Some text. With a tab."),
        (BlockKind.LIST_ITEM, 1, "An item"),
        (BlockKind.QUOTE, 1, "Quoted"),
        (BlockKind.TABLE_ROW, 0, "r0c0 | r0c1"),
        (BlockKind.TABLE_ROW, 0, "r1c0 | r1c1"),
        (BlockKind.PARAGRAPH, 0, "The end."),
    ]
    assert page.title == "The title"
    assert page.language == "en-US"


def test_images_have_their_places_alt_and_captions(tmp_path):
    document = docx.Document()
    document.add_paragraph("Before.")
    add_picture(document.add_paragraph(), 1, "A red fox")
    document.add_paragraph("Figure 1: The fox", style="Caption")
    inline = document.add_paragraph("Left of it ")
    add_picture(inline, 2)
    inline.add_run(" and right of it.")
    document.add_paragraph("Figure 2: An owl, above it", style="Caption")
    add_picture(document.add_paragraph(), 3, "")
    add_picture(document.add_paragraph(), 1, "Again", width=0.2)
    contents = read_docx(save(document, tmp_path))
    page = contents.page
    first, second, third = page.images
    assert (first.block, first.offset, first.alt) == (0, None, "A red fox")
    assert (first.caption, first.caption_blocks) == ("Figure 1: The fox", (1,))
    assert page.blocks[2].text == "Left of it and right of it."
    assert (second.block, second.offset, second.alt) == (2, len("Left of it "), None)
    assert (third.caption, third.alt) == ("Figure 2: An owl, above it", "")
    assert (first.width, first.height) == (192, 128)
    assert contents.files[second.source] == picture(2)
    assert page.left_out.images == {"icon": 1}


def test_a_caption_goes_to_all_images_above_it_and_never_a_tables(tmp_path):
    document = docx.Document()
    together = document.add_paragraph()
    add_picture(together, 1)
    add_picture(together, 2)
    document.add_paragraph("Figure 1. Both.")
    add_picture(document.add_paragraph(), 3)
    document.add_paragraph("Table 1: Numbers", style="Caption")
    page = read_docx(save(document, tmp_path)).page
    assert [image.caption for image in page.images] == ["Figure 1. Both.", "Figure 1. Both.", None]


def test_images_in_tables_and_long_cells(tmp_path):
    document = docx.Document()
    table = document.add_table(1, 2)
    add_picture(table.cell(0, 0).paragraphs[0], 1)
    table.cell(0, 1).text = "Beside it."
    inner = table.cell(0, 1).add_table(1, 2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "x", "y"
    page = read_docx(save(document, tmp_path)).page
    assert [block.text for block in page.blocks] == ["Beside it.", "x | y"]
    assert len(page.images) == 1


def test_what_is_not_read_is_counted(tmp_path):
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "Header"
    paragraph = document.add_paragraph("Kept. ")
    paragraph.add_run("Hidden").font.hidden = True
    paragraph._p.append(
        docx_xml(f'<w:del xmlns:w="{W}"><w:r><w:delText>Gone</w:delText></w:r></w:del>')
    )
    paragraph.add_run("Added.").font.size = Pt(8)
    page = read_docx(save(document, tmp_path)).page
    assert page.text == "Kept. Added."
    assert page.left_out.text == {"headers and footers": 6, "hidden text": 6, "deleted text": 4}


def with_part(path, kind, name, data):
    """Add a part that the document refers to as `rId99`."""
    relation = f'<Relationship Id="rId99" Type="http://x/{kind}" Target="{name}"/>'.encode()
    end = b"</Relationships>"
    rewrite(path, "word/_rels/document.xml.rels", lambda d: d.replace(end, relation + end))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(f"word/{name}", data)
    return path


MESSAGE = (
    b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=x\r\n\r\n--x\r\n"
    b"Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    b"<p>A page =\r\nin it.</p>\r\n--x--\r\n"
)


@pytest.mark.parametrize(
    ("data", "texts", "left_out"),
    [
        (b"<html><p>A page in it.</p><img src=a.png></html>", ["A page in it."], {}),
        (MESSAGE, ["A page in it."], {}),
        (rb"{\rtf1 A page}", [], {"inserted files (bytes)": 14}),
    ],
)
def test_a_page_in_the_document_is_read_and_another_file_counted(tmp_path, data, texts, left_out):
    document = docx.Document()
    document.add_paragraph("Before.")
    chunk = f'<w:altChunk xmlns:w="{W}" xmlns:r="urn:r" r:id="rId99"/>'
    document.element.body.insert(1, docx_xml(chunk))
    document.add_paragraph("After.")
    path = with_part(save(document, tmp_path), "aFChunk", "a.dat", data)
    page = read_docx(path).page
    assert [block.text for block in page.blocks] == ["Before.", *texts, "After."]
    assert page.left_out.text == left_out
    assert page.left_out.images.total() == data.count(b"<img")


def test_text_outside_of_paragraphs_is_counted(tmp_path):
    document = docx.Document()
    drawn = (
        f'<w:drawing xmlns:w="{W}" xmlns:a="urn:a" xmlns:v="urn:v"><a:t>Drawn</a:t>'
        '<v:textpath string="Bent"/></w:drawing>'
    )
    run = document.add_paragraph("Text. ").add_run()
    run._r.append(docx_xml(drawn))
    run._r.append(docx_xml(f'<w:sym xmlns:w="{W}" w:char="F0E0"/>'))
    page = read_docx(save(document, tmp_path)).page
    assert page.text == "Text."
    expected = {"elsewhere in the file": 5, "word art": 4, "signs without a meaning": 1}
    assert page.left_out.text == expected


def test_a_damaged_part_beside_the_text_costs_only_itself(tmp_path):
    document = docx.Document()
    document.add_paragraph("Text.")
    path = with_part(save(document, tmp_path), "footnotes", "footnotes.xml", b"<notes")
    page = read_docx(path).page
    assert page.text == "Text."
    assert page.left_out.text == {"parts that cannot be read (number)": 1}


@settings(deadline=None, max_examples=400)
@given(st.binary(max_size=60), st.booleans())
def test_no_text_or_picture_of_any_tree_is_lost_uncounted(tmp_path_factory, data, in_notes):
    tree = tree_with_words(data)
    path = tmp_path_factory.getbasetemp() / "any.docx"
    page = read_docx(write_document(path, **{"notes" if in_notes else "body": tree})).page
    assert lost_in(tree, page) == (0, 0)


def test_the_rule_sees_a_loss_and_what_counts_twice(tmp_path):
    page = read_docx(write_document(tmp_path / "a.docx", "<w:p><w:t>w100w101</w:t></w:p>")).page
    assert lost_in('w100w101w102<a:blip r:embed="i"/>', page) == (4, 1)
    assert lost_in("w100", page) == (-4, 0)


@pytest.mark.parametrize(
    ("body", "text", "count"),
    [
        ("a<w:p>bc<w:r>d<w:t>Text</w:t>e</w:r></w:p>f<w:tbl>g</w:tbl>", "Text", 7),
        ("<w:p><w:r><w:t>Text<w:tab>ab</w:tab>c</w:t></w:r></w:p>", "Text", 3),
        ("<wp:posOffset>-12</wp:posOffset><wp:align>left</wp:align>", "", 0),
        ("<wp:posOffset>abc</wp:posOffset>", "", 3),
    ],
)
def test_text_outside_of_runs_is_counted(tmp_path, body, text, count):
    page = read_docx(made(tmp_path, body)).page
    assert page.text == text
    assert page.left_out.text == ({"elsewhere in the file": count} if count else {})


def test_the_form_that_holds_more_is_read(tmp_path):
    document = docx.Document()
    forms = (
        f'<w:r xmlns:w="{W}" xmlns:mc="urn:mc"><mc:AlternateContent><mc:Choice Requires="new">'
        "<w:drawing/></mc:Choice><mc:Fallback><w:t>In words.</w:t></mc:Fallback>"
        "</mc:AlternateContent></w:r>"
    )
    document.add_paragraph()._p.append(docx_xml(forms))
    assert read_docx(save(document, tmp_path)).page.text == "In words."


def test_forms_within_forms_take_no_longer_the_deeper_they_are(tmp_path):
    def seconds(depth):
        body = "<w:p><w:r><w:t>word</w:t></w:r></w:p>" * 5_000
        for _ in range(depth):
            other = "<mc:Fallback><w:p><w:r><w:t>old</w:t></w:r></w:p></mc:Fallback>"
            body = f"<mc:Choice>{body}</mc:Choice>{other}"
            body = f"<mc:AlternateContent>{body}</mc:AlternateContent>"
        path = made(tmp_path, body)
        start = time.process_time()
        page = read_docx(path).page
        assert page.left_out.text["other forms of what is read"] == len("old") * depth
        assert len(page.blocks) == 5_000
        return time.process_time() - start

    shallow = min(seconds(1) for _ in range(3))
    assert seconds(100) < 5 * shallow


def test_text_boxes_are_read_once(tmp_path):
    document = docx.Document()
    box = (
        f'<w:r xmlns:w="{W}" xmlns:mc="urn:mc" '
        'xmlns:wps="urn:wps"><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wps:txbx>'
        "<w:txbxContent><w:p><w:r><w:t>Boxed.</w:t></w:r></w:p></w:txbxContent></wps:txbx>"
        "</w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent><w:p><w:r><w:t>Boxed.</w:t>"
        "</w:r></w:p></w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    document.add_paragraph("Around.")._p.append(docx_xml(box))
    page = read_docx(save(document, tmp_path)).page
    assert [block.text for block in page.blocks] == ["Around.", "Boxed."]


def test_a_linked_image_keeps_its_address_and_a_lost_one_its_place(tmp_path):
    document = docx.Document()
    add_picture(document.add_paragraph("Text."), 1)
    add_picture(document.add_paragraph(), 2)

    def change(data):
        outside = b'Target="http://example.org/a.png" TargetMode="External"'
        data = data.replace(b'Target="media/image1.png"', outside)
        return data.replace(b'Target="media/image2.png"', b'Target="../../../etc/passwd"')

    path = rewrite(save(document, tmp_path), "word/_rels/document.xml.rels", change)
    contents = read_docx(path)
    sources = [image.source for image in contents.page.images]
    assert sources == ["http://example.org/a.png", "etc/passwd"]
    assert contents.files == {}


def test_hostile_files_are_a_sentence(tmp_path):
    document = docx.Document()
    document.add_paragraph("Text.")
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
    deep = b"<w:p>" * 5000
    for change, words in (
        (lambda _: bomb, "entities"),
        (lambda data: data.replace(b"<w:body>", b"<w:body>" + deep), "levels"),
        (lambda data: data[:-20], "bad XML"),
        (lambda data: data + b" " * 70_000_000, "zip bomb"),
    ):
        path = rewrite(save(document, tmp_path), "word/document.xml", change)
        with pytest.raises(SightlineError, match=words):
            read_docx(path)
    for data, words in ((b"\xd0\xcf\x11\xe0 old", "password"), (b"no archive", "damaged")):
        path.write_bytes(data)
        with pytest.raises(SightlineError, match=words):
            read_docx(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "a")
    with pytest.raises(SightlineError, match="not a Word document"):
        read_docx(path)


def test_nesting_up_to_the_limit_is_read(tmp_path):
    document = docx.Document()
    document.add_paragraph("Text.")
    deep = b"<w:sdtContent>" * 240 + b"<w:p/>" + b"</w:sdtContent>" * 240
    path = rewrite(
        save(document, tmp_path), "word/document.xml",
        lambda data: data.replace(b"<w:body>", b"<w:body>" + deep),
    )  # fmt: skip
    assert read_docx(path).page.text == "Text."


R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMES = f'xmlns:w="{W}" xmlns:r="{R}"' + "".join(
    f' xmlns:{name}="urn:{name}"' for name in ("mc", "v", "wp", "a", "pic", "c", "o", "wgp")
)
PARAGRAPH = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"


def made(tmp_path, body, relations=(), parts=(), main="word/document.xml"):
    """Make a file by hand: relations are `(id, kind, target)`, parts `(name, data)`."""
    path = tmp_path / "made.docx"
    related = "".join(
        f'<Relationship Id="{i}" Type="{R}/{kind}" Target="{to}"/>' for i, kind, to in relations
    )
    folder = main.rpartition("/")[0]
    with zipfile.ZipFile(path, "w") as file:
        root = f'<x><Relationship Id="a" Type="{R}/officeDocument" Target="{main}"/></x>'
        file.writestr("_rels/.rels", root)
        file.writestr(main, f"<w:document {NAMES}><w:body>{body}</w:body></w:document>")
        name = f"{folder}/_rels/document.xml.rels".lstrip("/")
        file.writestr(name, f"<x>{related}</x>")
        for name, data in parts:
            file.writestr(name, data)
    return path


def left_out(path):
    return read_docx(path).page.left_out


def part(inner):
    return f"<x {NAMES}>{inner}</x>"


def test_what_a_document_at_the_root_refers_to_is_found(tmp_path):
    notes = ("footnotes.xml", part(PARAGRAPH.format("A note")))
    relations = [("n", "footnotes", "footnotes.xml")]
    path = made(tmp_path, PARAGRAPH.format("Text."), relations, [notes], main="document.xml")
    assert left_out(path).text == {"notes": 6}


@pytest.mark.parametrize(
    ("kind", "inner", "count"),
    [
        ("header", '<v:textpath string="CONFIDENTIAL"/>', {"headers and footers": 12}),
        (
            "chart",
            "<c:pt>\n<c:v>Category</c:v></c:pt><a:t>Title</a:t>",
            {"charts and diagrams": 13},
        ),
        ("footnotes", "<w:delText>Gone</w:delText><w:sym/>", {"notes": 5}),
    ],
)
def test_text_of_any_form_in_other_parts_is_counted(tmp_path, kind, inner, count):
    path = made(tmp_path, "", [("x", kind, "x.xml")], [("word/x.xml", part(inner))])
    assert left_out(path).text == count


def test_embedded_files_are_counted_wherever_they_are_referred_to(tmp_path):
    relations = [
        ("e", "oleObject", "embeddings/a.bin"), ("h", "header", "h.xml"),
        ("l", "package", "no.xlsx"), ("a", "aFChunk", "unused.html"),
    ]  # fmt: skip
    inner = f'<x><Relationship Id="c" Type="{R}/package" Target="embeddings/b.xlsx"/></x>'
    parts = [
        ("word/embeddings/a.bin", "12345"), ("word/h.xml", part("")),
        ("word/_rels/h.xml.rels", inner), ("word/embeddings/b.xlsx", "1234567"),
        ("word/unused.html", "<p>No</p>"),
    ]  # fmt: skip
    assert left_out(made(tmp_path, "", relations, parts)).text == {
        "embedded files (bytes)": 12,
        "inserted files (bytes)": 9,
        "parts that cannot be read (number)": 1,
    }


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("word/footnotes.xml", f"<w:footnotes {NAMES}>a<w:t>note</w:t></w:footnotes>",
         {"notes": 5}),
        ("word/any.bin", f"<w:comments {NAMES}><w:t>Said</w:t></w:comments>", {"comments": 4}),
        ("any/x.xml", f"<w:hdr {NAMES}><w:t>Top</w:t></w:hdr>", {"headers and footers": 3}),
        ("word/glossary/document.xml", f"<w:glossaryDocument {NAMES}><w:t>Block</w:t>"
         "</w:glossaryDocument>", {"building blocks": 5}),
        ("customXml/item1.xml", "<a>One <b>two</b></a>", {"other parts": 6}),
        ("word/left.txt", "Text", {"parts that cannot be read (number)": 1}),
        ("word/_rels/x.xml.rels", "<x", {"parts that cannot be read (number)": 1}),
        ("word/media/a.png", picture(), {}),
    ],
)  # fmt: skip
def test_parts_that_nothing_refers_to_are_counted(tmp_path, name, data, expected):
    assert left_out(made(tmp_path, "", parts=[(name, data)])).text == expected


def test_the_looks_of_a_document_are_no_text_of_it(tmp_path):
    kinds = ("image", "theme", "styles", "extended-properties", "extendedProperties")
    relations = [(kind, kind, f"{kind}.xml") for kind in kinds]
    parts = [(f"word/{kind}.xml", "<x>12<blip/></x>") for kind in kinds]
    assert not left_out(made(tmp_path, "", relations, parts)).to_record()
    others = [("n", "footnotes", "theme.xml"), ("p", "package", "image.xml"), ("x", "x", "x.xml")]
    for both in (relations + others, others + relations):
        found = left_out(made(tmp_path, "", both, [*parts, ("word/x.xml", "<x>123</x>")]))
        text = {"notes": 2, "embedded files (bytes)": len(parts[0][1]), "other parts": 3}
        assert found.to_record() == {"text": text, "images": {"notes": 1}}


STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"


@pytest.mark.parametrize("kind", [f"{STRICT}/footnotes", f"{R}/FootNotes", "footnotes"])
def test_kinds_of_relations_are_known_however_they_are_written(tmp_path, kind):
    path = made(tmp_path, "", parts=[("word/any", part("<w:t>Note</w:t>"))])
    relation = f'<x><Relationship Id="a" Type="/{kind}" Target="any"/></x>'.encode()
    rewrite(path, "word/_rels/document.xml.rels", lambda _: relation)
    assert left_out(path).text == {"notes": 4}


def test_documents_elsewhere_are_counted(tmp_path):
    relation = '<Relationship Id="{}" Type="x/{}" Target="http://x/" TargetMode="External"/>'
    both = relation.format("a", "subDocument") + relation.format("a", "aFChunk")
    path = made(tmp_path, '<w:p><w:subDoc r:id="a"/></w:p><w:altChunk r:id="a"/>')
    rewrite(path, "word/_rels/document.xml.rels", lambda _: f"<x>{both}</x>".encode())
    assert left_out(path).text == {"documents elsewhere (number)": 2}


def test_pictures_that_fill_shapes_are_read_and_those_outside_of_drawings_counted(tmp_path):
    fill = '<v:rect><v:fill r:id="i" type="frame"/><v:fill color="red" id="x"/></v:rect>'
    outside = '<c:chart r:id="c"/><v:imagedata r:id="i"/>'
    relations = [("i", "image", "media/i.png")]
    page = read_docx(made(tmp_path, drawn(fill) + outside, relations)).page
    assert [image.source for image in page.images] == ["word/media/i.png"]
    assert page.left_out.images == {"elsewhere in the file": 2}


def test_what_lies_in_word_art_counts_once_and_hides_no_other_text(tmp_path):
    inner = '<v:textpath string="CD">E</v:textpath><a:blip r:embed="i"/>'
    body = drawn(f'<v:textpath string="AB">{inner}</v:textpath>') + "bare"
    found = left_out(made(tmp_path, body))
    assert found.text == {"word art": 5, "elsewhere in the file": 4}
    assert found.images == {"word art": 1}


def test_field_codes_are_counted(tmp_path):
    body = "<w:p><w:r><w:t>See 3.</w:t><w:instrText> PAGE </w:instrText></w:r></w:p>"
    page = read_docx(made(tmp_path, body)).page
    assert (page.text, page.left_out.text) == ("See 3.", {"field codes": 4})


def test_texts_of_other_forms_count_once_and_only_if_they_are_others(tmp_path):
    forms = "".join(
        f"<mc:Choice>{PARAGRAPH.format(word)}{PARAGRAPH.format('same')}</mc:Choice>{tail}"
        for word, tail in (("other", "x"), ("longest", ""), ("longest", ""))
    )
    page = read_docx(made(tmp_path, f"<mc:AlternateContent>{forms}</mc:AlternateContent>")).page
    assert [block.text for block in page.blocks] == ["longest", "same"]
    assert page.left_out.text == {"other forms of what is read": len("other" + "x")}


def test_titles_of_inserted_pages_are_counted(tmp_path):
    parts = [("word/a.html", "<title>Untold</title><p>Text.</p>")]
    path = made(tmp_path, '<w:altChunk r:id="a"/>', [("a", "aFChunk", "a.html")], parts)
    assert left_out(path).text == {"titles of inserted files": 6}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_part_that_another_of_its_name_replaces_is_counted(tmp_path):
    path = made(tmp_path, PARAGRAPH.format("Old."))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("word/document.xml", part(PARAGRAPH.format("New.")))
    page = read_docx(path).page
    assert (page.text, page.left_out.text) == ("New.", {REPLACED: 1})


@pytest.mark.parametrize("kind", ["page", "column", "textWrapping"])
def test_any_break_separates_words(tmp_path, kind):
    body = f'<w:p><w:r><w:t>One</w:t><w:br w:type="{kind}"/><w:t>two</w:t></w:r></w:p>'
    assert read_docx(made(tmp_path, body)).page.text == "One\ntwo"


def test_of_forms_of_cells_one_is_read_and_deleted_cells_are_counted(tmp_path):
    cell = "<w:tc>" + PARAGRAPH + "</w:tc>"
    forms = (
        f"<mc:AlternateContent><mc:Choice>{cell.format('new')}</mc:Choice>"
        f"<mc:Fallback>{cell.format('old')}</mc:Fallback></mc:AlternateContent>"
    )
    control = f"<w:sdt><w:sdtContent>{cell.format('held')}</w:sdtContent></w:sdt>"
    body = f"<w:tbl><w:tr>{forms}{control}<w:del>{cell.format('gone')}</w:del></w:tr></w:tbl>"
    page = read_docx(made(tmp_path, body)).page
    assert page.text == "new | held"
    assert page.left_out.text == {"deleted text": 4, "other forms of what is read": 3}


def drawn(inner):
    return f"<w:p><w:r><w:drawing>{inner}</w:drawing></w:r></w:p>"


def named_picture(identifier, described):
    name = f"<pic:nvPicPr><pic:cNvPr {described}/></pic:nvPicPr>"
    return f'<pic:pic>{name}<a:blip r:embed="{identifier}"/></pic:pic>'


@pytest.mark.parametrize(
    ("inner", "alts"),
    [
        ('<wp:docPr descr="All"/><wgp:wgp>' + named_picture("i", 'descr="One"')
         + named_picture("j", "") + "</wgp:wgp>", ["One", "All"]),
        ('<wp:docPr descr="Real"/>' + named_picture("i", 'descr="DSC1.JPG"'), ["Real"]),
        ('<v:group><v:shape alt="A"><v:imagedata r:id="i"/></v:shape><v:shape alt="B">'
         '<v:imagedata r:id="j"/></v:shape></v:group>', ["A", "B"]),
        ('<v:group alt="All"><v:shape><v:imagedata r:id="i"/></v:shape><v:shape alt="B">'
         '<v:imagedata r:id="j"/></v:shape></v:group>', ["All", "B"]),
        ('<v:shape alt="A"><v:imagedata r:id="i"/></v:shape><v:shape><v:imagedata r:id="j"/>'
         "</v:shape>", ["A", None]),
    ],
)  # fmt: skip
def test_each_picture_of_a_group_has_its_own_alternative_text(tmp_path, inner, alts):
    relations = [(name, "image", f"media/{name}.png") for name in "ij"]
    page = read_docx(made(tmp_path, drawn(inner), relations)).page
    assert [image.alt for image in page.images] == alts


TWO_PAGES = (
    b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=B\r\n\r\n--B\r\n"
    b"Content-Type: text/html; charset=windows-1251\r\n\r\n<p>\xcf\xf0\xe8\xe2\xe5\xf2</p>\r\n"
    b"--B\r\nContent-Type: text/html\r\n\r\n<p>Second</p>\r\n"
    b"--B\r\nContent-Type: text/plain\r\n\r\nPlain\r\n--B--\r\n"
)


def test_all_pages_of_an_inserted_message_are_read_in_their_encodings(tmp_path):
    body = '<w:p><w:r><w:t>Around.</w:t><w:altChunk r:id="a"/></w:r></w:p>'
    path = made(tmp_path, body, [("a", "aFChunk", "a.mht")], [("word/a.mht", TWO_PAGES)])
    page = read_docx(path).page
    assert [block.text for block in page.blocks] == ["Around.", "Привет", "Second"]
    assert page.left_out.text == {"inserted files (bytes)": 5}


def test_a_message_whose_page_cannot_be_decoded_is_counted(tmp_path):
    data = (
        b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n"
        b"Content-Transfer-Encoding: base64\r\n\r\n!!!"
    )
    relations, parts = [("a", "aFChunk", "a.mht")], [("word/a.mht", data)]
    path = made(tmp_path, '<w:altChunk r:id="a"/>', relations, parts)
    assert left_out(path).text == {"inserted files (bytes)": len(data)}


def test_everything_of_a_kind_is_counted_not_only_the_first(tmp_path):
    art = '<v:shape><v:textpath string="AAAAA"/></v:shape>'
    choices = '<w:sdt><w:sdtPr><w:listItem w:displayText="Yes" w:value="1"/></w:sdtPr></w:sdt>'
    body = drawn(art * 2 + '<c:chart r:id="c"/><c:chart r:id="d"/>') + choices
    body += f"<w:p>{choices}<w:r>{art}</w:r></w:p><w:tbl>{choices}</w:tbl>"
    found = left_out(made(tmp_path, body))
    assert found.text == {"word art": 15, "choices of form fields": 9}
    assert found.images == {"chart or diagram": 2}


def read_time(path):
    """The least CPU time of three readings, since other work of the machine adds to it."""
    times = []
    for _ in range(3):
        started = time.process_time()
        page = read_docx(path).page
        times.append(time.process_time() - started)
    return min(times), page


def test_a_paragraph_of_ten_times_the_lines_takes_about_ten_times_as_long(tmp_path):
    inner = "<w:t>words of a line </w:t><w:br/>"
    short, _ = read_time(made(tmp_path, f"<w:p><w:r>{inner * 4_000}</w:r></w:p>"))
    long, page = read_time(made(tmp_path, f"<w:p><w:r>{inner * 40_000}</w:r></w:p>"))
    assert long < 25 * short
    assert page.text == ("words of a line\n" * 40_000).rstrip()


def test_spaces_and_lines_of_a_paragraph_in_pieces(tmp_path):
    pieces = (
        "<w:br/>",
        " a ",
        " ",
        "<w:br/>",
        " ",
        "<w:br/>",
        "b",
        "<w:tab/>",
        " c ",
        "",
        "<w:br/>",
    )
    inner = "".join(p if p.startswith("<") else f"<w:t>{p}</w:t>" for p in pieces)
    assert read_docx(made(tmp_path, f"<w:p><w:r>{inner}</w:r></w:p>")).page.text == "a\n\nb c"


def test_a_deep_drawing_takes_no_longer_than_a_flat_one(tmp_path):
    wide = "<a:y/>" * 20_000
    flat, _ = read_time(made(tmp_path, drawn(wide)))
    deep, _ = read_time(made(tmp_path, drawn("<a:x>" * 240 + wide + "</a:x>" * 240)))
    assert deep < 5 * flat


def inserted(tmp_path, data, times=1):
    relations, parts = [("a", "aFChunk", "a.mht")], [("word/a.mht", data)]
    return read_docx(made(tmp_path, '<w:altChunk r:id="a"/>' * times, relations, parts)).page


def test_an_inserted_file_is_read_once(tmp_path):
    page = inserted(tmp_path, b"<p>Text.</p>", times=3)
    assert page.text == "Text."
    assert page.left_out.text == {"inserted files that are named again (number)": 2}


def test_messages_in_messages_without_end_are_counted(tmp_path):
    head = "Content-Type: multipart/mixed; boundary=b{0}\r\n\r\n--b{0}\r\n"
    data = "MIME-Version: 1.0\r\n" + "".join(map(head.format, range(1_000)))
    page = inserted(tmp_path, data + "Content-Type: text/html\r\n\r\n<p>Deep</p>\r\n")
    assert page.left_out.text == {"parts that cannot be read (number)": 1}


def test_all_of_a_message_that_is_no_page_and_no_image_is_counted(tmp_path):
    kinds = ("text/html", "application/xhtml+xml", "text/rtf", "text/xml", "image/png")
    parts = "".join(f"--B\r\nContent-Type: {kind}\r\n\r\n<p>{kind}</p>\r\n" for kind in kinds)
    head = "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=B\r\n\r\n"
    page = inserted(tmp_path, f"{head}Before.\r\n{parts}--B--\r\nAfter.")
    assert [block.text for block in page.blocks] == list(kinds[:2])
    lost = "Before.<p>text/rtf</p><p>text/xml</p><p>image/png</p>After."  # the last is no image
    assert page.left_out.text == {"inserted files (bytes)": len(lost)}


def test_what_is_beyond_the_time_is_counted(tmp_path):
    body = "<w:p><w:r><w:t>Text.</w:t></w:r></w:p>" + drawn('<a:blip r:embed="a"/>')
    page = read_docx(made(tmp_path, body, parts=[("word/n.xml", part("Note"))]), seconds=0).page
    assert (page.blocks, page.images) == ((), ())
    assert page.left_out.images == {"beyond the limit on time": 1}
    assert page.left_out.text == {
        "beyond the limit on time": 5,
        "parts beyond the limit on time (number)": 1,
    }


@pytest.mark.parametrize("kinds", [["header", "image"], ["image"], ["styles"]])
def test_text_parts_that_pass_for_something_else_are_counted(tmp_path, kinds):
    relations = [(f"r{n}", kind, "header1.xml") for n, kind in enumerate(kinds)]
    header = f"<w:hdr {NAMES}><w:p><w:r><w:t>Hidden words.</w:t></w:r></w:p></w:hdr>"
    body = drawn('<a:blip r:embed="r0"/><a:blip r:embed="r1"/>')
    page = read_docx(made(tmp_path, body, relations, [("word/header1.xml", header)])).page
    assert page.left_out.text["headers and footers"] == len("Hidden words.")


@pytest.mark.parametrize(
    ("head", "packed", "lost"),
    [
        ("Content-Transfer-Encoding: base64", "PHA+VGV4dC48L3A+QQ==TW9yZQ==", 8),
        ("Content-Transfer-Encoding: base64", "PHA+VGV4dC48L3A+\r\n", 0),
        ("Content-Transfer-Encoding: x-uuencode", "begin 666 a\r\n#0V%T\r\n`\r\nend\r\nMore.", 5),
    ],
)
def test_what_follows_the_end_of_a_packed_message_is_counted(tmp_path, head, packed, lost):
    data = f"MIME-Version: 1.0\r\nContent-Type: text/html\r\n{head}\r\n\r\n{packed}"
    (part,) = message_from_string(data).walk()
    assert docx_inserted._behind(part) == lost
