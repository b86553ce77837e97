"""The analysis in tables, the paper's figures beside ours: for the terminal and for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len

from sightline.analysis import Analysis, Correlation, RankedDocument, Regression
from sightline.reproduction.paper_results import SPEARMAN_DC_AP, TITLES, VARIANCE_EXPLAINED
from sightline.reproduction.rows import RANDOM

#: More pairs of models than this are summed up by their lowest and highest.
_PAIRS_SHOWN = 15
_FEW_PAIRS = 5
#: Section 4.1 gives the F-test of spread for these; Section 5 gives none for the others.
_PAPER_P = dict.fromkeys(("dii", "sis", "dii-stress"), "<< .01")
#: Below this a p-value is only said to be small.
_SMALLEST_P = 0.001
_ABSENT = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of words: the first column names the row, the others are right-aligned numbers."""

    title: str
    header: list[str]
    rows: list[list[str]]
    #: Sentences below the table.
    notes: list[str] = field(default_factory=list)

    def to_text(self) -> str:
        """The table for a terminal."""
        lines = [self.header, *self.rows]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "  ".join(
                _padding(cell, width) + cell if place else cell + _padding(cell, width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *(f"  {line}" for line in shown), *self.notes])


def analysis_tables(analysis: Analysis) -> list[Table]:
    """Everything that the analysis found, in the order of the paper; what is absent is left out."""
    tables = []
    if analysis.regressions:
        tables += [_variance_table(analysis), _direction_table(analysis)]
    if analysis.between_models:
        tables.append(_spearman_table(analysis.between_models))
    for title, documents in (("Hardest", analysis.hardest), ("Easiest", analysis.easiest)):
        if documents:
            tables.append(_documents_table(f"{title} documents", documents))
    return tables


def _variance_table(analysis: Analysis) -> Table:
    """R2 by model, then the paper's."""
    alone = [
        title
        for title in ("image spread", "text spread")
        if any(r.regressors == title for rs in analysis.regressions.values() for r in rs)
    ]
    header = ["R2 of AUC, %", *alone, "spread", "p", "+ content", "adjusted", "p", "documents"]
    rows, notes = [], []
    for model, regressions in analysis.regressions.items():
        by_title = {regression.regressors: regression for regression in regressions}
        spread, both = by_title["spread"], by_title["spread + content"]
        rows.append(
            [model, *(_percent(by_title[title].r2) for title in alone),
             _percent(spread.r2), _p(spread.p),
             _percent(both.r2), _percent(both.adjusted_r2), _p(both.p), f"{both.documents:,}"]
        )  # fmt: skip
        notes += _absences(model, regressions)
    for dataset, paper in VARIANCE_EXPLAINED.items():
        shares = [f"{paper.spread:.0f}", _PAPER_P.get(dataset, _ABSENT)]
        shares += [f"{paper.spread_and_content:.0f}", _ABSENT, _ABSENT, _ABSENT]
        rows.append([f"paper, {TITLES[dataset]}: AP", *(_ABSENT for _ in alone), *shares])
    notes.append(
        "Adjusted: the R2 of spread + content less what as many regressors explain by chance."
    )
    if RANDOM in analysis.regressions:
        notes.append(
            f"{RANDOM} is the control: what is explained of it is chance. It can be much where "
            "documents have few pairs, for these have extreme AUC and unusual content."
        )
    return Table("How much of a document's AUC do its spread and content explain?",
                 header, rows, notes)  # fmt: skip


def _direction_table(analysis: Analysis) -> Table:
    """Whether documents with more spread are easier, as the paper finds."""
    names = [d.second for d in next(iter(analysis.directions.values()))]
    header = ["Spearman correlation of AUC", *(word for name in names for word in (name, "p"))]
    rows = [
        [model, *(word for found in directions for word in (_rho(found.rho), _p(found.p)))]
        for model, directions in analysis.directions.items()
    ]
    notes = [
        f"{model}: no correlation with {found.second}, because {found.reason}."
        for model, directions in analysis.directions.items()
        for found in directions
        if found.reason
    ]
    return Table("Are documents with more spread easier?", header, rows, notes)


def _absences(model: str, regressions: Sequence[Regression]) -> list[str]:
    return [
        f"{model}: no regression on {regression.regressors}, because {regression.reason}."
        for regression in regressions
        if regression.reason is not None
    ]


def _spearman_table(correlations: Sequence[Correlation]) -> Table:
    known = [correlation for correlation in correlations if correlation.rho is not None]
    ordered = sorted(known, key=lambda correlation: correlation.rho or 0)
    notes = [
        f"{c.first} and {c.second}: none, because {c.reason}." for c in correlations if c.reason
    ]
    if len(ordered) > _PAIRS_SHOWN:
        left_out = len(ordered) - 2 * _FEW_PAIRS
        notes.append(f"{left_out} pairs between the lowest and the highest are not shown.")
        ordered = ordered[:_FEW_PAIRS] + ordered[-_FEW_PAIRS:]
    rows = [
        [f"{c.first} and {c.second}", _rho(c.rho), _p(c.p), f"{c.documents:,}"] for c in ordered
    ]
    rows += [
        [f"paper, {TITLES[dataset]}: DC and AP", _rho(rho), _ABSENT, _ABSENT]
        for dataset, rho in SPEARMAN_DC_AP.items()
    ]
    header = ["Spearman correlation of AUC", "rho", "p", "documents"]
    return Table("Do models have trouble with the same documents?", header, rows, notes)


def _documents_table(title: str, documents: Sequence[RankedDocument]) -> Table:
    header = ["document", "mean AUC", "sentences", "images", "image spread", "text spread"]
    rows = [
        [
            document.id,
            f"{document.auc:.1f}",
            *(_ABSENT if n is None else f"{n:,}" for n in (document.sentences, document.images)),
            *(
                _ABSENT if spread is None else f"{spread:.3f}"
                for spread in (document.image_spread, document.text_spread)
            ),
        ]
        for document in documents
    ]
    return Table(title, header, rows)


def _percent(share: float | None) -> str:
    return _ABSENT if share is None else f"{100 * share:.1f}"


def _rho(rho: float | None) -> str:
    return _ABSENT if rho is None else f"{rho:.2f}"


def _p(p: float | None) -> str:
    if p is None:
        return _ABSENT
    return f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.3f}"


def _padding(cell: str, width: int) -> str:
    return " " * (width - cell_len(cell))
