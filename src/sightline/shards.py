"""Shards: a corpus in many files, each worked on by itself, and what became of each.

A shard's result appears in one step, and after it `<name>_stats.json`, which says that it is
done, with which choices, and how many documents and links it holds. Whoever runs the same work
again passes over the shards that are done: each document is there once, whatever was interrupted.
`manifest.json` sums up a whole run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson

from sightline.corpus import SUFFIXES, shard_name
from sightline.problems import SightlineError
from sightline.readers.recognition import are_results
from sightline.storage import (
    files_in,
    is_folder,
    is_remote,
    joined,
    place_of,
    read_bytes,
    size_of,
    write_bytes,
)

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a corpus; `name` is the file's, without the suffix."""

    name: str
    source: str
    #: The folder that results are written to.
    output: str

    @property
    def stats(self) -> str:
        """The place of what is said of the shard when it is done."""
        return joined(self.output, f"{self.name}_stats.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardResult:
    """What became of a shard: the content of its `_stats.json`, or why there is none."""

    shard: str
    documents: int = 0
    links: int = 0
    #: Images by their status.
    images: dict[str, int] = field(default_factory=dict)
    #: Bad records that were skipped.
    problems: int = 0
    seconds: float = 0.0
    #: The worker's own, which other work on the machine does not lengthen.
    cpu_seconds: float = 0.0
    #: The most memory that the process has held so far.
    memory_bytes: int = 0
    source_bytes: int = 0
    output_bytes: int = 0
    #: Names the work: the choices and the model.
    work: str = ""
    error: str | None = None
    #: Done by an earlier run.
    before: bool = False

    def to_json(self) -> bytes:
        """One line of JSON, the form in which workers answer."""
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, data: bytes | str) -> ShardResult:
        """Read what `to_json` wrote."""
        record = orjson.loads(data)
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})


def is_shard_folder(place: str) -> bool:
    """Whether a folder holds the shards of a corpus, rather than being one corpus by its names.

    A folder of `.tar` files is both; it counts here. Results, such as link records beside the pages
    that they were made of, are no shards.
    """
    if not is_folder(place):
        return False
    names = files_in(place)
    of_corpus = {f"documents{suffix}" for suffix in SUFFIXES} | {"docs.json"}
    shards = (name for name in names if name.endswith(SUFFIXES))
    if not is_remote(place):
        shards = (name for name in shards if not are_results(Path(place, name)))
    return not of_corpus & names.keys() and any(shards)


def find_shards(inputs: Iterable[str | Path], output: str | Path) -> list[Shard]:
    """The shards of folders, and of files that are named one by one."""
    folder = place_of(output)
    found: dict[str, Shard] = {}
    for place in dict.fromkeys(map(place_of, inputs)):
        if place == folder:
            raise SightlineError(f"{folder}: results need a folder of their own; name one with -o.")
        sources = [joined(place, name) if name else place for name in _sources(place)]
        if not sources:
            raise SightlineError(
                f"{place}: there is no shard; expected files that end in {', '.join(SUFFIXES)}."
            )
        for source in sources:
            file = source.rpartition("/")[2]
            name = shard_name(file)
            other = found.setdefault(name, Shard(name, source, folder))
            if other.source != source:
                raise SightlineError(
                    f"{other.source} and {source} would have one name for their results; give "
                    "the files different names, or work on them one after the other."
                )
    return [found[name] for name in sorted(found)]


def _sources(place: str) -> Iterator[str]:
    """The names of a folder's shards, or of the file itself."""
    if is_folder(place):
        yield from (name for name in files_in(place) if name.endswith(SUFFIXES))
    elif place.endswith(SUFFIXES):
        yield ""


def finished(shard: Shard, work: str, outputs: Iterable[str]) -> ShardResult | None:
    """What an earlier run did with a shard; None if this work is still to be done.

    It is not done if the choices or the model were others, or the input has changed its size, or
    a result is missing or was cut.
    """
    data = read_bytes(shard.stats)
    if data is None:
        return None
    try:
        found = ShardResult.from_json(data)
    except (ValueError, TypeError):
        return None
    sizes = [size_of(place) for place in outputs]
    if found.work != work or found.source_bytes != size_of(shard.source):
        return None
    if None in sizes or sum(size or 0 for size in sizes) != found.output_bytes:
        return None
    record = asdict(found)
    return ShardResult(**(record | {"before": True}))


def finish(shard: Shard, result: ShardResult) -> None:
    """Say that a shard is done; only after its result is in its place."""
    record = asdict(result)
    del record["error"], record["before"]
    write_bytes(shard.stats, orjson.dumps(record, option=orjson.OPT_INDENT_2))


def write_manifest(
    output: str | Path, results: Iterable[ShardResult], work: dict[str, Any]
) -> None:
    """Sum up a run: its choices, every shard, what failed, and the totals."""
    folder = place_of(output)
    results = sorted(results, key=lambda result: result.shard)
    done = [result for result in results if result.error is None]
    images: Counter[str] = Counter()
    for result in done:
        images.update(result.images)
    totals = {
        name: sum(getattr(result, name) for result in done)
        for name in ("documents", "links", "problems", "seconds", "cpu_seconds", "output_bytes")
    }
    shards = []
    for result in done:
        record = asdict(result)
        del record["error"], record["before"], record["work"]
        shards.append(record)
    manifest = {
        "complete": len(done) == len(results),
        "work": work,
        "totals": {"shards": len(done), **totals, "images": dict(sorted(images.items()))},
        "failed": {result.shard: result.error for result in results if result.error is not None},
        "shards": shards,
    }
    write_bytes(joined(folder, MANIFEST), orjson.dumps(manifest, option=orjson.OPT_INDENT_2))


def remove_leftovers(output: str | Path) -> None:
    """Remove the temporary files of workers that were killed; only when all shards are done."""
    folder = place_of(output)
    if is_remote(folder):
        return
    for file in Path(folder).rglob(".sightline-*.tmp"):
        file.unlink(missing_ok=True)
