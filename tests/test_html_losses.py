"""No text of a page is lost without being counted, whatever its tags are."""

import time
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from word_pages import MARKS, TAGS, lost_letters, page_with_words

from sightline.readers import html
from sightline.readers.html import read_html
from sightline.readers.markdown import read_markdown

COMMENTS = "comments in the source"


@pytest.mark.parametrize(
    ("page", "left_out"),
    [
        ("<p>Text.</p><!-- a <p>b</p> c", {COMMENTS: 12}),
        ("<!-- a <p>b</p>", {COMMENTS: 10}),
        ("<p>Text.</p></html><!-- a -->", {COMMENTS: 1}),
        ("<p>Text.<![CDATA[ a ]]></p>", {COMMENTS: len("[CDATA[ a ]]")}),
        ("<p>Text.</ a b><? c ?></p>", {COMMENTS: len("a b" + "? c ?")}),
        ("<p>Text.</p><?a b", {"unfinished tag": 5}),
        ("<?xml version='1.0'?><!DOCTYPE html><p>Text.</p>", {}),
        ("<!DOCTYPE a b><p>Text.</p>", {COMMENTS: 13}),
        ("<!DOCTYPE html public a><p>Text.</p>", {COMMENTS: 23}),
        ("<!DOCTYPE HTML PUBLIC '-//W3C//DTD' \"x\"><p>Text.</p>", {}),
        ("<?xml version='1.0'?><?xml a b?><p>Text.</p>", {COMMENTS: 9}),
        ("<p>Text.</p><script>a <b", {"scripts and styles": 4}),
        ("<p>Text.</p><!-- a <b", {COMMENTS: 4}),
        ("<p>Text.</p><select>a<!-- b --></select>", {"controls": 1, COMMENTS: 1}),
        ("<p>Text.</p><math><title>a<!-- b --></title></math>", {COMMENTS: 1}),
        ("<h1>Text.</h1><title>a Text. b</title>", {"rest of the title": 4}),
    ],
)
def test_what_is_no_text_to_a_browser_is_counted(page, left_out):
    found = read_html(page)
    assert [block.text for block in found.blocks] == ["Text."] * ("Text." in page)
    assert found.left_out.text == left_out


def test_comments_of_a_page_that_is_rewritten_are_counted():
    lost = "<?xml a b c?><!-- a <p>b</p>"
    page = read_html("<!DOCTYPE html><p>Text.</p>" + "<b>" * 20_000 + lost)
    assert [block.text for block in page.blocks] == ["Text."]
    assert page.left_out.text == {COMMENTS: len(lost)}


def test_templates_are_counted_wherever_they_are():
    row = "<table><tr><td>One</td></tr><template><tr><td>ab</td></tr></template></table>"
    nested = (
        "<template>c<template>de<!-- f --></template></template><svg><template>g</template></svg>"
    )
    page = read_html(f"{row}<p>Two</p>{nested}")
    assert [block.text for block in page.blocks] == ["One", "Two"]
    assert page.left_out.text == {"scripts and styles": 2 + 3, COMMENTS: 1, "inline svg": 1}


def test_what_is_open_in_a_template_ends_with_it():
    page = read_html("<div><p>One</p><template><div><p>a<li><b></template> two</div><p>Three</p>")
    assert [block.text for block in page.blocks] == ["One", "two", "Three"]
    assert page.left_out.text == {"scripts and styles": 1}


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<frameset><p>One</p> two<frame src=a></frameset><noframes>b</noframes>", ["One", "two"]),
        ("<math><image>One</image> <input>two</math>", ["One two"]),
        ("<?xml version='1.0'?><p>One <![CDATA[<b> & c]]> two</p>", ["One <b> & c two"]),
        ("<?xml version='1.0'?><p title='<![CDATA['>One<!-- <![CDATA[ --></p>", ["One"]),
        ("<?xml version='1.0'?><p>One <![CDATA[two</p>", ["One two</p>"]),
    ],
)
def test_text_that_parsers_drop_is_read(page, texts):
    assert [block.text for block in read_html(page).blocks] == texts


XHTML = "http://www.w3.org/1999/xhtml"
SVG = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        (f"<a xmlns:é.1='{XHTML}'><é.1:p>One</é.1:p><é.1:br/><é.1:p>Two</é.1:p></a>",
         ["One", "Two"]),
        (f"<x:div\nxmlns:x = \"{XHTML}\"><x:p/>One<x:P>Two</x:P></x:div>", ["One", "Two"]),
        (f"<p xmlns:x='{XHTML}'>One <![CDATA[<x:p>]]> two</p>", ["One <x:p> two"]),
        (f"<p xmlns:x='{XHTML}'>One <y:p>two</y:p><x:2>three</p>", ["One twothree"]),
        ("<p xmlns:x='urn:x'>One<x:p>two</x:p></p>", ["Onetwo"]),
    ],
)  # fmt: skip
def test_prefixes_of_xhtml_are_dropped_where_a_page_is_xml(page, texts):
    found = read_html(page, xml=True)
    assert [block.text for block in found.blocks] == texts
    assert not found.left_out.to_record()


def test_images_in_a_drawing_with_prefixes_are_found():
    page = (
        f"<html xmlns:s='{SVG}' xmlns:h='{XHTML}'><s:svg><s:title>a</s:title>"
        "<s:image href='b.png'/></s:svg><h:p>One</h:p></html>"
    )
    found = read_html(page, xml=True, images_in_svg=True)
    assert [image.source for image in found.images] == ["b.png"]
    assert [block.text for block in found.blocks] == ["One"]
    assert found.left_out.text == {"inline svg": 1}


