"""Policies that turn a similarity matrix into links.

A policy decides which sentence-image pairs of a document become links; the score of a link is
always its entry in the similarity matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from sightline.assignment import assign
from sightline.choices import MaxLinks, Policy
from sightline.problems import SightlineError

_POLICIES = get_args(Policy)


@dataclass(frozen=True, slots=True)
class Link:
    """A sentence and an image that belong together, by their places in the document, from 0.

    `score` is their cosine similarity, from -1 to 1.
    """

    sentence: int
    image: int
    score: float
    #: How sure the link is, from 0 to 1; None for a model that was not calibrated.
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class LinkChoices:
    """How links are chosen, as `link` and `confident_links` take it.

    `policy` is one of those that `link` describes; `max_links` is "all", "half" or a number;
    `min_confidence` is from 0 to 1.
    """

    policy: Policy = "assignment"
    max_links: MaxLinks = "all"
    threshold: float = 0.0
    min_confidence: float = 0.0

    def __post_init__(self) -> None:
        _check_policy(self.policy)
        _cap(0, 0, self.max_links)
        if not np.isfinite(self.threshold):
            raise SightlineError(f"threshold is {self.threshold!r}; expected a finite number.")
        if not 0 <= self.min_confidence <= 1:
            raise SightlineError(f"min_confidence is {self.min_confidence!r}; expected 0 to 1.")


def link(
    similarity_SV: NDArray[np.floating],
    policy: Policy = "assignment",
    max_links: MaxLinks = "all",
    threshold: float = 0.0,
) -> list[Link]:
    """The links of one document, those with the highest score first.

    `max_links` is "all", which is as many as the smaller of sentences and images, "half" of it, or
    a number. `policy` is one of

    - `assignment`: at most one link per sentence and per image, with the largest total, at most
      `max_links` of them; pairs that would lower the total stay apart.
    - `dense`: each sentence with its best image and each image with its best sentence.
    - `top-k`: of those, the `max_links` best of either direction.
    - `threshold`: of the dense pairs, those whose similarity is above `threshold`; sentences and
      images that resemble nothing stay without a link.
    - `mmc4`: every image gets a sentence: the full assignment, then images that are left over
      go to their best sentence (the recipe of Multimodal C4).
    """
    sentences, images = similarity_SV.shape
    _check_policy(policy)
    cap = _cap(sentences, images, max_links)
    if not sentences or not images:
        return []
    if policy == "assignment":
        pairs = {(int(s), int(v)) for s, v in assign(similarity_SV, cap, exactly=False)}
    elif policy == "mmc4":
        pairs = {(int(s), int(v)) for s, v in assign(similarity_SV)}
        linked = {image for _, image in pairs}
        best_sentence = similarity_SV.argmax(0)
        pairs |= {(int(best_sentence[v]), v) for v in range(images) if v not in linked}
    else:
        limit = cap if policy == "top-k" else None
        by_sentence = [(s, int(v)) for s, v in enumerate(similarity_SV.argmax(1))]
        by_image = [(int(s), v) for v, s in enumerate(similarity_SV.argmax(0))]
        pairs = {
            pair
            for side in (by_sentence, by_image)
            for pair in sorted(side, key=lambda pair: -similarity_SV[pair])[:limit]
            if policy != "threshold" or similarity_SV[pair] > threshold
        }
    links = [Link(s, v, float(similarity_SV[s, v])) for s, v in pairs]
    return sorted(links, key=lambda link: (-link.score, link.sentence, link.image))


def confident_links(links: Iterable[Link], min_confidence: float) -> list[Link]:
    """The links that are at least so sure; 0 keeps all.

    A link whose confidence is unknown can be neither kept nor left out in good faith.
    """
    found = list(links)
    if min_confidence <= 0:
        return found
    if any(one.confidence is None for one in found):
        raise SightlineError(
            "This model was not calibrated, so its links have no confidence; calibrate it with "
            "'sightline calibrate', or choose by score with --policy threshold."
        )
    return [one for one in found if (one.confidence or 0.0) >= min_confidence]


def why_unlinked(similarity_SV: NDArray[np.floating], choices: LinkChoices) -> list[str]:
    """Why each image of a document would have no link, for those that have none."""
    sentences, images = similarity_SV.shape
    if not sentences:
        return ["there is no sentence"] * images
    chosen = link(similarity_SV, choices.policy, choices.max_links, choices.threshold)
    if choices.policy == "threshold":
        reason = f"similarity not above the threshold, {choices.threshold:g}"
    elif len(chosen) < _cap(sentences, images, choices.max_links):
        reason = "no sentence is similar to it"
    elif choices.max_links == "all":
        reason = "other images fit the sentences better"
    else:
        reason = "beyond the cap on links"
    unsure = f"below the least confidence, {choices.min_confidence:g}"
    linked = {one.image for one in chosen}
    return [unsure if image in linked else reason for image in range(images)]


def _check_policy(policy: str) -> None:
    if policy not in _POLICIES:
        expected = f"{', '.join(_POLICIES[:-1])} or {_POLICIES[-1]}"
        raise SightlineError(f"policy is {policy!r}; expected {expected}.")


def _cap(sentences: int, images: int, max_links: MaxLinks) -> int:
    every = min(sentences, images)
    if max_links == "all":
        return every
    if max_links == "half":
        return (every + 1) // 2
    if isinstance(max_links, bool) or not isinstance(max_links, int) or max_links < 1:
        raise SightlineError(f"max_links is {max_links!r}; expected all, half or a number from 1.")
    return min(max_links, every)
