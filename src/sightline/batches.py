"""Documents as arrays, and the batches that training and evaluation cut from them.

Nothing here needs torch. A corpus is packed once (token ids and feature rows, document after
document), after which a batch costs a few array look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.corpus import Corpus
from sightline.documents import Document
from sightline.features import FeatureStore, features_beside
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress
from sightline.sentences import tokenize
from sightline.vocabulary import Vocabulary

IntArray = NDArray[np.int64]
Value = TypeVar("Value", covariant=True)


class Column(Protocol[Value]):
    """One value per document: a list, or what reads them from disk."""

    def __len__(self) -> int: ...
    def __getitem__(self, document: SupportsIndex, /) -> Value: ...
    def __iter__(self) -> Iterator[Value]: ...


@dataclass(frozen=True, slots=True)
class Sentences:
    """Token ids, sentence after sentence, and how many tokens each sentence has (at least 1)."""

    token_ids: IntArray
    lengths: IntArray


def drop_words(sentences: Sentences, share: float, rng: np.random.Generator) -> Sentences:
    """The sentences without a random share of their words; each keeps at least one."""
    lengths = sentences.lengths
    draw = rng.random(len(sentences.token_ids))
    sentence_of_token = np.repeat(np.arange(len(lengths)), lengths)
    # The word with the largest draw always stays.
    largest = np.maximum.reduceat(draw, np.cumsum(lengths) - lengths)
    kept = (draw >= share) | (draw == largest[sentence_of_token])
    counts = np.bincount(sentence_of_token[kept], minlength=len(lengths))
    return Sentences(sentences.token_ids[kept], counts.astype(np.int64))


@dataclass(frozen=True, slots=True)
class TimeMajor:
    """The same tokens in the order in which a recurrent network reads them.

    Sentences are sorted longest first; first come their first tokens, then the second tokens of
    those that have one, and so on.
    """

    token_ids: IntArray
    running: list[int]  # how many sentences have a token at each step
    sentence_of_token: IntArray  # place of the token's sentence in the sorted order
    place_of_sentence: IntArray  # place of each original sentence in the sorted order


def time_major(sentences: Sentences) -> TimeMajor:
    """Sort sentences by length and interleave their tokens step by step."""
    lengths = sentences.lengths
    order = np.argsort(-lengths, kind="stable")
    sorted_lengths = lengths[order]
    first = (np.cumsum(lengths) - lengths)[order]
    # How many of the sorted lengths exceed each step: sentences still running.
    steps = int(sorted_lengths[0])
    running = np.searchsorted(-sorted_lengths, -np.arange(steps), side="left")
    place = np.arange(len(lengths))
    sentence_of_token = np.concatenate([place[:count] for count in running])
    step_of_token = np.repeat(np.arange(steps), running)
    token_ids = sentences.token_ids[first[sentence_of_token] + step_of_token]
    place_of_sentence = np.empty_like(order)
    place_of_sentence[order] = place
    return TimeMajor(token_ids, running.tolist(), sentence_of_token, place_of_sentence)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some documents ready for the encoders: their sentences, their images' feature rows."""

    sentences: Sentences
    image_rows: IntArray
    sentences_D: IntArray
    images_D: IntArray
    #: Bytes of the images (images x crop x crop x RGB), where the backbone learns along.
    pixels: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Documents with more sentences or images than `most` are cut to a random choice of them."""

    most: int
    rng: np.random.Generator


@dataclass(frozen=True, slots=True)
class PackedDocuments:
    """Documents as arrays; document d has sentences `sentence_start[d]` to `[d + 1]`, and so on."""

    ids: Column[str]
    links: Column[tuple[tuple[int, int], ...] | None]
    token_ids: NDArray[np.int32]
    token_start: IntArray  # per sentence, and one more
    sentence_start: IntArray  # per document, and one more
    image_rows: IntArray
    image_start: IntArray  # per document, and one more
    cut_sentences: int  # sentences that were longer than the token limit
    group: IntArray  # per document; those of a batch have the same

    def __len__(self) -> int:
        return len(self.ids)

    def batch(
        self,
        documents: IntArray,
        pick_one: np.random.Generator | None = None,
        cut: Cut | None = None,
    ) -> Batch:
        """The batch of these documents; `pick_one` draws a single sentence and image of each."""
        sentences_D = _counts(self.sentence_start, documents)
        images_D = _counts(self.image_start, documents)
        if pick_one is None:
            sentences = _ranges(self.sentence_start[documents], sentences_D)
            images = _ranges(self.image_start[documents], images_D)
            if cut is not None:
                sentences, sentences_D = _cut(sentences, sentences_D, cut)
                images, images_D = _cut(images, images_D, cut)
        else:
            sentences = self.sentence_start[documents] + pick_one.integers(sentences_D)
            images = self.image_start[documents] + pick_one.integers(images_D)
            sentences_D = images_D = np.ones_like(documents)
        lengths = _counts(self.token_start, sentences)
        tokens = self.token_ids[_ranges(self.token_start[sentences], lengths)]
        return Batch(
            Sentences(tokens.astype(np.int64), lengths),
            self.image_rows[images],
            sentences_D,
            images_D,
        )


def _counts(starts: IntArray, chosen: IntArray) -> IntArray:
    """How many things belong to each of the chosen, given where each one's things start."""
    counts: IntArray = starts[chosen + 1] - starts[chosen]
    return counts


