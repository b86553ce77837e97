"""One walk over the tree of an HTML page: text as blocks, images, and the boxes both are in.

The walk is a loop, not a recursion, so that no depth is too deep. It decides nothing about which
part of the page is the article; `html_content` does, by the boxes.
"""

from __future__ import annotations

from typing import Any

from selectolax.lexbor import LexborNode

from sightline.pages import BlockKind
from sightline.readers.html_images import Attributes, read_image_tag
from sightline.readers.html_parts import Box, Table, Walk, WalkedBlock, WalkedImage, end_row
from sightline.readers.html_skipped import count_comment, count_text, whole_text
from sightline.readers.html_tags import (
    BLOCKS,
    BOXES,
    CAPTION,
    DECORATION,
    FIGURE,
    HIDDEN,
    HOLDERS,
    IMAGES,
    KINDS,
    MUTED,
    NESTED,
    NESTING,
    PERMALINK,
    RENAMED,
    SILENT,
    SKIPPED,
    SKIPPED_IMAGES,
    TITLE,
    holds_article,
    read_marks,
    with_own_names,
)
from sightline.readers.html_text import TextRun

_FRAME = f"{RENAMED}frame"
_TITLES = "further titles"
_LONGEST_CAPTION = 1_000  # characters; what is longer is text, whatever it is called


def walk_tree(
    root: LexborNode,
    descriptions: frozenset[str] = frozenset(),
    images_in_svg: bool = False,
) -> Walk:
    """Walk the tree of a page from its root on; `descriptions` are the ids that images refer to."""
    walker = _Walker(descriptions, images_in_svg)
    stack: list[tuple[LexborNode, str, _Saved]] = []
    node = root
    while node.prev is not None:  # a comment may hold all of a page
        node = node.prev
    while True:
        tag = node.tag
        if tag == "-text":
            if text := node.text_content:
                walker.text(text)
        elif tag in _LEAVES:
            walker.leaf(tag, node)
            # In formulas, names have no meaning: what is empty elsewhere may hold text.
            if tag not in _WHOLE and (child := node.child) is not None:
                stack.append((node, tag, _UNCHANGED))
                node = child
                continue
        elif tag is None or tag == "-comment":  # <? and the like have no name
            count_comment(node, walker.walk.left_out)
        elif tag[0] != "-":  # not the document type
            attributes = node.attributes
            if attributes or tag in _ALWAYS_OPENED:
                saved = walker.open(tag, attributes)
            else:
                saved = _UNCHANGED
            child = node.child
            if child is not None:
                stack.append((node, tag, saved))
                node = child
                continue
            if saved is not _UNCHANGED:
                walker.close(tag, saved)
        while (following := node.next) is None:
            if not stack:
                return walker.finish()
            node, tag, saved = stack.pop()
            if saved is not _UNCHANGED:
                walker.close(tag, saved)
        node = following


# What an element changes for all that is in it, as it was before. Most change nothing, or only
# that their text is a link.
_Saved = tuple[Any, ...]
_UNCHANGED: _Saved = ("unchanged",)
_LINK: _Saved = ("link",)


