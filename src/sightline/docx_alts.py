"""Alternative texts in Word files: `descr` of the `docPr` that each picture has.

Pictures of a group have a `cNvPr` each. As in `image_places`, the pictures are found by reading a
copy in which each carries its number. All members but the document itself, which is the only one
that images are read from, are copied as they are packed.
"""

from __future__ import annotations

import re
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from sightline.articles import Article
from sightline.isolation import read_contents
from sightline.pages import Page
from sightline.problems import SightlineError
from sightline.readers.docx_parts import main_part
from sightline.source_edits import SourceText, splice
from sightline.tag_attributes import set_attribute
from sightline.zip_limits import Archive

# What looks like a tag in a comment is none, and its attributes might end nowhere.
_PICTURE = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|<(?P<name>(?:[\w.-]+:)?(?:docPr|cNvPr))(?=[\t\n\r />])",
    re.S,
)
_MARK = "\ue000{}\ue001"
_NUMBER = re.compile("\ue000(\\d+)\ue001")
#: Packed bytes of all members. The copy is held in memory once, and members may overlap.
_MOST_BYTES = 256 * 2**20
_BLOCK = 2**20
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # its mark; the lengths of the name and of more
_SIZES_FOLLOW = 0x8  # a flag: they stand after the data, not before it


def set_docx_alts(article: Article, texts: Mapping[int, str]) -> tuple[bytes, set[int]]:
    """Give the file with these texts for the images of these indexes, and which were found."""
    name, part = _read_part(article.path)
    places = [match.end() for match in _PICTURE.finditer(part.text) if match["name"]]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.docx"
        marks = {place: _MARK.format(number) for number, place in enumerate(places)}
        _write_copy(article.path, name, _with(part, marks), copy)
        numbers = _numbers(article, read_contents(copy, "docx").page, texts)
        new = {places[number]: texts[index] for number, index in numbers.items()}
        _write_copy(article.path, name, _with(part, new), copy)
        found = set(numbers.values())
        page = read_contents(copy, "docx").page
        expected = [texts[n] if n in found else i.alt for n, i in enumerate(article.page.images)]
        if [i.alt for i in page.images] != expected or page.text != article.page.text:
            raise _unlike(article.path)
        return copy.read_bytes(), found


def _numbers(article: Article, marked: Page, texts: Mapping[int, str]) -> dict[int, int]:
    """Give the images that texts are for, by the numbers that the copy's images carry."""
    if [i.source for i in marked.images] != [i.source for i in article.page.images]:
        raise _unlike(article.path)
    numbers: dict[int, int] = {}
    for index, image in enumerate(marked.images):
        match = _NUMBER.fullmatch(image.alt or "")
        if index in texts and match is not None:
            numbers[int(match[1])] = index
    return numbers


def _unlike(path: Path) -> SightlineError:
    return SightlineError(
        f"{path}: the texts cannot be put in without changing how the rest reads; nothing was "
        "written."
    )


def _with(part: SourceText, texts: Mapping[int, str]) -> bytes:
    """Give the document with texts for the pictures at these places."""
    edits = [set_attribute(part, place, "descr", text) for place, text in texts.items()]
    return part.encode(splice(part.text, edits))


def _read_part(path: Path) -> tuple[str, SourceText]:
    """Read the document itself, which a child process has read before, within its limits."""
    try:
        with Archive(path) as archive:
            name = main_part(archive)
            return name, SourceText.decode(archive.read(name), declared=True)
    except SightlineError as error:
        raise SightlineError(f"{path}: {error}") from error


def _write_copy(path: Path, name: str, data: bytes, target: Path) -> None:
    """Write a copy of the file in which one member is new, packed as it was.

    Of two members with one name, the last is taken, as the reader does.
    """
    try:
        with (
            path.open("rb") as file,
            zipfile.ZipFile(file) as archive,
            zipfile.ZipFile(target, "w") as copy,
        ):
            members = {member.filename: member for member in archive.infolist()}.values()
            if sum(member.compress_size for member in members) > _MOST_BYTES:
                raise SightlineError(
                    f"{path}: is larger than {_MOST_BYTES // 2**20} MiB, the limit for writing "
                    "alternative texts; make its pictures smaller."
                )
            copy.comment = archive.comment
            for member in members:
                if member.filename == name:
                    copy.writestr(_described_as(member), data)
                else:
                    _copy_packed(file, member, copy)
    except (zipfile.BadZipFile, EOFError, struct.error, ValueError) as error:
        raise SightlineError(
            f"{path}: is damaged, so that it cannot be copied as it is; nothing was written."
        ) from error


def _described_as(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(member.filename, member.date_time)
    info.compress_type, info.create_system = member.compress_type, member.create_system
    info.external_attr, info.comment = member.external_attr, member.comment
    return info


def _copy_packed(file: IO[bytes], member: zipfile.ZipInfo, copy: zipfile.ZipFile) -> None:
    """Copy a member without unpacking it, which zipfile has no function for."""
    file.seek(max(0, member.header_offset))  # what an archive says may be before its start
    mark, *lengths = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if mark != b"PK\3\4":
        raise EOFError
    file.seek(sum(lengths), 1)
    info = _described_as(member)
    info.flag_bits = member.flag_bits & ~_SIZES_FOLLOW
    info.CRC, info.file_size = member.CRC, member.file_size
    info.compress_size = remaining = member.compress_size
    out = copy.fp
    assert out is not None  # it is open
    info.header_offset = out.tell()
    out.write(info.FileHeader())
    while remaining:
        block = file.read(min(remaining, _BLOCK))
        if not block:
            raise EOFError
        out.write(block)
        remaining -= len(block)
    copy.filelist.append(info)
    copy.start_dir = out.tell()  # where the next member goes
