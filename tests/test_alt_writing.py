"""Copies of articles with alternative texts: only these differ, whatever the source looks like."""

import html as html_library
import re
import time
import zipfile
from dataclasses import replace

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sightline.alt_text import Candidate, audit_article, with_candidates
from sightline.alt_writing import choose, write_alts
from sightline.articles import read_article
from sightline.image_places import find_places
from sightline.problems import SightlineError
from sightline.readers.html import read_html
from sightline.readers.markdown import read_markdown
from sightline.source_edits import SourceText, splice
from sightline.tag_attributes import find_attribute, one_line, set_attribute


def candidate(text, sentence=0, span=(0, 0), score=0.5, confidence=None, linked=True):
    return Candidate(sentence, span, text, score, confidence, linked, fits=True)


_BINDING = r' (?:id|aria-describedby)="sightline-\d"'


def written(tmp_path, name, source, texts):
    """Write texts (by image) into a copy of an article; gives the copy's bytes."""
    path = tmp_path / name
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    before = path.read_bytes()
    alts = audit_article(read_article(path))
    chosen = {index: candidate(text) for index, text in texts.items()}
    result = write_alts(alts, chosen, tmp_path / f"copy-{name}")
    assert path.read_bytes() == before
    assert set(result.written) == set(texts)
    data = (tmp_path / f"copy-{name}").read_bytes()
    # The sentence is made up, and so is the element that it stands in.
    return re.sub(_BINDING.encode(), b"", data)


HOSTILE = """<!DOCTYPE html>\r
<body><p>Long enough text of a paragraph, so that it is content.</p>
<!-- <img src="0.jpg" alt="x"> --><!--><img src=1.jpg>
<script>"<img src='2.jpg'>"</script><style>/* <img src=3.jpg> */</style>
<textarea><img src=4.jpg></textarea><template><img src=5.jpg></template>
<p title="<img src=6.jpg>" data-x='<img src="7.jpg">'>More text, which goes on and on.</p>
<IMG/SRC="8.jpg"/ALT='old'/><img alt src=9.jpg><img src=a.jpg?a>b" title='>'>
<img src="b.jpg" title="a > b" alt = image ><img src=c.jpg alt="one" alt="two"
>\xe9</body>"""


def test_only_the_images_that_the_reader_sees_are_touched(tmp_path):
    page = read_html(HOSTILE)
    sources = [image.source for image in page.images]
    assert sources == ["1.jpg", "8.jpg", "9.jpg", "a.jpg?a", "b.jpg", "c.jpg"]
    data = written(tmp_path, "page.html", HOSTILE, {0: 'A "dog" & <cat>', 2: "nine", 4: "b's"})
    expected = HOSTILE.replace(
        "<img src=1.jpg>", '<img alt="A &quot;dog&quot; &amp; &lt;cat&gt;" src=1.jpg>'
    )
    expected = expected.replace("<img alt src=9.jpg>", '<img alt="nine" src=9.jpg>')
    expected = expected.replace("alt = image >", 'alt="b&#x27;s" >')
    assert data == expected.encode()
    alts = [image.alt for image in read_html(data).images]
    assert alts == ['A "dog" & <cat>', "old", "nine", None, "b's", "one"]


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        ("utf-8-sig", ""), ("utf-16", ""), ("cp1252", '<meta charset="latin1">'),
        ("shift_jis", "<meta charset=shift_jis>"),
    ],
)  # fmt: skip
def test_the_encoding_stays_and_what_it_lacks_is_written_as_references(tmp_path, encoding, head):
    letters = "\u8868\u30bd" if encoding == "shift_jis" else "\xe9"
    source = f"{head}<p>Text {letters}.</p><img src=a.jpg>{letters}"
    data = written(tmp_path, "page.html", source.encode(encoding), {0: "\u2192 \U0001f600"})
    decoded = re.sub(_BINDING, "", data.decode(encoding))
    assert decoded.startswith(source.partition("<img")[0]) and decoded.endswith(letters)
    assert read_html(data).images[0].alt == "\u2192 \U0001f600"


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path):
    source = b"<p>Caf\xe9 and \xc3\xa9 \xff text.</p><img src=a.jpg>\xfe\xff"
    data = written(tmp_path, "page.html", source, {0: "A dog"})
    assert data == source.replace(b"<img", b'<img alt="A dog"')


