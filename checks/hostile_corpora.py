"""Runs every file of some folders through our readers and decoders, each in a process of its own.

    python checks/hostile_corpora.py FOLDER... [--plant crash|hang] [--list] [--together]

Files that `sightline link` takes for articles are read as such, all others are decoded as images.
Of html5lib's `*.dat` and CommonMark's `*.json`, each case is an HTML or a Markdown page. A file is

    ok        read: sentences and images, or pixels
    lost      read, but of a text or a Markdown file that has letters nothing is left, uncounted
    refused   an error or a status with a reason
    contained refused because the child process that read it died or reached its limits
    crash     its process ended in any other way: a signal, an exception that nobody caught
    hang      it took more than 10 s of CPU time in all, or 900 s by the clock
    swollen   it took more than 1 GB of memory

Exit code 1 if there is one of `lost` or the last three. `--plant` adds a file whose process crashes
or hangs: the control that shows that they are seen. With `--together` all files are read in this
process, which is quicker; a crash then ends it, and memory is not looked at. Corpora are in the
source packages of PyPI, e.g. `pip download --no-binary :all: --no-deps pillow` (Tests/images),
pypdf, html5lib, markdown-it-py; `damaged_files.py` makes others. Linux and macOS only.
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sightline.articles import Article, article_kind, read_article
from sightline.images import Status, decode
from sightline.problems import SightlineError
from sightline.sentence_splitting import split_sentences

CPU_SECONDS, WALL_SECONDS, MEMORY_BYTES = 10.0, 900.0, 1_000_000_000
BAD = ("lost", "crash", "hang", "swollen")
# Exit codes of the process of one file.
CODES = {0: "ok", 3: "refused", 4: "contained", 5: "lost"}
_CONTAINED = ("makes its reader crash", "reading it takes")


def cases(folders: list[Path], work: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name of each case, and the file to read for it."""
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if path.suffix == ".dat" and b"#data\n" in (data := path.read_bytes()):
                parts = [part.partition(b"\n#errors")[0] for part in data.split(b"#data\n")[1:]]
                yield from _written(path, parts, work / "case.html")
            elif path.suffix == ".json" and (examples := _examples(path)):
                yield from _written(path, examples, work / "case.md")
            else:
                yield str(path), path


def _written(path: Path, parts: list[bytes], case: Path) -> Iterator[tuple[str, Path]]:
    for number, part in enumerate(parts):
        case.write_bytes(part)
        yield f"{path}#{number}", case


def _examples(path: Path) -> list[bytes]:
    """Give the pages of CommonMark's own tests, if a file holds such."""
    try:
        return [example["markdown"].encode() for example in json.loads(path.read_bytes())]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def read_one(path: Path) -> int:
    """Be the process of one file; gives its exit code."""
    if article_kind(path) is None:
        return 0 if decode(path).status is Status.ok else 3
    try:
        article = read_article(path)
    except SightlineError as error:
        return 4 if any(words in str(error) for words in _CONTAINED) else 3
    for image in article.images:
        if image.content is not None:
            decode(image.content)
    return 5 if is_lost(article, path) else 0


def is_lost(article: Article, path: Path) -> bool:
    """Say whether a text has letters of which nothing has come; of plain text, all have to."""
    if article.kind not in ("text", "markdown"):
        return False
    found = sum(sign.isalpha() for block in article.page.blocks for sign in block.text)
    letters = sum(sign.isalpha() for sign in path.read_bytes().decode("utf-8", "ignore"))
    counted = article.page.left_out
    left_out = counted.text.total() + counted.images.total()
    if article.kind == "text":
        return found + left_out < letters
    return bool(letters) and not found and not left_out and not article.images


def in_a_process(path: Path | None, plant: str | None = None) -> tuple[str, float, int]:
    """Read a file in a new process; gives what became of it, CPU seconds and bytes of memory."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if plant == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            signal.setitimer(signal.ITIMER_PROF, 2 * CPU_SECONDS)
            while plant == "hang":
                pass
            code = read_one(path)
        finally:
            os._exit(code)
    end = time.monotonic() + WALL_SECONDS
    pause = 0.002
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    seconds = usage.ru_utime + usage.ru_stime
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGPROF, -signal.SIGKILL) or seconds > CPU_SECONDS:
        return "hang", seconds, memory
    if memory > MEMORY_BYTES:
        return "swollen", seconds, memory
    return CODES.get(code, "crash"), seconds, memory


def in_this_process(path: Path) -> tuple[str, float, int]:
    """Read a file here; gives what became of it, CPU seconds and no bytes of memory."""
    start = time.process_time()
    try:
        verdict = CODES[read_one(path)]
    except Exception:
        traceback.print_exc()
        verdict = "crash"
    seconds = time.process_time() - start
    return "hang" if seconds > CPU_SECONDS else verdict, seconds, 0


def main() -> int:
    """Print the counts, the largest costs and the bad files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--plant", choices=("crash", "hang"))
    parser.add_argument("--list", action="store_true", help="print a line for every file")
    parser.add_argument("--together", action="store_true", help="read all in this process")
    given = parser.parse_args()
    for folder in given.folders:
        if not folder.is_dir():
            parser.error(f"{folder}: no such folder")
    split_sentences("What is loaded once here is not part of a file's cost.")
    counts: Counter[str] = Counter()
    slowest, largest = (0.0, ""), (0, "")
    with tempfile.TemporaryDirectory() as work:
        planted = [(f"planted {given.plant}", None)] if given.plant else []
        for name, path in (*planted, *cases(given.folders, Path(work))):
            if given.together and path is not None:
                verdict, seconds, memory = in_this_process(path)
            else:
                verdict, seconds, memory = in_a_process(path, given.plant if path is None else None)
            counts[verdict] += 1
            slowest, largest = max(slowest, (seconds, name)), max(largest, (memory, name))
            if given.list or verdict in BAD:
                print(f"{verdict}: {name} ({seconds:.1f} s, {memory / 1e6:.0f} MB)", flush=True)
    names = ("ok", "refused", "contained", *BAD)
    print(f"{counts.total()} cases: " + ", ".join(f"{counts[name]} {name}" for name in names))
    print(f"most CPU time: {slowest[0]:.1f} s ({slowest[1]})")
    print(f"most memory: {largest[0] / 1e6:.0f} MB ({largest[1]})")
    if not counts.total() - bool(given.plant):
        print("There is no file in these folders: nothing was checked.")
        return 1
    return 1 if any(counts[name] for name in BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
