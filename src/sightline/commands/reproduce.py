"""`sightline reproduce`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.commands import completions
from sightline.commands.manners import examples
from sightline.commands.options import (
    OUTPUT,
    WORK,
    CorpusArgument,
    FeaturesOption,
    JsonOption,
    StrictOption,
    WordVectorsOption,
    settings_of,
)
from sightline.commands.values import UsageSentence
from sightline.console import print_json, report, say, say_problems
from sightline.problems import MissingExtraError, Problems, SightlineError, did_you_mean
from sightline.reproduction.paper_results import DATASETS, DatasetName

EXAMPLES = examples(
    (
        "The rows of the paper's main table on a corpus",
        "sightline reproduce CORPUS -o RESULTS --word-vectors glove.txt.gz",
    ),
    (
        "Two rows, small and quick, two at a time",
        "sightline reproduce CORPUS -o RESULTS --rows 'AP, DC' --dimension 64 --epochs 5 --jobs 2",
    ),
)


def reproduce(
    context: typer.Context,
    corpus: CorpusArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for runs and tables.", rich_help_panel=OUTPUT),
    ],
    rows: Annotated[
        str,
        typer.Option(
            help="main, all, or names with commas: 'AP, AP half b20'.",
            autocompletion=completions.row_groups,
        ),
    ] = "main",
    dataset: Annotated[
        DatasetName | None,
        typer.Option(help="The paper's dataset to compare with; known of built corpora."),
    ] = None,
    documents: Annotated[
        int | None, typer.Option(min=1, help="Training documents, drawn by the seed.")
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training documents.")] = 50,
    dimension: Annotated[int, typer.Option(help="Size of the shared space.")] = 1024,
    learning_rate: Annotated[float, typer.Option(help="Of Adam, at the start.")] = 0.0001,
    token_limit: Annotated[
        int, typer.Option(help="Tokens kept of a sentence; 50 for long text.")
    ] = 20,
    minimum_count: Annotated[int, typer.Option(help="Rarer words are unknown.")] = 5,
    seed: Annotated[int, typer.Option(help="Same seed, same results.")] = 1,
    features: FeaturesOption = None,
    word_vectors: WordVectorsOption = None,
    images: Annotated[
        bool,
        typer.Option(
            "--images/--no-images",
            help="Pictures in figures and report.",
            rich_help_panel=OUTPUT,
        ),
    ] = True,
    text: Annotated[
        bool,
        typer.Option(
            "--text/--no-text", help="Sentences in figures and report.", rich_help_panel=OUTPUT
        ),
    ] = True,
    jobs: Annotated[
        int, typer.Option(min=1, help="Rows made at the same time.", rich_help_panel=WORK)
    ] = 1,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Of each job; by default they share the cores.", rich_help_panel=WORK
        ),
    ] = None,
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Add rows of another dimension, epochs or rate.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Reproduce the paper's tables on a corpus.

    Run again, it goes on where it was cut off.
    """
    from importlib.util import find_spec

    from sightline.building import builder_of
    from sightline.corpus import read
    from sightline.paper import TABLE_1
    from sightline.report.report import write_report
    from sightline.reproduction.grid import reproduce as run_reproduction
    from sightline.reproduction.rows import rows_from
    from sightline.reproduction.setup import Setup
    from sightline.reproduction.table_files import tables_of

    for package in ("torch", "matplotlib", "statsmodels"):
        if find_spec(package) is None:
            raise MissingExtraError("Reproducing", "reproduce")
    if not corpus.exists() and str(corpus) in TABLE_1:
        raise SightlineError(
            f"{corpus} is a dataset of the paper; build it first, 'sightline build {corpus} ... "
            f"-o {corpus}' ('sightline build {corpus} --help' says from what)."
        )
    if not corpus.exists() and (hint := did_you_mean(str(corpus), TABLE_1)):
        raise UsageSentence(f"There is no corpus {str(corpus)!r}.{hint}")
    column = builder_of(corpus) if dataset is None else dataset
    setup = Setup(
        corpus=corpus,
        output=output,
        settings=settings_of(
            epochs=epochs,
            dimension=dimension,
            learning_rate=learning_rate,
            token_limit=token_limit,
            minimum_count=minimum_count,
            seed=seed,
        ),
        documents=documents,
        features=features,
        word_vectors=word_vectors,
        threads=threads,
        strict=strict,
    )
    chosen_rows = rows_from(rows)
    problems = Problems(strict=strict, report=report)
    opened = read(corpus, problems=problems)
    command = shlex.join([*context.command_path.split(), *decided(context)])
    documents_used, states = run_reproduction(setup, opened, chosen_rows, jobs, command, mixed)
    say_problems(problems)
    notes = [*documents_used.notes, *(str(s) for s in states if s.status in ("failed", "absent"))]
    tables = tables_of(output, column if column in DATASETS else None, notes, seed)
    tables.write(output)
    if json:
        print_json(tables.to_record())
    else:
        tables.show()
    say(f"tables in {output}: tables.md, tables.tex, tables.csv, tables.json")
    page = write_report(
        output, documents_used.corpus, features, word_vectors, images=images, text=text, say=say
    )
    say(f"figures, analysis and report: {page}")
    failed = [str(state.row) for state in states if state.status == "failed"]
    if failed:
        raise SightlineError(f"Rows that failed: {', '.join(failed)}; the others are finished.")


def decided(context: typer.Context) -> Iterator[str]:
    """Arguments and options as they were decided: typed, set by a variable, or by a file."""
    options: list[Any] = context.command.params
    for one in options:
        source = context.get_parameter_source(one.name)
        if source is None or source.name == "DEFAULT" or not one.expose_value:
            continue
        value = context.params[one.name]
        if one.param_type_name == "argument":
            yield str(value)
        elif isinstance(value, bool):
            yield from (one.opts if value else one.secondary_opts)[:1]
        else:
            yield from (one.opts[0], str(value))
