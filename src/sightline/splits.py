"""How many documents a split gets."""

from __future__ import annotations

from sightline.problems import SightlineError


def split_size(total: int, size: float, split: str) -> int:
    """Give the size of a split: a share of the total if below 1, rounded down, else the number."""
    if size < 0 or (size >= 1 and size != int(size)):
        raise SightlineError(
            f"The split {split} has the size {size:g}; expected a share below 1 or a whole number."
        )
    # The nudge makes 0.29 of 100 be 29, which floats miss by a hair.
    count = int(total * size + 1e-9) if size < 1 else int(size)
    if count > total:
        raise SightlineError(f"The split {split} cannot have {count:,} of {total:,} documents.")
    return count
