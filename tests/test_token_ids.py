"""Many sentences at once give the token ids that `tokenize` and `encode` give one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import token_ids
from sightline.sentences import tokenize
from sightline.token_ids import TokenIds
from sightline.vocabulary import Vocabulary

WORDS = ("<unk>", "a", "dog", "dogs", "don't", "runs", ".", "...", "é", "中", "http://a.b/c")
SOME = [
    "A Dog runs.",
    "a dog  runs .",
    "",
    " ",
    "\x00",
    "Don’t run...",
    "中dog é",
    "see http://a.b/c.",
]

texts = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from([*WORDS, "Σ", "ΑΣ", "\u200d", "x,y", "--", "\t", "\x1f", "\xa0"])).map(
        " ".join
    ),
)


def one_by_one(vocabulary, sentences, limit):
    return [vocabulary.encode(tokenize(sentence), limit) for sentence in sentences]


def all_at_once(reader, sentences):
    distinct, places = reader.of(sentences)
    ends = np.cumsum(distinct.lengths)
    assert len(distinct.token_ids) == distinct.lengths.sum()
    lists = [
        distinct.token_ids[e - n : e].tolist() for e, n in zip(ends, distinct.lengths, strict=True)
    ]
    return [lists[place] for place in places], len(lists)


@pytest.mark.parametrize("related", [False, True])
@settings(max_examples=150, deadline=None)
@given(
    sentences=st.lists(st.one_of(st.sampled_from(SOME), texts), max_size=8), limit=st.integers(1, 6)
)
def test_any_text(related, sentences, limit):
    vocabulary = Vocabulary(WORDS, related)
    reader = TokenIds(vocabulary, limit)
    for _ in range(2):  # the second time from memory
        assert all_at_once(reader, sentences)[0] == one_by_one(vocabulary, sentences, limit)


def test_sentences_that_the_encoder_cannot_tell_apart_are_one():
    vocabulary = Vocabulary(WORDS)
    sentences = ["A dog.", "a dog.", "A DOG.", "a dog", "Don't", "Don’t"]
    found, distinct = all_at_once(TokenIds(vocabulary, 20), sentences)
    assert found == one_by_one(vocabulary, sentences, 20)
    assert distinct == 3


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(token_ids, "_REMEMBERED", 10)
    vocabulary = Vocabulary(WORDS)
    reader = TokenIds(vocabulary, 20)
    for number in range(30):
        sentences = [f"a {number} dog", f"dogs {number}x {number}y."]
        assert all_at_once(reader, sentences)[0] == one_by_one(vocabulary, sentences, 20)
        assert len(reader._pieces) <= 10 + 6
