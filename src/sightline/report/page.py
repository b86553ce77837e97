"""The report as one HTML file: no other file, no request, nothing of a document run as code.

Every text is escaped; the policy in the head names the page's own script and style by their
hashes, so that nothing else can run even if an escape were forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from sightline.analysis_tables import Table
from sightline.html_writing import data_address, page_head, page_part, page_scripts
from sightline.progress import duration
from sightline.reproduction.paper_results import TITLES
from sightline.reproduction.result_tables import METRICS


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure of the page: its file's bytes, what it shows in words, and its caption."""

    data: bytes
    kind: str  # the type of the file, as in a data address
    alt: str
    caption: str


@dataclass(frozen=True, slots=True)
class Page:
    """All that the report says."""

    title: str
    #: Sentences below the title.
    summary: list[str]
    commands: list[str]
    #: `tables.json` of the reproduction, or nothing.
    results: Mapping[str, Any]
    figures: list[PageFigure]
    analysis: list[Table]
    #: Whole sentences on what is absent from the analysis, and why.
    analysis_notes: list[str]
    documents: list[dict[str, Any]]
    pictures: list[str]
    documents_note: str
    #: By heading: names and values.
    facts: dict[str, dict[str, str]] = field(default_factory=dict)


def render(page: Page) -> str:
    """The whole page."""
    styles, scripts = [page_part("report.css")], [page_part("report.js")]
    data = {"documents": page.documents, "pictures": page.pictures}
    sections = {
        "results": ("Results", _results(page.results)),
        "figures": ("Figures", _figures(page.figures)),
        "analysis": ("Analysis", _analysis(page)),
        "documents": ("Documents", _documents(page)),
        "repeat": ("How to repeat it", _repeat(page)),
    }
    links = "".join(f'<li><a href="#{id}">{title}</a></li>' for id, (title, _) in sections.items())
    body = "".join(
        f'<section aria-labelledby="{id}"><h2 id="{id}">{title}</h2>{content}</section>\n'
        for id, (title, content) in sections.items()
    )
    summary = "".join(f"<p>{escape(words)}</p>" for words in page.summary)
    return (
        f"{page_head(escape(page.title), styles, scripts)}<body>\n"
        '<a class="skip" href="#results">Skip to the results</a>\n'
        f"<header><h1>{escape(page.title)}</h1>{summary}"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>\n<main>\n{body}</main>\n'
        f"{page_scripts(data, scripts)}</body>\n</html>\n"
    )


# ---- sections


def _results(results: Mapping[str, Any]) -> str:
    rows = results.get("rows") or []
    if not rows:
        return "<p>No table: the grid has not been run.</p>"
    notes = "".join(f"<li>{escape(str(note))}</li>" for note in results.get("notes") or [])
    parts = [f"<ul>{notes}</ul>" if notes else ""]
    for number in dict.fromkeys(row["negative_documents"] for row in rows):
        of_number = [row for row in rows if row["negative_documents"] == number]
        b = f"b = {number}: " if number else ""
        if any(row["auc"] is not None for row in of_number):
            parts.append(_score_table(of_number, b, results.get("dataset")))
        else:
            parts.append(f"<p>{b}No AUC and no precision, because no true links are known.</p>")
        parts.append(_training_table(of_number, b))
    parts.append(
        '<p class="soft">In brackets the 95 % interval by bootstrap over documents. Bold as in the '
        "paper: within one point of the best in the column.</p>"
    )
    return "".join(parts)


def _score_table(rows: Sequence[Mapping[str, Any]], b: str, dataset: str | None) -> str:
    compared = dataset is not None
    heads = ["row"]
    for name in METRICS.values():
        heads += [name, "95 %", *(["paper", "difference"] if compared else [])]
    lines = []
    for row in rows:
        cells = []
        for metric in METRICS:
            cells += _score_cells(row, metric, compared)
        lines.append(_line(str(row["row"]), cells))
    beside = f", beside the paper's {dict(TITLES).get(dataset, dataset)}" if dataset else ""  # type: ignore[call-overload]
    return _table(f"{b}Scores in percent, means over test documents{beside}", heads, lines)


def _score_cells(row: Mapping[str, Any], metric: str, compared: bool) -> list[str]:
    ours = row[metric]
    if ours is None:
        return ["<td>-</td>"] * (4 if compared else 2)
    shown = f"{ours:.1f}"
    low, high = row[f"{metric}_low"], row[f"{metric}_high"]
    cells = [
        f"<td><strong>{shown}</strong></td>" if row[f"{metric}_bold"] else f"<td>{shown}</td>",
        f'<td class="paper">[{low:.1f}, {high:.1f}]</td>',
    ]
    if compared:
        paper, difference = row[f"{metric}_paper"], row[f"{metric}_difference"]
        cells += [
            f'<td class="paper">{"-" if paper is None else f"{paper:.1f}"}</td>',
            f"<td>{'-' if difference is None else f'{difference:+.1f}'}</td>",
        ]
    return cells


