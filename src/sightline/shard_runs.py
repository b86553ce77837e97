"""A run over all shards: what is still to be done goes to an engine, and all of it is summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from sightline.choices import Engine
from sightline.machine import bound_cores
from sightline.problems import SightlineError
from sightline.progress import Progress, counted, duration
from sightline.shard_work import Work, work_to_json
from sightline.shards import (
    MANIFEST,
    Shard,
    ShardResult,
    find_shards,
    finished,
    remove_leftovers,
    write_manifest,
)
from sightline.storage import joined, place_of


@dataclass(frozen=True, slots=True)
class Run:
    """What became of all shards of a run."""

    results: list[ShardResult]
    manifest: str

    @property
    def failed(self) -> list[ShardResult]:
        """The shards that are still to be done."""
        return [result for result in self.results if result.error is not None]

    def total(self, name: str) -> int:
        """The sum of one number over the shards that are done."""
        return sum(getattr(one, name) for one in self.results if one.error is None)


def run_shards(
    inputs: Sequence[str | Path],
    output: str | Path,
    work: Work,
    *,
    engine: Engine = "local",
    workers: int | None = None,
    address: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Run:
    """Work on every shard that is not yet done; run again, it completes what is missing.

    A shard that fails is named, and the others go on. By default there are as many workers as
    this process may use cores.
    """
    if address is not None and engine == "local":
        raise SightlineError("--engine-address is for --engine ray or spark.")
    shards = find_shards(inputs, output)
    results: list[ShardResult] = []
    missing: list[Shard] = []
    for shard in shards:
        done = finished(shard, work.key, work.outputs(shard))
        results.append(done) if done is not None else missing.append(shard)
    if results:
        say(f"{len(results):,} of {len(shards):,} shards are done already")
    with Progress("shards", len(missing), "shards") as progress:
        for result in _results(engine, work, missing, workers or bound_cores(), address):
            results.append(result)
            progress.advance(1, f"{result.shard}: {counted(result.documents, 'document')}")
            if result.error is not None:
                say(f"shard {result.shard} failed: {result.error}")
    if not any(result.error for result in results):
        remove_leftovers(output)
    try:
        write_manifest(output, results, orjson.loads(work_to_json(work)))
    except SightlineError as error:
        if not any(result.error for result in results):
            raise
        say(str(error))  # on a full disk the shards that failed are the news
    return Run(results, joined(place_of(output), MANIFEST))


def say_run(run: Run, say: Callable[[str], None]) -> None:
    """Sum a run up; every failed shard is named once more, for all that was said in between."""
    done = [result for result in run.results if result.error is None]
    fresh = [result for result in done if not result.before]
    parts = [f"{len(done):,} of {len(run.results):,} shards done"]
    if run.total("documents"):
        parts.append(counted(run.total("documents"), "document"))
        parts.append(counted(run.total("links"), "link"))
    if run.total("problems"):
        parts.append(f"{counted(run.total('problems'), 'bad record')} skipped")
    if fresh:
        seconds = duration(sum(result.seconds for result in fresh))
        memory = max(result.memory_bytes for result in fresh) / 1e6
        parts.append(f"{seconds} of work, at most {memory:,.0f} MB a worker")
    say(", ".join(parts) + f"; {run.manifest}")
    for result in run.failed:
        say(f"failed: {result.shard}: {result.error}")


def _results(
    engine: Engine, work: Work, shards: Sequence[Shard], workers: int, address: str | None
) -> Iterator[ShardResult]:
    if not shards:
        return iter(())
    if engine == "ray":
        from sightline.engines import ray

        return ray.run(work, shards, workers, address)
    if engine == "spark":
        from sightline.engines import spark

        return spark.run(work, shards, workers, address)
    from sightline.engines import processes

    return processes.run(work, shards, workers)
