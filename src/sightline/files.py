"""Writing a file so that a crash or a full disk never leaves half of it.

The data goes to a temporary file in the same folder, is forced to the disk, and then takes the
name of the old file in one step: a reader sees the old file or the new one, never a mixture.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sightline.problems import SightlineError


def write_atomically(path: Path, data: bytes) -> None:
    """Make `data` the content of `path`, or leave the file as it was."""
    with atomic_writer(path) as handle:
        handle.write(data)


@contextmanager
def atomic_writer(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of `path` only if the block succeeds."""
    # A link keeps pointing where it points: what it points to is replaced.
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise SightlineError(f"{path} cannot be written: it exists and is not a regular file.")
    temporary = target.with_name(f".sightline-{secrets.token_hex(8)}.tmp")
    try:
        # Not tempfile: its files are private to the user, these get the usual permissions.
        with temporary.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        # A failed write names no file; an error that names another file is the caller's own.
        if error.filename not in (None, str(temporary)):
            raise
        reason = error.strerror or str(error)
        raise SightlineError(
            f"{path} cannot be written: {reason}. What stood there before is unchanged."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a writer that was killed; nobody may be writing there."""
    for file in folder.glob(".sightline-*.tmp"):
        file.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Force the new name itself to the disk, where the system can (Windows cannot)."""
    # The file is already in its place; some network file systems refuse this one step.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
