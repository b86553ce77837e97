"""The whole path on real textbook sections: build a corpus, train, evaluate, link.

    make demo

Everything comes with the repository: sections of OpenStax textbooks (CC BY 4.0), the features
of their figures, and word vectors. The results go to `demo-output/`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from sightline.corpus import read
from sightline.readers.native import write_jsonl

SOURCE = Path(__file__).parent / "textbooks"
OUTPUT = Path("demo-output")


def main() -> None:
    """Run the four steps and say where the results are."""
    if OUTPUT.exists():
        shutil.rmtree(OUTPUT)
    corpus, model, links = OUTPUT / "corpus", OUTPUT / "model", OUTPUT / "links.jsonl"
    say("1. Building a corpus of textbook sections")
    corpus.mkdir(parents=True)
    count = write_jsonl(read(SOURCE), corpus / "documents.jsonl")
    shutil.copytree(SOURCE / "features", corpus / "features")
    say(f"   {count} sections in {corpus}")

    say("2. Training on them, without looking at a single link")
    sightline(
        "train", corpus, "-o", model, "--word-vectors", SOURCE / "word_vectors.npz",
        *TRAINING_OPTIONS,
    )  # fmt: skip

    say("3. Evaluating on sections it has not seen (chance is an AUC of 50)")
    scores = OUTPUT / "scores.jsonl"
    sightline("evaluate", model, corpus, "--split", "test", "--documents", scores)

    say("4. Linking figures and sentences of those sections")
    sightline("link", corpus, "--model", model, "--split", "test", "-o", links)

    say(f"\nmodel   {model}\nscores  {scores}\nlinks   {links}")


#: The fast recipe; sections are long and few, which decides the rest.
TRAINING_OPTIONS = (
    "--similarity", "DC", "--loss", "softmax", "--sentence-encoder", "attention", "--layers", "2",
    "--dimension", "256", "--hidden", "512", "--negative-documents", "31", "--token-limit", "50",
    "--learning-rate", "0.001", "--epochs", "12",
)  # fmt: skip


def sightline(*arguments: object) -> None:
    """Run the command line as a user would; a failure ends the demo."""
    command = [str(argument) for argument in arguments]
    print("   $ sightline", *command, flush=True)
    subprocess.run([sys.executable, "-m", "sightline", *command], check=True)


def say(words: str) -> None:
    """Print at once, so that the steps stand in order with the commands' own words."""
    print(words, flush=True)


if __name__ == "__main__":
    main()