def test_a_description_is_the_element_of_the_sentence(tmp_path):
    source = (
        "<article><p class=x>A dog runs here. It is fast.</p><img src=a.jpg>"
        "<p ID='two words'>A cat sleeps. It dreams.</p><img src=b.jpg>"
        "<p id=third>A bird sings. It is loud.</p><img src=c.jpg>"
        "<p>A horse stands alone.</p><img src=d.jpg><img src=e.jpg aria-describedby=third>"
        "<ul><li>A cow eats. It is calm.<ul><li>Inner.</li></ul></li></ul><img src=f.jpg>"
        "<b>sightline-1</b></article>"
    )
    path = tmp_path / "page.html"
    path.write_text(source)
    article = read_article(path)
    alts = audit_article(article)
    sentences, spans = article.document.sentences, article.document.extra["spans"]
    wanted = [0, 2, 4, 6, 5, sentences.index("A cow eats.")]
    chosen = {index: candidate(sentences[s], s, tuple(spans[s])) for index, s in enumerate(wanted)}
    result = write_alts(alts, chosen, tmp_path / "copy.html")
    copy = (tmp_path / "copy.html").read_text()
    # Not the second (its id cannot be referred to), the fourth (it would be read twice), the fifth
    # (it has one).
    assert result.described == {0, 2, 5}
    assert '<p id="sightline-2" class=x>A dog' in copy
    assert '<img alt="A dog runs here." aria-describedby="sightline-2" src=a.jpg>' in copy
    assert '<img alt="A bird sings." aria-describedby="third" src=c.jpg>' in copy
    assert '<li id="sightline-3">A cow' in copy
    again = audit_article(read_article(tmp_path / "copy.html"))
    assert again.findings == 0


def test_markdown(tmp_path):
    source = (
        "---\ntitle: ![x](y)\n---\n# Head\r\n\r\nText ![](a.png) and ![image](b.png 'title').\r\n"
        "`![](code.png)` \\![](no.png)\n\n    ![](indented.png)\n\n"
        "[![](c.png)](to) ![img][ref] ![Ref] ![ref][]\n\n![pic [1] \\] x](d.png)\n\n"
        '<img src="e.png">\n\n[ref]: f.png\n'
    )
    page = read_markdown(source)
    sources = ["a.png", "b.png", "c.png", "f.png", "f.png", "f.png", "d.png", "e.png"]
    assert [image.source for image in page.images] == sources
    texts = {n: f"A [dog] *no* {n} <b> & _x_ \\ `c` | !" for n in range(8) if n != 6}
    data = written(tmp_path, "page.md", source, texts).decode()
    copy = read_markdown(data)
    assert [i.alt for i in copy.images] == [texts.get(n, page.images[n].alt) for n in range(8)]
    assert copy.text == page.text
    kept = ["---\ntitle: ![x](y)\n---\n# Head\r\n\r\nText ![", "`![](code.png)` \\![](no.png)"]
    assert all(piece in data for piece in kept)
    assert "][Ref]" in data and data.endswith("\n\n[ref]: f.png\n")


def test_markdown_addresses_in_angle_brackets_are_no_tags(tmp_path):
    source = "![](img/a.png)\n\n![x](<img/b.png>)\n\n[![]( <img/c.png>)](<img/d>)\n\n[r]: <img/e>\n"
    data = written(tmp_path, "page.md", source, {0: "One.", 1: "Two.", 2: "Three."}).decode()
    assert [image.alt for image in read_markdown(data).images] == ["One.", "Two.", "Three."]


