"""What a run learns from: the documents of a corpus by split, as arrays."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path

import numpy as np
import orjson

from sightline.batches import PackedDocuments, pack_documents
from sightline.corpus import Corpus
from sightline.disk_packing import open_packed, pack_to_disk
from sightline.documents import Document, split_name
from sightline.features import FeatureStore
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress, counted
from sightline.sentences import tokenize
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary
from sightline.word_vectors import WordVectors

#: Held out for validation where the corpus names no split of its own: one document in ten, and in
#: small corpora up to one in three, for as many as a calibration needs (`calibration`).
_HELD_OUT, _HELD_OUT_OF_FEW, _ENOUGH_HELD_OUT = 10, 3, 30
#: Sentences whose tokens are remembered where the corpus is larger than memory.
_REMEMBERED = 1 << 16
#: The two parts of a corpus that a run uses.
_PARTS = ("training", "validation")
_VOCABULARY = "vocabulary.json"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrainingData:
    """All that a run learns from, as arrays."""

    vocabulary: Vocabulary
    store: FeatureStore
    training: PackedDocuments
    validation: PackedDocuments
    #: Words at the start of the vocabulary whose vectors stay as they are.
    fixed_words: int = 0

    def fingerprint(self, settings: Settings) -> str:
        """Names the run: its settings but for the number of epochs, and its data."""
        record = settings.to_json()
        if settings.schedule != "cosine":  # whose learning rates depend on the last epoch
            del record["epochs"]
        digest = hashlib.sha256(orjson.dumps(record))
        for packed in (self.training, self.validation):
            for array in (packed.token_ids, packed.token_start, packed.sentence_start,
                          packed.image_rows, packed.image_start, packed.group):  # fmt: skip
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def prepare(
    corpus: Corpus,
    store: FeatureStore,
    settings: Settings,
    problems: Problems,
    say: Say,
    fixed_vectors: WordVectors | None = None,
    folder: Path | None = None,
) -> TrainingData:
    """Read the training and validation documents, count the words, pack both.

    All words of `fixed_vectors` are known, whether the documents have them or not. With a folder
    the documents are packed into its files, and no more than a few of them are held in memory.
    """
    # Captions come back in many documents and are needed twice; each is taken apart once.
    tokens = cache(tokenize) if folder is None else lru_cache(_REMEMBERED)(tokenize)
    parts = _splits(corpus, say) if folder is None else _streams(corpus, say)
    vocabulary = Vocabulary.from_sentences(
        (tokens(sentence) for document in parts[0] for sentence in document.sentences),
        settings.minimum_count,
    )
    if fixed_vectors is not None:
        vocabulary = Vocabulary.with_vectors(fixed_vectors.words, vocabulary)
    pack = partial(
        pack_documents,
        vocabulary=vocabulary,
        store=store,
        token_limit=settings.token_limit,
        problems=problems,
        where=str(corpus.path),
        tokenize=tokens,
        group_by=settings.negatives_within,
    )
    if folder is None:
        packed = [pack(part) for part in parts]
        fixed_words = _fixed_words(vocabulary, fixed_vectors)
        data = TrainingData(vocabulary, store, packed[0], packed[1], fixed_words)
    else:
        for name, part in zip(_PARTS, parts, strict=True):
            pack_to_disk(part, folder / name, partial(pack, groups={}))
        vocabulary.save(folder / _VOCABULARY)
        data = open_prepared(folder, store, fixed_vectors)
    _check(data, corpus, settings)
    _describe(data, settings, say)
    return data


def open_prepared(
    folder: Path, store: FeatureStore, fixed_vectors: WordVectors | None = None
) -> TrainingData:
    """What `prepare` packed into a folder, mapped."""
    vocabulary = Vocabulary.load(folder / _VOCABULARY)
    training, validation = (open_packed(folder / name) for name in _PARTS)
    fixed_words = _fixed_words(vocabulary, fixed_vectors)
    return TrainingData(vocabulary, store, training, validation, fixed_words)


def _fixed_words(vocabulary: Vocabulary, fixed_vectors: WordVectors | None) -> int:
    if fixed_vectors is None:
        return 0
    given = set(fixed_vectors.words)
    return 1 + sum(word in given for word in vocabulary.words[1:])


def _check(data: TrainingData, corpus: Corpus, settings: Settings) -> None:
    """Refuse data in which some document would not meet all its negatives."""
    alike = f" with the same {settings.negatives_within!r}" if settings.negatives_within else ""
    parts = dict(zip(_PARTS, (data.training, data.validation), strict=True))
    found = {n: int(np.bincount(p.group).min()) if len(p) else 0 for n, p in parts.items()}
    fewest = min(found.values())
    for name, smallest in found.items():
        if smallest <= settings.negative_documents:
            remedy = (
                f"At most {fewest - 1} fit here: set it so, in reproduce by --rows 'AP "
                f"b{fewest - 1}', or add documents"
                if fewest > 1
                else "At least 2 are needed of each"
            )
            raise SightlineError(
                f"{corpus.path} has {counted(smallest, f'usable {name} document')}{alike}; "
                f"--negative-documents {settings.negative_documents} needs at least "
                f"{settings.negative_documents + 1} for training and for validation. {remedy}."
            )


def _describe(data: TrainingData, settings: Settings, say: Say) -> None:
    packed = (data.training, data.validation)
    sentences = sum(len(part.token_start) - 1 for part in packed)
    cut = sum(part.cut_sentences for part in packed)
    say(
        f"{len(data.training):,} training and {len(data.validation):,} validation documents, "
        f"{len(data.vocabulary) - 1:,} words; {cut:,} of {sentences:,} sentences were cut to "
        f"{settings.token_limit} tokens"
    )


def _splits(corpus: Corpus, say: Say) -> tuple[Iterable[Document], Iterable[Document]]:
    """Training and validation documents; without a validation split some are held out."""
    by_split: dict[str, list[Document]] = {"train": [], "val": [], "": []}
    with Progress(f"reading {corpus.path}", None, "documents") as progress:
        for document in corpus.documents(None):
            split = split_name(document.split) or ""
            if split in by_split:
                by_split[split].append(document)
            progress.advance()
    training = by_split["train"] or by_split[""]
    if by_split["val"]:
        return training, by_split["val"]
    step = _held_out_step(len(training))
    held_out = training[::step]
    _say_held_out(corpus, step, len(held_out), say)
    return [d for place, d in enumerate(training) if place % step], held_out


def _streams(corpus: Corpus, say: Say) -> tuple[Iterable[Document], Iterable[Document]]:
    """The same documents as streams, which read the corpus anew each time."""
    counts: Counter[str] = Counter()
    with Progress(f"looking through {corpus.path}", None, "documents") as progress:
        for document in corpus.documents(None):
            counts[split_name(document.split) or ""] += 1
            progress.advance()
    split = "train" if counts["train"] else ""
    if counts["val"]:
        return _Stream(corpus, split), _Stream(corpus, "val")
    step = _held_out_step(counts[split])
    _say_held_out(corpus, step, -(-counts[split] // step), say)
    return _Stream(corpus, split, step, False), _Stream(corpus, split, step, True)


@dataclass(frozen=True, slots=True)
class _Stream:
    """The documents of a split, or of each `step` the first (`held_out`) or all but the first."""

    corpus: Corpus
    split: str
    step: int = 1
    held_out: bool = True

    def __iter__(self) -> Iterator[Document]:
        place = 0
        for document in self.corpus.documents(None):
            if (split_name(document.split) or "") == self.split:
                if self.held_out == (place % self.step == 0):
                    yield document
                place += 1


def _held_out_step(documents: int) -> int:
    return max(_HELD_OUT_OF_FEW, min(_HELD_OUT, documents // _ENOUGH_HELD_OUT))


def _say_held_out(corpus: Corpus, step: int, count: int, say: Say) -> None:
    say(
        f"{corpus.path} has no validation split: one training document in {step} ({count:,}) is "
        "held out for validation"
    )
