"""Which part of an HTML page is its content, and why the rest is not.

The idea is that of Arc90's Readability and of trafilatura: prose is long, has commas and few links,
and what holds most of the page's prose is the article; navigation, comments and promotion give
themselves away by element, role, class and links. Nothing here opens a file or changes a block:
each gets a reason to be left out, or none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from sightline.pages import BlockKind
from sightline.readers.html_parts import Box, Walk, WalkedBlock

OUTSIDE = "outside the main content"
NAVIGATION = "navigation"
FOOTER = "page footer"
COMMENTS = "comments"
ASIDE = "asides and promotion"
LINKS = "lists of links"

# Shorter text is no prose (Readability's number).
_PROSE = 25  # characters
# The content is the smallest box with the first share of the page's prose, or the only one with
# the second that is called `article` or `main`. These and the numbers below were chosen on 41 pages
# with known content (Readability's test pages): mean F1 of words 0.98, 85 of 93 images.
_SHARE, _NAMED_SHARE = 0.7, 0.3
# What holds more of the prose is content, whatever its class says.
_TOO_MUCH_TO_LEAVE_OUT = 0.5
# An item counts for less than a paragraph: lists of other articles have sentences too.
_ITEM_WEIGHT = 0.3
_LINK_DENSITY, _ADDED_LINK_DENSITY = 0.5, 0.1
_FEW_LINKS = 3  # blocks
_HEAD_BLOCKS = 30  # between the headline and the text
_PICTURE_BLOCKS = 4  # of an image in an `aside`: its heading, caption, credit and a sentence

_TAG_REASONS = {"nav": NAVIGATION, "menu": NAVIGATION, "footer": FOOTER, "aside": ASIDE}
_TAG_REASONS |= {"dialog": ASIDE, "form": ASIDE}
_ROLE_REASONS = {
    **dict.fromkeys(("navigation", "menu", "menubar", "banner", "search", "tablist"), NAVIGATION),
    **dict.fromkeys(("complementary", "dialog", "alertdialog", "alert"), ASIDE),
    "contentinfo": FOOTER,
}
_MAIN = frozenset(("main", "article"))
_NEVER_CONTENT = frozenset(("nav", "menu", "footer"))
_NEVER_FURNITURE = _MAIN | {"html", "body", "figure"}
_HEAD_KINDS = frozenset((BlockKind.HEADING, BlockKind.CAPTION))


def _words(text: str) -> str:
    return "|".join(text.split())


# Words of classes and ids; a word ends at a space, dash, underscore or change of case.
_NAME_REASONS = (
    (NAVIGATION, _words("nav navbar navigation navbox menu menus breadcrumb breadcrumbs pager "
                        "pagination toolbar topbar masthead skip jump sitemap tabs")),
    (FOOTER, _words("footer foot colophon copyright legal")),
    (COMMENTS, _words("comment comments commentlist disqus respond reply replies livefyre "
                      "shoutbox discussion feedback")),
    (ASIDE, _words("ad ads adv advert advertisement advertising adsense sponsor sponsored promo "
                   "promotion banner outbrain taboola zergnet related recommended recommendations "
                   "popular trending newsletter subscribe subscription signup share shares sharing "
                   "sharebar sharetools social follow sidebar widget cookie cookies consent gdpr "
                   "modal popup overlay playlist donate donation donations rss tags taglist "
                   "noprint ambox mbox")),
)  # fmt: skip
_NAME = re.compile(
    "|".join(
        rf"(?P<r{i}>(?<![a-z0-9])(?:{words})(?![a-z0-9]))"
        for i, (_, words) in enumerate(_NAME_REASONS)
    )
)
# What is called so too, holds a picture of the article's: `related-photo`, `sidebar-image`.
_PICTURE_NAME = re.compile(
    r"(?<![a-z0-9])(?:lead|hero|photos?|images?|gallery|figure|picture|related-media)(?![a-z0-9])"
)
_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMAS = re.compile("[,，、،。﹐﹑⸲]")


def reasons_to_leave_out(walk: Walk) -> tuple[list[str | None], list[str | None]]:
    """Say for each block and each image why it is not content; None for what is."""
    return _Content(walk).reasons()


class _Content:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.boxes = walk.boxes
        self.blocks: list[str | None] = [None] * len(walk.blocks)
        self.images: list[str | None] = [None] * len(walk.images)
        self.values = [_prose(block) for block in walk.blocks]
        self.prose = _sums(self.values)
        self.sizes = _sums([len(block.text) for block in walk.blocks])
        self.links = _sums([block.linked for block in walk.blocks])

    def reasons(self) -> tuple[list[str | None], list[str | None]]:
        """Go from what is never content to what is, and leave out the rest."""
        for box, reason in self._furniture():
            self._leave_out(box, reason)
        self.prose = _sums([0 if r else v for v, r in zip(self.values, self.blocks, strict=True)])
        if not self.prose[-1]:  # a page of little text: all of it but the furniture
            return self.blocks, self.images
        pairs = list(zip(self.walk.blocks, self.blocks, strict=True))
        self.sizes = _sums([0 if reason else len(block.text) for block, reason in pairs])
        self.links = _sums([0 if reason else block.linked for block, reason in pairs])
        root = self._around(self._root())
        for box in list(self._lists_of_links(root)):
            self._leave_out(box, LINKS)
        self._leave_out_around(root)
        return self.blocks, self.images

    def _share(self, box: Box) -> float:
        return (self.prose[box.last_block] - self.prose[box.first_block]) / self.prose[-1]

    def _leave_out(self, box: Box, reason: str) -> None:
        for reasons, first, last in (
            (self.blocks, box.first_block, box.last_block),
            (self.images, box.first_image, box.last_image),
        ):
            for index in range(first, last):
                reasons[index] = reasons[index] or reason

    def _furniture(self) -> Iterator[tuple[Box, str]]:
        """Yield the outermost boxes that are not content by what they are called."""
        titles = _sums(self._headlines())
        shares = self._shares_of_names()
        # Whether a box is in furniture, or in a figure, whose parts may be called anything.
        inside = [False] * len(self.boxes)
        for index, box in enumerate(self.boxes):
            if box.tag == "figure" or (box.parent >= 0 and inside[box.parent]):
                inside[index] = True
                continue
            reason = _reason(box)
            if reason is None or self._is_too_much(box):
                continue
            if shares.get(box.name, 0) > _TOO_MUCH_TO_LEAVE_OUT:
                continue
            # A headline may stand in a `header-banner`, but not in a `nav`.
            if titles[box.last_block] > titles[box.first_block] and box.tag not in _TAG_REASONS:
                continue
            if box.tag == "aside" and self._is_picture(box):
                continue
            inside[index] = True
            yield box, reason

    def _headlines(self) -> list[float]:
        """Give 1 for each headline that the page's title repeats, or for all if it repeats none."""
        title = (self.walk.title or "").casefold()
        all_of_them = [float(_is_headline(block)) for block in self.walk.blocks]
        repeated = [
            float(bool(is_one) and block.text.casefold() in title)
            for is_one, block in zip(all_of_them, self.walk.blocks, strict=True)
        ]
        return repeated if any(repeated) else all_of_them

    def _shares_of_names(self) -> dict[str, float]:
        """Give how much of the prose the boxes of one name hold together: each may be small."""
        shares: dict[str, float] = defaultdict(float)
        if self.prose[-1]:
            for box in self.boxes:
                if box.tag == "p":
                    shares[box.name] += self._share(box)
        return shares

    def _is_too_much(self, box: Box) -> bool:
        """Say whether a box holds so much of the page that it cannot be left out."""
        if _ROLE_REASONS.get(box.role) is ASIDE:
            return False
        if self.prose[-1]:
            return self._share(box) > _TOO_MUCH_TO_LEAVE_OUT
        # Of a page without prose, most of the text may well be navigation.
        size = self.sizes[box.last_block] - self.sizes[box.first_block]
        return size > _TOO_MUCH_TO_LEAVE_OUT * self.sizes[-1] and box.tag not in _NEVER_CONTENT

    def _is_picture(self, box: Box) -> bool:
        """Say whether a box is an image with a little text and hardly any links."""
        first, last = box.first_block, box.last_block
        if last - first > _PICTURE_BLOCKS * (box.last_image - box.first_image):
            return False
        size, linked = self.sizes[last] - self.sizes[first], self.links[last] - self.links[first]
        return box.last_image > box.first_image and linked <= _ADDED_LINK_DENSITY * size

    def _root(self) -> Box:
        """Give the one article, if there is one, else the smallest box with most of the prose."""
        named: list[Box] = []
        best = self.boxes[0]
        for box in self.boxes:
            share = self._share(box)
            if (box.tag in _MAIN or box.role in _MAIN) and share >= _NAMED_SHARE:
                if named and box.last_block <= named[-1].last_block:
                    named.pop()
                named.append(box)
            if share >= _SHARE:
                best = box
        return named[0] if len(named) == 1 else best

    def _around(self, box: Box) -> Box:
        """Go on to the boxes around, as long as they add text and hardly any links."""
        best = box
        while box.parent >= 0 and "main" not in (box.tag, box.role):
            parent = self.boxes[box.parent]
            if parent.tag == "body":
                break
            added, linked = (
                (sums[parent.last_block] - sums[box.last_block])
                + (sums[box.first_block] - sums[parent.first_block])
                for sums in (self.sizes, self.links)
            )
            if linked > _ADDED_LINK_DENSITY * added:
                break
            best = parent if added else best
            box = parent
        return best

    def _lists_of_links(self, root: Box) -> Iterator[Box]:
        """Yield the outermost boxes of the content that are mostly links, and no prose."""
        end = root.first_block
        for box in self.boxes:
            first, last = box.first_block, box.last_block
            if not end <= first < last <= root.last_block or box is root:
                continue
            size = self.sizes[last] - self.sizes[first]
            linked = self.links[last] - self.links[first]
            many_links = last - first >= _FEW_LINKS and linked > _LINK_DENSITY * size
            if many_links and not self._share(box):
                yield box
                end = last

    def _leave_out_around(self, root: Box) -> None:
        """Leave out what is not in the content; of its head, headline and images are kept."""
        first_block, first_image = self._head(root)
        for index, reason in enumerate(self.blocks):
            if reason is None and not root.first_block <= index < root.last_block:
                block = self.walk.blocks[index]
                head = first_block <= index < root.first_block
                if not (head and (block.kind in _HEAD_KINDS or self.values[index])):
                    self.blocks[index] = OUTSIDE
        for index, reason in enumerate(self.images):
            if reason is None and not first_image <= index < root.last_image:
                self.images[index] = OUTSIDE

    def _head(self, root: Box) -> tuple[int, int]:
        """Give the first block and image after the headline that stands before the content.

        Many pages put the headline and the lead image into boxes of their own before the text.
        """
        for index in range(root.first_block - 1, max(-1, root.first_block - _HEAD_BLOCKS), -1):
            if self.blocks[index] is None and _is_headline(self.walk.blocks[index]):
                first = root.first_image
                while first > 0 and self.walk.images[first - 1].block >= index:
                    first -= 1
                return index, first
        return root.first_block, root.first_image


