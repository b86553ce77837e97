"""Text to sentences, as character spans: `text[start:end]` is the sentence, and nothing is lost.

Two splitters stand behind one function. pysbd knows the abbreviations, lists and quotes of 23
languages, but takes more than linear time; it gets paragraphs up to a fixed length, so that the
time of a text is bounded by its length alone. Longer paragraphs, and everything with `fast`, go to
a regular expression that is linear whatever the text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sightline.problems import SightlineError

Span = tuple[int, int]

#: The languages that pysbd has rules for, by their ISO 639-1 codes.
LANGUAGES = (
    *("am", "ar", "bg", "da", "de", "el", "en", "es", "fa", "fr", "hi", "hy", "it", "ja", "kk"),
    *("mr", "my", "nl", "pl", "ru", "sk", "ur", "zh"),
)

# Characters of a paragraph that pysbd is given. Measured on prose, it does 385,000 characters a
# CPU-second at 500, 294,000 at 2,000 and 140,000 at 8,000; the worst of 1,100 hostile paragraphs
# of 2,000 characters takes 0.13 s.
_PYSBD_LENGTH = 2_000
# A text that is mostly stops is no prose, and is what pysbd is slowest on.
_CHARACTERS_PER_STOP = 5

# Ends of sentences in scripts that put a space after them: Latin, Arabic, Devanagari, Armenian,
# Ethiopic, Khmer, Burmese; and in Chinese and Japanese, which put none.
_STOPS = ".!?…‥‽⁇⁈⁉؟۔।॥։።፧។៕။"
_CJK_STOPS = "。｡！？"
_CLOSING = "\"'”’»›)\\]}」』】）〉》］｝"
_CJK_ENDS = frozenset(_CJK_STOPS + "」』】）〉》”’")
_OPENING = "\"'“‘„«‹([{¿¡「『【（〈《［｛–—•·*-"
# After the quote that a CJK stop stands in, these go on with the sentence around it.
_CJK_GOES_ON = frozenset("、，；：と")
# No sentence begins with these.
_GOES_ON = frozenset(_STOPS + ",;:)]}%/|=+<>&~^_")
# A stop with the quotes and brackets that close after it and a reference like [3]; what follows
# is only looked at. Possessive quantifiers (`++`) try nothing twice.
_END = re.compile(
    rf"([{_STOPS}{_CJK_STOPS}]++)([{_CLOSING}]*+)(?:\[\d{{1,3}}\])*+(?=(\s*+)[{_OPENING}]*+(.?))",
    re.S,
)
_BEFORE_WORD = re.compile(r"[\s(\[{\"'“‘«—–]")
_WORD_AFTER = re.compile(r"\W{0,4}([^\W\d_]{1,12})(?![\w.])")
_LONGEST_ABBREVIATION = 24  # characters; further back nothing is looked up
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*•‣◦▪]|\(?\d{1,2}[.)]|\(?[a-zA-Z]\))[ \t]")
_INITIALS = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}\Z")
_LIST_NUMBER = re.compile(r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})\Z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name follows: no sentence ends here.
_TITLES = _words(
    "mr mrs ms messrs mme mlle dr drs prof rev hon gen col lt cmdr capt maj sgt cpl pvt adm gov "
    "pres rep sen supt insp mt e.g i.e eg ie viz cf vs"
)
# A number follows.
_NUMBERED = _words(
    "no nos nr art arts p pp par sec ch chap vol vols fig figs eq eqs tab ex op bk pt"
)
# Anything may follow, even the next sentence.
_OPEN = _words(
    "al inc ltd llc co corp bros jr sr esq st ste ave blvd rd ln hwy dept univ assn assoc est "
    "approx ca tel ext ed eds trans oz lb lbs tsp tbsp fig figs vol vols no nos pp op"
)
# The same, but common words when they are not capitalised.
_OPEN_NAMES = _words(
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thurs Fri Sat Sun Ft Fr "
    "Ariz Calif Conn Del Fla Ill Ind Kan Mass Mich Minn Miss Mont Neb Nev Okla Ore Penn Tenn Tex "
    "Wash Wis"
)
# After an abbreviation that may end a sentence, these begin one.
_STARTERS = _words(
    "the this that these those there here it its he she we they you i his her our their my your a "
    "an and but or so yet in on at by for from with of to as if when while where who what which "
    "why how after before although though because since until during however also then thus "
    "therefore meanwhile moreover instead among between under over once some many most both each "
    "every all no not one two three other others another such more"
)


class Patience:
    """How much of one document pysbd may split: it is slow, and a page may have a million lines.

    A paragraph of prose counts for about what it takes (measured), so that the quick rules take
    over at the same place on every machine. Hostile text takes up to 20 times as long, and there
    the clock decides.
    """

    def __init__(self, prose_seconds: float = 4.0, cpu_seconds: float = 6.0) -> None:
        self._left, self._cpu_seconds, self._spent = prose_seconds, cpu_seconds, 0.0

    def split(self, paragraph: str, language: str) -> list[Span] | None:
        """Split a paragraph by pysbd's rules; None where the quick ones are to be used."""
        if self._left <= 0 or self._spent > self._cpu_seconds:
            return None
        self._left -= 0.0015 + 3.4e-6 * min(len(paragraph), _PYSBD_LENGTH)
        start = time.thread_time()
        found = _split_with_pysbd(paragraph, language)
        self._spent += time.thread_time() - start
        return found


