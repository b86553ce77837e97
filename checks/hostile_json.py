"""Puts every JSON file of some folders into each place where Sightline reads JSON.

    python checks/hostile_json.py FOLDER... [--list]

Made for JSONTestSuite (github.com/nst/JSONTestSuite), whose 318 files are in the source package of
orjson: `pip download --no-binary :all: --no-deps orjson==3.9.9`, folder `data/parsing`. A file is
taken as lines among two good documents, as a value within a record, as `docs.json`,
`image_paths.json`, `id2row.json`, `manifest.json`, `config.json`, `vocabulary.json`, as a record of
a tar shard. Each must give a value, a counted problem or a `SightlineError`; the two good documents
must be read; each line that is not blank must be a document or a problem; what is no JSON (`n_*`)
must not be taken for a document or a whole file. Each file has a process of its own, with 10 s of
CPU time and 1 GB of memory. Exit code 1 if there is a finding. Linux and macOS only.
"""

import argparse
import lzma
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
from sharded_corpus import tiny_model

from sightline.corpus import read
from sightline.features import FeatureStore, write_feature_store
from sightline.model import LinkModel
from sightline.problems import Problems, SightlineError
from sightline.readers.tar_members import ARCHIVE_END, member_bytes
from sightline.vocabulary import Vocabulary

GOOD = orjson.dumps({"id": "good", "sentences": ["One."], "images": ["a"]})
DOCS = orjson.dumps({"train": [[[["a", 0]], [["One.", 0]], "na"]]})
CPU_SECONDS, MEMORY_BYTES = 10, 1_000_000_000


def documents(path: Path) -> tuple[int, int]:
    """How many documents and problems a corpus has."""
    problems = Problems()
    return sum(1 for _ in read(path, problems=problems)), problems.count


def as_lines(data: bytes, folder: Path) -> str:
    """Between two good lines, which must be read."""
    path = folder / "a.jsonl"
    path.write_bytes(GOOD + b"\n" + data + b"\n" + GOOD + b"\n")
    count, problems = documents(path)
    lines = sum(bool(line.strip()) for line in data.split(b"\n"))
    assert count >= 2, "a good line is lost"
    assert count + problems == lines + 2, f"{lines} lines, {count - 2} read, {problems} problems"
    return "read" if count > 2 else "counted"


def as_value(data: bytes, folder: Path, template: bytes, good: bytes = GOOD) -> str:
    """Within a record, before a good one of the same format."""
    path = folder / "b.jsonl"
    path.write_bytes(template.replace(b"HERE", data.replace(b"\n", b" ")) + b"\n" + good)
    count, problems = documents(path)
    assert count + problems == 2 and count >= 1, f"{count} read, {problems} problems"
    return "read" if count > 1 else "counted"


def as_release(data: bytes, folder: Path, name: str) -> str:
    """As a file of the paper's release."""
    release = folder / "release"
    release.mkdir(exist_ok=True)
    (release / "docs.json").write_bytes(DOCS)
    (release / "image_paths.json").unlink(missing_ok=True)
    (release / name).write_bytes(data)
    count, problems = documents(release)
    return "read" if count else "counted" if problems else "empty"


def as_store(data: bytes, folder: Path, name: str) -> str:
    """As a file of a feature store."""
    store = folder / "store"
    if not store.exists():
        write_feature_store(store, "net", ["a", "b"], np.ones((2, 3), np.float32), {})
    good = (store / name).read_bytes()
    try:
        (store / name).write_bytes(data)
        FeatureStore.open(store)
    finally:
        (store / name).write_bytes(good)
    return "read"


def as_model(data: bytes, folder: Path, name: str) -> str:
    """As a file of a model folder."""
    model = folder / "model"
    if not model.exists():
        tiny_model().save_pretrained(model)
    good = (model / name).read_bytes()
    try:
        (model / name).write_bytes(data)
        LinkModel.from_pretrained(model)
    finally:
        (model / name).write_bytes(good)
    return "read"


