"""Image-sentence pairs for training other models: the paper's second use of links.

A pair is a link that is sure enough, by its confidence or its score. Pairs are made one document
at a time and written as they come; of equal ones the first is kept. What is left out is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sightline.files import lies_within
from sightline.linked_documents import LinkedDocument
from sightline.problems import SightlineError
from sightline.thumbnails import leads_outside

#: What a pair holds for whoever writes it, and no record has.
HELD = ("content", "is_outside")


_UNSURE = "links without a confidence"
_MOST_UNSURE = 1_000  # before one that has a confidence; then the model has none


@dataclass(frozen=True, slots=True)
class Pair:
    """An image and a sentence that belong together."""

    #: As its document names it.
    image: str
    sentence: str
    score: float
    confidence: float | None
    document: str
    sentence_index: int
    image_index: int
    #: The file or the bytes of the image, where they are known.
    content: Path | bytes | None = field(default=None, repr=False)
    #: Its document, which is none that an article gave, names a file out of its own folder.
    is_outside: bool = field(default=False, repr=False)

    def to_record(self) -> dict[str, Any]:
        """For JSON and CSV: all but the image itself."""
        return {name: value for name, value in asdict(self).items() if name not in HELD}


@dataclass
class PairChoice:
    """Which links become pairs; counts what does not."""

    min_confidence: float = 0.0
    min_score: float | None = None
    #: A folder that images of corpora may lie in beside the corpus's own.
    images: Path | None = None
    documents: int = 0
    pairs: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    # 8 bytes of a hash for each pair; of a billion pairs, some 0.03 are lost to equal hashes.
    _seen: set[int] = field(default_factory=set)
    _has_confidences: bool = False

    def pairs_of(self, documents: Iterable[LinkedDocument]) -> Iterator[Pair]:
        """Yield the pairs of documents, best first within each."""
        for linked in documents:
            record = linked.record
            self.documents += 1
            for image in record["images"]:
                if image["status"] != "ok":
                    self.left_out[f"images: {image['status']}"] += 1
            self.left_out["documents without a link"] += not record["links"]
            for link in record["links"]:
                if self._is_chosen(link):
                    pair = self._pair(linked, link)
                    if self._is_new(pair):
                        self.pairs += 1
                        yield pair
        self._check_confidences()

    def _check_confidences(self) -> None:
        if self.left_out[_UNSURE] and not self._has_confidences:
            raise SightlineError(
                "This model was not calibrated, so its links have no confidence; leave "
                "--min-confidence out, or choose by score with --min-score."
            )

    def _is_chosen(self, link: dict[str, Any]) -> bool:
        if self.min_confidence > 0:
            if link["confidence"] is None:
                self.left_out[_UNSURE] += 1
                if self.left_out[_UNSURE] == _MOST_UNSURE:
                    self._check_confidences()
                return False
            self._has_confidences = True
            if link["confidence"] < self.min_confidence:
                self.left_out["links below the confidence"] += 1
                return False
        if self.min_score is not None and link["score"] < self.min_score:
            self.left_out["links below the score"] += 1
            return False
        return True

    def _is_new(self, pair: Pair) -> bool:
        image = pair.content if pair.content is not None else pair.image
        name = image if isinstance(image, bytes) else str(image).encode("utf-8", "replace")
        parts = (hashlib.blake2b(name).digest(), pair.sentence.encode("utf-8", "replace"))
        digest = hashlib.blake2b(b"".join(parts), digest_size=8).digest()
        key = int.from_bytes(digest, "big")
        if key in self._seen:
            self.left_out["repeated pairs"] += 1
            return False
        self._seen.add(key)
        return True

    def _pair(self, linked: LinkedDocument, link: dict[str, Any]) -> Pair:
        document = linked.document
        sentence, image = link["sentence"], link["image"]
        return Pair(
            image=document.images[image],
            sentence=document.sentences[sentence],
            score=link["score"],
            confidence=link["confidence"],
            document=document.id,
            sentence_index=sentence,
            image_index=image,
            content=linked.content(image),
            is_outside=linked.article is None and self._is_outside(linked, image),
        )

    def _is_outside(self, linked: LinkedDocument, image: int) -> bool:
        file = linked.content(image)
        if not isinstance(file, Path):
            return leads_outside(linked.document.images[image])
        roots = [root for root in (linked.document.folder, self.images) if root is not None]
        return not any(lies_within(file, root) for root in roots)
