"""How many documents a split gets, and which."""

from __future__ import annotations

import random
from collections.abc import Iterable

from sightline.problems import SightlineError, UsageError


def split_size(total: int, size: float, split: str) -> int:
    """Give the size of a split: a share of the total if below 1, rounded down, else the number."""
    if size < 0 or (size >= 1 and size != int(size)):
        raise UsageError(
            f"The split {split} has the size {size:g}; expected a share below 1 or a whole number."
        )
    # The nudge makes 0.29 of 100 be 29, which floats miss by a hair.
    count = int(total * size + 1e-9) if size < 1 else int(size)
    if count > total:
        raise SightlineError(f"The split {split} cannot have {count:,} of {total:,} documents.")
    return count


def random_splits(ids: Iterable[str], validation: float, test: float, seed: int) -> dict[str, str]:
    """Draw the split of each document; the same ids, in whichever order, give the same splits."""
    drawn = sorted(ids)
    random.Random(seed).shuffle(drawn)
    sizes = [
        split_size(len(drawn), size, name) for size, name in ((validation, "val"), (test, "test"))
    ]
    train_size = len(drawn) - sum(sizes)
    if train_size < 0:
        raise SightlineError(
            f"The splits val and test cannot have {sum(sizes):,} of {len(drawn):,} documents."
        )
    names = ["train"] * train_size + ["val"] * sizes[0] + ["test"] * sizes[1]
    return dict(zip(drawn, names, strict=True))
