"""DOCX files: headings, paragraphs, lists, tables and images in their order.

The archive is read within limits (`zip_limits`), its XML without entities (`safe_xml`), and by the
local names of elements, so that both namespaces of the standard are read alike. This runs in the
child process of `isolation`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

from sightline.image_headers import EXTENSIONS, recognise
from sightline.pages import Block, BlockKind, LeftOut, Page, PageImage
from sightline.problems import SightlineError
from sightline.readers.contents import Contents, read_image_files
from sightline.readers.docx_drawings import read_drawing
from sightline.readers.docx_inserted import read_inserted
from sightline.readers.docx_parts import (
    Relation,
    count_other_parts,
    main_part,
    read_relations,
    read_title,
)
from sightline.readers.docx_styles import Style, is_hidden, number_of, read_styles
from sightline.readers.docx_texts import ParagraphText, held, settle_forms
from sightline.readers.figure_captions import attach_captions
from sightline.safe_xml import attribute, local, parse_xml
from sightline.zip_limits import REPLACED, Archive

_OLE = b"\xd0\xcf\x11\xe0"
_ICON_SIDE = 32  # pixels; smaller than this both ways is no picture
_LONGEST_CELL = 200  # characters of a cell that is joined with its row
# Elements whose text is none of the document's, and what it counts as.
_LEFT_OUT = {
    "del": "deleted text",
    "moveFrom": "deleted text",
    "listEntry": "choices of form fields",
    "listItem": "choices of form fields",
    "textpath": "word art",
    "sym": "signs without a meaning",
    "instrText": "field codes",
    "delInstrText": "field codes",
    "fldData": "field codes",
}
# Text in these is counted in the end, as all that stands where none is looked for.
_NO_TEXT = frozenset(("pPr", "rPr", "delText", "sectPr", "tblPr", "trPr", "tcPr"))


def read_docx(path: Path, *, seconds: float = 8.0) -> Contents:
    """Read a file; raises `SightlineError` whose sentence goes on after the file's name.

    After so many seconds of CPU time it ends with what is read so far.
    """
    end = time.process_time() + seconds
    with path.open("rb") as file:
        if file.read(4) == _OLE:
            raise SightlineError(
                "it is encrypted with a password, or an old .doc file; save it as .docx without "
                "a password."
            )
    with Archive(path) as archive:
        part = main_part(archive)
        walk = _Walk(archive, read_styles(archive, part), read_relations(archive, part), end)
        walk.document(parse_xml(archive.read(part)))
        sources = (i.source for i in walk.images if i.source not in walk.external)
        files = read_image_files(archive, sources, walk.left_out)
        title = read_title(archive)
        pictures = (name for name, data in files.items() if recognise(data) in EXTENSIONS)
        count_other_parts(archive, {part, *walk.inserted, *pictures}, walk.left_out, end)
        walk.left_out.text[REPLACED] += archive.replaced
    blocks, images = attach_captions(walk.blocks, walk.images)
    headline = next((b.text for b in blocks if b.kind is BlockKind.HEADING), None)
    left_out = LeftOut(+walk.left_out.text, +walk.left_out.images)
    page = Page(title or headline, tuple(blocks), tuple(images), walk.language, left_out)
    return Contents(page, files)


class _Walk:
    """One pass over the document; a paragraph is under way between its start and its end."""

    def __init__(
        self,
        archive: Archive,
        styles: dict[str, Style],
        relations: dict[str, Relation],
        end: float,
    ) -> None:
        self.archive, self.styles, self.relations = archive, styles, relations
        self.end, self.is_late = end, False
        default = styles.get("")
        self.language = default.language if default else None
        self.blocks: list[Block] = []
        self.images: list[PageImage] = []
        self.left_out = LeftOut()
        self.external: set[str] = set()
        self.inserted: set[str] = set()  # files that were read or counted where they stand
        self.kind, self.level = BlockKind.PARAGRAPH, 0
        self.text = ParagraphText()
        self.inside: list[PageImage] = []  # images of the paragraph under way
        self.boxes: list[Element] = []  # its text boxes and files, which are read after it
        # What was met of the document's text and images, whether it is read or left out.
        self.characters = self.pictures = 0

    def document(self, root: Element) -> None:
        """Read all; what stands where nothing is looked for is counted in the end."""
        settle_forms(root, self.left_out)
        characters, pictures = held(root)  # first, since afterwards there may be no time
        self.content(root)
        reason = "beyond the limit on time" if self.is_late else "elsewhere in the file"
        self.left_out.text[reason] += max(0, characters - self.characters)
        self.left_out.images[reason] += max(0, pictures - self.pictures)

    def _is_beyond_time(self) -> bool:
        self.is_late = self.is_late or time.process_time() >= self.end
        return self.is_late

    def _leave_out(self, element: Element, reason: str) -> None:
        characters, pictures = held(element)
        self.left_out.text[reason] += characters
        self.left_out.images[reason] += pictures
        self.characters += characters
        self.pictures += pictures

    def content(self, element: Element) -> None:
        """Read what an element holds, paragraph by paragraph."""
        for child in element:
            if self._is_beyond_time():
                return
            tag = local(child.tag)
            if tag == "p":
                self.paragraph(child)
            elif tag == "tbl":
                self.table(child)
            elif tag in _LEFT_OUT:
                self._leave_out(child, _LEFT_OUT[tag])
            elif tag == "altChunk":
                self._inserted(child)
            elif tag not in _NO_TEXT:
                self.content(child)

    def _inserted(self, element: Element) -> None:
        """Read an inserted file; one that is elsewhere or missing is counted with the parts."""
        relation = self.relations.get(attribute(element, "id") or "")
        if relation is None:
            self.left_out.text["inserted files that are missing (number)"] += 1
        elif relation.target in self.inserted:
            self.left_out.text["inserted files that are named again (number)"] += 1
        elif not relation.is_external and relation.target in self.archive:
            self.inserted.add(relation.target)
            for page in read_inserted(self.archive, relation.target, self.left_out):
                self.blocks += page.blocks

    def paragraph(self, element: Element) -> None:
        """Read a paragraph, then its text boxes and the files inserted in it."""
        self.kind, self.level = self._kind(element)
        self.runs(element)
        self.end_paragraph()
        boxes, self.boxes = self.boxes, []
        for box in boxes:
            if local(box.tag) == "altChunk":
                self._inserted(box)
            else:
                self.content(box)

    def end_paragraph(self) -> None:
        """Make a block of the text so far; an image without text stands after the block before."""
        text, images = self.text.whole(), self.inside
        self.text, self.inside = ParagraphText(), []
        if text:
            self.blocks.append(Block(self.kind, text, self.level))
        for image in images:
            offset = min(image.offset or 0, len(text)) if text else None
            self.images.append(replace(image, block=len(self.blocks) - 1, offset=offset))

    def _kind(self, paragraph: Element) -> tuple[BlockKind, int]:
        properties = next((c for c in paragraph if local(c.tag) == "pPr"), None)
        style = self.styles.get("", Style())
        own: dict[str, Element] = {}
        if properties is not None:
            own = {local(child.tag): child for child in properties}
            if "pStyle" in own:
                style = self.styles.get(attribute(own["pStyle"], "val") or "", style)
        outline = number_of(own.get("outlineLvl"))
        outline = style.outline if outline is None else outline
        if outline is not None and outline < 6:
            return BlockKind.HEADING, outline + 1
        if "numPr" in own and style.kind is BlockKind.PARAGRAPH:
            numbering = {local(child.tag): child for child in own["numPr"]}
            if number_of(numbering.get("numId")) != 0:
                return BlockKind.LIST_ITEM, (number_of(numbering.get("ilvl")) or 0) + 1
        return style.kind, style.level

    def runs(self, element: Element) -> None:
        """Add the text of runs to the paragraph under way."""
        for child in element:
            if self._is_beyond_time():
                return
            tag = local(child.tag)
            if tag == "t":
                self.characters += len(child.text or "")
                self.text.add(child.text or "")
            elif tag in ("tab", "ptab"):
                self.text.add(" ")
            elif tag in ("br", "cr"):
                self.text.end_line()
            elif tag == "noBreakHyphen":
                self.text.add("-")
            elif tag in _LEFT_OUT:
                self._leave_out(child, _LEFT_OUT[tag])
            elif tag == "r" and is_hidden(child):
                self._leave_out(child, "hidden text")
            elif tag == "altChunk":
                self.boxes.append(child)
            elif tag in ("drawing", "pict", "object"):
                self._drawing(child)
            elif tag not in _NO_TEXT:
                self.runs(child)

    def _drawing(self, element: Element) -> None:
        drawing = read_drawing(element)
        self.boxes += drawing.boxes
        for art in drawing.word_art:
            self._leave_out(art, _LEFT_OUT["textpath"])
        self.left_out.images["chart or diagram"] += drawing.charts
        self.pictures += drawing.charts + len(drawing.pictures)
        width, height = drawing.width, drawing.height
        for picture in drawing.pictures:
            source = self._source(picture.element)
            if source is None:
                self.left_out.images["no source"] += 1
            elif width and height and max(width, height) <= _ICON_SIDE:
                self.left_out.images["icon"] += 1
            else:
                image = PageImage(
                    source,
                    block=-1,
                    offset=self.text.length,
                    alt="" if drawing.decorative and not picture.alt else picture.alt,
                    title=picture.title,
                    width=width,
                    height=height,
                    decorative=drawing.decorative,
                )
                self.inside.append(image)

    def _source(self, picture: Element) -> str | None:
        for name in ("embed", "link", "id", "relid", "href"):
            relation = self.relations.get(attribute(picture, name) or "")
            if relation is not None:
                if relation.is_external:
                    self.external.add(relation.target)
                return relation.target
        return None

    def table(self, table: Element) -> None:
        """Read a table: a row of short cells is one block, otherwise each cell is for itself."""
        for row in table:
            tag = local(row.tag)
            if tag == "tr":
                self._row(row)
            elif tag in _LEFT_OUT:
                self._leave_out(row, _LEFT_OUT[tag])
            elif tag not in _NO_TEXT and tag != "tblGrid":
                self.table(row)  # content controls around rows

    def _cells(self, row: Element) -> Iterator[Element]:
        """Yield the cells of a row, also of content controls; those of inner tables are theirs."""
        waiting = list(reversed(row))
        while waiting:
            child = waiting.pop()
            tag = local(child.tag)
            if tag == "tc":
                yield child
            elif tag in _LEFT_OUT:
                self._leave_out(child, _LEFT_OUT[tag])
            elif tag not in _NO_TEXT:
                waiting += reversed(child)

    def _row(self, row: Element) -> None:
        first_block, first_image = len(self.blocks), len(self.images)
        texts = []
        for cell in self._cells(row):
            start = len(self.blocks)
            self.content(cell)
            texts.append(" ".join(block.text for block in self.blocks[start:]))
        found = self.blocks[first_block:]
        plain = all(block.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM) for block in found)
        short = all(len(text) <= _LONGEST_CELL for text in texts)
        if found and plain and short and len(self.images) == first_image and len(texts) > 1:
            joined = " | ".join(text for text in texts if text)
            self.blocks[first_block:] = [Block(BlockKind.TABLE_ROW, joined)]
        else:
            self.blocks[first_block:] = [
                replace(b, kind=BlockKind.TABLE_CELL) if b.kind is BlockKind.PARAGRAPH else b
                for b in found
            ]
