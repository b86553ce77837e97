"""How well similarity matrices find the true links: metrics on arrays, as scikit-learn has them.

The truth comes first, then the scores; both are of one document, or lists of as many documents.
The truth of a document is a list of `(sentence, image)` index pairs, or a 0/1 array of the shape
of its similarity matrix (sentences x images); None where it is not known. A list is always read as
pairs and an array always as a matrix, so that no document is taken for the other by chance.

A metric lies between 0 and 1 (`sightline.evaluate` gives percent). It is not defined for a
document whose truth is unknown or in which no pair or every pair is a link: nan for one document;
of several, such documents are left out of the mean, as the paper does, and `link_scores` counts
them. Ties are exact: AUC counts a tied pair as half, and precision is what is expected when tied
entries come in random order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import index
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from sightline.problems import SightlineError

#: The truth of one document.
Truth = NDArray[Any] | Collection[Sequence[int]] | None
#: The similarity matrix of one document.
Scores = NDArray[Any] | Sequence[Sequence[float]]

_Measure = Callable[[NDArray[np.bool_], NDArray[np.floating]], float]


class MetricError(SightlineError, ValueError):
    """Truth and scores that do not fit together; a ValueError, as in scikit-learn."""


@overload
def link_auc_score(
    y_true: Truth | Sequence[Truth],
    y_score: Scores | Sequence[Scores],
    *,
    average: Literal["documents"] = "documents",
) -> float: ...
@overload
def link_auc_score(
    y_true: Truth | Sequence[Truth], y_score: Scores | Sequence[Scores], *, average: None
) -> NDArray[np.float64]: ...
def link_auc_score(
    y_true: Truth | Sequence[Truth],
    y_score: Scores | Sequence[Scores],
    *,
    average: Literal["documents"] | None = "documents",
) -> float | NDArray[np.float64]:
    """Chance that a true pair of a document outscores a false one: the area under the ROC curve.

    The mean over documents; `average=None` gives an array with the number of each document.

    >>> link_auc_score([(0, 0), (1, 1)], [[0.9, 0.8], [0.1, 0.3]])
    0.75
    """
    return _averaged(area_under_curve, y_true, y_score, average)


@overload
def precision_at_k(
    y_true: Truth | Sequence[Truth],
    y_score: Scores | Sequence[Scores],
    k: int = 1,
    *,
    average: Literal["documents"] = "documents",
) -> float: ...
@overload
def precision_at_k(
    y_true: Truth | Sequence[Truth],
    y_score: Scores | Sequence[Scores],
    k: int = 1,
    *,
    average: None,
) -> NDArray[np.float64]: ...
def precision_at_k(
    y_true: Truth | Sequence[Truth],
    y_score: Scores | Sequence[Scores],
    k: int = 1,
    *,
    average: Literal["documents"] | None = "documents",
) -> float | NDArray[np.float64]:
    """Share of true pairs among the `k` best of a document, or among all where it has fewer.

    The mean over documents; `average=None` gives an array with the number of each document.

    >>> precision_at_k([(0, 0), (1, 1)], [[0.9, 0.8], [0.1, 0.3]], k=2)
    0.5
    """
    cutoff = _checked_k(k)
    return _averaged(
        lambda true, scores: precision_at(true, scores, cutoff), y_true, y_score, average
    )


def link_scores(
    y_true: Truth | Sequence[Truth], y_score: Scores | Sequence[Scores], k: Iterable[int] = (1, 5)
) -> dict[str, float]:
    """All metrics at once, and how many documents they are means of.

    >>> link_scores([[(0, 0)], []], [[[0.9, 0.8]], [[0.5, 0.4]]], k=(1,))
    {'documents': 1, 'skipped': 1, 'auc': 1.0, 'p@1': 1.0}
    """
    auc_D = link_auc_score(y_true, y_score, average=None)
    skipped = int(np.isnan(auc_D).sum())
    precision = {f"p@{one}": precision_at_k(y_true, y_score, one) for one in k}
    return {
        "documents": len(auc_D) - skipped, "skipped": skipped, "auc": _mean(auc_D), **precision,
    }  # fmt: skip


def area_under_curve(true: NDArray[np.bool_], scores: NDArray[np.floating]) -> float:
    """AUC of flat arrays in which some entries are true and some are false."""
    negatives = np.sort(scores[~true])
    positives = scores[true]
    below = np.searchsorted(negatives, positives, side="left").sum()
    not_above = np.searchsorted(negatives, positives, side="right").sum()
    return float(below + not_above) / (2 * len(positives) * len(negatives))


def precision_at(true: NDArray[np.bool_], scores: NDArray[np.floating], cutoff: int) -> float:
    """Share of true entries among the `cutoff` highest; of all entries if there are fewer."""
    cutoff = min(cutoff, len(scores))
    lowest = np.partition(scores, -cutoff)[-cutoff]  # the score of the last place
    above, tied = scores > lowest, scores == lowest
    places_for_tied = cutoff - int(above.sum())
    expected = true[above].sum() + places_for_tied * true[tied].mean()
    return float(expected) / cutoff


def is_defined(true: NDArray[np.bool_]) -> bool:
    """Whether some pairs are links and some are not, without which there is nothing to rank."""
    return 0 < int(true.sum()) < true.size


def true_matrix(links: Iterable[Sequence[int]], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Index pairs as a matrix of sentences x images."""
    true_SV = np.zeros(shape, bool)
    for sentence, image in links:
        true_SV[sentence, image] = True
    return true_SV


