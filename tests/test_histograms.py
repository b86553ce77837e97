"""Histograms: the bins hold all numbers, and few bins show them."""

from collections import Counter
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.histograms import Histogram

NUMBERS = st.lists(st.integers(0, 40) | st.integers(0, 10**6), min_size=1, max_size=200)


@given(NUMBERS)
def test_the_bins_hold_every_number_once(numbers):
    histogram = Histogram.of(Counter(numbers))
    assert histogram.mean == pytest.approx(mean(numbers))
    assert histogram.median == median(numbers)
    assert histogram.maximum == max(numbers)
    assert 1 <= len(histogram.bins) <= 15
    end = -1
    for place, one in enumerate(histogram.bins):
        last = place == len(histogram.bins) - 1
        assert one.start == end + 1 or place == 0 or end == 0
        assert (one.end is None) <= last
        inside = [n for n in numbers if one.start <= n and (one.end is None or n <= one.end)]
        assert one.count == len(inside)
        end = one.end
    assert sum(one.count for one in histogram.bins) == len(numbers)


def test_one_far_off_number_does_not_hide_the_others():
    histogram = Histogram.of(Counter(dict.fromkeys(range(1, 21), 10) | {5000: 1}))
    assert [str(one) for one in histogram.bins][:2] == ["1-2", "3-4"]
    assert str(histogram.bins[-1]) == "21 or more"
    assert histogram.to_record()["bins"][-1] == [21, None, 1]


def test_bars_are_as_long_as_the_counts():
    lines = Histogram.of(Counter({0: 1, 1: 400, 2: 200})).lines()
    assert lines == [f"0  {'#'} 1", f"1  {'#' * 40} 400", f"2  {'#' * 20} 200"]


def test_no_numbers():
    assert Histogram.of(Counter()).lines() == []
