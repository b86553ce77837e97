"""The tables of a reproduction in its folder and on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from sightline.files import write_atomically
from sightline.problems import SightlineError
from sightline.progress import counted
from sightline.reproduction.paper_results import DatasetName
from sightline.reproduction.result_tables import ResultTable, result_tables
from sightline.reproduction.results import RowResult, read_results
from sightline.reproduction.table_formats import csv_text, latex, markdown, records, terminal


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of all finished rows of a reproduction, and what has to be said of them."""

    tables: list[ResultTable]
    dataset: DatasetName | None
    notes: list[str]

    def to_record(self) -> dict[str, Any]:
        """The content of `tables.json`."""
        return {"dataset": self.dataset, "notes": self.notes, "rows": records(self.tables)}

    def write(self, output: Path) -> None:
        """Write `tables.md`, `tables.tex`, `tables.csv` and `tables.json`."""
        record = orjson.dumps(self.to_record(), option=orjson.OPT_INDENT_2) + b"\n"
        for suffix, data in (
            ("md", markdown(self.tables, self.notes).encode()),
            ("tex", latex(self.tables, self.notes).encode()),
            ("csv", csv_text(self.tables).encode()),
            ("json", record),
        ):
            write_atomically(output / f"tables.{suffix}", data)

    def show(self) -> None:
        """Print the tables to standard output: drawn on a terminal, Markdown elsewhere."""
        if not sys.stdout.isatty():
            sys.stdout.write(markdown(self.tables, self.notes))
            return
        from rich.console import Console

        console = Console()
        for table in terminal(self.tables, console.width):
            console.print(table)
        for note in self.notes:
            console.print(f"- {note}", markup=False, highlight=False)


def tables_of(output: Path, dataset: DatasetName | None, notes: Sequence[str], seed: int) -> Tables:
    """The tables of the finished rows in an output folder; `notes` come before their own."""
    results = read_results(output)
    if not results:
        raise SightlineError(f"No row in {output} is finished; there is nothing to tabulate.")
    return Tables(result_tables(results, dataset, seed), dataset, [*notes, *_notes(results)])


def _notes(results: Sequence[RowResult]) -> list[str]:
    notes = []
    problems = max(result.record.get("problems", 0) for result in results)
    if problems:
        what = counted(problems, "bad record or document", "bad records and documents")
        notes.append(f"{what} without features skipped")
    for result in results:
        found = result.record.get("notes", {})
        if "by_validation" in found:
            honest = found["by_validation"]
            notes.append(
                f"{result.row.name} names each image by the {found['k']} most probable classes, "
                "the number that is best on the test documents, as the paper does; "
                f"{found['k_by_validation']}, the best on the validation documents, give AUC "
                f"{honest['auc']:.1f}, p@1 {honest['p@1']:.1f}, p@5 {honest['p@5']:.1f}"
            )
    return notes
