"""Encoding speed without torch: sentences per CPU-second of the numpy encoders and of torch's.

    python benchmarks/encoding.py CORPUS [--sentences 4096]

Real sentences of a corpus, random weights (speed does not depend on them), one thread, turns
taken in one run. Both get the same batches; numpy also counts each distinct word once a batch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from sightline import numpy_encoders
from sightline.batches import Sentences
from sightline.corpus import read
from sightline.encoders import Encoders
from sightline.sentences import tokenize
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary


def read_sentences(path: Path, count: int) -> tuple[Sentences, int]:
    """The first sentences of a corpus as numbers, and how many words there are."""
    texts = islice((s for document in read(path) for s in document.sentences), count)
    tokens = [tokenize(text) for text in texts]
    vocabulary = Vocabulary.from_sentences(tokens, 1)
    encoded = [vocabulary.encode(words, 20) for words in tokens]
    lengths = np.array([len(words) for words in encoded])
    return Sentences(np.concatenate(encoded).astype(np.int64), lengths), len(vocabulary)


def torch_in_batches(encoders: Encoders, sentences: Sentences, size: int) -> np.ndarray:
    """Torch's vectors, batch after batch, longest sentences first as numpy has them."""
    order = np.argsort(-sentences.lengths, kind="stable")
    parts = np.split(sentences.token_ids, np.cumsum(sentences.lengths)[:-1])
    vectors = None
    with torch.no_grad():
        for begin in range(0, len(order), size):
            chosen = order[begin : begin + size]
            tokens = np.concatenate([parts[place] for place in chosen])
            found = encoders.sentence(Sentences(tokens, sentences.lengths[chosen])).numpy()
            vectors = np.empty((len(order), found.shape[1]), np.float32) if begin == 0 else vectors
            vectors[chosen] = found
    return vectors


def main() -> None:
    """Time both, compare their vectors, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--sentences", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sentences, words = read_sentences(options.corpus, options.sentences)
    print("| encoder | numpy, sentences per CPU-second | torch | ratio | largest difference |")
    print("|---|---:|---:|---:|---:|")
    for kind, dimension in (("gru", 256), ("gru", 1024), ("attention", 256), ("attention", 1024)):
        settings = Settings(sentence_encoder=kind, dimension=dimension, layers=2, hidden=512)
        embedding = np.random.default_rng(0).normal(size=(words, 300)).astype(np.float32)
        encoders = Encoders(embedding, 8, settings, seed=1)
        weights = {name: weight.numpy() for name, weight in encoders.state_dict().items()}
        rates: dict[str, list[float]] = {"numpy": [], "torch": []}
        for _ in range(options.rounds):
            start = time.process_time()
            ours = numpy_encoders.encode_sentences(weights, sentences)
            middle = time.process_time()
            theirs = torch_in_batches(encoders, sentences, 2048)
            rates["numpy"].append(len(ours) / (middle - start))
            rates["torch"].append(len(ours) / (time.process_time() - middle))
        numpy_rate, torch_rate = (statistics.median(values) for values in rates.values())
        print(
            f"| {kind}, d = {dimension} | {numpy_rate:,.0f} | {torch_rate:,.0f} "
            f"| {numpy_rate / torch_rate:.2f} | {np.abs(ours - theirs).max():.1e} |"
        )


if __name__ == "__main__":
    main()
