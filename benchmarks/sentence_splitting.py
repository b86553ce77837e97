"""Sentence splitting: agreement with a split corpus, and characters per CPU-second.

    python benchmarks/sentence_splitting.py CORPUS.jsonl [--disagreements 100]

Every tenth document, its sentences of kind "para" (all, if it has no kinds) joined by spaces, six
to a paragraph. Only boundaries after a stop count: a heading cannot be told from what follows it.
The peer is pysbd as it comes, with character spans. `--disagreements` prints places where our two
splitters differ, to judge by eye.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import orjson
import pysbd

from sightline.sentence_splitting import split_sentences

Splitter = Callable[[str], list[tuple[int, int]]]
_STOPS = (".", "!", "?")


def paragraphs(path: Path, size: int = 6) -> Iterator[tuple[str, set[int]]]:
    """Yield texts and the ends of their sentences, but the last."""
    for number, line in enumerate(path.open("rb")):
        if number % 10:
            continue
        record = orjson.loads(line)
        kinds = record.get("kinds") or ["para"] * len(record["sentences"])
        body = [s for s, kind in zip(record["sentences"], kinds, strict=True) if kind == "para"]
        for start in range(0, len(body), size):
            group = body[start : start + size]
            ends, at = set(), 0
            for sentence in group[:-1]:
                at += len(sentence)
                if sentence.rstrip("\"'”’)").endswith(_STOPS):
                    ends.add(at)
                at += 1
            yield " ".join(group), ends


def peer(segmenter: pysbd.Segmenter, text: str) -> list[tuple[int, int]]:
    """Pysbd's own spans, without the spaces that it counts in."""
    spans = segmenter.segment(text)
    return [(span.start, span.start + len(span.sent.rstrip())) for span in spans]


def measure(name: str, splitter: Splitter, texts: list[tuple[str, set[int]]]) -> list[set[int]]:
    """Print one row; gives the ends that were found."""
    found, seconds, right, lossy = [], 0.0, 0, 0
    for text, ends in texts:
        started = time.process_time()
        spans = splitter(text)
        seconds += time.process_time() - started
        got = {end for _, end in spans[:-1]}
        kept = sum(len("".join(text[start:end].split())) for start, end in spans)
        lossy += kept != len("".join(text.split()))
        right += len(got & ends)
        found.append(got)
    characters = sum(len(text) for text, _ in texts)
    precision = right / sum(map(len, found))
    recall = right / sum(len(ends) for _, ends in texts)
    f1 = 2 * precision * recall / (precision + recall)
    rate = f"{characters / seconds:12,.0f}"
    print(f"{name:16} {precision:9.1%} {recall:7.1%} {f1:7.1%} {rate} {lossy:6}")
    return found


def main() -> None:
    """Measure all three on the same paragraphs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--disagreements", type=int, default=0)
    options = parser.parse_args()
    texts = list(paragraphs(options.corpus))
    print(f"{len(texts):,} paragraphs, {sum(len(text) for text, _ in texts):,} characters")
    print(f"{'':16} precision  recall      F1 characters/s  lossy")
    ours = measure("pysbd, ours", split_sentences, texts)
    fast = measure("fast", partial(split_sentences, fast=True), texts)
    measure("pysbd itself", partial(peer, pysbd.Segmenter("en", char_span=True)), texts)
    differ = [
        (
            "pysbd" if end in first else "fast ",
            f"{text[max(0, end - 60) : end]}|{text[end : end + 40]}",
        )
        for (text, _), first, second in zip(texts, ours, fast, strict=True)
        for end in sorted(first ^ second)
    ]
    both = sum(len(first & second) for first, second in zip(ours, fast, strict=True))
    print(f"{both:,} boundaries in common, {len(differ):,} found by one only")
    for who, place in random.Random(1).sample(differ, min(options.disagreements, len(differ))):
        print(who, place)


if __name__ == "__main__":
    main()