@pytest.mark.parametrize(
    "declarations",
    [
        "[<!ENTITY foo 'bar'>]",
        '[ <!ENTITY a "]>"> <!-- \' ]> --> <?b ]> ?> <!ELEMENT c (d)> %e; ]\n',
    ],
)
@pytest.mark.parametrize("start", ["", "<?xml version='1.0'?>\n", "<?xml version='1.0'?><!--a-->"])
@pytest.mark.parametrize("name", ["html", "html PUBLIC '-//W3C//DTD' \"x\""])
def test_declarations_in_a_document_type_are_counted(declarations, start, name):
    page = f"{start}<!DOCTYPE {name} {declarations}><p>Text &foo;.</p>"
    found = read_html(page, xml=True)
    assert [block.text for block in found.blocks] == ["Text &foo;."]
    size = len("<!doctype " + declarations) + start.count("a-->")
    assert found.left_out.text == {COMMENTS: size}


def test_declarations_that_nobody_ends_take_no_text():
    found = read_html("<!DOCTYPE html [ <!ENTITY a 'b> ]><p>Text.</p>", xml=True)
    assert found.blocks[-1].text == "Text."
    found = read_html("<p>Text.</p><!DOCTYPE html [ <!ENTITY a> c ]>", xml=True)
    assert [block.text for block in found.blocks] == ["Text.", "c ]>"]


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE a [" + "<!--" * 500_000,
        "<!-- -->" * 250_000 + "<!DOCTYPE a [" * 100_000,
        f"<a xmlns:h='{XHTML}'>" + "<h:" * 500_000,
        "<a " + "".join(f" xmlns:a{n}='{XHTML}'" for n in range(40_000)) + "><a9:p>" * 40_000,
        " xmlns:a" * 250_000 + " " * 1_000_000,
    ],
)
def test_xml_is_made_html_in_linear_time(page):
    start = time.process_time()
    html._xml_as_html(page)
    assert time.process_time() - start < 5  # 0.4 s at most (measured)


def test_frames_and_images_in_what_is_skipped_are_counted():
    page = read_html("<frameset><frame src=a><FRAME src=b></frameset>")
    assert page.left_out.images == {"embedded media": 2}
    page = read_html("<template><p><img src=a></template><video><amp-img src=b></video>")
    assert page.left_out.images == {"scripts and styles": 1, "embedded media": 2}


def test_names_of_tags_stay_as_they_are_in_text():
    page = read_html(
        "<title>Use <template></title><img src=a alt='a <TEMPLATE shadowrootmode=open> tag'>"
        "<xmp></frameset><frame></xmp><p>sightline-template</p>"
    )
    assert page.title == "Use <template>"
    assert page.images[0].alt == "a <TEMPLATE shadowrootmode=open> tag"
    assert [block.text for block in page.blocks] == ["</frameset><frame>", "sightline-template"]


BYTES = st.binary(max_size=60)


@settings(deadline=None, max_examples=400)
@given(BYTES, st.booleans(), st.booleans())
def test_no_word_between_any_tags_is_lost_uncounted(data, xml, rewritten):
    text = page_with_words(data, TAGS)
    with patch("sightline.readers.html_limits._is_harmless", return_value=not rewritten):
        page = read_html(text, xml=xml)
    assert lost_letters(text, page) <= page.left_out.text.total()


@settings(deadline=None, max_examples=200)
@given(BYTES)
def test_no_word_of_markdown_is_lost_uncounted(data):
    text = page_with_words(data, MARKS + TAGS)
    page = read_markdown(text)
    assert lost_letters(text, page) <= page.left_out.text.total()


def test_the_rule_sees_a_loss():
    page = read_html("<p>w100 w101</p>")
    assert lost_letters("w100 w102 w103", page) == 8
    assert lost_letters("w100 w101", page) == 0


def test_a_tag_that_is_never_closed_is_counted():
    """To a parser, all after `<b` is part of a tag."""
    page = read_html("<p>If a <b and c, then there is more text")
    assert [block.text for block in page.blocks] == ["If a"]
    assert page.left_out.text == {"unfinished tag": len("<b and c, then there is more text")}
    assert read_html("<p>If a < b, 2 <3, a<").left_out.text == {}
    assert read_html("<p>Text</p>\n").left_out.text == {}


@pytest.mark.parametrize(
    ("start", "lost"),
    [
        ("<p>Text.</p>", '<img src=a.png title="b><p>More text, and more.</p>'),
        ("<p title='a=\"'>Text.</p><!-- \" -->", "<a href = 'b>More <i>text</i>.</a> <p>End"),
        ("<script>a = '<b c=\"'</script><p>Text.</p>", '<a href=x b="'),
        ("<p>Text.</p>", "<a title='b>c' and more"),
        ("<p>Text.</p><svg><script>", "<a b='c</script></svg>"),
    ],
)
def test_a_quote_that_is_never_closed_is_counted(start, lost):
    """To a parser, all after it is part of a tag."""
    page = read_html(start + lost)
    assert [block.text for block in page.blocks] == ["Text."] and not page.images
    assert page.left_out.text["unfinished tag"] == len(lost)


@pytest.mark.parametrize(
    "page",
    [
        '<p>Text.</p><a href="?a=">b</a>',
        "<p>Text, a='b</p>",
        "<p>Text.</p><script>a='b</script>",
        "<p>Text.</p><!-- <a b='c -->",
        "<p>Text. <3 a=' b</p>",
        "<p>Text.</p><plaintext>a <b",
    ],
)
def test_quotes_that_begin_no_value_take_nothing(page):
    assert "unfinished tag" not in read_html(page).left_out.text
