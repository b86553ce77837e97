"""The words that a model knows, and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import msgspec
import orjson

from sightline.files import write_atomically
from sightline.problems import SightlineError
from sightline.related_words import related_words

UNKNOWN = "<unk>"
# Of the file; a reader refuses a number that it does not know.
FORMAT = 1
# Bytes; so much JSON may be anything while it is looked at.
_ANYTHING = 2**20
# So many at the beginning count as common.
_COMMON = 200
# So many related words are remembered; texts repeat their words.
_REMEMBERED = 1 << 16


@dataclass(frozen=True)
class Vocabulary:
    """The words that a model knows; a word's number is its place, 0 is the unknown word."""

    words: Sequence[str]
    #: Whether a word that is not known is read as related ones, and punctuation is passed over.
    related: bool = False
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)
    _found: dict[str, list[int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        _check_words(self.words)
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "_numbers", {word: n for n, word in enumerate(self.words)})

    @classmethod
    def from_sentences(
        cls, token_lists: Iterable[Iterable[str]], minimum_count: int = 5
    ) -> Vocabulary:
        """Collect the words seen at least `minimum_count` times, the most frequent first.

        Words of equal count stand in alphabetical order, so that the same sentences give the
        same vocabulary whatever their order.
        """
        counts: Counter[str] = Counter()
        for tokens in token_lists:
            counts.update(tokens)
        del counts[UNKNOWN]
        kept = [word for word, count in counts.items() if count >= minimum_count]
        return cls([UNKNOWN, *sorted(kept, key=lambda word: (-counts[word], word))])

    @classmethod
    def with_vectors(cls, given: Iterable[str], own: Vocabulary) -> Vocabulary:
        """All words that have a vector, then those of the documents that have none."""
        words = dict.fromkeys(word for word in given if word != UNKNOWN and _is_word(word))
        words |= dict.fromkeys(word for word in own.words[1:] if _is_word(word))
        return cls([UNKNOWN, *words], related=True)

    def common(self) -> list[int]:
        """The numbers of the words that stand first, because they were met most often."""
        # Punctuation is common in every language.
        return [n for n, word in enumerate(self.words[:_COMMON]) if word.isalpha()]

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a vocabulary that `save` wrote."""
        try:
            return cls(*_content_of(_parsed(path.read_bytes())))
        except OSError as error:
            raise SightlineError(f"{path} cannot be read: {error.strerror}.") from error
        except orjson.JSONDecodeError as error:
            raise SightlineError(f"{path} is not JSON: {error}.") from error
        except SightlineError as error:
            raise SightlineError(f"{path}: {error}") from error

    def save(self, path: Path) -> None:
        """Write the vocabulary as JSON; a reader sees the old file or the new one, no mixture."""
        try:
            content = {"format": FORMAT, "words": self.words}
            data = orjson.dumps(content | {"related": True} if self.related else content)
        except orjson.JSONEncodeError as error:
            raise SightlineError(f"{path}: a word cannot be written as JSON: {error}.") from error
        write_atomically(path, data)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._numbers

    def index(self, word: str) -> int:
        """Return the number of a word; 0 for a word that is not known."""
        return self._numbers.get(word, 0)

    def encode(self, tokens: Iterable[str], limit: int | None = None) -> list[int]:
        """Turn the first `limit` tokens into numbers; a sentence without any is one unknown word.

        It must be something: an empty sentence keeps its place among the others.
        """
        if self.related:
            numbers = (number for token in tokens for number in self._related(token))
            return list(islice(numbers, limit)) or [0]
        get = self._numbers.get
        return [get(token, 0) for token in islice(tokens, limit)] or [0]

    def _related(self, token: str) -> list[int]:
        """The number of a word, of the words related to it, or of the unknown word."""
        number = self._numbers.get(token)
        if number is not None:
            return [number]
        numbers = self._found.get(token)
        if numbers is None:
            words = related_words(token, self._numbers) if _is_word(token) else None
            # Nothing for punctuation, which has no vector worth a share of the sentence.
            numbers = [] if words is None else [self._numbers[word] for word in words] or [0]
            if len(self._found) < _REMEMBERED:
                self._found[token] = numbers
        return numbers


def _is_word(token: str) -> bool:
    return any(character.isalnum() for character in token)


class _File(msgspec.Struct):
    """What a vocabulary file holds."""

    format: int
    words: list[str]
    related: bool = False


def _parsed(data: bytes) -> Any:
    """The JSON value of a file; a large one that is no vocabulary never becomes objects."""
    if len(data) > _ANYTHING:
        try:
            msgspec.json.decode(data, type=_File)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise SightlineError(f"It is not a vocabulary: {error}.") from None
    return orjson.loads(data)


def _content_of(content: Any) -> tuple[list[Any], bool]:
    """Return the words in a vocabulary file's JSON, and whether related ones are looked for."""
    if not isinstance(content, dict) or not isinstance(content.get("words"), list):
        raise SightlineError('Expected a JSON object with a list "words".')
    if content.get("format") != FORMAT:
        found = content.get("format")
        raise SightlineError(f'"format" is {shown(found)}, but this version reads {FORMAT} only.')
    related = content.get("related", False)
    if not isinstance(related, bool):
        raise SightlineError(f'"related" is {shown(related)}, expected true or false.')
    return content["words"], related


def _check_words(words: Sequence[Any]) -> None:
    """Refuse a list that is no vocabulary."""
    seen: dict[str, int] = {}
    for number, word in enumerate(words):
        if not isinstance(word, str):
            raise SightlineError(f"Word {number} of the vocabulary is {shown(word)}, not a string.")
        if word in seen:
            raise SightlineError(
                f"The vocabulary holds {shown(word)} twice, as word {seen[word]} and as word "
                f"{number}."
            )
        seen[word] = number
    if not words or words[0] != UNKNOWN:
        raise SightlineError(f"The first word of the vocabulary must be {UNKNOWN!r}.")