def as_vocabulary(data: bytes, folder: Path) -> str:
    """As a vocabulary."""
    (folder / "vocabulary.json").write_bytes(data)
    Vocabulary.load(folder / "vocabulary.json")
    return "read"


def as_member(data: bytes, folder: Path) -> str:
    """As a record of a tar shard."""
    path = folder / "a.tar"
    parts = (member_bytes("1.json", data), member_bytes("2.json", GOOD), ARCHIVE_END)
    path.write_bytes(b"".join(parts))
    count, problems = documents(path)
    assert count + problems == 2 and count >= 1, f"{count} read, {problems} problems"
    return "read" if count > 1 else "counted"


PLACES = {
    "lines": as_lines,
    "further key": lambda d, f: as_value(
        d, f, b'{"id":"x","sentences":["a"],"images":["b"],"more":HERE}'
    ),
    "sentences": lambda d, f: as_value(d, f, b'{"id":"x","sentences":HERE,"images":["b"]}'),
    "links": lambda d, f: as_value(
        d, f, b'{"id":"x","sentences":["a"],"images":["b"],"links":HERE}'
    ),
    "MMC4": lambda d, f: as_value(
        d,
        f,
        b'{"text_list":["a"],"image_info":HERE}',
        b'{"text_list":["a"],"image_info":[{"image_name":"b"}]}',
    ),
    "OBELICS": lambda d, f: as_value(
        d, f, b'{"texts":["a",null],"images":HERE}', b'{"texts":["a",null],"images":[null,"b"]}'
    ),
    "docs.json": lambda d, f: as_release(d, f, "docs.json"),
    "image_paths.json": lambda d, f: as_release(d, f, "image_paths.json"),
    "id2row.json": lambda d, f: as_store(d, f, "id2row.json"),
    "manifest.json": lambda d, f: as_store(d, f, "manifest.json"),
    "config.json": lambda d, f: as_model(d, f, "config.json"),
    "vocabulary.json": as_vocabulary,
    "member": as_member,
}
#: Where what is not JSON must be refused or counted.
WHOLE = ("docs.json", "image_paths.json", "id2row.json", "manifest.json", "config.json",
         "vocabulary.json", "member")  # fmt: skip


def try_all(path: Path, folder: Path) -> list[str]:
    """Put one file into every place; gives the findings."""
    data = path.read_bytes()
    data = lzma.decompress(data) if path.suffix == ".xz" else data
    findings = []
    for place, put in PLACES.items():
        try:
            outcome = put(data, folder)
        except SightlineError:
            continue
        except Exception as error:
            findings.append(f"{place}: {traceback.format_exception_only(error)[-1].strip()}")
            continue
        if path.name.startswith("n_") and place in WHOLE and outcome == "read":
            findings.append(f"{place}: what is no JSON was read")
    return findings


def in_a_process(path: Path, folder: Path, report: Path) -> list[str]:
    """The findings of one file."""
    sys.stdout.flush()
    report.write_text("")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (3 * MEMORY_BYTES, 3 * MEMORY_BYTES))
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            report.write_text("\n".join(try_all(path, folder)))
            code = 0
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    findings = [line for line in report.read_text().splitlines() if line]
    if status:
        findings.append(f"the process ended with {os.waitstatus_to_exitcode(status)}")
    if memory > MEMORY_BYTES:
        findings.append(f"{memory / 1e6:.0f} MB")
    return findings


def main() -> int:
    """Print the findings and how many files and places there were."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--list", action="store_true", help="print a line for every file")
    given = parser.parse_args()
    files = [path for folder in given.folders for path in sorted(folder.rglob("*.json*"))]
    found = 0
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "files").mkdir()
        for path in files:
            findings = in_a_process(path, Path(work) / "files", Path(work) / "report")
            found += len(findings)
            if given.list or findings:
                print(f"{path.name}: {'; '.join(findings) or 'good'}", flush=True)
    print(f"{len(files)} files in {len(PLACES)} places each: {found} findings")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
