"""Near duplicates: found when resaved or resized, and exactly by the threshold."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.fft import dctn

from sightline.images import decode
from sightline.near_duplicates import hash_distance, near_duplicates, perceptual_hash


def all_pairs(hashes, threshold):
    return [
        (i, j)
        for i in range(len(hashes))
        for j in range(i + 1, len(hashes))
        if bin(hashes[i] ^ hashes[j]).count("1") <= threshold
    ]


@st.composite
def clustered(draw):
    """Draw hashes of which many are a few bits apart."""
    centres = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
    hashes = []
    for _ in range(draw(st.integers(0, 30))):
        value = draw(st.sampled_from(centres))
        for bit in draw(st.lists(st.integers(0, 63), max_size=6)):
            value ^= 1 << bit
        hashes.append(value)
    return hashes


@settings(max_examples=60, deadline=None)
@given(clustered(), st.sampled_from([0, 1, 2, 3, 4, 8, 20, 62, 63, 64, 100]))
def test_pairs_are_exact(hashes, threshold):
    assert near_duplicates(hashes, threshold) == all_pairs(hashes, threshold)


def test_every_difference_of_three_bits_is_found():
    """Each of the 41,664 ways to differ in three bits, against the bands."""
    hashes = [0] + [1 << a | 1 << b | 1 << c for a in range(64) for b in range(a) for c in range(b)]
    with_zero = [pair for pair in near_duplicates(hashes[:3000]) if pair[0] == 0]
    assert len(with_zero) == 2999
    # The rest one by one, as they are also near each other.
    assert all(near_duplicates([0, value]) == [(0, 1)] for value in hashes[3000::97])
    assert near_duplicates([0, 0b1111]) == []


def test_thresholds():
    assert near_duplicates([5, 5, 4], 0) == [(0, 1)]
    assert near_duplicates([]) == []
    assert near_duplicates([1]) == []
    assert hash_distance(0, 2**64 - 1) == 64
    with pytest.raises(ValueError, match="must not be negative"):
        near_duplicates([1], -1)


def test_the_hash_is_the_sign_of_low_frequencies():
    """The same by scipy's transform: 32 x 32 gray values, frequencies 1 to 8 both ways."""
    pixels = np.random.default_rng(5).integers(0, 256, (32, 32, 3), np.uint8)
    gray = np.asarray(Image.fromarray(pixels).convert("L"), float)
    low = dctn(gray, norm="ortho")[1:9, 1:9].ravel()
    expected = sum(1 << i for i in range(64) if low[i] > np.median(low))
    assert perceptual_hash(pixels) == expected
    assert perceptual_hash(pixels).bit_count() == 32


def test_flat_images_have_the_hash_zero():
    for colour in (0, 77, 255):
        for size in ((1, 1), (100, 300), (33, 31)):
            assert perceptual_hash(np.full((*size, 3), colour, np.uint8)) == 0


@pytest.fixture(scope="module")
def photographs(shared_data):
    """Photographs and drawings of both corpora."""
    paths = []
    for folder in ("guides", "openstax"):
        files = sorted((shared_data / folder / "images").iterdir())
        paths += files[:: len(files) // 60][:60]
    assert len(paths) == 120
    return [decode(path).pixels for path in paths]


def resaved(pixels, quality):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=quality)
    return decode(stream.getvalue()).pixels


def resized(pixels, part):
    height, width = (max(1, round(side * part)) for side in pixels.shape[:2])
    return np.asarray(Image.fromarray(pixels).resize((width, height)))


@pytest.mark.parametrize(
    "change",
    [
        lambda pixels: resaved(pixels, 60),
        lambda pixels: resized(pixels, 0.93),
        lambda pixels: resized(pixels, 0.5),
        lambda pixels: resaved(resized(pixels, 1.5), 80),
        lambda pixels: (pixels * 0.9).astype(np.uint8),
    ],
    ids=["resaved", "resized", "halved", "enlarged and resaved", "darkened"],
)
def test_changed_photographs_stay_near(photographs, change):
    distances = [
        hash_distance(perceptual_hash(pixels), perceptual_hash(change(pixels)))
        for pixels in photographs
    ]
    assert np.mean(np.array(distances) <= 3) >= 0.97


def test_different_photographs_are_far(photographs):
    hashes = [perceptual_hash(pixels) for pixels in photographs]
    distances = [
        hash_distance(hashes[i], hashes[j])
        for i in range(len(hashes))
        for j in range(i + 1, len(hashes))
    ]
    assert np.median(distances) == 32
    assert np.mean(np.array(distances) <= 10) < 0.001
    copies = near_duplicates([*hashes, perceptual_hash(resaved(photographs[7], 60))])
    assert (7, len(hashes)) in copies


def sampled_hash(pixels):
    """Hash as the pHash library does: means of 7 x 7 pixels at 32 x 32 points."""
    gray = np.asarray(Image.fromarray(pixels).convert("L"), float)
    padded = np.pad(gray, 3, mode="edge")
    means = np.lib.stride_tricks.sliding_window_view(padded, (7, 7)).mean(axis=(2, 3))
    height, width = gray.shape
    points = means[np.arange(32) * height // 32][:, np.arange(32) * width // 32]
    low = dctn(points, norm="ortho")[1:9, 1:9].ravel()
    return sum(1 << i for i in range(64) if low[i] > np.median(low))


def test_the_hash_agrees_with_the_papers_tool(photographs):
    """Its points lie half a cell to the upper left, so that some bits differ, but few."""
    distances = []
    for pixels in photographs[::3]:
        square = np.asarray(Image.fromarray(pixels).resize((224, 224)))
        distances.append(hash_distance(perceptual_hash(square), sampled_hash(square)))
    assert np.mean(distances) < 8
