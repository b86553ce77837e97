"""The article as it reads: its blocks as HTML, sentences marked, images in their places.

Everything that the article says is escaped. Linked sentences and images carry a button each; the
page's script lights up their partners.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from sightline.html_writing import clean
from sightline.pages import BlockKind, Page
from sightline.shown_article import ShownArticle, ShownImage, cut, sentence_texts

#: A caption further away than this many blocks stays where it is.
_CAPTION_REACH = 3
_CELLS = " | "  # between the cells of a row, as the readers write it
#: Pictures no higher than this, in pixels, are signs in a line of text.
_SIGN = 48
_ALT_SHOWN = 120
_SENTENCE_SHOWN = 160
_TAGS = {BlockKind.TERM: "dt", BlockKind.DEFINITION: "dd", BlockKind.LIST_ITEM: "li"}
_CONTAINERS = {
    BlockKind.TERM: "dl",
    BlockKind.DEFINITION: "dl",
    BlockKind.LIST_ITEM: "ul",
    BlockKind.QUOTE: "blockquote",
    BlockKind.TABLE_ROW: "table",
}


def image_title(article: ShownArticle, index: int) -> str:
    """An image in words: its number and, as far as there is one, its alt text or caption."""
    image = article.images[index]
    words = cut(image.alt or image.caption or "", _ALT_SHOWN)
    return f"Image {index + 1}: {words}" if words else f"Image {index + 1}"


class ArticleBody:
    """Writes the blocks of one article; a live one marks every sentence, linked or not."""

    def __init__(self, article: ShownArticle, live: bool = False) -> None:
        self.article = article
        self.live = live
        self.texts = sentence_texts(article.blocks, article.spans)
        self.by_sentence: dict[int, list[int]] = defaultdict(list)
        self.by_image: dict[int, list[int]] = defaultdict(list)
        for number, link in enumerate(article.links):
            self.by_sentence[link.sentence].append(number)
            self.by_image[link.image].append(number)
        self.strengths = article.strengths()
        self.starts = [start for start, _ in Page(None, article.blocks, ()).spans()]
        self.in_block: dict[int, list[int]] = defaultdict(list)
        for sentence, (start, _) in enumerate(article.spans):
            self.in_block[bisect_right(self.starts, start) - 1].append(sentence)
        self.inside: dict[int, list[int]] = defaultdict(list)
        self.after: dict[int, list[int]] = defaultdict(list)
        for index in range(len(article.images)):
            place, inline = self._place(index)
            (self.inside if inline else self.after)[place].append(index)
        self.captions = self._captions()
        first = next((block for block in article.blocks if block.kind is BlockKind.HEADING), None)
        #: Whether the article itself begins with its title.
        self.titled = first is not None and first.text.strip() == article.title.strip()

    def html(self) -> str:
        """The whole article."""
        return "\n".join(self._parts())

    # ---- the order of things

    def _place(self, index: int) -> tuple[int, bool]:
        """The block that an image is shown in, or after.

        What stands at an end of a block, and is no small sign in its text, is a figure of its own;
        so is what stands in its own caption.
        """
        image, blocks = self.article.images[index], self.article.blocks
        place = min(image.block, len(blocks) - 1)
        if image.offset is None or place < 0:
            return place, False
        block = blocks[place]
        if place in image.caption_blocks or block.kind is BlockKind.CAPTION:
            return place, False
        small = image.picture is not None and image.picture.height <= _SIGN
        if not small and image.offset <= 0:
            return place - 1, False
        if not small and image.offset >= len(block.text):
            return place, False
        return place, True

    def _captions(self) -> dict[int, int]:
        """Caption blocks that move into a figure: block -> the image whose figure it is."""
        taken: dict[int, int] = {}
        for place, images in self.after.items():
            for index in images:
                blocks = self.article.images[index].caption_blocks
                if all(abs(block - place) <= _CAPTION_REACH for block in blocks):
                    for block in blocks:
                        taken.setdefault(block, index)
        return taken

    def _parts(self) -> Iterator[str]:
        yield from self._figures(-1)
        shown = [
            i for i in range(len(self.article.blocks)) if i not in self.captions or self.after[i]
        ]
        for container, group in groupby(shown, key=self._container):
            for part in self._runs(list(group)):
                if isinstance(part, int):
                    yield from self._figures(part)
                elif part:
                    yield _wrapped(container, [self._block(i) for i in part])

    def _runs(self, group: list[int]) -> Iterator[list[int] | int]:
        """Cut blocks of one container where images follow one of them."""
        run: list[int] = []
        for block in group:
            if block not in self.captions:
                run.append(block)
            if self.after[block]:
                yield run
                yield block
                run = []
        yield run

    def _container(self, index: int) -> str | None:
        return _CONTAINERS.get(self.article.blocks[index].kind)

    # ---- blocks

    def _block(self, index: int) -> str:
        block = self.article.blocks[index]
        if block.kind is BlockKind.HEADING:
            level = min(max(block.level, 1) + (not self.titled), 6)
            return f'<h{level} dir="auto">{self._inner(index)}</h{level}>'
        if block.kind is BlockKind.CODE:
            return f'<pre tabindex="0"><code dir="ltr">{self._inner(index)}</code></pre>'
        if block.kind is BlockKind.TABLE_ROW:
            return self._row(index)
        if block.kind is BlockKind.LIST_ITEM:
            level = min(max(block.level, 1), 6)
            return f'<li class="level-{level}" dir="auto">{self._inner(index)}</li>'
        tag = _TAGS.get(block.kind, "p")
        plain = tag != "p" or block.kind is BlockKind.PARAGRAPH
        css = "" if plain else f' class="{block.kind.value}"'
        return f'<{tag}{css} dir="auto">{self._inner(index)}</{tag}>'

    def _row(self, index: int) -> str:
        """A row of a table: one sentence may go through all of its cells."""
        text = self.article.blocks[index].text
        cells, at = [], 0
        for cell in text.split(_CELLS):
            cells.append(f'<td dir="auto">{self._inner(index, at, at + len(cell))}</td>')
            at += len(cell) + len(_CELLS)
        return f"<tr>{''.join(cells)}</tr>"

    def _inner(self, index: int, start: int = 0, end: int | None = None) -> str:
        """A block's text, or a part of it, with its sentences marked and its images in place."""
        text, base = self.article.blocks[index].text, self.starts[index]
        end = len(text) if end is None else end
        parts, at = [], start
        for sentence in self.in_block[index]:
            begins, ends = (place - base for place in self.article.spans[sentence])
            begin, stop = max(at, begins), min(end, ends)
            if begin >= stop or not (self.live or self.by_sentence[sentence]):
                continue
            parts.append(self._piece(index, at, begin))
            parts.append(self._sentence(sentence, index, begin, stop))
            at = stop
        parts.append(self._piece(index, at, end))
        if end == len(text):
            parts += [self._picture(v, inline=True) for v in self._images_in(index, end, end + 1)]
        return "".join(parts)

    def _piece(self, index: int, start: int, end: int) -> str:
        text, parts = self.article.blocks[index].text, []
        for image in self._images_in(index, start, end):
            place = max(start, self.article.images[image].offset or 0)
            parts += [clean(text[start:place]), self._picture(image, inline=True)]
            start = place
        return "".join([*parts, clean(text[start:end])])

    def _images_in(self, index: int, start: int, end: int) -> list[int]:
        last = len(self.article.blocks[index].text)
        places = {v: min(self.article.images[v].offset or 0, last) for v in self.inside[index]}
        return [
            v for v, place in sorted(places.items(), key=lambda p: p[1]) if start <= place < end
        ]

    def _sentence(self, sentence: int, index: int, start: int, end: int) -> str:
        """A sentence, or the part of it that stands in a cell; its end has its numbers."""
        links = self.by_sentence[sentence]
        level = max((_level(self.strengths[number]) for number in links), default=0)
        begins, ends = (place - self.starts[index] for place in self.article.spans[sentence])
        name = f' id="sentence-{sentence + 1}"' if start == begins else ""
        if end == ends:
            tied = end - _last_letter(self.article.blocks[index].text[start:end])
            badges = "".join(self._badge(number) for number in links)
            inner = (
                f'{self._piece(index, start, tied)}<span class="tied">'
                f'{self._piece(index, tied, end)}<span class="badges">{badges}</span></span>'
            )
        else:
            inner = self._piece(index, start, end)
        return f'<span class="sentence s{level}"{name} data-sentence="{sentence}">{inner}</span>'

    def _badge(self, number: int) -> str:
        link = self.article.links[number]
        label = f"{image_title(self.article, link.image)}, {self.article.words_of(link)}"
        return (
            f'<button type="button" class="badge" data-link="{number}" aria-pressed="false" '
            f'aria-label="{clean(label)}" aria-details="image-{link.image + 1}">'
            f"{link.image + 1}</button>"
        )

    # ---- images

    def _figures(self, place: int) -> Iterator[str]:
        """Figures that stand after a block; images that share a caption share a figure."""
        images = self.after[place]
        for _, group in groupby(images, key=lambda index: self._caption_key(index)):
            members = list(group)
            pictures = "".join(self._picture(index, inline=False) for index in members)
            css = ' class="gallery"' if len(members) > 1 else ""
            yield f"<figure{css}><div>{pictures}</div>{self._figcaption(members)}</figure>"

    def _caption_key(self, index: int) -> tuple[int, ...] | int:
        image = self.article.images[index]
        if image.caption_blocks and all(block in self.captions for block in image.caption_blocks):
            return image.caption_blocks
        return index

    def _figcaption(self, members: list[int]) -> str:
        blocks = [block for block, index in self.captions.items() if index in members]
        if blocks:
            inner = "".join(f'<p dir="auto">{self._inner(block)}</p>' for block in sorted(blocks))
            return f"<figcaption>{inner}</figcaption>"
        image = self.article.images[members[0]]
        if image.caption and not image.caption_blocks:
            return f'<figcaption><p dir="auto">{clean(image.caption)}</p></figcaption>'
        return ""

    def _picture(self, index: int, inline: bool) -> str:
        image = self.article.images[index]
        links = self._links_of(index)
        small = image.picture is not None and image.picture.height <= _SIGN
        linked = bool(self.by_image[index])
        css = f"picture{' inline' * inline}{' sign' * small}{' linked' * linked}"
        described = f' aria-describedby="links-{index + 1}"' if links else ""
        return (
            f'<span class="{css}" id="image-{index + 1}" data-image="{index}">'
            f'<button type="button" class="frame" aria-pressed="false"{described}>'
            f"{_shown(image, image_title(self.article, index))}"
            f'<span class="number" aria-hidden="true">{index + 1}</span></button>{links}</span>'
        )

    def _links_of(self, index: int) -> str:
        """The sentences of an image in words, for those who do not see them light up."""
        items = []
        for number in self.by_image[index]:
            link = self.article.links[number]
            words = cut(self.texts[link.sentence], _SENTENCE_SHOWN)
            items.append(
                f'<span data-link="{number}">“{clean(words)}”, '
                f"{clean(self.article.words_of(link))}. </span>"
            )
        if not (items or self.live):
            return ""
        return f'<span class="hidden" id="links-{index + 1}">Linked to: {"".join(items)}</span>'


