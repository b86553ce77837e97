"""Why some documents are harder than others: the paper's error analysis (Sections 4.1 and 5).

How much of the variance of the documents' AUC their spread explains, and how much spread and
content together (ordinary least squares, statsmodels); whether models have trouble with the same
documents (Spearman correlation, scipy); which documents are the hardest and the easiest.
What cannot be computed is None, with the reason in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.document_measures import DocumentMeasures
from sightline.problems import MissingExtraError
from sightline.progress import counted
from sightline.report.run_folders import Run

FloatArray = NDArray[np.float64]

#: The paper reduces the content of images and of sentences to so many dimensions each.
_CONTENT_DIMENSIONS = 20
#: So many of the hardest and of the easiest documents are listed.
_RANKED = 10


@dataclass(frozen=True, slots=True)
class Regression:
    """How much of the variance of AUC some measures explain; `reason` says why there is none."""

    regressors: str
    documents: int
    #: Independent columns beside the constant.
    columns: int
    r2: float | None = None
    adjusted_r2: float | None = None
    f: float | None = None
    p: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman correlation of two series over documents; `reason` says why there is none."""

    first: str
    second: str
    documents: int
    rho: float | None = None
    p: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document among the hardest or easiest: its AUC is the mean over the models."""

    id: str
    auc: float
    sentences: int | None = None
    images: int | None = None
    image_spread: float | None = None
    text_spread: float | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What `sightline analyze` finds; `notes` are whole sentences on what is left out and why."""

    #: By model: image spread, text spread, both, both and content.
    regressions: dict[str, list[Regression]] = field(default_factory=dict)
    #: By model: of AUC with image spread and with text spread.
    directions: dict[str, list[Correlation]] = field(default_factory=dict)
    between_models: list[Correlation] = field(default_factory=list)
    hardest: list[RankedDocument] = field(default_factory=list)
    easiest: list[RankedDocument] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_record(self) -> dict[str, Any]:
        """The analysis as a JSON object."""
        return asdict(self)


def analyse(runs: Sequence[Run], measures: DocumentMeasures | None) -> Analysis:
    """Analyse per-document AUC; without measures only what needs none.

    Models are compared over the paper's own, DC, TK and AP, where the runs say that they are;
    otherwise over all that are given.
    """
    scored = [run for run in runs if run.auc]
    if not scored:
        return Analysis(notes=["No document has an AUC: the true links are not known."])
    compared = [run for run in scored if run.is_structured] or scored
    notes = _notes(measures)
    regressions, directions = {}, {}
    if measures is not None and measures.ids:
        all_blocks = _blocks(measures)
        for run in scored:
            rows = [row for row, id in enumerate(measures.ids) if id in run.auc]
            auc_D = np.array([run.auc[measures.ids[row]] for row in rows])
            blocks = {name: block[rows] for name, block in all_blocks.items()}
            regressions[run.name] = _regressions(auc_D, blocks)
            directions[run.name] = [
                correlate("AUC", name, auc_D, blocks[name][:, 0])
                for name in ("image spread", "text spread")
                if name in blocks
            ]
    ranked = _ranked(compared, measures)
    return Analysis(
        regressions,
        directions,
        [_between(one, other) for one, other in combinations(compared, 2)],
        ranked[:_RANKED],
        ranked[::-1][:_RANKED],
        notes,
    )


def regress(regressors: str, auc_D: FloatArray, regressors_DK: FloatArray) -> Regression:
    """Ordinary least squares of AUC on a constant and the regressors, with the F-test of all."""
    documents = len(auc_D)
    basis_DR = _independent(regressors_DK)
    columns = basis_DR.shape[1]
    if documents and np.ptp(auc_D) == 0:
        reason = "AUC is the same for every document"
    elif columns == 0:
        reason = f"{regressors} is the same for every document"
    elif documents < columns + 2:
        reason = f"{_are(documents)} too few for {counted(columns, 'regressor')}"
    else:
        ols, with_constant = _statsmodels()
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = ols(auc_D, with_constant(basis_DR, has_constant="add")).fit()
            r2, adjusted = float(fit.rsquared), float(fit.rsquared_adj)
            f, p = float(fit.fvalue), float(fit.f_pvalue)
        # A perfect fit leaves nothing to divide by: F is then infinite.
        finite = f if np.isfinite(f) else None
        return Regression(regressors, documents, columns, r2, adjusted, finite, p)
    return Regression(regressors, documents, columns, reason=reason)


def principal_components(vectors_DE: FloatArray, count: int = _CONTENT_DIMENSIONS) -> FloatArray:
    """The vectors along their first principal components; fewer where there are no more."""
    centred = vectors_DE - vectors_DE.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    kept = min(count, _rank(sizes, centred.shape))
    components: FloatArray = left[:, :kept] * sizes[:kept]
    return components


