"""Files that a DOCX file holds as a whole (`altChunk`), of which web pages are read."""

from __future__ import annotations

import re
from contextlib import suppress
from email import message_from_bytes
from email.message import Message

from sightline.image_headers import EXTENSIONS, recognise
from sightline.pages import LeftOut, Page
from sightline.problems import SightlineError
from sightline.readers.docx_parts import INSERTED, UNREADABLE
from sightline.readers.html import read_html
from sightline.readers.html_encoding import decode_html
from sightline.zip_limits import Archive

_UUENCODED = re.compile(r"^end[ \t\r]*$", re.M)
# Where text ends that is packed in these ways.
_ENDS = {
    "base64": re.compile(r"=[\s=]*(?=[^\s=])"),
    **dict.fromkeys(("x-uuencode", "uuencode", "uue", "x-uue"), _UUENCODED),
}
_CHARSET = re.compile(r"[\w.:-]+", re.A)


def read_inserted(archive: Archive, name: str, left_out: LeftOut) -> list[Page]:
    """Read the web pages in a file.

    Programs that make Word files of web pages put all of their text there. Files of other kinds,
    and the images of any, are counted.
    """
    try:
        data = archive.read(name)
    except SightlineError:
        left_out.text[UNREADABLE] += 1
        return []
    sources, lost, pages = [data], 0, []
    if b"mime-version:" in data[:1024].lower():
        try:
            parts = list(message_from_bytes(data).walk())
        except RecursionError:  # messages in messages, too deep
            left_out.text[UNREADABLE] += 1
            return []
        sources = [_with_charset(part) for part in parts if _is_page(part)]
        lost = sum(map(_lost, parts))
    for source in sources:
        page = _read_page(source)
        if page is None:
            lost += len(source)
            continue
        left_out.update(page.left_out)
        if page.title and page.title not in (block.text for block in page.blocks):
            left_out.text["titles of inserted files"] += len(page.title)
        left_out.images["inserted files"] += len(page.images)
        pages.append(page)
    left_out.text[INSERTED] += lost if pages else archive.size(name)
    return pages


def _read_page(data: bytes) -> Page | None:
    if decode_html(data).text.lstrip().startswith("<"):
        with suppress(SightlineError):  # it is too large
            return read_html(data, main_content=False)
    return None


def _is_page(part: Message) -> bool:
    return part.get_content_subtype() in ("html", "xhtml+xml")


def _lost(part: Message) -> int:
    """Count the bytes that are no page and no image, also those around parts."""
    around = (str(text or "").strip() for text in (part.preamble, part.epilogue, part["Subject"]))
    is_other = not _is_page(part) and not _is_picture(part)
    return sum(map(len, around)) + _behind(part) + (len(_decoded(part)) if is_other else 0)


def _is_picture(part: Message) -> bool:
    if part.get_content_maintype() != "image":
        return False
    return part.get_content_subtype() == "svg+xml" or recognise(_decoded(part)) in EXTENSIONS


def _behind(part: Message) -> int:
    """Count what follows the end of packed text, which nobody unpacks."""
    packed, packing = part.get_payload(), str(part.get("Content-Transfer-Encoding", ""))
    end = _ENDS.get(packing.strip().lower())
    if end is None or not isinstance(packed, str):
        return 0
    found = end.search(packed)
    return len(packed[found.end() :].strip()) if found else 0


def _with_charset(part: Message) -> bytes:
    """Give a page that declares the encoding which the message names for it.

    One with a byte order mark, and one in UTF-16, shows its encoding itself.
    """
    data, charset = _decoded(part).lstrip(), part.get_content_charset() or ""
    if data.startswith(b"<") and b"\0" not in data[:4] and _CHARSET.fullmatch(charset):
        return f'<meta charset="{charset}">'.encode() + data
    return data


def _decoded(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""
