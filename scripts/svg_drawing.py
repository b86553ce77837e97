"""The parts of which `draw_method.py` makes its figures: text, cells and small pictures, as SVG.

A figure brings its own background, so that it reads on any page, and has a light and a dark form,
which the reader's system chooses.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_STYLE = """\
text { font: 14px system-ui, sans-serif; fill: #24211d }
.soft { fill: #6b655c } .small { font-size: 12.5px } .strong { font-weight: 700 }
.middle { text-anchor: middle }
.page { fill: #fcfbf8 } .card { fill: #f1ede4 } .mark { fill: #e0a420 } .faded { opacity: .42 }
.frame, .dashed, .rule, .icon { fill: none; stroke: #24211d }
.frame { stroke-width: 2.5 } .dashed { stroke: #2f5d62; stroke-width: 2.5; stroke-dasharray: 5 4 }
.rule { stroke: #b9b1a3 } .icon { stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
.dot { fill: #2f5d62 } .true { fill: #24211d }
@media (prefers-color-scheme: dark) {
text, .true { fill: #e6e1d8 } .soft { fill: #a39c90 }
.page { fill: #1d1b18 } .card { fill: #2a2723 } .mark { fill: #b9852a }
.frame, .icon { stroke: #e6e1d8 } .dashed { stroke: #8fbfc0 } .rule { stroke: #5b554c }
.dot { fill: #8fbfc0 }
}"""

#: Small pictures in a box of 40 x 40.
ICONS = {
    "bicycle": "M2 27a8 8 0 1 0 16 0a8 8 0 1 0-16 0M22 27a8 8 0 1 0 16 0a8 8 0 1 0-16 0"
    "M10 27L15 15H27L20 27H10M14 12L20 27M12 12h5M30 27L26 10h5",
    "boat": "M4 28H36L31 35H9ZM20 28V4M23 8L34 24H23ZM17 12L8 24H17Z",
    "cup": "M7 15H28V26a8 8 0 0 1-8 8H15a8 8 0 0 1-8-8ZM28 18h3a5 5 0 0 1 0 10h-3"
    "M13 10q-3-3 0-6M21 10q-3-3 0-6",
    "cake": "M7 21H33V35H7ZM7 26q4 5 8.6 0t8.7 0t8.7 0M20 21V13M20 9q-3-2 0-6q3 4 0 6",
    "house": "M4 20L20 6L36 20M9 17V35H31V17M17 35V25H24V35",
    "tree": "M20 36V20M20 28l6-5M20 4a11 11 0 0 0-8 18a8 8 0 0 0 16 0a11 11 0 0 0-8-18",
}


def figure(width: int, height: int, title: str, description: str, parts: Iterable[str]) -> str:
    """A whole file, with words for those who do not see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            f"<style>\n{_STYLE}\n</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """A line of text; `kind` are classes of the style."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{_number(x)}" y="{_number(y)}">{escape(words)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float, opacity: float = 1) -> str:
    """A rectangle: a cell's colour, a frame, a card."""
    faint = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
    return (
        f'<rect class="{kind}" x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" '
        f'height="{_number(height)}" rx="5"{faint}/>'
    )


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """A thin line."""
    places = " ".join(map(_number, (x1, y1)))
    return f'<path class="rule" d="M{places}L{_number(x2)} {_number(y2)}"/>'


def dot(kind: str, x: float, y: float) -> str:
    """A point on a line."""
    return f'<circle class="{kind}" cx="{_number(x)}" cy="{_number(y)}" r="5.5"/>'


def icon(name: str, x: float, y: float, size: float = 40) -> str:
    """A small picture, by the middle of its box."""
    scale = size / 40
    place = f"translate({_number(x - size / 2)} {_number(y - size / 2)})"
    grown = f" scale({_number(scale)})" if scale != 1 else ""
    return f'<path class="icon" transform="{place}{grown}" d="{ICONS[name]}"/>'


def faded(parts: Iterable[str]) -> str:
    """What does not count here, paler."""
    return f'<g class="faded">{"".join(parts)}</g>'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
