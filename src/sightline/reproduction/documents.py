"""Which documents a reproduction trains on, chooses the epoch with, and is tested on.

Every row sees the same documents. Where a corpus has no `test` split its `val` documents are the
test, and validation documents are taken out of the training ones, so that no document on which
the epoch is chosen is ever tested on.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import orjson

from sightline.choices import SPLITS
from sightline.corpus import Corpus
from sightline.documents import Document, split_name
from sightline.problems import Problems, SightlineError
from sightline.progress import counted

#: Of the training documents, where a split is missing: one in ten is held out for it.
_HELD_OUT = 10
# Each choice draws from a generator of its own, so that one does not shift the other.
_VALIDATION_DRAW, _TEST_DRAW, _TRAINING_DRAW = range(3)


@dataclass(frozen=True, slots=True)
class ChosenDocuments:
    """A corpus whose documents have the splits `train`, `val` and `test` of the reproduction."""

    corpus: Corpus
    counts: dict[str, int]
    #: How many test documents can be scored: links known, neither none nor every pair true.
    scorable: int
    #: What is to be known of them: where splits come from, what they do not allow.
    notes: list[str]
    #: Names the documents: their content and their splits.
    fingerprint: str


def choose_documents(corpus: Corpus, documents: int | None, seed: int) -> ChosenDocuments:
    """Give every document its split; `documents` limits the training ones to a random choice."""
    found = [split_name(document.split) or "train" for document in corpus.documents(None)]
    splits, notes = _with_all_splits(np.array(found, object), seed)
    training = np.flatnonzero(splits == "train")
    if documents is not None and documents < len(training):
        kept = _draw(seed, _TRAINING_DRAW).choice(training, documents, replace=False)
        splits[np.setdiff1d(training, kept)] = None
        notes.append(f"{documents:,} of {len(training):,} training documents, drawn by the seed")
    counts = Counter(split for split in splits if split is not None)
    for name in SPLITS:
        if not counts[name]:
            raise SightlineError(f"{corpus.path} has no documents for the split {name!r}.")
    chosen = _resplit(corpus, splits.tolist())
    scorable, fingerprint = _look_at(chosen)
    if not scorable:
        notes.append(
            "no test document has links that are known and tell right from wrong: AUC and "
            "precision are absent, and the losses are all there is"
        )
    return ChosenDocuments(chosen, dict(counts), scorable, notes, fingerprint)


def _with_all_splits(splits: np.ndarray, seed: int) -> tuple[np.ndarray, list[str]]:
    """Splits in which none of the three is missing."""
    notes = []
    splits[~np.isin(splits, SPLITS)] = None
    if not (splits == "test").any():
        if (splits == "val").any():
            splits[splits == "val"] = "test"
            notes.append("the corpus has no test split: its val documents are the test")
        else:
            notes.append(_hold_out(splits, "test", _draw(seed, _TEST_DRAW)))
    if not (splits == "val").any():
        notes.append(_hold_out(splits, "val", _draw(seed, _VALIDATION_DRAW)))
    return splits, notes


def _hold_out(splits: np.ndarray, name: str, rng: np.random.Generator) -> str:
    """Turn one training document in ten into the split `name`."""
    training = np.flatnonzero(splits == "train")
    chosen = rng.choice(training, len(training) // _HELD_OUT, replace=False)
    splits[chosen] = name
    purpose = "validation" if name == "val" else "test"
    return f"{counted(len(chosen), 'training document')}, drawn by the seed, held out for {purpose}"


def _draw(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])


def _resplit(corpus: Corpus, splits: list[str | None]) -> Corpus:
    """The same corpus with other splits; documents whose split is None are left out."""

    # What a reader is given is known already: the corpus itself reports its problems, once.
    def reader(_file: Path, _problems: Problems, _allow_empty: bool) -> Iterator[Document]:
        for document, split in zip(corpus.documents(None), splits, strict=True):
            if split is not None:
                yield replace(document, split=split)

    return Corpus(corpus.path, corpus.file, reader, None, corpus.problems, allow_empty=False)


def _look_at(corpus: Corpus) -> tuple[int, str]:
    """How many test documents can be scored, and the fingerprint of all documents."""
    scorable, digest = 0, hashlib.sha256()
    for document in corpus.documents(None):
        pairs = len(document.sentences) * len(document.images)
        scorable += document.split == "test" and 0 < len(document.links or ()) < pairs
        record = [document.id, document.split, document.sentences, document.images, document.links]
        digest.update(orjson.dumps(record))
    return scorable, digest.hexdigest()
