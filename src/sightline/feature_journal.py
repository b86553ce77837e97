"""A feature store while it grows, on a disk where a run may be killed at any moment.

New rows go to `<backbone>.npy.partial`; `journal.jsonl` says which file content each of them
belongs to, and is only written once the rows are on the disk. At the end both become part of the
store and go. Until then the store is as it was, and a run that was cut off goes on from the
journal: a row once journaled is never computed again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from sightline.backbones import Backbone
from sightline.features import FeatureError, FeatureStore
from sightline.files import atomic_writer, write_atomically
from sightline.images import Status

#: Work of at most so many seconds is lost to a kill; forcing data to the disk takes some 10 ms.
_COMMIT_SECONDS = 3.0
_JOURNAL = "journal.jsonl"
#: The sha256 of the image file that each row was computed from, a line per row.
_CONTENTS = "contents.sha256"
_COPIED_ROWS = 4096

Rows = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an image has no features."""

    status: Status
    reason: str


@dataclass(eq=False)
class FeatureJournal:
    """The rows that a store has and those that a run adds; a context manager.

    Everything is known by content, the sha256 of an image file, so that equal files share a row.
    """

    folder: Path
    backbone: Backbone
    #: The row of each content, and why some have none; grows with `add` and `fail`.
    rows: dict[str, int] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    #: What the finished store says.
    id2row: dict[str, int] = field(default_factory=dict)
    _stored: int = 0  # rows of the finished store
    _lines: list[bytes] = field(default_factory=list)  # of the journal, not yet written
    _committed: float = 0.0

    def __enter__(self) -> Self:
        """Read what there is; refuses a store that another backbone made, or that is in use."""
        name = self.backbone.name
        if name in ("", "features") or "/" in name or "\\" in name:
            raise FeatureError(f"{name!r} cannot be the name of a backbone: it names a file.")
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._journal = (self.folder / _JOURNAL).open("a+b")
            try:
                _lock(self._journal, self.folder)
                self._partial = (self.folder / f"{name}.npy.partial").open("a+b", buffering=0)
            except BaseException:
                self._journal.close()
                raise
        try:
            self._read()
        except BaseException:
            self._close()
            for file in (self._journal, self._partial):
                if not Path(file.name).stat().st_size:
                    Path(file.name).unlink()
            raise
        self._committed = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """Keep what was added, whatever ended the run."""
        try:
            if not self._journal.closed:
                self.commit()
        finally:
            self._close()

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, contents: Sequence[str], vectors: Rows) -> None:
        """Append a row for each content."""
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise FeatureError(
                f"{self.backbone.name} gives NaN, infinity or a number too large for float16 for "
                f"the image whose sha256 is {contents[bad[0]]}; are its weights damaged?"
            )
        data = np.ascontiguousarray(vectors).data.cast("B")
        with _writing(self.folder):
            # Nothing is buffered, so that the rows before a full disk are whole and can be kept.
            while data:
                data = data[self._partial.write(data) :]
        for content in contents:
            self.rows[content] = len(self.rows)
            self._lines.append(orjson.dumps({"sha256": content}))
        if time.monotonic() - self._committed >= _COMMIT_SECONDS:
            self.commit()

    def fail(self, content: str, failure: Failure) -> None:
        """Note that a content has no features."""
        self.failures[content] = failure
        record = {"sha256": content, "status": failure.status, "reason": failure.reason}
        self._lines.append(orjson.dumps(record))

    def commit(self) -> None:
        """Force everything to the disk: first the rows, then the lines that vouch for them."""
        with _writing(self.folder):
            if self._lines:
                _sync(self._partial)
                # Forgotten before they are written: what failed halfway must not be written twice.
                lines, self._lines = self._lines, []
                self._journal.write(b"\n".join([*lines, b""]))
                _sync(self._journal)
        self._committed = time.monotonic()

    def finish(self, id2row: Mapping[str, int]) -> None:
        """Make the rows part of the store, which then says `id2row`.

        Old rows stay where they are, so the order of the steps is what makes a kill harmless:
        between two of them the store is the old one, refuses to open, or lacks only new ids.
        """
        self.commit()
        shape = (len(self.rows), self.backbone.dimension)
        manifest = {**self.backbone.manifest(), "rows": shape[0], "dimension": shape[1]}
        if shape[0] > self._stored:
            contents = "".join(f"{content}\n" for content in self.rows).encode()
            write_atomically(self.folder / _CONTENTS, contents)
            with atomic_writer(self._matrix_path) as file:
                _write_header(file, shape)
                for data in self._all_rows():
                    file.write(data)
            _write_json(self.folder / "manifest.json", manifest)
        if shape[0] and id2row != self.id2row:
            _write_json(self.folder / "id2row.json", dict(id2row))
        self._close()
        with _writing(self.folder):
            # Without the journal the rows mean nothing; without the rows the journal would lie.
            Path(self._journal.name).unlink()
            Path(self._partial.name).unlink()

    @property
    def _matrix_path(self) -> Path:
        return self.folder / f"{self.backbone.name}.npy"

    def _all_rows(self) -> Iterator[bytes]:
        if self._stored:
            old = np.load(self._matrix_path, mmap_mode="r")
            for start in range(0, self._stored, _COPIED_ROWS):
                yield old[start : min(start + _COPIED_ROWS, self._stored)].tobytes()
        self._partial.seek(0)
        while data := self._partial.read(_COPIED_ROWS * 2 * self.backbone.dimension):
            yield data

    def _close(self) -> None:
        for file in (self._partial, self._journal):
            with suppress(OSError):  # a full disk: what is not committed is not needed
                file.close()

    # ---- what an earlier run left

    def _read(self) -> None:
        self._journal.seek(0)
        data = self._journal.read()
        # What follows the last line break was being written when the run was killed.
        whole = data.rfind(b"\n") + 1
        if not whole:
            self._read_store()
            self._start_journal()
            return
        try:
            header, *records = map(orjson.loads, data[:whole].splitlines())
            _check_same(self.folder / _JOURNAL, header, self.backbone)
            self._read_rows(header["stored"])
            self._read_records(records)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(f"{error} in it") from None
        with _writing(self.folder):
            self._journal.truncate(whole)
            # Files that the run was writing when it was killed; a matrix may have gigabytes.
            for left_over in self.folder.glob(".sightline-*.tmp"):
                left_over.unlink()

    def _damaged(self, what: str) -> FeatureError:
        return FeatureError(
            f"{self.folder / _JOURNAL} is damaged ({what}); delete it, and the images that it is "
            "about will be computed again."
        )

    def _read_store(self) -> None:
        """Take over a finished store, if there is one."""
        if not any(self.folder.glob("*.npy")):
            return
        store = FeatureStore.open(self.folder)
        _check_same(self.folder / "manifest.json", store.manifest or {}, self.backbone)
        self._read_rows(len(store))

    def _read_rows(self, count: int) -> None:
        """Know the first rows of the store; a run killed at its very end may have added more."""
        if not count:
            return
        try:
            contents = (self.folder / _CONTENTS).read_text().split()
            self.id2row = orjson.loads((self.folder / "id2row.json").read_bytes())
            matrix = np.load(self._matrix_path, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise FeatureError(
                f"{self.folder} is a feature store that nothing can be added to, because one of "
                f"its files cannot be read ({error}); choose another folder."
            ) from None
        if (
            min(len(contents), len(matrix)) < count
            or matrix.dtype != np.float16
            or matrix.shape[1] != self.backbone.dimension
        ):
            raise FeatureError(
                f"{self.folder}: {_CONTENTS} and {self._matrix_path.name} do not belong together; "
                "choose another folder."
            )
        self._stored = count
        self.rows = {content: row for row, content in enumerate(contents[:count])}

    def _read_records(self, records: list[dict[str, Any]]) -> None:
        """Know the rows that were journaled; what was written but not journaled is cut off."""
        for record in records:
            content = record["sha256"]
            if "status" in record:
                self.failures[content] = Failure(Status(record["status"]), record["reason"])
            else:
                self.rows[content] = len(self.rows)
        expected = (len(self.rows) - self._stored) * 2 * self.backbone.dimension
        if self._partial.seek(0, os.SEEK_END) < expected:
            raise self._damaged(f"it has more rows than {self._partial.name}")
        with _writing(self.folder):
            self._partial.truncate(expected)

    def _start_journal(self) -> None:
        with _writing(self.folder):
            self._partial.truncate(0)
            self._journal.truncate(0)
            header = {**self.backbone.manifest(), "stored": self._stored}
            self._journal.write(orjson.dumps(header) + b"\n")
            _sync(self._journal)


def _check_same(file: Path, made: Mapping[str, Any], backbone: Backbone) -> None:
    """Refuse to mix the features of two backbones, or of two ways to use one."""
    for key, wanted in backbone.manifest().items():
        if made.get(key) != wanted:
            raise FeatureError(
                f"{file}: the features there were made with {key} {made.get(key)!r}, these would "
                f"be with {wanted!r}; a store holds one kind, so choose another folder."
            )


def _write_header(file: IO[bytes], shape: tuple[int, int]) -> None:
    header = {"descr": "<f2", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_atomically(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _lock(file: IO[bytes], folder: Path) -> None:
    """Keep a second run out, where the system can (not Windows); a kill unlocks."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FeatureError(f"Another run is writing features to {folder}.") from None
    except OSError:  # some network file systems have no locks
        return


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn a full disk or a folder without permission into a sentence."""
    try:
        yield
    except NotADirectoryError as error:
        raise FeatureError(
            f"{folder}: features cannot be written there: {folder.parent} is a file; name a folder "
            "beside it."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise FeatureError(
            f"{folder}: features cannot be written there: {reason}. What was finished is kept; "
            "run the command again to go on."
        ) from error
