"""Shards on a Ray cluster: Ray Data hands them to actors, each of which loads the model once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import orjson

from sightline.engines.processes import ONE_THREAD
from sightline.problems import MissingExtraError, SightlineError
from sightline.shard_work import Work, run_unit, work_from_json, work_to_json
from sightline.shards import Shard, ShardResult


def run(
    work: Work, shards: Sequence[Shard], workers: int, address: str | None = None
) -> Iterator[ShardResult]:
    """Work on the shards in so many actors; without an address, on a Ray of this machine alone.

    Sightline has to be installed on the cluster's machines, and the places of shards, model and
    features have to mean the same there.
    """
    # Ray sends the number of machines to its makers unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ModuleNotFoundError:
        raise MissingExtraError("--engine ray", "ray") from None
    here = {"num_cpus": workers + 1, "include_dashboard": False} if address is None else {}
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="warning",
            runtime_env={"env_vars": ONE_THREAD},
            **here,
        )
    except Exception as error:  # Ray raises the bare class when its parts do not start in time
        where = "on this machine" if address is None else f"at {address}"
        raise SightlineError(f"Ray cannot be started or reached {where}: {error}") from error
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        # Results in the order in which they come: one slow shard must not hold back the others'.
        context.execution_options.preserve_order = False
        items = [{"shard": orjson.dumps(asdict(shard)).decode()} for shard in shards]
        results = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            _Actor,
            fn_constructor_args=(work_to_json(work),),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(items))),
            num_cpus=1,
        )
        for row in results.iter_rows():
            yield ShardResult.from_json(row["result"])
    finally:
        ray.shutdown()


class _Actor:
    """One model, and the shards that Ray brings to it."""

    def __init__(self, description: str) -> None:
        self._work = work_from_json(description)
        self._stack = ExitStack()
        self._unit = self._stack.enter_context(self._work.opened())

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        shards = [Shard(**orjson.loads(text)) for text in batch["shard"]]
        results = [run_unit(self._unit, self._work, shard) for shard in shards]
        return {"result": [result.to_json().decode() for result in results]}
