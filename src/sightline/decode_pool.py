"""Worker processes that decode images which may crash, hang or swell a decoder.

Each worker (`decode_worker`) is a plain interpreter with Pillow, numpy and nothing else of size. It
decodes one image at a time under limits of memory and time that the kernel enforces, and answers
with raw pixels, in memory that it shares with this process where the system can (Linux) or over a
pipe; nothing that comes back is ever unpickled. A worker that dies costs its image and is replaced.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Self, cast

import numpy as np

from sightline.decode_worker import (
    ANSWER,
    INTERPOLATIONS,
    READY,
    REASON_BYTES,
    REQUEST,
    STATUSES,
    WALL_SECONDS_PER_CPU_SECOND,
    Bytes,
    map_shared,
    rest,
    shared_memory,
)
from sightline.images import DEFAULT_LIMITS, Decoded, Interpolation, Limits, Status, decode
from sightline.machine import bound_cores
from sightline.problems import SightlineError

_Target = tuple[int, Interpolation]

# What a worker runs. Not multiprocessing: that would run the caller's main module once more in
# each worker, with all that it imports. Ctrl-C goes to the workers too, which leave it to the pool.
_PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from sightline.decode_worker import serve
serve(json.loads(sys.argv[2]), int(sys.argv[3]))
"""

# The signals by which a worker ends when its time is up.
_TIME_IS_UP = {-signal.SIGPROF, -signal.SIGALRM} if sys.platform != "win32" else set()
# A worker may be killed by someone else, such as the administrator, even before it is ready.
_ATTEMPTS = 2


