"""The document: sentences, images and, where they are known, the links between them.

Every reader yields a `Document` and everything after it takes one. Here is also the one place
that says what a valid record is, so that a bad one is refused with the same words whichever
file it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sightline.problems import SightlineError
from sightline.progress import counted

FIELDS = ("id", "sentences", "images", "links", "split")
_FIELDS = frozenset(FIELDS)

Links = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One document: what the method learns from and what it finds links in.

    `images` are paths relative to the corpus, or ids in a feature store. `links` are
    (sentence, image) index pairs of the ground truth: `None` means unknown, `()` means known to
    have none. `extra` holds the further keys of the record, in their order. `folder` is where the
    document was read from: image paths are relative to it, and its features lie there.
    """

    id: str
    sentences: tuple[str, ...]
    images: tuple[str, ...]
    links: Links | None = None
    split: str | None = None
    # A dict has no hash; leaving it out keeps documents usable in sets, equal ones still equal.
    extra: dict[str, Any] = field(default_factory=dict, hash=False)
    folder: Path | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("sentences", "images"):
            if isinstance(getattr(self, name), str):  # whose letters would be taken for them
                raise FieldError(name, "expected a list of texts, found one text")

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Document:
        """Make a document of a decoded JSON object; `FieldError` names what is wrong with it."""
        return document_from_record(record)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the document with all of its fields: None where one is not known.

        Tables are made of records that all have the same keys.
        """
        record = document_to_record(self)
        return {name: record.get(name) for name in FIELDS} | record

    def __repr__(self) -> str:
        words = {"sentence": self.sentences, "image": self.images, "link": self.links}
        facts = [counted(len(found), word) for word, found in words.items() if found is not None]
        facts += [] if self.split is None else [f"split {self.split!r}"]
        return f"Document({self.id!r}: {', '.join(facts)})"

    def _repr_html_(self) -> str:
        return self._html(None)

    def _html(self, links: Sequence[Any] | None) -> str:
        # By name, because it goes against the order of modules: what draws a document stands
        # above everything that knows documents, and only a notebook asks for it.
        html: str = import_module("sightline.notebook").document_html(self, links)
        return html


class _Draft:
    """A document whose attributes can be set, until it is given its class (`_new`)."""

    __slots__ = tuple(Document.__annotations__)


class FieldError(SightlineError):
    """One field of a record is not what a document needs; `field` is None for the whole record."""

    def __init__(self, field: str | None, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


def document_from_record(record: object, allow_empty: bool = False) -> Document:
    """Make a document of a decoded JSON object; raises `FieldError` naming the bad field.

    With `allow_empty`, documents without sentences or images, and empty ones among them, pass:
    linking has to answer for every document it is given, even with no links.
    """
    return document_out_of(dict(record) if isinstance(record, Mapping) else record, allow_empty)


def document_out_of(record: Any, allow_empty: bool = False, folder: Path | None = None) -> Document:
    """Make a document of a record that nobody else needs: what is left of it is `extra`.

    This is where a reader spends its time. Each check is one expression that is true of a good
    record; what is wrong with a bad one is looked up after.
    """
    if not isinstance(record, dict):
        raise FieldError(None, f"expected a JSON object, found {kind(record)}")
    pop = record.pop
    identifier = pop("id", _ABSENT)
    sentences = pop("sentences", _ABSENT)
    images = pop("images", _ABSENT)
    links = pop("links", None)
    split = pop("split", None)
    if type(identifier) is not str or not identifier.strip():
        raise _id_error(identifier)
    if not _are_strings(sentences, allow_empty):
        raise _strings_error(sentences, "sentences", allow_empty)
    if not _are_strings(images, allow_empty):
        raise _strings_error(images, "images", allow_empty)
    if links is not None:
        links = _links(links, len(sentences), len(images))
    if split is not None and type(split) is not str:
        raise FieldError("split", f"expected a string or null, found {kind(split)}")
    return _new(identifier, tuple(sentences), tuple(images), links, split, record, folder)


def _new(
    identifier: str,
    sentences: tuple[str, ...],
    images: tuple[str, ...],
    links: Links | None,
    split: str | None,
    extra: dict[str, Any],
    folder: Path | None,
) -> Document:
    """Give `Document(...)` of the same, in a fifth of the time.

    The constructor of a frozen class sets each attribute by a call, and for a short record that
    takes longer than decoding its JSON.
    """
    draft: Any = _Draft()
    draft.id = identifier
    draft.sentences = sentences
    draft.images = images
    draft.links = links
    draft.split = split
    draft.extra = extra
    draft.folder = folder
    draft.__class__ = Document
    document: Document = draft
    return document


def documents_out_of(lines: list[bytes], folder: Path | None = None) -> list[Document] | None:
    """Make documents of lines of JSON if all are good and none has further keys; else None.

    The same as `orjson` and `document_out_of` for each of them, in half the time: types are
    checked while they are decoded, and empty strings are looked for in all documents at once.
    """
    try:
        records = list(map(_decode, lines))
    except ValueError:  # no JSON, no UTF-8, or not such a record
        return None
    strings = chain(
        map(_ID, records),
        chain.from_iterable(map(_SENTENCES, records)),
        chain.from_iterable(map(_IMAGES, records)),
    )
    if not all(map(str.strip, strings)):
        return None
    documents = []
    for record in records:
        sentences, images, links = record.sentences, record.images, record.links
        if links:
            sentence_count, image_count = len(sentences), len(images)
            for sentence, image in links:
                if sentence >= sentence_count or image >= image_count:
                    return None
            if len(set(links)) < len(links):
                links = tuple(dict.fromkeys(links))
        documents.append(_new(record.id, sentences, images, links, record.split, {}, folder))
    return documents


_Strings = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
_Index = Annotated[int, msgspec.Meta(ge=0)]


class _Record(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A record without further keys; what is no such record does not decode."""

    id: str
    sentences: _Strings
    images: _Strings
    links: tuple[tuple[_Index, _Index], ...] | None = None
    split: str | None = None


