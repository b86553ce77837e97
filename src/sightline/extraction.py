"""Extraction: from the image files of a corpus to a feature store.

Worker processes decode, threads run the network, and this process hands pixels from the ones to
the others and writes rows in the order in which the images first appear. An image that cannot be
read gets a status and no row; files of equal content are decoded once and share a row.
"""

from __future__ import annotations

import hashlib
import math
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import orjson

from sightline.backbones import Backbone, FloatArray, OnnxNetwork, Preprocessing
from sightline.decode_pool import DecodePool
from sightline.feature_journal import Failure, FeatureJournal, Rows
from sightline.features import FeatureError, FeatureStore
from sightline.files import write_atomically
from sightline.image_colours import Pixels
from sightline.image_features import groups
from sightline.image_headers import SUFFIXES
from sightline.images import DEFAULT_LIMITS, Decoded, Status, decode
from sightline.machine import bound_cores
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress, counted

if TYPE_CHECKING:
    from sightline.corpus import Corpus

#: The side file of a store that says which images have no features, and why.
STATUSES = "statuses.jsonl"
#: What counts as an image in a folder; the content decides what it really is.
# Files are hashed so many at a time: what takes long is waiting for a disk that is far away.
_READING_THREADS = 4
# So many files are one task of such a thread: handing over a task takes longer than hashing 15 kB.
_READ_AT_ONCE = 8
# Four together, and the pixels in shared memory: handing over an image of 256 pixels then takes a
# worker and this process 0.3 ms less CPU time than one by one through a pipe (measured).
_DECODED_TOGETHER = 4
_CORES = bound_cores()

