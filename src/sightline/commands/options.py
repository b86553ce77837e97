"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class PolicyName(StrEnum):
    """How a similarity matrix becomes links."""

    ASSIGNMENT = "assignment"
    DENSE = "dense"
    TOP_K = "top-k"
    THRESHOLD = "threshold"
    MMC4 = "mmc4"


class UnitName(StrEnum):
    """What one sentence of a document is."""

    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"


CorpusArgument = Annotated[
    Path, typer.Argument(help="A .jsonl, .parquet or .tar file, or a folder.")
]
DocumentsArgument = Annotated[
    list[Path],
    typer.Argument(
        help="Articles (HTML, Markdown, PDF, DOCX, EPUB), folders of them, or corpora.",
        metavar="INPUT...",
    ),
]
CorpusFolderOption = Annotated[Path, typer.Option("--output", "-o", help="Corpus folder to write.")]
FeaturesOption = Annotated[
    Path | None, typer.Option("--features", help="Feature store; by default the corpus's own.")
]
FetchOption = Annotated[bool, typer.Option("--fetch", help="Fetch remote images of articles.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
MaxLinksOption = Annotated[str, typer.Option(help="all, half or a number of links.")]
ModelOption = Annotated[
    str, typer.Option(help="A model folder, a CLIP or SigLIP folder, or `default`.")
]
PolicyOption = Annotated[PolicyName, typer.Option(help="How links are chosen.")]
SplitOption = Annotated[str | None, typer.Option(help="Only these documents of a corpus.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop at the first bad record.")]
ThresholdOption = Annotated[
    float, typer.Option(min=-1.0, max=1.0, help="Of the policy threshold: similarity above it.")
]
UnitOption = Annotated[UnitName, typer.Option(help="What one sentence is.")]
