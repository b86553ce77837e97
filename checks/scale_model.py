"""The cost model of docs/scale.md: checked against runs of several shard sizes, then simulated.

    python checks/scale_model.py WORK        after `python checks/shards.py sizes ... WORK`
    python checks/scale_model.py --documents 1e9 --rate 1000 --cores 1000 [--deaths 0.01]

The model: a shard costs `fixed + documents / rate` CPU seconds. Both are taken from the runs of
one and two sizes, and the others are predicted. The simulation hands shards to cores as the
engines do, one at a time, and lets workers die: a death costs what was done of the shard, and the
start of another worker.
"""

import argparse
import heapq
import json
import random
import sys
from pathlib import Path


def fitted(runs):
    """Fixed seconds and documents per second, from two runs: (documents, seconds) each."""
    (one, seconds), (two, more) = runs
    rate = (two - one) / (more - seconds)
    return max(0.0, seconds - one / rate), rate


def check(work):
    """Print what the model predicts beside what was measured."""
    found = {}
    for folder in Path(work).glob("sized-*"):
        (file,) = folder.glob("*_stats.json")
        stats = json.loads(file.read_bytes())
        found[stats["documents"]] = stats["cpu_seconds"]
    runs = sorted(found.items())
    fixed, rate = fitted(runs[:2])
    print(f"a shard costs {fixed:.2f} CPU s and a document 1/{rate:,.0f} CPU s")
    print(f"{'documents':>10} {'measured':>10} {'predicted':>10} {'error':>7}")
    worst = 0.0
    for documents, seconds in runs:
        predicted = fixed + documents / rate
        error = predicted / seconds - 1
        worst = max(worst, abs(error))
        print(f"{documents:>10,} {seconds:>10.2f} {predicted:>10.2f} {100 * error:>6.0f} %")
    return worst < 0.25


def simulated(shards, seconds, cores, start, deaths, rng):
    """Wall seconds until all shards are done, and how many workers died on the way."""
    waiting, died = shards, 0
    free = [start] * cores  # when each core can take a shard
    heapq.heapify(free)
    end = 0.0
    while waiting:
        at = heapq.heappop(free)
        needed = seconds * rng.uniform(0.8, 1.2)
        until_death = rng.expovariate(deaths / 3600) if deaths else needed
        if until_death < needed:
            died += 1
            heapq.heappush(free, at + until_death + start)
            continue
        waiting -= 1
        end = max(end, at + needed)
        heapq.heappush(free, at + needed)
    return end, died


def simulate(given):
    """Print how long so many documents take, and what deaths and stragglers add."""
    rng = random.Random(1)
    shards = round(given.documents / given.shard_documents)
    seconds = given.fixed + given.shard_documents / given.rate
    ideal = shards * seconds / given.cores
    print(f"{shards:,} shards of {given.shard_documents:,} documents, {seconds:.0f} s each")
    print(
        f"{shards * seconds / 3600:,.0f} core hours, {ideal / 3600:.2f} h on {given.cores:,} cores"
    )
    for deaths in (0.0, given.deaths, 10 * given.deaths):
        end, died = simulated(shards, seconds, given.cores, given.start, deaths, rng)
        extra = 100 * (end / ideal - 1)
        print(
            f"{deaths:g} deaths a core hour: {end / 3600:.2f} h, {died:,} died, {extra:.1f} % more"
        )
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", nargs="?")
    parser.add_argument("--documents", type=float, default=1e9)
    parser.add_argument("--shard-documents", type=int, default=25_000)
    parser.add_argument("--rate", type=float, default=1000, help="documents per CPU second")
    parser.add_argument("--fixed", type=float, default=1.0, help="CPU seconds of a shard itself")
    parser.add_argument("--start", type=float, default=10, help="seconds until a worker works")
    parser.add_argument("--cores", type=int, default=1000)
    parser.add_argument("--deaths", type=float, default=0.01, help="of workers, per core hour")
    chosen = parser.parse_args()
    sys.exit(0 if (check(chosen.work) if chosen.work else simulate(chosen)) else 1)
