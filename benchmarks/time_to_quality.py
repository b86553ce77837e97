"""Time until the validation AUC passes a mark, for the paper's recipe and for the fast one.

    python benchmarks/time_to_quality.py CORPUS --word-vectors FILE [--auc 98]

Both recipes train on the same packed documents in one run, one after the other, and are scored
after every epoch; only training is timed. The paper's recipe runs at d = 256 and a learning rate
of 0.0005, at which it gets there soonest (at its own 0.0001 it stays near the loss of constant
predictions for several epochs when d is that small).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from sightline.batches import open_features
from sightline.corpus import read
from sightline.evaluation import mean_scores, score_packed
from sightline.problems import Problems
from sightline.settings import Settings
from sightline.training import TrainingData, TrainingRun, prepare
from sightline.word_embedding import embedding_matrix
from sightline.word_vectors import read_word_vectors

RECIPES = {
    "paper": Settings(dimension=256, learning_rate=0.0005),
    "fast": Settings(
        dimension=256,
        sentence_encoder="attention",
        layers=2,
        hidden=512,
        similarity="DC",
        loss="softmax",
        negative_documents=63,
        learning_rate=0.001,
        dropout=0.2,
    ),
}


def time_to(
    data: TrainingData, embedding: np.ndarray, settings: Settings, auc: float
) -> tuple[float, float]:
    """Wall and CPU seconds of training until the validation AUC reaches the mark."""
    run = TrainingRun(data, embedding, settings, Path())
    wall = cpu = 0.0
    while run.state.epoch < settings.epochs:
        started = time.monotonic(), time.process_time()
        run.train_epoch(f"epoch {run.state.epoch + 1}")
        wall += time.monotonic() - started[0]
        cpu += time.process_time() - started[1]
        run.finish_epoch(run.validation_loss())
        reached = mean_scores(*score_packed(run.model(), data.validation, data.store))
        print(
            f"  epoch {run.state.epoch}: AUC {reached['auc']:.2f}, p@1 {reached['p@1']:.1f}, "
            f"{wall:.0f} s, {cpu:.0f} CPU-seconds",
            flush=True,
        )
        if reached["auc"] >= auc:
            return wall, cpu
    return float("inf"), float("inf")


def main() -> None:
    """Train each recipe to the mark and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--word-vectors", type=Path, required=True)
    parser.add_argument("--auc", type=float, default=98.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    corpus = read(options.corpus)
    settings = RECIPES["paper"]
    data = prepare(corpus, open_features(corpus), settings, Problems(), print)
    vectors = read_word_vectors(options.word_vectors, data.vocabulary.words, Problems())
    embedding, _ = embedding_matrix(data.vocabulary, vectors, rng=np.random.default_rng(1))
    times = {}
    for name, recipe in RECIPES.items():
        print(f"{name} recipe:", flush=True)
        times[name] = time_to(data, embedding, recipe, options.auc)
    print(f"\n| recipe | seconds to AUC {options.auc:g} | CPU-seconds |\n|---|---:|---:|")
    for name, (wall, cpu) in times.items():
        print(f"| {name} | {wall:.0f} | {cpu:.0f} |")
    ratio = [before / after for before, after in zip(times["paper"], times["fast"], strict=True)]
    print(f"\nfast is {ratio[0]:.1f}x sooner by the clock, {ratio[1]:.1f}x by CPU time")


if __name__ == "__main__":
    main()
