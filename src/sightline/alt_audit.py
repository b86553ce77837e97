"""The audit of existing alternative text: what is wrong with it, and where.

The rules are those that can be told without seeing the image. They follow the W3C's tutorial on
images (https://www.w3.org/WAI/tutorials/images/) and its techniques for evaluation tools (AERT,
https://www.w3.org/TR/AERT/, technique 1.1.1).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from urllib.parse import unquote

from sightline.image_places import ImagePlace
from sightline.pages import PageImage

#: Characters; AERT 1.1.1 calls an alternative text suspicious that is longer.
LONGEST_ALT = 150
# No source has a number for how large an ornament may be. Pictures of articles are shown at 200
# pixels and more either way, and ornaments of that size are rare.
_CONTENT_SIDE = 200


class Code(StrEnum):
    """What may be wrong with an alternative text."""

    MISSING = "missing"
    BLANK = "blank"
    EMPTY_LINK = "empty-link"
    EMPTY_CONTENT = "empty-content"
    FILE_NAME = "file-name"
    PLACEHOLDER = "placeholder"
    REDUNDANT_WORDS = "redundant-words"
    SAME_AS_CAPTION = "same-as-caption"
    SAME_AS_TITLE = "same-as-title"
    TOO_LONG = "too-long"
    REPEATED = "repeated"


#: With these there is nothing that a person wrote for the image, so that a new text loses nothing.
REPLACEABLE = frozenset(
    (
        *(Code.MISSING, Code.BLANK, Code.EMPTY_LINK, Code.EMPTY_CONTENT),
        *(Code.FILE_NAME, Code.PLACEHOLDER),
    )
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with the alternative text of one image."""

    code: Code
    message: str
    #: In the source of the article, where that has lines.
    line: int | None = None


_EXTENSION = re.compile(r"\S+\.(?:jpe?g|png|gif|webp|svg|avif|bmp|tiff?|heic|jfif|ico)", re.I)
_CAMERA = re.compile(
    r"(?:img|dsc|dscn|dscf|dcim|pxl|mvimg|gopr|wp|imag|pict|photo|scan|cimg|sam|hpim|p)[_-]?\d{3,}"
    r"[\w-]*|(?:screen ?shot|bildschirmfoto|whatsapp image)[ _-]\d{4}.*",
    re.I,
)
_HASH = re.compile(
    r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{3,}|(?=\S*\d)(?=\S*[a-z])[\w-]{24,}",
    re.I,
)
_NAME_MARK = re.compile(r"[_\d.-]")
_PLACEHOLDER = re.compile(
    r"(?:(?:an? |the |my |your )?(?:images?|img|pictures?|pic|photos?|photograph|graphics?|figures?"
    r"|fig|icon|illustration|screenshot|thumbnail|diagram|chart|logo|banner|bild|foto|abbildung"
    r"|imagen|immagine|alt|alt ?text|alternative text|caption|description|title|untitled|spacer"
    r"|placeholder|null|undefined|none|n/?a|todo|tbd|default|picture here|image here)"
    r"[\s_#.:-]*\d*|[\W_]+)",
    re.I,
)
_REDUNDANT = re.compile(
    r"(?:(?:an?|the|this) )?(?:images?|pictures?|pic|photos?|photographs?|graphic|screen ?shot)"
    r" (?:of|shows|showing|that shows)\b",
    re.I,
)
_NOT_LETTERS = re.compile(r"[\W_]+")


def audit(
    images: Sequence[PageImage],
    places: Sequence[ImagePlace | None],
    *,
    empty_is_missing: bool = False,
) -> list[list[Finding]]:
    """Give the findings of each image; `places` tell lines and links, where they are known.

    With `empty_is_missing`, the source's format cannot tell an empty text from none.
    """
    repeated = _repeated(images)
    findings = []
    for index, (image, place) in enumerate(zip(images, places, strict=True)):
        found = list(_checks(image, place, empty_is_missing))
        if index in repeated:
            others = ", ".join(str(other + 1) for other in repeated[index])
            message = f"The text is also that of another image (image {others})."
            found.append((Code.REPEATED, message))
        line = place.line if place is not None else None
        findings.append([Finding(code, message, line) for code, message in found])
    return findings