def _training_table(rows: Sequence[Mapping[str, Any]], b: str) -> str:
    lines = []
    for row in rows:
        if row["epochs"] is None:
            continue
        losses = (row["validation_loss"], row["test_loss"])
        cells = [str(row["dimension"]), str(row["learning_rate"])]
        cells.append(f"{row['best_epoch']} of {row['epochs']}")
        cells += ["-" if loss is None else f"{loss:.4f}" for loss in losses]
        cells.append(duration(row["seconds"]))
        lines.append(_line(str(row["row"]), [f"<td>{cell}</td>" for cell in cells]))
    heads = ["row", "d", "learning rate", "best epoch", "validation loss", "test loss",
             "training time"]  # fmt: skip
    return _table(f"{b}How the models were trained", heads, lines) if lines else ""


def _figures(figures: Sequence[PageFigure]) -> str:
    if not figures:
        return "<p>No figures: no model was trained.</p>"
    return "".join(
        f'<figure><img alt="{escape(figure.alt)}" src="{data_address(figure.data, figure.kind)}">'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>\n"
        for figure in figures
    )


def _analysis(page: Page) -> str:
    parts = [f"<p>{escape(note)}</p>" for note in page.analysis_notes]
    for table in page.analysis:
        lines = [
            _line(row[0], [f"<td>{escape(cell)}</td>" for cell in row[1:]],
                  row[0].startswith("paper"))
            for row in table.rows
        ]  # fmt: skip
        parts.append(_table(table.title, table.header, lines))
        parts += [f'<p class="soft">{escape(note)}</p>' for note in table.notes]
    return "".join(parts)


def _documents(page: Page) -> str:
    if not page.documents:
        return f"<p>{escape(page.documents_note)}</p>" + _EMPTY_BROWSER
    scored = any(document["auc"] is not None for document in page.documents)
    orders = {"longest": "most sentences", "images": "most images", "id": "id"}
    group = ""
    if scored:
        orders = {"hardest": "hardest first", "easiest": "easiest first", **orders}
        names = ("hardest", "average", "easiest")
        options = '<option value="">all</option>' + "".join(
            f'<option value="{name}">{name}</option>' for name in names
        )
        group = f'<div><label for="group">Group</label><select id="group">{options}</select></div>'
    options = "".join(f'<option value="{key}">{words}</option>' for key, words in orders.items())
    return (
        f"<p>{escape(page.documents_note)}</p>"
        "<p>● is a predicted link, ✓ and a green frame a true one. Sentences and images are "
        "numbered from 1. In the list, the arrow keys, Page Up and Down, Home and End choose a "
        "document.</p>"
        "<noscript><p>The list of documents needs JavaScript; all else on this page does "
        "not.</p></noscript>"
        '<div class="browser"><div><div class="controls" role="search">'
        '<div><label for="filter">Filter by words or id</label>'
        '<input id="filter" type="search" autocomplete="off"></div>'
        f'<div><label for="order">Order</label><select id="order">{options}</select></div>{group}'
        '</div><p id="status" role="status" class="soft"></p>'
        '<ul id="list" role="listbox" tabindex="0" aria-label="Documents"></ul></div>'
        '<div id="panel" role="region" aria-label="Chosen document"></div></div>'
    )


# The script finds its elements in every page.
_EMPTY_BROWSER = (
    '<div hidden><input id="filter"><select id="order"><option value="id"></select>'
    '<p id="status"></p><ul id="list"></ul><div id="panel"></div></div>'
)


def _repeat(page: Page) -> str:
    parts = []
    if page.commands:
        words = "The command:" if len(page.commands) == 1 else "The commands:"
        commands = escape("\n".join(page.commands))
        parts.append(f"<p>{words}</p><pre><code>{commands}</code></pre>")
    for heading, facts in page.facts.items():
        lines = [_line(name, [f"<td>{escape(value)}</td>"]) for name, value in facts.items()]
        parts.append(_table(heading, ["", ""], lines))
    return "".join(parts)


def _line(name: str, cells: Sequence[str], paper: bool = False) -> str:
    css = ' class="paper"' if paper else ""
    return f'<tr{css}><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'


def _table(caption: str, heads: Sequence[str], lines: Sequence[str]) -> str:
    head = ""
    if any(heads):
        cells = "".join(f'<th scope="col">{escape(word)}</th>' for word in heads)
        head = f"<thead><tr>{cells}</tr></thead>"
    label = escape(caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table>'
        f"<caption>{label}</caption>{head}<tbody>{''.join(lines)}</tbody></table></div>"
    )
