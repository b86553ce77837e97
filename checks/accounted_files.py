"""Gives a folder of good, bad and strange files to the real commands, and accounts for every file.

    python checks/accounted_files.py FOLDER... [--most 1500] [--lines FOLDER] [--plant]

Documents and images are drawn from the folders (the same ones each time) into one new folder. With
them go empty files, names that are hard to write, links to and from everywhere, pipes, folders that
are called like documents, files that are not what their names say, and one too large to be read;
pages show all images. Then run, as processes of their own:

    sightline link MIXED -o links.jsonl        sightline build pages MIXED -o CORPUS --json
    sightline alt MIXED --check --json         sightline link LINES.jsonl, convert LINES.jsonl

Each document must have its record or be a counted problem, each image its status in a record or be
counted as left out, and nothing else may be there; no command may print a traceback or end with
another exit code than it should. `--lines` takes the files of a folder (JSONTestSuite, see
`hostile_json.py`) as lines between good documents: each is a record or a problem. `--plant` takes a
record away before it is accounted for: the control, which ends with exit code 1. Linux and macOS.
"""

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import orjson

from sightline.choices import ARTICLE_SUFFIXES

PAGES = (".html", ".htm", ".xhtml", ".md", ".markdown")
ARTICLES = tuple(suffix for suffix in ARTICLE_SUFFIXES if suffix != ".txt")
IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".avif")
PAGE = "<p>A fox runs over the hill, and an owl sleeps.</p>"
GOOD = orjson.dumps({"id": "good", "sentences": ["A fox runs."], "images": ["a.png"]})
PROBLEMS = re.compile(r"^([\d,]+) bad records? w", re.M)
HARD_NAMES = (
    "a b",
    "é",
    "e\u0301",
    "漢字",
    "'q' \"q\"",
    "%41%2f",
    "#a?b",
    "-o",
    "a\nb",
    "$(x)",
    "\\",
)
IMAGES_OF_A_PAGE = 200


