"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CorpusArgument = Annotated[
    Path, typer.Argument(help="A .jsonl, .parquet or .tar file, or a folder.")
]
FeaturesOption = Annotated[
    Path | None, typer.Option("--features", help="Feature store; by default the corpus's own.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop at the first bad record.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
MaxLinksOption = Annotated[str, typer.Option(help="all, half or a number of links.")]
