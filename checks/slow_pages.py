"""Pages that parsers are known, or may be thought, to be slow on or to lose text of.

The Markdown ones are the kinds of cmark's `test/pathological_tests.py`, at its sizes, and more; the
HTML ones repeat what a tree builder or our own walk does more than constant work for.
"""

from collections.abc import Iterable, Iterator
from itertools import count

# Bytes; a little less than the largest that are read.
MOST = {"md": 15_000_000, "html": 30_000_000, "txt": 15_000_000}


def slow_pages(sizes: Iterable[float]) -> Iterator[tuple[str, str]]:
    """Yield the name of each page, whose suffix tells its kind, and its text; 1 is cmark's size."""
    for size in sizes:
        for suffix, kinds in (("md", _markdown(size)), ("html", _html(size)), ("txt", _text(size))):
            for name, content in kinds.items():
                yield f"{name}-{size:g}.{suffix}", content[: MOST[suffix]]


def _markdown(size: float) -> dict[str, str]:
    def n(number: int) -> int:
        return int(number * size)

    return {
        "nested-strong-emphasis": "*a **a " * n(65_000) + "b" + " a** a*" * n(65_000),
        "emphasis-closers": "a_ " * n(65_000),
        "emphasis-openers": "_a " * n(65_000),
        "link-closers": "a]" * n(65_000),
        "link-openers": "[a" * n(65_000),
        "mismatched": "*a_ " * n(50_000),
        "issue-389": "*a " * n(20_000) + "_a*_ " * n(20_000),
        "multiples-of-three": "a**b" + "c* " * n(50_000),
        "link-openers-emphasis-closers": "[ a_" * n(50_000),
        "pattern-1": "[ (](" * n(80_000),
        "pattern-2": "![[]()" * n(160_000),
        "hard-link-emphasis": "**x [a*b**c*](d)",
        "nested-brackets": "[" * n(50_000) + "a" + "]" * n(50_000),
        "nested-quotes": "> " * n(50_000) + "a",
        "nested-quotes-alone": ">" * n(50_000) + "\n" + "a",
        "nested-lists": "".join("  " * depth + "* a\n" for depth in range(n(1_000))),
        "zero-bytes": "abc\0de\0" * n(1_000),
        "backticks": "".join("e" + "`" * length for length in range(1, n(2_500))),
        "unclosed-links-1": "[a](<b" * n(30_000),
        "unclosed-links-2": "[a](b" * n(30_000),
        "unclosed-comments": "</" + "<!--" * n(300_000),
        "blank-lines-in-lists": "- " * n(30_000) + "x" + "\n" * n(30_000),
        "blank-lines-in-quoted-lists": "> " + "- " * n(30_000) + "x\n" + ">\n" * n(30_000),
        "emphasis-in-quotes": ">" * n(100_000) + "a*" * n(100_000),
        "references": "".join(f"[{i}]: u\n" for i in range(n(50_000))) + "[0] " * n(50_000),
        "one-reference": "[a]: u\n" + "[a] " * n(100_000),
        "tables": "abc\ndef\n|x|x|\n|-|-|\n" * n(30_000),
        "wide-table": "|a" * n(1_000) + "|\n" + "|-" * n(1_000) + "|\n" + "|\n" * n(20_000),
        "wide-tables": ("|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "|\n" * 900 + "\n") * n(100),
        "instructions": "a <?" * n(100_000),
        "declarations": "a <!A " * n(100_000),
        "cdata": "a <![CDATA[" * n(50_000),
        "autolinks": "<a:" * n(100_000),
        "ampersands": "&" * n(200_000) + "&#1" * n(50_000),
        "strikethrough": "~~a " * n(50_000) + " ~~b~~" * n(20_000),
        "underlined": "a\n=" * n(50_000),
        "backslashes": "\\" * n(300_000),
        "fences": "```\n" * n(50_001),
        "items-by-tabs": "-\t" * n(20_000) + "x",
        "numbered": "".join(f"{i}. a\n" for i in range(n(50_000))),
        "marked-images": "![~~" * n(50_000),
        "marked-images-2": "~~**![(" * n(30_000),
        "nested-images": "![" * n(20_000) + "a" + "](b)" * n(20_000),
        "nested-labels": "![" * 96 + "x" + "*" * n(40_000) + "x" + "]" * 48 + "](b)" * 48,
        "nested-comments": "![" * 90 + "<!--" * n(10_000) + "](b)" * 90,
        "titles": '[a](b "c' * n(30_000),
        "attributes": "<a " + "b='c' " * n(50_000),
        "open-attributes": "<a b='" * n(50_000),
        "definition-titles": "[a]: b '\n" * n(30_000),
        "open-definitions": "[a\n" * n(30_000),
        "stars": "* " * n(50_000) + "a",
        "blank-lines": "\n" * n(1_000_000) + "a",
        "spaces": " " * n(1_000_000) + "a",
        "lines": "a\n" * n(500_000),
        "pipes": "|" * n(100_000) + "\n" + "-|" * n(100_000),
        "words": "word " * n(200_000),
        "paragraphs": "A cat sleeps, e.g. here. Why?\n\n" * n(30_000),
        "headings": "# a\n" * n(100_000),
        "images": "![a](b.png)\n\n" * n(50_000),
        "front-matter": "---\n" + "a: b\n" * n(100_000),
    }


def _html(size: float) -> dict[str, str]:
    def n(number: int) -> int:
        return int(number * size)

    numbers = count()
    return {
        "nested-divs": "<div>" * n(100_000) + "a",
        "nested-bold": "<b>" * n(100_000) + "a",
        "bold-paragraphs": "<p><b><i><u>a" * n(50_000),
        "fonts": "<p><font color=1>a" * n(50_000),
        "nested-lists": "<ul><li>a" * n(50_000),
        "nested-tables": "<table><tr><td>a" * n(20_000),
        "foster-parented": "<table>" + "<b>a<td>" * n(30_000),
        "rows": "<table>" + "<tr><td>a<td>b" * n(50_000),
        "cells": "<table><tr>" + "<td>a" * n(100_000),
        "attributes": "<p " + " ".join(f"a{next(numbers)}=1" for _ in range(n(50_000))) + ">a",
        "paragraphs": "<p>a" * n(300_000),
        "sentences": "<p>A cat sleeps, e.g. here. Why?" * n(50_000),
        "breaks": "a<br>" * n(300_000),
        "links": "<a href=x>a" * n(200_000),
        "images": "<img src=a.png>" * n(100_000),
        "own-images": "".join(f"<p>a<img src={i}.png>" for i in range(n(100_000))),
        "figures": "<figure><img src=a.png><figcaption>a</figcaption>" * n(30_000),
        "described": "".join(
            f"<img src={i}.png aria-describedby='{i} {i + 1}'><p id={i}>a" for i in range(n(20_000))
        ),
        "one-described": "<p id=a>a" + "<img src=b.png aria-describedby=a>" * n(50_000),
        "classes": "".join(f"<div class='a{i} caption'>a</div>" for i in range(n(100_000))),
        "sources": "<picture>" + "<source srcset='a.png 1x, b.png 2x'>" * n(50_000) + "<img src=c>",
        "candidates": "<img srcset='" + "a.png 1x, " * n(100_000) + "'>",
        "options": "<select>" + "<option>a" * n(100_000),
        "nested-options": "<select>" + "<optgroup><option>a" * n(50_000),
        "headings": "<h1>a" * n(100_000),
        "comments": "<!--" * n(200_000) + "a",
        "comment-ends": "<!--a-->b" * n(100_000),
        "scripts": "<script>a</script>b" * n(100_000),
        "open-scripts": "<script>" + "<!--<script>" * n(100_000),
        "templates": "<template>" * n(50_000) + "a",
        "frames": "<iframe>a</iframe>b" * n(50_000),
        "svgs": "<svg><g><path></svg>a" * n(50_000),
        "nested-svgs": "<svg>" * n(50_000) + "a",
        "formulas": "<math><mi>" * n(50_000) + "a",
        "ampersands": "&" * n(500_000) + "&amp" * n(100_000) + "&#x41" * n(100_000),
        "less-than": "<" * n(1_000_000) + "a",
        "less-than-space": "< " * n(500_000) + "a",
        "quotes": "<p a='" * n(100_000) + "a",
        "closers": "</p>" * n(300_000) + "a",
        "wrong-closers": "<div>" * n(5_000) + "</p></span>" * n(50_000) + "a",
        "bodies": "<body><html><head>" * n(100_000) + "a",
        "forms": "<form><input><button>a" * n(50_000),
        "rubies": "<ruby>a<rt>b" * n(50_000),
        "definitions": "<dl><dt>a<dd>b" * n(50_000),
        "preformatted": "<pre>" + "a\n" * n(300_000),
        "no-spaces": "<p>" + "x" * n(1_000_000),
        "spaces": "<p>" + " " * n(1_000_000) + "a",
        "numbers": "<p>" + "1. " * n(300_000),
        "stops": "<p>" + "a. " * n(300_000),
        "abbreviations": "<p>" + "Dr. " * n(200_000),
        "brackets": "<p>" + "([{" * n(200_000) + "a",
        "marks": "<p>a" + "\u0301" * n(300_000),
        "emoji": "<p>" + "\U0001f468\u200d" * n(100_000),
        "hyphens": "<p>" + "a-" * n(300_000),
        "ids": "".join(f"<p id=a{i}>b" for i in range(n(100_000))),
        "asides": "<aside><nav><footer>a" * n(50_000),
        "articles": "<article><p>A long sentence, with a comma.</article>" * n(20_000),
    }


def _text(size: float) -> dict[str, str]:
    def n(number: int) -> int:
        return int(number * size)

    return {
        "lines": "a\n" * n(500_000),
        "paragraphs": "A cat, e.g. Rex, sleeps at 3 p.m. Why?\n\n" * n(30_000),
        "stops": "a. " * n(300_000),
        "numbers": "1. " * n(300_000),
        "quotes": '"a" ' * n(300_000),
        "no-spaces": "x" * n(1_000_000),
        "spaces": " " * n(1_000_000) + "a",
        "zero-bytes": "a\0" * n(300_000),
        "long-lines": ("word " * 100 + "\n") * n(10_000),
    }
