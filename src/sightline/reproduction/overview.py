"""What is done, what remains and for how long: the overview of a reproduction while it runs.

A table that renews itself on a terminal, plain lines elsewhere, all on standard error. The time
left follows from the epochs that the runs' logs hold.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO

from sightline.progress import duration
from sightline.reproduction.rows import Row
from sightline.verbosity import is_quiet

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

Status = Literal["waiting", "running", "done", "failed", "absent"]


@dataclass
class RowState:
    """How far a row is."""

    row: Row
    epochs_wanted: int  # 0 where nothing is trained
    status: Status = "waiting"
    #: Why it failed or is absent.
    reason: str = ""
    #: The log's records so far.
    epochs: list[dict[str, Any]] = field(default_factory=list)
    #: Test scores once it is done.
    test: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.row}: {self.progress}"

    @property
    def progress(self) -> str:
        """What there is to say of the row beside its name."""
        if self.status in ("failed", "absent"):
            return f"{self.status}: {self.reason}"
        if self.status == "done":
            return _words("done", self.test.get("loss"), self.test.get("auc"), "test")
        if not self.epochs:
            return self.status
        last = self.epochs[-1]
        place = f"epoch {last['epoch']} of {self.epochs_wanted}"
        loss, auc = last["validation_loss"], last.get("validation_auc")
        return _words(place, loss, auc, "validation")


def _words(place: str, loss: float | None, auc: float | None, split: str) -> str:
    parts = [place]
    if loss is not None:
        parts.append(f"{split} loss {loss:.4f}")
    if auc is not None:
        parts.append(f"{split} AUC {auc:.1f}")
    return ", ".join(parts)


def seconds_left(states: Sequence[RowState], jobs: int) -> float | None:
    """How long the epochs to come will take, `jobs` rows at a time; None before the first one.

    An epoch takes as long as the row's own did so far, or those of rows of its kind: NoStruct
    reads one sentence a document, which is an order of magnitude less work.
    """
    left = [state for state in states if state.status in ("waiting", "running")]
    trained = [state for state in left if state.epochs_wanted > len(state.epochs)]
    per_row = []
    for state in trained:
        seconds = _epoch_seconds(state, states)
        if seconds is None:
            return None
        per_row.append(seconds * (state.epochs_wanted - len(state.epochs)))
    return max(sum(per_row) / jobs, max(per_row)) if per_row else 0.0


def _epoch_seconds(state: RowState, states: Sequence[RowState]) -> float | None:
    alike = [other for other in states if _kind(other) == _kind(state)]
    for group in ([state], alike):
        seconds = [epoch["seconds"] for other in group for epoch in other.epochs]
        if seconds:
            return float(sum(seconds) / len(seconds))
    return None


def _kind(state: RowState) -> bool:
    return state.row.name.startswith("NoStruct")


class Overview:
    """Shows the states of all rows: a live table, or a line whenever one changes."""

    def __init__(self, states: Sequence[RowState], jobs: int, stream: TextIO | None = None) -> None:
        self.states, self.jobs = states, jobs
        self.stream = stream or sys.stderr
        self._live: Live | None = None
        self._said: dict[Row, str] = {}

    def __enter__(self) -> Self:
        if self.stream.isatty() and not is_quiet():
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.stream)
            self._live = Live(self._table(), console=console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            self._live.stop()

    def show(self) -> None:
        """Show the states as they are now."""
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            return
        if is_quiet():
            return
        for state in self.states:
            words = str(state)
            if state.status != "waiting" and self._said.get(state.row) != words:
                self._said[state.row] = words
                self.stream.write(f"{words}; {self.summary()}\n")
        self.stream.flush()

    def summary(self) -> str:
        """How many rows are done and how long the others will take."""
        finished = sum(state.status not in ("waiting", "running") for state in self.states)
        seconds = seconds_left(self.states, self.jobs)
        time_left = "time left unknown yet" if seconds is None else f"{duration(seconds)} left"
        return f"{finished} of {len(self.states)} rows finished, {time_left}"

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        # The summary on top, where a window that is too low for all rows still shows it.
        table = Table("row", "progress", box=None, title=self.summary(), title_justify="left")
        styles = {"done": "green", "failed": "red", "running": "bold", "absent": "dim"}
        for state in self.states:
            style = styles.get(state.status, "dim")
            table.add_row(str(state.row), Text(state.progress, style=style))
        return table
