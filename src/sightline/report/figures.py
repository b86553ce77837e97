"""What the figures share: style, fonts, text that fits, and files; and the training curves.

Figures are drawn on white, so that they read the same in print and on a dark screen. Colours are
of the Okabe-Ito palette, which colour-blind people tell apart; nothing is said by colour alone.
"""

from __future__ import annotations

import base64
import io
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.files import write_atomically
from sightline.problems import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILLION, GREEN = "#0072B2", "#B84A00", "#009E73"
DARK, MIDDLE, LIGHT, TILE = "#222222", "#5A5A5A", "#BDBDBD", "#D9D9D9"
#: Tried in this order for characters that the first has not; those installed are used.
_FONTS = (
    "DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC",
    "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "PingFang SC", "Hiragino Sans", "Microsoft YaHei",
    "SimHei", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari",
)  # fmt: skip
_PNG_DPI = 200
_EMBEDDED = re.compile(rb"data:image/png;base64,([A-Za-z0-9+/=\s]+)")
_COLUMNS = 3
_STEPS = [1, 2, 2.5, 5, 10]
# Characters that no font draws: controls, and what has no width but turns the direction of text.
_UNDRAWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
# Text may break after a space, and before and after each Chinese or Japanese character.
_PIECES = re.compile(r"[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+\s*|\S\s*")


@dataclass(frozen=True, slots=True)
class Curve:
    """A run's training: objective (the negative validation loss) and AUC in percent by epoch."""

    name: str
    epochs: list[int]
    objective: list[float]
    #: None where the validation documents have no known links.
    auc: list[float] | None
    best_epoch: int | None = None

    @property
    def agreement(self) -> float | None:
        """Spearman correlation of objective and AUC over the epochs."""
        if self.auc is None or len(self.epochs) < 3:
            return None
        if len(set(self.auc)) == 1 or len(set(self.objective)) == 1:
            return None
        from scipy.stats import spearmanr

        return float(spearmanr(self.objective, self.auc).statistic)


def curve_of(name: str, epochs: Sequence[dict[str, Any]]) -> Curve | None:
    """The curve of a run's log records; None for a run that was not trained."""
    if not epochs:
        return None
    auc = [record.get("validation_auc") for record in epochs]
    known = [value for value in auc if value is not None]
    best = [record["epoch"] for record in epochs if record.get("best")]
    return Curve(
        name,
        [record["epoch"] for record in epochs],
        [-record["validation_loss"] for record in epochs],
        known if len(known) == len(auc) else None,
        best[-1] if best else None,
    )


def draw_dynamics(curves: Sequence[Curve], stem: Path) -> list[Path]:
    """Objective and AUC over the epochs, a panel for each run, as the paper plots them."""
    with style():
        from matplotlib.figure import Figure

        columns = min(_COLUMNS, len(curves))
        rows = math.ceil(len(curves) / columns)
        width, height = (6.4, 3.6) if len(curves) == 1 else (3.6 * columns, 2.6 * rows + 0.5)
        figure = Figure((width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for place, curve in enumerate(curves):
            row, column = divmod(place, columns)
            last = place + columns >= len(curves)
            right = column == columns - 1 or place == len(curves) - 1
            _draw_curve(axes[row][column], curve, column == 0, right, last)
        for unused in axes.flat[len(curves) :]:
            unused.axis("off")
        _legend(figure, any(curve.auc is not None for curve in curves))
        return save_figure(figure, stem)


def _draw_curve(axes: Axes, curve: Curve, left: bool, right: bool, bottom: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    agreement = curve.agreement
    rho = "" if agreement is None else f"  (Spearman ρ {agreement:.2f})"
    axes.set_title(shortened(curve.name, 40) + rho, fontsize=9)
    axes.plot(curve.epochs, curve.objective, color=BLUE, marker="o", markersize=3.5)
    axes.tick_params(axis="y", colors=BLUE)
    axes.set_xlim(curve.epochs[0] - 0.5, curve.epochs[-1] + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=_STEPS))
    axes.grid(axis="x", color=LIGHT, linewidth=0.4)
    if curve.best_epoch is not None:
        axes.axvline(curve.best_epoch, color=MIDDLE, linewidth=0.9, linestyle=":")
    if left:
        axes.set_ylabel("objective\n(negative validation loss)", color=BLUE)
    if bottom:
        axes.set_xlabel("epoch")
    if curve.auc is None:
        return
    other = axes.twinx()
    other.plot(curve.epochs, curve.auc, color=VERMILLION, marker="s", markersize=3.5,
               linestyle="--")  # fmt: skip
    other.tick_params(axis="y", colors=VERMILLION)
    other.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=_STEPS))
    if right:
        other.set_ylabel("validation AUC, %", color=VERMILLION)


