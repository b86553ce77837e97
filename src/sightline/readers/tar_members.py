"""The files in a tar archive, one after the other, for archives that nobody vouches for.

Python's tarfile would do for sound archives. On others it takes a damaged header in the middle
for the end, allots whatever size an extended header claims, and some versions never end; this
walk reads the header of each file and nothing else, and always moves forward.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

_BLOCK = tarfile.BLOCKSIZE
_END = bytes(_BLOCK)
# Bytes of an extended header, which holds a name or a few numbers.
_MOST_EXTENDED = 2**20
# Bytes of zeros behind the end of an archive, which tapes fill up their blocks with.
_MOST_ZEROS, _PIECE = 2**24, 2**16
_MODE = 0o644

#: Members that are no files and have no data.
_OTHERS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive: its name and where its bytes are; `other` says what else it is."""

    name: str
    offset: int
    size: int
    other: str | None = None


class TarError(Exception):
    """The archive cannot be read from here on; the members before are good.

    `name` is that of the member which is cut, if it is known.
    """

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


def tar_members(file: BufferedReader) -> Iterator[Member]:
    """Yield the members of an archive, folders left out; raises `TarError` where it is damaged."""
    length = os.fstat(file.fileno()).st_size
    position = 0
    extended: dict[str, str] = {}
    while True:
        file.seek(position)
        header = file.read(_BLOCK)
        if header == _END:
            # Archives may stand one behind the other; anything else behind the end is damage.
            following = _after_zeros(file, position)
            if following is None:
                return
            position = following
            continue
        info = _header(header)
        if info.type in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            extended |= _extended(file, info)
        elif info.type not in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            name = extended.get("path", info.name)
            info.size = _size(extended.get("size"), info.size)
            extended = {}
            other = _OTHERS.get(info.type)
            if info.type == tarfile.GNUTYPE_SPARSE:
                raise TarError(f"{name} is stored as a sparse file, which is not supported", name)
            if other is not None or info.type == tarfile.DIRTYPE:
                info.size = 0
            if position + _BLOCK + info.size > length:
                raise TarError(f"the archive ends early, in {name}", name)
            # A type that nobody knows is a file, says POSIX.
            if info.type != tarfile.DIRTYPE:
                yield Member(name, position + _BLOCK, info.size, other)
        position += _BLOCK + -(-info.size // _BLOCK) * _BLOCK


def _after_zeros(file: BufferedReader, position: int) -> int | None:
    """Find the first block that is not of zeros; None if there is none."""
    end = position + _MOST_ZEROS
    while position < end:
        file.seek(position)
        piece = file.read(_PIECE)
        if not piece:
            return None
        if piece.strip(b"\0"):
            return position + (len(piece) - len(piece.lstrip(b"\0"))) // _BLOCK * _BLOCK
        position += len(piece)
    raise TarError("the archive goes on with zeros where a file should begin")


def member_bytes(name: str, data: bytes) -> bytes:
    """Give a file as it stands in an archive; the same content gives the same bytes."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), _MODE
    header = info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")
    return b"".join((header, data, bytes(-len(data) % _BLOCK)))


#: What an archive ends with.
ARCHIVE_END = _END * 2


def _header(block: bytes) -> tarfile.TarInfo:
    if len(block) < _BLOCK:
        if not block:
            raise TarError("the archive has no end mark, it may have been cut")
        raise TarError("the archive ends early, in a header")
    try:
        # A name may hold bytes that are no text, which JSON could not keep.
        info = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
    except tarfile.HeaderError as error:
        raise TarError(f"the archive is damaged: {error}") from None
    if info.size < 0:
        raise TarError(f"the archive is damaged: {info.name} has a negative size")
    return info


def _extended(file: BufferedReader, info: tarfile.TarInfo) -> dict[str, str]:
    """Read the header that goes before another one: a long name, or pax's keys and values."""
    if info.size > _MOST_EXTENDED:
        raise TarError(f"the archive is damaged: an extended header of {info.size:,} bytes")
    data = file.read(info.size)
    if info.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.partition(b"\0")[0].decode("utf-8", "backslashreplace")}
    found = {}
    at = 0
    while at < len(data):
        digits = data[at : at + 8].partition(b" ")[0]
        end = at + int(digits) if digits.isdigit() else 0
        if not at + len(digits) < end <= len(data):
            raise TarError("the archive is damaged: an extended header that makes no sense")
        key, _, value = data[at + len(digits) + 1 : end - 1].partition(b"=")
        if key in (b"path", b"size"):
            found[key.decode()] = value.decode("utf-8", "backslashreplace")
        at = end
    return found


def _size(claimed: str | None, size: int) -> int:
    if claimed is None:
        return size
    if not (claimed.isascii() and claimed.isdigit() and len(claimed) < 20):
        raise TarError(f"the archive is damaged: a size of {claimed[:20]!r}")
    return int(claimed)
