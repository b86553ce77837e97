"""The documents that the report page shows, as the numbers and words that its script draws.

All of it is bounded: so many documents, so many sentences and images of each, so many characters
of a sentence. Similarities are rounded to hundredths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.image_colours import Pixels
from sightline.linking import Link, link
from sightline.report.figure_links import credit
from sightline.thumbnails import jpeg_address

#: Of one document; those with a true or predicted link come first, then the most similar.
SENTENCES_SHOWN, IMAGES_SHOWN = 60, 24
#: Characters of a sentence.
_CHARACTERS = 300
#: Pictures in all, of about 2 kB each.
_PICTURES_SHOWN = 1_000
PICTURE_SIDE = 72
_HARDEST, _AVERAGE, _EASIEST = "hardest", "average", "easiest"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A document for the page, and why it was chosen; None where AUC is not known."""

    document: Document
    auc: float | None
    group: str | None


def choose_for_page(
    auc: Mapping[str, float], documents: Mapping[str, Document], most: int
) -> list[Chosen]:
    """A third each of the hardest, the easiest and those closest to the average AUC.

    Without any AUC, the first documents.
    """
    known = sorted((id for id in auc if id in documents), key=lambda id: (auc[id], id))
    if not known:
        return [Chosen(document, None, None) for document in list(documents.values())[:most]]
    third = min(most, len(known)) // 3
    middle = known[third : len(known) - third]
    mean = float(np.mean([auc[id] for id in known]))
    nearest = sorted(middle, key=lambda id: (abs(auc[id] - mean), id))[: most - 2 * third]
    groups = dict.fromkeys(known[:third], _HARDEST) | dict.fromkeys(nearest, _AVERAGE)
    groups |= dict.fromkeys(known[len(known) - third :], _EASIEST)
    return [Chosen(documents[id], auc[id], groups[id]) for id in known if id in groups]


def page_record(
    chosen: Chosen, similarity_SV: NDArray[np.floating], text: bool, credited: bool = True
) -> dict[str, Any]:
    """One document for the page's script; places are those of the whole document, from 0.

    `credited` says whose work the document is, which its pictures and sentences may ask for.
    """
    document = chosen.document
    predicted = link(similarity_SV)
    sentences = _shown(similarity_SV, document, predicted, 0, SENTENCES_SHOWN)
    images = _shown(similarity_SV, document, predicted, 1, IMAGES_SHOWN)
    hundredths = np.rint(100 * similarity_SV[np.ix_(sentences, images)]).astype(int)
    return {
        "id": document.id,
        "auc": None if chosen.auc is None else round(chosen.auc, 1),
        "group": chosen.group,
        "credit": _cut(credit(document)) if credited else "",
        "size": [len(document.sentences), len(document.images)],
        "sentences": [[s, _cut(document.sentences[s]) if text else ""] for s in sentences],
        "images": [[v, FeatureStore.image_id(document.images[v])] for v in images],
        "matrix": hundredths.tolist(),
        "predicted": [[found.sentence, found.image, round(found.score, 2)] for found in predicted],
        "true": None if document.links is None else [list(pair) for pair in document.links],
    }


def add_pictures(
    records: Sequence[dict[str, Any]],
    documents: Sequence[Document],
    thumbnails: Mapping[str, Pixels],
) -> list[str]:
    """Give each shown image the number of its picture, -1 where it has none; returns the pictures.

    The groups take turns, so that the bound on pictures leaves none of them without.
    """
    numbers: dict[str, int] = {}
    addresses: list[str] = []
    thirds = [range(start, len(records), 3) for start in range(3)]
    for place in (place for third in thirds for place in third):
        for shown in records[place]["images"]:
            image = documents[place].images[shown[0]]
            if image in thumbnails and image not in numbers and len(addresses) < _PICTURES_SHOWN:
                numbers[image] = len(addresses)
                addresses.append(jpeg_address(thumbnails[image]))
            shown.append(numbers.get(image, -1))
    return addresses


def _shown(
    similarity_SV: NDArray[np.floating],
    document: Document,
    predicted: Sequence[Link],
    axis: int,
    most: int,
) -> list[int]:
    """Places along an axis, in order: those with a link and, up to the bound, the most similar."""
    linked = [pair[axis] for pair in document.links or ()]
    linked += [(found.sentence, found.image)[axis] for found in predicted]
    best = similarity_SV.max(axis=1 - axis)
    ordered = dict.fromkeys([*linked, *np.argsort(-best, kind="stable").tolist()])
    return sorted(list(ordered)[:most])


def _cut(sentence: str) -> str:
    flat = " ".join(sentence.split())
    return flat if len(flat) <= _CHARACTERS else f"{flat[: _CHARACTERS - 1]}…"
