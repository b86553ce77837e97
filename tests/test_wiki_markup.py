"""Wikitext to plain paragraphs, whatever is open, nested or broken."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wiki_markup import strip_markup

ARTICLE = """{{Infobox country|name=Mauritius|flag=[[File:a.png|20px]]|{{coord|1|2}}
|other={|
| a
|}}}
[[File:Port.jpg|thumb|left|The [[harbour|port]] of {{lang|fr|Port Louis}}, seen from the sea]]
'''Mauritius''' ({{lang-fr|Maurice}}, {{IPA|x}}), officially the ''Republic of Mauritius'',<ref
name="a">Some {{cite web|url=http://x}} here.</ref> is an [[island country|island nation]] in the
[[Indian Ocean]].<ref name="b"/> It has 1.2&nbsp;million people<!-- not
counted since -->.

== History ==
:''Main article: [[History of Mauritius]]''
* The first [[settler]]s
* Trade<br/>and war
{| class="wikitable"
! A !! B
|-
| 1 || {{x|y}} [[z]]
|}
After the table.

[[Category:Islands]]
[[de:Mauritius]]
"""


def test_a_whole_article():
    assert strip_markup(ARTICLE) == [
        "Mauritius, officially the Republic of Mauritius, is an island nation in the Indian Ocean. "
        "It has 1.2 million people.",
        "Main article: History of Mauritius",
        "The first settlers",
        "Trade",
        "and war",
        "After the table.",
    ]


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("a '''bold''' and ''italic'' '''''both''''' word's", "a bold and italic both word's"),
        ("it isn''''t''' so", "it isn't so"),
        ("[[a]] [[b|c]] [[d|e ''f'']]s [[g#h|i]]", "a c e fs i"),
        (
            "[http://x.org/a_b the site], [https://y.org] and http://z.org",
            "the site, and http://z.org",
        ),
        ("a [[File:x.jpg|thumb|b [[c|d]] {{e}} f]] g", "a g"),
        ("a [[Image:x.jpg]] [[Bild:y.jpg|z]] [[Fichier:a.png|b]] c", "a c"),
        ("[[Category:A]][[Kategorie:B]] [[:Category:Shown]]", "Category:Shown"),
        ("[[de:X]] [[zh-min-nan:Y]] [[simple:Z]] [[CSI: Miami]]", "CSI: Miami"),
        ("a {{b|{{c}}|d={{{e|f}}}}} g", "a g"),
        ("{{{{a}}}} b {{{c}}} d", "b d"),
        ("{{a|x|}} b", "b"),
        ("E = <math>mc^2 < 3</math> holds", "E = holds"),
        ("a<ref>b [[c]]</ref><ref name=d /> e<REF>f</Ref>", "a e"),
        ("a <b>b</b> <span class='x'>c</span> <sup>2</sup> H<sub>2</sub>O", "a b c 2 H2O"),
        ("<nowiki>''a'' [[b]] {{c}}</nowiki> d", "''a'' [[b]] {{c}} d"),
        ("a &lt;b&gt; &amp; &#8212; &eacute; &nosuch;", "a <b> & — é &nosuch;"),
        ("a <!-- b --> c <!-- d", "a c"),
        ("__NOTOC__ a ~~~~", "a"),
        ("a [sic] b [1]", "a [sic] b [1]"),
        ("<table><tr><td>a</td></tr></table> b", "b"),
        ("a <gallery>\nFile:x.jpg|caption\n</gallery> b", "a b"),
        ("French (''{{lang|fr|x}}'') or ( ; ) it", "French or it"),
        ("a | b || c", "a | b || c"),
        ("[[a|b|c]]", "b|c"),
    ],
)
def test_one_construct(wikitext, plain):
    assert strip_markup(wikitext) == [plain]


def test_headings_are_left_out():
    text = "a\n== b ''c'' ==\nd\n=e=\n= f"
    assert strip_markup(text) == ["a", "d", "= f"]


def test_paragraphs_and_list_items():
    text = "one\nand more\n\n\ntwo\n* three\n** four\n# five\n; six : seven\n: eight\n----\nnine"
    expected = ["one and more", "two", "three", "four", "five", "six : seven", "eight", "nine"]
    assert strip_markup(text) == expected
    assert strip_markup("") == []


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("{{Infobox\n| name = x\nThe text. {{a}} More.", ["Infobox", "The text. More."]),
        ("a }} b {{c}} d", ["a b d"]),
        ("a {{b [[c}} d [[e|f]] g", ["a d f g"]),
        ("a [[b c {{d}} e", ["a b c e"]),
        ("a ]] b", ["a b"]),
        ("{|\n| a\nThe text.", ["The text."]),
        ("a\n|}\nb", ["a b"]),
        ("a <ref>b", ["a b"]),
        ("a <math> b", ["a b"]),
        ("[[File:x.jpg|a [[b]] c", ["File:x.jpg|a b c"]),
    ],
)
def test_what_is_never_closed_loses_its_signs_and_keeps_its_text(wikitext, plain):
    assert strip_markup(wikitext) == plain


def test_tables_in_tables_and_templates_in_tables():
    text = "a\n{| x\n| {{t|1}}\n{|\n| b\n|}\n| c\n|}\nd"
    assert strip_markup(text) == ["a", "d"]


PIECES = st.sampled_from(
    [
        *(
            "{{",
            "}}",
            "{{{",
            "}}}",
            "{|",
            "|}",
            "\n{|",
            "\n|}",
            "[[",
            "]]",
            "[",
            "]",
            "|",
            "'",
            "''",
        ),
        *("[[File:", "[http://a ", "<ref>", "</ref>", "<!--", "-->", "<nowiki>", "</nowiki>"),
        *(
            "<table>",
            "</table>",
            "<br>",
            "\n",
            "\n==",
            "==\n",
            "\n*",
            "word ",
            "&lt;",
            "()",
            "\ud800",
        ),
    ]
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_any_mixture_gives_tidy_paragraphs(wikitext):
    for paragraph in strip_markup(wikitext):
        assert paragraph
        assert paragraph == " ".join(paragraph.split())


@given(st.lists(st.sampled_from(["a", "b c", "{{x}}", "[[y|z]]", " ''w'' ", "\n"]), max_size=30))
def test_text_outside_of_markup_is_kept(pieces):
    expected = "".join(pieces).replace("{{x}}", "").replace("[[y|z]]", "z").replace("''", "")
    assert " ".join(strip_markup("".join(pieces))).split() == expected.split()


HOSTILE = [
    "{{" * 100_000,
    "{{ " * 100_000,
    "{{a " * 20_000 + "}} " * 20_000,
    "[[ " * 100_000,
    "[[a|" * 20_000 + "]] " * 20_000,
    "[[a " * 20_000 + "|b]] " * 20_000,
    "[[ " * 20_000 + "\n|}" * 20_000,
    "\n{|" * 20_000 + "\n|}" * 20_000,
    "<ref>" * 20_000,
    "<nowiki>" * 20_000,
    "<a " * 20_000,
    "<!--" * 20_000,
    "[http://a " * 20_000,
    "<table>" * 20_000 + "</table>" * 20_000,
    "'" * 100_000,
    "( " * 100_000,
    "=\n" * 100_000,
    "&#x1" * 20_000,
    "\n" + " " * 100_000 + "{|",
    "{{[[<ref>{|\n[http://x |]]}}" * 5_000,
    "[[a" + "|" * 100_000 + "]]",
]


@pytest.mark.parametrize("wikitext", HOSTILE, ids=lambda text: text[:12].strip())
def test_hostile_text_takes_a_second_at_most(wikitext):
    """All take less than 0.3 s on an idle core."""
    started = time.process_time()
    strip_markup(wikitext)
    assert time.process_time() - started < 3
