"""The page: what stands between a source file and a document.

Every reader of a source that people look at (HTML, Markdown, text, PDF, DOCX, EPUB) gives a
`Page`: blocks of text in reading order, images with their places among them, and a count of what
was left out. `page_to_document` makes a document of it, whose sentences keep their character
offsets into the page's text form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Any, get_args

from sightline.choices import Unit
from sightline.documents import Document
from sightline.problems import SightlineError

Span = tuple[int, int]

# CPU time of the slow splitter: at most the second, and no more than what reading left of the
# first, which is a little less than a document may take.
_SECONDS, _SPLITTING = 8.5, 6.0
# CPU time a character of all that follows, for text of nothing but short sentences (measured).
# Where that would take a document beyond the last, its blocks are not split.
_QUICK_SPLITTING, _MOST_SECONDS = 1.2e-6, 9.5

#: What stands between two blocks in the text form.
SEPARATOR = "\n\n"


class BlockKind(StrEnum):
    """What a block of text is on its page."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TERM = "term"
    DEFINITION = "definition"
    QUOTE = "quote"
    TABLE_ROW = "table_row"
    TABLE_CELL = "table_cell"
    CAPTION = "caption"
    CODE = "code"


#: Kinds that are no sentences of a document: they name a section, or are not prose.
_NOT_SENTENCES = frozenset({BlockKind.HEADING, BlockKind.CODE})


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of text that stands for itself; line breaks in it are breaks on the page."""

    kind: BlockKind
    text: str
    #: Of a heading 1 to 6; of a list item or quote how deep it is nested, from 1; else 0.
    level: int = 0


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image and its place: inside a block, at `offset` in its text, or after it."""

    #: A path, URL or data URI as the page gives it, resolved against the page's base.
    source: str
    #: Index of the block that it stands in or follows; -1 before the first.
    block: int
    #: Characters of that block before it; None if it stands after the block.
    offset: int | None = None
    #: None: the page says nothing; empty: the page says that it is decoration.
    alt: str | None = None
    title: str | None = None
    caption: str | None = None
    #: The blocks that the caption is, if it is part of the text.
    caption_blocks: tuple[int, ...] = ()
    #: In pixels, as the page asks for; the file may be larger.
    width: int | None = None
    height: int | None = None
    #: The page hides it from screen readers (role, aria-hidden), beyond an empty alt.
    decorative: bool = False
    #: Other sources of the same image (sizes, formats), best first.
    alternatives: tuple[str, ...] = ()