class _Walker:
    def __init__(self, descriptions: frozenset[str], images_in_svg: bool) -> None:
        self.walk = Walk()
        self.run: TextRun[WalkedImage] = TextRun()
        self.descriptions, self.images_in_svg = descriptions, images_in_svg
        self.figures = self.links = 0
        self.last_described = -1
        # What the elements around the place make of it.
        self.kind = BlockKind.PARAGRAPH
        self.level = self.nesting = 0
        self.box = self.figure = -1
        self.decorative = self.in_noscript = False
        self.text_reason: str | None = None
        self.image_reason: str | None = None
        self.picture: list[Attributes] = []
        # An image that opens an item, a row or a `div` belongs to the text after it in there.
        self.waiting: list[WalkedImage] = []
        self.holder = -1  # the number of blocks when the innermost of these began
        self.description: str | None = None
        self.table = Table()

    def _save(self) -> _Saved:
        # fmt: off
        return (
            self.kind, self.level, self.nesting, self.box, self.figure, self.holder, self.table,
            self.decorative, self.in_noscript, self.text_reason, self.image_reason,
            self.description,
        )
        # fmt: on

    def _restore(self, saved: _Saved) -> None:
        # fmt: off
        (
            self.kind, self.level, self.nesting, self.box, self.figure, self.holder, self.table,
            self.decorative, self.in_noscript, self.text_reason, self.image_reason,
            self.description,
        ) = saved
        # fmt: on

    # ---- text

    def text(self, text: str) -> None:
        """Add the text of a node to the block under way, or count it as left out."""
        if self.text_reason is None:
            if RENAMED in text:
                text = with_own_names(text)
            # Space before a block is nothing, and there is much of it.
            if self.run.pieces or self.kind is BlockKind.CODE or not text.isspace():
                self.run.add(text, self.links > 0)
        else:
            self._count(self.text_reason, text)

    def finish(self) -> Walk:
        """End the walk."""
        self.flush()
        self._place(None)
        return self.walk

    def _count(self, reason: str, text: str) -> None:
        count_text(self.walk.left_out, reason, text)

    def flush(self) -> None:
        """End the block under way."""
        if not self.run.pieces:
            return
        walk = self.walk
        for part in self.run.take(self.kind is BlockKind.CODE):
            if part.text:
                kind = self.kind
                if kind is BlockKind.CAPTION and len(part.text) > _LONGEST_CAPTION:
                    kind = BlockKind.PARAGRAPH
                if self.description is not None:
                    self.last_described = len(walk.blocks)
                    walk.described.setdefault(self.description, []).append(len(walk.blocks))
                walk.blocks.append(
                    WalkedBlock(kind, part.text, self.level, part.linked, self.box, self.figure)
                )
                self._place(0)
                for image, offset in part.images:
                    image.block, image.offset = len(walk.blocks) - 1, offset
                continue
            self.waiting += (image for image, _ in part.images)
            if self.holder != len(walk.blocks):
                self._place(None)

    def _place(self, offset: int | None) -> None:
        """Give the images that wait for text a place: before the last block, or after it."""
        for image in self.waiting:
            image.block, image.offset = len(self.walk.blocks) - 1, offset
        self.waiting.clear()

    # ---- elements

    def open(self, tag: str, attributes: Attributes) -> _Saved:
        """Begin an element; gives what to restore at its end."""
        if (tag == "object" and attributes.get("data")) or tag == _FRAME:
            self.walk.left_out.images["embedded media"] += 1
        marks = read_marks(attributes) if attributes else 0
        block = tag in BLOCKS or bool(marks & CAPTION)
        describes = bool(self.descriptions) and attributes.get("id") in self.descriptions
        if not (block or marks or describes or tag in MUTED):
            if tag == "a" and "href" in attributes:
                self.links += 1
                return _LINK
            return _UNCHANGED
        saved = self._save()
        if block or describes:
            self.flush()
            self._open_block(tag, attributes, marks)
            if describes:
                self.description, self.kind = attributes["id"], BlockKind.CAPTION
        if marks or tag in MUTED:
            self._hide(tag, attributes, marks)
        return saved

    def close(self, tag: str, saved: _Saved) -> None:
        """End an element."""
        if saved is _LINK:
            self.links -= 1
            return
        if tag in BLOCKS or self.box != saved[3]:
            self.flush()
            if self.waiting and saved[5] != len(self.walk.blocks):
                self._place(None)
            if tag == "tr":
                end_row(self.walk, self.table, self.box, self.last_described)
            if self.box != saved[3]:
                box = self.walk.boxes[self.box]
                box.last_block, box.last_image = len(self.walk.blocks), len(self.walk.images)
        self._restore(saved)

    def _hide(self, tag: str, attributes: Attributes, marks: int) -> None:
        """Take note of what hides an element or its text."""
        if tag in MUTED:
            self.text_reason = self.text_reason or MUTED[tag]
            self.in_noscript = self.in_noscript or tag == "noscript"
        if marks & HIDDEN:
            if holds_article(tag, attributes):  # hidden until a script has run
                return
            self.text_reason = self.text_reason or "hidden"
            self.image_reason = self.image_reason or "hidden"
        elif marks & SILENT:
            self.text_reason = self.text_reason or "hidden"
            self.decorative = self.decorative or bool(marks & DECORATION)
        elif marks & PERMALINK:
            self.text_reason = self.text_reason or "permalinks"

    def _open_block(self, tag: str, attributes: Attributes, marks: int) -> None:
        kind = KINDS.get(tag)
        if tag in NESTING:
            self.nesting += 1
        if kind is not None:
            self.kind = kind
            if kind is BlockKind.HEADING:
                self.level = int(tag[1])
            else:
                self.level = max(self.nesting, 1) if kind in NESTED else 0
        elif tag == "p" and self.kind is BlockKind.TABLE_CELL:
            self.kind = BlockKind.PARAGRAPH
        captioned = bool(marks & CAPTION) and tag != "figcaption"
        if kind is None and (captioned or (marks & TITLE and self.figure >= 0)):
            self.kind, self.level = BlockKind.CAPTION, 0
        if tag == "figure" or marks & FIGURE or (captioned and self.figure < 0):
            self.figure = self.figures
            self.figures += 1
        if tag in BOXES or "class" in attributes or "id" in attributes:
            self._open_box(tag, attributes)
        if tag in HOLDERS:
            self.holder = len(self.walk.blocks)
        if tag == "table":
            self.table = Table()
        elif tag == "tr":
            walk = self.walk
            self.table.row = (len(walk.blocks), len(walk.images), len(walk.boxes))
        elif tag == "html":
            self.walk.language = attributes.get("lang") or attributes.get("xml:lang")

    def _open_box(self, tag: str, attributes: Attributes) -> None:
        walk = self.walk
        name = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        role = attributes.get("role") or ""
        walk.boxes.append(Box(tag, self.box, name, role, len(walk.blocks), len(walk.images)))
        self.box = len(walk.boxes) - 1

    def leaf(self, tag: str, node: LexborNode) -> None:
        """Take an element that is empty, or not gone into."""
        walk = self.walk
        if tag in IMAGES:
            self._image(node.attributes)
        elif tag == "br":
            if self.text_reason is None:
                self.run.mark(None)
        elif tag in SKIPPED:
            reason = SKIPPED[tag]
            is_taken = tag == "svg" and self.images_in_svg and self._svg(node)
            walk.left_out.images[reason] += reason in SKIPPED_IMAGES and not is_taken
            self._count(reason, whole_text(node, reason, walk.left_out))
        elif tag == "source":
            self.picture.append(node.attributes)
        elif tag == "title":
            title = whole_text(node, _TITLES, walk.left_out)
            if walk.title is None:
                walk.title = " ".join(with_own_names(title).split()) or None
            else:
                self._count(_TITLES, title)
        elif tag == "input":
            if (node.attributes.get("type") or "").lower() != "hidden":
                self._count("controls", node.attributes.get("value") or "")
        elif tag == "base" and walk.base is None:
            walk.base = node.attributes.get("href")

    def _svg(self, node: LexborNode) -> bool:
        """Take the images that a drawing is made of; says whether there are any."""
        images = [image.attributes for image in node.css("image")]
        sources = [image.get("href") or image.get("xlink:href") for image in images]
        for source, attributes in zip(sources, images, strict=True):
            if source:
                self._image({**attributes, "src": source})
        return any(sources)

    def _image(self, attributes: Attributes) -> None:
        walk = self.walk
        attributes = {key: value and with_own_names(value) for key, value in attributes.items()}
        tag = read_image_tag(attributes, self.picture)
        self.picture = []
        reason = self.image_reason or tag.reason
        if reason is None and read_marks(attributes) & HIDDEN:
            reason = "hidden"
        if reason is not None:
            walk.left_out.images[reason] += 1
            return
        described_by = attributes.get("aria-describedby")
        decorative = self.decorative or tag.decorative
        image = WalkedImage(tag, self.figure, described_by, self.in_noscript, decorative)
        walk.images.append(image)
        self.run.mark(image)


_WHOLE = frozenset((*SKIPPED, "title"))
_LEAVES = _WHOLE | IMAGES | frozenset(("br", "source", "base", "meta", "link", "input"))
_ALWAYS_OPENED = BLOCKS | MUTED.keys()
