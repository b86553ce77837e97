"""Writing samples to tar shards: the files of a sample share a number before the first dot."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from sightline.files import atomic_writer
from sightline.problems import SightlineError
from sightline.readers.tar_members import ARCHIVE_END, member_bytes

SUFFIX = ".tar"
#: Of one shard, about: large enough to be read at full speed.
SHARD_BYTES = 10**9

#: The files of a sample: what follows the number in the name, and the content.
SampleFiles = Iterable[tuple[str, bytes]]


def write_shard(samples: Iterable[SampleFiles], path: Path) -> int:
    """Write samples to one shard; gives their number. The file appears whole or not at all."""
    with atomic_writer(path) as file:
        count, _ = _fill(iter(samples), file, 0, None)
    return count


def write_shards(samples: Iterable[SampleFiles], folder: Path, size: int) -> int:
    """Write samples to shards of about `size` bytes in a new folder; gives their number.

    The folder appears whole or not at all.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise SightlineError(f"{folder} cannot be written: it exists and is not an empty folder.")
    target = folder.resolve()
    temporary = target.with_name(f".sightline-{secrets.token_hex(8)}.tmp")
    count = number = 0
    rest: Iterator[SampleFiles] | None = iter(samples)
    try:
        temporary.mkdir(parents=True)
        while rest is not None:
            with atomic_writer(temporary / f"{number:06d}{SUFFIX}") as file:
                count, rest = _fill(rest, file, count, size)
            number += 1
        temporary.replace(target)
    except OSError as error:
        raise SightlineError(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return count


def _fill(
    samples: Iterator[SampleFiles], file: IO[bytes], count: int, size: int | None
) -> tuple[int, Iterator[SampleFiles] | None]:
    """Fill one shard; gives how many samples there are by then and those still to come."""
    for files in samples:
        for name, data in files:
            # A number and not an id: an id may hold dots, slashes, anything.
            file.write(member_bytes(f"{count:09d}.{name}", data))
        count += 1
        if size is not None and file.tell() >= size and (following := next(samples, None)):
            file.write(ARCHIVE_END)
            return count, chain([following], samples)
    file.write(ARCHIVE_END)
    return count, None
