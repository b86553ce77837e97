"""The command line: parses options, calls the library, prints; it holds no logic of its own.

Data goes to standard output, words to standard error. Exit codes: 0 done, 1 nothing usable or a
failed check, 2 wrong usage. Heavy modules are imported where they are used, so that `--help`
answers at once.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.console import (
    extra_needed,
    max_links_from,
    print_json,
    report,
    say,
    say_problems,
    write_lines,
)
from sightline.problems import Problems, SightlineError

#: What typer exits with after Ctrl-C, which it takes without a word.
_INTERRUPTED = 130

app = typer.Typer(
    help="Finds which sentence each image of a document belongs to.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Similarity(StrEnum):
    """How a similarity matrix becomes one document similarity."""

    AP = "AP"
    TK = "TK"
    DC = "DC"
    NO_STRUCT = "NoStruct"


class Negatives(StrEnum):
    """Which negatives of the batch count."""

    HARD = "hard"
    MEAN = "mean"


class SentenceEncoder(StrEnum):
    """Which network reads a sentence."""

    GRU = "gru"
    ATTENTION = "attention"


class Loss(StrEnum):
    """Which loss compares documents with their negatives."""

    HINGE = "hinge"
    SOFTMAX = "softmax"


class PolicyName(StrEnum):
    """How a similarity matrix becomes links."""

    ASSIGNMENT = "assignment"
    DENSE = "dense"
    TOP_K = "top-k"
    MMC4 = "mmc4"


CorpusArgument = Annotated[Path, typer.Argument(help="A corpus: .jsonl, .parquet or a folder.")]
FeaturesOption = Annotated[
    Path | None, typer.Option("--features", help="Feature store; by default the corpus's own.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop at the first bad record.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
MaxLinksOption = Annotated[str, typer.Option(help="all, half or a number of links.")]


def main() -> None:
    """Run the command line; user errors are one sentence, never a traceback."""
    try:
        app()
    except SightlineError as error:
        say(f"Error: {error}")
        sys.exit(1)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            say("Interrupted; what was finished is kept.")
        raise
    except BrokenPipeError:
        # The reader of our output left; nothing is wrong.
        sys.stderr.close()
        sys.exit(0)


def _version(wanted: bool) -> None:
    if wanted:
        from sightline import __version__

        typer.echo(f"sightline {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def train(
    corpus: CorpusArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model folder to write.")],
    similarity: Annotated[
        Similarity, typer.Option(help="Document similarity; NoStruct is the paper's baseline.")
    ] = Similarity.AP,
    max_links: MaxLinksOption = "all",
    negatives: Annotated[Negatives, typer.Option(help="Hardest, or mean of all.")] = Negatives.HARD,
    negative_documents: Annotated[int, typer.Option(help="b: negatives of each document.")] = 10,
    loss: Annotated[Loss, typer.Option(help="The paper's is the hinge.")] = Loss.HINGE,
    margin: Annotated[float, typer.Option(help="Margin of the hinge loss.")] = 0.2,
    temperature: Annotated[float, typer.Option(help="Of the softmax loss.")] = 0.05,
    sentence_encoder: Annotated[
        SentenceEncoder, typer.Option(help="The paper's is the GRU.")
    ] = SentenceEncoder.GRU,
    layers: Annotated[int, typer.Option(help="Layers of the heads: 1 (the paper's) or 2.")] = 1,
    dimension: Annotated[int, typer.Option(help="Size of the shared space.")] = 1024,
    hidden: Annotated[int, typer.Option(help="Hidden width where --layers is 2.")] = 1024,
    epochs: Annotated[int, typer.Option(help="Passes over the training documents.")] = 50,
    learning_rate: Annotated[float, typer.Option(help="Of Adam, at the start.")] = 0.0001,
    dropout: Annotated[float, typer.Option(help="On word dimensions and image features.")] = 0.4,
    token_limit: Annotated[
        int, typer.Option(help="Tokens kept of a sentence; 50 for long text.")
    ] = 20,
    minimum_count: Annotated[int, typer.Option(help="Rarer words are unknown.")] = 5,
    seed: Annotated[int, typer.Option(help="Same seed, same model.")] = 1,
    features: FeaturesOption = None,
    word_vectors: Annotated[
        Path | None, typer.Option(help="word2vec or GloVe file (.bin, .txt, .gz, .npz).")
    ] = None,
    finetune_images: Annotated[
        bool, typer.Option("--finetune-images", help="Tune the backbone too, on the image files.")
    ] = False,
    image_learning_rate: Annotated[float, typer.Option(help="Of the tuned backbone.")] = 0.00001,
    finetune_cut: Annotated[
        int, typer.Option(help="Sentences and images a document is cut to where it is tuned.")
    ] = 10,
    backbone: Annotated[
        str, typer.Option(help="To tune; densenet169 and nasnet-mobile need --backbone-weights.")
    ] = "efficientnet-lite0",
    backbone_weights: Annotated[
        Path | None, typer.Option(help="Weight file of the backbone to tune.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that decode images; one per core.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was cut off.")
    ] = False,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Train a model on a corpus; the defaults are the paper's recipe."""
    with extra_needed("Training", "train"):
        from sightline.trainable_backbones import load_trainable_backbone
        from sightline.training import train as run_training
    from sightline.batches import open_features
    from sightline.corpus import read
    from sightline.settings import Settings

    settings = Settings(
        similarity=similarity.value,
        max_links=max_links_from(max_links),
        negatives=negatives.value,
        negative_documents=negative_documents,
        loss=loss.value,
        margin=margin,
        temperature=temperature,
        sentence_encoder=sentence_encoder.value,
        layers=layers,  # type: ignore[arg-type]
        dimension=dimension,
        hidden=hidden,
        epochs=epochs,
        learning_rate=learning_rate,
        dropout=dropout,
        token_limit=token_limit,
        minimum_count=minimum_count,
        finetune_images=finetune_images,
        image_learning_rate=image_learning_rate,
        finetune_cut=finetune_cut,
        seed=seed,
    )
    if finetune_images and features is not None:
        raise typer.BadParameter("--finetune-images reads image files; leave --features out")
    if backbone_weights is not None and not finetune_images:
        raise typer.BadParameter("--backbone-weights are for --finetune-images only")
    problems = Problems(strict=strict, report=report)
    documents = read(corpus, problems=problems)
    best = run_training(
        documents,
        output,
        settings,
        None if finetune_images else open_features(documents, features),
        word_vectors,
        backbone=load_trainable_backbone(backbone, backbone_weights) if finetune_images else None,
        workers=workers,
        resume=resume,
        problems=problems,
        say=say,
    )
    say_problems(problems)
    loss_reached = f"validation loss {best['validation_loss']:.4f}"
    say(f"best epoch {best['epoch']}, {loss_reached}; model in {output}")
    if json:
        print_json(best)


