"""The bytes of an HTML page as text: which encoding they are in, when no server says so.

The order is the HTML standard's: byte order mark, declaration, guess. Bytes that the encoding does
not have become U+FFFD and are counted.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: How far a declaration is looked for. Browsers look at 1024 bytes; saved pages begin with more.
_DECLARATION_BYTES = 4096
_DECLARATION = re.compile(
    rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([\w.:-]+)"
    rb"|^\s*<\?xml[^>]{0,512}?encoding\s*=\s*[\"']([\w.:-]+)",
    re.I,
)
# Names that mean more than Python's codec of that name has, as the encoding standard says
# (encoding.spec.whatwg.org), by their normalised form.
_WEB_NAMES = {
    **dict.fromkeys(("ascii", "usascii", "latin1", "iso88591", "l1", "xuserdefined"), "cp1252"),
    **dict.fromkeys(("iso88599", "latin5"), "cp1254"),
    **dict.fromkeys(("gb2312", "gbk", "xgbk", "gb18030", "gb231280"), "gb18030"),
    **dict.fromkeys(("shiftjis", "sjis", "xsjis", "windows31j", "mskanji"), "cp932"),
    **dict.fromkeys(("euckr", "ksc56011987", "ksc5601", "windows949", "korean"), "cp949"),
    **dict.fromkeys(("big5", "big5hkscs", "xxbig5"), "big5hkscs"),
    **dict.fromkeys(("tis620", "iso885911", "windows874"), "cp874"),
    **dict.fromkeys(("macintosh", "mac", "xmacroman"), "mac_roman"),
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "xmaccyrillic": "mac_cyrillic",
    "iso88598i": "iso8859_8",
    "eucjp": "euc_jp",
    "iso2022jp": "iso2022_jp",
    "hzgb2312": "hz",
    # A page whose declaration can be read as ASCII is in neither.
    **dict.fromkeys(("utf16", "utf16le", "utf16be", "unicode"), "utf-8"),
}
# Nothing else may name a codec: Python has some that are no encodings of text.
_PLAIN_NAMES = re.compile(r"utf8|(?:windows|cp|ibm)(?:866|125[0-8])|iso8859\d{1,2}")
_MULTIBYTE = frozenset(("gb18030", "cp932", "cp949", "big5hkscs", "euc_jp", "iso2022_jp", "hz"))
_DEFAULT = "cp1252"  # what browsers take where nothing is said and it is not UTF-8


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, the encoding it was in, and how many characters stand for bytes that are none."""

    text: str
    encoding: str
    replaced: int


def decode_html(data: bytes, *, declared: bool = True) -> Decoded:
    """Decode a page; never fails. Only with `declared` it is asked which encoding it is in."""
    for bom, marked in _BOMS:
        if data.startswith(bom):
            return _decode(data[len(bom) :], marked)
    if (wide := _wide(data) if declared else _wide_text(data)) is not None:
        return _decode(data, wide)
    encoding = declared_encoding(data) if declared else None
    if encoding in _MULTIBYTE:
        return _decode(data, encoding)
    try:
        # What is UTF-8 by its bytes is UTF-8, whatever it declares: text in an encoding of single
        # bytes that looks like it does not occur by chance, a wrong declaration does.
        return Decoded(data.decode("utf-8"), "utf-8", 0)
    except UnicodeDecodeError:
        return _decode(data, encoding or _DEFAULT)


def declared_encoding(data: bytes) -> str | None:
    """Give the codec that a page's start names, or None."""
    found = _DECLARATION.search(data[:_DECLARATION_BYTES])
    if found is None:
        return None
    name = re.sub(r"[^a-z0-9]", "", (found[1] or found[2]).decode("ascii", "ignore").lower())
    if name in _WEB_NAMES:
        return _WEB_NAMES[name]
    if not _PLAIN_NAMES.fullmatch(name):
        return None
    name = re.sub(r"^(?:windows|ibm)", "cp", name).replace("iso8859", "iso8859_")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def _wide(data: bytes) -> str | None:
    """Recognise UTF-16 without a byte order mark: every other byte of its markup is zero."""
    start = data[:256]
    for encoding in ("utf-16-le", "utf-16-be"):
        if start.startswith("<".encode(encoding)) and start.count(0) * 3 > len(start):
            return encoding
    return None


def _wide_text(data: bytes) -> str | None:
    """Recognise UTF-16 without a byte order mark where there is no markup.

    The upper halves of the letters of Latin, Greek, Cyrillic, Hebrew and Arabic are control
    characters by themselves, which no text is made of.
    """
    start = data[: min(len(data), _DECLARATION_BYTES) // 2 * 2]
    first, second = (sum(byte < 9 for byte in half) for half in (start[::2], start[1::2]))
    for encoding, upper, lower in (("utf-16-le", second, first), ("utf-16-be", first, second)):
        if upper * 3 > len(start) and lower * 2 < upper:
            return encoding
    return None


def _decode(data: bytes, encoding: str) -> Decoded:
    try:
        return Decoded(data.decode(encoding), encoding, 0)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        genuine = data.count("\ufffd".encode()) if encoding == "utf-8" else 0
        return Decoded(text, encoding, text.count("\ufffd") - genuine)
