"""Shards in worker processes of this machine.

Each worker is a plain interpreter that loads the model once and takes one shard after the other,
named in a line of JSON; it answers with the result in another. A worker that dies costs its shard
a second try, and is replaced. The workers end with the process that started them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from typing import IO, cast

from sightline.problems import SightlineError
from sightline.shard_work import Work, run_unit, work_from_json, work_to_json
from sightline.shards import Shard, ShardResult

#: One thread per worker: together they fill the machine, and the sums of a matrix product come out
#: the same whatever the number of cores, so that results are equal bit for bit.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# Not multiprocessing: that would run the caller's main module once more in each worker.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from sightline.engines.processes import _serve
_serve(sys.argv[2])
"""
# The shard need not be what the worker died of.
_ATTEMPTS = 3


def run(work: Work, shards: Sequence[Shard], workers: int) -> Iterator[ShardResult]:
    """Work on the shards in so many processes; results come as they are finished."""
    waiting: SimpleQueue[Shard | None] = SimpleQueue()
    results: SimpleQueue[ShardResult | SightlineError | None] = SimpleQueue()
    count = min(workers, len(shards))
    for shard in [*shards, *[None] * count]:
        waiting.put(shard)
    crew = [_Place(work_to_json(work), waiting, results) for _ in range(count)]
    threads = [threading.Thread(target=place.work, daemon=True) for place in crew]
    try:
        for thread in threads:
            thread.start()
        ended = 0
        while ended < count:
            result = results.get()
            if isinstance(result, SightlineError):
                raise result
            if result is None:
                ended += 1
            else:
                yield result
    finally:
        for place in crew:
            place.close()
        for thread in threads:
            thread.join()


class _Place:
    """A thread that keeps one worker busy."""

    def __init__(
        self,
        work: str,
        waiting: SimpleQueue[Shard | None],
        results: SimpleQueue[ShardResult | SightlineError | None],
    ) -> None:
        self._work, self._waiting, self._results = work, waiting, results
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def work(self) -> None:
        """Take shards until there are none."""
        try:
            while (shard := self._waiting.get()) is not None and not self._closed:
                self._results.put(self._result(shard))
        except SightlineError as error:
            self._results.put(error)
        finally:
            self.close()
            self._results.put(None)

    def close(self) -> None:
        """End the worker at once, whatever it is doing."""
        with self._lock:
            self._closed = True
            self._end()

    def _result(self, shard: Shard) -> ShardResult:
        how = ""
        for _ in range(_ATTEMPTS):
            answer = self._ask(shard)
            if answer:
                return ShardResult.from_json(answer)
            how = self._bury()
            if self._closed:
                break
        reason = f"the worker process ended {_ATTEMPTS} times ({how}); is there memory enough?"
        return ShardResult(shard=shard.name, error=f"{shard.source}: {reason}")

    def _ask(self, shard: Shard) -> bytes:
        """The worker's answer; nothing if it dies."""
        process = self._process or self._start()
        if process is None:
            return b""
        requests, answers = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        with suppress(OSError, ValueError):  # the latter for a pipe that `close` has closed
            requests.write(json.dumps(asdict(shard)).encode() + b"\n")
            requests.flush()
            line = answers.readline()
            if line.endswith(b"\n"):
                return line
        return b""

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start a worker and wait until it has its model; None if it died or we are to end."""
        with self._lock:
            if self._closed:
                return None
            process = self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, json.dumps(sys.path), self._work],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | ONE_THREAD,
            )
        ready = cast(IO[bytes], process.stdout).readline()
        if not ready:
            return None
        refusal = json.loads(ready)
        if refusal is not None:
            raise SightlineError(refusal)
        return process

    def _bury(self) -> str:
        """Clear a dead worker away; gives how it ended."""
        with self._lock:
            process = self._process
            self._end()
        code = 0 if process is None else process.returncode
        return f"by signal {-code}" if code < 0 else f"with code {code}"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # One that is dying closes its pipes a moment before it has a code.
        with suppress(subprocess.TimeoutExpired):
            process.wait(0 if self._closed else 1)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                cast(IO[bytes], pipe).close()


def _serve(description: str) -> None:
    """Be a worker: answer for shards until the pipe they come through is closed."""
    # Ctrl-C goes to the workers too, which leave it to the process that started them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    # Whatever a library prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(answer: bytes) -> None:
        answers.write(answer + b"\n")
        answers.flush()

    work = work_from_json(description)
    try:
        with work.opened() as unit:
            say(b"null")
            for line in sys.stdin.buffer:
                say(run_unit(unit, work, Shard(**json.loads(line))).to_json())
    except SightlineError as error:
        say(json.dumps(str(error)).encode())
    except BrokenPipeError:  # the driver was killed, and nobody listens
        os._exit(1)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even by kill -9: nobody waits for its work."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
