"""PDF files: text in reading order, images by their boxes, captions next to them.

PDFium gives characters and images with boxes; `pdf_layout` finds columns, `pdf_paragraphs` makes
paragraphs of lines. This runs in the child process of `isolation`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from sightline.pages import Block, BlockKind, LeftOut, Page, PageImage
from sightline.problems import SightlineError
from sightline.readers.contents import MAX_IMAGE_BYTES, Contents
from sightline.readers.figure_captions import begins_like_figure_caption
from sightline.readers.pdf_annotations import count_beside_pages, open_form, show_annotations
from sightline.readers.pdf_blank import count_undecoded
from sightline.readers.pdf_bookmarks import count_bookmarks
from sightline.readers.pdf_captions import find_captions
from sightline.readers.pdf_images import MAX_PIXELS, covers, draw_image, image_objects
from sightline.readers.pdf_layout import Box, Item, Line, Picture, reading_order
from sightline.readers.pdf_losses import UNSEARCHED, count_losses
from sightline.readers.pdf_paragraphs import ParagraphBuilder, heading_levels, plain
from sightline.readers.pdf_structure import STANDS_FOR_PICTURES, texts_for_pictures
from sightline.readers.pdf_text import Turn, count_shapeless, find_turn, page_objects, read_pieces
from sightline.unpacking import image_extension

MAX_PAGES = 2_000
MAX_IMAGES = 2_000
_MAX_PAGE_IMAGES = 200
_SMALLEST_SIDE = 20.0  # points; rules, bullets and icons are smaller
_FEWEST_PIXELS = 24  # of a side
_WHOLE_PAGE = 0.8  # of the page: a scan or a background
_MARGIN = 0.09  # of the page's height, where headers and footers stand
_NUMBER_MARGIN = 0.17  # where page numbers stand: LaTeX leaves so much below its text
_REPEATED = 3  # pages that have the same header, or the same picture
_NO_TEXT = "pages without text: scans or drawings (number)"
_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?:page|seite|p\.)?\s*[-–]?\s*(?:\d{1,4}|[ivxlc]{1,7})\s*[-–]?\Z", re.I)


@dataclass(slots=True)
class _PdfPage:
    """What one page holds."""

    number: int
    height: float
    lines: list[Line] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    document: Any
    form: Any
    left_out: LeftOut = field(default_factory=LeftOut)
    pages: list[_PdfPage] = field(default_factory=list)
    #: Pages that show nothing but what lies over them.
    bare_pages: list[int] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    #: File names by content, and the pages that show it.
    names: dict[str | None, str] = field(default_factory=dict)
    shown_on: dict[str, set[int]] = field(default_factory=dict)
    image_bytes: int = 0


def read_pdf(path: Path, *, seconds: float = 8.0) -> Contents:
    """Read a file; raises `SightlineError` whose sentence goes on after the file's name.

    After so many seconds of CPU time it ends with the pages read so far.
    """
    end = time.process_time() + seconds
    document = _open(path)
    count = len(document)
    with open_form(document) as form:
        reading = _Reading(document, form)
        for number in range(min(count, MAX_PAGES)):
            if time.process_time() >= end:
                break
            _read_page(reading, number)
        else:
            number = min(count, MAX_PAGES)
    reading.left_out.text["pages beyond the limits (number)"] = count - number
    undecoded = count_undecoded(path, reading.bare_pages, end)
    reading.left_out.text["pages that cannot be decoded (number)"] = undecoded
    count_beside_pages(document, reading.left_out)
    count_losses(path, document, end, reading.left_out)
    if not any(page.lines for page in reading.pages):
        raise SightlineError(_no_text(reading.left_out))
    lines = (line.text for page in reading.pages for line in page.lines)
    count_bookmarks(document, lines, end, reading.left_out)
    _drop_margins(reading)
    _drop_repeated_pictures(reading)
    return Contents(_page(reading, _metadata(document, "Title")), _used(reading))


def _no_text(left_out: LeftOut) -> str:
    """Say why there is no text: most often none is there, but some may have been left out."""
    reasons = [reason for reason in +left_out.text if reason not in (_NO_TEXT, UNSEARCHED)]
    if reasons:
        return f"it holds no text but what is left out: {', '.join(reasons)}."
    return "it holds no text: its pages are pictures or empty. Recognise its text (OCR) first."


def _open(path: Path) -> Any:
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        code = pdfium.FPDF_GetLastError()
        if code == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower():
            raise SightlineError(
                "it is encrypted with a password; save a copy without one."
            ) from error
        if code == pdfium.FPDF_ERR_SECURITY:
            raise SightlineError("it is encrypted in a way that is not supported.") from error
        raise SightlineError("it is damaged, or not a PDF file at all.") from error
    if not len(document):
        raise SightlineError("it is damaged: it holds no pages.")
    return document


def _read_page(reading: _Reading, number: int) -> None:
    left_out = reading.left_out
    try:
        page = reading.document[number]
        if not pdfium.FPDFPage_CountObjects(page):
            reading.bare_pages.append(number)
        if show_annotations(page, reading.form, left_out):
            page.close()
            page = reading.document[number]
    except pypdfium2.PdfiumError:
        left_out.text["pages that cannot be read (number)"] += 1
        return
    text_page = pdfium.FPDFText_LoadPage(page)
    box = _shown_box(page)
    turn = find_turn(text_page, box) if text_page else Turn(0, box)
    found = _PdfPage(number, turn.size[1])
    objects = page_objects(page, left_out)
    if text_page:
        characters = pdfium.FPDFText_CountChars(text_page)
        count_shapeless(objects, characters, left_out)
        found.lines = read_pieces(text_page, turn, left_out)
        pdfium.FPDFText_ClosePage(text_page)
        if not characters and pdfium.FPDFPage_CountObjects(page):
            left_out.text[_NO_TEXT] += 1
    else:
        left_out.text["pages that cannot be read (number)"] += 1
    texts = texts_for_pictures(page, objects, left_out)
    _read_pictures(reading, page, turn, found, texts)
    reading.pages.append(found)
    page.close()


def _shown_box(page: Any) -> Box:
    """Give the part of a page that is shown, also where the file gives its corners in any order.

    PDFium knows boxes that pages inherit, and puts others in place of empty ones; what is empty
    even so are two boxes that share nothing, of which the crop box is the one to go by.
    """
    box = Box(*page.get_bbox())
    if box.width > 0 and box.height > 0:
        return box
    x1, y1, x2, y2 = page.get_cropbox()
    return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


def _read_pictures(
    reading: _Reading, page: Any, turn: Turn, found: _PdfPage, texts: dict[int, str]
) -> None:
    """Read the pictures of a page; `texts` are those that stand for some of them, by their mark."""
    width, height = turn.size
    images = reading.left_out.images
    for image in image_objects(page, reading.left_out):
        box = turn.box(*image.corners)
        share = covers(box, width, height)
        tiny = min(box.width, box.height) < _SMALLEST_SIDE
        if tiny or share == 0 or min(image.width, image.height) < _FEWEST_PIXELS:
            images["decoration or off the page"] += 1
        elif share >= _WHOLE_PAGE:
            images["background or scan of a page"] += 1
        elif len(found.pictures) >= _MAX_PAGE_IMAGES or len(reading.files) >= MAX_IMAGES:
            images["beyond the limits"] += 1
        else:
            name = _file_name(reading, page, image, turn, found)
            reading.shown_on.setdefault(name, set()).add(found.number)
            found.pictures.append(Picture(name, box, texts.pop(image.mark, None)))
    # Of pictures that were left out, such as scans.
    reading.left_out.text[STANDS_FOR_PICTURES] += sum(map(len, texts.values()))


def _file_name(reading: _Reading, page: Any, image: Any, turn: Turn, found: _PdfPage) -> str:
    """Draw an image, if no page before has it; one that cannot be drawn has a name and no file."""
    content = image.content_hash()
    key = None if content is None else f"{content} {turn.quarters}"
    if key in reading.names:
        return reading.names[key]
    stem = f"page-{found.number + 1}-image-{len(found.pictures) + 1}"
    data = None
    if image.width * image.height <= MAX_PIXELS and reading.image_bytes < MAX_IMAGE_BYTES:
        data = draw_image(reading.document, page, image, turn.quarters)
    if data is None or reading.image_bytes + len(data) > MAX_IMAGE_BYTES:
        reading.left_out.images["cannot be drawn, or beyond the limits"] += 1
        name = stem
    else:
        name = f"{stem}.{image_extension(data)}"
        reading.files[name] = data
        reading.image_bytes += len(data)
    if key is not None:
        reading.names[key] = name
    return name


def _drop_margins(reading: _Reading) -> None:
    """Leave out headers and footers: lines that come again in the margins, and page numbers."""
    seen: Counter[str] = Counter()
    for page in reading.pages:
        seen.update({_pattern(line) for line in page.lines if _in_margin(line, page.height)})
    for page in reading.pages:
        kept = []
        lowest = min((line.box.top for line in page.lines), default=0.0)
        for line in page.lines:
            is_number = bool(_PAGE_NUMBER.match(line.text))
            repeated = seen[_pattern(line)] >= _REPEATED or is_number
            is_last = line.box.top == lowest < _NUMBER_MARGIN * page.height
            if (repeated and _in_margin(line, page.height)) or (is_number and is_last):
                reading.left_out.text["headers and footers"] += len(line.text)
            else:
                kept.append(line)
        page.lines = kept


def _in_margin(line: Line, height: float) -> bool:
    return line.box.top < _MARGIN * height or line.box.bottom > (1 - _MARGIN) * height


def _pattern(line: Line) -> str:
    return _DIGITS.sub("0", line.text)


def _drop_repeated_pictures(reading: _Reading) -> None:
    """Leave out what is shown on page after page, such as the publisher's mark."""
    for page in reading.pages:
        kept = []
        for picture in page.pictures:
            if len(reading.shown_on[picture.name]) < _REPEATED:
                kept.append(picture)
            else:
                reading.left_out.images["repeated on pages"] += 1
                reading.left_out.text[STANDS_FOR_PICTURES] += len(picture.alt or "")
        page.pictures = kept


