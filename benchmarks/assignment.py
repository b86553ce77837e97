"""Problems per CPU-second of `sightline.assignment.assign_many` beside scipy, lapx and lapjv.

Every contestant solves the same batch to optimality on one thread, the contestants take turns
within each round, and the median of the rounds counts. What can be prepared is prepared
outside the clock, in the peers' favour: negated costs, squares for lapjv, and for a cap the
padded problem. That padding ("dummy rows") is the cheapest we know: one dummy on the larger
side for each member of the smaller side that must go without a link, worth more than any link.

    python benchmarks/assignment.py [--similarity cosine|uniform] [--sizes 5x5 40x40] [--rounds 9]
"""

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sightline.assignment import assign_many

SIZES = ["5x5", "10x10", "5x50", "17x16", "40x40", "100x10"]
DIMENSION = 64  # of the random unit vectors; more makes the similarities more alike
ENTRIES = 200_000  # similarities in a batch, so that a round takes milliseconds, not seconds

Links = tuple[NDArray[np.int64], NDArray[np.int64]]


def similarities(kind: str, problems: int, sentences: int, images: int) -> NDArray[np.float32]:
    """Make a batch of random similarity matrices in [-1, 1]."""
    rng = np.random.default_rng(0)
    if kind == "uniform":
        return rng.uniform(-1, 1, (problems, sentences, images)).astype(np.float32)
    sentences_BSE = rng.normal(size=(problems, sentences, DIMENSION))
    images_BVE = rng.normal(size=(problems, images, DIMENSION))
    sentences_BSE /= np.linalg.norm(sentences_BSE, axis=2, keepdims=True)
    images_BVE /= np.linalg.norm(images_BVE, axis=2, keepdims=True)
    return np.matmul(sentences_BSE, images_BVE.transpose(0, 2, 1)).astype(np.float32)


def with_dummies(similarity_BSV: NDArray[np.float32], cap: int) -> NDArray[np.float32]:
    """Pad so that the best full assignment holds exactly `cap` links between real members."""
    _, sentences, images = similarity_BSV.shape
    few = min(sentences, images)
    padding = [(0, 0), (0, 0), (0, 0)]
    padding[2 if sentences <= images else 1] = (0, few - cap)
    # A dummy must be worth more than all that linking one member more could bring.
    return np.pad(similarity_BSV, padding, constant_values=4.0 * few)


def peer(name: str) -> ModuleType | None:
    """Import a contestant, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def contestants(
    similarity_BSV: NDArray[np.float32], cap: int
) -> dict[str, tuple[Callable[[], Any], Callable[[Any], list[Links]]] | None]:
    """For each contestant how to solve the batch and how to read its links from the answer."""
    problems, sentences, images = similarity_BSV.shape
    counts_B = [np.full(problems, n) for n in (sentences, images, cap)]
    padded = with_dummies(similarity_BSV, cap)
    # scipy works in float64: given that, it need not convert.
    padded64 = padded.astype(np.float64)
    costs = -padded
    side = max(padded.shape[1:])
    squares = np.zeros((problems, side, side), np.float32)
    squares[:, : padded.shape[1], : padded.shape[2]] = costs
    lap = peer("lap")
    lapjv = peer("lapjv")

    def ours(image_of_sentence_BS: NDArray[np.int32]) -> list[Links]:
        return [(s, row[s]) for row in image_of_sentence_BS for s in np.nonzero(row >= 0)]

    def real(answers: list[Links]) -> list[Links]:
        kept = [(r < sentences) & (c < images) for r, c in answers]
        return [(r[k], c[k]) for (r, c), k in zip(answers, kept, strict=True)]

    def from_lapx(answer: tuple[list[Any], list[Any]]) -> list[Links]:
        return real(list(zip(*answer, strict=True)))

    def from_lapjv(answer: list[Any]) -> list[Links]:
        return real([(np.arange(side), column_of_row) for column_of_row, *_ in answer])

    table: dict[str, tuple[Callable[[], Any], Callable[[Any], list[Links]]] | None] = {
        "scipy in a loop": (
            lambda: [linear_sum_assignment(x, maximize=True) for x in padded64],
            real,
        ),
        "sightline assign_many": (lambda: assign_many(similarity_BSV, *counts_B), ours),
    }
    for name in ("lapjvr_batch", "lapjvh_batch"):
        solve = getattr(lap, name, None)
        table[f"lapx {name}"] = solve and (
            lambda solve=solve: solve(costs, extend_cost=True, return_cost=False, n_threads=1),
            from_lapx,
        )
    table["lapjv in a loop, squares"] = lapjv and (
        lambda: [lapjv.lapjv(x) for x in squares],
        from_lapjv,
    )
    return table


def main() -> int:
    """Print the table; exit 1 if two contestants disagree on a total."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--similarity", choices=["cosine", "uniform"], default="cosine")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="SxV")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"{options.similarity} float32 similarities, one thread, median of {options.rounds}\n")
    print("| sentences x images | cap | contestant | problems per CPU-second | ratio to scipy |")
    print("|---|---|---|---:|---:|")
    for size in options.sizes:
        sentences, images = map(int, size.split("x"))
        problems = max(20, ENTRIES // (sentences * images))
        similarity_BSV = similarities(options.similarity, problems, sentences, images)
        full = min(sentences, images)
        for cap, cap_name in ((full, "none"), (-(-full // 2), f"half, {-(-full // 2)}")):
            table = contestants(similarity_BSV, cap)
            seconds: dict[str, list[float]] = {name: [] for name in table}
            totals: dict[str, NDArray[np.float64]] = {}
            for turn in range(options.rounds + 1):  # the first, which also compiles, is not timed
                for name, contestant in table.items():
                    if contestant is None:
                        continue
                    solve, links_of = contestant
                    answer = None  # or the last contestant's answer is freed on this one's time
                    start = time.process_time()
                    answer = solve()
                    if turn:
                        seconds[name].append(time.process_time() - start)
                        continue
                    links = links_of(answer)
                    if any(len(s) != cap for s, _ in links):
                        print(f"{name}: wrong number of links at {size}", file=sys.stderr)
                        return 1
                    totals[name] = np.array(
                        [
                            x[s, v].sum(dtype=np.float64)
                            for x, (s, v) in zip(similarity_BSV, links, strict=True)
                        ]
                    )
            reference = totals["scipy in a loop"]
            scipy_seconds = statistics.median(seconds["scipy in a loop"])
            for name, times in seconds.items():
                row = f"| {size} | {cap_name} | {name} |"
                if not times:
                    print(f"{row} not installed | |")
                    continue
                if not np.allclose(totals[name], reference, rtol=1e-4, atol=1e-4):
                    print(f"{name}: totals differ from scipy's at {size}", file=sys.stderr)
                    return 1
                median = statistics.median(times)
                print(f"{row} {problems / median:,.0f} | {scipy_seconds / median:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
