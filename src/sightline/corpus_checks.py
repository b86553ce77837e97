"""What is wrong with the documents of a corpus, and what they look like in numbers.

Ids, sentences and image names are kept as hashes only, so that millions of documents fit; the
examples in a finding are looked up by going through the corpus once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any

import numpy as np

from sightline.choices import SPLITS
from sightline.corpus import Corpus
from sightline.corpus_statistics import CorpusStatistics, StatisticsCounter
from sightline.documents import Document, split_name
from sightline.hash_counts import HashCounts
from sightline.problems import SightlineError
from sightline.progress import Progress
from sightline.sentences import tokenize

#: So many examples of each finding are kept.
EXAMPLES = 5
#: A document with fewer such sentences, or fewer images, is nearly empty: the paper drops it
#: (supplement, DIY: "at least 2 image captions with at least 5 tokens", "at least 2 valid images").
FULL_SENTENCES, FULL_TOKENS, FULL_IMAGES = 2, 5, 2
#: Training makes words that are seen less often one unknown word.
FREQUENT = 5

# Each pair of splits is compared. More are no splits, but another thing in the place of them.
_MOST_SPLITS = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """How many were found, and the first few of them as JSON takes them."""

    count: int
    first: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shared:
    """How many different things of the second split the first one has too."""

    splits: tuple[str, str]
    count: int
    total: int  # different things of the second split
    first: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DocumentChecks:
    """All that reading the documents shows; counters have numbers of things as their keys."""

    statistics: CorpusStatistics
    bad_records: Finding
    duplicate_ids: Finding
    duplicate_documents: Finding
    near_empty: Finding
    shared_images: list[Shared]
    shared_sentences: list[Shared]
    sentence_tokens: Counter[int]
    document_sentences: Counter[int]
    document_images: Counter[int]
    image_links: Counter[int]
    sentence_links: Counter[int]
    words: int
    frequent_words: int


def check_documents(corpus: Corpus) -> DocumentChecks:
    """Go through the documents once, and once more if there is something to give examples of."""
    seen = _Seen()
    with Progress("reading", None, "documents") as progress:
        for document in corpus:
            seen.add(document)
            progress.advance()
    statistics = seen.statistics.statistics()
    if not statistics.total:
        if corpus.split is not None and not corpus.problems.count:
            raise corpus.split_not_found(corpus.split)
        raise SightlineError(f"{corpus.path}: no document could be read.")
    problems = corpus.problems
    shared = dict(_shared(seen.images))
    examples = _Examples(seen, shared)
    if examples.wanted:
        with Progress("finding examples", statistics.total, "documents") as progress:
            for place, document in corpus.located():
                examples.add(place, document)
                progress.advance()
    return DocumentChecks(
        statistics=statistics,
        bad_records=Finding(problems.count, [str(p) for p in problems.first[:EXAMPLES]]),
        duplicate_ids=Finding(seen.ids.repetitions(), examples.of_ids()),
        duplicate_documents=Finding(seen.contents.repetitions(), examples.contents),
        near_empty=Finding(seen.near_empty, seen.near_empty_first),
        shared_images=[
            Shared(pair, len(common), len(seen.images[pair[1]]), examples.of_pair(pair))
            for pair, common in shared.items()
        ],
        shared_sentences=[
            Shared(pair, len(common), len(seen.sentences[pair[1]]))
            for pair, common in _shared(seen.sentences)
        ],
        sentence_tokens=seen.sentence_tokens,
        document_sentences=seen.document_sentences,
        document_images=seen.document_images,
        image_links=seen.image_links,
        sentence_links=seen.sentence_links,
        words=len(seen.words),
        frequent_words=len(seen.words.at_least(FREQUENT)),
    )


def split_order(splits: list[str]) -> list[str]:
    """Put train, val and test first, in this order."""
    usual = [split for split in SPLITS if split in splits]
    return usual + [split for split in splits if split not in usual]


def split_pairs(splits: list[str]) -> list[tuple[str, str]]:
    """Pair the splits, the training split first: what matters is what others share with it."""
    return list(combinations(split_order(splits), 2))


class _Seen:
    """What is remembered of the documents."""

    def __init__(self) -> None:
        self.statistics = StatisticsCounter()
        self.ids, self.contents, self.words = HashCounts(), HashCounts(), HashCounts()
        self.images: dict[str, HashCounts] = {}
        self.sentences: dict[str, HashCounts] = {}
        self.sentence_tokens: Counter[int] = Counter()
        self.document_sentences: Counter[int] = Counter()
        self.document_images: Counter[int] = Counter()
        self.image_links: Counter[int] = Counter()
        self.sentence_links: Counter[int] = Counter()
        self.near_empty = 0
        self.near_empty_first: list[str] = []

    def add(self, document: Document) -> None:
        self.statistics.add(document)
        self.ids.add([document.id])
        self.contents.add([_content(document)])
        self.document_sentences[len(document.sentences)] += 1
        self.document_images[len(document.images)] += 1
        self._add_sentences(document)
        if document.links is not None:
            _add_links(self.image_links, [v for _, v in document.links], len(document.images))
            _add_links(self.sentence_links, [s for s, _ in document.links], len(document.sentences))
        split = split_name(document.split)
        if split is not None:
            if split not in self.images and len(self.images) == _MOST_SPLITS:
                raise SightlineError(
                    f"Document {document.id!r} has the split {split!r}, and {_MOST_SPLITS} others "
                    "came before it; expected a few splits such as train, val and test."
                )
            self.images.setdefault(split, HashCounts()).add(document.images)
            self.sentences.setdefault(split, HashCounts()).add(document.sentences)

    def _add_sentences(self, document: Document) -> None:
        tokens = [tokenize(sentence) for sentence in document.sentences]
        self.words.add(chain.from_iterable(tokens))
        lengths = [len(of_sentence) for of_sentence in tokens]
        self.sentence_tokens.update(lengths)
        full = sum(length >= FULL_TOKENS for length in lengths)
        if full < FULL_SENTENCES or len(document.images) < FULL_IMAGES:
            self.near_empty += 1
            if len(self.near_empty_first) < EXAMPLES:
                self.near_empty_first.append(document.id)


def _content(document: Document) -> object:
    return document.sentences, document.images


def _add_links(counts: Counter[int], linked: list[int], total: int) -> None:
    links = Counter(linked)
    counts.update(links.values())
    if total > len(links):
        counts[0] += total - len(links)


def _shared(splits: dict[str, HashCounts]) -> Iterator[tuple[tuple[str, str], set[int]]]:
    """Yield the pairs of splits that have something in common, with the hashes of it."""
    for pair in split_pairs(list(splits)):
        first, second = (splits[split].hashes for split in pair)
        common = np.intersect1d(first, second, assume_unique=True)
        if len(common):
            yield pair, set(common.tolist())


class _Examples:
    """The first few of what was found, out of a second pass."""

    def __init__(self, seen: _Seen, shared: dict[tuple[str, str], set[int]]) -> None:
        self._repeated_ids = set(seen.ids.at_least(2).tolist())
        self._repeated_contents = set(seen.contents.at_least(2).tolist())
        self._shared = shared
        self.wanted = bool(self._repeated_ids or self._repeated_contents or shared)
        # The first places of each repeated id.
        self._ids: dict[str, list[str]] = {}
        self.contents: list[list[str]] = []
        self._originals: dict[int, str] = {}
        # For each pair of splits, by image: a document of each split that has it.
        self._images: dict[tuple[str, str], dict[str, dict[str, str]]] = {p: {} for p in shared}

    def add(self, place: str, document: Document) -> None:
        known = document.id in self._ids or len(self._ids) < EXAMPLES
        if known and hash(document.id) in self._repeated_ids:
            places = self._ids.setdefault(document.id, [])
            if len(places) < EXAMPLES:
                places.append(place)
        content = hash(_content(document))
        if len(self.contents) < EXAMPLES and content in self._repeated_contents:
            if content in self._originals:
                self.contents.append([self._originals[content], document.id])
            self._originals.setdefault(content, document.id)
        split = split_name(document.split)
        for pair, common in self._shared.items():
            if split is None or split not in pair:
                continue
            found = self._images[pair]
            for image in document.images:
                if hash(image) in common and (image in found or len(found) < EXAMPLES):
                    found.setdefault(image, {}).setdefault(split, document.id)

    def of_ids(self) -> list[dict[str, Any]]:
        return [{"id": id, "places": places} for id, places in self._ids.items()]

    def of_pair(self, pair: tuple[str, str]) -> list[dict[str, Any]]:
        return [
            {"image": image, "documents": [documents[split] for split in pair]}
            for image, documents in self._images[pair].items()
        ]
