"""The rows of the paper's tables as runs: what each is called and with which settings it trains."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from sightline.problems import UsageError
from sightline.reproduction.paper_results import NEGATIVE_DOCUMENTS
from sightline.settings import NegativesName, Settings, SimilarityName

RANDOM, OBJECT_DETECTION = "Random", "Object detection"
#: What is not trained, and what `baselines.score_baseline` calls it.
BASELINES = {RANDOM: "random", OBJECT_DETECTION: "object-detection"}


class _Recipe(NamedTuple):
    similarity: SimilarityName
    negatives: NegativesName
    max_links: Literal["all", "half"] = "all"


#: What is trained, in the order of the paper's tables. The paper has no `half mean` rows.
_RECIPES = {
    "NoStruct mean": _Recipe("NoStruct", "mean"),
    "NoStruct hard": _Recipe("NoStruct", "hard"),
    "DC mean": _Recipe("DC", "mean"),
    "DC": _Recipe("DC", "hard"),
    "TK mean": _Recipe("TK", "mean"),
    "TK": _Recipe("TK", "hard"),
    "TK half mean": _Recipe("TK", "mean", "half"),
    "TK half": _Recipe("TK", "hard", "half"),
    "AP mean": _Recipe("AP", "mean"),
    "AP": _Recipe("AP", "hard"),
    "AP half mean": _Recipe("AP", "mean", "half"),
    "AP half": _Recipe("AP", "hard", "half"),
}
NAMES = (*BASELINES, *_RECIPES)
#: The rows of the main paper's tables, which show b = 10.
MAIN = (*BASELINES, "NoStruct mean", "DC", "TK", "TK half", "AP", "AP half")
#: The rows of the supplement's tables.
SUPPLEMENT = tuple(name for name in NAMES if "half mean" not in name)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table; b is `negative_documents`, None where nothing is trained."""

    name: str
    negative_documents: int | None

    @property
    def trained(self) -> bool:
        """Whether the row is a model."""
        return self.negative_documents is not None

    @property
    def folder_name(self) -> str:
        """The run's folder: `AP-half-b20`."""
        return str(self).replace(" ", "-")

    def settings(self, common: Settings) -> Settings:
        """The settings of the row's run."""
        if self.negative_documents is None:
            raise ValueError(f"{self.name} is not trained")
        recipe = _RECIPES[self.name]
        return replace(
            common, negative_documents=self.negative_documents, similarity=recipe.similarity,
            negatives=recipe.negatives, max_links=recipe.max_links,
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.name} b{self.negative_documents}" if self.trained else self.name


def rows_from(text: str) -> list[Row]:
    """The rows of `--rows`: `main`, `all`, names such as `AP half` or `DC mean b20`, with commas.

    `all` is every row of the supplement at every b. Rows come in the order of the tables.
    """
    chosen: set[Row] = set()
    for part in text.split(","):
        if part.strip() == "main":
            chosen |= {_row(name, 10) for name in MAIN}
        elif part.strip() == "all":
            chosen |= {_row(name, b) for name in SUPPLEMENT for b in NEGATIVE_DOCUMENTS}
        else:
            chosen.add(_row_named(part))
    return in_order(chosen)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows as the tables list them, one b after another."""
    return sorted(rows, key=lambda row: (row.negative_documents or 0, NAMES.index(row.name)))


def _row(name: str, negative_documents: int) -> Row:
    return Row(name, None if name in BASELINES else negative_documents)


def _row_named(text: str) -> Row:
    words = re.split(r"[\s-]+", text.strip())
    found = re.fullmatch(r"b=?([1-9]\d*)", words[-1])
    name = " ".join(words[:-1] if found else words).lower()
    for known in NAMES:
        if known.lower() == name and not (found and known in BASELINES):
            return _row(known, int(found[1]) if found else 10)
    raise UsageError(
        f"There is no row {text.strip()!r}; the rows are main, all, {', '.join(NAMES)}, and "
        "after the name of a trained one its number of negative documents, as in 'AP b20'."
    )