def test_word_files(tmp_path):
    for colour in ("teal", "gold", "red"):
        Image.new("RGB", (300, 200), colour).save(tmp_path / f"{colour}.png")
    document = docx.Document()
    document.add_paragraph("A dog runs. It is fast.")
    for colour in ("teal", "gold", "red"):
        document.add_picture(str(tmp_path / f"{colour}.png"))
    document.save(tmp_path / "a.docx")
    before = (tmp_path / "a.docx").read_bytes()
    article = read_article(tmp_path / "a.docx")
    assert len(article.images) == 3
    alts = audit_article(article)
    chosen = {0: candidate('A "dog" & <cat>\x01'), 2: candidate("Red")}
    result = write_alts(alts, chosen, tmp_path / "copy.docx")
    assert (tmp_path / "a.docx").read_bytes() == before
    assert set(result.written) == {0, 2}
    copy = read_article(tmp_path / "copy.docx")
    assert [i.alt for i in copy.images] == ['A "dog" & <cat>', article.images[1].alt, "Red"]
    assert copy.page.text == article.page.text
    with (
        zipfile.ZipFile(tmp_path / "a.docx") as old,
        zipfile.ZipFile(tmp_path / "copy.docx") as new,
    ):
        assert old.namelist() == new.namelist()
        differing = [n for n in old.namelist() if old.read(n) != new.read(n)]
    assert differing == ["word/document.xml"]
    docx.Document(str(tmp_path / "copy.docx"))


def with_pictures(tmp_path, inner, members=()):
    """Make a Word file with a paragraph, and a drawing of the pictures `i` and `j`."""
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    picture = tmp_path / "picture.png"
    Image.new("RGB", (300, 200), "teal").save(picture)
    relations = "".join(
        f'<Relationship Id="{name}" Type="x/image" Target="{name}.png"/>' for name in "ij"
    )
    with zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "word/document.xml",
            f'<w:body xmlns:w="{main}"><w:p><w:r><w:t>A dog runs.</w:t></w:r></w:p>'
            f"<w:p><w:r><w:drawing>{inner}</w:drawing></w:r></w:p></w:body>",
        )
        file.writestr("word/_rels/document.xml.rels", f"<x>{relations}</x>")
        for name in "ij":
            file.write(picture, f"word/{name}.png")
        for name, data in members:
            file.writestr(name, data)
    return audit_article(read_article(tmp_path / "a.docx"))


GROUP = (
    "<docPr/><!-- <docPr --><wgp>"
    + "".join(f'<pic><nvPicPr><cNvPr/></nvPicPr><blip embed="{n}"/></pic>' for n in "ij")
    + "</wgp>"
)


def test_pictures_of_a_group_in_a_word_file_get_a_text_each(tmp_path):
    alts = with_pictures(tmp_path, GROUP)
    chosen = {0: candidate("One"), 1: candidate("Two")}
    assert set(write_alts(alts, chosen, tmp_path / "copy.docx").written) == {0, 1}
    copy = read_article(tmp_path / "copy.docx")
    assert [image.alt for image in copy.images] == ["One", "Two"]


def test_members_of_word_files_are_copied_as_they_are_packed(tmp_path):
    members = [(f"word/{n}.xml", "<a><docPr/></a>") for n in range(3000)]
    alts = with_pictures(tmp_path, GROUP, members)
    started = time.process_time()
    write_alts(alts, {0: candidate("One")}, tmp_path / "copy.docx")
    assert time.process_time() - started < 5
    with (
        zipfile.ZipFile(tmp_path / "a.docx") as old,
        zipfile.ZipFile(tmp_path / "copy.docx") as new,
    ):
        assert new.testzip() is None
        assert new.namelist() == old.namelist()
        for name in old.namelist()[1:]:
            before, after = old.getinfo(name), new.getinfo(name)
            assert (before.CRC, before.compress_size) == (after.CRC, after.compress_size)


