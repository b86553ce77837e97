"""The folders of finished runs: what the analysis, the figures and the report read.

A run folder is a model folder with `log.jsonl`, `scores.json` (means) and `documents.jsonl` (each
document's scores); a baseline has the scores alone. A reproduction folder holds run folders in
`runs/`. A score file alone, as `sightline evaluate --documents` writes it, is a run too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from sightline.files import read_json_object
from sightline.problems import Problems, SightlineError
from sightline.reproduction.results import DOCUMENTS, SCORES, read_epochs, read_results
from sightline.reproduction.setup import RUNS
from sightline.settings import Settings

_EXPECTED = (
    "expected a score file of 'sightline evaluate --documents', a run folder that holds one as "
    f"{DOCUMENTS}, or a reproduction folder with such run folders in {RUNS}/"
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what it reached on each document, and how it was trained if it was."""

    name: str
    #: AUC in percent by document id; empty where no link is known.
    auc: dict[str, float] = field(default_factory=dict)
    #: Mean scores, as `sightline evaluate --json` gives them.
    scores: dict[str, Any] = field(default_factory=dict)
    #: The log's records that have an "epoch", in order.
    epochs: list[dict[str, Any]] = field(default_factory=list)
    #: None for a baseline, and for a score file alone.
    settings: Settings | None = None
    #: What `config.json` says beside the settings.
    notes: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def is_structured(self) -> bool:
        """Whether the run is a model that looks at the structure of documents: DC, TK, AP."""
        return self.settings is not None and self.settings.similarity != "NoStruct"

    @property
    def mean_auc(self) -> float | None:
        """Mean AUC in percent, or None where no document could be scored."""
        return sum(self.auc.values()) / len(self.auc) if self.auc else None

    def only(self, ids: Collection[str]) -> Run:
        """The run with the scores of these documents alone."""
        return replace(self, auc={id: auc for id, auc in self.auc.items() if id in ids})


def read_runs(paths: Iterable[Path], problems: Problems) -> list[Run]:
    """The runs of score files, run folders and reproduction folders, in order, named apart."""
    runs: list[Run] = []
    for path in paths:
        runs += _runs_of(path, problems)
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SightlineError(
            f"Two of the given score files are both named {twice!r}; rename one, or put it into a "
            "folder of its own."
        )
    return runs


def main_run(runs: Sequence[Run]) -> Run | None:
    """The run that figures and pages show: the paper's is AP with hard negatives at b = 10.

    Where there is none, the model with the best AUC, DC, TK and AP before NoStruct.
    """

    def key(run: Run) -> tuple[bool, bool, int, float]:
        settings = run.settings
        assert settings is not None
        paper = (settings.similarity, settings.negatives, settings.max_links) == (
            "AP",
            "hard",
            "all",
        )
        distance = abs(settings.negative_documents - 10) if paper else 0
        return not paper, not run.is_structured, distance, -(run.mean_auc or 0)

    return min((run for run in runs if run.settings is not None), key=key, default=None)


def _runs_of(path: Path, problems: Problems) -> list[Run]:
    if path.is_file():
        name = path.parent.name if path.name == DOCUMENTS else path.name.partition(".")[0]
        return [Run(name, _read_auc(path, problems))]
    if (path / RUNS).is_dir():
        results = read_results(path)
        if not results:
            raise SightlineError(f"{path / RUNS} holds no finished run; {_EXPECTED}.")
        return [_read_run(result.folder, problems) for result in results]
    if path.is_dir() and _is_run(path):
        return [_read_run(path, problems)]
    if not path.exists():
        raise SightlineError(f"{path}: no such file or folder; {_EXPECTED}.")
    raise SightlineError(f"{path} holds no scores; {_EXPECTED}.")


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (SCORES, DOCUMENTS))


def _read_run(folder: Path, problems: Problems) -> Run:
    """One run folder; whatever is not in it stays empty."""
    config = _json(folder / "config.json")
    settings = config.pop("settings", None)
    file = folder / DOCUMENTS
    scores = _json(folder / SCORES)
    return Run(
        name=_name(folder, scores),
        auc=_read_auc(file, problems) if file.is_file() else {},
        scores=scores.get("test") or scores,
        epochs=read_epochs(folder),
        settings=Settings.from_json(settings, str(folder / "config.json")) if settings else None,
        notes=config,
        folder=folder,
    )


def _name(folder: Path, scores: dict[str, Any]) -> str:
    """The row's name, as `sightline reproduce` records it, else the folder's."""
    row, negatives = scores.get("row"), scores.get("negative_documents")
    if not isinstance(row, str):
        return folder.name
    return f"{row} b{negatives}" if isinstance(negatives, int) else row


def _read_auc(file: Path, problems: Problems) -> dict[str, float]:
    """AUC by document; a bad line is reported and skipped."""
    found: dict[str, float] = {}
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            problems.add(file, number, None, f"not JSON: {error}")
            continue
        auc = record.get("auc") if isinstance(record, dict) else None
        if not isinstance(auc, int | float) or not math.isfinite(auc):
            problems.add(file, number, "auc", "expected the document's AUC, a number")
        elif not isinstance(record.get("id"), str):
            problems.add(file, number, "id", "expected the document's id, a string")
        else:
            found[record["id"]] = float(auc)
    return found


def _lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().splitlines()
    except OSError as error:
        raise SightlineError(f"{file} cannot be read: {error.strerror}.") from error


def _json(file: Path) -> dict[str, Any]:
    return read_json_object(file) if file.is_file() else {}
