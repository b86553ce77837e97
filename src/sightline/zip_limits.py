"""ZIP files that nobody vouches for (DOCX, EPUB), read within limits and never unpacked to disk."""

from __future__ import annotations

import copy
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sightline.problems import SightlineError


@dataclass(frozen=True, slots=True)
class ZipLimits:
    """What an archive may hold; more is refused."""

    members: int = 20_000
    # Unpacked bytes of one member and of all that are read.
    member_bytes: int = 64 * 2**20
    total_bytes: int = 512 * 2**20
    # Unpacked to packed, beyond the first megabyte: deflate gives up to 1,032, repetitive XML 100.
    ratio: int = 250


#: What the members count as that `Archive.replaced` counts.
REPLACED = "files that a later one of the same name replaces (number)"
DEFAULT_LIMITS = ZipLimits()
_FREE = 1 << 20  # bytes that may be packed as densely as they like
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_HEAD = 512  # bytes that show whether a member is text
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
# Byte order marks of UTF-16 and UTF-32, and markup in them without one.
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"<\0", b"\0<", b"\0\0\0<")


class Archive:
    """An archive whose members are read by name; a context manager."""

    def __init__(self, path: Path, limits: ZipLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._read_bytes = 0
        try:
            self._zip = zipfile.ZipFile(path)
        # zipfile raises the last for versions of the format that it does not know.
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise SightlineError(
                "it is damaged: it cannot be opened as the ZIP archive that it should be."
            ) from error
        members = self._zip.infolist()
        if len(members) > limits.members:
            raise SightlineError(
                f"it holds {len(members):,} files, more than {limits.members:,}, the limit."
            )
        # Of two members with one name, which programs disagree about, the last is taken.
        self._members = {member.filename: member for member in members}
        #: Members that a later one of the same name replaces.
        self.replaced = sum(
            not m.filename.endswith("/") and self._members[m.filename] is not m for m in members
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self) -> list[str]:
        """Give the names of all members."""
        return list(self._members)

    def size(self, name: str) -> int:
        """Give the unpacked bytes of a member, as the archive says."""
        return self._members[name].file_size

    def read(self, name: str) -> bytes:
        """Unpack a member that must be there; raises `SightlineError`."""
        data = self.find(name)
        if data is None:
            raise SightlineError(f"it is damaged: it holds no {name!r}.")
        return data

    def find(self, name: str) -> bytes | None:
        """Unpack a member; None if there is none."""
        member = self._members.get(name)
        if member is None:
            return None
        dense = _FREE + self.limits.ratio * member.compress_size
        most = min(self.limits.member_bytes, self.limits.total_bytes - self._read_bytes, dense)
        data = self._unpack(member, most + 1)
        if len(data) > most:
            raise SightlineError(
                f"{member.filename[:100]!r} in it unpacks to more than the limits allow, as a zip "
                "bomb does."
            )
        self._read_bytes += len(data)
        return data

    def head(self, name: str) -> bytes:
        """Unpack the first bytes of a member that must be there; raises `SightlineError`."""
        return self._unpack(self._members[name], _HEAD)

    def holds_text(self, name: str) -> bool:
        """Say whether a member that must be there begins as texts do; raises `SightlineError`."""
        head = self.head(name)
        return head.startswith(_WIDE) or (bool(head) and not _NO_TEXT.search(head))

    def _unpack(self, member: zipfile.ZipInfo, most: int) -> bytes:
        """Unpack no more bytes than that, whatever the archive says of itself."""
        if member.flag_bits & _ENCRYPTED:
            raise SightlineError(
                "it is encrypted with a password; remove that with the program that made it."
            )
        if member.compress_type not in _METHODS:
            raise SightlineError(f"it is packed by a method ({member.compress_type}) that is rare.")
        try:
            return self._inflate(member, most)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise SightlineError(
                f"it is damaged: {member.filename[:100]!r} in it cannot be unpacked."
            ) from error
        # What zipfile raises for a compression that it does not know, and for a password.
        except (NotImplementedError, RuntimeError) as error:
            raise SightlineError(
                f"{member.filename[:100]!r} in it is packed in a way that is not supported."
            ) from error

    def _inflate(self, member: zipfile.ZipInfo, most: int) -> bytes:
        """Unpack, and see that the data end where the archive says.

        zipfile ends silently at a size that the archive understates.
        """
        packed = copy.copy(member)
        packed.compress_type, packed.file_size = zipfile.ZIP_STORED, member.compress_size
        del packed.CRC  # zipfile then compares none
        is_stored = member.compress_type == zipfile.ZIP_STORED
        with self._zip.open(packed) as file:
            data = file.read(most if is_stored else most + most // 100 + 8 * _HEAD)
        is_whole = len(data) == member.compress_size
        if not is_stored and data:
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            data = inflater.decompress(data, most)
            is_whole = inflater.eof
        is_beyond = len(data) == most and not is_whole
        if len(data) > member.file_size or not (is_beyond or is_whole):
            raise zipfile.BadZipFile("it does not end where the archive says")
        if not is_beyond and zlib.crc32(data) != member.CRC:
            raise zipfile.BadZipFile("its checksum is another")
        return data
