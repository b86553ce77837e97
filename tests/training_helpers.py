"""What tests of training share: small corpora out of the bundled one, and runs that are killed."""

import os
import signal
import subprocess
import sys
import time
from itertools import islice

from sightline.corpus import read
from sightline.readers.native import write_jsonl


def first_sections(folder, textbooks, **counts):
    """Fill a folder with the first so many sections of each split; their features are linked."""
    corpus = read(textbooks)
    chosen = [one for split, n in counts.items() for one in islice(corpus.documents(split), n)]
    write_jsonl(chosen, folder / "documents.jsonl")
    (folder / "features").symlink_to(textbooks / "features")
    return folder


def kill_after(epochs, command, folder, further_seconds=0.0):
    """Train into a folder, and kill -9 the run once its log has so many epochs."""
    run = subprocess.Popen(
        [sys.executable, "-m", "sightline", *command, str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    log = folder / "log.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_bytes().count(b'"epoch"') >= epochs):
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(further_seconds)
    run.kill()
    assert run.wait() == -signal.SIGKILL
