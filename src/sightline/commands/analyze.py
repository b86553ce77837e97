"""`sightline analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.commands.options import CorpusArgument, FeaturesOption, JsonOption, StrictOption
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems, SightlineError


def analyze(
    corpus: CorpusArgument,
    scores: Annotated[
        list[Path],
        typer.Argument(
            help="Files of 'evaluate --documents', run folders, or a reproduction folder.",
            metavar="SCORES...",
        ),
    ],
    features: FeaturesOption = None,
    word_vectors: Annotated[
        Path | None, typer.Option(help="word2vec or GloVe file, for the sentences' spread.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Only these documents; by default all that have scores.")
    ] = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Find out which documents are hard, and why: spread, content, agreement of models."""
    from sightline.analysis import analyse
    from sightline.analysis_tables import analysis_tables
    from sightline.corpus import read
    from sightline.document_measures import documents_named, measure_corpus
    from sightline.report.run_folders import read_runs

    problems = Problems(strict=strict, report=report)
    runs = read_runs(scores, problems)
    opened = read(corpus, problems=problems)
    named = documents_named(opened, split, {id for run in runs for id in run.auc})
    if not named:
        raise SightlineError(
            f"None of the documents of {corpus} has an AUC in the scores: their links may be "
            "unknown, or the scores those of another corpus or split."
        )
    measures = measure_corpus(opened, list(named.values()), features, word_vectors)
    analysis = analyse([run.only(named) for run in runs], measures)
    say_problems(problems)
    for note in analysis.notes:
        say(note)
    if json:
        print_json(analysis.to_record())
    else:
        typer.echo("\n\n".join(table.to_text() for table in analysis_tables(analysis)))
