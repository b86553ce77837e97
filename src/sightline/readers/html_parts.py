"""What a walk over an HTML page finds: blocks, images, the boxes both are in, rows of tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from sightline.pages import BlockKind, LeftOut
from sightline.readers.html_images import ImageTag

_LONGEST_CELL = 200  # characters of a cell that is joined with its row


@dataclass(slots=True)
class WalkedBlock:
    """A block as it stands in the tree."""

    kind: BlockKind
    text: str
    level: int
    #: Characters of it that are links.
    linked: int
    #: The innermost box and the innermost figure around it, -1 for none.
    box: int
    figure: int


@dataclass(slots=True)
class WalkedImage:
    """An image as it stands in the tree; its place is set once its block is complete."""

    tag: ImageTag
    figure: int
    described_by: str | None
    in_noscript: bool
    decorative: bool
    block: int = -1
    offset: int | None = None
    captions: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Box:
    """An element that holds blocks: which ones, as indexes from the first to after the last."""

    tag: str
    parent: int
    #: Its class and id, and its role.
    name: str
    role: str
    first_block: int
    first_image: int
    last_block: int = 0
    last_image: int = 0


@dataclass(slots=True)
class Walk:
    """What a walk found."""

    blocks: list[WalkedBlock] = field(default_factory=list)
    images: list[WalkedImage] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)
    #: The blocks of the elements that images name as their description, by id.
    described: dict[str, list[int]] = field(default_factory=dict)
    title: str | None = None
    base: str | None = None
    language: str | None = None


class Table:
    """The table under way: where its row began, and the images of the row before, if only those."""

    __slots__ = ("images", "row")

    def __init__(self) -> None:
        # The numbers of blocks, images and boxes then.
        self.row = (0, 0, 0)
        self.images: list[WalkedImage] = []


def end_row(walk: Walk, table: Table, box: int, last_described: int) -> None:
    """Join the cells of a row of text; make a row below a row of images their captions."""
    first_block, first_image, first_box = table.row
    cells, images = walk.blocks[first_block:], walk.images[first_image:]
    above, table.images = table.images, [] if cells else images
    if images or not all(cell.kind is BlockKind.TABLE_CELL for cell in cells):
        return
    if any(len(cell.text) > _LONGEST_CELL for cell in cells):
        return
    if above and len(cells) in (1, len(above)):
        for number, image in enumerate(above):
            image.captions = [first_block + number % len(cells)]
        for cell in cells:
            cell.kind = BlockKind.CAPTION
    elif len(cells) > 1 and last_described < first_block:
        cells[0].text = " | ".join(cell.text for cell in cells)
        cells[0].linked = sum(cell.linked for cell in cells)
        cells[0].kind, cells[0].box = BlockKind.TABLE_ROW, box
        del walk.blocks[first_block + 1 :], walk.boxes[first_box:]
