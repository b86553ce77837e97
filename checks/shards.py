"""Checks bulk linking in shards for real, and prints the figures.

    python checks/shards.py engines  SHARDS MODEL FEATURES WORK [--engines local:1 local:2 ...]
    python checks/shards.py kills    SHARDS MODEL FEATURES WORK [--times 20] [--seed 1]
    python checks/shards.py sizes    SHARDS MODEL FEATURES WORK
    python checks/shards.py full     SHARDS MODEL FEATURES SMALL_DISK

`engines`: every engine gives the same lines, compared after sorting. `kills`: a worker or the
driver is killed with signal 9 at a random moment, so many times, and one last run must give the
lines of an undisturbed one. `sizes`: the first shard, and files of 2, 4 and 10 times its
documents: time, CPU time and memory of each. `full`: output to a disk too small for it.
Exit code 1 if a check fails. SHARDS may come from `checks/synthetic_shards.py`.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path


def command(given, shards, output, *options):
    """The command line of one run."""
    return [
        sys.executable, "-m", "sightline", "link", str(shards), "-o", str(output),
        "--model", given.model, "--features", given.features, *map(str, options),
    ]  # fmt: skip


def digest(folder):
    """Number and hash of all lines of a run, whatever their order."""
    lines = sorted(line for file in folder.glob("*.links.jsonl") for line in file.open("rb"))
    return len(lines), hashlib.sha256(b"".join(lines)).hexdigest()[:16]


def stats(folder):
    """What is said of each shard of a run."""
    return [json.loads(file.read_bytes()) for file in sorted(folder.glob("*_stats.json"))]


def run_once(given, shards, output, *options):
    """One undisturbed run into a new folder; gives seconds and exit code."""
    shutil.rmtree(output, ignore_errors=True)
    started = time.monotonic()
    done = subprocess.run(command(given, shards, output, *options), stderr=subprocess.PIPE)
    if done.returncode:
        print(done.stderr.decode()[-2000:])
    return time.monotonic() - started, done.returncode


def engines(given):
    """Every engine gives the same lines."""
    print(f"{'engine':>10} {'documents':>10} {'lines':>17} {'wall s':>8} {'CPU s':>8} {'MB':>6}")
    found = set()
    for spec in given.engines:
        engine, _, workers = spec.partition(":")
        output = Path(given.work) / spec.replace(":", "-")
        options = ("--workers", workers, *(() if engine == "local" else ("--engine", engine)))
        seconds, code = run_once(given, given.shards, output, *options)
        count, lines = digest(output)
        found.add((count, lines, code))
        cpu = sum(one["cpu_seconds"] for one in stats(output))
        memory = max((one["memory_bytes"] for one in stats(output)), default=0) / 1e6
        print(
            f"{spec:>10} {count:>10,} {lines:>17} {seconds:8.1f} {cpu:8.1f} {memory:6.0f}",
            flush=True,
        )
    return len(found) == 1 and next(iter(found))[2] == 0


def kills(given):
    """Kill at random moments; the last run completes exactly what is missing."""
    rng = random.Random(given.seed)
    undisturbed, output = Path(given.work) / "undisturbed", Path(given.work) / "killed"
    whole, ended = run_once(given, given.shards, undisturbed, "--workers", 2)
    shutil.rmtree(output, ignore_errors=True)
    print(f"an undisturbed run takes {whole:.1f} s")
    killed = 0
    while killed < given.times:
        line = command(given, given.shards, output, "--workers", 2)
        running = subprocess.Popen(line, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(rng.uniform(0.1, whole))
        who = rng.choice(["worker", "driver"])
        found = subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True)
        workers = [int(word) for word in found.stdout.split()]
        if running.poll() is None and (who == "driver" or workers):
            killed += 1
            os.kill(rng.choice(workers) if who == "worker" else running.pid, signal.SIGKILL)
            code = running.wait() if who == "driver" else None
            done = len(stats(output)) if output.is_dir() else 0
            print(f"{killed:3} {who:>7} killed, {done} shards done by then, {code}", flush=True)
        running.wait()
        if output.is_dir() and len(stats(output)) == len(stats(undisturbed)):
            if digest(output) != digest(undisturbed):
                break  # the comparison below says so
            shutil.rmtree(output)  # complete and exact: the next kills begin anew
    subprocess.run(command(given, given.shards, output, "--workers", 2), check=True)
    same = digest(output) == digest(undisturbed)
    left = list(output.glob(".sightline-*"))
    print(f"{digest(output)} against {digest(undisturbed)}, {len(left)} files left over")
    return same and not left and ended == 0


def sizes(given):
    """Time is linear in the size of a shard, and memory is flat."""
    work = Path(given.work)
    lines = [
        line for file in sorted(Path(given.shards).glob("*.jsonl")) for line in file.open("rb")
    ]
    one = len(lines) // 10
    print(f"{'documents':>10} {'wall s':>8} {'CPU s':>8} {'documents/CPU s':>16} {'MB':>6}")
    for times in (1, 2, 4, 10):
        shard = work / f"size-{times}" / "shard.jsonl"
        shard.parent.mkdir(parents=True, exist_ok=True)
        shard.write_bytes(b"".join(lines[: one * times]))
        run_once(given, shard, work / f"sized-{times}", "--workers", 1)
        (found,) = stats(work / f"sized-{times}")
        rate = found["documents"] / found["cpu_seconds"]
        memory = found["memory_bytes"] / 1e6
        print(
            f"{found['documents']:>10,} {found['seconds']:8.1f} {found['cpu_seconds']:8.1f} "
            f"{rate:16,.0f} {memory:6.0f}",
            flush=True,
        )
    return True


def full(given):
    """A disk that is too small: named, exit code 1, the shards that fit are done."""
    output = Path(given.work) / "out"
    _, code = run_once(given, given.shards, output, "--workers", 2)
    manifest = output / "manifest.json"
    done, temporary = len(stats(output)), list(output.glob(".sightline-*"))
    print(f"exit code {code}, {done} shards done, manifest {manifest.exists()}, {temporary}")
    return code == 1 and not temporary


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("check", choices=["engines", "kills", "sizes", "full"])
    for name in ("shards", "model", "features", "work"):
        parser.add_argument(name)
    parser.add_argument("--engines", nargs="+", default=["local:1", "local:2", "ray:2", "spark:2"])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    Path(chosen.work).mkdir(parents=True, exist_ok=True)
    sys.exit(0 if globals()[chosen.check](chosen) else 1)
