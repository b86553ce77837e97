"""Words that stand in for one that is not known: other forms of it, or its parts.

A file of word vectors holds "bicycle" but not "bicycle's", "boy" and "friend" but not
"boyfriendish"; what a reader would take from the known parts is better than nothing.
The rules are English; other languages lose nothing by them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

# Endings and what they stand for, the likelier first. At least three letters must remain.
_ENDINGS = (
    ("ies", "y"),
    ("es", ""),
    ("s", ""),
    ("ied", "y"),
    ("ing", ""),
    ("ing", "e"),
    ("ed", ""),
    ("ed", "e"),
    ("er", ""),
    ("er", "e"),
    ("ers", ""),
    ("ers", "e"),
    ("ly", ""),
    ("est", ""),
)
_SHORTEST = 3
# A compound longer than this is a file name or an address; its time would be quadratic.
_LONGEST = 40
_BETWEEN = re.compile(r"[-_/.]+")


def related_words(word: str, known: Container[str]) -> list[str]:
    """The known words to read in the place of `word`: one, several, or none."""
    if len(word) > _LONGEST:
        return []
    for form in _forms(word):
        if form in known:
            return [form]
    parts = [part for part in _BETWEEN.split(word) if part]
    if len(parts) > 1:
        return [found for part in parts for found in _part(part, known)]
    return _compound(word, known)


def _part(part: str, known: Container[str]) -> list[str]:
    return [part] if part in known else related_words(part, known)


def _forms(word: str) -> Iterator[str]:
    """Other forms of a word: without a possessive, without an ending."""
    if word.endswith(("'s", "s'")):
        word = word[:-2] if word.endswith("'s") else word[:-1]
        yield word
    if "'" in word:
        word = word.replace("'", "")
        yield word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            base = word[: -len(ending)] + instead
            yield base
            # "running" has the n of "run" twice.
            if ending in ("ing", "ed") and not instead and base[-1] == base[-2]:
                yield base[:-1]


def _compound(word: str, known: Container[str]) -> list[str]:
    """Two known words that make this one, the first as long as can be."""
    for cut in range(len(word) - _SHORTEST, _SHORTEST - 1, -1):
        if word[:cut] in known and word[cut:] in known:
            return [word[:cut], word[cut:]]
    return []
