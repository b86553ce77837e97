import time
import unicodedata

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.sentences import tokenize


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("A man holding a pan.", "a man holding a pan ."),
        ("The dog's T-shirt isn't on, is it?", "the dog's t-shirt isn't on , is it ?"),
        ("the dogs' bowl 'quoted'", "the dogs ' bowl ' quoted '"),
        ("1,000.50 dollars at 10:30, 1/2 cup, 3D", "1,000.50 dollars at 10:30 , 1/2 cup , 3d"),
        ("In 2019. Then 5,6", "in 2019 . then 5,6"),
        ("a 2.5mm bit, 4-way stop", "a 2.5 mm bit , 4-way stop"),
        ("wait... what -- no!!", "wait ... what -- no !!"),
        ("well?!", "well ? !"),
        ("(a) [b] {c} <d>", "( a ) [ b ] { c } < d >"),
        ("snake_case _emphasis_", "snake_case _ emphasis _"),
        ("a--b -c- d'", "a -- b - c - d '"),
        ("see https://a.org/b?c=d,e. Ok", "see https://a.org/b?c=d,e . ok"),
        ("(www.example.org/a)", "( www.example.org/a )"),
        ("$5 & 7% #1 @home", "$ 5 & 7 % # 1 @ home"),
        ("鲈鱼（一条）385 大卡。", "鲈 鱼 （ 一 条 ） 385 大 卡 。"),
        ("访问https://abc.com。好", "访 问 https://abc.com 。 好"),
        ("ラーメンです", "ラ ー メ ン で す"),
        ("한국어 단어", "한국어 단어"),
        ("★★★ 👍🏽👍 🇩🇪🇫🇷", "★ ★ ★ 👍🏽 👍 🇩🇪 🇫🇷"),
        ("👨‍👩‍👧 ❤️ 1️⃣", "👨‍👩‍👧 ❤ 1⃣"),
        ("हिन्दी में", "हिन्दी में"),
        ("ÉCOLE Straße İstanbul", "école straße i̇stanbul"),
    ],
)
def test_examples(sentence, tokens):
    assert tokenize(sentence) == tokens.split()


@pytest.mark.parametrize("sentence", ["", " \t\n", "\x00\x07\x9f", "\ud800", "\u200b\ufeff\u00ad"])
def test_nothing_to_read_gives_no_tokens(sentence):
    assert tokenize(sentence) == []


def test_typography_does_not_make_other_words():
    assert tokenize("don’t co‑op ac\u00adces\u00adsible") == ["don't", "co-op", "accessible"]
    assert tokenize("cafe\u0301") == tokenize("caf\u00e9") == ["caf\u00e9"]


@settings(deadline=None)
@given(st.text())
def test_nothing_but_space_and_invisible_characters_is_lost(sentence):
    def parts(text):
        return set(unicodedata.normalize("NFKD", text.casefold()))

    visible = "".join(
        character
        for character in sentence
        if not character.isspace() and unicodedata.category(character) not in ("Cc", "Cs", "Cf")
    )
    respelled = set("\ufe0e\ufe0f’ʼ\u2010\u2011")
    assert parts(visible) - respelled <= parts("".join(tokenize(sentence)))


@settings(deadline=None)
@given(st.text())
def test_tokens_are_lower_case_words_that_utf8_can_hold(sentence):
    for token in tokenize(sentence):
        assert token
        assert not any(character.isspace() for character in token)
        assert token == token.lower()
        token.encode()


@settings(deadline=None)
@given(st.lists(st.from_regex(r"[a-z]+('[a-z]+)?", fullmatch=True)))
def test_plain_words_are_their_own_tokens(words):
    assert tokenize(" ".join(words)) == words


@pytest.mark.parametrize(
    "piece",
    [
        *[
            "a",
            "'",
            "-a",
            "a-",
            "a'",
            "a_",
            "_",
            "1",
            "1.",
            "1,1",
            ".",
            ".,",
            "http://",
            "http://.",
        ],
        *[
            "www.",
            "\u0300",
            "a\u0300",
            "\u0300\u0316",
            "a\u200d",
            "👍🏽",
            "👍\u200d",
            "🇩",
            "中",
            "İ",
        ],
        *[" ", "\x00", "\ud800", "Σ", "'Σ", "\U0001f3fb", "¼", "ﷺ"],
    ],
)
def test_time_is_linear_in_the_length_of_hostile_text(piece):
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    tokenize(text)
    # Linear is up to 2 microseconds a character; quadratic would be minutes.
    assert time.process_time() - start < 3


def test_real_captions_and_chinese_guides(shared_data):
    captions = orjson.loads((shared_data / "coco" / "captions_val.json").read_bytes())
    tokens = [tokenize(record["caption"]) for record in captions["annotations"]]
    assert len(tokens) == 3800
    lengths = sorted(map(len, tokens))
    # COCO's captions have 10 to 11 words and a full stop at the median.
    assert lengths[0] >= 5
    assert lengths[1900] in (10, 11, 12)

    guides = (shared_data / "guides" / "documents.jsonl").read_bytes().splitlines()
    chinese = [guide for guide in map(orjson.loads, guides) if guide["lang"] == "zh"]
    assert len(chinese) > 20
    for guide in chinese:
        for sentence in guide["sentences"]:
            han = [c for c in sentence if "\u4e00" <= c <= "\u9fff"]
            assert [t for t in tokenize(sentence) if "\u4e00" <= t[0] <= "\u9fff"] == han
