"""Streams of PDFs that are packed in rarer ways: what was packed comes out, damage is told."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.readers import pdf_filters
from sightline.readers.pdf_filters import FILTERS, from_lzw


def to_lzw(data, early=1, end=True):
    """Pack as the standard says, with every code as soon as it can be had."""
    table, bits, word = {}, "", b""

    def code_of(word):
        return word[0] if len(word) == 1 else table[word]

    def width():
        return min(12, max(9, (258 + len(table) + early - 1).bit_length()))

    bits += f"{256:09b}"
    for value in data:
        longer = word + bytes((value,))
        if len(longer) == 1 or longer in table:
            word = longer
            continue
        bits += f"{code_of(word):0{width()}b}"
        table[longer] = 258 + len(table)
        word = longer[-1:]
        if len(table) == 4096 - 258 - 1:
            bits += f"{code_of(word):012b}{256:012b}"
            table, word = {}, b""
    if word:
        bits += f"{code_of(word):0{width()}b}"
        if len(word) >= 1 and data:
            table[b"\0\0 next"] = 0  # the reader has one code more by now
    bits += f"{257:0{width()}b}" if end else ""
    bits += "0" * (-len(bits) % 8)
    return int(f"1{bits}", 2).to_bytes(len(bits) // 8 + 1, "big")[1:]


def to_runs(data, end=True):
    packed = bytearray()
    position = 0
    while position < len(data):
        run = data[position : position + 128]
        same = len(run) - len(run.lstrip(run[:1]))
        if same > 1:
            packed += bytes((257 - same, run[0]))
            position += same
        else:
            packed += bytes((len(run) - 1,)) + run
            position += len(run)
    return bytes(packed) + (b"\x80" if end else b"")


CONTENT = st.one_of(
    st.binary(max_size=2_000),
    st.lists(st.sampled_from((b"a", b"ab", b"(Line.) Tj ")), max_size=500).map(b"".join),
)


@given(CONTENT, st.booleans())
def test_runs_come_out_with_and_without_their_end(data, end):
    assert FILTERS[b"RL"](to_runs(data, end)) == (data, True)


@given(CONTENT, st.sampled_from((0, 1)))
def test_lzw_comes_out(data, early):
    assert from_lzw(to_lzw(data, early), early) == (data, True)


def test_lzw_goes_on_after_its_table_is_full():
    data = b" ".join(b"%d" % number for number in range(20_000))
    assert from_lzw(to_lzw(data)) == (data, True)


@given(st.binary(max_size=500))
def test_letters_come_out(data):
    assert FILTERS[b"A85"](base64.a85encode(data, wrapcol=72) + b"~>") == (data, True)
    assert FILTERS[b"AHx"](data.hex(" ").encode() + b" >") == (data, True)


@given(st.binary(max_size=500), st.sampled_from(sorted(FILTERS)))
def test_any_bytes_give_some(data, name):
    content, is_sound = FILTERS[name](data)
    assert isinstance(content, bytes) and isinstance(is_sound, bool)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (b"RL", b"\x05abc"),
        (b"RL", b"\xfb"),
        (b"LZW", to_lzw(b"some text")[:4] + b"\xff\xff\xff\xff"),
        (b"A85", b"87cURD]i,{~>"),
    ],
)
def test_damage_is_told(name, data):
    assert not FILTERS[name](data)[1]


def test_what_is_no_digit_is_passed_over_as_pdfium_does():
    assert FILTERS[b"AHx"](b"4\x001g4 2\n5>") == (b"ABP", True)


def test_what_swells_is_cut(monkeypatch):
    monkeypatch.setattr(pdf_filters, "MOST_DECODED", 10_000)
    assert 10_000 < len(FILTERS[b"RL"](b"\x81a" * 2**10)[0]) < 10_200
    assert 10_000 < len(from_lzw(to_lzw(bytes(2**16)))[0]) < 10_200
