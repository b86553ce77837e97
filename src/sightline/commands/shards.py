"""What the commands that work on shards have in common: options, and when they apply."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.choices import LINK_SUFFIXES, Engine
from sightline.commands.options import WORK
from sightline.console import say
from sightline.problems import SightlineError, UsageError

if TYPE_CHECKING:
    from sightline.shard_work import Work


ShardWorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Shards at a time; by default one per core.",
        rich_help_panel=WORK,
    ),
]
EngineOption = Annotated[
    Engine, typer.Option(help="Where shards are worked on.", rich_help_panel=WORK)
]
EngineAddressOption = Annotated[
    str | None,
    typer.Option(
        help="Address of the Ray or Spark cluster; by default this machine.", rich_help_panel=WORK
    ),
]


def is_sharded(inputs: Iterable[Path], output: Path | None, *, tar_folders: bool) -> bool:
    """Whether any input is an address in a store, or a folder of shards.

    A folder of .tar files is also one corpus; `tar_folders` says which of the two is meant.
    """
    from sightline.articles import NOT_DOWNLOADED
    from sightline.corpus import SUFFIXES
    from sightline.shards import is_shard_folder
    from sightline.storage import files_in, is_remote, place_of

    if output is not None and is_remote(place_of(output)):
        return True
    for place in map(place_of, inputs):
        if place.startswith(("http://", "https://")) and not place.endswith(SUFFIXES):
            raise SightlineError(f"{place}: {NOT_DOWNLOADED}.")
        if is_remote(place):
            return True
        if is_shard_folder(place):
            shards = [name for name in files_in(place) if name.endswith(SUFFIXES)]
            if tar_folders or not all(name.endswith(".tar") for name in shards):
                return True
    return False


def work_on_shards(
    inputs: Iterable[Path],
    output: Path | None,
    work: Work,
    engine: Engine,
    workers: int | None,
    address: str | None,
) -> None:
    """Work on all shards and say what became of them; a failed one ends the command with 1."""
    from sightline.shard_runs import run_shards, say_run

    if output is None:
        raise UsageError("Shards need a folder for their results; name one with -o.")
    if output.is_file() or output.suffix in LINK_SUFFIXES:
        raise UsageError(f"{output} is the name of a file; the results of shards need a folder.")
    run = run_shards(
        list(inputs), output, work, engine=engine, workers=workers, address=address, say=say
    )
    say_run(run, say)
    if run.failed:
        raise SightlineError(
            f"{len(run.failed):,} of {len(run.results):,} shards failed; run the same command "
            "again when the cause is gone, and it completes them."
        )