def test_a_word_file_beyond_the_limit_or_damaged_is_not_copied(tmp_path, monkeypatch):
    alts = with_pictures(tmp_path, GROUP, [("word/last.bin", b"12345678" * 100)])
    path = tmp_path / "a.docx"
    whole = path.read_bytes()
    start = whole.rindex(b"PK\3\4")
    path.write_bytes(whole[:start] + b"PK\0\0" + whole[start + 4 :])
    with pytest.raises(SightlineError, match="damaged"):
        write_alts(alts, {0: candidate("One")}, tmp_path / "copy.docx")
    path.write_bytes(whole)
    monkeypatch.setattr("sightline.docx_alts._MOST_BYTES", 100)
    with pytest.raises(SightlineError, match="the limit for writing"):
        write_alts(alts, {0: candidate("One")}, tmp_path / "copy.docx")
    assert not (tmp_path / "copy.docx").exists()


def test_the_article_itself_and_other_formats_are_refused(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<p>Text.</p><img src=a.jpg>")
    (tmp_path / "link.html").symlink_to(path)
    alts = audit_article(read_article(path))
    for target in (path, tmp_path / "link.html"):
        with pytest.raises(SightlineError, match="is the article itself"):
            write_alts(alts, {0: candidate("A dog")}, target)
    epub = replace(alts, article=replace(alts.article, kind="epub"))
    with pytest.raises(SightlineError, match="not into EPUB"):
        write_alts(epub, {}, tmp_path / "b.epub")


def test_an_image_that_cannot_be_found_is_said(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<p>Text.</p><img src=a.jpg><img src=b.jpg>")
    alts = audit_article(read_article(path))
    places = replace(alts.places, images=[None, alts.places.images[1]])
    chosen = {0: candidate("A dog"), 1: candidate("A cat")}
    result = write_alts(replace(alts, places=places), chosen, tmp_path / "copy.html")
    assert (set(result.written), result.not_found, result.no_candidate) == ({1}, (0,), ())


# ---- which texts are chosen


def offered(tmp_path, matrix_SV, links):
    path = tmp_path / "a.html"
    path.write_text(
        "<p>A dog runs along here. A cat sleeps in the sun. A bird sings loudly today.</p>"
        "<img src=a.jpg><img src=b.jpg alt='A good text'><img src=c.jpg>"
    )
    keys = ("sentence", "image", "score", "confidence")
    record = {
        "links": [dict(zip(keys, link, strict=True)) for link in links],
        "images": [{"status": "ok", "reason": None}] * 3,
        "matrix": matrix_SV,
    }
    return with_candidates(audit_article(read_article(path)), record)


def test_no_sentence_is_chosen_twice_and_good_texts_stay(tmp_path):
    matrix_SV = [[0.9, 0.9, 0.8], [0.2, 0.1, 0.3], [0.1, 0.1, 0.1]]
    alts = offered(tmp_path, matrix_SV, [])
    chosen = choose(alts, min_score=0.0)
    assert {i: c.sentence for i, c in chosen.items()} == {0: 0, 2: 1}
    assert list(choose(alts, min_score=0.5)) == [0]


def test_confidence_is_asked_of_linked_sentences(tmp_path):
    matrix_SV = [[0.9, 0.9, 0.8], [0.2, 0.1, 0.3], [0.1, 0.1, 0.1]]
    alts = offered(tmp_path, matrix_SV, [(0, 0, 0.9, 0.7), (1, 2, 0.3, 0.4)])
    assert list(choose(alts)) == [0]
    assert list(choose(alts, min_confidence=0.3)) == [0, 2]
    assert list(choose(alts, min_confidence=0.3, min_score=0.5)) == [0]
    with pytest.raises(SightlineError, match="--min-score"):
        choose(offered(tmp_path, matrix_SV, [(0, 0, 0.9, None)]))


# ---- the parts


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            ["<img src=a.jpg>", "<img ", "alt=", '"', "'", ">", "<p>", "text ", "<!--", "-->", "/",
             "<script>", "</script>", "<a href=x>", "</a>", "src=b.jpg ", "=", " ", "<svg>", "\0",
             "<table>", "<td>", "<noscript>", "<title>", "]]>", "<![CDATA[", "&quot;", "\xe9", "<"]
        ),
        max_size=30,
    )
)  # fmt: skip
def test_any_image_that_is_found_can_be_given_a_text(pieces):
    # A zero byte first would pass for UTF-16, of which an odd number of bytes is refused.
    source = SourceText.decode("".join(["<p>", *pieces]).encode(), declared=True)
    page = read_html(source.text)
    sources = [image.source for image in page.images]
    places = find_places(source, read_html, sources, markdown=False)
    assert len(places.images) == len(sources)
    found = {n: place for n, place in enumerate(places.images) if place is not None}
    edits = [set_attribute(source, p.place, "alt", f"text {n}") for n, p in found.items()]
    copy = read_html(splice(source.text, edits))
    expected = [f"text {n}" if n in found else image.alt for n, image in enumerate(page.images)]
    assert [image.alt for image in copy.images] == expected


