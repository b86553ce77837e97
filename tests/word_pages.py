"""Pages of any tags with words between them, to see whether a word is lost and not counted."""

import re

_NAMES = """
a annotation-xml applet article b body button canvas caption colgroup datalist details div
figcaption figure font foreignObject form frameset h1 head html iframe image input li map marquee
math mtext nav nobr noembed noframes noscript object optgroup option p plaintext pre rt rtc ruby
script select style summary svg table tbody td template textarea title tr ul video xmp
"""
# fmt: off
#: What a page is made of. No word stands in a tag or an address, which hold no text.
TAGS = [
    *(f"<{slash}{name}>" for name in _NAMES.split() for slash in ("", "/")),
    "<!--", "-->", "--!>", "<!-->", "<![CDATA[", "]]>", "<?", "?>", "<?xml ", "<!doctype ",
    "<p hidden>", "<template shadowrootmode=open>", " ", "\n", "< ", ">", "\"", "'", "=",
]
MARKS = [
    "# ", "\n\n", "\n", "    ", "> ", "- ", "1. ", "```", "~~~", "[x](u)", ")", "[", "]", "![", "*",
    "**", "`", "&", "[a]: ", "---\n", "===\n", "\\", "[^1]", "[^1]: ", "~~", ":::", "{", "}",
    "---\ntitle: ", "+++\n", "|", "| a |\n|--|\n",
]
# fmt: on


def page_with_words(data: bytes, pieces: list[str]) -> str:
    """Make a page of bytes, each a piece or, one time in three, the next word."""
    words = (f"w{number}" for number in range(100, 1000))
    parts = (next(words, "") if byte % 3 == 0 else pieces[byte % len(pieces)] for byte in data)
    return "".join(parts)


def lost_letters(text: str, page) -> int:
    """Count the letters of the words that are nowhere in a page that was read."""
    images = [(image.alt, image.title, image.source) for image in page.images]
    read = " ".join([page.title or "", page.text, str(images)])
    return sum(len(word) for word in re.findall(r"w\d{3}", text) if word not in read)
