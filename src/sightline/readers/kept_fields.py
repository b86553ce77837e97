"""What the fields of another format have no room for, kept so that it comes back.

A document read from another format keeps the rest of its record under one further key that is
named after the format (`mmc4`, `obelics`). A record written in another format keeps the rest of
its document under one further key, `sightline`. Each way back puts the two together again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sightline.documents import FIELDS, Document, FieldError, document_to_record, kind

KEY = "sightline"


@dataclass
class Leftovers:
    """What a format's own fields could not hold, by kind: links, keys, matrices and so on.

    `dropped` is gone. `aside` stands under `sightline`: it comes back when Sightline reads the
    record, and other programs do not see it.
    """

    dropped: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)

    def add(self, other: Leftovers) -> None:
        """Count what another record left over too."""
        self.dropped += other.dropped
        self.aside += other.aside


def restore_fields(native: dict[str, Any], kept: object, name: str, written: set[str]) -> None:
    """Put what a record keeps under `sightline` into the fields that its other keys gave.

    A null under the format's name says that the document had no such key; the record is kept all
    the same if another program has added to the keys that were `written`.
    """
    if not isinstance(kept, dict):
        raise FieldError(KEY, f"expected an object, found {kind(kept)}")
    rest = native[name]
    if name in kept:
        del native[name]  # its place is among the others
    native.update(kept)
    if native[name] is None:
        if {key for key, value in rest.items() if value is not None} <= written:
            del native[name]
        else:
            native[name] = rest


def kept_field(field: str | None, kept: object) -> str | None:
    """Name a field of the document that came from under `sightline`; None if it did not."""
    name = (field or "").partition("[")[0]
    own = name in ("sentences", "images") and not (isinstance(kept, dict) and name in kept)
    return None if own else f"{KEY}.{field}"


def fields_to_keep(
    document: Document, plain: Document, name: str, leftovers: Leftovers
) -> dict[str, Any]:
    """Give the fields of a document in which `plain` differs, read from the record without them."""
    said = document_to_record(plain)
    wanted = document_to_record(document)
    keep = {key: value for key, value in wanted.items() if key not in said or said[key] != value}
    if wanted.get(name) is None:
        keep[name] = None
        leftovers.dropped["keys"] += name in wanted
    return keep


def count_aside(keep: dict[str, Any], name: str, expressed_links: int, aside: Counter[str]) -> None:
    """Count what stands under `sightline` alone; an id, or that a key was absent, is no content."""
    if "links" in keep:
        aside["links"] += len(keep["links"]) - expressed_links
    aside["splits"] += "split" in keep
    aside["keys"] += len(keep.keys() - {*FIELDS, name})