def mixed_folder(folder: Path, sources: list[Path], most: int) -> None:
    """Fill the folder; nothing in it depends on chance but which files are drawn."""
    files = sorted({p for source in sources for p in source.rglob("*") if p.is_file()})
    rng = random.Random(1)
    for suffixes in (ARTICLES, IMAGES):
        chosen = [path for path in files if path.suffix.lower() in suffixes]
        for number, path in enumerate(rng.sample(chosen, min(most // 2, len(chosen)))):
            shutil.copyfile(path, folder / f"{number:04}{path.suffix.lower()}")
    images = sorted(path.name for path in folder.iterdir() if path.suffix in IMAGES)
    for start in range(0, len(images), IMAGES_OF_A_PAGE):
        shown = images[start : start + IMAGES_OF_A_PAGE]
        tags = "".join(f'<p>{PAGE}</p><img width=500 src="{quote(name)}">' for name in shown)
        (folder / f"images-{start:04}.html").write_text(tags)
    for suffix in (*ARTICLES, ".txt", ".png", ""):
        strange_files(folder, suffix)
    for number, name in enumerate(HARD_NAMES):
        (folder / f"{number} {name}.html").write_text(PAGE)
    (folder / os.fsdecode(b"\xff\xfe.html")).write_text(PAGE)
    (folder / "loop").symlink_to(folder)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.html").write_text(PAGE)
    with (folder / "large.pdf").open("wb") as file:
        file.truncate(2**40)


def strange_files(folder: Path, suffix: str) -> None:
    """Add what is not what its suffix says, or no file at all."""
    (folder / f"empty{suffix}").touch()
    (folder / f"zeros{suffix}").write_bytes(bytes(1000))
    (folder / f"noise{suffix}").write_bytes(random.Random(2).randbytes(5000))
    (folder / f"text{suffix}").write_text("A fox runs over the hill.\n")
    (folder / f"upper{suffix.upper()}").write_text("An owl sleeps in the tree.\n")
    (folder / f"folder{suffix}").mkdir()
    (folder / f"folder{suffix}" / "inside.md").write_text("A fox.\n")
    os.mkfifo(folder / f"pipe{suffix}")
    (folder / f"nowhere{suffix}").symlink_to(folder / "there is no such file")
    (folder / f"itself{suffix}").symlink_to(folder / f"itself{suffix}")
    (folder / f"outside{suffix}").symlink_to("/etc/hosts")
    (folder / f"device{suffix}").symlink_to("/dev/zero")
    (folder / f"folder-link{suffix}").symlink_to(folder / f"folder{suffix}")
    (folder / f"unreadable{suffix}").write_text("A fox.\n")
    (folder / f"unreadable{suffix}").chmod(0)


def documents(folder: Path, suffixes: tuple[str, ...]) -> set[str]:
    """The files that a command has to account for, by our own rules: nothing outside, no dots."""
    found = set()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in names):
            leads_out = path.is_symlink() and not _target(path).is_relative_to(folder)
            if path.suffix.lower() in suffixes and not leads_out:
                found.add(os.fsencode(path).decode("utf-8", "replace"))
    return found


def _target(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a link to itself
        return path


class Accounts:
    """What was found wrong so far."""

    def __init__(self, plant: bool) -> None:
        self.plant, self.findings = plant, 0

    def expect(self, right: bool, words: str) -> None:
        """Print what is not as it should be."""
        if not right:
            self.findings += 1
            print(f"  FINDING: {words}", flush=True)

    def run(self, *arguments: str | Path, codes: tuple[int, ...] = (0,)) -> tuple[bytes, str]:
        """Run a command; gives its data and its words."""
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "sightline", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = done.stderr.decode("utf-8", "replace")
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        memory = after.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
        print(
            f"{' '.join(command[2:5])} ...: exit code {done.returncode}, "
            f"{time.monotonic() - start:.0f} s, CPU {seconds:.0f} s, largest process so far "
            f"{memory:.0f} MB",
            flush=True,
        )
        self.expect(done.returncode in codes, f"exit code {done.returncode}: {words[-500:]}")
        self.expect("Traceback" not in words, f"a traceback: {words[-1500:]}")
        return done.stdout, words

    def records(self, data: bytes | Path) -> list[dict]:
        """The records of a command, of which the control takes one away."""
        if isinstance(data, Path):
            data = data.read_bytes() if data.exists() else b""
        found = [orjson.loads(line) for line in data.splitlines()]
        return found[1:] if self.plant else found

    def account(self, what: str, expected: int, records: int, others: int) -> None:
        """Compare how many there are with how many there should be."""
        print(f"  {expected} {what}: {records} with a record, {others} counted as problems")
        lost = expected - records - others
        self.expect(lost == 0, f"{lost} {what} are not accounted for")


def count_problems(words: str) -> int:
    """How many problems a command says that there were."""
    found = PROBLEMS.findall(words)
    return int(found[-1].replace(",", "")) if found else 0


def check_link(accounts: Accounts, folder: Path, work: Path) -> None:
    """`sightline link FOLDER`."""
    _, words = accounts.run("link", folder, "-o", work / "links.jsonl")
    records = accounts.records(work / "links.jsonl")
    expected = documents(folder, ARTICLES)
    ids = [record["id"] for record in records]
    accounts.expect(len(set(ids)) == len(ids), "a document has two records")
    accounts.expect(set(ids) <= expected, f"not there: {sorted(set(ids) - expected)[:5]}")
    accounts.account("documents", len(expected), len(ids), count_problems(words))
    shown = [record for record in records if "/images-" in record["id"]]
    statuses = [image["status"] for record in shown for image in record["images"]]
    left_out = sum(sum(r["left_out"].get("images", {}).values()) for r in shown)
    pages = [path for path in folder.iterdir() if path.name.startswith("images-")]
    tags = sum(path.read_text().count("<img") for path in pages)
    accounts.account("images of pages", tags, len(statuses), left_out)
    bare = [i for r in records for i in r["images"] if i["status"] != "ok" and not i["reason"]]
    accounts.expect(not bare, f"images without a reason: {bare[:3]}")


def check_pages(accounts: Accounts, folder: Path, work: Path) -> None:
    """`sightline alt FOLDER --check` and `sightline build pages FOLDER`."""
    expected = len(documents(folder, ARTICLES))
    data, words = accounts.run("alt", folder, "--check", "--json", codes=(0, 1))
    found = accounts.records(data)
    accounts.account("articles", expected, len(found), count_problems(words))
    expected = len(documents(folder, PAGES))
    data, words = accounts.run("build", "pages", folder, "-o", work / "corpus", "--json")
    (result,) = [orjson.loads(line) for line in data.splitlines()]
    without = sum(n for what, n in result["dropped"].items() if what.startswith("pages without"))
    built = accounts.records(work / "corpus" / "documents.jsonl")
    accounts.account("pages", expected, len(built), without + count_problems(words))


def lines_of(folder: Path) -> Iterator[bytes]:
    """Every file of a folder as lines, each between two good documents."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield from (GOOD, *path.read_bytes().split(b"\n"))
    yield GOOD


def check_lines(accounts: Accounts, folder: Path, work: Path) -> None:
    """`sightline link` and `convert` of one file of good and bad lines."""
    lines = [line for line in lines_of(folder) if line.strip()]
    path = work / "lines.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    good = sum(line == GOOD for line in lines)
    _, words = accounts.run("link", path, "-o", work / "lines.links.jsonl", codes=(1,))
    accounts.expect("No image could be used" in words, "link does not say that images are missing")
    for out, command in (
        (work / "lines.links.jsonl", ()),
        (work / "native.jsonl", ("convert", path, work / "native.jsonl", "--to", "native")),
    ):
        if command:
            _, words = accounts.run(*command)
        records = accounts.records(out)
        accounts.account("lines", len(lines), len(records), count_problems(words))
        kept = sum(record["id"] == "good" for record in records)
        accounts.expect(kept >= good - accounts.plant, f"{good - kept} good lines are lost")


def main() -> int:
    """Print what each command cost and what it did not account for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--most", type=int, default=1500, help="files that are drawn")
    parser.add_argument("--lines", type=Path, help="files to take as lines of a corpus")
    parser.add_argument("--plant", action="store_true", help="lose a record of each command")
    given = parser.parse_args()
    accounts = Accounts(given.plant)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name).resolve()
        folder = work / "mixed"
        folder.mkdir()
        mixed_folder(folder, given.folders, given.most)
        print(f"{sum(len(names) for _, _, names in os.walk(folder))} files in the mixed folder")
        check_link(accounts, folder, work)
        check_pages(accounts, folder, work)
        if given.lines is not None:
            check_lines(accounts, given.lines, work)
    print(f"{accounts.findings} findings")
    return 1 if accounts.findings else 0


if __name__ == "__main__":
    sys.exit(main())
