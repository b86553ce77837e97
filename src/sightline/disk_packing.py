"""Documents packed into files, for corpora larger than memory.

A few documents at a time are packed in memory and appended to the files of a folder, one per array,
which are then mapped: what a batch needs is read where it lies. The arrays are those that packing
in memory gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from sightline.batches import PackedDocuments
from sightline.documents import Document

#: Packed in memory together.
_DOCUMENTS_AT_ONCE = 1024
#: The arrays, each a file of this name, and the type of their numbers.
_ARRAYS = {
    "token_ids": np.int32,
    "token_start": np.int64,
    "sentence_start": np.int64,
    "image_rows": np.int64,
    "image_start": np.int64,
    "group": np.int64,
}
#: Arrays that say where things start: they go on from the last number before.
_STARTS = ("token_start", "sentence_start", "image_start")
#: Ids and links, one JSON array a document, and where each starts.
_RECORDS, _RECORD_START = "records", "record_start"
#: Written last: its presence says that the others are whole.
_NOTES = "notes.json"


class _Column(Sequence[Any]):
    """The ids or the links of the documents, decoded one at a time."""

    def __init__(self, records: np.ndarray, starts: np.ndarray, place: int) -> None:
        self.records, self.starts, self.place = records, starts, place

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, document: Any) -> Any:
        first, last = self.starts[document], self.starts[document + 1]
        value = orjson.loads(self.records[first:last].tobytes())[self.place]
        return tuple(map(tuple, value)) if isinstance(value, list) else value


def pack_to_disk(
    documents: Iterable[Document],
    folder: Path,
    pack: Callable[[Sequence[Document]], PackedDocuments],
) -> None:
    """Pack documents into the files of a new folder, some at a time as `pack` does it."""
    folder.mkdir(parents=True)
    cut = 0
    ends = dict.fromkeys([*_STARTS, _RECORD_START], 0)
    with ExitStack() as opened:
        names = [*_ARRAYS, _RECORDS, _RECORD_START]
        files = {name: opened.enter_context((folder / name).open("wb")) for name in names}
        for name in ends:
            files[name].write(np.zeros(1, np.int64).data)
        for packed in map(pack, _some_at_a_time(documents)):
            cut += packed.cut_sentences
            records = [orjson.dumps(pair) for pair in zip(packed.ids, packed.links, strict=True)]
            files[_RECORDS].write(b"".join(records))
            lengths = np.array([len(record) for record in records], np.int64)
            arrays = {name: getattr(packed, name) for name in _ARRAYS}
            arrays[_RECORD_START] = np.concatenate([[0], np.cumsum(lengths)])
            for name, array in arrays.items():
                values = array
                if name in ends:
                    values = array[1:] + ends[name]
                    ends[name] += int(array[-1])
                files[name].write(np.ascontiguousarray(values).data)
    (folder / _NOTES).write_bytes(orjson.dumps({"cut_sentences": cut}))


def open_packed(folder: Path) -> PackedDocuments:
    """The documents that `pack_to_disk` wrote, mapped."""
    notes = orjson.loads((folder / _NOTES).read_bytes())
    arrays = {name: _mapped(folder / name, dtype) for name, dtype in _ARRAYS.items()}
    records = _mapped(folder / _RECORDS, np.uint8)
    starts = _mapped(folder / _RECORD_START, np.int64)
    return PackedDocuments(
        ids=_Column(records, starts, 0),
        links=_Column(records, starts, 1),
        cut_sentences=notes["cut_sentences"],
        **arrays,
    )


def _some_at_a_time(documents: Iterable[Document]) -> Iterator[list[Document]]:
    remaining = iter(documents)
    while some := list(islice(remaining, _DOCUMENTS_AT_ONCE)):
        yield some


def _mapped(file: Path, dtype: Any) -> np.ndarray:
    if not file.stat().st_size:  # nothing to map
        return np.empty(0, dtype)
    # As a plain array: np.memmap would pass itself on to what is computed from it.
    return np.memmap(file, dtype, mode="r").view(np.ndarray)
