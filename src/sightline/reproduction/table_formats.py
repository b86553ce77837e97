"""Result tables as Markdown, LaTeX, CSV, JSON and for the terminal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sightline.progress import duration
from sightline.reproduction.paper_results import TITLES
from sightline.reproduction.result_tables import METRICS, Cell, ResultTable, TableRow

if TYPE_CHECKING:
    from rich.table import Table

#: Settings in which rows can differ beside their epochs, and their headings.
_SHOWN_SETTINGS = {"dimension": "d", "learning_rate": "learning rate"}
_NOTHING = "-"
# Below this width a terminal shows the tables without their intervals.
_WIDE_TERMINAL = 116


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    bold: bool = False


@dataclass(frozen=True, slots=True)
class _Grid:
    """A table as text, before it takes the form of any format."""

    title: str
    header: list[str]
    rows: list[list[_Text]]


def markdown(tables: Sequence[ResultTable], notes: Sequence[str] = ()) -> str:
    """The tables in Markdown, with the notes below."""
    parts = []
    for grid in _grids(tables):
        lines = [
            f"**{grid.title}**",
            "",
            _markdown_line(grid.header),
            _markdown_line(["---", *["---:"] * (len(grid.header) - 1)]),
            *(
                _markdown_line([f"**{cell.text}**" if cell.bold else cell.text for cell in row])
                for row in grid.rows
            ),
        ]
        parts.append("\n".join(lines))
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts) + "\n"


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def latex(tables: Sequence[ResultTable], notes: Sequence[str] = ()) -> str:
    """The tables in LaTeX; they need the package booktabs."""
    parts = []
    for grid in _grids(tables):
        lines = [
            f"% {grid.title}",
            f"\\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
            "\\toprule",
            _latex_line([_latex(heading) for heading in grid.header]),
            "\\midrule",
            *(_latex_line([_latex_cell(cell) for cell in row]) for row in grid.rows),
            "\\bottomrule",
            "\\end{tabular}",
        ]
        parts.append("\n".join(lines))
    parts += [f"% {note}" for note in notes]
    return "\n\n".join(parts) + "\n"


def _latex_line(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _latex_cell(cell: _Text) -> str:
    text = _latex(cell.text)
    return f"\\textbf{{{text}}}" if cell.bold else text


def _latex(text: str) -> str:
    text = re.sub(r"([&%$#_{}])", r"\\\1", text)
    return re.sub(r"(?<![\w.])-(?=\d)", r"$-$", text)


def terminal(tables: Sequence[ResultTable], width: int) -> list[Table]:
    """The tables for rich; a narrow terminal gets them without intervals."""
    from rich.table import Table
    from rich.text import Text

    drawn = []
    for grid in _grids(tables, intervals=width >= _WIDE_TERMINAL):
        table = Table(title=grid.title, title_justify="left", box=None)
        for place, heading in enumerate(grid.header):
            table.add_column(heading, justify="right" if place else "left", no_wrap=True)
        for row in grid.rows:
            table.add_row(*(Text(cell.text, "bold" if cell.bold else "") for cell in row))
        drawn.append(table)
    return drawn


def records(tables: Sequence[ResultTable]) -> list[dict[str, Any]]:
    """A flat record per row, as CSV and JSON hold them; None where there is nothing."""
    found = []
    for table in tables:
        for row in table.rows:
            test = row.result.test
            record: dict[str, Any] = {
                "negative_documents": table.negative_documents,
                "row": row.name,
                "documents": test["documents"],
                "skipped": test["skipped"],
            }
            for metric in METRICS:
                cell = row.cells.get(metric)
                for name, value in _CELL_FIELDS.items():
                    record[f"{metric}{name}"] = None if cell is None else value(cell)
            record["validation_loss"] = row.loss("validation")
            record["test_loss"] = row.loss("test")
            record["best_epoch"] = row.result.record.get("best_epoch")
            record["epochs"] = row.epochs
            for name in _SHOWN_SETTINGS:
                record[name] = row.setting(name)
            record["seconds"] = row.result.record.get("seconds")
            found.append(record)
    return found


_CELL_FIELDS: dict[str, Callable[[Cell], float | bool | None]] = {
    "": lambda cell: cell.ours,
    "_low": lambda cell: cell.low,
    "_high": lambda cell: cell.high,
    "_bold": lambda cell: cell.bold,
    "_paper": lambda cell: cell.paper,
    "_difference": lambda cell: cell.difference,
}


def csv_text(tables: Sequence[ResultTable]) -> str:
    """The records as CSV; empty where there is nothing."""
    rows = records(tables)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _grids(tables: Sequence[ResultTable], intervals: bool = True) -> list[_Grid]:
    grids = [_score_grid(table, intervals) for table in tables if table.scored]
    trained = [_training_grid(table) for table in tables if table.negative_documents]
    return grids + trained


def _score_grid(table: ResultTable, intervals: bool) -> _Grid:
    compared = table.dataset is not None
    header = ["row"]
    for metric in METRICS:
        header.append(METRICS[metric] + (" [95 %]" if intervals else ""))
        header += ["paper", "diff."] if compared else []
    rows = []
    for row in table.rows:
        line = [_Text(row.name)]
        for metric in METRICS:
            line += _score_texts(row.cells.get(metric), intervals, compared)
        rows.append(line)
    return _Grid(_title(table, "in percent, means over test documents"), header, rows)


def _score_texts(cell: Cell | None, intervals: bool, compared: bool) -> list[_Text]:
    if cell is None:
        return [_Text(_NOTHING)] * (3 if compared else 1)
    ours = f"{cell.ours:.1f}" + (f" [{cell.low:.1f}, {cell.high:.1f}]" if intervals else "")
    texts = [_Text(ours, cell.bold)]
    if compared and cell.paper is not None:
        texts += [_Text(f"{cell.paper:.1f}", cell.paper_bold), _Text(f"{cell.difference:+.1f}")]
    elif compared:
        texts += [_Text(_NOTHING)] * 2
    return texts


def _training_grid(table: ResultTable) -> _Grid:
    header = ["row", *_SHOWN_SETTINGS.values(), "best epoch", "validation loss", "test loss",
              "training time"]  # fmt: skip
    rows = [_training_texts(row) for row in table.rows if row.epochs is not None]
    return _Grid(_title(table, "how the models were trained", paper=False), header, rows)


def _training_texts(row: TableRow) -> list[_Text]:
    record = row.result.record
    losses = [row.loss("validation"), row.loss("test")]
    return [
        _Text(row.name),
        *(_Text(str(row.setting(name))) for name in _SHOWN_SETTINGS),
        _Text(f"{record['best_epoch']} of {row.epochs}"),
        *(_Text(_NOTHING if loss is None else f"{loss:.4f}") for loss in losses),
        _Text(duration(record["seconds"])),
    ]


def _title(table: ResultTable, what: str, paper: bool = True) -> str:
    parts = [f"b = {table.negative_documents}"] if table.negative_documents else []
    parts.append(what)
    if paper and table.dataset is not None:
        parts.append(f"beside the paper's {TITLES[table.dataset]}")
    title = ", ".join(parts)
    return title[0].upper() + title[1:] if not table.negative_documents else title
