"""The corpus: documents on disk, whichever format holds them, to go through again and again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sightline.choices import PAGE_SUFFIXES
from sightline.documents import Document, split_name
from sightline.problems import Problems, SightlineError
from sightline.readers.hessel2019 import FILE_NAME, numbered_hessel2019, read_hessel2019
from sightline.readers.recognition import (
    are_link_records,
    numbered_any,
    read_any_jsonl,
    read_any_parquet,
)
from sightline.readers.tar_shards import SUFFIX
from sightline.readers.webdataset import read_samples, read_webdataset, shards

Reader = Callable[[Path, Problems, bool], Iterator[Document]]

_READERS: dict[str, Reader] = {
    ".jsonl": read_any_jsonl,
    ".jsonl.gz": read_any_jsonl,
    ".jsonl.zst": read_any_jsonl,
    ".jsonl.zip": read_any_jsonl,
    ".parquet": read_any_parquet,
    SUFFIX: read_webdataset,
}
#: How the files of a corpus end.
SUFFIXES = tuple(_READERS)
_NATIVE_NAME = "documents"

_EXPECTED = (
    f"expected a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file, a folder with such a file "
    f"named {_NATIVE_NAME} or with .tar shards, or the paper's release with {FILE_NAME}"
)


def shard_name(file: str) -> str:
    """The name of a corpus file without its suffix: what its results and features are called."""
    return next((file.removesuffix(one) for one in SUFFIXES if file.endswith(one)), file)


#: The split that stands for every document, also one without a split.
ALL = "all"


class SplitNotFound(SightlineError):
    """No document has the split that was asked for; the message lists those that there are."""

    def __init__(self, path: Path, split: str, found: Iterable[str | None]) -> None:
        seen = list(found)
        names = [name for name in seen if name is not None]
        there = f"its splits are {', '.join(names)}" if names else "its documents have no split"
        sentence = f"no document has the split {split!r}, {there}; {ALL!r} takes every document"
        if split in names:
            sentence = f"no document of the split {split!r} could be used"
        super().__init__(f"{path}: {sentence if seen else 'no document could be read'}.")


class Corpus:
    """The documents of a path; every iteration streams them anew from disk.

    A problem is reported once, by the first pass that meets it: `problems` counts bad records,
    however often the corpus is gone through. With strict problems every pass stops at the first.
    """

    def __init__(
        self,
        path: Path,
        file: Path,
        reader: Reader,
        split: str | None,
        problems: Problems,
        allow_empty: bool,
    ) -> None:
        self.path = path  # as the user named it: a file, or the folder that holds it
        self.file = file
        self.split = None if split == ALL else split
        self.problems = problems
        # The splits seen by the passes so far, in order; None stands for documents without one.
        self.splits: dict[str | None, None] = {}
        self._reader = reader
        self._allow_empty = allow_empty
        self._reported = 0

    def __repr__(self) -> str:
        split = "" if self.split is None else f", split={self.split!r}"
        return f"Corpus({str(self.path)!r}{split})"

    def __iter__(self) -> Iterator[Document]:
        documents = self.documents(self.split)
        first = next(documents, None)
        if first is not None:
            yield first
        elif self.split is not None and self.splits:
            raise self.split_not_found(self.split)
        yield from documents

    def documents(self, split: str | None = None) -> Iterator[Document]:
        """Yield the documents of one split, or all; `validation` and `dev` mean `val`.

        A document without a split belongs to none but `all`. A split that is not there gives
        nothing; `split_not_found` says so to the user.
        """
        wanted, root, splits = split_name(None if split == ALL else split), self.root, self.splits
        for document in self._reader(self.file, _Pass(self), self._allow_empty):
            splits.setdefault(document.split)
            if wanted is None or split_name(document.split) == wanted:
                if document.folder is None:
                    # Nobody else holds it yet, and a changed copy would cost as much again.
                    object.__setattr__(document, "folder", root)
                yield document

    def located(self) -> Iterator[tuple[str, Document]]:
        """Yield the documents of plain iteration, each after its place: `documents.jsonl:12`.

        Of a reader that tells no places, documents are counted. Bad records are passed over; plain
        iteration reports them.
        """
        wanted, file, reader = split_name(self.split), self.file, self._reader
        given = (file, Problems(keep=0), self._allow_empty)
        found: Iterator[tuple[str, Document]]
        if reader is read_webdataset:
            samples = read_samples(*given)
            found = ((":".join(map(str, sample.place)), sample.document) for sample in samples)
        elif reader in (read_hessel2019, read_any_jsonl, read_any_parquet):
            numbered = numbered_hessel2019 if reader is read_hessel2019 else numbered_any
            found = ((f"{file}:{place}", document) for place, document in numbered(*given))
        else:
            counted = enumerate(reader(*given), 1)
            found = ((f"{self.path}, document {n}", document) for n, document in counted)
        return (
            (place, document)
            for place, document in found
            if wanted is None or split_name(document.split) == wanted
        )

    def split_not_found(self, split: str) -> SplitNotFound:
        """Give the error for a pass over `split` that yielded nothing."""
        return SplitNotFound(self.path, split, self.splits)

    @property
    def root(self) -> Path:
        """The folder that image paths are relative to."""
        return self.file if self.file.is_dir() else self.file.parent


def read(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    strict: bool = False,
    problems: Problems | None = None,
    allow_empty: bool = False,
) -> Corpus:
    """Open a corpus in any of its formats; nothing is read before it is iterated.

    `path` is a JSONL, Parquet or tar file, or a folder that holds documents or shards.
    `split` is what plain iteration gives: "train", "val", "test" or another that the corpus has;
    "all" or None for every document. `strict` stops at the first bad record, which
    otherwise is counted in `problems` (given or new) and skipped. `allow_empty` lets documents
    without sentences or images pass.
    """
    if problems is None:
        problems = Problems(strict=strict)
    elif strict and not problems.strict:
        raise ValueError("strict contradicts the given problems, which are not strict")
    path = Path(path)
    file, reader = _find(path)
    return Corpus(path, file, reader, split, problems, allow_empty)


class _Pass(Problems):
    """The problems of one pass, of which only those that no earlier pass met are handed on.

    Reading is deterministic, so counting them is enough to know them again.
    """

    def __init__(self, corpus: Corpus) -> None:
        super().__init__()
        self._corpus = corpus

    def add(self, file: str | Path, line: int | str | None, field: str | None, reason: str) -> None:
        """Hand a problem to the corpus if it is new."""
        self.count += 1
        if self.count > self._corpus._reported:
            self._corpus.problems.add(file, line, field, reason)
            # Not before the call: what strict problems raise has to be raised by every pass.
            self._corpus._reported = self.count

    def cut_off(self, file: str | Path, line: int | str | None, reason: str) -> None:
        """Let the corpus know that documents are lost."""
        super().cut_off(file, line, reason)
        self._corpus.problems.cut = self._corpus.problems.cut or self.cut


def is_packed(path: Path) -> bool:
    """Say whether a corpus is WebDataset shards, which hold their images."""
    try:
        return _find(path)[1] is read_webdataset
    except SightlineError:
        return False


def _corpora(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name.endswith(SUFFIXES))


def _holds(folder: Path) -> str:
    """What a folder holds that is nearly a corpus."""
    files = _corpora(folder)
    if files and all(map(are_link_records, files)):
        return ", but link records, not documents: 'sightline pairs' makes pairs of them"
    if files:
        joined = f", or join them, 'cat {folder}/*.jsonl > {_NATIVE_NAME}.jsonl'"
        are_lines = all(file.suffix == ".jsonl" for file in files)
        hint = joined if are_lines else ""
        return f", but files that are corpora, or shards of one: name one of them{hint}"
    if any(file.suffix.lower() in PAGE_SUFFIXES for file in folder.iterdir()):
        return ", but pages: 'sightline build pages' makes a corpus of them"
    return ""


def _find(path: Path) -> tuple[Path, Reader]:
    if path.is_dir():
        for suffix, reader in _READERS.items():
            if (path / f"{_NATIVE_NAME}{suffix}").is_file():
                return path / f"{_NATIVE_NAME}{suffix}", reader
        if (path / FILE_NAME).is_file():
            return path / FILE_NAME, read_hessel2019
        if shards(path):
            if others := [file.name for file in _corpora(path) if file.suffix != SUFFIX]:
                raise SightlineError(
                    f"{path}: shards of several kinds, {SUFFIX} and {others[0]}; name one of them, "
                    "or put those of a kind into a folder of their own."
                )
            return path, read_webdataset
        raise SightlineError(f"{path}: no documents in this folder{_holds(path)}; {_EXPECTED}.")
    if not path.exists():
        raise SightlineError(f"{path}: no such file or folder; {_EXPECTED}.")
    if path.name == FILE_NAME:
        return path, read_hessel2019
    for suffix, reader in _READERS.items():
        if path.name.endswith(suffix):
            return path, reader
    raise SightlineError(f"{path}: not a known kind of corpus; {_EXPECTED}.")
