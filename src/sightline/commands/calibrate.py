"""`sightline calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.commands import completions
from sightline.commands.manners import examples
from sightline.commands.options import (
    OUTPUT,
    CorpusArgument,
    FeaturesOption,
    JsonOption,
    StrictOption,
    known_model,
)
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems
from sightline.progress import counted

EXAMPLES = examples(
    ("A model of your own, in its own folder", "sightline calibrate MODEL CORPUS"),
    (
        "The bundled model for documents of yours, into a new folder",
        "sightline calibrate default CORPUS -o MODEL",
    ),
)


def calibrate(
    model: Annotated[
        str,
        typer.Argument(
            help="A model folder, `default` or hf://owner/name.",
            autocompletion=completions.models,
            callback=known_model,
        ),
    ],
    corpus: CorpusArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Model folder to write; else MODEL itself.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Which documents; by default val, or all if there are none.",
            autocompletion=completions.splits,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same calibration.")] = 1,
    features: FeaturesOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Estimate how sure a model's links are.

    It takes documents such as will be linked; their links need not be known.
    """
    from sightline.calibration import calibrate as estimate
    from sightline.calibration import calibrated, store_calibration
    from sightline.corpus import ALL, read
    from sightline.hub import name_from_user
    from sightline.model import LinkModel
    from sightline.model_files import check_new_folder

    loaded = LinkModel.from_pretrained(name_from_user(model))
    if output is None and not Path(model).is_dir():
        raise typer.BadParameter(f"{model} is not a folder; name one to write to with -o")
    problems = Problems(strict=strict, report=report)
    documents = read(corpus, problems=problems)
    chosen = split or ("val" if next(documents.documents("val"), None) else None)
    if chosen is None:
        say(
            f"{corpus} has no validation split, so that all documents are taken; of those that the "
            "model was trained on, it is surer than it is right."
        )
    own = Path(model).resolve() if Path(model).is_dir() else None
    if output is not None and output.resolve() != own:
        check_new_folder(output)
    found = estimate(loaded, documents, chosen, features, seed, say)
    if output is None:
        store_calibration(Path(model), found)
    else:
        calibrated(loaded, found).save_pretrained(output)
    say_problems(problems)
    kind = "document" if chosen in (None, ALL) else f"{chosen} document"
    say(
        f"calibrated on {counted(found.documents, kind)}: "
        f"sharpness {found.sharpness:.1f}, level {found.level:.2f}; model in {output or model}"
    )
    if json:
        print_json(found.to_json())
