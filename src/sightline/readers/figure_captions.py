"""Captions by their words (`Figure 3: ...`) and by standing next to an image."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sightline.pages import Block, BlockKind, PageImage

_FIGURE_WORDS = (
    r"fig(?:ure|ura|\.)?|abb(?:ildung|\.)|bild|afb(?:eelding|\.)|illustration|photo(?:graph)?|foto"
    r"|image|plate|chart|diagram|scheme|exhibit|map|рис(?:унок|\.)|rys(?:unek|\.)?|図|图"
)
_FIGURE = re.compile(
    rf"(?:supplementary\s+)?(?:{_FIGURE_WORDS})\s*(?:[A-Z]{{0,2}}\.?\d[\d.\-–]*[a-z]?|[IVX]+)\b",
    re.I,
)
_TABLE = re.compile(r"(?:tab(?:le|elle|leau|la|\.)|listing|algorithm)\s*[A-Z]?[\dIVX]", re.I)
# In a sentence the word goes on in lower case: "Figure 3 shows ...".
_GOES_ON = re.compile(r"\s+\(?[a-z]")


def begins_like_figure_caption(text: str) -> bool:
    """Say whether a text begins as captions of figures do, and not as a sentence about one."""
    found = _FIGURE.match(text)
    return found is not None and _GOES_ON.match(text, found.end()) is None


def begins_like_table_caption(text: str) -> bool:
    """Say whether a text is the caption of a table."""
    return _TABLE.match(text) is not None


def attach_captions(
    blocks: Sequence[Block], images: Sequence[PageImage]
) -> tuple[list[Block], list[PageImage]]:
    """Give captions to the images right before them, else to those right after.

    A caption is a block of that kind, or a paragraph next to an image that begins like one. One
    caption may belong to several images that stand together.
    """
    blocks, images = list(blocks), list(images)
    at: dict[int, list[int]] = {}
    for number, image in enumerate(images):
        at.setdefault(image.block, []).append(number)
    for index, block in enumerate(blocks):
        if not _may_be_caption(block):
            continue
        before = [n for n in at.get(index - 1, ()) if _is_last(images[n], blocks)]
        inside = [n for n in at.get(index, ()) if images[n].offset is not None]
        after = [n for n in at.get(index, ()) if images[n].offset is None]
        for candidates in (inside, before, after):
            free = [n for n in candidates if not images[n].caption_blocks]
            if free:
                blocks[index] = replace(block, kind=BlockKind.CAPTION, level=0)
                for n in free:
                    images[n] = replace(images[n], caption=block.text, caption_blocks=(index,))
                break
    return blocks, images


def _may_be_caption(block: Block) -> bool:
    if begins_like_table_caption(block.text):
        return False
    if block.kind is BlockKind.CAPTION:
        return True
    short = block.kind in (BlockKind.PARAGRAPH, BlockKind.TABLE_CELL) and len(block.text) < 1000
    return short and begins_like_figure_caption(block.text)


def _is_last(image: PageImage, blocks: Sequence[Block]) -> bool:
    """Say whether an image stands after all text of its block."""
    return (
        image.offset is None
        or image.block < 0
        or not blocks[image.block].text[image.offset :].strip()
    )
