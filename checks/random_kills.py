"""Kills runs with signal 9 at random moments; what they end in must be what an unbroken run gives.

    python checks/random_kills.py WORK [features training links] [--times 100] [--seed 1]

WORK is a new folder, for what is made up (images, documents) and for the runs. Of each kind, one
run is left alone. Then runs are started and killed, each at a moment that is drawn evenly from the
time an unbroken one takes, and started again with the same command until one ends by itself. Its
files must be those of the unbroken run, byte by byte but for the times that are noted in them, and
no other file may be there; the next kills begin with a new folder. Killed are all processes of a
run together or, where it has several, in turn the first alone and one of its workers alone: that
run has to go on.

At the end, one file after the other of a good result is cut to its half: the control, which the
comparison has to see. Exit code 1 if a result differs, a run fails or a cut is not seen. Each run
is a fork of this process, which has imported everything, so that few kills are spent on imports.
Linux only.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import orjson
import torch  # noqa: F401  (a run of the training finds it imported)
from PIL import Image

from sightline import feature_journal
from sightline.cli import main as sightline
from sightline.training import train  # noqa: F401

KINDS = ("features", "training", "links")
IMAGES, DOCUMENTS, SHARDS = 48, 48, 4
WORDS = ("a", "the", "red", "old", "dog", "cat", "house", "runs", "sleeps", "on", "near", "grass")
# What no two runs have in common.
TIMES = {"seconds", "cpu_seconds", "memory_bytes", "documents_per_second", "peak_memory_mb"}
# A short run has to commit more often than every three seconds to be killed between two commits.
feature_journal._COMMIT_SECONDS = 0.1


def make_inputs(work: Path) -> None:
    """Write images of noise, documents about them, and the same documents in shards."""
    rng = np.random.default_rng(0)
    (work / "images").mkdir(parents=True)
    for number in range(IMAGES):
        pixels = rng.integers(0, 256, (60, 60, 3), np.uint8)
        Image.fromarray(pixels).save(work / "images" / f"{number:03d}.png")
    # One that cannot be decoded has a status, which has to come out the same.
    (work / "images" / "damaged.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    names = [path.name for path in sorted((work / "images").iterdir())]
    (work / "corpus").mkdir()
    (work / "shards").mkdir()
    lines = list(_documents(rng, names, DOCUMENTS))
    (work / "corpus" / "documents.jsonl").write_bytes(b"".join(lines))
    for number in range(SHARDS):
        lines = list(_documents(rng, names, 300))
        (work / "shards" / f"{number}.jsonl").write_bytes(b"".join(lines))


def _documents(rng, names, count):
    for number in range(count):
        sentences = [" ".join(rng.choice(WORDS, rng.integers(3, 12))) + "." for _ in range(8)]
        images = [str(name) for name in rng.choice(names, 4, replace=False)]
        split = "val" if number % 4 == 0 else "train"
        record = {"id": str(number), "sentences": sentences, "images": images, "split": split}
        yield orjson.dumps(record | {"links": [[0, 0]]}) + b"\n"


def command(kind: str, work: Path, output: Path) -> list[str]:
    """The command of a run; the same starts it and goes on with it."""
    features = ["--features", str(work / "features-unbroken")]
    if kind == "features":
        return ["features", str(work / "images"), "-o", str(output), "--workers", "1"]
    if kind == "training":
        sizes = ["--dimension", "16", "--epochs", "8", "--negative-documents", "5",
                 "--minimum-count", "1", "--learning-rate", "0.001"]  # fmt: skip
        return ["train", str(work / "corpus"), "-o", str(output), "--resume", *sizes, *features]
    model = ["--model", str(work / "training-unbroken"), "--workers", "2"]
    return ["link", str(work / "shards"), "-o", str(output), *model, *features]


def start(words: list[str], errors: Path) -> int:
    """Begin a run in a new process, the first of a group of its own; gives its number."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setsid()
        with errors.open("wb") as file:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
        sys.argv = ["sightline", *words]
        sightline()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(process: int, seconds: float) -> int | None:
    """Wait for a run, no longer than so; gives its exit code once it has ended."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        left = end - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(0.002, left))


def workers_of(process: int) -> list[int]:
    """The processes that a run has started."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def kill(process: int, who: str, rng: random.Random) -> str | None:
    """Kill a run, its first process alone, or one of its workers; says whom, None if nobody."""
    if who == "worker":
        workers = workers_of(process)
        try:
            os.kill(rng.choice(workers), signal.SIGKILL)
        except (IndexError, ProcessLookupError):  # none yet, or gone in the meantime
            return None
    elif who == "first":
        os.kill(process, signal.SIGKILL)
    else:
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
    return who