def split_sentences(
    text: str, *, fast: bool = False, language: str = "en", patience: Patience | None = None
) -> list[Span]:
    """Find the sentences of a text, in order; no span begins or ends with a space.

    A blank line, or a line that begins as an item of a list, ends a sentence; other line breaks
    are spaces. `fast` leaves pysbd out, 80 times as quick on prose. `language` chooses pysbd's
    rules; the quick ones are the same for all languages, with English abbreviations. `patience` is
    shared by all texts of one document.
    """
    patience = patience or Patience()
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise SightlineError(f"No rules to split {language!r} into sentences; there are {known}.")
    spans: list[Span] = []
    for start, end in _paragraphs(text):
        found = None if fast else patience.split(text[start:end], language)
        if found is None:
            spans += _split_quickly(text, start, end)
        else:
            spans += [(start + first, start + last) for first, last in found]
    return spans


def sentence_strings(text: str, *, fast: bool = False) -> list[str]:
    """Split a text into its sentences; line breaks within one become spaces."""
    spans = split_sentences(text, fast=fast)
    return [" ".join(text[start:end].split()) for start, end in spans]


def _paragraphs(text: str) -> Iterator[Span]:
    """Yield the spans of text between blank lines and before items of lists."""
    start = end = position = 0
    for line in text.splitlines(keepends=True):
        content = line.strip()
        if end and (not content or _LIST_ITEM.match(line)):
            yield start, end
            end = 0
        if content:
            first = position + line.index(content[0])
            start = start if end else first
            end = first + len(content)
        position += len(line)
    if end:
        yield start, end


def _split_with_pysbd(paragraph: str, language: str) -> list[Span] | None:
    """Split a paragraph by pysbd's rules; None where it is too long for them or they garble it."""
    if len(paragraph) > _PYSBD_LENGTH:
        return None
    if sum(map(paragraph.count, ".!?")) * _CHARACTERS_PER_STOP > len(paragraph) + 50:
        return None
    # pysbd ends a sentence at each line break. It is asked for its sentences alone, because it
    # finds their places by searching the text for each again, and misses those that are repeated.
    flat = " ".join(paragraph.splitlines())
    try:
        sentences = _segmenter(language).processor(flat).process()
    except Exception:  # a rule that fails on odd text must not end the run, whatever it raises
        return None
    spans = _align(sentences, paragraph)
    return None if spans is None else list(_rejoined(spans, paragraph))


@cache
def _segmenter(language: str) -> Any:
    import pysbd

    return pysbd.Segmenter(language=language, clean=False)


def _align(sentences: Iterable[str], paragraph: str) -> list[Span] | None:
    """Find sentences that have lost or gained spaces in the paragraph they were cut from.

    They must hold its other characters, all of them and in order; otherwise gives None.
    """
    spans: list[Span] = []
    runs = re.finditer(r"\S+", paragraph)
    run, used = next(runs, None), 0
    for sentence in sentences:
        start = end = -1
        for part in sentence.split():
            rest = part
            while rest:
                if run is None:
                    return None
                available = run.group()[used : used + len(rest)]
                if not rest.startswith(available):
                    return None
                start = run.start() + used if start < 0 else start
                used += len(available)
                end = run.start() + used
                rest = rest[len(available) :]
                if used == len(run.group()):
                    run, used = next(runs, None), 0
        if start >= 0:
            spans.append((start, end))
    return spans if run is None else None


def _rejoined(spans: Iterable[Span], paragraph: str) -> Iterator[Span]:
    """Undo the cuts that pysbd makes inside a word, before a comma or before a closing quote."""
    start = end = 0
    for first, last in spans:
        if end == first and end > 0:
            if paragraph[end - 1] not in _CJK_ENDS:
                end = last
                continue
            # Chinese goes on without a space; only the quote belongs to the sentence before.
            while first < last and paragraph[first] in _CJK_ENDS:
                first += 1
            end = first
            while first < last and paragraph[first].isspace():
                first += 1
        if end > start:
            yield start, end
        start, end = first, last
    if end > start:
        yield start, end


def _split_quickly(text: str, start: int, end: int) -> Iterator[Span]:
    """Split the paragraph that lies between two places of the text."""
    for match in _END.finditer(text, start, end):
        if start < match.end() < end and _is_end(text, start, match):
            yield start, match.end()
            start = match.end(3)
    if start < end:
        yield start, end


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    """Decide whether a sentence that began at `start` ends at this stop."""
    stops, closing, space, following = match.groups()
    if stops[-1] in _CJK_STOPS:
        return not (closing and following in _CJK_GOES_ON)
    if not space or not following or following.islower() or following in _GOES_ON:
        return False
    return stops != "." or bool(closing) or not _is_abbreviation(text, start, match, following)


def _is_abbreviation(text: str, start: int, match: re.Match[str], following: str) -> bool:
    """Decide whether the full stop belongs to the word before it, not to the sentence."""
    at = match.start()
    word = _BEFORE_WORD.split(text[max(start, at - _LONGEST_ABBREVIATION) : at])[-1]
    if not word:
        return False
    if at - len(word) == start and _LIST_NUMBER.match(word):
        return True
    lower = word.lower()
    if lower in _TITLES:
        return True
    if lower in _NUMBERED and following.isdigit():
        return True
    known = lower in _OPEN or word in _OPEN_NAMES or _INITIALS.match(word)
    if not known and not (len(word) == 1 and word.isalpha() and word != "I"):
        return False
    after = _WORD_AFTER.match(text, match.end(3))
    return not (after and after[1].lower() in _STARTERS)
