"""Cut the bundled corpus of textbook sections out of a larger collection of OpenStax sections.

    python examples/make_textbooks.py COLLECTION WORD_VECTORS

COLLECTION is a corpus folder with features/; WORD_VECTORS a GloVe .npz. Of each section the
figures and the sentences of all their captions are kept, in the collection's order, so that the
same collection gives the same corpus; which caption belongs to which figure is the question.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from sightline.corpus import read
from sightline.documents import Document
from sightline.features import FeatureStore, write_feature_store
from sightline.problems import Problems
from sightline.readers.native import write_jsonl
from sightline.sentences import tokenize
from sightline.word_vectors import read_word_vectors

FOLDER = Path(__file__).parent / "textbooks"
SENTENCES, IMAGES = 2, 2
#: Words rarer than this in the corpus get no vector: a model would not learn them anyway.
MINIMUM_COUNT = 3
KEPT_KEYS = ("title", "source", "commit", "license")


def main(collection: Path, word_vectors: Path) -> None:
    """Write documents.jsonl.zst, features/ and word_vectors.npz beside this script."""
    documents = [short for d in read(collection) if (short := shortened(d)) is not None]
    # The collection has no test split: every second validation section becomes one.
    validation = [place for place, d in enumerate(documents) if d.split == "val"]
    for place in validation[1::2]:
        documents[place] = replace(documents[place], split="test")
    FOLDER.mkdir(exist_ok=True)
    write_jsonl(documents, FOLDER / "documents.jsonl.zst")

    store = FeatureStore.open(collection / "features")
    images = sorted({FeatureStore.image_id(image) for d in documents for image in d.images})
    vectors = store.vectors(store.rows(images))
    manifest = {
        "backbone": store.backbone,
        "preprocessing": "shorter side 256, centre crop 224, (x - 127) / 128, mean over positions",
        "version": 1,
    }
    write_feature_store(FOLDER / "features", store.backbone, images, vectors, manifest)

    counts = Counter(word for d in documents for s in d.sentences for word in tokenize(s))
    wanted = {word for word, count in counts.items() if count >= MINIMUM_COUNT}
    known = read_word_vectors(word_vectors, wanted, Problems(strict=True))
    np.savez_compressed(
        FOLDER / "word_vectors.npz",
        words=np.array(known.words),
        vectors=known.vectors.astype(np.float16),
    )


def shortened(document: Document) -> Document | None:
    """The captions and figures of a section, or None if there are too few to ask about."""
    captions = [n for n, kind in enumerate(document.extra["kinds"]) if kind == "caption"]
    place = {sentence: n for n, sentence in enumerate(captions)}
    links = tuple((place[s], v) for s, v in document.links or () if s in place)
    if len(captions) < SENTENCES or len(document.images) < IMAGES or not links:
        return None
    return replace(
        document,
        sentences=tuple(document.sentences[n] for n in captions),
        links=links,
        extra={key: document.extra[key] for key in KEPT_KEYS},
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