Decoder = Callable[[Iterable[Path]], Iterator[Decoded]]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ImageFile:
    """One image: how its document names it, and where it is."""

    image: str
    path: Path

    @property
    def id(self) -> str:
        """Its id in a feature store."""
        return FeatureStore.image_id(self.image)


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of the images of one run; `images` is the sum of the other counts of images."""

    backbone: str
    dimension: int
    rows: int  # of the whole store
    images: int
    computed: int
    known: int  # the store had their content before
    duplicates: int  # of another image of this run
    failed: dict[str, int]  # by status

    @property
    def usable(self) -> int:
        """Images that have features."""
        return self.images - sum(self.failed.values())

    def __str__(self) -> str:
        """For people."""
        parts = [f"{self.computed:,} computed"]
        if self.known:
            parts.append(f"{self.known:,} there before")
        if self.duplicates:
            parts.append(counted(self.duplicates, "duplicate"))
        words = f"{self.usable:,} of {self.images:,} images have features: {', '.join(parts)}"
        if self.failed:
            words += "; failed: " + ", ".join(f"{n:,} {name}" for name, n in self.failed.items())
        return words


def extract_features(
    inputs: Iterable[Corpus | Path],
    folder: Path,
    backbone: Backbone,
    *,
    workers: int | None = None,
    batch: int = 8,
    problems: Problems | None = None,
) -> Summary:
    """Add the features of all images of the inputs to the store in `folder`, which may be new.

    An input is a corpus, a folder of images or an image. `workers` processes decode, as many as the
    sizes of the files call for if None; with 0, threads of this process do, but then a malicious
    file can crash or stall the run. Run again after a kill, it goes on where it stopped and gives
    the same bytes. A backbone in ONNX Runtime should have been loaded with `threads=1`: batches
    are computed side by side, one per core, which wastes no time on waiting for each other.
    """
    problems = problems or Problems()
    files = _find_images(inputs, problems)
    with FeatureJournal(folder, backbone) as journal:
        known = len(journal)
        workers = _enough_workers(files) if workers is None else workers
        with _decoder(workers, backbone.preprocessing, batch) as decoder:
            outcomes = _Extraction(journal, backbone, decoder, batch, problems).run(files)
        journal.commit()
        id2row, statuses = _results(files, outcomes, journal, problems)
        computed = len(journal) - known
        _write_statuses(folder / STATUSES, files, statuses)
        journal.finish(id2row)
    failed = Counter(status["status"] for status in statuses)
    usable = [outcome for outcome in outcomes if isinstance(outcome, str)]
    before = sum(journal.rows[content] < known for content in usable)
    return Summary(
        backbone=backbone.name,
        dimension=backbone.dimension,
        rows=len(journal),
        images=len(files),
        computed=computed,
        known=before,
        duplicates=len(files) - sum(failed.values()) - before - computed,
        failed={str(name): count for name, count in sorted(failed.items())},
    )


# ---- which images


def _find_images(inputs: Iterable[Corpus | Path], problems: Problems) -> list[ImageFile]:
    """The distinct image files of the inputs, in the order of their first appearance."""
    found = dict.fromkeys(file for source in inputs for file in _images_of(source, problems))
    if not found:
        raise SightlineError("There are no images to compute features of.")
    return list(found)


def _images_of(source: Corpus | Path, problems: Problems) -> Iterator[ImageFile]:
    if not isinstance(source, Path):
        for document in source:
            root = document.folder or source.root
            yield from (ImageFile(image, root / image) for image in document.images)
    elif source.suffix.lower() in SUFFIXES and not source.is_dir():
        yield ImageFile(_text(source), source)
    else:
        from sightline.corpus import read  # with all its readers: images alone need none

        try:
            corpus = read(source, problems=problems, allow_empty=True)  # sentences do not matter
        except SightlineError as error:
            files = sorted(f for f in source.rglob("*") if f.suffix.lower() in SUFFIXES)
            if not files:
                raise SightlineError(f"{error} There is no image either.") from None
            yield from (ImageFile(_text(file.relative_to(source)), file) for file in files)
        else:
            yield from _images_of(corpus, problems)


def _text(path: Path) -> str:
    """A path as text; a name may hold bytes that are none, which JSON could not keep."""
    return path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# ---- from files to rows


@dataclass(eq=False)
class _Extraction:
    """One pass over the files of a run."""

    journal: FeatureJournal
    backbone: Backbone
    decoder: Decoder
    batch: int
    problems: Problems
    #: Inputs of batches that are done, to be filled again: fresh memory takes time to come by.
    _spare: list[FloatArray] = field(default_factory=list)

    def run(self, files: Sequence[ImageFile]) -> list[str | Failure]:
        """Compute what is missing; gives the content of each file, or why it has no features."""
        outcomes: list[str | Failure] = []
        # The files that are being decoded, in order.
        waiting: deque[tuple[int, str | None]] = deque()
        started = set(self.journal.rows) | set(self.journal.failures)

        def missing() -> Iterator[Path]:
            tasks = groups((file.path for file in files), _READ_AT_ONCE)
            contents = _in_threads(self._contents, tasks, _READING_THREADS, 2 * _READING_THREADS)
            for index, content in enumerate(chain.from_iterable(contents)):
                outcomes.append(content or "")
                if content in started:
                    progress.total = (progress.total or 1) - 1
                    progress.advance(0)
                    continue
                if content:
                    started.add(content)
                waiting.append((index, content))
                yield files[index].path

        def usable() -> Iterator[tuple[str, Pixels]]:
            for decoded in self.decoder(missing()):
                progress.advance()
                index, content = waiting.popleft()
                if content and decoded.pixels is not None:
                    yield content, decoded.pixels
                    continue
                failure = Failure(decoded.status, decoded.reason or "")
                if content:
                    self.journal.fail(content, failure)
                elif decoded.pixels is not None:
                    failure = Failure(Status.missing, "The file changed while it was read.")
                outcomes[index] = failure
                if self.problems.strict:
                    self.problems.add(files[index].path, None, failure.status, failure.reason)

        with Progress("features", len(files), "images") as progress:
            # Torch has threads of its own.
            threads = _CORES if isinstance(self.backbone.network, OnnxNetwork) else 1
            batches = groups(usable(), self.batch)
            for contents, vectors in _in_threads(self._vectors, batches, threads, threads + 1):
                self.journal.add(contents, vectors)
        failures = self.journal.failures
        return [failures.get(o, o) if isinstance(o, str) else o for o in outcomes]

    def _contents(self, paths: list[Path]) -> list[str | None]:
        return [self._content(path) for path in paths]

    def _content(self, path: Path) -> str | None:
        """The sha256 of a file; None if it is not one that may be read."""
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > DEFAULT_LIMITS.file_bytes:
                return None
            with path.open("rb", buffering=0) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, ValueError):  # the latter for a name that no file can have
            return None

    def _vectors(self, batch: list[tuple[str, Pixels]]) -> tuple[list[str], Rows]:
        """Contents and features of one batch; runs in a thread."""
        preprocessing = self.backbone.preprocessing
        try:
            images = self._spare.pop()
        except IndexError:
            side = preprocessing.crop
            images = np.empty((self.batch, 3, side, side), np.float32)
        for image, (_, pixels) in zip(images, batch, strict=False):
            preprocessing.normalise(preprocessing.resize(pixels), out=image)
        with np.errstate(over="ignore"):
            vectors = self.backbone.features(images[: len(batch)]).astype(np.float16)
        self._spare.append(images)
        return [content for content, _ in batch], vectors


@contextmanager
def _decoder(workers: int, way: Preprocessing, batch: int) -> Iterator[Decoder]:
    """What decodes files in their order, to no more pixels than the backbone needs."""
    side, interpolation = way.shorter_side, way.interpolation
    if workers:
        # The workers stay busy while two batches are collected.
        ahead = 2 * max(_DECODED_TOGETHER, -(-batch // workers))
        with DecodePool(workers, DEFAULT_LIMITS, ahead, _DECODED_TOGETHER) as pool:
            yield lambda paths: pool.decode_many(paths, side, interpolation)
    else:
        one = partial(decode, shorter_side=side, interpolation=interpolation)
        yield lambda paths: _in_threads(one, paths, _CORES, 2 * batch + _CORES)


def _enough_workers(files: Sequence[ImageFile]) -> int:
    """So many that decoding keeps up with the network; more only cost.

    JPEG files of 14 to 250 kB take 0.06 ms of CPU time per kB, larger ones little more, because
    they are decoded at a fraction of their size; EfficientNet-Lite0 takes 10 ms. One worker too
    many on two cores makes all take 4 % more CPU time (measured).
    """
    sizes = []
    for file in files[:: len(files) // 100 + 1]:
        with suppress(OSError, ValueError):
            sizes.append(min(file.path.stat().st_size, 300_000))
    decoding = 0.06e-3 * sum(sizes) / max(1, len(sizes))
    return max(1, math.ceil(_CORES * decoding / (decoding + 10)))


def _in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int
) -> Iterator[Result]:
    """Map in order, with at most `ahead` results under way."""
    waiting: deque[Future[Result]] = deque()
    executor = ThreadPoolExecutor(threads)
    try:
        for item in items:
            waiting.append(executor.submit(function, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)


# ---- from rows to ids


def _results(
    files: Sequence[ImageFile],
    outcomes: Sequence[str | Failure],
    journal: FeatureJournal,
    problems: Problems,
) -> tuple[dict[str, int], list[dict[str, str]]]:
    """The rows by id, and the statuses of the images that have none; reports every problem.

    Two different images with one id must not be mixed up: the first has the id, and a later one is
    stored under its whole path as the document names it, which `FeatureStore.find` tries first.
    """
    id2row = dict(journal.id2row)
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, Failure):
            continue
        row = journal.rows[outcome]
        if id2row.setdefault(file.id, row) != row:
            taken = id2row.setdefault(file.image, row) != row
            where = "it is left out" if taken else f"it is stored as {file.image!r} instead"
            reason = f"another image already has the id {file.id!r}; {where}"
            problems.add(file.path, None, None, reason)
    statuses = []
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, Failure):
            reason = outcome.reason
            if file.id in id2row:
                reason += f" Another image has its id {file.id!r}: do not take that for it."
            problems.add(file.path, None, outcome.status, reason)
            statuses.append(
                {"id": file.id, "image": file.image, "status": outcome.status, "reason": reason}
            )
    return id2row, statuses


def _write_statuses(path: Path, files: Sequence[ImageFile], statuses: list[dict[str, str]]) -> None:
    """Write this run's statuses, after those of other images that stand there already."""
    now = {file.image for file in files}
    lines = path.read_bytes().splitlines() if path.exists() else []
    try:
        before = [line for line in lines if orjson.loads(line)["image"] not in now]
    except (ValueError, KeyError, TypeError) as error:
        raise FeatureError(f"{path} is damaged ({error}); delete it.") from None
    lines = [*before, *map(orjson.dumps, statuses)]
    write_atomically(path, b"".join(line + b"\n" for line in lines))
