"""Shards on a Spark cluster: a partition per shard, through `mapInPandas`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Any

import orjson

from sightline.engines.processes import ONE_THREAD
from sightline.problems import MissingExtraError
from sightline.shard_work import Unit, Work, run_unit, work_from_json, work_to_json
from sightline.shards import Shard, ShardResult


def run(
    work: Work, shards: Sequence[Shard], workers: int, address: str | None = None
) -> Iterator[ShardResult]:
    """Work on the shards as tasks of one Spark job; without an address, on this machine alone.

    Results come when the job has ended. Sightline has to be installed on the cluster's machines,
    and the places of shards, model and features have to mean the same there.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise MissingExtraError("--engine spark", "spark") from None
    # The workers' interpreter has to be the one that has Sightline.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A Spark of this machine hands its environment on, a cluster what the session says.
    os.environ.update(ONE_THREAD)
    builder = SparkSession.builder.appName("sightline").master(address or f"local[{workers}]")
    builder = builder.config("spark.ui.enabled", "false")
    for name, value in ONE_THREAD.items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    session = builder.getOrCreate()
    try:
        session.sparkContext.setLogLevel("ERROR")
        rows = [(orjson.dumps(asdict(shard)).decode(),) for shard in shards]
        frame = session.createDataFrame(
            session.sparkContext.parallelize(rows, len(rows)), "shard string"
        )
        work_on = partial(_partition, description=work_to_json(work))
        for row in frame.mapInPandas(work_on, "result string").collect():
            yield ShardResult.from_json(row["result"])
    finally:
        session.stop()


def _partition(frames: Iterator[Any], description: str) -> Iterator[Any]:
    import pandas

    unit, work = _opened(description)
    for frame in frames:
        shards = [Shard(**orjson.loads(text)) for text in frame["shard"]]
        results = [run_unit(unit, work, shard).to_json().decode() for shard in shards]
        yield pandas.DataFrame({"result": results})


# What was opened stays open for as long as the worker process lives.
_open = ExitStack()


@lru_cache(maxsize=1)
def _opened(description: str) -> tuple[Unit, Work]:
    """The model, loaded once per worker process, which Spark uses for one task after another."""
    work = work_from_json(description)
    return _open.enter_context(work.opened()), work
