"""Alternative texts in Word files: `descr` of the `docPr` that each picture has.

As in `image_places`, the pictures are found by reading a copy in which each carries its number.
All other members of the file are copied as they are.
"""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sightline.articles import Article
from sightline.isolation import read_contents
from sightline.pages import Page
from sightline.problems import SightlineError
from sightline.source_edits import SourceText, splice
from sightline.tag_attributes import set_attribute
from sightline.zip_limits import Archive

_PICTURE = re.compile(r"<(?:[\w.-]+:)?docPr(?=[\t\n\r />])")
_MARK = "\ue000{}\ue001"
_NUMBER = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class _Picture:
    member: str
    #: Where the name of its tag ends in the text of the member.
    place: int


def set_docx_alts(article: Article, texts: Mapping[int, str]) -> tuple[bytes, set[int]]:
    """Give the file with these texts for the images of these indexes, and which were found."""
    members = _read_members(article.path)
    parts = {
        name: SourceText.decode(data, declared=True)
        for name, data in members.items()
        if name.endswith(".xml") and b"docPr" in data
    }
    pictures = [
        _Picture(name, match.end())
        for name, part in parts.items()
        for match in _PICTURE.finditer(part.text)
    ]
    marks = {number: _MARK.format(number) for number in range(len(pictures))}
    marked = _read(_packed(article.path, members | _with(parts, pictures, marks)))
    if [i.source for i in marked.images] != [i.source for i in article.page.images]:
        raise _unlike(article.path)
    numbers: dict[int, int] = {}
    for index, image in enumerate(marked.images):
        match = _NUMBER.fullmatch(image.alt or "")
        if index in texts and match is not None:
            numbers[int(match[1])] = index
    new = {number: texts[index] for number, index in numbers.items()}
    data = _packed(article.path, members | _with(parts, pictures, new))
    found = set(numbers.values())
    expected = [
        texts[n] if n in found else image.alt for n, image in enumerate(article.page.images)
    ]
    copy = _read(data)
    if [i.alt for i in copy.images] != expected or copy.text != article.page.text:
        raise _unlike(article.path)
    return data, found


def _unlike(path: Path) -> SightlineError:
    return SightlineError(
        f"{path}: the texts cannot be put in without changing how the rest reads; nothing was "
        "written."
    )


def _with(
    parts: Mapping[str, SourceText], pictures: list[_Picture], texts: Mapping[int, str]
) -> dict[str, bytes]:
    """Give the members that change, with texts for the pictures of these numbers."""
    changed = {}
    for name, part in parts.items():
        edits = [
            set_attribute(part, pictures[number].place, "descr", text)
            for number, text in texts.items()
            if pictures[number].member == name
        ]
        if edits:
            changed[name] = part.encode(splice(part.text, edits))
    return changed


def _read_members(path: Path) -> dict[str, bytes]:
    """Read all members; of two with one name, the last is taken, as the reader does."""
    try:
        with Archive(path) as archive:
            return {name: archive.read(name) for name in archive.names()}
    except SightlineError as error:
        raise SightlineError(f"{path}: {error}") from error


def _packed(path: Path, members: Mapping[str, bytes]) -> bytes:
    """Pack members as they are packed in the file."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(out, "w") as copy:
        copy.comment = archive.comment
        for name, data in members.items():
            info = archive.getinfo(name)
            member = zipfile.ZipInfo(name, info.date_time)
            member.compress_type = info.compress_type
            member.external_attr, member.comment = info.external_attr, info.comment
            member.create_system = info.create_system
            copy.writestr(member, data)
    return out.getvalue()


def _read(data: bytes) -> Page:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.docx"
        path.write_bytes(data)
        return read_contents(path, "docx").page
