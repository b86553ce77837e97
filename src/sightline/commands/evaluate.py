"""`sightline evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.commands.options import CorpusArgument, FeaturesOption, JsonOption, StrictOption
from sightline.console import print_json, report, say, say_problems, write_lines
from sightline.problems import Problems, SightlineError


def evaluate(
    model: Annotated[
        str, typer.Argument(help="A model, CLIP or SigLIP folder, or random, object-detection.")
    ],
    corpus: CorpusArgument,
    split: Annotated[str, typer.Option(help="Which documents.")] = "test",
    cutoff: Annotated[
        list[int] | None, typer.Option(help="C of p@C, 1 and 5 if not given; may be repeated.")
    ] = None,
    documents: Annotated[
        Path | None, typer.Option("--documents", help="Write each document's scores as JSONL.")
    ] = None,
    features: FeaturesOption = None,
    word_vectors: Annotated[Path | None, typer.Option(help="For object-detection.")] = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Score a model against the true links: AUC and precision, means over documents."""
    from sightline import baselines, evaluation
    from sightline.corpus import read

    cutoffs = cutoff or evaluation.CUTOFFS
    if min(cutoffs) < 1:
        raise typer.BadParameter("--cutoff must be at least 1")
    problems = Problems(strict=strict, report=report)
    opened = read(corpus, problems=problems)
    notes: dict[str, Any] = {}
    if model in baselines.NAMES:
        reached = baselines.score_baseline(model, opened, split, features, word_vectors, cutoffs)
        scores, skipped, notes = reached.scores, reached.skipped, reached.notes
    else:
        from sightline.decode_pool import DecodePool
        from sightline.link_records import open_images, open_model
        from sightline.model import LinkModel

        loaded = open_model(model)
        if isinstance(loaded, LinkModel):
            store = evaluation.corpus_features(loaded, opened, split, features)
            scores, skipped = evaluation.score_corpus(loaded, opened, split, store, cutoffs)
        else:
            with DecodePool() as pool:
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
        for name, value in {**means, **notes}.items():
            shown = f"{value:.1f}" if isinstance(value, float) else value
            typer.echo(f"{name:>15}  {shown if value is not None else '-'}")
    if not scores:
        raise SightlineError(
            f"None of the {skipped:,} documents could be scored: their links are unknown, or no "
            "link or every link is true."
        )
