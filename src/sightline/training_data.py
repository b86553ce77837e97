"""What a run learns from: the documents of a corpus by split, as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import orjson

from sightline.batches import PackedDocuments, pack_documents
from sightline.corpus import Corpus
from sightline.documents import Document, split_name
from sightline.features import FeatureStore
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress
from sightline.sentences import tokenize
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary
from sightline.word_vectors import WordVectors

#: Held out for validation where the corpus names no split of its own: one document in ten.
_HELD_OUT = 10

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
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def prepare(
    corpus: Corpus,
    store: FeatureStore,
    settings: Settings,
    problems: Problems,
    say: Say,
    fixed_vectors: WordVectors | None = None,
) -> TrainingData:
    """Read the training and validation documents, count the words, pack both.

    All words of `fixed_vectors` are known, whether the documents have them or not.
    """
    training, validation = _splits(corpus, say)
    # Captions come back in many documents and are needed twice; each is taken apart once.
    tokens = cache(tokenize)
    vocabulary = Vocabulary.from_sentences(
        (tokens(sentence) for document in training for sentence in document.sentences),
        settings.minimum_count,
    )
    fixed_words = 0
    if fixed_vectors is not None:
        vocabulary = Vocabulary.with_vectors(fixed_vectors.words, vocabulary)
        given = set(fixed_vectors.words)
        fixed_words = 1 + sum(word in given for word in vocabulary.words[1:])
    limit, where, within = settings.token_limit, str(corpus.path), settings.negatives_within
    packed = [
        pack_documents(documents, vocabulary, store, limit, problems, where, tokens, within)
        for documents in (training, validation)
    ]
    for name, part in zip(("training", "validation"), packed, strict=True):
        smallest = int(np.bincount(part.group).min()) if len(part) else 0
        if smallest <= settings.negative_documents:
            alike = f" with the same {within!r}" if within else ""
            raise SightlineError(
                f"{corpus.path} has {smallest} usable {name} documents{alike}; "
                f"--negative-documents {settings.negative_documents} needs at least "
                f"{settings.negative_documents + 1}."
            )
    sentences = sum(len(part.token_start) - 1 for part in packed)
    cut = sum(part.cut_sentences for part in packed)
    say(
        f"{len(packed[0]):,} training and {len(packed[1]):,} validation documents, "
        f"{len(vocabulary) - 1:,} words; {cut:,} of {sentences:,} sentences were cut to "
        f"{settings.token_limit} tokens"
    )
    return TrainingData(vocabulary, store, packed[0], packed[1], fixed_words)


def _splits(corpus: Corpus, say: Say) -> tuple[list[Document], list[Document]]:
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
    held_out = training[::_HELD_OUT]
    say(
        f"{corpus.path} has no validation split: every {_HELD_OUT}th training document "
        f"({len(held_out):,}) is held out for validation"
    )
    return [d for place, d in enumerate(training) if place % _HELD_OUT], held_out
