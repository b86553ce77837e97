"""What dictionaries of PDFs say, read from their bytes: names, references, how streams are packed.

What only looks like a part of a dictionary is taken out first: strings, comments, names that are
spelled with codes, dictionaries within.
"""

from __future__ import annotations

import re

# Of strings within strings, and of dictionaries within dictionaries; fewer if they are long.
_MOST_ROUNDS, _MOST_BYTES = 50, 2**21
# One that nothing ends goes to the end; so no byte is looked at again and again.
_INNER = rb"\((?:[^()\\]++|\\.?+)*+(?:\)|\Z)"
_MIDDLE = rb"\((?:[^()\\]++|\\.?+|" + _INNER + rb")*+(?:\)|\Z)"
STRING = re.compile(rb"\((?:[^()\\]++|\\.?+|" + _MIDDLE + rb")*+(?:\)|\Z)", re.DOTALL)
_NO_NAMES = re.compile(STRING.pattern + rb"|(?<!<)<(?!<)[^<>]*>|(%[^\r\n]*)", re.DOTALL)
_CODE = re.compile(rb"#([0-9A-Fa-f]{2})")
_INNER_DICTIONARY = re.compile(rb"<<[^<>]*>>")
_REFERENCE = re.compile(rb"([0-9]{1,10})\s+[0-9]{1,5}\s+R\b")
_ENDS = rb"\s\0/\[\]<>(){}%"  # what a name ends at
_FILTER = re.compile(rb"/Filter(?![^" + _ENDS + rb"])[\s\0]*")
_PACKING = re.compile(rb"\[[^\[\]]*\]|/[^" + _ENDS + rb"]*|[0-9]+\s+[0-9]+\s+R\b|null\b")
_NAME_OR_REFERENCE = re.compile(rb"/([^" + _ENDS + rb"]*)|([0-9]{1,10})\s+[0-9]+\s+R\b")


def references(data: bytes) -> list[int]:
    """Give the numbers of the objects that some bytes refer to."""
    return [int(number) for number in _REFERENCE.findall(data)]


def plain(data: bytes) -> bytes:
    """Empty the strings, drop the comments, and spell names without codes."""
    if b"(" in data or b"%" in data:
        data = _without_strings(data)
    if b"#" in data:
        data = _CODE.sub(_letter, data)
    return data


def packing_of(head: bytes) -> list[tuple[bytes, bytes]] | None:
    """Give how a stream is packed, as names and numbers of objects; None if it is not.

    An empty name stands for what cannot be understood.
    """
    if b"/Filter" not in head:
        return None
    if head.count(b"<<") > 1:
        head = _without_dictionaries(head)
    keys = list(_FILTER.finditer(head))
    if not keys:
        return None
    found = _PACKING.match(head, keys[-1].end())  # of several the last one counts
    return names_in(found[0]) if found else [(b"", b"")]


def names_in(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Give names and numbers of objects in their order; None if there are none."""
    return _NAME_OR_REFERENCE.findall(data) or None


def _rounds(data: bytes) -> range:
    return range(max(1, min(_MOST_ROUNDS, _MOST_BYTES // (len(data) + 1))))


def _without_strings(data: bytes) -> bytes:
    for _ in _rounds(data):
        shorter = _NO_NAMES.sub(lambda found: b" " if found[1] else b"()", data)
        if shorter == data:
            break
        data = shorter
    return data


def _without_dictionaries(head: bytes) -> bytes:
    """Give the outermost dictionary without those in it."""
    head = _without_strings(head).partition(b"<<")[2]
    for _ in _rounds(head):
        head, count = _INNER_DICTIONARY.subn(b" ", head)
        if not count:
            break
    return head


def _letter(code: re.Match[bytes]) -> bytes:
    """Give the letter of a code; what would end a name stays a code."""
    letter = bytes((int(code[1], 16),))
    return letter if letter.isalnum() else code[0]