def _checks(
    image: PageImage, place: ImagePlace | None, empty_is_missing: bool
) -> list[tuple[Code, str]]:
    alt = image.alt
    if alt is None or (alt == "" and empty_is_missing):
        if image.decorative:
            return []
        return [(Code.MISSING, "The image has no alternative text.")]
    if not alt.strip():
        return _empty(image, place, alt)
    return _written(image, " ".join(alt.split()))


def _empty(image: PageImage, place: ImagePlace | None, alt: str) -> list[tuple[Code, str]]:
    """Ask whether an image that is called decoration can be one."""
    if place is not None and place.names_link:
        message = "The image is all that a link holds, but its text is empty: the link has no name."
        return [(Code.EMPTY_LINK, message)]
    if image.decorative:
        return []
    if alt:
        message = "The text is only space: screen readers announce the image and then say nothing."
        return [(Code.BLANK, message)]
    called = "The text is empty, which calls the image decoration, but"
    if image.caption:
        return [(Code.EMPTY_CONTENT, f"{called} it has a caption.")]
    sides = [side for side in (image.width, image.height) if side is not None]
    if len(sides) == 2 and min(sides) >= _CONTENT_SIDE:
        shown = f"{called} it is shown at {image.width} x {image.height} pixels."
        return [(Code.EMPTY_CONTENT, shown)]
    return []


def _written(image: PageImage, alt: str) -> list[tuple[Code, str]]:
    """Check a text that is there."""
    if _is_file_name(alt, image.source):
        return [(Code.FILE_NAME, f"The text is the name of a file: {_short(alt)}.")]
    if _PLACEHOLDER.fullmatch(alt):
        return [(Code.PLACEHOLDER, f"The text says nothing about the image: {_short(alt)}.")]
    found = []
    if (redundant := _REDUNDANT.match(alt)) is not None:
        message = f"The text begins with {redundant[0]!r}; screen readers say that it is an image."
        found.append((Code.REDUNDANT_WORDS, message))
    if image.caption and plain(alt) == plain(image.caption):
        message = "The text repeats the caption, so that screen readers read it twice."
        found.append((Code.SAME_AS_CAPTION, message))
    if image.title and plain(alt) == plain(image.title):
        found.append((Code.SAME_AS_TITLE, "The text repeats the title of the image."))
    if len(alt) > LONGEST_ALT:
        message = (
            f"The text has {len(alt)} characters, over {LONGEST_ALT}: say it shorter, and the rest "
            "in the article."
        )
        found.append((Code.TOO_LONG, message))
    return found


def _is_file_name(alt: str, source: str) -> bool:
    if _EXTENSION.fullmatch(alt) or _CAMERA.fullmatch(alt) or _HASH.fullmatch(alt):
        return True
    if source[:5].lower() == "data:" or not _NAME_MARK.search(alt) or " " in alt:
        return False
    # The pattern keeps `sunset` of sunset.jpg: a name may be a good word.
    path = PurePosixPath(unquote(source[:2048].partition("?")[0].partition("#")[0]))
    return alt.casefold() in (path.name.casefold(), path.stem.casefold())


def _repeated(images: Sequence[PageImage]) -> dict[int, list[int]]:
    """Find texts that several images of different sources have: the other images of each."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for index, image in enumerate(images):
        alt = " ".join((image.alt or "").split())
        if alt and not _is_file_name(alt, image.source) and not _PLACEHOLDER.fullmatch(alt):
            by_text[plain(alt)].append(index)
    found = {}
    for indexes in by_text.values():
        for index in indexes:
            source = images[index].source
            if others := [other for other in indexes if images[other].source != source]:
                found[index] = others
    return found


def plain(text: str) -> str:
    """Give a text to compare by: letters and digits, in one case."""
    return _NOT_LETTERS.sub(" ", text.casefold()).strip()


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