@app.command()
def evaluate(
    model: Annotated[
        str, typer.Argument(help="A model folder, or a baseline: random, object-detection.")
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
        from sightline.model import LinkModel

        loaded = LinkModel.from_pretrained(model)
        store = evaluation.corpus_features(loaded, opened, split, features)
        scores, skipped = evaluation.score_corpus(loaded, opened, split, store, cutoffs)
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


@app.command()
def link(
    inputs: Annotated[list[Path], typer.Argument(help="Corpora.", metavar="INPUT...")],
    model: Annotated[str, typer.Option(help="A model folder, or a CLIP or SigLIP folder.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSONL file.")] = None,
    policy: Annotated[
        PolicyName, typer.Option(help="How links are chosen.")
    ] = PolicyName.ASSIGNMENT,
    max_links: MaxLinksOption = "all",
    matrix: Annotated[bool, typer.Option("--matrix", help="Add the similarity matrix.")] = False,
    split: Annotated[str | None, typer.Option(help="Only these documents.")] = None,
    features: FeaturesOption = None,
    strict: StrictOption = False,
) -> None:
    """Link the documents of a corpus: one JSON record per document."""
    from sightline.corpus import read
    from sightline.link_records import link_records, open_images, open_model

    loaded = open_model(model)
    cap = max_links_from(max_links)
    problems = Problems(strict=strict, report=report)
    seen: Counter[str] = Counter()

    def records() -> Iterator[dict[str, Any]]:
        for path in inputs:
            corpus = read(path, split=split, problems=problems, allow_empty=True)
            images = open_images(loaded, corpus, features, say)
            for record in link_records(loaded, corpus, images, policy.value, cap, matrix):
                seen["documents"] += 1
                seen.update(image["status"] for image in record["images"])
                yield record

    write_lines(output, records())
    say_problems(problems)
    if not seen["documents"]:
        raise SightlineError("No document could be linked.")
    if seen.total() > seen["documents"] and not seen["ok"]:
        raise SightlineError("No image could be used; the records say why.")


@app.command()
def features(
    inputs: Annotated[
        list[Path],
        typer.Argument(help="Corpora, folders of images or images.", metavar="CORPUS..."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Feature store to write, or to add to.")
    ],
    backbone: Annotated[str, typer.Option(help="Pretrained image network.")] = "efficientnet-lite0",
    weights: Annotated[
        Path | None, typer.Option(help="Weights of the backbone, if not the known ones.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Decoding processes; 0: threads, not isolated.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Images computed at a time.")] = 8,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Compute the features of a corpus's images; run again, it adds only what is missing."""
    from sightline.backbone_names import open_backbone
    from sightline.extraction import STATUSES, extract_features

    problems = Problems(strict=strict, report=report)
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


@app.command()
def duplicates(
    corpus: CorpusArgument,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSONL file.")] = None,
    threshold: Annotated[int, typer.Option(min=0, help="Bits of 64 that may differ.")] = 3,
    split: Annotated[str | None, typer.Option(help="Only these documents.")] = None,
    strict: StrictOption = False,
) -> None:
    """Report the near-duplicate images of a corpus, one JSON record per pair."""
    from sightline.corpus import read
    from sightline.duplicate_report import duplicate_images

    problems = Problems(strict=strict, report=report)
    opened = read(corpus, split=split, problems=problems)
    write_lines(output, duplicate_images(opened, threshold))
    say_problems(problems)
