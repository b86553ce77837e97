"""The paper's grid on a corpus: one resumable run a row, several at a time.

Each run is a process of its own that is started by its request and ends when the pipe to it
closes, so that neither Ctrl-C nor the death of this process leaves one behind. A row whose
`scores.json` exists is never made again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

import orjson

from sightline.batches import open_features
from sightline.corpus import Corpus
from sightline.problems import SightlineError
from sightline.reproduction.documents import ChosenDocuments, choose_documents
from sightline.reproduction.overview import Overview, RowState
from sightline.reproduction.results import SCORES, read_epochs, read_scores
from sightline.reproduction.rows import OBJECT_DETECTION, Row
from sightline.reproduction.setup import RunRequest, Setup, start

#: What a run says goes here, in its folder.
OUTPUT = "output.txt"
# How often the runs' logs are looked at, in seconds.
_POLL = 0.2
# The number of threads of every library that has one of its own.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class _Run:
    """A row, its state and, while it is running, its process."""

    request: RunRequest
    state: RowState
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        folder = self.request.folder
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / OUTPUT).open("ab") as words:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sightline.reproduction.row_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
                env={**os.environ, **dict.fromkeys(_THREADS, str(self.request.setup.threads))},
                # Ctrl-C is for this process alone, which then stops the runs in its own way.
                start_new_session=True,
            )
        with suppress(BrokenPipeError):  # a process that fell at once; `look` finds out
            pipe = _pipe(self.process.stdin)
            pipe.write(orjson.dumps(self.request.to_json()) + b"\n")
            pipe.flush()
        self.state.status = "running"

    def look(self) -> None:
        """Bring the state up to date."""
        if self.process is None:
            return
        self.state.epochs = read_epochs(self.request.folder)
        code = self.process.poll()
        if code is None:
            return
        error = _pipe(self.process.stdout).read().decode()
        self.stop()
        if code == 0:
            self.finished()
        else:
            # A baseline that cannot be had on this corpus is no failure of the reproduction.
            self.state.status = "failed" if self.request.row.trained or not error else "absent"
            where = self.request.folder / OUTPUT
            self.state.reason = error or f"the run ended with exit code {code}; {where} says more"

    def finished(self) -> None:
        """Take over what the finished run left."""
        self.state.test = read_scores(self.request.folder)["test"]
        self.state.epochs = read_epochs(self.request.folder)
        self.state.status = "done"

    def stop(self) -> None:
        """End the process, if there is one, and wait until it is gone."""
        process, self.process = self.process, None
        if process is not None:
            with suppress(BrokenPipeError):
                _pipe(process.stdin).close()
            process.kill()
            process.wait()
            _pipe(process.stdout).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def reproduce(
    setup: Setup,
    corpus: Corpus,
    rows: Sequence[Row],
    jobs: int = 1,
    command: str = "",
    mixed: bool = False,
) -> tuple[ChosenDocuments, list[RowState]]:
    """Make the rows that are not made yet, `jobs` at a time.

    Returns the documents used and how each row ended. `command` is what `reproduction.json` names
    as the way to repeat it all; `mixed` as in `setup.start`.
    """
    chosen = choose_documents(corpus, setup.documents, setup.settings.seed)
    setup = start(setup, chosen, open_features(corpus, setup.features), jobs, command, mixed)
    runs = [_run(setup, row, chosen) for row in rows]
    with Overview([run.state for run in runs], jobs) as overview:
        try:
            _work(runs, jobs, overview)
        finally:
            for run in runs:
                run.stop()
    return chosen, [run.state for run in runs]


def _work(runs: list[_Run], jobs: int, overview: Overview) -> None:
    while True:
        running = [run for run in runs if run.process is not None]
        waiting = [run for run in runs if run.state.status == "waiting"]
        for run in waiting[: jobs - len(running)]:
            run.start()
            running.append(run)
        overview.show()
        if not running:
            return
        time.sleep(_POLL)
        for run in running:
            run.look()


def _run(setup: Setup, row: Row, chosen: ChosenDocuments) -> _Run:
    """The run of a row, which may be finished already or impossible on this corpus."""
    state = RowState(row, setup.settings.epochs if row.trained else 0)
    run = _Run(RunRequest(setup, row), state)
    if (run.request.folder / SCORES).exists():
        _check_finished(run.request, chosen)
        run.finished()
    elif not row.trained and not chosen.scorable:
        state.status = "absent"
        state.reason = "no test document has known links, and what is not trained has no loss"
    elif row.name == OBJECT_DETECTION and setup.word_vectors is None:
        state.status = "absent"
        state.reason = "it compares word vectors, and no --word-vectors were given"
    return run


def _check_finished(request: RunRequest, chosen: ChosenDocuments) -> None:
    """A finished run counts only if this command would have made the same."""
    record, row = read_scores(request.folder), request.row
    wanted = row.settings(request.setup.settings).to_json() if row.trained else None
    if record.get("settings") != wanted or record.get("fingerprint") != chosen.fingerprint:
        raise SightlineError(
            f"{request.folder} holds a run with other settings or documents; name another "
            "--output, or remove that folder to make the row again."
        )
