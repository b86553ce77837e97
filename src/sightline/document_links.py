"""The links of documents as `LinkModel.link` gives them: lists that know their document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sightline.documents import Document
from sightline.linking import Link
from sightline.tables import LINK_KINDS, Table, link_rows

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: Links that the short form names.
_SHOWN = 3


class DocumentLinks(list[Link]):
    """The links of one document, best first: a list of `Link` with its document.

    A notebook shows it as the document with its links.
    """

    def __init__(self, document: Document, links: Iterable[Link] = ()) -> None:
        super().__init__(links)
        self.document = document

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
            # There are no links where an image cannot be read: `LinkModel.link` says so.
            "images": [
                {"id": image, "status": "ok", "reason": None} for image in self.document.images
            ],
            "sentences": list(self.document.sentences),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """One row a link; `links_table` says which columns."""
        return links_table([self]).to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """One row a link; `links_table` says which columns."""
        return links_table([self]).to_arrow()

    def __repr__(self) -> str:
        some = [
            f"sentence {link.sentence} - image {link.image}"
            + (f" ({link.confidence:.0%})" if link.confidence is not None else "")
            for link in self[:_SHOWN]
        ]
        more = [f"{len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return f"DocumentLinks({self.document.id!r}: {', '.join([*some, *more]) or 'no links'})"

    def _repr_html_(self) -> str:
        return self.document._html(self)


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
