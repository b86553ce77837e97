"""How sure a link is: its share among all that compete with it.

A score alone says little: the best of 300 sentences scores high by chance, and all sentences of an
article about birds resemble a bird. So a pair is weighed against what else its sentence and its
image could be linked to, and against as many imagined strangers: with weights
w = exp(sharpness * score), its confidence is

    w of the pair / (w of all pairs of its sentence or its image + strangers)

where the strangers weigh exp(sharpness * level) for each sentence and each image of the document.
Sharpness and level are estimated from documents without labels (`calibration`); there it is also
said why the outcome is the chance that the pair is a true link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.linking import Link
from sightline.problems import SightlineError

FloatArray = NDArray[np.float64]

#: Scores are cosines, so that a sharper weight than this tells no two of them apart.
SHARPNESS = (0.1, 200.0)
#: A level above the best score of all means that no link is to be trusted.
LEVEL = (-1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What turns the scores of one model into confidences."""

    #: How fast a pair's weight grows with its score.
    sharpness: float
    #: The score of an imagined stranger.
    level: float
    #: How many documents it was estimated from.
    documents: int

    def confidences(self, similarity_SV: NDArray[np.floating]) -> FloatArray:
        """The confidence of every sentence-image pair of a document, from 0 to 1.

        They add up to 1 at most over the sentences of an image, and over the images of a sentence.
        Stacks of matrices (BSV) may be padded with -inf; a pair that is padding has confidence 0.
        """
        score_SV = similarity_SV.astype(np.float64)
        if not score_SV.size:
            return score_SV
        if not (score_SV < np.inf).all():
            raise SightlineError("A similarity is not a finite number, so it has no confidence.")
        # Relative to the highest, so that no weight is too large a number.
        highest = np.maximum(score_SV.max((-2, -1), keepdims=True), self.level)
        weight_SV = np.exp(self.sharpness * (score_SV - highest))
        strangers = _present(score_SV) * np.exp(self.sharpness * (self.level - highest))
        rivals_SV = weight_SV.sum(-2, keepdims=True) + weight_SV.sum(-1, keepdims=True)
        rivals_SV = rivals_SV - weight_SV + strangers
        # Where all weights vanish beside the highest one, nothing speaks for the pair.
        confidence_SV: FloatArray = weight_SV / np.maximum(rivals_SV, np.finfo(np.float64).tiny)
        return confidence_SV

    def to_json(self) -> dict[str, Any]:
        """The calibration as `config.json` holds it."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Any, where: str) -> Calibration:
        """The calibration that a file holds; `where` names the file in errors."""
        if not isinstance(record, dict):
            raise SightlineError(f"{where}: calibration is not a JSON object.")
        names = [field.name for field in fields(cls)]
        for name in sorted(record.keys() ^ set(names)):
            known = "is missing" if name in names else "is not known"
            raise SightlineError(
                f"{where}: calibration.{name} {known}; calibrate the model again with "
                "'sightline calibrate'."
            )
        for name, limits in (("sharpness", SHARPNESS), ("level", LEVEL)):
            _check(where, name, record[name], limits, (int, float))
        _check(where, "documents", record["documents"], (0, 2**53), (int,))
        return cls(float(record["sharpness"]), float(record["level"]), record["documents"])


def _check(
    where: str, name: str, value: Any, limits: tuple[float, float], types: tuple[type, ...]
) -> None:
    if type(value) not in types or not limits[0] <= value <= limits[1]:
        what = "a whole number" if types == (int,) else "a number"
        raise SightlineError(
            f"{where}: calibration.{name} is {shown(value)}; expected {what} from "
            f"{limits[0]} to {limits[1]}. Calibrate the model again with 'sightline calibrate'."
        )


def calibration_of(notes: Mapping[str, Any] | None, where: str) -> Calibration | None:
    """The calibration in what `config.json` says beside the settings, if it is there."""
    record = (notes or {}).get("calibration")
    return None if record is None else Calibration.from_json(record, where)


def with_confidence(
    links: Iterable[Link], similarity_SV: NDArray[np.floating], calibration: Calibration | None
) -> list[Link]:
    """The links of a document with their confidence; without a calibration, as they were."""
    if calibration is None:
        return list(links)
    return links_with(calibration.confidences(similarity_SV), links)


def links_with(confidence_SV: FloatArray, links: Iterable[Link]) -> list[Link]:
    """The links of a document with the confidences that are known for all of its pairs."""
    return [
        Link(one.sentence, one.image, one.score, confidence_SV.item(one.sentence, one.image))
        for one in links
    ]


def confidence_text(confidence: float) -> str:
    """A confidence in percent, for people; what is not quite certain is not said to be."""
    return ">99 %" if 0.995 <= confidence < 1 else f"{100 * confidence:.0f} %"


def _present(score_SV: FloatArray) -> NDArray[np.int64]:
    """How many sentences and images of each matrix are no padding."""
    present_SV = score_SV > -np.inf
    sentences = present_SV.any(-1, keepdims=True).sum(-2, keepdims=True)
    images = present_SV.any(-2, keepdims=True).sum(-1, keepdims=True)
    counts: NDArray[np.int64] = sentences + images
    return counts
