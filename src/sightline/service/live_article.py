"""What the page of the service is told of an article or of a corpus's document.

The article itself is drawn by the renderer of `sightline link`, here without links: the links of
every policy come beside it, so that switching the policy, moving the slider and correcting a link
ask the server for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sightline.article_links import language_doubt, shown_article
from sightline.article_page import render_article
from sightline.articles import Article
from sightline.choices import MaxLinks, Policy
from sightline.clip_model import Model
from sightline.confidence import Calibration, with_confidence
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.linking import Link, link
from sightline.pages import Block, BlockKind, Page
from sightline.shown_article import (
    ShownArticle,
    ShownImage,
    encode_picture,
    picture_side,
)
from sightline.thumbnails import image_file

#: What the page offers. The policy `threshold` is `dense` with the slider.
CHOICES: tuple[tuple[Policy, MaxLinks], ...] = (
    ("assignment", "all"),
    ("assignment", "half"),
    ("dense", "all"),
    ("top-k", "half"),
    ("mmc4", "all"),
)
_NO_FILE = "Its features are known, but there is no file of it in the folder of the corpus."


def live_article(
    article: Article,
    record: dict[str, Any],
    pool: DecodePool,
    calibration: Calibration | None = None,
    facts: tuple[str, ...] = (),
    model: Model | None = None,
) -> dict[str, Any]:
    """An article as the page shows it: its record, the links of each policy, and the HTML."""
    shown = shown_article(article, record, pool, facts)
    doubt = None if model is None else language_doubt(model, article)
    said = None if doubt is None else f"Beware: {doubt}"
    return {"text": article.page.text, "doubt": said, **_live(shown, record, calibration)}


def live_document(
    document: Document,
    record: dict[str, Any],
    root: Path,
    pool: DecodePool,
    calibration: Calibration | None = None,
) -> dict[str, Any]:
    """A document of a corpus as the page shows it; only images below `root` are shown."""
    shown = _shown_document(document, record, root, pool)
    truth = None if document.links is None else [list(pair) for pair in document.links]
    return {"text": None, "truth": truth, **_live(shown, record, calibration)}


def _shown_document(
    document: Document, record: dict[str, Any], root: Path, pool: DecodePool
) -> ShownArticle:
    """Draw a document as an article: the images first, then a paragraph for each sentence."""
    sentences = [sentence or " " for sentence in document.sentences]
    blocks = tuple(Block(BlockKind.PARAGRAPH, sentence) for sentence in sentences)
    side = picture_side(len(document.images))
    files = {v: image_file(root, image) for v, image in enumerate(document.images)}
    found = {v: file for v, file in files.items() if file is not None}
    decoded = dict(zip(found, pool.decode_many(found.values(), side), strict=True))
    images = []
    for index, status in enumerate(record["images"]):
        pixels = decoded[index].pixels if index in decoded else None
        hidden = status["status"] == "ok" and pixels is None
        images.append(
            ShownImage(
                name=document.images[index],
                picture=None if pixels is None else encode_picture(pixels, side),
                status="no_picture" if hidden else status["status"],
                reason=_NO_FILE if hidden else status["reason"],
                alt=_text_of(document, "alts", index),
            )
        )
    return ShownArticle(
        title=str(document.extra.get("title") or document.id),
        blocks=blocks,
        spans=tuple(Page(None, blocks, ()).spans()),
        images=tuple(images),
        links=(),
        similarity_SV=_matrix(record),
    )


def corrected_article(
    article: Article,
    record: dict[str, Any],
    links: Sequence[dict[str, Any]],
    pool: DecodePool,
    facts: tuple[str, ...] = (),
) -> str:
    """The page of an article, to keep, with the links that a person left in it."""
    kept = [{**one, "score": one["score"] or 0.0} for one in links]
    return render_article(shown_article(article, {**record, "links": kept}, pool, facts))


def _live(
    shown: ShownArticle, record: dict[str, Any], calibration: Calibration | None
) -> dict[str, Any]:
    choices = [
        _choice(shown, record, policy, max_links, calibration) for policy, max_links in CHOICES
    ]
    return {
        "record": record,
        "title": shown.title,
        "measure": _measure(choices),
        "choices": choices,
        "page": render_article(replace(shown, links=()), live=True),
    }


def _choice(
    shown: ShownArticle,
    record: dict[str, Any],
    policy: Policy,
    max_links: MaxLinks,
    calibration: Calibration | None,
) -> dict[str, Any]:
    """The links of one policy, each with how strongly it is drawn."""
    usable = [v for v, image in enumerate(record["images"]) if image["status"] == "ok"]
    similarity_SV = _matrix(record)[:, usable]
    found = with_confidence(link(similarity_SV, policy, max_links), similarity_SV, calibration)
    links = tuple(replace(one, image=usable[one.image]) for one in found)
    strengths = replace(shown, links=links).strengths()
    return {
        "policy": policy,
        "max_links": max_links,
        "links": [_link_record(one) for one in links],
        "strengths": [round(strength, 3) for strength in strengths],
    }


def _measure(choices: Sequence[dict[str, Any]]) -> str:
    """What all links are weighed by, as `ShownArticle.measure` says it of some."""
    links = [one for choice in choices for one in choice["links"]]
    known = bool(links) and all(one["confidence"] is not None for one in links)
    return "confidence" if known else "score"


def _link_record(one: Link) -> dict[str, Any]:
    return {
        "sentence": one.sentence,
        "image": one.image,
        "score": one.score,
        "confidence": one.confidence,
    }


def _matrix(record: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    shape = (len(record["sentences"]), len(record["images"]))
    return np.array(record["matrix"], np.float64).reshape(shape)


def _text_of(document: Document, key: str, index: int) -> str | None:
    """What a further key of the document says of an image, if it does."""
    texts = document.extra.get(key)
    if not isinstance(texts, list) or index >= len(texts):
        return None
    return texts[index] if isinstance(texts[index], str) else None
