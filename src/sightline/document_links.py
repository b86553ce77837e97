"""The links of documents as `LinkModel.link` gives them: lists that know their document."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline.confidence import Calibration, confidence_text, with_confidence
from sightline.documents import Document
from sightline.image_features import ImageStatus
from sightline.linking import Link, LinkChoices, confident_links, link
from sightline.problems import SightlineError
from sightline.progress import counted
from sightline.tables import LINK_KINDS, Table, link_rows

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: Links that the short form names.
_SHOWN = 3


class DocumentLinks(list[Link]):
    """The links of one document, best first: a list of `Link` with its document.

    `images` says of each image whether it could be read: `id`, `status` and `reason`, as in a link
    record. A notebook shows it as the document with its links.
    """

    def __init__(
        self,
        document: Document,
        links: Iterable[Link] = (),
        images: Sequence[ImageStatus] | None = None,
    ) -> None:
        super().__init__(links)
        self.document = document
        self.images = list(images) if images is not None else all_read(document)

    def to_dict(self) -> dict[str, Any]:
        """The link record, as `sightline link` writes it."""
        return {
            "id": self.document.id,
            "links": [
                {
                    "sentence": link.sentence,
                    "image": link.image,
                    "score": link.score,
                    "confidence": link.confidence,
                }
                for link in self
            ],
            "images": [dict(image) for image in self.images],
            "sentences": list(self.document.sentences),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """One row per link; `links_table` says which columns."""
        return links_table([self]).to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """One row per link; `links_table` says which columns."""
        return links_table([self]).to_arrow()

    def __repr__(self) -> str:
        some = [
            f"sentence {link.sentence} - image {link.image}"
            + (f" ({confidence_text(link.confidence)})" if link.confidence is not None else "")
            for link in self[:_SHOWN]
        ]
        more = [f"{len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        unread = sum(image["status"] != "ok" for image in self.images)
        more += [f"{counted(unread, 'image')} not read"] if unread else []
        return f"DocumentLinks({self.document.id!r}: {', '.join([*some, *more]) or 'no links'})"

    def _repr_html_(self) -> str:
        return self.document._html(self)


def check_document(document: object) -> None:
    """Refuse what is no document, such as the name of a file."""
    if not isinstance(document, Document):
        raise SightlineError(
            f"link takes a Document, found {type(document).__name__}; for a file there is "
            "sightline.link_file(path, model)."
        )
    for name in ("sentences", "images"):
        for index, value in enumerate(getattr(document, name)):
            if not isinstance(value, str):
                kind = type(value).__name__
                raise SightlineError(f"{name}[{index}] of the document is no text but {kind}.")


def all_read(document: Document) -> list[ImageStatus]:
    """The statuses of a document whose images all have features."""
    return [{"id": image, "status": "ok", "reason": None} for image in document.images]


def link_document(
    document: Document,
    images: Sequence[ImageStatus],
    similarity: Callable[[Document], NDArray[np.floating]],
    calibration: Calibration | None,
    choices: LinkChoices,
) -> DocumentLinks:
    """The links of a document some of whose images may be unreadable; of those it warns.

    `similarity` gives the matrix of the document with its readable images alone.
    """
    places = [place for place, image in enumerate(images) if image["status"] == "ok"]
    if len(places) < len(images):
        first = next(image for image in images if image["status"] != "ok")
        warnings.warn(
            f"{document.id}: {len(images) - len(places)} of {counted(len(images), 'image')} "
            f"cannot be linked; {first['id']!r} is {first['status']}: {first['reason']}",
            stacklevel=3,
        )
    readable = tuple(document.images[place] for place in places)
    similarity_SV = similarity(replace(document, images=readable, links=None))
    found = link(similarity_SV, choices.policy, choices.max_links, choices.threshold)
    found = with_confidence(found, similarity_SV, calibration)
    found = confident_links(found, choices.min_confidence)
    return DocumentLinks(document, [replace(one, image=places[one.image]) for one in found], images)


def links_table(
    results: DocumentLinks | Iterable[DocumentLinks | Mapping[str, Any]],
    *,
    every_image: bool = False,
) -> Table:
    """The links of many documents as one table, which has `to_pandas()` and `to_arrow()`.

    `results` are what `model.link` gave, or link records as `sightline link` writes them. A row is
    a link: `id` of the document; `sentence`, its place, and `text`, its words; `image`, its place,
    and `image_id`; `score` and `confidence`; `status` of the image. With `every_image`, an image
    without a link has a row too, so that its status is seen.
    """
    given = [results] if isinstance(results, DocumentLinks) else results
    records = (one.to_dict() if isinstance(one, DocumentLinks) else one for one in given)
    rows = (row for record in records for row in link_rows(record, every_image))
    return Table.of_rows(rows, LINK_KINDS)
