"""What this machine gives to a process: cores, memory, isolation of child processes, folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_CONTROL_GROUP = Path("/sys/fs/cgroup")
# A child that may take some memory and time, and tries to take more.
_GREEDY = """
import resource, signal, sys
resource.setrlimit(resource.RLIMIT_AS, (500_000_000, 500_000_000))
try:
    bytearray(2_000_000_000)
except MemoryError:
    sys.stdout.write("memory")
    sys.stdout.flush()
signal.setitimer(signal.ITIMER_PROF, 0.05)
while True:
    pass
"""
#: Seconds; the child ends by itself after a twentieth of CPU time.
_PATIENCE = 20.0


def bound_cores() -> int:
    """Cores that this process is bound to: as many as it may start workers for."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def usable_cores() -> float:
    """Cores that this process may use: those it is bound to, and the quota of its container."""
    quota = _quota()
    return bound_cores() if quota is None else min(bound_cores(), quota)


def peak_memory_bytes() -> int | None:
    """The most memory that this process has held so far, where the system says it."""
    if sys.platform == "win32":
        return None
    import resource

    # Kilobytes on Linux, bytes on macOS.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _quota() -> float | None:
    """Cores that the control group grants, under either version of Linux's control groups."""
    with suppress(OSError, ValueError):
        share, period = (_CONTROL_GROUP / "cpu.max").read_text().split()
        return None if share == "max" else int(share) / int(period)
    with suppress(OSError, ValueError):
        share = (_CONTROL_GROUP / "cpu" / "cpu.cfs_quota_us").read_text()
        period = (_CONTROL_GROUP / "cpu" / "cpu.cfs_period_us").read_text()
        return None if int(share) < 0 else int(share) / int(period)
    return None


def usable_memory() -> int | None:
    """Bytes of memory that are free for this process, where the system tells (Linux)."""
    limits = []
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        limits.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):
        most = int((_CONTROL_GROUP / "memory.max").read_text())
        limits.append(most - int((_CONTROL_GROUP / "memory.current").read_text()))
    return max(0, min(limits)) if limits else None


def limits_that_hold() -> set[str]:
    """Which limits the kernel keeps for child processes: "memory", "time"."""
    if sys.platform == "win32":
        return set()
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _GREEDY],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return {"memory"} if late.stdout else set()
    except OSError:
        return set()
    held = {"memory"} if done.stdout else set()
    return held | ({"time"} if done.returncode == -signal.SIGPROF else set())


def is_writable(folder: Path) -> bool:
    """Whether files can be written to a folder, or to the one that it would be made in."""
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"sightline")
    except OSError:
        return False
    return True
