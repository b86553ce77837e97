"""The whole path on real textbooks: build a corpus, train, evaluate, link.

    make demo-train

Everything comes with the repository: the captions of OpenStax textbooks (CC BY 4.0), section by
section, the features of their figures, and word vectors. The results go to `demo-train-output/`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from sightline.corpus import read
from sightline.readers.native import write_jsonl

SOURCE = Path(__file__).parent / "textbooks"
OUTPUT = Path("demo-train-output")


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
        "train", corpus, "-o", model, "--word-vectors", relative(SOURCE / "word_vectors.npz"),
        *TRAINING_OPTIONS,
    )  # fmt: skip

    say("3. Evaluating on sections it has not seen (chance is an AUC of 50)")
    scores = OUTPUT / "scores.jsonl"
    sightline("evaluate", model, corpus, "--split", "test", "--documents", scores)

    say("4. Linking the figures and captions of those sections")
    sightline("link", corpus, "--model", model, "--split", "test", "-o", links)

    say(f"\nmodel   {model}\nscores  {scores}\nlinks   {links}")


#: The fast recipe, with fewer epochs than it could use.
TRAINING_OPTIONS = (
    "--similarity", "DC", "--loss", "softmax", "--sentence-encoder", "attention", "--layers", "2",
    "--dimension", "256", "--hidden", "512", "--negative-documents", "63", "--token-limit", "50",
    "--learning-rate", "0.001", "--epochs", "15",
)  # fmt: skip


def relative(path: Path) -> Path:
    """The path as one would type it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def sightline(*arguments: object) -> None:
    """Run the command line as a user would; a failure ends the run."""
    command = [str(argument) for argument in arguments]
    print("   $ sightline", *command, flush=True)
    subprocess.run([sys.executable, "-m", "sightline", *command], check=True)


def say(words: str) -> None:
    """Print at once, so that the steps stand in order with the commands' own words."""
    print(words, flush=True)


if __name__ == "__main__":
    main()
