"""`sightline link`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.commands.options import FeaturesOption, MaxLinksOption, StrictOption
from sightline.console import max_links_from, report, say, say_problems, write_lines
from sightline.problems import Problems, SightlineError


class PolicyName(StrEnum):
    """How a similarity matrix becomes links."""

    ASSIGNMENT = "assignment"
    DENSE = "dense"
    TOP_K = "top-k"
    MMC4 = "mmc4"


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
    from sightline.decode_pool import DecodePool
    from sightline.link_records import link_records, open_images, open_model

    loaded = open_model(model)
    cap = max_links_from(max_links)
    problems = Problems(strict=strict, report=report)
    seen: Counter[str] = Counter()

    def records() -> Iterator[dict[str, Any]]:
        for path in inputs:
            corpus = read(path, split=split, problems=problems, allow_empty=True)
            images = open_images(loaded, corpus, features, say, pool)
            for record in link_records(loaded, corpus, images, policy.value, cap, matrix):
                seen["documents"] += 1
                seen.update(image["status"] for image in record["images"])
                yield record

    with DecodePool() as pool:
        write_lines(output, records())
    say_problems(problems)
    if not seen["documents"]:
        raise SightlineError("No document could be linked.")
    if seen.total() > seen["documents"] and not seen["ok"]:
        raise SightlineError("No image could be used; the records say why.")
