"""A page of sample documents to look at: sentences beside images, with the true links.

One HTML file that asks for no other and runs no script. Nothing that a document says is trusted:
text is escaped, pictures are decoded in isolation and encoded anew, and the policy in the head lets
nothing but the page's own style in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from PIL import Image

from sightline.corpus import Corpus
from sightline.corpus_checks import split_order
from sightline.decode_pool import DecodePool
from sightline.documents import Document, split_name
from sightline.files import write_atomically
from sightline.html_writing import page_head, page_part
from sightline.image_colours import Pixels
from sightline.images import Decoded, Status
from sightline.progress import Progress, counted
from sightline.thumbnails import image_file, jpeg_address, leads_outside

#: What is shown of one document at most; the page says what it leaves out.
_MOST_SENTENCES, _MOST_IMAGES, _MOST_CHARACTERS = 200, 60, 2000
_SIDE = 192  # pixels of a picture
_ABSENT = "No such file in the folder of the corpus."
_OUTSIDE = (
    "The image lies outside the folder of the corpus, and only those inside are shown; "
    "'sightline build pages' copies images into it with --copy-images."
)

Samples = dict[str | None, list[Document]]


def write_sample_page(corpus: Corpus, path: Path, count: int = 8, seed: int = 0) -> int:
    """Write a page of so many documents of each split, chosen at random; gives their number."""
    samples = sample_documents(corpus, count, seed)
    pictures = _pictures(corpus.root, [d for chosen in samples.values() for d in chosen])
    page = sample_page(corpus.path.resolve().name, samples, pictures, seed)
    write_atomically(path, page.encode("utf-8", "replace"))
    return sum(map(len, samples.values()))


def sample_documents(corpus: Corpus, count: int, seed: int = 0) -> Samples:
    """Choose documents of each split, all with the same chance, in one pass; in their order."""
    chooser = random.Random(seed)
    seen: dict[str | None, int] = {}
    chosen: dict[str | None, list[tuple[int, Document]]] = {}
    for document in corpus:
        split = split_name(document.split)
        number = seen[split] = seen.get(split, 0) + 1
        of_split = chosen.setdefault(split, [])
        if number <= count:
            of_split.append((number, document))
        elif (place := chooser.randrange(number)) < count:
            of_split[place] = (number, document)
    splits = [*split_order([split for split in chosen if split is not None]), None]
    return {
        split: [document for _, document in sorted(chosen[split], key=lambda pair: pair[0])]
        for split in splits
        if split in chosen
    }


def sample_page(name: str, samples: Samples, pictures: Mapping[str, Decoded], seed: int = 0) -> str:
    """Render the page; `pictures` are the images by the names that documents give them."""
    title = f"Sample documents of {_text(name)}"
    numbers = iter(range(1, 1 + sum(map(len, samples.values()))))
    sections = [
        f"<section>\n<h2>{_split_title(split, len(chosen))}</h2>\n"
        + "".join(_article(next(numbers), document, pictures) for document in chosen)
        + "</section>\n"
        for split, chosen in samples.items()
    ]
    return (
        f"{page_head(title, [page_part('sample_page.css')])}<body>\n"
        f"<header><h1>{title}</h1>\n<p>Chosen at random with the seed {seed}. Sentences have "
        "numbers and images letters; a framed letter after a sentence, and a framed number below "
        "an image, is a true link.</p></header>\n"
        f"<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _split_title(split: str | None, count: int) -> str:
    name = "Without a split" if split is None else f"Split <bdi>{_text(split)}</bdi>"
    return f"{name}: {counted(count, 'document')}"


def _article(number: int, document: Document, pictures: Mapping[str, Decoded]) -> str:
    links = "links unknown" if document.links is None else counted(len(document.links), "link")
    sizes = counted(len(document.sentences), "sentence"), counted(len(document.images), "image")
    counts = ", ".join((*sizes, links))
    return (
        f'<article aria-labelledby="d{number}">\n'
        f'<h3 id="d{number}"><bdi>{_text(document.id)}</bdi></h3>\n<p class="soft">{counts}</p>\n'
        f'<div class="sides">\n<div><ol>\n{"".join(_sentences(number, document))}</ol>'
        f"{_more(len(document.sentences) - _MOST_SENTENCES, 'sentences')}</div>\n"
        f'<div><div class="images">\n{"".join(_images(number, document, pictures))}</div>'
        f"{_more(len(document.images) - _MOST_IMAGES, 'images')}</div>\n</div>\n</article>\n"
    )


def _sentences(number: int, document: Document) -> Iterator[str]:
    for index, sentence in enumerate(document.sentences[:_MOST_SENTENCES]):
        linked = sorted(v for s, v in document.links or () if s == index)
        badges = "".join(f" {_badge(f'd{number}-v{v}', _letter(v))}" for v in linked)
        yield f'<li id="d{number}-s{index}"><bdi>{_text(sentence)}</bdi>{badges}</li>\n'


def _images(number: int, document: Document, pictures: Mapping[str, Decoded]) -> Iterator[str]:
    for index, image in enumerate(document.images[:_MOST_IMAGES]):
        linked = sorted(s for s, v in document.links or () if v == index)
        badges = "".join(f" {_badge(f'd{number}-s{s}', str(s + 1))}" for s in linked)
        letter = _letter(index)
        yield (
            f'<figure id="d{number}-v{index}">{_picture(pictures.get(image), letter)}'
            f"<figcaption><strong>{letter}</strong>{badges} <bdi>{_text(image)}</bdi></figcaption>"
            "</figure>\n"
        )


def _badge(target: str, words: str) -> str:
    return f'<a class="badge" href="#{target}">{words}</a>'


def _picture(decoded: Decoded | None, letter: str) -> str:
    if decoded is None:
        return '<div class="broken">not read</div>'
    if decoded.pixels is None:
        reason = f"{decoded.status.value}: {_text(decoded.reason or '')}"
        return f'<div class="broken">{reason}</div>'
    return f'<img alt="Image {letter}" src="{jpeg_address(decoded.pixels)}">'


def _more(count: int, what: str) -> str:
    return f'<p class="soft">{count} more {what} are not shown.</p>' if count > 0 else ""


def _letter(index: int) -> str:
    """A to Z, then AA, AB and so on."""
    letters = ""
    index += 1
    while index:
        index, place = divmod(index - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters


def _text(text: str) -> str:
    """Escape what a document says; control characters, which HTML has not, become visible."""
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS] + " …"
    return escape("".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in text))


def _pictures(root: Path, documents: list[Document]) -> dict[str, Decoded]:
    """Decode the images that the page shows, in isolation, and make them small."""
    shown = dict.fromkeys(image for d in documents for image in d.images[:_MOST_IMAGES])
    found = {image: file for image in shown if (file := image_file(root, image)) is not None}
    pictures = {
        image: Decoded(None, Status.missing, _OUTSIDE if leads_outside(image) else _ABSENT)
        for image in shown
    }
    with DecodePool() as pool, Progress("sample images", len(found), "images") as progress:
        decoded = pool.decode_many(found.values(), _SIDE)
        for image, result in zip(found, decoded, strict=True):
            pictures[image] = result if result.pixels is None else _small(result.pixels)
            progress.advance()
    return pictures


def _small(pixels: Pixels) -> Decoded:
    import numpy as np

    picture = Image.fromarray(pixels)
    picture.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
    return Decoded(np.asarray(picture), Status.ok)
