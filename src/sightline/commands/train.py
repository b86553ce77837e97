"""`sightline train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
    known_backbone,
    settings_of,
)
from sightline.console import extra_needed, max_links_from, print_json, report, say, say_problems
from sightline.problems import Problems
from sightline.settings import (
    LossName,
    NegativesName,
    ScheduleName,
    SentenceEncoderName,
    SimilarityName,
)

EXAMPLES = examples(
    ("The paper's recipe", "sightline train CORPUS -o MODEL --word-vectors glove.txt.gz"),
    (
        "Go on with a run that was cut off",
        "sightline train CORPUS -o MODEL --word-vectors glove.txt.gz --resume",
    ),
    (
        "A small and quick model",
        "sightline train CORPUS -o MODEL --sentence-encoder attention --dimension 256 --epochs 20",
    ),
    (
        "In two processes, to the same model",
        "torchrun --nproc-per-node 2 -m sightline train CORPUS -o MODEL",
    ),
)

# Panels of `--help`, besides those that commands share.
_METHOD = "What documents are compared by"
_NETWORK = "Encoders"
_LEARNING = "Learning"
_WORDS = "Words"
_TUNING = "Tuning the image network too"


def train(
    corpus: CorpusArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Model folder to write.", rich_help_panel=OUTPUT),
    ],
    similarity: Annotated[
        SimilarityName,
        typer.Option(
            help="Document similarity; NoStruct is the paper's baseline.", rich_help_panel=_METHOD
        ),
    ] = "AP",
    max_links: Annotated[
        str,
        typer.Option(
            help="all, half or a number of links.",
            autocompletion=completions.link_limits,
            rich_help_panel=_METHOD,
        ),
    ] = "all",
    negatives: Annotated[
        NegativesName, typer.Option(help="Hardest, or mean of all.", rich_help_panel=_METHOD)
    ] = "hard",
    negative_documents: Annotated[
        int, typer.Option(help="b: negatives of each document.", rich_help_panel=_METHOD)
    ] = 10,
    negatives_within: Annotated[
        str,
        typer.Option(
            help="A further key of the documents in which negatives agree.", rich_help_panel=_METHOD
        ),
    ] = "",
    loss: Annotated[
        LossName, typer.Option(help="The paper's is the hinge.", rich_help_panel=_METHOD)
    ] = "hinge",
    margin: Annotated[
        float, typer.Option(help="Margin of the hinge loss.", rich_help_panel=_METHOD)
    ] = 0.2,
    temperature: Annotated[
        float, typer.Option(help="Of the softmax loss.", rich_help_panel=_METHOD)
    ] = 0.05,
    sentence_encoder: Annotated[
        SentenceEncoderName, typer.Option(help="The paper's is the GRU.", rich_help_panel=_NETWORK)
    ] = "gru",
    layers: Annotated[
        int,
        typer.Option(help="Layers of the heads: 1 (the paper's) or 2.", rich_help_panel=_NETWORK),
    ] = 1,
    dimension: Annotated[
        int, typer.Option(help="Size of the shared space.", rich_help_panel=_NETWORK)
    ] = 1024,
    hidden: Annotated[
        int, typer.Option(help="Hidden width where --layers is 2.", rich_help_panel=_NETWORK)
    ] = 1024,
    epochs: Annotated[
        int, typer.Option(help="Passes over the training documents.", rich_help_panel=_LEARNING)
    ] = 50,
    learning_rate: Annotated[
        float, typer.Option(help="Of Adam, at the start.", rich_help_panel=_LEARNING)
    ] = 0.0001,
    schedule: Annotated[
        ScheduleName,
        typer.Option(help="The paper's waits for a plateau.", rich_help_panel=_LEARNING),
    ] = "plateau",
    dropout: Annotated[
        float,
        typer.Option(help="On word dimensions and image features.", rich_help_panel=_LEARNING),
    ] = 0.4,
    word_dropout: Annotated[
        float, typer.Option(help="Share of words left out in training.", rich_help_panel=_LEARNING)
    ] = 0.0,
    document_cut: Annotated[
        int,
        typer.Option(
            help="Sentences and images of a document in training; 0 for all.",
            rich_help_panel=_LEARNING,
        ),
    ] = 0,
    token_limit: Annotated[
        int,
        typer.Option(help="Tokens kept of a sentence; 50 for long text.", rich_help_panel=_WORDS),
    ] = 20,
    minimum_count: Annotated[
        int, typer.Option(help="Rarer words are unknown.", rich_help_panel=_WORDS)
    ] = 5,
    seed: Annotated[
        int, typer.Option(help="Same seed, same model.", rich_help_panel=_LEARNING)
    ] = 1,
    features: FeaturesOption = None,
    word_vectors: WordVectorsOption = None,
    fixed_word_vectors: Annotated[
        bool,
        typer.Option(
            "--fixed-word-vectors",
            help="Keep them as they are, and all words of the file.",
            rich_help_panel=_WORDS,
        ),
    ] = False,
    class_words: Annotated[
        bool,
        typer.Option(
            "--class-words",
            help="Give the image encoder the classes' word vectors too.",
            rich_help_panel=_WORDS,
        ),
    ] = False,
    finetune_images: Annotated[
        bool,
        typer.Option(
            "--finetune-images",
            help="Tune the backbone too, on the image files.",
            rich_help_panel=_TUNING,
        ),
    ] = False,
    image_learning_rate: Annotated[
        float, typer.Option(help="Of the tuned backbone.", rich_help_panel=_TUNING)
    ] = 0.00001,
    finetune_cut: Annotated[
        int,
        typer.Option(
            help="Sentences and images a document is cut to where it is tuned.",
            rich_help_panel=_TUNING,
        ),
    ] = 10,
    backbone: Annotated[
        str,
        typer.Option(
            help="To tune; densenet169 and nasnet-mobile need --backbone-weights.",
            autocompletion=completions.backbones,
            callback=known_backbone,
            rich_help_panel=_TUNING,
        ),
    ] = "efficientnet-lite0",
    backbone_weights: Annotated[
        Path | None,
        typer.Option(help="Weight file of the backbone to tune.", rich_help_panel=_TUNING),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that decode images; one per core.", rich_help_panel=WORK),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue a run that was cut off.", rich_help_panel=WORK),
    ] = False,
    pack_on_disk: Annotated[
        bool,
        typer.Option(
            "--pack-on-disk", help="For a corpus larger than memory.", rich_help_panel=WORK
        ),
    ] = False,
    device: Annotated[
        Literal["cpu", "cuda"],
        typer.Option(help="cuda: a GPU for each process.", rich_help_panel=WORK),
    ] = "cpu",
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            help="Folder for TensorBoard; the run's curves lie there by its name.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Train a model on a corpus; the defaults are the paper's recipe.

    Started by torchrun it trains in several processes, to the same model as in one.
    """
    with extra_needed("Training", "train"):
        from sightline.distributed import started_processes
        from sightline.trainable_backbones import load_trainable_backbone
        from sightline.training import train as run_training
    from sightline.batches import open_features
    from sightline.corpus import read

    settings = settings_of(
        similarity=similarity,
        max_links=max_links_from(max_links),
        negatives=negatives,
        negative_documents=negative_documents,
        negatives_within=negatives_within,
        loss=loss,
        margin=margin,
        temperature=temperature,
        sentence_encoder=sentence_encoder,
        layers=layers,
        dimension=dimension,
        hidden=hidden,
        epochs=epochs,
        learning_rate=learning_rate,
        schedule=schedule,
        dropout=dropout,
        word_dropout=word_dropout,
        document_cut=document_cut,
        token_limit=token_limit,
        minimum_count=minimum_count,
        fixed_word_vectors=fixed_word_vectors,
        class_words=class_words,
        finetune_images=finetune_images,
        image_learning_rate=image_learning_rate,
        finetune_cut=finetune_cut,
        seed=seed,
    )
    if finetune_images and features is not None:
        raise typer.BadParameter("--finetune-images reads image files; leave --features out")
    if backbone_weights is not None and not finetune_images:
        raise typer.BadParameter("--backbone-weights are for --finetune-images only")
    with started_processes(device) as processes:
        problems = Problems(strict=strict, report=report)
        documents = read(corpus, problems=problems)
        best = run_training(
            documents,
            output,
            settings,
            None if finetune_images else open_features(documents, features),
            word_vectors,
            backbone=load_trainable_backbone(backbone, backbone_weights)
            if finetune_images
            else None,
            workers=workers,
            resume=resume,
            pack_on_disk=pack_on_disk,
            tensorboard=tensorboard,
            processes=processes,
            device=device,
            problems=problems,
            say=say,
        )
        say_problems(problems)
        loss_reached = f"validation loss {best['validation_loss']:.4f}"
        say(f"best epoch {best['epoch']}, {loss_reached}; model in {output}")
        if json:
            print_json(best)
