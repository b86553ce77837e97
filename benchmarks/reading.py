"""Reading speed: documents per CPU-second of our readers beside `json.loads` on each line.

    python benchmarks/reading.py [--documents 1000000] [--folder DIR]

Files of made-up documents of realistic sizes, written for the run: native ones of 10 sentences
and 5 images with links, MMC4 ones of 40 sentences, 5 images and their similarity matrix. Both
contestants go through the same file by turns, a stretch of documents each, so that a busy machine
slows both alike. `json.loads` gets the bare lines and makes no document of them. The peak memory
is that of a process which reads the whole file with our reader and nothing else.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sightline.corpus import read

#: Documents of one turn.
STRETCH = 2000
#: Different documents of a file; more would only make writing it slower.
DISTINCT = 2000

PEAK = """
import resource, sys, time
from sightline.corpus import read
start = time.process_time()
count = sum(1 for _ in read(sys.argv[1], strict=True))
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(count, seconds, peak * (1 if sys.platform == "darwin" else 1024))
"""


def make_sentence(choose: random.Random, words: list[str]) -> str:
    """About 12 words."""
    return " ".join(choose.choices(words, k=choose.randint(8, 16))).capitalize() + "."


def native(number: int, choose: random.Random, words: list[str]) -> dict[str, Any]:
    """A document like those of the paper's datasets."""
    return {
        "id": f"document-{number}",
        "sentences": [make_sentence(choose, words) for _ in range(10)],
        "images": [f"images/{choose.getrandbits(48):012x}.jpg" for _ in range(5)],
        "links": [[choose.randrange(10), image] for image in range(5)],
        "split": "train",
    }


def mmc4(number: int, choose: random.Random, words: list[str]) -> dict[str, Any]:
    """A document like those of MMC4's shards."""
    # Similarities of float32, as CLIP gives them, have that many digits.
    matrix = [[choose.uniform(0.1, 0.35) for _ in range(40)] for _ in range(5)]
    infos = []
    for row in matrix:
        name = f"{choose.getrandbits(48):012x}.jpg"
        infos.append(
            {
                "face_detections": None,
                "image_name": name,
                "matched_sim": max(row),
                "matched_text_index": row.index(max(row)),
                "raw_url": f"http://www.example.com/wp-content/uploads/{name}",
            }
        )
    return {
        "image_info": infos,
        "similarity_matrix": matrix,
        "text_list": [make_sentence(choose, words) for _ in range(40)],
        "url": f"http://www.example.com/articles/{number}.html",
        "could_have_url_duplicate": 0,
    }


def write(path: Path, make: Callable[..., dict[str, Any]], count: int) -> None:
    """A file of `count` documents, many of them alike."""
    choose = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyzéü"
    words = ["".join(choose.choices(letters, k=choose.randint(2, 9))) for _ in range(5000)]
    records = (make(number, choose, words) for number in range(min(DISTINCT, count)))
    lines = [json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records]
    block = b"".join(lines)
    with path.open("wb") as file:
        for _ in range(count // len(lines)):
            file.write(block)
        file.writelines(lines[: count % len(lines)])


def loads(path: Path) -> Iterator[Any]:
    """The named peer: Python's own module on each line."""
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def race(path: Path) -> dict[str, float]:
    """CPU-seconds of each contestant for the whole file."""
    contestants = {"sightline": iter(read(path, strict=True)), "json.loads": loads(path)}
    seconds = dict.fromkeys(contestants, 0.0)
    going = True
    while going:
        for name, records in contestants.items():
            start = time.process_time()
            done = sum(1 for _ in islice(records, STRETCH))
            seconds[name] += time.process_time() - start
            going = done == STRETCH
    return seconds


def main() -> None:
    """Write, race, measure the peak, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="Where the files go; 10 GB for a million.")
    options = parser.parse_args()
    count = options.documents
    print(
        "| file | bytes a document | sightline, documents per CPU-second | json.loads | ratio |",
        end="",
    )
    print(" peak memory |\n|---|---:|---:|---:|---:|---:|")
    for name, make in (("native", native), ("mmc4", mmc4)):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder, f"{name}.jsonl")
            write(path, make, count)
            size = path.stat().st_size / count
            seconds = race(path)
            command = [sys.executable, "-c", PEAK, str(path)]
            done = subprocess.run(
                command, capture_output=True, check=True, text=True
            ).stdout.split()
            assert int(done[0]) == count
        ours, theirs = count / seconds["sightline"], count / seconds["json.loads"]
        print(
            f"| {name}, {count:,} documents | {size:,.0f} | {ours:,.0f} | {theirs:,.0f} "
            f"| {ours / theirs:.2f} | {int(done[2]) / 2**20:.0f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
