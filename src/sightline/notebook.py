"""A document as a notebook shows it: its sentences, each linked one with its images.

One piece of static HTML for the output area of Jupyter and its like. They take script and style
sheets away from what they do not trust, so that everything is said by tags and style attributes
that JupyterLab's sanitizer lets pass; text has the colour of the page, light or dark. What the
document says is escaped; pictures are small, few and encoded anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from sightline.documents import Document
from sightline.html_writing import clean
from sightline.linking import Link
from sightline.problems import SightlineError
from sightline.progress import counted
from sightline.shown_article import Picture, ShownArticle, cut, encode_picture
from sightline.thumbnails import read_thumbnails

#: Pictures, their longer side in pixels, and the bytes of all of them: a notebook keeps every
#: output in its file.
_PICTURES, _SIDE, _BYTES = 24, 160, 500_000
_WORKERS = 2  # to start more takes longer than they would save
#: Documents of so few sentences are shown whole.
_FEW = 20
#: Sentences with links, other sentences of one fold, and letters of a sentence at most.
_SENTENCES, _FOLDED, _SENTENCE_SHOWN = 60, 40, 600
_NAMES, _NAME_SHOWN = 60, 40
#: Middle tones, to be told apart on white and on black.
_COLOURS = ("#2f81c7", "#d9822b", "#3a9a5f", "#b35fb5", "#c9524e", "#8a8f2a")
_SOFT = "opacity:0.7;font-size:90%"


def document_html(document: Document, links: Sequence[Link] | None = None) -> str:
    """The document with the links that were found or, without any, with the true ones."""
    found = links is not None
    shown = list(links) if links is not None else _true_links(document)
    pictures = _pictures(document, [link.image for link in shown])
    # What a link weighs, in the words of the page of an article.
    weights = ShownArticle("", (), (), (), tuple(shown))
    true = set(document.links or ()) if found else set()
    by_sentence: dict[int, list[str]] = defaultdict(list)
    for link in sorted(shown, key=lambda link: (link.sentence, link.image)):
        # Named as Python finds it, from 0.
        words = [f"images[{link.image}]"]
        words += [weights.words_of(link)] if found else []
        words += ["true"] if (link.sentence, link.image) in true else []
        figure = _figure(document, link.image, pictures, " · ".join(words))
        by_sentence[link.sentence].append(figure)
        # Once: where the links are many, each image would weigh as often as it is linked.
        pictures.pop(document.images[link.image], None)
    rest = set(range(len(document.images))) - {link.image for link in shown}
    return (
        '<div class="sightline" style="max-width:56em;line-height:1.45">'
        f"{_heading(document, shown, found)}"
        f"{''.join(_sentences(document, by_sentence))}"
        f"{_without_links(document, sorted(rest), pictures)}</div>"
    )


def scores_html(scores: Mapping[str, float | int | None]) -> str:
    """Scores as a table of one row."""
    names = "".join(f'<th style="text-align:right">{clean(name)}</th>' for name in scores)
    cells = "".join(
        f'<td style="text-align:right">{f"{v:.1f}" if isinstance(v, float) else v}</td>'
        for v in scores.values()
    )
    return (
        f'<table class="sightline"><thead><tr>{names}</tr></thead>'
        f"<tbody><tr>{cells}</tr></tbody></table>"
    )


def _true_links(document: Document) -> list[Link]:
    return [Link(sentence, image, 1.0) for sentence, image in document.links or ()]


def _heading(document: Document, links: Sequence[Link], found: bool) -> str:
    title = document.extra.get("title")
    name = title if isinstance(title, str) and title.strip() else document.id
    facts = [counted(len(document.sentences), "sentence"), counted(len(document.images), "image")]
    if found or document.links is not None:
        facts.append(counted(len(links), "link" if found else "true link"))
    facts += [] if document.split is None else [f"split {document.split}"]
    said = clean(cut(" · ".join(facts), 200))
    return (
        f'<div style="margin-bottom:0.6em"><b dir="auto">{clean(cut(name, 120))}</b> '
        f'<span style="{_SOFT}">{said}</span></div>'
    )


def _sentences(document: Document, by_sentence: Mapping[int, list[str]]) -> Iterator[str]:
    """The sentences in order; of a long document, what stands far from any link is folded up."""
    near = _near(len(document.sentences), by_sentence)
    for is_near, group in groupby(range(len(document.sentences)), key=near.__contains__):
        places = list(group)
        if is_near:
            yield from (_sentence(document, s, by_sentence.get(s, ())) for s in places)
        else:
            yield _folded(document, places, by_sentence)


def _near(count: int, by_sentence: Mapping[int, list[str]]) -> set[int]:
    """The sentences that are shown: all of a few, else those with a link and their neighbours."""
    if count <= _FEW:
        return set(range(count))
    linked = sorted(by_sentence)[:_SENTENCES]
    near = {place for sentence in linked for place in range(sentence - 1, sentence + 2)}
    return (near | {0}) & set(range(count))


def _sentence(document: Document, sentence: int, figures: Sequence[str]) -> str:
    text = clean(cut(document.sentences[sentence], _SENTENCE_SHOWN))
    if not figures:
        return f'<div dir="auto" style="padding-left:0.7em;margin:0.3em 0">{text}</div>'
    colour = _COLOURS[sentence % len(_COLOURS)]
    return (
        f'<div style="border-left:4px solid {colour};padding-left:0.7em;margin:0.5em 0">'
        f'<div dir="auto" title="sentences[{sentence}]">{text}</div>'
        f"<div>{''.join(figures)}</div></div>"
    )


def _folded(document: Document, places: Sequence[int], by_sentence: Mapping[int, list[str]]) -> str:
    words = counted(len(places), "more sentence")
    if linked := sum(place in by_sentence for place in places):
        words += f", {linked:,} of them linked"
    shown = "".join(
        _sentence(document, place, by_sentence.get(place, ())) for place in places[:_FOLDED]
    )
    left = len(places) - _FOLDED
    rest = f'<div style="{_SOFT}">… {counted(left, "sentence")} …</div>' if left > 0 else ""
    return (
        f'<details style="padding-left:0.7em;margin:0.3em 0"><summary style="{_SOFT}">{words}'
        f"</summary>{shown}{rest}</details>"
    )


def _without_links(
    document: Document, images: Sequence[int], pictures: Mapping[str, Picture]
) -> str:
    if not images:
        return ""
    figures = "".join(
        _figure(document, image, pictures, f"images[{image}]") for image in images[:_NAMES]
    )
    more = f"… {counted(len(images) - _NAMES, 'image')} …" if len(images) > _NAMES else ""
    return (
        f'<div style="margin-top:0.8em"><div style="{_SOFT}">Images without a link</div>'
        f'<div>{figures}<span style="{_SOFT}">{more}</span></div></div>'
    )


def _figure(document: Document, image: int, pictures: Mapping[str, Picture], words: str) -> str:
    name = document.images[image]
    picture = pictures.get(name)
    # Of a path the end tells more than the beginning; of an address in the text, nothing does.
    label = clean(cut(Path(name[-200:]).name or name, _NAME_SHOWN))
    if picture is None:
        seen = f'<span style="border:1px dashed #888888;padding:0 0.5em">{label}</span>'
    else:
        seen = (
            f'<img alt="{clean(words)}" title="{label}" width="{picture.width}" '
            f'height="{picture.height}" src="{picture.address}" '
            'style="border-radius:3px">'
        )
    return (
        '<div style="display:inline-block;vertical-align:top;margin:0.3em 0.8em 0.3em 0">'
        f'<div>{seen}</div><div style="{_SOFT}">{clean(words)}</div></div>'
    )


def _pictures(document: Document, linked: Iterable[int]) -> dict[str, Picture]:
    """Small pictures of the images that have a file, those with links before others."""
    places = dict.fromkeys([*linked, *range(len(document.images))])
    names = list(dict.fromkeys(document.images[place] for place in places))[:_PICTURES]
    try:
        thumbnails = read_thumbnails(document.folder or Path(), names, _SIDE, _WORKERS)
    except (SightlineError, OSError):  # showing a document must not fail for its pictures
        return {}
    pictures: dict[str, Picture] = {}
    room = _BYTES
    for name, pixels in thumbnails.items():
        picture = encode_picture(pixels, _SIDE)
        room -= len(picture.data)
        if room < 0:
            break
        pictures[name] = picture
    return pictures
