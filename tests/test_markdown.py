import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.problems import SightlineError
from sightline.readers import markdown
from sightline.readers.markdown import read_markdown


def texts(page):
    return [block.text for block in page.blocks]


def test_blocks_and_images():
    page = read_markdown(
        """# Guide

First *step* with `code` and [a link](x).
It goes on.

![One](img/a.jpg "A title")

1. Item
   - Nested ![two](b.png) item

     ![three](<c d.jpg>)

> Quoted

| A | B |
|---|---|
| 1 | 2 |

```py
x = 1
```

    indented

Setext
------

![ref][r] and ![alt][]

[r]: refs/r.jpg
[alt]: refs/alt.jpg
"""
    )
    assert [(str(b.kind), b.level, b.text) for b in page.blocks] == [
        ("heading", 1, "Guide"),
        ("paragraph", 0, "First step with code and a link. It goes on."),
        ("list_item", 1, "Item"),
        ("list_item", 2, "Nested item"),
        ("quote", 1, "Quoted"),
        ("table_row", 0, "A | B"),
        ("table_row", 0, "1 | 2"),
        ("code", 0, "x = 1"),
        ("code", 0, "indented"),
        ("heading", 2, "Setext"),
        ("paragraph", 0, "and"),
    ]
    assert [(i.source, i.block, i.offset, i.alt) for i in page.images] == [
        ("img/a.jpg", 1, None, "One"),
        ("b.png", 3, 6, "two"),
        ("c%20d.jpg", 3, None, "three"),
        ("refs/r.jpg", 10, 0, "ref"),
        ("refs/alt.jpg", 10, 3, "alt"),
    ]
    assert page.images[0].title == "A title"
    assert page.title == "Guide"


def test_html_in_markdown_is_read_as_html():
    page = read_markdown(
        """Text <img src="in.jpg" alt="x" width="300"> text.

<figure>
  <img src="f.jpg">
  <figcaption>The caption</figcaption>
</figure>

<details>
<summary>More</summary>

Hidden **text** and ![m](m.jpg)

</details>

<p align="center"><img src="g.png"></p>

<script>no</script>
"""
    )
    assert texts(page) == ["Text text.", "The caption", "More", "Hidden text and"]
    assert [i.source for i in page.images] == ["in.jpg", "f.jpg", "m.jpg", "g.png"]
    assert page.images[1].caption == "The caption"
    assert page.left_out.text == {"scripts and styles": 2}


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ('---\ntitle: "My Guide"\ntags: [a]\n---\n', "My Guide"),
        ("+++\ntitle = 'Toml'\n+++\n", "Toml"),
        ("---\n---\n", "Heading"),
        ("---\nlayout: post\n...\n", "Heading"),
        ("\ufeff---\r\ntitle: Windows\r\n---\r\n", "Windows"),
    ],
)
def test_front_matter_is_no_text(front, title):
    page = read_markdown(f"{front}# Heading\n\nText\n".encode())
    assert page.title == title
    assert texts(page) == ["Heading", "Text"]
    assert page.left_out.text["front matter"] == len(front.lstrip("\ufeff").replace("\r", ""))


def test_a_rule_is_not_front_matter():
    assert texts(read_markdown("Text\n\n---\n\nMore\n\n---\n")) == ["Text", "More"]


def test_extensions_for_programs_are_no_text():
    page = read_markdown(
        "![a](a.jpg){width=50% .left} text {kept}\n\n::: tip\nA tip.\n:::\n\n"
        ":::{note} Title\nX\n:::\n"
    )
    assert texts(page) == ["text {kept}", "A tip.", "Title X"]


def test_sources_are_handed_on_whatever_they_are():
    page = read_markdown("![a](file:///etc/passwd)\n\n![b](../../up.jpg) ![c](https://h.org/c.jpg)")
    assert [i.source for i in page.images] == [
        "file:///etc/passwd",
        "../../up.jpg",
        "https://h.org/c.jpg",
    ]


@pytest.mark.parametrize(
    "text",
    [
        ">" * 300 + " deep",
        "\n".join("  " * level + f"- x{level}" for level in range(150)) + " deep",
        "- " * 300 + "deep",
    ],
    ids=["quotes", "lists", "lists on a line"],
)
def test_text_below_the_deepest_nesting_is_kept(text):
    assert "deep" in read_markdown(text).text