def _ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The numbers start, start + 1, ... of each range, one range after another."""
    ends = np.cumsum(counts)
    ranges: IntArray = np.repeat(starts - (ends - counts), counts)
    ranges += np.arange(len(ranges))
    return ranges


def _cut(chosen: IntArray, counts: IntArray, cut: Cut) -> tuple[IntArray, IntArray]:
    """At most so many of each document's things, in their order, and how many they are."""
    ends = np.cumsum(counts)
    parts = [
        chosen[end - count : end]
        if count <= cut.most
        else chosen[end - count + np.sort(cut.rng.choice(count, cut.most, replace=False))]
        for end, count in zip(ends, counts, strict=True)
    ]
    return np.concatenate(parts), np.minimum(counts, cut.most)


def open_features(corpus: Corpus, folder: Path | None = None) -> FeatureStore:
    """The feature store in `folder`, or the one that comes with the corpus."""
    folder = folder or features_beside(corpus.root)
    if folder is None:
        raise SightlineError(
            f"{corpus.path}: no image features beside it; name a feature store with --features, "
            "or extract one with 'sightline features'."
        )
    return FeatureStore.open(folder)


def pack_documents(
    documents: Iterable[Document],
    vocabulary: Vocabulary,
    store: FeatureStore,
    token_limit: int,
    problems: Problems,
    where: str,
    tokenize: Callable[[str], list[str]] = tokenize,
    group_by: str = "",
    groups: dict[str, int] | None = None,
) -> PackedDocuments:
    """Token ids and feature rows of a corpus; documents whose images lack features are skipped.

    `group_by` names a further key of the documents; those with equal values are a group.
    `groups` are those that were met before, to which new ones are added.
    """
    ids: list[str] = []
    groups = {} if groups is None else groups
    group: list[int] = []
    links: list[tuple[tuple[int, int], ...] | None] = []
    token_ids: list[int] = []
    lengths: list[int] = []
    sentence_counts: list[int] = []
    image_rows: list[IntArray] = []
    cut = 0
    with Progress("packing documents", None, "documents") as progress:
        for document, rows in with_features(documents, store, problems, where):
            progress.advance()
            ids.append(document.id)
            links.append(document.links)
            named = str(document.extra.get(group_by)) if group_by else ""
            group.append(groups.setdefault(named, len(groups)))
            sentence_counts.append(len(document.sentences))
            image_rows.append(rows)
            for sentence in document.sentences:
                tokens = tokenize(sentence)
                cut += len(tokens) > token_limit
                encoded = vocabulary.encode(tokens, token_limit)
                token_ids += encoded
                lengths.append(len(encoded))
    return PackedDocuments(
        ids,
        links,
        np.array(token_ids, np.int32),
        _starts(lengths),
        _starts(sentence_counts),
        np.concatenate(image_rows) if image_rows else np.empty(0, np.int64),
        _starts([len(rows) for rows in image_rows]),
        cut,
        np.array(group, np.int64),
    )


def with_features(
    documents: Iterable[Document],
    store: FeatureStore,
    problems: Problems,
    where: str,
) -> Iterator[tuple[Document, IntArray]]:
    """The documents with their images' feature rows; where one has none, a problem is reported."""
    # Images come in many documents of a corpus; each row is looked at once.
    checked, finite = np.zeros((2, len(store)), bool)
    for document in documents:
        rows = store.rows(document.images)
        bad = absent = rows < 0
        if not absent.any():
            new = rows[~checked[rows]]
            if len(new):
                checked[new] = finite[new] = True
                finite[store.non_finite(new)] = False
            bad = ~finite[rows]
        if bad.any():
            place = int(np.argmax(bad))
            image = document.images[place]
            reason = (
                store.absence(image)[1]
                if absent.any()
                else f"a value that is not a finite number in the features {store.folder}"
            )
            problems.add(where, document.id, f"images[{place}]", f"{image!r}: {reason}")
        else:
            yield document, rows


def _starts(counts: list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def training_batches(
    group_D: IntArray, batch_documents: int, rng: np.random.Generator
) -> Iterator[IntArray]:
    """Shuffled batches of exactly b + 1 documents of one group.

    The few documents of a group that are left over wait for the next epoch.
    """
    batches: list[IntArray] = []
    for group in range(int(group_D.max(initial=-1)) + 1):
        order = rng.permutation(np.flatnonzero(group_D == group))
        whole = len(order) // batch_documents
        batches += list(order[: whole * batch_documents].reshape(whole, batch_documents))
    # One group is shuffled already.
    several = group_D.any()
    yield from (batches[place] for place in rng.permutation(len(batches))) if several else batches


def validation_batches(group_D: IntArray, batch_documents: int) -> Iterator[tuple[IntArray, int]]:
    """All documents in the order of their groups, each once, with the number that count.

    The last batch of a group is filled up with documents from its start, which serve as negatives
    only, so that every document meets the same number of negatives.
    """
    for group in range(int(group_D.max(initial=-1)) + 1):
        documents = np.flatnonzero(group_D == group)
        for start in range(0, len(documents), batch_documents):
            counted = min(batch_documents, len(documents) - start)
            yield documents[np.arange(start, start + batch_documents) % len(documents)], counted
