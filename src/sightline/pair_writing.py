"""Pairs as JSONL, CSV or WebDataset; files appear whole or not at all."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

import orjson

from sightline.choices import PairFormat
from sightline.csv_cells import text_cell
from sightline.decode_pool import DecodePool
from sightline.files import atomic_writer
from sightline.pairs import HELD, Pair
from sightline.problems import UsageError
from sightline.readers.tar_shards import (
    SHARD_BYTES,
    SUFFIX,
    SampleFiles,
    write_shard,
    write_shards,
)
from sightline.readers.webdataset import MAX_IMAGE
from sightline.unpacking import image_extension

#: Why a pair is left out that should have been written with its image.
NO_FILE = "pairs without an image file"
NOT_THERE = "image files that are not there; their pairs are kept"
#: A record by a stranger may name any file of the reader's, who publishes the pairs.
_INSIDE = "image files inside articles; their pairs are kept, and webdataset holds both"
OUTSIDE = "pairs whose image lies outside the corpus's folder"
_SUFFIXES: dict[str, PairFormat] = {".jsonl": "jsonl", ".csv": "csv", SUFFIX: "webdataset"}
_COLUMNS = [column.name for column in fields(Pair) if column.name not in HELD]
_CHECKED_SIDE = 64  # pixels: enough to know that an image can be decoded


def pair_format(output: Path, wanted: PairFormat | None) -> PairFormat:
    """Give the format that the user names, or that the name of the output does."""
    found = wanted or _SUFFIXES.get(output.suffix.lower())
    if found is None:
        raise UsageError(
            f"{output}: its name does not tell the format; end it in .jsonl, .csv or .tar, or name "
            "the format with --format."
        )
    return found


def write_pairs(
    pairs: Iterable[Pair],
    output: Path,
    to: PairFormat,
    pool: DecodePool,
    left_out: Counter[str],
) -> int:
    """Write pairs; gives their number. What only one format can hold is counted in the others."""
    if to == "webdataset":
        samples = _samples(pairs, pool, left_out)
        if output.suffix == SUFFIX:
            return write_shard(samples, output)
        return write_shards(samples, output, SHARD_BYTES)
    with atomic_writer(output) as file:
        records = (_placed(pair, output, left_out) for pair in pairs)
        return _write_jsonl(records, file) if to == "jsonl" else _write_csv(records, file)


def _placed(pair: Pair, output: Path, left_out: Counter[str]) -> dict[str, Any]:
    """Give the record of a pair whose image is named by its path from the output's folder."""
    record = pair.to_record()
    if isinstance(pair.content, Path) and os.path.isfile(pair.content):  # noqa: PTH113, or it raises
        # The name as it is given: a link may lead to one that is no text.
        content = Path(os.path.realpath(pair.content.parent), pair.content.name)
        path = Path(os.path.relpath(content, os.path.realpath(output.parent))).as_posix()
        if path.isprintable() or path.encode("utf-8", "replace").decode() == path:
            record["image"] = path
        else:
            left_out["paths of images that are no text"] += 1
    elif isinstance(pair.content, bytes):
        left_out[_INSIDE] += 1
    elif isinstance(pair.content, Path):
        left_out[NOT_THERE] += 1
    return record


def _write_jsonl(records: Iterable[dict[str, Any]], file: IO[bytes]) -> int:
    count = 0
    for record in records:
        file.write(orjson.dumps(record) + b"\n")
        count += 1
    return count


def _write_csv(records: Iterable[dict[str, Any]], file: IO[bytes]) -> int:
    count = 0
    text = io.TextIOWrapper(file, "utf-8", "replace", newline="", write_through=True)
    table = csv.DictWriter(text, _COLUMNS)
    table.writeheader()
    for record in records:
        cells = {k: text_cell(v) if isinstance(v, str) else v for k, v in record.items()}
        table.writerow(cells)
        count += 1
    text.detach()
    return count


def _samples(
    pairs: Iterable[Pair], pool: DecodePool, left_out: Counter[str]
) -> Iterator[SampleFiles]:
    """Yield pairs with their image files as they are, if the decoder takes them."""
    for pair in pairs:
        if pair.is_outside:
            left_out[OUTSIDE] += 1
            continue
        data = _bytes(pair.content)
        extension = image_extension(data) if data is not None else None
        if data is None:
            left_out[NO_FILE] += 1
            continue
        (decoded,) = pool.decode_many([data], _CHECKED_SIDE)
        if extension is None or decoded.pixels is None:
            left_out[f"pairs whose image is {decoded.status}"] += 1
            continue
        record = pair.to_record()
        sentence = record["sentence"].encode("utf-8", "replace")
        yield [(extension, data), ("txt", sentence), ("json", orjson.dumps(record))]


def _bytes(content: Path | bytes | None) -> bytes | None:
    if not isinstance(content, Path):
        return content
    try:
        # No pipe or device: they could block, or never end.
        fits = content.is_file() and content.stat().st_size <= MAX_IMAGE
        return content.read_bytes() if fits else None
    except (OSError, ValueError):  # or a name that no file can have
        return None
