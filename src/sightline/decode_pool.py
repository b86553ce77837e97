"""Worker processes that decode images which may crash, hang or swell a decoder.

Each worker is a plain interpreter that has imported Pillow and numpy and nothing else of size. It
decodes one image at a time under limits of memory and time that the kernel enforces, and answers
with raw pixels over a pipe; nothing that comes back is ever unpickled. A worker that dies costs
its image and is replaced.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self, cast, get_args

import numpy as np
from PIL import AvifImagePlugin

from sightline.images import DEFAULT_LIMITS, Decoded, Interpolation, Limits, Status, decode
from sightline.problems import SightlineError

# A request: path (0) or content (1), shorter side or 0, interpolation, bytes that follow. An
# answer: the index of the status, bytes of the reason that follows, height and width of the pixels
# that follow it.
_REQUEST = struct.Struct("<BIBQ")
_ANSWER = struct.Struct("<BIII")
_STATUSES = list(Status)
_INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)
_Target = tuple[int, Interpolation]
_REASON_BYTES = 1_000
_READY = b"R"

# What a worker runs. Not multiprocessing: that would run the caller's main module once more in
# each worker, with all that it imports. Ctrl-C goes to the workers too, which leave it to the pool.
_PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from sightline.decode_pool import _serve
_serve(json.loads(sys.argv[2]))
"""

# Waiting for a slow disk is not the decoder's fault, but must end as well.
_WALL_SECONDS_PER_CPU_SECOND = 10
# The signals by which a worker ends when its time is up.
_TIME_IS_UP = {-signal.SIGPROF, -signal.SIGALRM} if sys.platform != "win32" else set()
# A worker may be killed by someone else, such as the administrator, even before it is ready.
_ATTEMPTS = 2


class DecodePool:
    """Decodes images in worker processes, in order, each under `limits`; a context manager.

    At most `ahead` images per worker are being decoded or wait to be taken, which bounds the
    memory and keeps the workers busy while the caller computes: `ahead * workers` should be
    no less than the caller's batch. Memory and time are limited where the system can (not Windows).
    """

    def __init__(
        self, workers: int | None = None, limits: Limits = DEFAULT_LIMITS, ahead: int = 4
    ) -> None:
        self.workers = workers or _cpus()
        self.limits = limits
        self.ahead = ahead
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers at once, whatever they are doing."""
        with self._lock:
            threads, self._threads = self._threads, None
            for worker in self._alive:
                worker.process.kill()
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        for worker in self._alive:
            worker.end()
        self._alive.clear()

    def decode_many(
        self,
        sources: Iterable[Path | bytes],
        shorter_side: int | None = None,
        interpolation: Interpolation = "bicubic",
    ) -> Iterator[Decoded]:
        """Decode the images one by one as `images.decode` would, in their order."""
        waiting: deque[Future[Decoded]] = deque()
        try:
            for source in sources:
                waiting.append(self._submit(source, (shorter_side or 0, interpolation)))
                if len(waiting) >= self.ahead * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _submit(self, source: Path | bytes, target: _Target) -> Future[Decoded]:
        if self._threads is None:
            raise RuntimeError("a DecodePool decodes only inside its `with` block")
        return self._threads.submit(self._decode, source, target)

    def _decode(self, source: Path | bytes, target: _Target) -> Decoded:
        """Have one image decoded; runs in a thread, which does nothing but wait."""
        if isinstance(source, bytes) and len(source) > self.limits.file_bytes:
            return decode(source, None, self.limits)  # refused at a glance, not worth sending
        worker = self._places.get()
        code: int | None = None
        try:
            for _ in range(_ATTEMPTS):
                worker = worker or self._start()
                try:
                    return worker.ask(source, target)
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
    """One process and the two pipes to it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        arguments = [json.dumps(sys.path), json.dumps(asdict(limits))]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Pillow's C libraries print to it what they think of a file.
            stderr=subprocess.DEVNULL,
            # A thread pool for linear algebra would only take address space.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        self.requests = cast(io.BufferedWriter, self.process.stdin)
        self.answers = cast(io.BufferedReader, self.process.stdout)

    def is_ready(self) -> bool:
        """Wait until the worker has started, or has failed to."""
        return self.answers.read(1) == _READY

    def ask(self, source: Path | bytes, target: _Target) -> Decoded:
        """Have an image decoded; OSError or EOFError if the worker dies of it."""
        is_content = isinstance(source, bytes)
        content = source if isinstance(source, bytes) else _path_bytes(source)
        side, interpolation = target
        filter_ = _INTERPOLATIONS.index(interpolation)
        self.requests.write(_REQUEST.pack(is_content, side, filter_, len(content)))
        self.requests.write(content)
        self.requests.flush()
        return self._receive()

    def _receive(self) -> Decoded:
        status, reason_bytes, height, width = _ANSWER.unpack(self._read(_ANSWER.size))
        # A damaged image might turn the worker's own memory upside down: take nothing on trust.
        if status >= len(_STATUSES) or height * width > self.limits.pixels:
            raise _NonsenseError
        if _STATUSES[status] is not Status.ok:
            reason = self._read(min(reason_bytes, _REASON_BYTES)).decode("utf-8", "replace")
            return Decoded(None, _STATUSES[status], reason)
        pixels = np.empty((height, width, 3), np.uint8)
        if self.answers.readinto(pixels.reshape(-1).data) != pixels.size:
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
        most = f"{limits.seconds * _WALL_SECONDS_PER_CPU_SECOND:g} s"
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


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _serve(limits_dict: dict[str, float]) -> None:
    """Be a worker: answer requests until the pipe they come through is closed."""
    limits = Limits(**limits_dict)  # type: ignore[arg-type]
    requests = sys.stdin.buffer
    # Whatever a library prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _confine(limits)
    answers.write(_READY)
    answers.flush()
    while header := requests.read(_REQUEST.size):
        is_content, shorter_side, filter_, size = _REQUEST.unpack(header)
        content = requests.read(size)
        source = content if is_content else Path(content.decode("utf-8", "surrogatepass"))
        _set_alarms(limits.seconds)
        decoded = decode(source, shorter_side or None, limits, _INTERPOLATIONS[filter_])
        _set_alarms(0)
        reason = (decoded.reason or "").encode("utf-8", "replace")[:_REASON_BYTES]
        height, width = (0, 0) if decoded.pixels is None else decoded.pixels.shape[:2]
        status = _STATUSES.index(decoded.status)
        answers.write(_ANSWER.pack(status, len(reason), height, width) + reason)
        if decoded.pixels is not None:
            answers.write(decoded.pixels.reshape(-1).data)
        answers.flush()


def _confine(limits: Limits) -> None:
    """Limit the memory of this process, and have AVIF decoded in one thread."""
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Where less is allowed already, or the system knows no such limit (macOS), leave it.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))


def _set_alarms(seconds: float) -> None:
    """Have the kernel end this process after so much CPU time, or ten times as much on the wall."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * _WALL_SECONDS_PER_CPU_SECOND)
