"""Image files out of shards onto the disk, whatever names the shards give them.

Nothing outside the folder is ever written, nothing that is there is ever changed, and only what
begins like an image is written at all.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path, PurePosixPath

from sightline.image_headers import EXTENSIONS, SUFFIXES, recognise
from sightline.problems import SightlineError

_FOLDER = "images"
# Characters that are no part of a name on one system or another, and bytes of one name.
_UNSAFE = re.compile(r'[\0-\x1f\x7f\\:*?"<>|]')
_MOST_BYTES = 200
_MOST_FOLDERS = 8


def image_extension(data: bytes) -> str | None:
    """Give the extension for an image's bytes; None if they do not begin like an image."""
    return EXTENSIONS.get(recognise(data) or "")


def unpack_image(data: bytes, image: str, folder: Path) -> str | None:
    """Write an image into a folder; gives its path in it, or None for what is no image.

    It gets the path that the document has for it, if that is a harmless one and no other image
    stands there; otherwise a name made of its content.
    """
    extension = image_extension(data)
    if extension is None:
        return None
    if _is_harmless(image) and _place(data, folder / image):
        return image
    made_up = f"{_FOLDER}/{hashlib.blake2b(data, digest_size=16).hexdigest()}.{extension}"
    if not _place(data, folder / made_up):
        raise SightlineError(f"{folder / made_up} is in the way; move it elsewhere and try again.")
    return made_up


def _is_harmless(image: str) -> bool:
    path = PurePosixPath(image)
    if image != str(path) or path.is_absolute() or _UNSAFE.search(image):
        return False
    if path.suffix.lower() not in SUFFIXES or len(path.parts) > _MOST_FOLDERS:
        return False
    try:
        longest = max(len(part.encode()) for part in path.parts)
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    # A leading dot stands for hidden files, and for the way up.
    return longest <= _MOST_BYTES and not any(part.startswith(".") for part in path.parts)


def _place(data: bytes, path: Path) -> bool:
    """Write a file, or find it there already; False if something else is there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    temporary = path.with_name(f".sightline-{secrets.token_hex(8)}.tmp")
    try:
        if os.path.lexists(path):
            return path.is_file() and path.read_bytes() == data
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        raise SightlineError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    return True