@dataclass(slots=True)
class LeftOut:
    """What a page holds that its blocks and images do not, by reason: characters and images."""

    text: Counter[str] = field(default_factory=Counter)
    images: Counter[str] = field(default_factory=Counter)

    def update(self, other: LeftOut) -> None:
        """Add what another page left out."""
        self.text.update(other.text)
        self.images.update(other.images)

    def to_record(self) -> dict[str, dict[str, int]]:
        """For JSON; empty counts leave no key."""
        both = {"text": self.text, "images": self.images}
        return {name: dict(sorted((+counts).items())) for name, counts in both.items() if +counts}


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it reads."""

    title: str | None
    blocks: tuple[Block, ...]
    images: tuple[PageImage, ...]
    #: As the page declares it, such as `en` or `zh-Hans`.
    language: str | None = None
    left_out: LeftOut = field(default_factory=LeftOut)

    @property
    def text(self) -> str:
        """The text form: the blocks in order, a blank line between two."""
        return SEPARATOR.join(block.text for block in self.blocks)

    def spans(self) -> list[Span]:
        """Where each block stands in the text form."""
        sizes = (len(block.text) + len(SEPARATOR) for block in self.blocks)
        starts = accumulate(sizes, initial=0)
        return [(s, s + len(b.text)) for s, b in zip(starts, self.blocks, strict=False)]


def page_to_document(
    page: Page,
    identifier: str,
    *,
    unit: Unit = "paragraph",
    links_from_layout: bool = False,
    minimum_tokens: int = 0,
    read_seconds: float = 0.0,
) -> Document:
    """Make a document of a page: its text units are the sentences, its image sources the images.

    Headings and code are no sentences; units of fewer than `minimum_tokens` are left out and
    counted. Links are unknown, or with `links_from_layout` those of the layout: each unit of the
    block that `layout_links` gives an image. `extra` says where everything stands (docs/formats).
    Splitting gets what is left of a document's ten seconds after `read_seconds`; where all of the
    text would take longer, blocks stay whole.
    """
    if unit not in get_args(Unit):
        raise SightlineError(f"unit is {unit!r}; expected {' or '.join(get_args(Unit))}.")
    sentences: list[str] = []
    spans: list[list[int]] = []
    kinds: list[str] = []
    units: dict[int, list[int]] = {}
    left_out = LeftOut()
    left_out.update(page.left_out)
    block_spans = page.spans()
    size = sum(len(block.text) for block in page.blocks)
    needed = read_seconds + _QUICK_SPLITTING * size
    split = _splitter(unit if needed <= _MOST_SECONDS else "paragraph", page.language, needed)
    for index, block in enumerate(page.blocks):
        if block.kind in _NOT_SENTENCES:
            if block.kind is not BlockKind.HEADING:  # `extra` keeps the headings
                left_out.text[block.kind.value] += len(block.text)
            continue
        for start, end in split(block.text):
            if _is_short(block.text[start:end], minimum_tokens):
                left_out.text["short"] += end - start
                continue
            units.setdefault(index, []).append(len(sentences))
            sentences.append(block.text[start:end])
            spans.append([block_spans[index][0] + start, block_spans[index][0] + end])
            kinds.append(block.kind.value)
    links = None
    if links_from_layout:
        pairs = layout_links(page, units)
        links = tuple(sorted((s, image) for block, image in pairs for s in units[block]))
    extra: dict[str, Any] = {"title": page.title, "lang": page.language}
    extra |= {"kinds": kinds, "spans": spans, "headings": _headings(page, block_spans)}
    extra |= {"alts": [image.alt for image in page.images]}
    extra |= {"captions": [image.caption for image in page.images]}
    extra |= {"positions": [_position(image, block_spans) for image in page.images]}
    extra |= {"left_out": left_out.to_record()}
    images = tuple(image.source for image in page.images)
    return Document(identifier, tuple(sentences), images, links, extra=extra)


def layout_links(page: Page, linkable: Container[int] | None = None) -> list[tuple[int, int]]:
    """Give (block, image) pairs by where the images stand, at most one block for each image.

    That is its caption; else the block it stands in; else, in its section, the nearest block
    before it; else, if it opens the section, the first block after it; else nothing. A section
    ends at the next heading. `linkable` are the blocks that may be linked; by default all that are
    sentences.
    """
    if linkable is None:
        linkable = {i for i, b in enumerate(page.blocks) if b.kind not in _NOT_SENTENCES}
    before, after = _neighbours(page, linkable)
    pairs = []
    for index, image in enumerate(page.images):
        captions = [block for block in image.caption_blocks if block in linkable]
        if captions:
            pairs += [(block, index) for block in captions]
        elif image.offset is not None and image.block in linkable:
            pairs.append((image.block, index))
        else:
            # The places between blocks are counted from the one before the first.
            place = image.block + 1
            block = before[place] if before[place] is not None else after[place]
            if block is not None:
                pairs.append((block, index))
    return pairs


def _neighbours(page: Page, linkable: Container[int]) -> tuple[list[int | None], list[int | None]]:
    """Give, for each place between blocks, the nearest linkable block of the section each way."""
    taken = {block for image in page.images for block in image.caption_blocks}
    # The caption of one image is no text that the next one follows.
    free = [i if i in linkable and i not in taken else None for i in range(len(page.blocks))]
    headings = [block.kind is BlockKind.HEADING for block in page.blocks]
    before: list[int | None] = [None]
    for block, heading in zip(free, headings, strict=True):
        before.append(None if heading else before[-1] if block is None else block)
    after: list[int | None] = [None]
    for block, heading in zip(reversed(free), reversed(headings), strict=True):
        after.append(None if heading else after[-1] if block is None else block)
    return before, after[::-1]


def _splitter(unit: Unit, language: str | None, read_seconds: float) -> Callable[[str], list[Span]]:
    """Give what finds the units of the texts of one page."""
    if unit == "paragraph":
        return lambda text: [(0, len(text))]
    from sightline.sentence_splitting import LANGUAGES, Patience, split_sentences

    code = (language or "").partition("-")[0].lower()
    known = code if code in LANGUAGES else "en"
    patience = Patience(cpu_seconds=min(_SPLITTING, max(0.0, _SECONDS - read_seconds)))
    return lambda text: split_sentences(text, language=known, patience=patience)


def _is_short(text: str, minimum_tokens: int) -> bool:
    if minimum_tokens <= 0:
        return False
    from sightline.sentences import tokenize

    return len(tokenize(text)) < minimum_tokens


def _headings(page: Page, spans: list[Span]) -> list[list[int | str]]:
    return [
        [block.level, start, block.text]
        for block, (start, _) in zip(page.blocks, spans, strict=True)
        if block.kind is BlockKind.HEADING
    ]


def _position(image: PageImage, spans: list[Span]) -> int:
    """Where an image stands in the text form."""
    if image.block < 0:
        return 0
    start, end = spans[image.block]
    return end if image.offset is None else start + image.offset
