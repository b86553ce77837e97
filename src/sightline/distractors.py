"""Distractor captions: sentences of a document that were written about images of others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable

from sightline.problems import SightlineError


class CaptionPool:
    """The captions of one split, each with the image it was written about."""

    def __init__(self, captions: Iterable[tuple[str, str]]) -> None:
        self._captions = list(captions)
        self._per_image = Counter(image for image, _ in self._captions)

    def draw(self, count: int, own_images: Collection[str], rng: random.Random) -> list[str]:
        """Draw different captions, each equally likely, none about an image of the document."""
        own = sum(self._per_image[image] for image in set(own_images))
        if len(self._captions) - own < count:
            raise SightlineError(
                f"A split has only {len(self._captions) - own:,} captions from which a document "
                f"can draw its {count} distractors; give it more images or leave it out."
            )
        drawn: dict[int, str] = {}
        # A document's own captions are few, so hardly a draw has to be repeated.
        while len(drawn) < count:
            index = rng.randrange(len(self._captions))
            image, caption = self._captions[index]
            if image not in own_images:
                drawn.setdefault(index, caption)
        return list(drawn.values())