# ---- one document or several


def _averaged(
    measure: _Measure, y_true: Any, y_score: Any, average: str | None
) -> float | NDArray[np.float64]:
    if average not in ("documents", None):
        raise MetricError(f"average is {average!r}; expected 'documents' or None.")
    values = []
    for true_SV, similarity_SV in _documents(y_true, y_score):
        if true_SV is None or not is_defined(true_SV):
            values.append(math.nan)
        else:
            values.append(measure(true_SV.ravel(), similarity_SV.ravel()))
    values_D = np.array(values, np.float64)
    return values_D if average is None else _mean(values_D)


def _mean(values_D: NDArray[np.float64]) -> float:
    known = values_D[~np.isnan(values_D)]
    return float(known.mean()) if known.size else math.nan


def _documents(
    y_true: Any, y_score: Any
) -> Iterator[tuple[NDArray[np.bool_] | None, NDArray[np.floating]]]:
    if _is_one(y_score):
        similarity_SV = _similarity(y_score, "y_score")
        yield _truth(y_true, similarity_SV.shape, "y_true"), similarity_SV
        return
    try:
        truths, scores = list(y_true), list(y_score)
    except TypeError:
        raise MetricError(
            "y_score is of several documents, and y_true is not a list of as many."
        ) from None
    if len(truths) != len(scores):
        raise MetricError(
            f"y_true has {len(truths)} documents, y_score {len(scores)}; give both the same."
        )
    for number, (truth, score) in enumerate(zip(truths, scores, strict=True)):
        similarity_SV = _similarity(score, f"y_score[{number}]")
        yield _truth(truth, similarity_SV.shape, f"y_true[{number}]"), similarity_SV


def _is_one(y_score: Any) -> bool:
    """Whether the scores are those of one document: a matrix, not a list of them."""
    if isinstance(y_score, np.ndarray) and y_score.dtype != object:
        return y_score.ndim != 3
    try:
        return len(y_score) > 0 and np.ndim(y_score[0]) < 2
    except (TypeError, KeyError, ValueError):  # no sequence, or a ragged first entry
        return True


def _similarity(y_score: Any, name: str) -> NDArray[np.floating]:
    try:
        similarity_SV = np.asarray(y_score)
    except ValueError:
        similarity_SV = np.empty(0, object)
    if similarity_SV.ndim != 2 or similarity_SV.dtype.kind not in "fiub":
        raise MetricError(
            f"{name} has shape {similarity_SV.shape} and type {similarity_SV.dtype}; expected a "
            "matrix of numbers, sentences x images, or a list of one for each document."
        )
    if similarity_SV.dtype.kind == "f" and np.isnan(similarity_SV).any():
        sentence, image = np.argwhere(np.isnan(similarity_SV))[0]
        raise MetricError(
            f"{name} is nan for sentence {sentence} and image {image}; leave out images without "
            "features, in y_true too."
        )
    return similarity_SV


def _truth(y_true: Any, shape: tuple[int, ...], name: str) -> NDArray[np.bool_] | None:
    if y_true is None:
        return None
    if hasattr(y_true, "__array__"):  # of torch and pandas, too
        return _matrix(np.asarray(y_true), shape, name)
    return true_matrix(_pairs(y_true, shape, name), shape)


def _matrix(y_true: NDArray[Any], shape: tuple[int, ...], name: str) -> NDArray[np.bool_]:
    if y_true.shape != shape:
        raise MetricError(
            f"{name} has shape {y_true.shape}, y_score {shape}; an array is a 0/1 matrix of "
            "sentences x images. Give index pairs as a list: array.tolist()."
        )
    true_SV: NDArray[np.bool_] = y_true == 1
    if not (true_SV | (y_true == 0)).all():
        raise MetricError(f"{name} holds other numbers than 0 and 1.")
    return true_SV


def _pairs(y_true: Any, shape: tuple[int, ...], name: str) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    try:
        for sentence, image in y_true:
            if isinstance(sentence, bool | np.bool_) or isinstance(image, bool | np.bool_):
                raise TypeError
            pairs.append((index(sentence), index(image)))
    except (TypeError, ValueError):
        raise MetricError(
            f"{name} is not a list of (sentence, image) index pairs; give a 0/1 matrix as a "
            "numpy array."
        ) from None
    for sentence, image in pairs:
        if not 0 <= sentence < shape[0] or not 0 <= image < shape[1]:
            raise MetricError(
                f"{name} links sentence {sentence} and image {image}, but y_score has {shape[0]} "
                f"sentences and {shape[1]} images."
            )
    return pairs


def _checked_k(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise MetricError(f"k is {k!r}; expected a whole number from 1 on.")
    return int(k)
