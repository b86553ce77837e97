"""Copies across splits, beside every pair compared with every other."""

from hypothesis import given
from hypothesis import strategies as st

from sightline.image_copies import ImageHashes
from sightline.near_duplicates import THRESHOLD, hash_distance

SPLITS = ["train", "val", None]
# Hashes that differ in few bits or in many.
LOOKS = st.sampled_from([0, 1, 0b111, 0b1111, 0b111111, 2**64 - 1, 2**64 - 2, 0xF0F0F0F0])
IMAGES = st.lists(st.tuples(st.sampled_from(SPLITS), st.integers(0, 6), LOOKS), max_size=30)


@given(IMAGES)
def test_copies_are_those_of_all_pairs(images):
    hashes = ImageHashes()
    for split, content, look in images:
        hashes.add(split, content, look)
    first = [i for i, image in enumerate(images) if image[0] == "train"]
    second = [i for i, image in enumerate(images) if image[0] == "val"]

    def alike(a, b):
        return 0 not in (a, b) and hash_distance(a, b) <= THRESHOLD

    same = [j for j in second if any(images[i][1] == images[j][1] for i in first)]
    looks = [
        j for j in second if j not in same and any(alike(images[i][2], images[j][2]) for i in first)
    ]
    for found, expected in zip(hashes.copies(), (same, looks), strict=True):
        assert sum(copies.count for copies in found) == len(expected)
        for copies in found:
            assert copies.splits == ("train", "val")
            assert copies.total == len(second)
            assert [copy for _, copy in copies.first] == expected[:5]
            assert all(original in first for original, _ in copies.first)
    for copies in hashes.copies()[0]:
        assert all(images[i][1] == images[j][1] for i, j in copies.first)
    for copies in hashes.copies()[1]:
        assert all(hash_distance(images[i][2], images[j][2]) <= THRESHOLD for i, j in copies.first)


def test_broken_images_are_copies_of_nothing():
    hashes = ImageHashes()
    hashes.add_broken()
    hashes.add("train", 1, 0xFF)
    hashes.add_broken()
    hashes.add("val", 2, 0xFF00)
    assert hashes.copies() == ([], [])