class DecodePool:
    """Decodes images in worker processes, in order, each under `limits`; a context manager.

    At most `ahead` images per worker are being decoded or wait to be taken, which bounds the
    memory and keeps the workers busy while the caller computes: `ahead * workers` should be
    no less than the caller's batch. A worker is given `together` files at a time; waking it once
    for several takes less CPU time, but they come late where there are few.
    Memory and time are limited where the system can (not Windows).
    """

    def __init__(
        self,
        workers: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        ahead: int = 4,
        together: int = 1,
    ) -> None:
        self.workers = workers or bound_cores()
        self.limits = limits
        self.ahead = ahead
        self.together = together
        self._lock = threading.Lock()
        self._alive: set[_Worker] = set()
        # Each place holds an idle worker, or None where one has to be started.
        self._places: SimpleQueue[_Worker | None] = SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(self.workers, "decode")
        self._places = SimpleQueue()
        for _ in range(self.workers):
            self._places.put(None)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers at once, whatever they are doing."""
        with self._lock:
            threads, self._threads = self._threads, None
            for worker in self._alive:
                worker.process.kill()
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        with self._lock:
            # A second Ctrl-C may have ended the wait above, and threads still bury workers.
            left, self._alive = self._alive, set()
        for worker in left:
            worker.end()

    def decode_many(
        self,
        sources: Iterable[Path | bytes],
        shorter_side: int | None = None,
        interpolation: Interpolation = "bicubic",
    ) -> Iterator[Decoded]:
        """Decode the images one by one as `images.decode` would, in their order."""
        waiting: deque[Future[list[Decoded]]] = deque()
        most = self.ahead * self.workers // self.together
        remaining = iter(sources)
        try:
            while group := list(islice(remaining, self.together)):
                waiting.append(self._submit(group, (shorter_side or 0, interpolation)))
                if len(waiting) >= most:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _submit(self, group: list[Path | bytes], target: _Target) -> Future[list[Decoded]]:
        if self._threads is None:
            raise RuntimeError("a DecodePool decodes only inside its `with` block")
        return self._threads.submit(self._decode_group, group, target)

    def _decode_group(self, group: list[Path | bytes], target: _Target) -> list[Decoded]:
        """Have images decoded; runs in a thread, which does nothing but wait."""
        # Contents go one by one: several might not fit into the memory of a worker.
        if len(group) > 1 and not any(isinstance(source, bytes) for source in group):
            worker = self._places.get()
            try:
                worker = worker or self._start()
                return worker.ask(group, target)
            except (OSError, EOFError, _NonsenseError):
                # One by one it will turn out which of them it was.
                if worker is not None:
                    self._bury(worker)
                worker = None
            finally:
                self._places.put(worker)
        return [self._decode(source, target) for source in group]

    def _decode(self, source: Path | bytes, target: _Target) -> Decoded:
        """Have one image decoded, and find out what is wrong if its worker fails."""
        if isinstance(source, bytes) and len(source) > self.limits.file_bytes:
            return decode(source, None, self.limits)  # refused at a glance, not worth sending
        worker = self._places.get()
        code: int | None = None
        try:
            for _ in range(_ATTEMPTS):
                worker = worker or self._start()
                try:
                    return worker.ask([source], target)[0]
                except (OSError, EOFError):
                    code = self._bury(worker, grace=1)
                except _NonsenseError:
                    self._bury(worker)
                worker = None
                if code is not None and code in _TIME_IS_UP:
                    return _timed_out(code, self.limits)
                # Otherwise once more: the image need not be what the worker died of.
            return _crashed(code)
        finally:
            self._places.put(worker)

    def _start(self) -> _Worker:
        for _ in range(_ATTEMPTS):
            with self._lock:
                if self._threads is None:
                    raise RuntimeError("the DecodePool was closed while it decoded")
                worker = _Worker(self.limits)
                self._alive.add(worker)
            if worker.is_ready():
                return worker
            code = self._bury(worker, grace=1)
        raise SightlineError(
            f"A worker process for decoding images cannot start (it ended with code {code}); "
            f"is {self.limits.memory_bytes:,} bytes too little memory for it?"
        )

    def _bury(self, worker: _Worker, grace: float = 0) -> int:
        with self._lock:
            self._alive.discard(worker)
        return worker.end(grace)


class _NonsenseError(Exception):
    """A worker answers what none should."""


class _Worker:
    """One process, the two pipes to it and the memory shared with it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        descriptor = shared_memory()
        try:
            self.shared = map_shared(descriptor)
            self._begin(descriptor)
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _begin(self, descriptor: int) -> None:
        arguments = [json.dumps(sys.path), json.dumps(asdict(self.limits)), str(descriptor)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Pillow's C libraries print to it what they think of a file.
            stderr=subprocess.DEVNULL,
            # A thread pool for linear algebra would only take address space.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            pass_fds=(descriptor,) if descriptor >= 0 else (),
        )
        self.requests = cast(io.BufferedWriter, self.process.stdin)
        self.answers = cast(io.BufferedReader, self.process.stdout)

    def is_ready(self) -> bool:
        """Wait until the worker has started, or has failed to."""
        return self.answers.read(1) == READY

    def ask(self, group: list[Path | bytes], target: _Target) -> list[Decoded]:
        """Have images decoded; OSError or EOFError if the worker dies of one."""
        side, filter_ = target[0], INTERPOLATIONS.index(target[1])
        for left, source in zip(reversed(range(len(group))), group, strict=True):
            is_content = isinstance(source, bytes)
            content = source if isinstance(source, bytes) else _path_bytes(source)
            self.requests.write(REQUEST.pack(is_content, left > 0, side, filter_, len(content)))
            self.requests.write(content)
        self.requests.flush()
        results: list[Decoded] = []
        room = self.shared
        for _ in group:
            result = self._receive(room)
            results.append(result)
            room = rest(room, result.pixels)
        return results

    def _receive(self, room: Bytes) -> Decoded:
        """Take an answer, whose pixels are at the beginning of the shared room if they fit."""
        status, reason_bytes, height, width = ANSWER.unpack(self._read(ANSWER.size))
        # A damaged image might turn the worker's own memory upside down: take nothing on trust.
        if status >= len(STATUSES) or height * width > self.limits.pixels:
            raise _NonsenseError
        if STATUSES[status] is not Status.ok:
            reason = self._read(min(reason_bytes, REASON_BYTES)).decode("utf-8", "replace")
            return Decoded(None, STATUSES[status], reason)
        pixels = np.empty((height, width, 3), np.uint8)
        if pixels.size <= len(room):
            pixels.reshape(-1)[:] = room[: pixels.size]
        elif self.answers.readinto(pixels.reshape(-1).data) != pixels.size:
            raise EOFError
        return Decoded(pixels, Status.ok)

    def _read(self, size: int) -> bytes:
        data = self.answers.read(size)
        if len(data) != size:
            raise EOFError
        return data

    def end(self, grace: float = 0) -> int:
        """Kill the process if it still runs after the grace; gives the code by which it ended."""
        # One that is dying closes its pipes a moment before it has a code.
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(grace)
        self.process.kill()
        code = self.process.wait()
        for pipe in (self.requests, self.answers):
            with suppress(OSError):  # what was not yet sent has nowhere to go
                pipe.close()
        return code


def _timed_out(code: int, limits: Limits) -> Decoded:
    most = f"{limits.seconds:g} s of CPU time"
    if sys.platform != "win32" and code == -signal.SIGALRM:
        most = f"{limits.seconds * WALL_SECONDS_PER_CPU_SECOND:g} s"
    return Decoded(None, Status.timeout, f"Decoding takes longer than {most}.")


def _crashed(code: int | None) -> Decoded:
    """Say how a worker died, by its exit code; None if it had to be killed for its answer."""
    if code is None:
        reason = "The image confuses the decoder, which answers nonsense."
        return Decoded(None, Status.undecodable, reason)
    if sys.platform != "win32" and code == -signal.SIGKILL:
        reason = "Decoding was killed twice by the system, which does so when memory runs out."
        return Decoded(None, Status.too_large, reason)
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Decoded(None, Status.undecodable, f"The image makes the decoder crash ({how}).")


def _path_bytes(path: Path) -> bytes:
    """Encode any path, even one that no file can have, as a worker in another folder sees it."""
    return str(Path(path).absolute()).encode("utf-8", "surrogatepass")
