"""Sentences of hard texts, and what holds of the spans of any text."""

import re
import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.problems import SightlineError
from sightline.sentence_splitting import LANGUAGES, sentence_strings, split_sentences

# Both splitters get these right.
HARD = [
    ["Hello World.", "My name is Jonas."],
    ["What is your name?", "My name is Jonas."],
    ["There it is!", "I found it."],
    ["My name is Jonas E. Smith."],
    ["Please turn to p. 55."],
    ["They closed the deal with Pitt, Briggs & Co. at noon."],
    ["Let's ask Jane and co.", "They should know."],
    ["I can see Mt. Fuji from here."],
    ["St. Michael's Church is on 5th st. near the light."],
    ["That is JFK Jr.'s book."],
    ["I visited the U.S.A. last year."],
    ["I live in the E.U.", "How about you?"],
    ["I work for the U.S. Government in Virginia."],
    ["I have lived in the U.S. for 20 years."],
    ["She has $100.00 in her bag."],
    ["She has $100.00.", "It is in her bag."],
    ["The ratio is 3.14.", "It rose by .5 percent."],
    ["Her email is Jane.Doe@example.com.", "I sent her an email."],
    ["The site is: https://www.example.50.com/new-site/a_b.html.", "Please check it out."],
    ['She turned to him, "This is great." she said.'],
    ['She turned to him, "This is great."', "She held the book out to show him."],
    ['"Stop!" he cried.', '"I will not."'],
    ["“Who are you?”", "She did not answer."],
    ["Is it (really?) true?", "Yes [of course]."],
    ["Hello!!", "Long time no see."],
    ["Hello!?", "Is that you?"],
    ["She works at Yahoo! in the accounting department."],
    ["I never meant that....", "She left the store."],
    ["One habit was somewhat weakened . . . was that of combining words."],
    ["Dr. Smith, Ph.D., and Prof. J. R. R. Tolkien met at 3.15 p.m. on Jan. 5.", "Nobody came."],
    ["He came, e.g. from Leeds, i.e. the north, etc., and stayed."],
    ["Version 2.0.1 of the file readme.txt is at example.com.", "Get it."],
    ["Gen. Grant met Gov. Smith and Sen. J. Doe in Washington, D.C., on Tuesday."],
    ["Humans can become seriously ill.", "Symptoms include vomiting."],
]
# These only the quick one gets right.
QUICK = [
    ["See Fig. 3 and Eqs. 4 to 6 in vol. 2, pp. 10–12.", "The rest is obvious."],
    ["Use 2 tbsp. sugar and 1 oz. Parmesan.", "Stir well."],
    ["He moved to Washington, D.C.", "The city was hot."],
    ["It ended in 44 B.C.", "A new age began."],
    ["The reading was 2.73 K.", "This is very cold."],
    ["It goes back to Article 5.[3]", "The law was new."],
]


@pytest.mark.parametrize("sentences", HARD)
@pytest.mark.parametrize("fast", [False, True], ids=["pysbd", "fast"])
def test_hard_english_cases(sentences, fast):
    assert sentence_strings(" ".join(sentences), fast=fast) == sentences


@pytest.mark.parametrize("sentences", QUICK)
def test_cases_that_the_quick_splitter_adds(sentences):
    assert sentence_strings(" ".join(sentences), fast=True) == sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", ["Das war z. B. am 3. Oktober so. ", "Dr. Müller kam. ", "Er blieb."]),
        ("hi", ["यह एक वाक्य है। ", "यह दूसरा है।"]),
        ("ja", ["「本当？」と彼は言った。", "はい。", "そうです！"]),
        ("zh", ["他说：“你好。”", "然后走了。", "今天天气很好！", "你呢？", "好"]),
        ("ru", ["Он родился в 1999 г. в Москве. ", "Там жил."]),
    ],
)
def test_other_languages(language, sentences):
    text = "".join(sentences)
    spans = split_sentences(text, language=language)
    assert [text[start:end] for start, end in spans] == [one.strip() for one in sentences]


def test_chinese_and_japanese_end_at_their_stops_in_the_quick_splitter_too():
    text = "他说：“你好。”然后走了。今天天气很好！「本当？」と彼は言った。はい"
    expected = [
        "他说：“你好。”",
        "然后走了。",
        "今天天气很好！",
        "「本当？」と彼は言った。",
        "はい",
    ]
    assert sentence_strings(text, fast=True) == expected


def test_languages_are_those_of_pysbd():
    from pysbd.languages import LANGUAGE_CODES

    assert set(LANGUAGES) == set(LANGUAGE_CODES)
    with pytest.raises(SightlineError, match="No rules to split 'xx'"):
        split_sentences("Text.", language="xx")


