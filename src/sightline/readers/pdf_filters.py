"""The rarer ways in which streams of PDFs are packed; deflate, the usual one, is in `pdf_objects`.

Each function unpacks as much as it can, and says whether it came to the end. A stream that ends
without its mark of the end is whole: many programs leave that out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

#: Bytes of one stream, unpacked; these are slow, and few pack much in this way.
MOST_DECODED = 16 * 2**20
_CLEAR, _END, _MOST_CODES = 256, 257, 4096
_END_OF_RUNS = 128
_NO_DIGITS = bytes(set(range(256)).difference(b"0123456789abcdefABCDEF"))


def _from_base85(data: bytes) -> tuple[bytes, bool]:
    try:
        return base64.a85decode(data.strip().removeprefix(b"<~").partition(b"~")[0]), True
    except ValueError:
        return b"", False


def _from_hex(data: bytes) -> tuple[bytes, bool]:
    digits = data.partition(b">")[0].translate(None, _NO_DIGITS)  # as PDFium passes over them
    return binascii.unhexlify(digits + b"0" * (len(digits) % 2)), True


def _from_runs(data: bytes) -> tuple[bytes, bool]:
    content, position = bytearray(), 0
    while position < len(data) and data[position] != _END_OF_RUNS:
        length, position = data[position], position + 1
        if length < _END_OF_RUNS:
            run, position = data[position : position + length + 1], position + length + 1
        else:
            run, position = data[position : position + 1] * (257 - length), position + 1
        content += run
        if position > len(data):
            return bytes(content), False
        if len(content) > MOST_DECODED:
            break
    return bytes(content), True


def from_lzw(data: bytes, early: int = 1) -> tuple[bytes, bool]:
    """Unpack LZW; codes get longer by so many codes earlier than they have to."""
    table = [bytes((value,)) for value in range(256)] + [b"", b""]
    content, previous = bytearray(), b""
    held = bits = 0
    width = 9
    for byte in data:
        held, bits = held << 8 | byte, bits + 8
        if bits < width:
            continue
        bits -= width
        code, held = held >> bits, held & ((1 << bits) - 1)
        if code == _END or len(content) > MOST_DECODED:
            break
        if code == _CLEAR:
            del table[_END + 1 :]
            previous, width = b"", 9
            continue
        if code < len(table):
            entry = table[code]
        elif code == len(table) and previous:
            entry = previous + previous[:1]
        else:
            return bytes(content), False
        content += entry
        if previous and len(table) < _MOST_CODES:
            table.append(previous + entry[:1])
        previous = entry
        width = min(12, max(9, (len(table) + early).bit_length()))
    return bytes(content), True


#: By their names in the file.
FILTERS: dict[bytes, Callable[[bytes], tuple[bytes, bool]]] = {
    **dict.fromkeys((b"ASCII85Decode", b"A85"), _from_base85),
    **dict.fromkeys((b"ASCIIHexDecode", b"AHx"), _from_hex),
    **dict.fromkeys((b"RunLengthDecode", b"RL"), _from_runs),
    **dict.fromkeys((b"LZWDecode", b"LZW"), from_lzw),
}
