"""The feature store: one vector per image on disk, made once and read by row.

A store is a folder with `<backbone>.npy`, a row per image, `id2row.json`, which says whose row
it is, and `manifest.json`, which says how the vectors were made. The paper's release, with
`features.npy` and no manifest, is one too.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shown
from typing import IO, Any

import numpy as np
import orjson
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sightline.files import atomic_writer, read_json_object
from sightline.problems import SightlineError

# The paper's name for the matrix, which says nothing about the backbone.
_PAPER_NAME = "features"
_LARGEST_DIMENSION = 1 << 24  # a store without rows may claim any
# So many rows are handled at a time: 650 kB of 1280 float16 numbers stay in the processor's
# cache, which makes gathering all of COCO's 1.6 times as fast as 4096 rows do.
_CHUNK_ROWS = 256
# Every float16 as float32. Looking numbers up is three times as fast as numpy's conversion,
# which stumbles over the many zeros of features (measured on COCO's, 36 % zeros).
_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


class FeatureError(SightlineError):
    """A feature store is missing, damaged, or does not match its own description."""


@dataclass(frozen=True, eq=False)
class FeatureStore:
    """The features of a corpus's images; the matrix stays on disk until rows are asked for."""

    folder: Path
    backbone: str | None
    manifest: dict[str, Any] | None
    matrix: NDArray[Any]
    id2row: Mapping[str, int]

    @classmethod
    def open(cls, folder: str | Path) -> FeatureStore:
        """Check a store and map its matrix; nothing but the ids is read into memory."""
        folder = Path(folder)
        if not folder.is_dir():
            raise FeatureError(f"{folder} is not a folder; expected a feature store.")
        manifest = _read_manifest(folder)
        path = _matrix_path(folder, manifest)
        matrix = _map_matrix(path)
        _check_manifest(folder, manifest, matrix)
        named = path.stem if path.stem != _PAPER_NAME else None
        backbone = named if manifest is None else manifest.get("backbone", named)
        return cls(folder, backbone, manifest, matrix, _read_id2row(folder, len(matrix)))

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.matrix)

    @staticmethod
    def image_id(image: str) -> str:
        """Id of an image: its file name without folder and extension."""
        name = re.split(r"[/\\]", image)[-1]
        return name.rpartition(".")[0] or name

    def find(self, image: str) -> int | None:
        """Row of an image, given by id or by path; None if the store does not have it."""
        row = self.id2row.get(image)
        return self.id2row.get(self.image_id(image)) if row is None else row

    def rows(self, images: Sequence[str]) -> NDArray[np.int64]:
        """Row of each image, -1 where the store does not have it."""
        found = (self.find(image) for image in images)
        return np.array([-1 if row is None else row for row in found], dtype=np.int64)

    def absence(self, image: str) -> tuple[str, str]:  # noqa: ARG002
        """Status and reason of an image that has no row."""
        return "missing", f"no row in the features {self.folder}"

    def vectors(self, rows: ArrayLike) -> NDArray[np.float32]:
        """Vectors of the given rows, in their order."""
        rows = self._checked(rows)
        # In the order of the file a disk reads on instead of seeking; in memory it costs little.
        order = np.argsort(rows, kind="stable")
        result = np.empty((len(rows), self.dimension), dtype=np.float32)
        for start in range(0, len(rows), _CHUNK_ROWS):
            part = order[start : start + _CHUNK_ROWS]
            result[part] = _as_float32(np.asarray(self.matrix[rows[part]]))
        return result

    def non_finite(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Those of the given rows whose vector holds NaN or infinity."""
        rows = self._checked(rows)
        bad = np.zeros(len(rows), dtype=bool)
        for start in range(0, len(rows), _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            bad[part] = ~np.isfinite(self.matrix[rows[part]]).all(axis=1)
        return rows[bad]

    def _checked(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Refuse rows outside the matrix: -1, a missing image, would be the last row."""
        checked = np.asarray(rows, dtype=np.int64)
        if len(checked) and (checked.min() < 0 or checked.max() >= len(self)):
            raise IndexError(f"rows must be within 0 to {len(self) - 1}; -1 is a missing image")
        return checked


def features_beside(folder: Path) -> Path | None:
    """The feature store that comes with the documents of a folder, if any."""
    if (folder / "features").is_dir():
        return folder / "features"
    if all((folder / name).is_file() for name in ("id2row.json", f"{_PAPER_NAME}.npy")):
        return folder
    return None


def _as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    if values.dtype == np.float16 and values.dtype.isnative:
        return _HALVES.take(values.view(np.uint16))
    return values.astype(np.float32)


def write_feature_store(
    folder: Path,
    backbone: str,
    ids: Sequence[str],
    vectors: NDArray[Any],
    manifest: Mapping[str, Any],
    dtype: DTypeLike = np.float16,
) -> None:
    """Write a store: row i of `vectors` belongs to image `ids[i]`.

    `manifest` says how the vectors were made (preprocessing, version, hash of the weights);
    backbone, rows and dimension are added. If it fails, an older store is as it was; if it is
    killed between two files, `id2row.json` is missing and the store does not open.
    """
    _check_new_store(folder, backbone, ids, vectors)
    id2row = _json_bytes(folder, {image: row for row, image in enumerate(ids)})
    size = {"backbone": backbone, "rows": len(ids), "dimension": vectors.shape[1]}
    described = _json_bytes(folder, {**manifest, **size})
    folder.mkdir(parents=True, exist_ok=True)
    # The last one opened is the first to take its place.
    with (
        atomic_writer(folder / "id2row.json") as id2row_file,
        atomic_writer(folder / "manifest.json") as manifest_file,
        atomic_writer(folder / f"{backbone}.npy") as matrix_file,
    ):
        id2row_file.write(id2row)
        manifest_file.write(described)
        _write_matrix(matrix_file, folder, ids, vectors, np.dtype(dtype))
        # Only once all the data is on the disk can nothing fail any more.
        for file in (id2row_file, manifest_file, matrix_file):
            file.flush()
            os.fsync(file.fileno())
        (folder / "id2row.json").unlink(missing_ok=True)


def _json_bytes(folder: Path, content: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(content, option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError as error:
        raise FeatureError(f"{folder}: an id or the manifest cannot be JSON: {error}.") from error


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read how the vectors were made; stores made elsewhere may not say."""
    path = folder / "manifest.json"
    if not path.exists():
        return None
    manifest = read_json_object(path, FeatureError)
    if not isinstance(manifest.get("backbone", ""), str):
        raise FeatureError(f'{path}: "backbone" must be a string.')
    return manifest


def _matrix_path(folder: Path, manifest: dict[str, Any] | None) -> Path:
    """Find the matrix: the one that the manifest names, else the only one."""
    matrices = {path.stem: path for path in sorted(folder.glob("*.npy"))}
    if not matrices:
        raise FeatureError(f"{folder} holds no .npy file, so it is no feature store.")
    backbone = None if manifest is None else manifest.get("backbone")
    if backbone in matrices:
        return matrices[backbone]
    if backbone is not None and set(matrices) != {_PAPER_NAME}:
        raise FeatureError(
            f"{folder / 'manifest.json'} names the backbone {backbone!r}, but there is no "
            f"{backbone}.npy beside it (found: {', '.join(matrices)})."
        )
    if len(matrices) > 1:
        raise FeatureError(
            f"{folder} holds several .npy files ({', '.join(matrices)}) and no manifest.json "
            'that says which: add one such as {"backbone": "' + next(iter(matrices)) + '"}.'
        )
    return next(iter(matrices.values()))


def _map_matrix(path: Path) -> np.memmap[Any, Any]:
    """Map a .npy file of rows of floats, after checking that all of it is there."""
    try:
        with path.open("rb") as file:
            shape, fortran_order, dtype = _npy_header(file)
            offset = file.tell()
        actual = path.stat().st_size
    except OSError as error:
        raise FeatureError(f"{path} cannot be read: {error.strerror}.") from error
    except Exception as error:  # numpy lets through whatever Python's own parser raises
        raise FeatureError(f"{path} is not a .npy file: {error}.") from error
    # Objects are pickles, which are never loaded.
    if dtype.kind != "f":
        raise FeatureError(f"{path} holds {dtype}, expected float16 or float32.")
    # A truth value is a number to the reader of headers, and to nothing else.
    numbers = len(shape) == 2 and bool not in map(type, shape)
    if not numbers or shape[0] < 0 or not 1 <= shape[1] <= _LARGEST_DIMENSION:
        raise FeatureError(f"{path} has the shape {shape}, expected images x dimension.")
    expected = offset + math.prod(shape) * dtype.itemsize
    if actual < expected:
        raise FeatureError(
            f"{path} is cut off: {actual:,} bytes, expected {expected:,} for {shape[0]:,} rows of "
            f"{shape[1]:,} {dtype} numbers."
        )
    return np.memmap(
        path, dtype, mode="r", offset=offset, shape=shape, order="F" if fortran_order else "C"
    )


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order and type; version 3 is for named columns, which features have not."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"version {version[0]}.{version[1]} of the format is not supported")


def _check_manifest(
    folder: Path, manifest: dict[str, Any] | None, matrix: np.memmap[Any, Any]
) -> None:
    """Compare the manifest's numbers, where it has them, with the matrix."""
    for key, actual in zip(("rows", "dimension"), matrix.shape, strict=True):
        stated = actual if manifest is None else manifest.get(key, actual)
        if stated != actual:
            raise FeatureError(
                f'{folder / "manifest.json"}: "{key}" is {shown(stated)}, but the matrix has '
                f"{actual}; the files do not belong together."
            )


def _read_id2row(folder: Path, rows: int) -> dict[str, int]:
    """Read which row belongs to which image."""
    path = folder / "id2row.json"
    if not path.exists():
        raise FeatureError(f"{path} is missing; it says which row belongs to which image.")
    id2row = read_json_object(path, FeatureError)
    for image, row in id2row.items():
        # Not isinstance: true is no row.
        if type(row) is not int or not 0 <= row < rows:
            raise FeatureError(
                f"{path}: the row of image {shown(image)} is {shown(row)}, expected a whole number "
                f"below {rows}, the rows of the matrix."
            )
    return id2row


def _check_new_store(
    folder: Path, backbone: str, ids: Sequence[str], vectors: NDArray[Any]
) -> None:
    """Refuse what `FeatureStore.open` would not open again."""
    if re.search(r"[/\\]", backbone) or backbone in ("", _PAPER_NAME):
        raise FeatureError(f"{backbone!r} cannot be the name of a backbone: it names a file.")
    if vectors.ndim != 2 or len(vectors) != len(ids):
        raise FeatureError(
            f"{folder}: the vectors have the shape {vectors.shape}, expected a row for each of "
            f"{len(ids)} images."
        )
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise FeatureError(f"{folder}: two rows belong to the image id {twice!r}.")


def _write_matrix(
    handle: IO[bytes],
    folder: Path,
    ids: Sequence[str],
    vectors: NDArray[Any],
    dtype: np.dtype[Any],
) -> None:
    """Write the matrix in chunks of rows, refusing numbers that the type cannot hold."""
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": vectors.shape,
    }
    np.lib.format.write_array_header_1_0(handle, header)
    for start in range(0, len(vectors), _CHUNK_ROWS):
        with np.errstate(over="ignore"):
            rows = vectors[start : start + _CHUNK_ROWS].astype(dtype)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise FeatureError(
                f"{folder}: the vector of image {ids[start + bad[0]]!r} holds NaN, infinity or a "
                f"number too large for {dtype}."
            )
        handle.write(rows.tobytes())
