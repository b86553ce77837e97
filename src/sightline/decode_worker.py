"""What a worker process that decodes images runs, and what it and its pool have in common.

A worker imports this module and no more of the pool: its start is part of every run.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from PIL import AvifImagePlugin

from sightline.images import Interpolation, Limits, Status, decode

# A request: path (0) or content (1), whether another one belongs to it, shorter side or 0,
# interpolation, bytes that follow. An answer: the index of the status, bytes of the reason that
# follows, height and width of the pixels; these are in the shared memory if they fit, otherwise
# they follow the reason.
REQUEST = struct.Struct("<BBIBQ")
ANSWER = struct.Struct("<BIII")
STATUSES = list(Status)
INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)
REASON_BYTES = 1_000
READY = b"R"
# Waiting for a slow disk is not the decoder's fault, but must end as well.
WALL_SECONDS_PER_CPU_SECOND = 10
# Room for a few images with a shorter side of 256 pixels; only what is used takes memory.
_SHARED_BYTES = 1 << 22

Bytes = NDArray[np.uint8]


def shared_memory() -> int:
    """A file descriptor of memory that two processes can map, or -1 where there is none."""
    if sys.platform != "linux":
        return -1
    import fcntl

    try:
        descriptor = os.memfd_create("sightline", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:  # some sandboxes
        return -1
    try:
        os.ftruncate(descriptor, _SHARED_BYTES)
        # Could a worker that an image has taken over shrink it, reading it would crash the pool.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def map_shared(descriptor: int) -> Bytes:
    """The bytes of the shared memory; none where there is none."""
    if descriptor < 0:
        return np.empty(0, np.uint8)
    return np.frombuffer(mmap.mmap(descriptor, _SHARED_BYTES), np.uint8)


def rest(room: Bytes, pixels: Bytes | None) -> Bytes:
    """What is left of the shared memory once these pixels are there, if they fit."""
    size = 0 if pixels is None else pixels.size
    return room[size:] if size <= len(room) else room


def serve(limits_dict: dict[str, float], descriptor: int) -> None:
    """Be a worker: answer requests until the pipe they come through is closed."""
    limits = Limits(**limits_dict)  # type: ignore[arg-type]
    shared = room = map_shared(descriptor)
    requests = sys.stdin.buffer
    # Whatever a library prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _confine(limits)
    answers.write(READY)
    answers.flush()
    while header := requests.read(REQUEST.size):
        is_content, more, shorter_side, filter_, size = REQUEST.unpack(header)
        content = requests.read(size)
        source = content if is_content else Path(content.decode("utf-8", "surrogatepass"))
        _set_alarms(limits.seconds)
        decoded = decode(source, shorter_side or None, limits, INTERPOLATIONS[filter_])
        _set_alarms(0)
        reason = (decoded.reason or "").encode("utf-8", "replace")[:REASON_BYTES]
        height, width = (0, 0) if decoded.pixels is None else decoded.pixels.shape[:2]
        status = STATUSES.index(decoded.status)
        answers.write(ANSWER.pack(status, len(reason), height, width) + reason)
        if decoded.pixels is not None:
            pixels = decoded.pixels.reshape(-1)
            if len(pixels) <= len(room):
                room[: len(pixels)] = pixels
            else:
                answers.write(pixels.data)
        room = rest(room, decoded.pixels) if more else shared
        if not more:
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
        signal.setitimer(signal.ITIMER_REAL, seconds * WALL_SECONDS_PER_CPU_SECOND)
