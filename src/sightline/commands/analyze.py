"""`sightline analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.commands import completions
from sightline.commands.manners import examples
from sightline.commands.options import (
    INPUT,
    CorpusArgument,
    FeaturesOption,
    JsonOption,
    StrictOption,
)
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems, SightlineError

EXAMPLES = examples(
    ("The documents of one model", "sightline analyze CORPUS scores.jsonl"),
    (
        "All models of a reproduction, with the spread of the sentences",
        "sightline analyze CORPUS RESULTS --word-vectors glove.txt.gz",
    ),
)


def analyze(
    corpus: CorpusArgument,
    scores: Annotated[
        list[Path],
        typer.Argument(
            help="Files of 'evaluate --documents', run folders, or a reproduction folder.",
            metavar="SCORES",
        ),
    ],
    features: FeaturesOption = None,
    word_vectors: Annotated[
        Path | None,
        typer.Option(
            help="word2vec or GloVe file, for the sentences' spread.", rich_help_panel=INPUT
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Only these documents; by default all that have scores.",
            autocompletion=completions.splits,
            rich_help_panel=INPUT,
        ),
    ] = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Find out which documents are hard, and why.

    Looks at their spread and content, and at where models agree.
    """
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