_decode = msgspec.json.Decoder(_Record).decode
_ID, _SENTENCES, _IMAGES = map(attrgetter, ("id", "sentences", "images"))


def document_to_record(document: Document) -> dict[str, Any]:
    """Give the JSON object of a document; unknown links and an absent split leave no key."""
    record: dict[str, Any] = {
        "id": document.id,
        "sentences": list(document.sentences),
        "images": list(document.images),
    }
    if document.links is not None:
        record["links"] = [list(link) for link in document.links]
    if document.split is not None:
        record["split"] = document.split
    if document.extra:
        if not _FIELDS.isdisjoint(document.extra):
            # Otherwise an extra key `links` would turn into ground truth when read again.
            clash = next(key for key in document.extra if key in _FIELDS)
            raise FieldError(f"extra[{clash!r}]", "is a field of the document itself")
        record.update(document.extra)
    return record


_SPLIT_ALIASES = {"validation": "val", "dev": "val"}


def split_name(split: str | None) -> str | None:
    """Give the name to compare splits by: `validation` and `dev` are other words for `val`."""
    return None if split is None else _SPLIT_ALIASES.get(split, split)


def _are_strings(values: object, allow_empty: bool) -> bool:
    if type(values) is not list:
        return False
    if allow_empty:
        return _STRINGS.issuperset(map(type, values))
    try:
        # One pass in C that stops at a blank string and raises on anything else; strip() copies
        # nothing unless there is something to strip.
        return bool(values) and all(map(str.strip, values))
    except TypeError:
        return False


_STRINGS = frozenset({str})
_ABSENT = object()


def _links(links: object, sentence_count: int, image_count: int) -> Links:
    """Give the links as pairs; of a pair that is there twice, the first is kept."""
    if type(links) is not list:
        raise FieldError("links", f"expected a list of pairs or null, found {kind(links)}")
    pairs: dict[tuple[int, int], None] = {}
    try:
        for sentence, image in links:
            # `type(...) is int`, because a bool is an int to isinstance.
            if type(sentence) is not int or type(image) is not int:
                break
            if not 0 <= sentence < sentence_count or not 0 <= image < image_count:
                break
            pairs[sentence, image] = None
        else:
            return tuple(pairs)
    except (TypeError, ValueError):
        pass  # not a pair
    raise _links_error(links, sentence_count, image_count)


def _id_error(identifier: object) -> FieldError:
    found = "an empty one" if isinstance(identifier, str) else _found(identifier)
    return FieldError("id", f"expected a non-empty string, found {found}")


def _strings_error(strings: object, name: str, allow_empty: bool) -> FieldError:
    if not isinstance(strings, list):
        return FieldError(name, f"expected a list of strings, found {_found(strings)}")
    for index, string in enumerate(strings):
        if type(string) is not str:
            return FieldError(f"{name}[{index}]", f"expected a string, found {kind(string)}")
        if not allow_empty and not string.strip():
            return FieldError(f"{name}[{index}]", "expected a non-empty string, found an empty one")
    return FieldError(name, "expected at least one, found an empty list")


def _links_error(links: list[Any], sentence_count: int, image_count: int) -> FieldError:
    for index, link in enumerate(links):
        if not isinstance(link, list) or len(link) != 2:
            found = f"a list of {len(link)}" if isinstance(link, list) else kind(link)
            reason = f"expected a [sentence, image] pair, found {found}"
        elif wrong := [number for number in link if type(number) is not int]:
            reason = f"expected two whole numbers, found {kind(wrong[0])}"
        elif not 0 <= link[0] < sentence_count:
            reason = f"no sentence {link[0]}, the document has {sentence_count}"
        elif not 0 <= link[1] < image_count:
            reason = f"no image {link[1]}, the document has {image_count}"
        else:
            continue
        return FieldError(f"links[{index}]", reason)
    return FieldError("links", "expected a list of [sentence, image] pairs")


def _found(value: object) -> str:
    return "no such key" if value is _ABSENT else kind(value)


def kind(value: object) -> str:
    """Name the type of a JSON value in JSON's words, for the messages of readers."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names: dict[type, str] = {str: "a string", int: "a whole number", float: "a fraction"}
    names |= {list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