def _page(reading: _Reading, title: str | None) -> Page:
    columns: list[tuple[int, list[Item]]] = []
    for page in reading.pages:
        items: list[Item] = [*page.lines, *page.pictures]
        columns += [(page.number, column) for column in reading_order(items)]
    builder = ParagraphBuilder([column for _, column in columns])
    for number, column in columns:
        builder.add_column(column, number)
    levels = heading_levels(builder.paragraphs)
    captions = find_captions(builder.paragraphs, builder.pictures)
    used = {index for indexes in captions for index in indexes}
    blocks = []
    for index, paragraph in enumerate(builder.paragraphs):
        kind = paragraph.kind
        if kind is BlockKind.CAPTION and index not in used:
            drawn = begins_like_figure_caption(paragraph.text)  # else of a table
            reading.left_out.images["drawn figures with a caption"] += drawn
        level = levels[round(paragraph.size)] if kind is BlockKind.HEADING else 0
        level = 1 if kind is BlockKind.LIST_ITEM else level
        blocks.append(Block(kind, plain(paragraph.text), level))
    images = tuple(
        PageImage(
            placed.picture.name,
            block=placed.after,
            alt=placed.picture.alt,
            caption=" ".join(blocks[index].text for index in indexes) or None,
            caption_blocks=indexes,
            width=round(placed.picture.box.width),
            height=round(placed.picture.box.height),
        )
        for placed, indexes in zip(builder.pictures, captions, strict=True)
    )
    headline = next((b.text for b in blocks if b.kind is BlockKind.HEADING and b.level == 1), None)
    left_out = LeftOut(+reading.left_out.text, +reading.left_out.images)
    language = _language(reading.document)
    return Page(headline or title, tuple(blocks), images, language, left_out)


def _used(reading: _Reading) -> dict[str, bytes]:
    names = {picture.name for page in reading.pages for picture in page.pictures}
    return {name: data for name, data in reading.files.items() if name in names}


def _metadata(document: Any, key: str) -> str | None:
    value = " ".join(document.get_metadata_value(key).split())
    return value or None


def _language(document: Any) -> str | None:
    size = pdfium.FPDFCatalog_GetLanguage(document, None, 0)
    if not 2 < size < 200:
        return None
    buffer = (pdfium.FPDF_WCHAR * (size // 2))()
    pdfium.FPDFCatalog_GetLanguage(document, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0") or None
