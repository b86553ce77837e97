import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.problems import SightlineError
from sightline.vocabulary import Vocabulary

words = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)


def test_words_are_ordered_by_count_and_then_by_name():
    sentences = [["b", "a", "c"], ["a", "b", "d"], ["c", "e", "b"]]
    assert Vocabulary.from_sentences(sentences, 2).words == ("<unk>", "b", "a", "c")
    assert Vocabulary.from_sentences(sentences, 4).words == ("<unk>",)
    assert Vocabulary.from_sentences([["x"] * 5, ["y"] * 4]).words == ("<unk>", "x")


def test_the_order_of_sentences_makes_no_difference():
    sentences = [[random.Random(seed).choice("abcdefgh")] for seed in range(100)]
    shuffled = random.Random(0).sample(sentences, len(sentences))
    assert sentences != shuffled
    assert Vocabulary.from_sentences(sentences, 1) == Vocabulary.from_sentences(shuffled, 1)


def test_numbers():
    vocabulary = Vocabulary(["<unk>", "a", "b"])
    assert len(vocabulary) == 3
    assert [vocabulary.index(word) for word in ("a", "b", "<unk>", "z")] == [1, 2, 0, 0]
    assert "a" in vocabulary
    assert "z" not in vocabulary


def test_encode_cuts_and_keeps_the_place_of_an_empty_sentence():
    vocabulary = Vocabulary(["<unk>", "a", "b"])
    assert vocabulary.encode(["b", "z", "a"], 20) == [2, 0, 1]
    assert vocabulary.encode(["b", "z", "a"], 2) == [2, 0]
    assert vocabulary.encode(["b", "a"]) == [2, 1]
    assert vocabulary.encode([], 20) == [0]


def test_the_unknown_word_in_a_text_is_unknown():
    vocabulary = Vocabulary.from_sentences([["<unk>", "a"]] * 5)
    assert vocabulary.words == ("<unk>", "a")


@settings(deadline=None)
@given(st.lists(st.lists(words)))
def test_known_words_decode_to_themselves(sentences):
    vocabulary = Vocabulary.from_sentences(sentences, 1)
    for sentence in sentences:
        numbers = vocabulary.encode(sentence, 1000)
        assert [vocabulary.words[number] for number in numbers] == (sentence or ["<unk>"])


@settings(deadline=None)
@given(st.lists(words, unique=True))
def test_saved_and_loaded_it_is_the_same(tmp_path_factory, kept):
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.json"
    vocabulary = Vocabulary(["<unk>", *(word for word in kept if word != "<unk>")])
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    content = orjson.loads(path.read_bytes())
    assert content == {"format": 1, "words": list(vocabulary.words)}
    assert [file.name for file in path.parent.iterdir()] == ["vocabulary.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b'{"format": 1, "words": ["<unk>"', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", 'Expected a JSON object with a list "words".'),
        (b'{"format": 1}', 'Expected a JSON object with a list "words".'),
        (b'{"format": 1, "words": "<unk>"}', 'Expected a JSON object with a list "words".'),
        (b'{"format": 2, "words": ["<unk>"]}', '"format" is 2, but this version reads 1 only.'),
        (b'{"words": ["<unk>"]}', '"format" is None, but this version reads 1 only.'),
        (b'{"format": 1, "words": []}', "The first word of the vocabulary must be '<unk>'."),
        (b'{"format": 1, "words": ["a"]}', "The first word of the vocabulary must be '<unk>'."),
        (
            b'{"format": 1, "words": ["<unk>", "a", "b", "a"]}',
            "The vocabulary holds 'a' twice, as word 1 and as word 3.",
        ),
        (
            b'{"format": 1, "words": ["<unk>", 7]}',
            "Word 1 of the vocabulary is 7, not a string.",
        ),
        (
            b'{"format": 1, "words": ["<unk>", ["a"]]}',
            "Word 1 of the vocabulary is ['a'], not a string.",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_fault(tmp_path, content, message):
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(SightlineError) as raised:
        Vocabulary.load(path)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SightlineError, match=r"v.json cannot be read: No such file"):
        Vocabulary.load(tmp_path / "v.json")


def test_a_word_that_json_cannot_hold_leaves_the_old_file(tmp_path):
    path = tmp_path / "vocabulary.json"
    Vocabulary(["<unk>", "a"]).save(path)
    with pytest.raises(SightlineError, match="cannot be written as JSON"):
        Vocabulary(["<unk>", "\ud800"]).save(path)
    assert Vocabulary.load(path).words == ("<unk>", "a")


def test_related_words_stand_in_for_unknown_ones_and_punctuation_is_passed_over():
    vocabulary = Vocabulary(["<unk>", "dog", "snow", "board"], related=True)
    assert vocabulary.encode(["dogs", ",", "snowboard", "xyzzy", "!"]) == [1, 2, 3, 0]
    assert vocabulary.encode(["snowboard", "dog"], 2) == [2, 3]
    assert vocabulary.encode(["!", "..."]) == [0]
    # A word that was found before is found again.
    assert vocabulary.encode(["dogs"]) == [1]


def test_a_vocabulary_with_vectors_holds_all_of_them_and_then_its_own():
    own = Vocabulary(["<unk>", "dog", "frisbee", ","])
    vocabulary = Vocabulary.with_vectors(["the", ",", "dog", "<unk>", "the"], own)
    assert vocabulary.words == ("<unk>", "the", "dog", "frisbee")
    assert vocabulary.related


def test_whether_related_words_count_is_saved(tmp_path):
    path = tmp_path / "vocabulary.json"
    Vocabulary(["<unk>", "a"], related=True).save(path)
    assert Vocabulary.load(path).related
    path.write_text('{"format": 1, "words": ["<unk>"], "related": "yes"}')
    with pytest.raises(SightlineError, match='"related" is'):
        Vocabulary.load(path)


def test_common_words_are_the_first_without_punctuation():
    first = ["<unk>", ".", "the", ",", "été", *(f"{n}" for n in range(300)), "dog"]
    assert Vocabulary(first).common() == [2, 4]
