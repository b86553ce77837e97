"""`sightline evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.choices import BASELINES
from sightline.commands import completions
from sightline.commands.manners import examples
from sightline.commands.opening import decoding_processes, not_over_inputs, open_model
from sightline.commands.options import (
    INPUT,
    OUTPUT,
    CorpusArgument,
    FeaturesOption,
    JsonOption,
    StrictOption,
    file_to_write,
    known_scored_model,
)
from sightline.commands.values import UsageSentence
from sightline.console import print_json, report, say, say_problems, write_lines
from sightline.problems import Problems, SightlineError
from sightline.progress import counted

EXAMPLES = examples(
    ("The bundled model on the test documents of a corpus", "sightline evaluate default CORPUS"),
    ("What chance reaches there", "sightline evaluate random CORPUS"),
    (
        "Figures for a program, and each document's for `sightline analyze`",
        "sightline evaluate MODEL CORPUS --json --documents scores.jsonl",
    ),
)


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            help="A model or CLIP folder, hf://owner/name, default, random or object-detection.",
            autocompletion=completions.scored_models,
            callback=known_scored_model,
        ),
    ],
    corpus: CorpusArgument,
    split: Annotated[
        str,
        typer.Option(
            help="Which documents; all takes every one.", autocompletion=completions.splits
        ),
    ] = "test",
    cutoff: Annotated[
        list[int] | None, typer.Option(help="C of p@C, 1 and 5 if not given; may be repeated.")
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            "--documents",
            help="Write each document's scores as JSONL.",
            callback=file_to_write,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    features: FeaturesOption = None,
    word_vectors: Annotated[
        Path | None,
        typer.Option(help="word2vec or GloVe file, for object-detection.", rich_help_panel=INPUT),
    ] = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Score a model against the true links: AUC and precision.

    Both are means over the documents whose links are known.
    """
    from sightline import baselines, evaluation
    from sightline.corpus import read

    cutoffs = cutoff or evaluation.CUTOFFS
    if min(cutoffs) < 1:
        raise typer.BadParameter("--cutoff must be at least 1")
    problems = Problems(strict=strict, report=report)
    _check_order(model, corpus)
    opened = read(corpus, problems=problems)
    not_over_inputs(documents, [opened.file])
    notes: dict[str, Any] = {}
    if model in BASELINES:
        reached = baselines.score_baseline(model, opened, split, features, word_vectors, cutoffs)
        scores, skipped, notes = reached.scores, reached.skipped, reached.notes
    else:
        from sightline.link_records import open_images
        from sightline.model import LinkModel

        loaded = open_model(model)
        if isinstance(loaded, LinkModel):
            store = evaluation.corpus_features(loaded, opened, split, features)
            scores, skipped = evaluation.score_corpus(loaded, opened, split, store, cutoffs)
        else:
            with decoding_processes() as pool:
                images = open_images(loaded, opened, features, say, pool)
                scores, skipped = evaluation.score_documents(loaded, opened, split, images, cutoffs)
    if documents is not None:
        write_lines(documents, (score.to_record() for score in scores))
    say_problems(problems)
    means = evaluation.mean_scores(scores, skipped + problems.count, cutoffs)
    if not scores and not skipped:
        raise opened.split_not_found(split)
    if json:
        print_json({**means, **notes})
    else:
        found = {**means, **notes}
        width = max(map(len, found))
        for name, value in found.items():
            shown = f"{value:.1f}" if isinstance(value, float) else value
            typer.echo(f"{name:>{width}}  {shown if value is not None else '-'}")
    if not scores:
        raise SightlineError(
            f"No document could be scored: of {counted(skipped, 'document')} the links are "
            "unknown, or no link or every link is true."
        )


def _check_order(model: str, corpus: Path) -> None:
    """Refuse a corpus that stands where the model should, and the other way round."""
    if _is_corpus(Path(model)) and not _is_corpus(corpus):
        right = f"sightline evaluate {corpus} {model}"
        raise UsageSentence(f"{model} is a corpus, and the model comes first: '{right}'.")


def _is_corpus(path: Path) -> bool:
    from sightline.corpus import read

    try:
        read(path)
    except SightlineError:
        return False
    return True