@pytest.mark.parametrize("piece", ["[", "![", "[a](", "*a ", "`a", "<a ", "&", "|"])
def test_hostile_pages_take_bounded_time(piece):
    start = time.process_time()
    page = read_markdown(piece * 20_000 + " end")
    assert time.process_time() - start < 15  # a second or less where nothing else runs
    assert "end" in page.text or piece == "<a "


@pytest.mark.parametrize("piece", ["*", "&", "<", "!", "_", "<!--"])
def test_labels_within_labels_take_bounded_time(piece):
    start = time.process_time()
    labels = "![" * 96 + "begin " + piece * (12_000 // len(piece)) + " end" + "]" * 48
    page = read_markdown(labels + "](b)" * 48 + "\n\n[a](b) ![c](d)")
    assert time.process_time() - start < 3  # it took up to 38 s
    told = page.text + "".join(image.alt or "" for image in page.images)
    assert "begin" in told or page.left_out.text["comments in the source"]


def test_links_and_images_of_long_pages_are_found():
    page = read_markdown("".join(f"[a *b* ![c](d{n}.jpg)](e) " for n in range(3_000)))
    assert len(page.images) == 3_000 and "[" not in page.text


def test_a_page_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_BYTES", 2**20)
    with pytest.raises(SightlineError, match="larger than 1 MiB"):
        read_markdown("x" * (2**20 + 1))


def test_code_about_html_declares_no_encoding():
    data = "Привет\n\n```html\n<meta charset=shift_jis>\n```\n".encode()
    assert texts(read_markdown(data))[0] == "Привет"
    assert read_markdown(b"caf\xe9").text == "café"


PIECES = st.sampled_from(
    [
        *(
            "# ",
            "- ",
            "1. ",
            "> ",
            "\n",
            "\n\n",
            "```\n",
            "![a](b.jpg)",
            "[a]: b\n",
            "![a]",
            "| a |\n",
        ),
        *(
            "|---|\n",
            "**",
            "_",
            "`",
            "<img src=x>",
            "<div>",
            "</div>",
            "<!--",
            "---\n",
            "    ",
            "\\",
        ),
        *("word", ":::", "{x}", "&amp;", "\0", "\ud800", "<p hidden>"),
    ]
)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=30).map("".join))
def test_any_page_is_read(text):
    page = read_markdown(text)
    assert all(-1 <= image.block < len(page.blocks) for image in page.images)


WORDS = st.integers(0, 10**9).map(lambda number: f"w{number}")


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(["", "# ", "- ", "  - ", "> ", "1. ", "> - "]), WORDS)))
def test_no_text_is_lost(lines):
    text = "\n".join(start + word for start, word in lines)
    found = read_markdown(text).text.split()
    assert [word for word in found if word.startswith("w")] == [word for _, word in lines]


def test_tables_that_the_parser_would_fill_up_are_text():
    """Each of these 2 kB would become 54,000 cells and take 1.5 s."""
    table = "|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "|b\n" * 900 + "\n"
    start = time.process_time()
    page = read_markdown(table * 20)
    assert time.process_time() - start < 5
    found = "".join(texts(page))
    assert (found.count("a"), found.count("b")) == (60 * 20, 900 * 20)


def test_a_large_table_with_all_its_cells_stays_one():
    rows = "|a|b|c|d|e|f|g|h|\n" * 3_000
    page = read_markdown("|1|2|3|4|5|6|7|8|\n" + "|-" * 8 + "|\n" + rows)
    assert [block.kind for block in page.blocks] == ["table_row"] * 3_001


def test_definitions_of_links_are_counted():
    page = read_markdown("[a]: http://x 'Title'\n[a]: y\n[b]: z\n\nText [a].")
    assert texts(page) == ["Text a."]
    names, addresses, title = len("aab"), len("http://xyz"), len("Title")
    assert page.left_out.text == {"link definitions": names + addresses + title}
    assert read_markdown("Text [a](b).").left_out.text == {}


def test_what_is_not_rendered_is_counted():
    page = read_markdown(
        "| a | b |\n|---|---|\n| one | two | three |\n| `x | y` | z |\n\n"
        "> | a |\n> |---|\n> | one | 1 two\n\n"
        "::: note\nText.\n:::\n\n![](a.png){width=50%}\n"
    )
    words = set(page.text.replace("|", " ").split())
    assert {"one", "two", "Text."} < words
    assert not words & {"three", "note", "z", "width=50%"}
    marks = len("::: note") + len(":::") + len("{width=50%}")
    cells = len("three") + len("z") + len("1two")
    assert page.left_out.text == {
        "marks for programs": marks,
        "cells beyond a table's columns": cells,
    }
