"""Names that come with uploads and archives, none of which may lead out of its folder."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

# Characters that no file name has on one system or another, or that a terminal obeys.
_UNSAFE = re.compile(r'[\0-\x1f\x7f:*?"<>|\ud800-\udfff]')
_MOST_BYTES = 200  # of one part of a path
_MOST_PARTS = 16


def harmless_path(name: str) -> PurePosixPath | None:
    """The path of a file below a folder; None if it is absolute, leads upwards or cannot be."""
    written = name.replace("\\", "/")
    if written.startswith("/") or _UNSAFE.search(written):
        return None
    parts = [part for part in written.split("/") if part not in ("", ".")]
    if not 0 < len(parts) <= _MOST_PARTS or written.endswith("/"):
        return None
    if any(part == ".." or len(part.encode()) > _MOST_BYTES for part in parts):
        return None
    return PurePosixPath(*parts)


def free_path(path: PurePosixPath, taken: set[str]) -> PurePosixPath:
    """The path, with a number if another file has it; file systems may not tell cases apart."""
    found, number = path, 2
    while str(found).casefold() in taken:
        found, number = path.with_stem(f"{path.stem}-{number}"), number + 1
    taken.add(str(found).casefold())
    return found
