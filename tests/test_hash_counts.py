"""Counting by hash, beside a plain Counter."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sightline import hash_counts
from sightline.hash_counts import HashCounts

GROUPS = st.lists(st.lists(st.text("abc", max_size=2), max_size=8), max_size=12)


@given(GROUPS, st.integers(0, 6))
def test_like_a_counter(groups, unsorted):
    before, hash_counts._UNSORTED = hash_counts._UNSORTED, unsorted
    try:
        counts, plain = HashCounts(), Counter()
        for group in groups:
            counts.add(group)
            plain.update(group)
        assert len(counts) == len(plain)
        assert counts.hashes.tolist() == sorted(map(hash, plain))
        assert counts.repetitions() == plain.total() - len(plain)
        for times in (1, 2, 3):
            often = [thing for thing, count in plain.items() if count >= times]
            assert counts.at_least(times).tolist() == sorted(map(hash, often))
    finally:
        hash_counts._UNSORTED = before


def test_memory_is_16_bytes_for_each_different_thing():
    counts = HashCounts()
    for start in range(0, 10**6, 1000):
        counts.add(range(start % 10**5, start % 10**5 + 1000))
    assert len(counts) == 10**5
    assert counts.repetitions() == 9 * 10**5
    assert counts.hashes.dtype == counts.at_least(1).dtype == np.int64
