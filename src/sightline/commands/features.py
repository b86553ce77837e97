"""`sightline features`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.commands import completions
from sightline.commands.manners import examples
from sightline.commands.opening import say_packed_images
from sightline.commands.options import (
    INPUT,
    OUTPUT,
    WORK,
    JsonOption,
    StrictOption,
    existing,
    known_backbone,
)
from sightline.commands.shards import (
    EngineAddressOption,
    EngineOption,
    is_sharded,
    work_on_shards,
)
from sightline.console import print_json, report, say, say_problems, timed
from sightline.problems import Problems, SightlineError, UsageError

EXAMPLES = examples(
    (
        "The features of a corpus's images, beside it, where other commands look for them",
        "sightline features CORPUS -o CORPUS/features",
    ),
    (
        "With the larger network, of a folder of images",
        "sightline features IMAGES -o FEATURES --backbone efficientnet-lite2",
    ),
)


def features(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="Corpora, folders of images or images.", metavar="CORPUS", callback=existing
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Feature store to write, or to add to; of shards, a folder.",
            rich_help_panel=OUTPUT,
        ),
    ],
    backbone: Annotated[
        str,
        typer.Option(
            help="Pretrained image network.",
            autocompletion=completions.backbones,
            callback=known_backbone,
            rich_help_panel=INPUT,
        ),
    ] = "efficientnet-lite0",
    weights: Annotated[
        Path | None,
        typer.Option(help="Weights of the backbone, if not the known ones.", rich_help_panel=INPUT),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Decoding processes, 0: threads, not isolated; shards at a time.",
            rich_help_panel=WORK,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Images computed at a time.", rich_help_panel=WORK)
    ] = 8,
    engine: EngineOption = "local",
    engine_address: EngineAddressOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Compute the features of a corpus's images.

    Run again, it adds only what is missing. A folder of shards in gives a folder of feature stores
    out, one per shard.
    """
    from sightline.backbone_names import open_backbone
    from sightline.extraction import STATUSES, extract_features

    if engine != "local" or is_sharded(inputs, output, tar_folders=True):
        from sightline.shard_work import features_work

        work = features_work(backbone, weights, batch, strict=strict)
        work_on_shards(inputs, output, work, engine, workers or None, engine_address)
        return
    if output.is_file():
        raise UsageError(f"{output} is a file; a feature store is a folder: name one with -o.")
    tars = [path for path in inputs if path.suffix == ".tar"]
    say_packed_images(tars, None, ", or name the folder of this file")
    problems = Problems(strict=strict, report=report)
    with timed(f"backbone {backbone} opened"):
        network = open_backbone(backbone, weights, threads=1)
    summary = extract_features(
        inputs, output, network, workers=workers, batch=batch, problems=problems
    )
    say_problems(problems)
    say(f"{summary}; store in {output}")
    if json:
        print_json(summary)
    if not summary.usable:
        raise SightlineError(f"No image could be used; {output / STATUSES} says why.")
