"""Our results beside the paper's: means, bootstrap intervals over documents, differences, bold.

One table per number of negative documents b, as in the paper; what is not trained is in each.
The paper bolds what lies within 1 % of the best in its column. Its tables show that this is one
point, not one hundredth of the best: in Table 2, 80.1 is bold under a best of 81.1, and in Table
3 21.6 under 22.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.reproduction.paper_results import RESULTS, DatasetName
from sightline.reproduction.results import RowResult
from sightline.reproduction.rows import NAMES

#: The columns: names as `scores.json` has them, in the order of `paper_results.Scores`.
METRICS = {"auc": "AUC", "p@1": "p@1", "p@5": "p@5"}
#: Values so close to the best of their column, in percentage points, are bold.
_BOLD_WITHIN = 1.0
# 81.1 - 1.0 is not 80.1 to a computer.
_ROUNDING = 1e-9

LEVEL = 0.95
RESAMPLES = 10_000
# Resamples drawn at a time: with a thousand documents some 20 MB.
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of ours in percent, its interval, and the paper's if it has one."""

    ours: float
    low: float
    high: float
    bold: bool
    paper: float | None
    paper_bold: bool

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in percentage points."""
        return None if self.paper is None else self.ours - self.paper


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its figures (none where no links are known) and the run behind them."""

    name: str
    cells: dict[str, Cell]
    result: RowResult

    @property
    def epochs(self) -> int | None:
        """How many epochs the row was trained for; None if it was not."""
        settings = self.result.record.get("settings")
        return None if settings is None else int(settings["epochs"])

    def setting(self, name: str) -> Any:
        """One of the settings that the row was trained with; None if it was not."""
        return (self.result.record.get("settings") or {}).get(name)

    def loss(self, split: str) -> float | None:
        """The loss on `validation` or `test`; None if the row was not trained."""
        value = self.result.record.get(split, {}).get("loss")
        return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class ResultTable:
    """The rows of one b, beside the paper's column of `dataset` if one was named."""

    negative_documents: int | None
    dataset: DatasetName | None
    rows: list[TableRow]

    @property
    def scored(self) -> bool:
        """Whether there are figures other than losses."""
        return any(row.cells for row in self.rows)


def result_tables(
    results: Sequence[RowResult], dataset: DatasetName | None, seed: int = 1
) -> list[ResultTable]:
    """The tables of a reproduction's finished rows, one for each b."""
    intervals = {result.row: _intervals(result, seed) for result in results}
    trained = sorted({r.row.negative_documents for r in results if r.row.negative_documents})
    numbers: list[int | None] = [*trained] or [None]
    tables = []
    for number in numbers:
        shown = [r for r in results if r.row.negative_documents in (None, number)]
        shown.sort(key=lambda result: NAMES.index(result.row.name))
        columns = {metric: _column(shown, metric, intervals) for metric in METRICS}
        theirs = _paper_columns(dataset, number)
        rows = []
        for place, result in enumerate(shown):
            cells = {}
            for metric in METRICS:
                figure = columns[metric][place]
                if figure is not None:
                    paper = theirs[metric].get(result.row.name, (None, False))
                    cells[metric] = Cell(*figure, *paper)
            rows.append(TableRow(result.row.name, cells, result))
        tables.append(ResultTable(number, dataset, rows))
    return tables


def bold(values: Sequence[float | None]) -> list[bool]:
    """Which values of a column the paper would print in bold."""
    present = [value for value in values if value is not None]
    limit = max(present, default=0.0) - _BOLD_WITHIN - _ROUNDING
    return [value is not None and value >= limit for value in values]


def bootstrap_interval(
    scores_DM: NDArray[np.float64],
    seed: int = 1,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percentile interval of the mean of each column, by drawing the documents anew.

    Rows are documents, columns metrics. The same seed and number of documents draw the same
    documents, so that the rows of a table are compared on the same draws.
    """
    rng = np.random.default_rng(seed)
    documents = len(scores_DM)
    means = []
    for begin in range(0, resamples, _CHUNK):
        count = min(_CHUNK, resamples - begin)
        drawn = rng.integers(documents, size=(count, documents))
        means.append(scores_DM[drawn].mean(axis=1))
    outside = 100 * (1 - level) / 2
    low, high = np.percentile(np.concatenate(means), [outside, 100 - outside], axis=0)
    return low, high


def _intervals(result: RowResult, seed: int) -> dict[str, tuple[float, float]]:
    """The interval of each metric of a row; none where no document was scored."""
    documents = result.documents()
    if not documents:
        return {}
    scores_DM = np.array([[document[metric] for metric in METRICS] for document in documents])
    low, high = bootstrap_interval(scores_DM, seed)
    return {metric: (float(low[place]), float(high[place])) for place, metric in enumerate(METRICS)}


def _column(
    shown: Sequence[RowResult], metric: str, intervals: dict[Any, dict[str, tuple[float, float]]]
) -> list[tuple[float, float, float, bool] | None]:
    """Mean, interval and bold of each row in one column."""
    means = [result.test[metric] for result in shown]
    return [
        None if mean is None else (mean, *intervals[result.row][metric], is_bold)
        for result, mean, is_bold in zip(shown, means, bold(means), strict=True)
    ]


def _paper_columns(
    dataset: DatasetName | None, negative_documents: int | None
) -> dict[str, dict[str, tuple[float, bool]]]:
    """By metric and row: the paper's figure and whether the rule makes it bold there."""
    # What is not trained has the same figures in the tables of every b.
    number = negative_documents or 10
    rows = [
        (name, RESULTS[dataset, name, number])
        for name in NAMES
        if dataset is not None and (dataset, name, number) in RESULTS
    ]
    columns = {}
    for place, metric in enumerate(METRICS):
        values = [scores[place] for _, scores in rows]
        columns[metric] = {
            name: (scores[place], is_bold)
            for (name, scores), is_bold in zip(rows, bold(values), strict=True)
        }
    return columns
