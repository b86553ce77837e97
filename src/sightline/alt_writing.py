"""A copy of an article with alternative texts out of its own sentences.

Only images whose text is missing or no text at all get one; the rest of the file stays as it is,
byte for byte. What was written is read again before the copy gets its name: if anything but the
intended texts differs, nothing is written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from sightline.alt_audit import plain
from sightline.alt_text import ArticleAlts, Candidate, html_reader
from sightline.articles import Article
from sightline.docx_alts import set_docx_alts
from sightline.files import write_atomically
from sightline.image_places import ImagePlace, SourcePlaces
from sightline.pages import Page
from sightline.problems import SightlineError
from sightline.readers.markdown import read_markdown
from sightline.source_edits import Edit, SourceText, splice
from sightline.tag_attributes import find_attribute, one_line, set_attribute

#: What a candidate needs to be written where the user names no limit: more likely right than not.
DEFAULT_CONFIDENCE = 0.5
_MARKUP = re.compile(r"([\\`*_\[\]<>&!~|$#])")
_OWN_ID = re.compile(r"sightline-(\d{1,9})", re.A)
# Several elements may have an id, so that a reference to it leads elsewhere.
_ANY_ID = re.compile(r"""\sid\s*=\s*(?:"([^"\s]+)"|'([^'\s]+)'|([^\s"'<>=`]+?)(?=[\s/>]))""", re.I)
_ID = re.compile(r"[^\s\"'<>&=`]+\Z")
WRITABLE = ("html", "markdown", "docx")


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the images that need a text, by their indexes."""

    written: dict[int, Candidate]
    #: Those of them that also refer to the sentence's element.
    described: frozenset[int]
    #: Nothing of the article came near enough.
    no_candidate: tuple[int, ...]
    #: There is a candidate, but the image's place in the source is not known.
    not_found: tuple[int, ...]


def choose(
    alts: ArticleAlts, min_confidence: float | None = None, min_score: float | None = None
) -> dict[int, Candidate]:
    """Choose a text for each image that needs one: the best candidates, none of them twice.

    A candidate has to reach both limits that are given, or without any, `DEFAULT_CONFIDENCE`.
    """
    if min_confidence is None and min_score is None:
        min_confidence = DEFAULT_CONFIDENCE
    offers = [
        (image.index, candidate)
        for image in alts.images
        if image.needs_text
        for candidate in image.candidates
        if candidate.fits
    ]
    linked = [c for image in alts.images for c in image.candidates if c.linked]
    if min_confidence and linked and all(c.confidence is None for c in linked):
        raise SightlineError(
            "This model was not calibrated, so its links have no confidence; name the lowest score "
            "of an alternative text with --min-score, in place of a confidence."
        )
    offers.sort(key=lambda offer: (not offer[1].linked, -offer[1].score, offer[0]))
    taken = {plain(image.alt or "") for image in alts.images if not image.needs_text}
    chosen: dict[int, Candidate] = {}
    for index, candidate in offers:
        text = plain(candidate.text)
        if index in chosen or text in taken:
            continue
        if min_confidence and (candidate.confidence or 0.0) < min_confidence:
            continue
        if min_score is not None and candidate.score < min_score:
            continue
        chosen[index] = candidate
        taken.add(text)
    return dict(sorted(chosen.items()))


def write_alts(alts: ArticleAlts, chosen: Mapping[int, Candidate], output: Path) -> Written:
    """Write a copy of the article with the chosen texts; the article itself is never touched."""
    article = alts.article
    if article.kind not in WRITABLE:
        raise SightlineError(
            f"{article.path}: alternative texts can be written into HTML, Markdown and DOCX files, "
            f"not into {article.kind.upper()}."
        )
    if output.exists() and output.samefile(article.path):
        raise SightlineError(f"{output} is the article itself; give the copy another name.")
    described: frozenset[int] = frozenset()
    if article.kind == "docx":
        texts = {index: one_line(candidate.text) for index, candidate in chosen.items()}
        data, found = set_docx_alts(article, texts)
    else:
        data, found, described = _edited_source(alts, chosen)
    write_atomically(output, data)
    needy = [image.index for image in alts.images if image.needs_text]
    return Written(
        written={index: chosen[index] for index in chosen if index in found},
        described=described,
        no_candidate=tuple(index for index in needy if index not in chosen),
        not_found=tuple(index for index in chosen if index not in found),
    )


def _edited_source(
    alts: ArticleAlts, chosen: Mapping[int, Candidate]
) -> tuple[bytes, set[int], frozenset[int]]:
    """Give the bytes of the copy, the images that got a text, and those with a description."""
    article, source, places = alts.article, alts.source, alts.places
    if source is None or places is None:
        raise SightlineError(
            f"{article.path}: cannot be changed in place, because its bytes do not fit its "
            "encoding, or reading it takes too long; save it as UTF-8, or split it."
        )
    found: dict[int, ImagePlace] = {}
    for index in chosen:
        if (place := places.images[index]) is not None:
            found[index] = place
    edits = {i: _alt_edit(source, place, chosen[i].text) for i, place in found.items()}
    descriptions = (
        _describe(article, source, places, {i: (found[i], chosen[i]) for i in found})
        if article.kind == "html"
        else {}
    )
    alt = {index: one_line(chosen[index].text) for index in found}
    reader = read_markdown if article.kind == "markdown" else html_reader(article.path)
    both = [*edits.values(), *(edit for group in descriptions.values() for edit in group)]
    text = splice(source.text, both)
    if _is_as_intended(article.page, reader, source.encode(text), alt):
        return source.encode(text), set(found), frozenset(descriptions)
    # A paragraph that describes an image may count as its caption and no longer as an article's.
    text = splice(source.text, list(edits.values()))
    if _is_as_intended(article.page, reader, source.encode(text), alt):
        return source.encode(text), set(found), frozenset()
    raise SightlineError(
        f"{article.path}: the texts cannot be put in without changing how the rest reads; nothing "
        "was written."
    )


def _alt_edit(source: SourceText, place: ImagePlace, text: str) -> Edit:
    if place.end is None:
        return set_attribute(source, place.place, "alt", text)
    escaped = source.held(_MARKUP.sub(r"\\\1", one_line(text)))
    if place.label is not None:
        return place.place, place.label_end, f"{escaped}][{place.label}]"
    return place.place, place.end, escaped


def _describe(
    article: Article,
    source: SourceText,
    places: SourcePlaces,
    images: Mapping[int, tuple[ImagePlace, Candidate]],
) -> dict[int, list[Edit]]:
    """Give the edits that tie images to the elements of their sentences, by image.

    An element that says no more than the image's text is not referred to: it would be read twice.
    """
    starts = [start for start, _ in article.page.spans()]
    edits: dict[int, list[Edit]] = {}
    ids: dict[int, str] = {}
    taken = set(map(int, _OWN_ID.findall(source.text)))
    free = (number for number in count(1) if number not in taken)
    times = Counter("".join(found).lower() for found in _ANY_ID.findall(source.text))
    for index, (place, candidate) in images.items():
        block = article.page.blocks[bisect_right(starts, candidate.span[0]) - 1]
        element = places.element_of(block.text)
        if element is None or plain(block.text) == plain(candidate.text):
            continue
        if find_attribute(source.text, place.place, "aria-describedby") is not None:
            continue
        edits[index] = []
        if element not in ids:
            given = find_attribute(source.text, element, "id")
            if given is not None and given[2]:
                if not _ID.match(given[2]) or times[given[2].lower()] > 1:
                    del edits[index]
                    continue
                ids[element] = given[2]
            else:
                number = next(free)
                ids[element] = f"sightline-{number}"
                edits[index].append(set_attribute(source, element, "id", ids[element]))
        edits[index].append(set_attribute(source, place.place, "aria-describedby", ids[element]))
    return edits


def _is_as_intended(
    page: Page, read: Callable[[bytes], Page], data: bytes, alt: Mapping[int, str]
) -> bool:
    """Read the copy: the same images in the same order, the same words, only those texts new."""
    copy = read(data)
    expected = [(i.source, alt.get(n, i.alt)) for n, i in enumerate(page.images)]
    if [(image.source, image.alt) for image in copy.images] != expected:
        return False
    return "".join(copy.text.split()) == "".join(page.text.split())
