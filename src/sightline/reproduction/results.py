"""What the runs of a reproduction left in their folders."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from sightline.problems import SightlineError
from sightline.reproduction.rows import Row, in_order
from sightline.reproduction.setup import RUNS

SCORES, DOCUMENTS, LOG = "scores.json", "documents.jsonl", "log.jsonl"


@dataclass(frozen=True, slots=True)
class RowResult:
    """A finished row: its folder (a model folder if trained) and what `scores.json` says."""

    row: Row
    folder: Path
    record: dict[str, Any]

    @property
    def test(self) -> dict[str, Any]:
        """Means over the test documents: documents, skipped, auc, p@1, p@5, and loss if trained."""
        means: dict[str, Any] = self.record["test"]
        return means

    def documents(self) -> list[dict[str, Any]]:
        """Each test document's scores, as `evaluate --documents` writes them."""
        return [orjson.loads(line) for line in (self.folder / DOCUMENTS).read_bytes().splitlines()]

    def epochs(self) -> list[dict[str, Any]]:
        """The log's record of each epoch, with the validation loss and AUC; none if not trained."""
        return read_epochs(self.folder)


def read_results(output: Path) -> list[RowResult]:
    """The finished rows in an output folder, in the order of the tables."""
    found = {}
    for file in (output / RUNS).glob(f"*/{SCORES}"):
        record = read_scores(file.parent)
        row = Row(record["row"], record["negative_documents"])
        found[row] = RowResult(row, file.parent, record)
    return [found[row] for row in in_order(found)]


def read_scores(folder: Path) -> dict[str, Any]:
    """The scores of a finished run."""
    file = folder / SCORES
    try:
        record = orjson.loads(file.read_bytes())
        Row(record["row"], record["negative_documents"])
        record["test"]["documents"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise SightlineError(
            f"{file} is damaged ({error}); remove the folder {folder} to make the row again."
        ) from None
    assert isinstance(record, dict)
    return record


def read_epochs(folder: Path) -> list[dict[str, Any]]:
    """The records of the epochs that a run's log holds so far; a half-written line is not one."""
    records = []
    with suppress(FileNotFoundError):
        for line in (folder / LOG).read_bytes().splitlines():
            with suppress(orjson.JSONDecodeError):
                record = orjson.loads(line)
                if "epoch" in record:
                    records.append(record)
    return records
