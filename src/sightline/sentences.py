"""A sentence as the words that the sentence encoder reads."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces, in which every character is its own token: Han and kana.
_CJK = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003fffd"
)
# Python's \w leaves out combining marks, without which Hindi, Thai and pointed Hebrew fall to
# pieces. These are the blocks that hold them; U+20D0 on includes the keycap.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06ed\u0900-\u0963\u0971-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece"
    r"\u0f71-\u0fbc\u102b-\u103e\u1056-\u109d\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0"
)
# The joiners of Persian and Indic words, and of emoji.
_JOINERS = r"\u200c\u200d"
_LETTER = rf"[^\W_{_CJK}]"
_WORD = rf"{_LETTER}++(?:[{_MARKS}{_JOINERS}]++{_LETTER}*+)*+"
# A run of one of these is one token ("...", "--", "……"): ASCII, the dashes, quotes and dots of
# general punctuation, CJK and full-width forms.
_PUNCTUATION = [
    character
    for first, last in [(0x21, 0x7E), (0x2010, 0x2027), (0x3001, 0x3003), (0xFF01, 0xFF0F)]
    for character in map(chr, range(first, last + 1))
    if not character.isalnum()
]
# These belong to a URL only if more of it follows: "see http://a.b/c." ends before the stop.
# All of it is ASCII, because Chinese text goes on without a space.
_URL_STOP = r".,;:!?')\]}"
_URL_PART = rf"[^\s\"<>{_URL_STOP}\x00-\x1f\x7f-\U0010ffff]++"
# Control characters and halves of surrogate pairs are part of no token.
_SYMBOL = r"[^\w\s\x00-\x1f\x7f-\x9f\ud800-\udfff]"
_EMOJI = rf"{_SYMBOL}[\U0001f3fb-\U0001f3ff{_MARKS}]*+"  # with its skin tone
# Possessive quantifiers (`++`) try nothing twice, so the time is linear whatever the text.
_ALTERNATIVES = [
    rf"(?:https?://|www\.){_URL_PART}(?:[{_URL_STOP}]++{_URL_PART})*+",
    r"\d++(?:[.,:/]\d++)++",
    rf"{_WORD}(?:(?:['-]|_++){_WORD})*+",
    rf"[{_CJK}]",
    *(re.escape(character) + "++" for character in _PUNCTUATION),
    r"[\U0001f1e6-\U0001f1ff]{2}",  # a flag
    rf"{_EMOJI}(?:\u200d{_EMOJI})*+",
]
# The look-ahead spares each space the walk through all alternatives: captions take a third.
_TOKEN = re.compile(rf"(?!\s)(?:{'|'.join(_ALTERNATIVES)})")

# What typesetting puts in the place of the characters that words are written with, and what
# has no width. One for one where it can be, so that "don’t" is the word "don't".
_TYPOGRAPHY = str.maketrans(
    {
        "’": "'",
        "\u02bc": "'",
        "\u2010": "-",
        "\u2011": "-",
        "\u200b": " ",
        **dict.fromkeys("\u00ad\u2060\ufeff\ufe0e\ufe0f\u200e\u200f\u202a\u202b\u202c\u202d\u202e"),
    }
)
# `unicodedata.normalize` sorts runs of combining marks in quadratic time; pieces of this length
# bound it to about a second a megabyte of nothing but marks. Real sentences are one piece.
_NORMALIZE_LENGTH = 1024


def tokenize(sentence: str) -> list[str]:
    """Split a sentence into lower-cased words, numbers, punctuation and symbols.

    Close to the NLTK TweetTokenizer of the paper's code: "don't", "t-shirt", "1,000" and a URL
    are one token each, punctuation stands alone. Each Chinese or Japanese character is a token.
    """
    return tokens_of(plain_text(sentence))


def plain_text(sentence: str) -> str:
    """Give a sentence in the spelling that `tokens_of` reads: lower case, one form per sign."""
    text = sentence.lower()
    return text if text.isascii() else _normalize(text)


def tokens_of(text: str) -> list[str]:
    """Split plain text; no token reaches over a space, so its pieces may be split one by one."""
    return _TOKEN.findall(text)


def _normalize(text: str) -> str:
    """Give characters that look alike one spelling."""
    text = text.translate(_TYPOGRAPHY)
    if unicodedata.is_normalized("NFC", text):
        return text
    pieces = range(0, len(text), _NORMALIZE_LENGTH)
    return "".join(
        unicodedata.normalize("NFC", text[start : start + _NORMALIZE_LENGTH]) for start in pieces
    )
