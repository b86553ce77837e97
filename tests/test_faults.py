"""A full disk, a read-only disk, no file handles left: one sentence, and the last good state.

The disks are small and real, so that mounting them needs the rights of root; elsewhere limits on
the size of files stand for them (`test_files`, `test_extraction`, `test_shards`).
"""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import orjson
import pytest
from PIL import Image
from sharded_corpus import IMAGES, records, tiny_model

from sightline.features import write_feature_store
from sightline.model import LinkModel
from sightline.problems import SightlineError

SIZE = 2**20  # bytes of the disk


def sightline(*arguments, **options):
    """Exit code, standard output and words of a command; no command ends with a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "sightline", *map(str, arguments)],
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"},
        **options,
    )
    words = done.stderr.decode()
    assert "Traceback" not in words and "Exception ignored" not in words, words
    return done.returncode, done.stdout, words


def error_of(words):
    """The one sentence that a command ends with."""
    lines = [line for line in words.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1 and words.rstrip().endswith(lines[0]), words
    return lines[0]


@pytest.fixture
def disk(tmp_path):
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small disk needs the rights of root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk, leave=0):
    """Fill the disk but for so many bytes."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with ballast.open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - leave)))
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def read_only(disk):
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """120 documents with features, and a model for them."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(5)
    lines = [orjson.dumps(record) for record in records(rng, 120, "d")]
    (folder / "documents.jsonl").write_bytes(b"\n".join(lines))
    vectors = rng.normal(size=(len(IMAGES), 6))
    write_feature_store(folder / "features", "some-net", IMAGES, vectors, {})
    tiny_model().save_pretrained(folder / "model")
    for number in range(3):
        pixels = rng.integers(0, 255, (40, 40, 3), np.uint8)
        (folder / "pictures").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / "pictures" / f"{number}.png")
    return folder


def commands(corpus, disk):
    """Commands that write to the disk, by name; each replaces a good state that is there."""
    (disk / "links.jsonl").write_bytes(b"links of yesterday\n")
    (disk / "converted.jsonl").write_bytes(b"documents of yesterday\n")
    tiny_model().save_pretrained(disk / "model")
    return {
        "link": ("link", corpus, "--model", corpus / "model", "-o", disk / "links.jsonl"),
        "convert": ("convert", corpus, disk / "converted.jsonl", "--to", "native"),
        "calibrate": ("calibrate", disk / "model", corpus),
        "features": ("features", corpus / "pictures", "-o", disk / "store", "--workers", 0),
    }


def test_a_careless_writer_loses_the_old_file_on_a_full_disk(disk):
    """The control: what the promise guards against does happen on this disk."""
    (disk / "links.jsonl").write_bytes(b"links of yesterday\n")
    with full(disk), pytest.raises(OSError, match="No space left"):
        (disk / "links.jsonl").write_bytes(b"x" * 100_000)
    assert (disk / "links.jsonl").read_bytes() != b"links of yesterday\n"


@pytest.mark.parametrize("name", ["link", "convert", "calibrate", "features"])
def test_a_full_disk_gives_one_sentence_and_leaves_what_was_there(corpus, disk, name):
    command = commands(corpus, disk)[name]
    before = contents(disk)
    with full(disk):
        code, _, words = sightline(*command)
    assert code == 1
    assert "No space left on device" in error_of(words) and str(disk) in error_of(words)
    after = contents(disk)
    # Features may have begun their journal, in which a later run goes on.
    assert {file: data for file, data in after.items() if not file.startswith("store")} == before
    LinkModel.from_pretrained(disk / "model")
    code, _, words = sightline(*command)
    assert code == 0, words
    assert contents(disk) != before


@pytest.mark.parametrize("name", ["link", "calibrate"])
def test_a_read_only_disk_gives_one_sentence(corpus, disk, name):
    command = commands(corpus, disk)[name]
    before = contents(disk)
    with read_only(disk):
        code, _, words = sightline(*command)
    assert code == 1
    assert "Read-only file system" in error_of(words) and str(disk) in error_of(words)
    assert contents(disk) == before


def test_training_on_a_disk_that_fills_up_keeps_its_checkpoint_and_goes_on(corpus, disk):
    from sightline.corpus import read
    from sightline.settings import Settings
    from sightline.training import train

    def run(epochs, resume):
        settings = Settings(
            dimension=16, word_dimension=12, epochs=epochs, minimum_count=1, similarity="DC"
        )
        return train(read(corpus), disk / "run", settings, resume=resume)

    run(1, False)
    before = contents(disk / "run")
    with full(disk, leave=8_000), pytest.raises(SightlineError, match="No space left"):
        run(2, True)
    after = contents(disk / "run")
    assert not [file for file in after if ".tmp" in file]
    for file in ("checkpoint.safetensors", "model.safetensors", "vocabulary.json"):
        assert after[file] == before[file]
    LinkModel.from_pretrained(disk / "run")
    run(2, True)
    assert contents(disk / "run")["checkpoint.safetensors"] != before["checkpoint.safetensors"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_standard_output_that_takes_nothing_is_an_error(corpus):
    command = ("link", corpus, "--model", corpus / "model")
    with Path("/dev/full").open("wb") as nowhere:
        code, _, words = sightline(*command, stdout=nowhere)
    assert code == 1 and "No space left on device" in error_of(words)


def test_without_file_handles_a_command_ends_with_one_sentence(corpus, tmp_path):
    """Of 5, three are standard; with 4, Python itself does not start, and with 6 it works."""
    output = tmp_path / "links.jsonl"
    output.write_bytes(b"links of yesterday\n")
    command = ("link", corpus, "--model", corpus / "model", "-o", output)

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))

    code, _, words = sightline(*command, preexec_fn=few)
    assert code == 1 and "Too many open files" in error_of(words)
    assert output.read_bytes() == b"links of yesterday\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links.jsonl"]
