"""Worker processes that read uploads, which nobody vouches for.

A worker has the readers imported and reads one upload after the other, under limits of memory and
CPU time that the kernel keeps; PDF, DOCX and EPUB files it hands to a child of its own
(`isolation`). A worker whose request is cancelled, out of time or done for by its file is killed
with all its children and replaced. Answers are JSON, checked for their types.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from sightline.documents import FieldError
from sightline.isolation import counter_of
from sightline.problems import SightlineError
from sightline.service.limits import ServiceLimits
from sightline.service.upload_reading import ReadUpload, Upload, read_upload

# As in `decode_pool`: not multiprocessing, which would run the caller's main module once more.
_PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from sightline.service.reader_pool import _serve
_serve(json.loads(sys.argv[2]))
"""
_LENGTH = struct.Struct("<Q")
_MAX_ANSWER = 64 * 2**20
_MEMORY_BYTES = 1_000_000_000
_CPU_SECONDS = 10.0
_OUT_OF_MEMORY = 77  # an exit code that nothing else has
#: Bytes of one file that a worker may write.
_MOST_WRITTEN = 512 * 2**20


class StorageError(SightlineError):
    """There is no room on the disk, which is not the upload's fault."""


class ReaderPool:
    """So many uploads are read at a time; the others wait."""

    def __init__(self, workers: int, limits: ServiceLimits) -> None:
        self.limits = limits
        self._idle: asyncio.LifoQueue[_Reader | None] = asyncio.LifoQueue()
        for _ in range(workers):
            self._idle.put_nowait(None)
        self._alive: set[_Reader] = set()

    async def start(self) -> None:
        """Start the first worker, so that the first upload is read at once."""
        worker = await self._idle.get()
        try:
            worker = worker or await self._start()
        finally:
            self._idle.put_nowait(worker)

    async def read(self, upload: Upload) -> ReadUpload:
        """Read an upload; raises `FieldError`, or `StorageError`."""
        worker = await self._idle.get()
        kept: _Reader | None = None
        try:
            worker = worker or await self._start()
            answer = await worker.ask(upload)
            kept = worker
            return _read_answer(answer)
        except (EOFError, OSError):
            code = await worker.end() if worker else None
            raise FieldError("file", _ending(code)) from None
        finally:
            if worker is not None and kept is None:
                worker.kill()
                self._alive.discard(worker)
            self._idle.put_nowait(kept)

    async def close(self) -> None:
        """End all workers, whatever they are doing."""
        for worker in self._alive:
            worker.kill()
        await asyncio.gather(*(worker.end() for worker in self._alive))
        self._alive.clear()

    async def _start(self) -> _Reader:
        arguments = [json.dumps(sys.path), json.dumps(asdict(self.limits))]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _PROGRAM, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            # A group of its own, so that its children can be killed with it.
            start_new_session=True,
        )
        worker = _Reader(process)
        self._alive.add(worker)
        return worker


class _Reader:
    """One worker process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def ask(self, upload: Upload) -> bytes:
        """Have an upload read; OSError or EOFError if the worker dies of it."""
        requests, answers = self.process.stdin, self.process.stdout
        assert requests is not None and answers is not None
        requests.write(json.dumps(asdict(upload)).encode() + b"\n")
        await requests.drain()
        (length,) = _LENGTH.unpack(await answers.readexactly(_LENGTH.size))
        if length > _MAX_ANSWER:
            raise EOFError
        return await answers.readexactly(length)

    def kill(self) -> None:
        """End the process and its children at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> int:
        """Wait for the process to end; gives its code."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                return await self.process.wait()
        self.kill()
        return await self.process.wait()


def _read_answer(answer: bytes) -> ReadUpload:
    import msgspec

    try:
        record = json.loads(answer)
        if "storage" in record:
            raise StorageError(f"The upload cannot be stored: {record['storage']}.")
        if "error" in record:
            field, reason = record["error"]
            raise FieldError(str(field), str(reason)[:1000])
        return msgspec.convert(record, ReadUpload, dec_hook=counter_of)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FieldError("file", "it confuses its reader: the file is damaged or hostile") from None


def _ending(code: int | None) -> str:
    """Say why there is no answer."""
    if code in (-signal.SIGPROF, -signal.SIGXCPU):
        return f"reading it takes longer than {_CPU_SECONDS:g} s of CPU time, the limit"
    if code in (_OUT_OF_MEMORY, -signal.SIGKILL):
        return f"reading it takes more memory than {_MEMORY_BYTES / 1e9:g} GB, the limit"
    return f"it makes its reader crash (code {code}): the file is damaged or hostile"


# ---- the worker's side


def _serve(limits_dict: dict[str, Any]) -> None:
    """Be a worker: read uploads until the pipe they come through is closed."""
    limits = ServiceLimits(**limits_dict)
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    _confine()
    for line in requests:
        signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
        answer = _answer(Upload(**json.loads(line)), limits)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(_LENGTH.pack(len(answer)))
        answers.write(answer)
        answers.flush()


def _answer(upload: Upload, limits: ServiceLimits) -> bytes:
    import msgspec

    try:
        read = read_upload(upload, limits)
        return json.dumps(msgspec.to_builtins(read)).encode()
    except FieldError as error:
        return json.dumps({"error": [error.field or "file", error.reason]}).encode()
    except OSError as error:
        return json.dumps({"storage": error.strerror or str(error)}).encode()
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)


def _confine() -> None:
    """Limit the memory of this process and its children, where the system can."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_WRITTEN, _MOST_WRITTEN))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