def _prose(block: WalkedBlock) -> float:
    """Give how much a block reads like an article's (Readability's measure)."""
    size = len(block.text)
    if size < _PROSE or block.kind is BlockKind.HEADING or 2 * block.linked > size:
        return 0.0
    commas = 0 if block.kind is BlockKind.CODE else len(_COMMAS.findall(block.text))
    prose = 1 + commas + min(size / 100, 3)
    return prose * _ITEM_WEIGHT if block.kind is BlockKind.LIST_ITEM else prose


@lru_cache(maxsize=4096)
def _name_reason(name: str) -> str | None:
    name = _CASE.sub("-", name).lower()
    found = _NAME.search(name)
    if found is None or _PICTURE_NAME.search(name):
        return None
    return _NAME_REASONS[int((found.lastgroup or "r0")[1:])][0]


def _reason(box: Box) -> str | None:
    if box.tag in _NEVER_FURNITURE or box.role in _MAIN:
        return None
    return _TAG_REASONS.get(box.tag) or _ROLE_REASONS.get(box.role) or _name_reason(box.name)


def _is_headline(block: WalkedBlock) -> bool:
    return block.kind is BlockKind.HEADING and block.level == 1


def _sums(values: Sequence[float]) -> list[float]:
    return list(accumulate(values, initial=0.0))
