"""What the files of an EPUB book that no chapter is hold, as their names and first bytes tell."""

from __future__ import annotations

import re

from sightline.image_headers import EXTENSIONS, recognise
from sightline.zip_limits import Archive

# Files that begin as texts do, and hold none of a book's.
_NO_TEXTS = (".css", ".js", ".smil", ".pls", ".xpgt", ".plist")
_OF_FORMAT = frozenset(
    f"META-INF/{name}.xml"
    for name in (
        "container", "encryption", "manifest", "metadata", "rights", "signatures",
        "com.apple.ibooks.display-options", "com.kobobooks.display-options",
    )
) | {"mimetype"}  # fmt: skip
# Style sheets and scripts begin otherwise; `<!--` is allowed there.
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?!!--)")
_PAGE = re.compile(rb"<(?:[\w.-]+:)?html[\s>]", re.I)
# PDF; DOCX, EPUB and other archives; older files of Word.
_DOCUMENTS = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def may_be_read(archive: Archive, name: str) -> bool:
    """Say whether a file may be a text of the book; raises `SightlineError`."""
    if name in _OF_FORMAT or not archive.holds_text(name):
        return False
    head, name = archive.head(name), name.lower()
    if name.endswith((".css", ".js")) and _MARKUP.match(head):
        return True
    return not name.endswith(_NO_TEXTS) or _PAGE.search(head) is not None


def is_document(archive: Archive, name: str) -> bool:
    """Say whether a file is a document of another format; raises `SightlineError`."""
    return archive.head(name).startswith(_DOCUMENTS)


def is_picture(archive: Archive, name: str) -> bool:
    """Say whether a file that is shown as a picture is one; raises `SightlineError`."""
    head = archive.head(name)
    return recognise(head) in EXTENSIONS or (b"<svg" in head and not _PAGE.search(head))
