"""`sightline demo`."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.commands.manners import examples
from sightline.commands.opening import decoding_processes, open_model
from sightline.commands.options import ModelOption
from sightline.console import say

if TYPE_CHECKING:
    from sightline.demo_page import MeanScores


EXAMPLES = examples(
    ("Into the folder sightline-demo", "sightline demo"),
    ("With a model of your own, into another folder", "sightline demo --model MODEL -o my-demo"),
)


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write, new or a demo's.")
    ] = Path("sightline-demo"),
    model: ModelOption = "default",
) -> None:
    """Link bundled documents, score the links, write pages to open.

    They are textbook sections and guides. Each step names the command that repeats it.
    """
    from sightline.demo import (
        SPLIT,
        copy_documents,
        link_articles,
        link_corpus,
        report_alt,
        write_index,
    )
    from sightline.demo_page import mean_scores
    from sightline.progress import counted, duration

    started = time.monotonic()
    name = Path(model).name
    loaded = open_model(model)
    folder = copy_documents(output)
    chosen = [] if model == "default" else ["--model", model]
    with decoding_processes() as pool:
        _step("Link the images and sentences of textbook sections and guides")
        _command("link", folder.documents, "-o", folder.links, *chosen)
        results = link_corpus(loaded, folder, pool)

        _step("Compare with the true links")
        _command("evaluate", model, folder.documents, "--split", SPLIT)
        _command("evaluate", "random", folder.documents, "--split", SPLIT)
        typer.echo(_table(mean_scores(results, name)))

        _step("Link two articles, each into a page to read")
        _command("link", *folder.articles, "-o", f"{folder.root}/", *chosen)
        facts = (f"model {name}", "policy assignment")
        pages = link_articles(loaded, folder, pool, facts, lambda words: say(f"   {words}"))

        _step("Look for alternative texts among an article's own sentences")
        _command("alt", folder.articles[0], *chosen, ">", folder.alt)
        findings = report_alt(loaded, folder, pool)
        say(f"   {folder.alt}: {counted(findings, 'finding')}")
    write_index(folder, results, pages, name)
    say(f"\nDone in {duration(time.monotonic() - started)}. Open these:")
    for file in (folder.index, *pages, folder.alt):
        typer.echo(str(file))


def _step(words: str) -> None:
    say(f"\n{words}")


def _command(*words: object) -> None:
    """Say how a step is repeated; `>` stays the shell's."""
    quoted = (word if word == ">" else shlex.quote(str(word)) for word in words)
    say(f"   $ sightline {' '.join(map(str, quoted))}")


def _table(scores: list[MeanScores]) -> str:
    width = max(len(one.name) for one in scores)
    lines = [f"   {'':{width}}    AUC    p@1    p@5"]
    lines += [
        f"   {one.name:{width}}  {one.auc:5.1f}  {one.first:5.1f}  {one.five:5.1f}"
        for one in scores
    ]
    return "\n".join(lines)