def result(folder: Path) -> dict[str, bytes]:
    """The files of a run, without the times in them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _timeless(path) for path in files}


def _timeless(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix not in (".json", ".jsonl"):
        return data
    try:
        lines = [data] if path.suffix == ".json" else data.split(b"\n")
        values = [_without_times(orjson.loads(line)) if line else None for line in lines]
        return orjson.dumps(values)
    except ValueError:
        return data


def _without_times(value):
    if isinstance(value, dict):
        return {key: _without_times(one) for key, one in value.items() if key not in TIMES}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def differences(folder: Path, expected: dict[str, bytes]) -> list[str]:
    """The files in which a result is not the expected one."""
    found = result(folder)
    return sorted(name for name in found | expected if found.get(name) != expected.get(name))


def unseen_cuts(folder: Path, expected: dict[str, bytes]) -> list[str]:
    """Cut each file of a good result in turn; gives those of which the comparison sees nothing."""
    unseen = []
    for name in expected:
        path = folder / name
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        if data and not differences(folder, expected):
            unseen.append(name)
        path.write_bytes(data)
    return unseen


class Kills:
    """The kills of one kind of run, and what was found by them."""

    def __init__(self, kind: str, work: Path, rng: random.Random) -> None:
        self.kind, self.work, self.rng = kind, work, rng
        self.output, self.errors = work / f"{kind}-killed", work / f"{kind}.log"
        self.killed: Counter[str] = Counter()
        self.bad: list[str] = []
        self.compared = 0

    def run(self, times: int) -> bool:
        """Kill so many times; prints the figures."""
        began = time.monotonic()
        unbroken = self.work / f"{self.kind}-unbroken"
        code = ended(start(command(self.kind, self.work, unbroken), self.errors), 600)
        whole = time.monotonic() - began
        if code != 0:
            self.bad.append(f"the unbroken run ended with code {code}: {self.said()}")
            return self.report(times, whole, began)
        expected = result(unbroken)
        while self.killed.total() < times and len(self.bad) < 5:
            self.one(whole, expected)
        self.compare(expected, ended(self.started(), 600))
        unseen = unseen_cuts(unbroken, expected)
        self.bad += [f"a cut of {name} is not seen" for name in unseen]
        print(f"{self.kind}: control: {len(expected)} files cut, {len(unseen)} not seen")
        return self.report(times, whole, began)

    def started(self) -> int:
        """Start a run, or go on with the one that was killed."""
        return start(command(self.kind, self.work, self.output), self.errors)

    def one(self, whole: float, expected: dict[str, bytes]) -> None:
        """Start a run, or go on with it, and kill it if it does not end before."""
        process = self.started()
        code = ended(process, self.rng.uniform(0, whole))
        if code is None:
            several = ("all", "first", "worker") if self.kind != "training" else ("all",)
            who = kill(process, self.rng.choice(several), self.rng)
            self.killed.update([who] if who else [])
            if who and self.killed.total() % 10 == 0:
                print(f"{self.kind}: {self.killed.total()} kills", file=sys.stderr, flush=True)
            code = ended(process, 600)
            if who in ("all", "first") and code == -signal.SIGKILL:
                return
        self.compare(expected, code)

    def compare(self, expected: dict[str, bytes], code: int | None) -> None:
        """Look at what a run that ended by itself has left, and make room for the next."""
        self.compared += 1
        if code != 0:
            self.bad.append(f"a run ended with code {code}: {self.said()}")
        elif found := differences(self.output, expected):
            self.bad.append(f"other than unbroken: {', '.join(found)}")
        shutil.rmtree(self.output, ignore_errors=True)

    def said(self) -> str:
        """What the last run said in the end."""
        return self.errors.read_text(errors="replace")[-500:]

    def report(self, times: int, whole: float, began: float) -> bool:
        """Print the figures; says whether all is well."""
        whom = ", ".join(f"{count} {who}" for who, count in sorted(self.killed.items()))
        print(
            f"{self.kind}: {self.killed.total()} kills ({whom}) of runs that take {whole:.1f} s, "
            f"{self.compared} results compared, {len(self.bad)} bad, "
            f"{time.monotonic() - began:.0f} s in all"
        )
        for line in self.bad:
            print(f"  {line}")
        sys.stdout.flush()
        return not self.bad and self.killed.total() >= times


def main() -> int:
    """Kill the runs of the kinds that are asked for; later ones need the results of earlier."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.work.exists():
        parser.error(f"{given.work} is there already; name a new folder")
    make_inputs(given.work)
    wanted = given.kinds or KINDS
    good = True
    for kind in KINDS[: max(map(KINDS.index, wanted)) + 1]:
        times = given.times if kind in wanted else 0
        good = Kills(kind, given.work, random.Random(given.seed)).run(times) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
