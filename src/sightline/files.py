"""Writing a file so that a crash or a full disk never leaves half of it, and reading JSON.

The data goes to a temporary file in the same folder, is forced to the disk, and then takes the
name of the old file in one step: a reader sees the old file or the new one, never a mixture.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sightline.problems import SightlineError

# Controls beyond ASCII's and marks of direction; JSON escapes the others itself.
_OBEYED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def write_atomically(path: Path, data: bytes) -> None:
    """Make `data` the content of `path`, or leave the file as it was."""
    with atomic_writer(path) as handle:
        handle.write(data)


def lies_within(file: Path, root: Path) -> bool:
    """Say whether a file lies in a folder, wherever links lead to."""
    try:
        return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError):  # such as a name that no file can have
        return False


def check_place(path: Path) -> None:
    """Refuse a place where no file can be; a command may ask before its work begins."""
    if str(path) == "-":
        raise SightlineError(
            "- is no file here; leave -o out for the standard output, or name a file."
        )
    if path.is_dir():
        raise SightlineError(f"{path} cannot be written: it is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise SightlineError(f"{path} cannot be written: it exists and is not a regular file.")
    if not path.resolve().parent.is_dir():
        raise SightlineError(
            f"{path} cannot be written: there is no folder {path.parent}; make it first."
        )


@contextmanager
def atomic_writer(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of `path` only if the block succeeds."""
    check_place(path)
    # A link keeps pointing where it points: what it points to is replaced.
    target = path.resolve()
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


def read_json_object(path: Path, kind: type[SightlineError] = SightlineError) -> dict[str, Any]:
    """What a file of one JSON object says; anything else is an error of this kind."""
    import orjson

    try:
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise kind(f"{path} cannot be read: {error.strerror}.") from error
    except orjson.JSONDecodeError as error:
        raise kind(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise kind(f"{path} must hold a JSON object.")
    return content


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


def write_out(pieces: Iterable[bytes]) -> None:
    """Write text in UTF-8 to standard output.

    On a terminal, what it would obey is escaped as JSON does; its colours, and breaks of lines, are
    none of a stranger's.
    """
    is_terminal = sys.stdout.isatty()
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(_harmless(piece) if is_terminal else piece)
    sys.stdout.buffer.flush()


def _harmless(piece: bytes) -> bytes:
    text = piece.decode("utf-8", "surrogatepass")
    escaped = _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return escaped.encode("utf-8", "surrogatepass")
