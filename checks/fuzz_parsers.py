"""Feeds our own parsers with inputs that nobody wrote, and reports what they must not do.

    python checks/fuzz_parsers.py PARSER... | all  [--seconds 300] [--engine atheris hypothesis]
                                                   [--keep FOLDER] [--plant]

A parser may give a value, count problems or raise `SightlineError`. A finding is anything else: any
other exception, a broken rule (`fuzz_targets.py`), more than 10 s of CPU time or 1 GB of memory for
one input, the end of the process. Findings are kept, the input beside the traceback, one for each
place in the code. Atheris (coverage-guided, `pip install atheris`) gets half of the time where it
is installed, Hypothesis the rest. Exit code 1 if there is a finding. `--plant` fuzzes a parser that
fails on a few inputs: the control, which has to end with exit code 1. Linux and macOS only.
"""

import argparse
import faulthandler
import hashlib
import importlib.util
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

CPU_SECONDS, MEMORY_BYTES, WALL_SECONDS = 10.0, 1_000_000_000, 120
LONGEST = 1 << 16  # bytes of one input
FEWEST = 300  # inputs of Hypothesis, however busy the machine is


def planted(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """The control: fails on inputs that mutation soon finds."""
    if b"ab" in data and len(data) > 6:
        raise ZeroDivisionError("planted")


def targets():
    """All parsers by name, imported only here: atheris watches what is imported under it."""
    import fuzz_targets
    import fuzz_targets_files

    found = fuzz_targets.TARGETS | fuzz_targets_files.TARGETS
    return found | {"planted": (planted, lambda: [b"ab"])}


class Watch:
    """Calls a parser and notes what comes of it; the figures are in a file at all times."""

    def __init__(self, call, kept: Path) -> None:
        from sightline.problems import SightlineError

        self.call, self.kept, self.refusal = call, kept, SightlineError
        self.counts = {"calls": 0, "refused": 0, "slowest": 0.0, "largest": 0}
        self.folder = Path(tempfile.mkdtemp())
        self.noted = time.monotonic()
        self.start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __call__(self, data: bytes) -> None:
        """Call the parser once."""
        self.counts["calls"] += 1
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 3 * CPU_SECONDS)
        try:
            self.call(data, self.folder)
        except self.refusal:
            self.counts["refused"] += 1
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            self.finding(f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}",
                         data, traceback.format_exc())  # fmt: skip
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - began
        memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.start)
        self.counts["slowest"] = max(self.counts["slowest"], seconds)
        self.counts["largest"] = max(self.counts["largest"], memory)
        if seconds > CPU_SECONDS:
            self.finding("slow", data, f"{seconds:.1f} s of CPU time")
        if memory > MEMORY_BYTES:
            self.finding("large", data, f"{memory / 1e6:.0f} MB")
        if time.monotonic() - self.noted > 1:
            self.note()

    def finding(self, name: str, data: bytes, words: str) -> None:
        """Keep an input and what came of it, once for each place."""
        number = hashlib.sha256(name.encode()).hexdigest()[:8]
        if not (self.kept / f"{number}.input").exists():
            (self.kept / f"{number}.input").write_bytes(data)
            (self.kept / f"{number}.txt").write_text(f"{name}\n{words}\n")

    def note(self) -> None:
        """Write the figures."""
        self.noted = time.monotonic()
        (self.kept / "counts.json").write_text(json.dumps(self.counts))


def with_atheris(name: str, seconds: float, kept: Path) -> None:
    """Fuzz by coverage until the time is over; does not return."""
    import atheris

    with atheris.instrument_imports(include=["sightline"]):
        call, seeds = targets()[name]
    corpus = kept / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    watch = Watch(call, kept)
    options = [f"-max_total_time={seconds:.0f}", f"-max_len={LONGEST}", "-rss_limit_mb=4000",
               f"-timeout={WALL_SECONDS}", "-print_final_stats=0", "-verbosity=0",
               f"-artifact_prefix={kept}/"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], watch)
    atheris.Fuzz()


