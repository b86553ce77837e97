"""Training speed: documents per CPU-second of the paper's recipe, beside plain ways to write it.

    python benchmarks/training.py [--steps 6] [--rounds 3]

d = 1024, b = 10, AP with hard negatives, documents of 10 sentences x 10 images, 12 tokens a
sentence, 25,000 words, 1,280 numbers an image; one thread. The contestants take turns in one
run and are timed by CPU time, because the clock of a shared machine says little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from sightline.batches import PackedDocuments
from sightline.features import FeatureStore
from sightline.settings import Settings
from sightline.training import TrainingData, TrainingRun
from sightline.vocabulary import Vocabulary

DOCUMENTS, SIDE, TOKENS, WORDS, FEATURES = 220, 10, 12, 25_000, 1280
SETTINGS = Settings()


def synthetic_data() -> TrainingData:
    """Random documents of the stated shape; speed does not depend on what they say."""
    rng = np.random.default_rng(0)
    sentences = DOCUMENTS * SIDE
    packed = PackedDocuments(
        [str(number) for number in range(DOCUMENTS)],
        [None] * DOCUMENTS,
        rng.integers(0, WORDS, sentences * TOKENS).astype(np.int32),
        np.arange(sentences + 1) * TOKENS,
        np.arange(DOCUMENTS + 1) * SIDE,
        np.arange(DOCUMENTS * SIDE),
        np.arange(DOCUMENTS + 1) * SIDE,
        0,
        np.zeros(DOCUMENTS, np.int64),
    )
    matrix = rng.normal(size=(DOCUMENTS * SIDE, FEATURES)).astype(np.float16)
    store = FeatureStore(Path("synthetic"), None, None, matrix, {})  # type: ignore[arg-type]
    vocabulary = Vocabulary(["<unk>", *(f"w{number}" for number in range(WORDS - 1))])
    return TrainingData(vocabulary, store, packed, packed)


class TorchGRU(nn.Module):
    """The sentence encoder as one would first write it, with torch's own GRU."""

    def __init__(self, ours: nn.Module, packed: bool) -> None:
        super().__init__()
        self.packed, self.dropout = packed, ours.dropout
        self.embedding = nn.Embedding.from_pretrained(ours.embedding.detach(), freeze=False)
        self.gru = nn.GRU(SETTINGS.word_dimension, SETTINGS.dimension, batch_first=True)

    def forward(self, sentences, _generator=None):
        """Unit vectors of the sentences, padded to the token limit or packed."""
        lengths = torch.from_numpy(sentences.lengths)
        rows = torch.from_numpy(sentences.token_ids).split(lengths.tolist())
        tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        if not self.packed:  # as Keras does: every sentence as long as the limit
            tokens = nn.functional.pad(tokens, (SETTINGS.token_limit - tokens.shape[1], 0))
        words = self.embedding(tokens)
        keep = torch.bernoulli(torch.full((len(words), 1, words.shape[2]), 1 - self.dropout))
        words = words * keep / (1 - self.dropout)
        if self.packed:
            words = pack_padded_sequence(words, lengths, True, enforce_sorted=False)
        return nn.functional.normalize(self.gru(words)[1][0], dim=1)


def contestants(data: TrainingData) -> dict[str, TrainingRun]:
    """Runs that differ in the sentence encoder and the optimiser only."""
    embedding = np.random.default_rng(1).normal(size=(WORDS, 300)).astype(np.float32)
    runs = {}
    for name, packed, fused in (
        ("sightline", None, True),
        ("packed nn.GRU, fused Adam", True, True),
        ("padded nn.GRU, plain Adam", False, False),
    ):
        run = TrainingRun(data, embedding, SETTINGS, Path())
        if packed is not None:
            run.encoders.sentence = TorchGRU(run.encoders.sentence, packed)
            run.optimizer = torch.optim.Adam(
                run.encoders.parameters(), lr=1e-4, fused=fused, foreach=False
            )
        runs[name] = run
    return runs


def flops_per_document() -> float:
    """Multiplications and additions that one document needs, forward and backward.

    The recurrent product of a sentence's first token is none, its state being zero.
    """
    d, words = SETTINGS.dimension, SETTINGS.word_dimension
    tokens = SIDE * TOKENS
    gru = 2 * 3 * d * (tokens * words + (tokens - SIDE) * d)
    image = 2 * SIDE * FEATURES * d
    similarity = 2 * SIDE * SIDE * (SETTINGS.negative_documents + 1) * d
    # Backward costs twice the forward pass; the image features need no gradient.
    return 3 * (gru + similarity) + 2 * image


def matrix_multiply_peak() -> float:
    """FLOP per CPU-second of torch's best large float32 product here."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    rates = []
    for _ in range(7):
        start = time.process_time()
        torch.mm(a, b)
        rates.append(2 * 2048**3 / (time.process_time() - start))
    return max(rates)


def main() -> None:
    """Take turns, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=6, help="batches a turn")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = synthetic_data()
    runs = contestants(data)
    generator = torch.Generator().manual_seed(0)
    rng = np.random.default_rng(2)
    size = SETTINGS.negative_documents + 1
    rates: dict[str, list[float]] = {name: [] for name in runs}
    peaks = []
    for turn in range(options.rounds + 1):
        peaks.append(matrix_multiply_peak())
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(options.steps):
                run.step(data.training.batch(rng.permutation(DOCUMENTS)[:size]), generator)
            if turn:  # the first turn warms up
                rates[name].append(options.steps * size / (time.process_time() - start))
    peak, flops = statistics.median(peaks), flops_per_document()
    print(f"matrix-multiply peak {peak / 1e9:.0f} GFLOP per CPU-second, "
          f"{flops / 1e9:.2f} GFLOP a document\n")  # fmt: skip
    print("| contestant | documents per CPU-second | share of peak | ratio |")
    print("|---|---:|---:|---:|")
    slowest = min(statistics.median(values) for values in rates.values())
    for name, values in rates.items():
        rate = statistics.median(values)
        print(f"| {name} | {rate:.1f} | {100 * rate * flops / peak:.0f} % | {rate / slowest:.2f} |")


if __name__ == "__main__":
    main()