def correlate(first: str, second: str, one_D: FloatArray, other_D: FloatArray) -> Correlation:
    """Spearman correlation of two series, or the reason why there is none."""
    from scipy.stats import spearmanr

    documents = len(one_D)
    reason = None
    if documents < 3:
        reason = f"{_are(documents, ' in common')} too few"
    for name, series in ((first, one_D), (second, other_D)):
        if reason is None and np.ptp(series) == 0:
            reason = f"{name} is the same for every document"
    if reason is not None:
        return Correlation(first, second, documents, reason=reason)
    found = spearmanr(one_D, other_D)
    return Correlation(first, second, documents, float(found.statistic), float(found.pvalue))


def _between(one: Run, other: Run) -> Correlation:
    common = [id for id in one.auc if id in other.auc]
    series = [np.array([run.auc[id] for id in common]) for run in (one, other)]
    return correlate(one.name, other.name, series[0], series[1])


def _blocks(measures: DocumentMeasures) -> dict[str, FloatArray]:
    """The regressors, spread before content."""
    blocks = {"image spread": measures.image_spread_D[:, None]}
    if measures.text_spread_D is not None:
        blocks["text spread"] = measures.text_spread_D[:, None]
    blocks["image content"] = principal_components(measures.image_content_DE)
    if measures.text_content_DE is not None:
        blocks["text content"] = principal_components(measures.text_content_DE)
    return blocks


def _regressions(auc_D: FloatArray, blocks: dict[str, FloatArray]) -> list[Regression]:
    spreads = [name for name in blocks if name.endswith("spread")]
    groups = {name: [name] for name in spreads} if len(spreads) > 1 else {}
    groups |= {"spread": spreads, "spread + content": list(blocks)}
    return [
        regress(title, auc_D, np.hstack([blocks[name] for name in names]))
        for title, names in groups.items()
    ]


def _ranked(runs: Sequence[Run], measures: DocumentMeasures | None) -> list[RankedDocument]:
    """The documents that all of the runs scored, hardest first; ties by id."""
    common = set.intersection(*(set(run.auc) for run in runs))
    means = {id: float(np.mean([run.auc[id] for run in runs])) for id in common}
    row_of = {id: row for row, id in enumerate(measures.ids)} if measures is not None else {}
    ranked = []
    for id in sorted(common, key=lambda id: (means[id], id)):
        row = row_of.get(id)
        if row is None or measures is None:
            ranked.append(RankedDocument(id, means[id]))
            continue
        text = measures.text_spread_D
        ranked.append(
            RankedDocument(
                id,
                means[id],
                int(measures.sentences_D[row]),
                int(measures.images_D[row]),
                float(measures.image_spread_D[row]),
                None if text is None else float(text[row]),
            )
        )
    return ranked


def _notes(measures: DocumentMeasures | None) -> list[str]:
    if measures is None:
        return ["Without image features there is neither spread nor content."]
    notes = []
    if measures.text_spread_D is None:
        notes.append("Without --word-vectors there is no spread or content of sentences.")
    if measures.left_out:
        notes.append(
            f"{_are(measures.left_out)} left out of the regressions: none of their "
            "images has features, or none of their sentences a word with a vector."
        )
    return notes


def _are(documents: int, which: str = "") -> str:
    return counted(documents, f"document{which} is", f"documents{which} are")


def _independent(regressors_DK: FloatArray) -> FloatArray:
    """An orthogonal basis of what the regressors add to a constant, column by column scaled.

    It explains as much as they do, and a constant or repeated column drops out.
    """
    if not len(regressors_DK):
        return np.empty((0, 0))
    centred = regressors_DK - regressors_DK.mean(axis=0)
    scale = centred.std(axis=0)
    varies = scale > 1e-9 * np.maximum(np.abs(regressors_DK).max(axis=0), 1e-9)
    if not varies.any():
        return np.empty((len(regressors_DK), 0))
    scaled = centred[:, varies] / scale[varies]
    left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    basis: FloatArray = left[:, : _rank(sizes, scaled.shape)]
    return basis


def _rank(sizes: FloatArray, shape: tuple[int, ...]) -> int:
    """How many singular values are more than rounding; as numpy's `matrix_rank`, less strict."""
    if not len(sizes):
        return 0
    return int((sizes > 10 * sizes[0] * max(shape) * np.finfo(np.float64).eps).sum())


def _statsmodels() -> tuple[Any, Any]:
    try:
        from statsmodels.regression.linear_model import OLS
        from statsmodels.tools.tools import add_constant
    except ModuleNotFoundError:
        raise MissingExtraError("The regression", "reproduce") from None
    return OLS, add_constant