def _legend(figure: Figure, has_auc: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=BLUE, marker="o", markersize=4, label="inter-document objective")
    ]
    if has_auc:
        handles.append(
            Line2D([], [], color=VERMILLION, marker="s", markersize=4, linestyle="--",
                   label="intra-document AUC")
        )  # fmt: skip
    handles.append(Line2D([], [], color=MIDDLE, linestyle=":", label="epoch that is kept"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)


# ---- what all figures share


@contextmanager
def style() -> Iterator[None]:
    """The settings that every figure is made and saved under."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        raise MissingExtraError("Drawing figures", "reproduce") from None
    settings: dict[Any, Any] = {
        "font.family": list(fonts()),
        "font.size": 9,
        "text.color": DARK,
        "axes.labelcolor": DARK,
        "axes.edgecolor": MIDDLE,
        "axes.spines.top": False,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        # A dollar sign in a sentence is a dollar sign.
        "text.parse_math": False,
        # Letters as outlines: the file looks the same whatever fonts the reader has.
        "svg.fonttype": "path",
        # Equal figures are equal files.
        "svg.hashsalt": "sightline",
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG and as SVG; returns the two files."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = []
    for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], dpi=_PNG_DPI, metadata=metadata)
        files.append(stem.with_name(stem.name + suffix))
        data = buffer.getvalue()
        write_atomically(files[-1], _with_jpegs(data) if suffix == ".svg" else data)
    return files


def _with_jpegs(svg: bytes) -> bytes:
    """The pictures inside as JPEG: photographs take a fraction of matplotlib's PNGs."""
    from PIL import Image

    def jpeg(found: re.Match[bytes]) -> bytes:
        try:
            picture = Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGBA")
        except (OSError, ValueError):  # words of a document that only look like a picture
            return found[0]
        on_white = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
        buffer = io.BytesIO()
        on_white.convert("RGB").save(buffer, "JPEG", quality=75)
        return b"data:image/jpeg;base64," + base64.b64encode(buffer.getvalue())

    return _EMBEDDED.sub(jpeg, svg)


@cache
def fonts() -> tuple[str, ...]:
    """Those of the known fonts that are installed."""
    from matplotlib.font_manager import fontManager

    installed = {entry.name for entry in fontManager.ttflist}
    return tuple(name for name in _FONTS if name in installed)


@cache
def _drawable() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, fontManager, get_font

    characters: set[int] = set()
    for name in fonts():
        characters |= set(get_font(fontManager.findfont(FontProperties(name))).get_charmap())
    return frozenset(characters)


def missing_characters(texts: Iterable[str]) -> str:
    """The characters of the texts that no installed font has; the figures show boxes for them."""
    found = dict.fromkeys(character for text in texts for character in drawable_text(text))
    return "".join(c for c in found if not c.isspace() and ord(c) not in _drawable())


def drawable_text(text: str) -> str:
    """A text on one line, without what cannot be drawn."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join(_UNDRAWABLE.sub(" ", text).split())


def shortened(text: str, length: int) -> str:
    """A name cut in its middle, where names differ least."""
    text = drawable_text(text)
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[-(length - 1 - head) :]}"


def fitted_lines(text: str, width: float, lines: int, size: float) -> list[str]:
    """The text in at most so many lines of `width` inches at a font size, cut with an ellipsis."""
    broken: list[str] = [""]
    # No line holds more than so many characters of the narrowest kind: the rest need no measuring.
    pieces = _PIECES.findall(drawable_text(text)[: int(lines * width * 72)])
    for piece in pieces:
        if text_width(broken[-1] + piece.rstrip(), size) <= width:
            broken[-1] += piece
            continue
        if broken[-1]:
            broken.append("")
        while piece and text_width(piece.rstrip(), size) > width:
            fits = max(1, sum(text_width(piece[:n], size) <= width for n in range(1, len(piece))))
            broken[-1] = piece[:fits]
            broken.append("")
            piece = piece[fits:]
            if len(broken) > lines:
                break
        broken[-1] = piece
        if len(broken) > lines:
            break
    broken = [line.rstrip() for line in broken if line.strip()]
    if len(broken) <= lines:
        return broken
    last = broken[lines - 1]
    while last and text_width(f"{last}…", size) > width:
        last = last[:-1].rstrip()
    return [*broken[: lines - 1], f"{last}…"]


def text_width(text: str, size: float) -> float:
    """Width of a text in inches at a font size in points."""
    return _em_width(text) * size / 72


@cache
def _em_width(text: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    if not text:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        properties = FontProperties(list(fonts()), size=100)
        width, _, _ = text_to_path.get_text_width_height_descent(text, properties, False)
    return float(width) / 100
