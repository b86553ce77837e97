"""Pairs as JSONL, CSV or WebDataset; files appear whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal

import orjson

from sightline.decode_pool import DecodePool
from sightline.files import atomic_writer
from sightline.pairs import Pair
from sightline.problems import SightlineError
from sightline.readers.tar_members import ARCHIVE_END, member_bytes
from sightline.readers.webdataset import MAX_IMAGE, SUFFIX
from sightline.unpacking import image_extension

PairFormat = Literal["jsonl", "csv", "webdataset"]
_SUFFIXES: dict[str, PairFormat] = {".jsonl": "jsonl", ".csv": "csv", SUFFIX: "webdataset"}
_SHARD_BYTES = 10**9
_COLUMNS = [column.name for column in fields(Pair) if column.name != "content"]
_CHECKED_SIDE = 64  # pixels: enough to know that an image can be decoded


def pair_format(output: Path, wanted: PairFormat | None) -> PairFormat:
    """Give the format that the user names, or that the name of the output does."""
    found = wanted or _SUFFIXES.get(output.suffix.lower())
    if found is None:
        raise SightlineError(
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
        return _write_shard(samples, output) if output.suffix == SUFFIX else _write(samples, output)
    with atomic_writer(output) as file:
        records = (_placed(pair, output, left_out) for pair in pairs)
        return _write_jsonl(records, file) if to == "jsonl" else _write_csv(records, file)


def _placed(pair: Pair, output: Path, left_out: Counter[str]) -> dict[str, Any]:
    """Give the record of a pair whose image is named by its path from the output's folder."""
    record = pair.to_record()
    if isinstance(pair.content, Path) and pair.content.is_file():
        folder = output.resolve().parent
        record["image"] = Path(os.path.relpath(pair.content.resolve(), folder)).as_posix()
    elif isinstance(pair.content, bytes):
        left_out["image files inside articles, which only webdataset holds"] += 1
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
        table.writerow(record)
        count += 1
    text.detach()
    return count


#: The record of a pair, its image's extension and bytes.
_Sample = tuple[dict[str, Any], str, bytes]


def _samples(pairs: Iterable[Pair], pool: DecodePool, left_out: Counter[str]) -> Iterator[_Sample]:
    """Yield pairs with their image files as they are, if the decoder takes them."""
    for pair in pairs:
        data = _bytes(pair.content)
        extension = image_extension(data) if data is not None else None
        if data is None:
            left_out["pairs without an image file"] += 1
            continue
        (decoded,) = pool.decode_many([data], _CHECKED_SIDE)
        if extension is None or decoded.pixels is None:
            left_out[f"pairs whose image is {decoded.status}"] += 1
            continue
        yield pair.to_record(), extension, data


def _bytes(content: Path | bytes | None) -> bytes | None:
    if not isinstance(content, Path):
        return content
    try:
        # No pipe or device: they could block, or never end.
        fits = content.is_file() and content.stat().st_size <= MAX_IMAGE
        return content.read_bytes() if fits else None
    except (OSError, ValueError):  # or a name that no file can have
        return None


def _write_shard(samples: Iterator[_Sample], path: Path) -> int:
    with atomic_writer(path) as file:
        return _fill(samples, file, 0, None)[0]


def _write(samples: Iterator[_Sample], folder: Path) -> int:
    """Write shards to a new folder, which appears whole or not at all."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise SightlineError(f"{folder} cannot be written: it exists and is not an empty folder.")
    target = folder.resolve()
    temporary = target.with_name(f".sightline-{secrets.token_hex(8)}.tmp")
    count = number = 0
    rest: Iterator[_Sample] | None = samples
    try:
        temporary.mkdir(parents=True)
        while rest is not None:
            with atomic_writer(temporary / f"{number:06d}{SUFFIX}") as file:
                count, rest = _fill(rest, file, count, _SHARD_BYTES)
            number += 1
        temporary.replace(target)
    except OSError as error:
        raise SightlineError(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return count


def _fill(
    samples: Iterator[_Sample], file: IO[bytes], count: int, size: int | None
) -> tuple[int, Iterator[_Sample] | None]:
    """Fill one shard; gives how many pairs there are by then and those still to come."""
    for record, extension, data in samples:
        key = f"{count:09d}"
        file.write(member_bytes(f"{key}.{extension}", data))
        file.write(member_bytes(f"{key}.txt", record["sentence"].encode("utf-8", "replace")))
        file.write(member_bytes(f"{key}.json", orjson.dumps(record)))
        count += 1
        if size is not None and file.tell() >= size and (following := next(samples, None)):
            file.write(ARCHIVE_END)
            return count, chain([following], samples)
    file.write(ARCHIVE_END)
    return count, None
