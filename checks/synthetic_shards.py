"""Writes shards of documents with made-up text and the images of a real feature store.

    python checks/synthetic_shards.py FEATURES CAPTIONS OUT [--shards 40] [--documents 100000]

CAPTIONS is a text file or JSON whose words, by their frequency, make up the sentences. A document
has 5 to 19 sentences of 7 to 15 words and 1 to 5 images; `--mmc4` gives 40 sentences and 5 images.
"""

import argparse
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import orjson


def sentences(words, chances, count, rng):
    """Make up sentences whose words come as often as in the captions."""
    lengths = rng.integers(7, 16, count)
    drawn = words[rng.choice(len(words), lengths.sum(), p=chances)]
    ends = np.cumsum(lengths)
    return [
        " ".join(drawn[end - length : end]).capitalize() + "."
        for end, length in zip(ends, lengths, strict=True)
    ]


def word_chances(captions):
    """The words of a file and how often each comes."""
    counts = Counter(re.findall(r"[A-Za-z]+", Path(captions).read_text()))
    words, numbers = zip(*counts.most_common(10_000), strict=True)
    return np.array(words, object), np.array(numbers) / sum(numbers)


def documents(features, words, chances, count, seed, mmc4=False):
    """Yield documents as records; the same seed gives the same ones."""
    rng = np.random.default_rng(seed)
    ids = np.array(sorted(json.loads((Path(features) / "id2row.json").read_bytes())), object)
    sentences_D = np.full(count, 40) if mmc4 else rng.integers(5, 20, count)
    images_D = np.full(count, 5) if mmc4 else rng.integers(1, 6, count)
    text = iter(sentences(words, chances, int(sentences_D.sum()), rng))
    for number, (of_text, of_images) in enumerate(zip(sentences_D, images_D, strict=True)):
        yield {
            "id": f"{seed}-{number}",
            "sentences": [next(text) for _ in range(of_text)],
            "images": [f"{image}.jpg" for image in rng.choice(ids, of_images)],
        }


def write_shards(features, captions, folder, shards, count, mmc4=False):
    """Write `count` documents in so many shards."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    words, chances = word_chances(captions)
    for shard in range(shards):
        records = documents(features, words, chances, count // shards, shard, mmc4)
        with (folder / f"{shard:05d}.jsonl").open("wb") as file:
            file.writelines(orjson.dumps(record) + b"\n" for record in records)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features")
    parser.add_argument("captions")
    parser.add_argument("out")
    parser.add_argument("--shards", type=int, default=40)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--mmc4", action="store_true")
    given = parser.parse_args()
    write_shards(
        given.features, given.captions, given.out, given.shards, given.documents, given.mmc4
    )