def with_hypothesis(name: str, seconds: float, kept: Path) -> None:
    """Fuzz by mutations of the seeds and by made-up text until the time is over."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    call, seeds = targets()[name]
    watch = Watch(call, kept)
    sound = seeds()
    pieces = st.one_of(
        st.binary(max_size=8),
        st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace")),
        st.sampled_from([b"\0", b"\xff" * 8, b'"', b"[" * 50, b"<", b">", b"{", b"}}", b"|", b"&#x",
                         b"1e999", b"-1", b"18446744073709551616", b"null", b"NaN", b"\xed\xa0\x80",
                         "\u202e\u2028".encode(), b"\n", b"A" * 5000]),
    )  # fmt: skip
    edit = st.tuples(st.integers(0, LONGEST), st.integers(0, 40), pieces, st.integers(0, 3))

    def mutated(given_seed: bytes, edits) -> bytes:
        data = given_seed
        for place, length, piece, how in edits:
            at = place % (len(data) + 1)
            if how == 0:
                data = data[:at] + piece + data[at:]
            elif how == 1:
                data = data[:at] + piece + data[at + len(piece) :]
            elif how == 2:
                data = data[:at] + data[at + length :]
            else:
                data = data[:at] + data[at : at + length] * (1 + length) + data[at:]
        return data[:LONGEST]

    inputs = st.one_of(
        st.builds(mutated, st.sampled_from(sound), st.lists(edit, min_size=1, max_size=6)),
        st.text().map(lambda text: text.encode("utf-8", "replace")),
        st.binary(max_size=2000),
    )
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end or watch.counts["calls"] < FEWEST:
        number += 1

        @seed(number)
        @settings(max_examples=200, deadline=None, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(inputs)
        def once(data: bytes) -> None:
            if time.monotonic() < end or watch.counts["calls"] < FEWEST:
                watch(data)

        once()
    watch.note()


ENGINES = {"atheris": with_atheris, "hypothesis": with_hypothesis}


def fuzz(name: str, engine: str, seconds: float, kept: Path) -> int:
    """Run an engine in a process of its own; prints the figures, gives the number of findings."""
    kept = kept / name / engine
    kept.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, name, "--seconds", str(seconds), "--keep", str(kept)]
    began = time.monotonic()
    with (kept / "output.log").open("wb") as log:
        done = subprocess.run([*command, "--engine", engine, "--inside"], stdout=log, stderr=log)
    log_end = (kept / "output.log").read_bytes()[-2000:].decode(errors="replace")
    counts = {"calls": 0, "refused": 0, "slowest": 0.0, "largest": 0}
    if (kept / "counts.json").exists():
        counts = json.loads((kept / "counts.json").read_text())
    findings = [path.read_text() for path in sorted(kept.glob("????????.txt"))]
    if done.returncode:
        findings.append(f"the process ended with code {done.returncode}\n{log_end}")
    print(
        f"{name:>13} {engine:>10} {time.monotonic() - began:6.0f} s {counts['calls']:>10,} inputs "
        f"{counts['refused']:>10,} refused, most {counts['slowest']:.2f} s CPU and "
        f"{counts['largest'] / 1e6:.0f} MB more, {len(findings)} findings",
        flush=True,
    )
    for finding in findings:
        print("    " + finding.strip().replace("\n", "\n    "), flush=True)
    return len(findings)


def main() -> int:
    """Fuzz the parsers that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parsers", nargs="*", metavar="PARSER")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--engine", nargs="+", choices=list(ENGINES))
    parser.add_argument("--keep", type=Path, default=Path("fuzzed"))
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        faulthandler.enable()
        ENGINES[given.engine[0]](given.parsers[0], given.seconds, given.keep)
        return 0
    known = [name for name in targets() if name != "planted"]
    wanted = ["planted"] if given.plant else known if given.parsers == ["all"] else given.parsers
    if not wanted or set(wanted) - {*known, "planted"}:
        parser.error(f"name parsers of: all, {', '.join(known)}")
    there = importlib.util.find_spec("atheris") is not None
    engines = given.engine or (["atheris", "hypothesis"] if there else ["hypothesis"])
    if "atheris" not in engines:
        print("atheris is not used: hypothesis alone")
    each = given.seconds / len(engines)
    found = sum(fuzz(name, engine, each, given.keep) for name in wanted for engine in engines)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
