"""Files on this machine or in an object store, by one kind of name.

A place is a path, a `file://` address, or an address that pyarrow knows (`s3://`, `gs://`,
`hdfs://`) or fsspec. What is read from a store is copied to a scratch folder first, because
features are mapped into memory and tar files are sought in; what is written to one appears whole,
when its upload ends. Credentials and endpoints are those of pyarrow's file systems.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from sightline.files import write_atomically
from sightline.problems import MissingExtraError, SightlineError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
_COPY_BYTES = 1 << 20


def place_of(path: str | os.PathLike[str]) -> str:
    """The place that a path from the command line names: absolute, or an address.

    A path class turns `s3://bucket` into `s3:/bucket`; a file of such a name is no place of ours.
    """
    text = os.fspath(path)
    scheme = _ADDRESS.match(text)
    if scheme is None:
        return str(Path(text).absolute())
    if scheme[1] == "file":
        return "/" + text[scheme.end() :]
    return f"{scheme[1]}://{text[scheme.end() :]}".rstrip("/")


def is_remote(place: str) -> bool:
    """Whether a place is an address in a store."""
    return "://" in place


def joined(folder: str, name: str) -> str:
    """The place of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def files_in(folder: str) -> dict[str, int]:
    """The files of a folder by name, with their sizes; what lies in folders within it is not.

    Names that begin with `.` or `_` are somebody's notes, not data.
    """
    if not is_remote(folder):
        try:
            files = [file for file in Path(folder).iterdir() if not file.is_dir()]
        except OSError as error:
            raise SightlineError(f"{folder} cannot be read: {error.strerror}.") from error
        # What has no size cannot be read either, but who asks for it has to learn that.
        sizes = {file.name: size_of(str(file)) or 0 for file in files}
    else:
        from pyarrow import fs

        with _sentences(folder):
            system, root = _system(folder)
            infos = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
        sizes = {info.base_name: info.size for info in infos if info.is_file}
    return {name: sizes[name] for name in sorted(sizes) if not name.startswith((".", "_"))}


def size_of(place: str) -> int | None:
    """Bytes of a file; None where there is none."""
    if not is_remote(place):
        try:
            return Path(place).stat().st_size if Path(place).is_file() else None
        except OSError:
            return None
    with _sentences(place):
        system, path = _system(place)
        info = system.get_file_info(path)
    return info.size if info.is_file else None


def is_folder(place: str) -> bool:
    """Whether a place is a folder with something in it."""
    if not is_remote(place):
        return Path(place).is_dir()
    return size_of(place) is None and bool(files_in(place))


def read_bytes(place: str) -> bytes | None:
    """The content of a file; None where there is none."""
    if not is_remote(place):
        try:
            return Path(place).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SightlineError(f"{place} cannot be read: {error.strerror}.") from error
    if size_of(place) is None:
        return None
    with _sentences(place):
        system, path = _system(place)
        with system.open_input_stream(path) as file:
            data: bytes = file.read()
    return data


def write_bytes(place: str, data: bytes) -> None:
    """Make `data` the content of a file, in one step."""
    if not is_remote(place):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(Path(place), data)
        return
    with _sentences(place):
        system, path = _system(place)
        with system.open_output_stream(path) as file:
            file.write(data)


def upload(path: Path, place: str) -> None:
    """Copy a file of this machine to a store; it appears there when the last byte is sent."""
    with _sentences(place), path.open("rb") as source:
        system, target = _system(place)
        with system.open_output_stream(target) as file:
            shutil.copyfileobj(source, file, _COPY_BYTES)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is gone afterwards; TMPDIR says on which disk."""
    with tempfile.TemporaryDirectory(prefix="sightline-") as folder:
        yield Path(folder)


@contextmanager
def local_copy(place: str) -> Iterator[Path]:
    """A file or a folder as a path on this machine: itself, or a copy that is gone afterwards."""
    if not is_remote(place):
        yield Path(place)
        return
    with scratch_folder() as scratch:
        target = scratch / place.rpartition("/")[2]
        if size_of(place) is not None:
            _download(place, target)
        else:
            names = files_in(place)
            if not names:
                raise SightlineError(f"{place} cannot be read: there is nothing of that name.")
            target.mkdir()
            for name in names:
                _download(joined(place, name), target / name)
        yield target


def _download(place: str, target: Path) -> None:
    with _sentences(place):
        system, path = _system(place)
        with system.open_input_stream(path) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _COPY_BYTES)


@contextmanager
def _sentences(place: str) -> Iterator[None]:
    """Turn what a store refuses into a sentence that names the place."""
    try:
        yield
    except ImportError as error:
        if error.name and error.name.partition(".")[0] in ("pyarrow", "fsspec"):
            raise MissingExtraError(f"{place}: reading from a store", "parquet") from None
        # fsspec says by itself which package to install.
        needs = f"the package {error.name}" if error.name else f"more: {error}"
        raise SightlineError(f"{place}: its kind of store needs {needs}.") from None
    except SightlineError:
        raise
    except Exception as error:  # each kind of store has its own
        reason = str(error) or type(error).__name__
        raise SightlineError(f"{place} cannot be reached: {reason}.") from error


@lru_cache(maxsize=64)
def _root(start: str) -> tuple[Any, str]:
    from pyarrow import fs

    try:
        system, root = fs.FileSystem.from_uri(start)
    except ValueError:  # a scheme that pyarrow does not know
        import fsspec

        known, root = fsspec.core.url_to_fs(start)
        system = fs.PyFileSystem(fs.FSSpecHandler(known))
    return system, root.rstrip("/")


def _system(place: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    scheme, _, path = place.partition("://")
    bucket, _, rest = path.partition("/")
    # Once per bucket: for some stores it takes a question over the network.
    system, root = _root(f"{scheme}://{bucket}")
    return system, f"{root}/{rest}" if rest else root