@pytest.mark.parametrize("fast", [False, True])
def test_paragraphs_and_list_items_end_sentences_but_line_breaks_do_not(fast):
    text = (
        "A heading\n\nThis is one\r\nsentence. Here is\nanother\n \t\n- cut wood\n- glue\n1. paint"
    )
    assert sentence_strings(text, fast=fast) == [
        "A heading",
        "This is one sentence.",
        "Here is another",
        "- cut wood",
        "- glue",
        "1. paint",
    ]


def test_repeated_sentences_have_spans_of_their_own():
    """What pysbd's own character spans get wrong."""
    text = "Stir.  Stir. Stir.\nAdd salt. Stir."
    spans = split_sentences(text)
    assert [text[start:end] for start, end in spans] == ["Stir."] * 3 + ["Add salt.", "Stir."]
    assert len(set(spans)) == 5


def test_pysbd_does_not_cut_words_or_quotes_off():
    sentences = [
        "He saw “https://example.org/watch?v=1.”",
        "Then Candida spp., which is odd, grew.",
    ]
    assert sentence_strings(" ".join(sentences)) == sentences


PIECES = st.sampled_from(
    [
        *"aB1.!?…。！\"'”’()[]«»ȸ∯&ᓴ-•·\n\r\t \u00a0\u2028\x00\x1c\x85\u0301\ud800\U0001f600",
        *("Mr. ", "e.g. ", "U.S. ", "No. 5", "1. ", "a) ", "http://a.b/c?d=e ", ". . .", "J. "),
        *("The end. ", "You and I. ", "He said “no.” ", "你好。", "&ᓷ&", "Yahoo! ", "\r\n", "\n\n"),
    ]
)
LANGUAGE = st.sampled_from(["en", "zh", "ja", "de"])


@given(
    st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)),
    st.booleans(),
    LANGUAGE,
)
def test_spans_are_exact_ordered_and_lose_nothing(text, fast, language):
    spans = split_sentences(text, fast=fast, language=language)
    end_before = 0
    for start, end in spans:
        assert end_before <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        end_before = end
    covered = "".join(text[start:end] for start, end in spans)
    assert re.sub(r"\s", "", covered) == re.sub(r"\s", "", text)


LISTED = "".join(f"({chr(97 + i % 26)}) x " for i in range(300))
HOSTILE = {
    "stops": "." * 100_000,
    "letters": "x" * 100_000,
    "spaces": " " * 100_000,
    "breaks": "\n" * 100_000,
    "marks": "e" + "\u0301" * 100_000,
    "control": "".join(map(chr, range(32))) * 1_000,
    "surrogates": "\ud800" * 100_000,
    "spaced stops": ". " * 50_000,
    "initials": "A. " * 33_000,
    "quoted": '."' * 50_000,
    "opened": ". " + "(" * 100_000,
    "references": ".[1]" * 25_000,
    "wide": ("a." + " " * 1_000) * 100,
    "questions": ("?!" * 900 + ".\n\n") * 55,
    "companies": ("Co. " * 490 + "\n\n") * 50,
    "lists": (LISTED + "\n\n") * 10,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("fast", [False, True], ids=["pysbd", "fast"])
def test_hostile_text_takes_seconds_at_most(name, fast):
    """The slowest is 0.6 s: lists, by pysbd."""
    started = time.process_time()
    spans = split_sentences(HOSTILE[name], fast=fast)
    assert time.process_time() - started < 8
    assert sum(end - start for start, end in spans) <= len(HOSTILE[name])


def test_agreement_with_split_textbooks(shared_data):
    """Boundaries after a stop, in paragraphs of 6 sentences; the reference has its own mistakes."""
    reached = {}
    lines = (shared_data / "openstax" / "documents.jsonl").read_bytes().splitlines()[::100]
    for fast in (False, True):
        right = found = true = 0
        for record in map(orjson.loads, lines):
            kinds = zip(record["sentences"], record["kinds"], strict=True)
            body = [sentence for sentence, kind in kinds if kind == "para"]
            for start in range(0, len(body), 6):
                paragraph = body[start : start + 6]
                text, ends, at = " ".join(paragraph), set(), 0
                for sentence in paragraph[:-1]:
                    at += len(sentence)
                    if sentence.rstrip("\"'”’)")[-1:] in (".", "!", "?"):
                        ends.add(at)
                    at += 1
                got = {end for _, end in split_sentences(text, fast=fast)[:-1]}
                right += len(ends & got)
                found += len(got)
                true += len(ends)
        assert true > 1_000
        reached[fast] = 2 * right / (found + true)
    assert reached[False] > 0.97
    assert reached[True] > 0.98
