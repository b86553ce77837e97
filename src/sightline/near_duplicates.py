"""Images that look the same although their files differ: resaved, resized, recompressed.

The paper drops documents with duplicate images, found by opennota's findimagedupes "with a
neighbor threshold of 3" (supplement, DIY). That tool counts the differing bits of the DCT hash of
the pHash library (Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions",
2010), which `perceptual_hash` follows. The older findimagedupes in Perl is another method.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.image_colours import Pixels

#: The paper's threshold: at most so many of 64 bits differ.
THRESHOLD = 3

_BITS = 64
_SIDE = 32
# The lowest frequencies carry what an image looks like; the very first is only its brightness.
_FREQUENCIES = slice(1, 9)
# Below this, in gray levels of 255, a coefficient is rounding noise of a flat image.
_NOISE = 1e-3

_COSINES = np.sqrt(2 / _SIDE) * np.cos(
    np.pi / _SIDE * np.arange(_SIDE)[:, None] * (np.arange(_SIDE) + 0.5)
)
_ONES = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)


def perceptual_hash(pixels: Pixels) -> int:
    """Hash an image to 64 bits: which of its 64 lowest frequencies are above their median.

    The gray image is brought to 32 x 32 by weighted means of all its pixels. pHash itself takes
    means of 7 x 7 pixels at 32 x 32 points, whatever the size of the image; with that, half of all
    images are no longer found after they were halved (measured on the guides), with this all are.
    Flat images, of whatever colour, have the hash 0.
    """
    image = Image.fromarray(pixels).convert("L").resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    spectrum = _COSINES @ np.asarray(image, np.float64) @ _COSINES.T
    low = spectrum[_FREQUENCIES, _FREQUENCIES].ravel()
    low[np.abs(low) < _NOISE] = 0
    bits = np.packbits(low > np.median(low), bitorder="little")
    return int.from_bytes(bits.tobytes(), "little")


def hash_distance(a: int, b: int) -> int:
    """Count the bits in which two hashes differ."""
    return (a ^ b).bit_count()


def near_duplicates(hashes: Sequence[int], threshold: int = THRESHOLD) -> list[tuple[int, int]]:
    """Find all pairs i < j of hashes that differ in at most `threshold` bits, in order.

    Exact: of `threshold + 1` bands of bits, two such hashes agree in one at least, so only hashes
    that share a band are compared. Many equal hashes make as many pairs as they have.
    """
    if threshold < 0:
        raise ValueError(f"threshold is {threshold}; it must not be negative")
    values = np.array(hashes, np.uint64)
    # With more bands than bits some are empty, and all hashes share those.
    edges = np.linspace(0, _BITS, threshold + 2).astype(int)
    found = [np.empty((0, 2), np.intp)]
    for low, high in pairwise(edges.tolist()):
        mask = (1 << high) - (1 << low)
        found.extend(_pairs_in_band(values, values & np.uint64(mask), threshold))
    pairs = np.unique(np.concatenate(found), axis=0)
    return [(int(first), int(second)) for first, second in pairs]


def _pairs_in_band(
    values: NDArray[np.uint64], band: NDArray[np.uint64], threshold: int
) -> list[NDArray[np.intp]]:
    """Compare each hash with those that share its band: in sorted order, its next neighbours."""
    order = np.argsort(band, kind="stable")
    found = []
    start = np.arange(len(order))
    for distance in range(1, len(order)):
        start = start[start + distance < len(order)]
        start = start[band[order[start]] == band[order[start + distance]]]
        if not len(start):
            break
        first, second = order[start], order[start + distance]
        near = _ONES[(values[first] ^ values[second]).view(np.uint16)].reshape(-1, 4).sum(1)
        close = near <= threshold
        # The sort is stable, so the first index is the smaller.
        found.append(np.stack([first[close], second[close]], axis=1))
    return found