@pytest.mark.parametrize("tag", ["<img src=a alt='b>\n<p>c", '<img title="a alt=b> <p>c'])
def test_a_quote_that_nobody_closes_costs_nothing(tag):
    """All that follows is in the quote, for browsers; it stays, whatever is set."""
    source = SourceText(tag, "utf-8")
    assert find_attribute(tag, 4, "alt") is None
    copy = splice(tag, [set_attribute(source, 4, "alt", "text")])
    assert copy == tag.replace("<img", '<img alt="text"')
    assert find_attribute(copy, 4, "alt")[2] == "text"


@settings(deadline=None)
@given(st.text(max_size=40), st.sampled_from(["utf-8", "cp1252", "cp932"]))
def test_any_text_comes_back_from_an_attribute(text, encoding):
    source = SourceText("<img src=a.jpg>", encoding)
    copy = splice(source.text, [set_attribute(source, 4, "alt", text)])
    data = source.encode(copy)
    found = find_attribute(data.decode(encoding), 4, "alt")
    assert found is not None
    # References to C1 controls and the like mean other characters in HTML, and so does unescape.
    assert found[2] == html_library.unescape(html_library.escape(one_line(text)))


@given(st.binary(max_size=60))
def test_bytes_come_back_or_are_refused(data):
    try:
        source = SourceText.decode(data, declared=True)
    except SightlineError:
        return
    assert source.encode(source.text) == data


def test_names_of_ours_that_a_page_has_take_no_time(tmp_path):
    names = " ".join(f"sightline-{number}" for number in range(1, 20_000))
    source = f"<!-- {names} --><p>A dog runs. It barks.</p><img src=a.jpg>"
    started = time.process_time()
    copy = written(tmp_path, "page.html", source, {0: "A dog runs."}).decode()
    assert time.process_time() - started < 5
    assert 'aria-describedby="sightline-20000"' in copy


def test_code_about_images_takes_no_time_to_find_places_in(tmp_path):
    source = "![](a.png)\n\n```\n" + "<img " * 200_000 + "\n```\n"
    started = time.process_time()
    (tmp_path / "page.md").write_text(source)
    audited = audit_article(read_article(tmp_path / "page.md"))
    assert time.process_time() - started < 8 and audited.images[0].line == 1


def test_pages_that_take_long_to_read_are_not_read_again(tmp_path):
    (tmp_path / "page.md").write_text("![](a.png)\n\nA dog.\n")
    article = replace(read_article(tmp_path / "page.md"), seconds=2.0)
    assert audit_article(article).images[0].line is None
