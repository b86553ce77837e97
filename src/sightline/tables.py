"""Results as tables: columns of known types, for pandas and Arrow.

A column has the same type whatever is in it, so that the tables of two runs can be put together
even where one of them found nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sightline.problems import MissingExtraError

if TYPE_CHECKING:
    import pandas
    import pyarrow

Kind = Literal["text", "whole number", "number"]


@dataclass(frozen=True)
class Table:
    """Columns of equal length; what is not known is None."""

    columns: Mapping[str, list[Any]]
    kinds: Mapping[str, Kind]

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]], kinds: Mapping[str, Kind]) -> Table:
        """Make a table of rows, each of which has all columns."""
        columns: dict[str, list[Any]] = {name: [] for name in kinds}
        for row in rows:
            for name, values in columns.items():
                values.append(row[name])
        return cls(columns, kinds)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def __repr__(self) -> str:
        return f"Table({len(self):,} rows: {', '.join(self.columns)})"

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("A pandas table", "tables") from error
        return pandas.DataFrame(
            {
                name: pandas.Series(values, dtype=_pandas_type(self.kinds[name], values))
                for name, values in self.columns.items()
            }
        )

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table; needs pyarrow."""
        try:
            import pyarrow
        except ImportError as error:
            raise MissingExtraError("An Arrow table", "tables") from error
        types = {
            "text": pyarrow.string(),
            "whole number": pyarrow.int64(),
            "number": pyarrow.float64(),
        }
        schema = pyarrow.schema([(name, types[kind]) for name, kind in self.kinds.items()])
        return pyarrow.table(dict(self.columns), schema=schema)


def _pandas_type(kind: Kind, values: list[Any]) -> str:
    if kind == "text":
        return "string"
    if kind == "number":
        return "float64"
    return "Int64" if None in values else "int64"  # numpy's whole numbers know no absence


#: One row a link. `sentence` and `image` are places in the document, as in a link record.
LINK_KINDS: dict[str, Kind] = {
    "id": "text",
    "sentence": "whole number",
    "text": "text",
    "image": "whole number",
    "image_id": "text",
    "score": "number",
    "confidence": "number",
    "status": "text",
}


def link_rows(record: Mapping[str, Any], every_image: bool = False) -> Iterator[dict[str, Any]]:
    """The links of a link record, best first; then, if asked for, the images without one."""
    images = record["images"]
    for link in record["links"]:
        sentence, image = link["sentence"], link["image"]
        yield {
            "id": record["id"],
            "sentence": sentence,
            "text": record["sentences"][sentence],
            "image": image,
            "image_id": images[image]["id"],
            "score": link["score"],
            "confidence": link["confidence"],
            "status": images[image]["status"],
        }
    linked = {link["image"] for link in record["links"]}
    for place, image in enumerate(images if every_image else ()):
        if place not in linked:
            nothing = dict.fromkeys(LINK_KINDS)
            known = {"id": record["id"], "image": place, "image_id": image["id"]}
            yield {**nothing, **known, "status": image["status"]}
