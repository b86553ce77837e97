"""Words that are read as other forms of them or as their parts."""

import time

import pytest

from sightline.related_words import related_words

KNOWN = {
    "dog", "bicycle", "berry", "run", "make", "box", "fire", "hydrant", "snow", "board", "boy",
    "friend", "paint", "fast", "t", "shirt", "dogs",
}  # fmt: skip


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("bicycle's", ["bicycle"]),
        ("boys'", ["boy"]),
        ("berries", ["berry"]),
        ("boxes", ["box"]),
        ("running", ["run"]),
        ("making", ["make"]),
        ("painted", ["paint"]),
        ("painter", ["paint"]),
        ("fastest", ["fast"]),
        ("t-shirt", ["t", "shirt"]),
        ("fire-hydrants", ["fire", "hydrant"]),
        ("snowboard", ["snow", "board"]),
        ("boyfriend", ["boy", "friend"]),
        ("xyzzy", []),
        ("-", []),
        ("", []),
    ],
)
def test_a_word_is_read_as_what_is_known_of_it(word, expected):
    assert related_words(word, KNOWN) == expected


def test_all_that_comes_back_is_known():
    for word in ("dogged-boxing", "un'known's", "a-b_c/d.e", "---", "x" * 39, "boards'boards'"):
        assert set(related_words(word, KNOWN)) <= KNOWN


def test_a_hostile_word_takes_no_time():
    before = time.process_time()
    for word in ("a" * 1_000_000, "a-" * 500_000, "'s" * 500_000):
        assert related_words(word, KNOWN) == []
    assert time.process_time() - before < 0.5