def _shown(image: ShownImage, title: str) -> str:
    if image.picture is not None:
        picture = image.picture
        return (
            f'<img alt="{clean(title)}" width="{picture.width}" height="{picture.height}" '
            f'src="{picture.address}">'
        )
    reason = image.reason or "No picture of it is in this page."
    return (
        f'<span class="unread"><b>{clean(title)}</b><span>{clean(image.status.replace("_", " "))}: '
        f"{clean(reason)}</span><small>{clean(cut(image.name, _ALT_SHOWN))}</small></span>"
    )


def _level(strength: float) -> int:
    """A strength in five steps, which the style knows."""
    return min(5, 1 + int(5 * strength))


def _last_letter(text: str) -> int:
    """How many characters make up the last letter that is seen, marks and joiners with it."""
    letters = text.rstrip()
    start = max(0, len(letters) - 1)
    while start and (
        unicodedata.category(letters[start])[0] in "MC" or letters[start - 1] == "\u200d"
    ):
        start -= 1
    return len(text) - start


def _wrapped(container: str | None, parts: list[str]) -> str:
    inner = "\n".join(parts)
    if container is None:
        return inner
    if container == "table":
        return f'<div class="scroll"><table><tbody>{inner}</tbody></table></div>'
    return f"<{container}>\n{inner}\n</{container}>"
