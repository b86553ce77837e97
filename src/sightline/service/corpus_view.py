"""A corpus seen with a model: every document scored once, then sorted and looked at.

Scoring runs in a thread of its own; what is scored so far can be asked for meanwhile.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sightline.clip_model import Model
from sightline.corpus import Corpus, read
from sightline.decode_pool import DecodePool
from sightline.documents import Document, split_name
from sightline.evaluation import score_document
from sightline.image_features import ImageSource
from sightline.link_records import link_records, open_images
from sightline.problems import SightlineError
from sightline.service.live_article import live_document

Sort = Literal["corpus", "auc", "confidence"]
#: Documents are held in memory: some 50 MB of textbook sections.
_MOST_DOCUMENTS = 20_000
_AT_ONCE = 16
_TITLE_SHOWN = 120
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Row:
    """A document in the list."""

    index: int
    title: str
    split: str | None
    sentences: int
    images: int
    links: int
    #: In percent; None where the true links are not known, or AUC is not defined.
    auc: float | None
    #: Mean confidence of the links, or their mean score for a model without; None without links.
    confidence: float | None

    def to_record(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


class CorpusView:
    """The documents of one corpus, with what a model finds in them."""

    def __init__(
        self,
        path: Path,
        model: Model,
        pool: DecodePool,
        features: Path | None = None,
    ) -> None:
        self.corpus: Corpus = read(path)
        self.model = model
        self.pool = pool
        self.name = path.resolve().name
        self.documents: list[Document] = []
        self.rows: list[Row] = []
        self.is_read = False
        self.truncated = False
        #: What `Row.confidence` is: the model's confidence, or its score for want of one.
        self.measure = "score"
        self.error: str | None = None
        self._features = features
        self._images: ImageSource | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to score, once; a thread that dies with the process."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._score, name="corpus", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop scoring, after the documents that are being scored."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def state(self) -> dict[str, Any]:
        """How far scoring is."""
        return {
            "name": self.name,
            "documents": len(self.documents),
            "scored": len(self.rows),
            "truncated": self.truncated,
            "splits": sorted({row.split for row in list(self.rows) if row.split is not None}),
            "measure": self.measure,
            "error": self.error,
        }

    def listed(
        self, sort: Sort, descending: bool, split: str | None, offset: int, limit: int
    ) -> tuple[int, list[Row]]:
        """How many rows there are of a split, and those of one stretch of the sorted list."""
        rows = [row for row in list(self.rows) if split is None or row.split == split]
        if sort != "corpus":
            known = [row for row in rows if getattr(row, sort) is not None]
            known.sort(key=lambda row: getattr(row, sort), reverse=descending)
            rows = known + [row for row in rows if getattr(row, sort) is None]
        elif descending:
            rows.reverse()
        return len(rows), rows[offset : offset + limit]

    def document(self, index: int) -> dict[str, Any]:
        """One document with its links, as the page shows it."""
        document = self.documents[index]
        (record,) = link_records(self.model, [document], self._source(), matrix=True)
        root, calibration = self.corpus.root, self.model.calibration
        live = live_document(document, record, root, self.pool, calibration)
        return {**live, "row": _row(index, document, record).to_record()}

    def _source(self) -> ImageSource:
        if self._images is None:
            self._images = open_images(self.model, self.corpus, self._features, pool=self.pool)
        return self._images

    def _score(self) -> None:
        try:
            found = list(islice(self.corpus, _MOST_DOCUMENTS + 1))
            self.truncated = len(found) > _MOST_DOCUMENTS
            self.documents = found[:_MOST_DOCUMENTS]
            self.is_read = True
            images = self._source()
            for start in range(0, len(self.documents), _AT_ONCE):
                if self._ended.is_set():
                    return
                group = self.documents[start : start + _AT_ONCE]
                records = link_records(self.model, group, images, matrix=True)
                for document, record in zip(group, records, strict=True):
                    self.rows.append(_row(len(self.rows), document, record))
                    if any(one["confidence"] is not None for one in record["links"]):
                        self.measure = "confidence"
        except SightlineError as error:
            self.error = str(error)


def _row(index: int, document: Document, record: dict[str, Any]) -> Row:
    weights = [
        one["score"] if one["confidence"] is None else one["confidence"] for one in record["links"]
    ]
    return Row(
        index=index,
        title=str(document.extra.get("title") or document.id)[:_TITLE_SHOWN],
        split=split_name(document.split),
        sentences=len(document.sentences),
        images=len(document.images),
        links=len(record["links"]),
        auc=_auc(document, record),
        confidence=float(np.mean(weights)) if weights else None,
    )


def _auc(document: Document, record: dict[str, Any]) -> float | None:
    """AUC over the images that can be used, as far as the true links are known."""
    if document.links is None:
        return None
    usable = [v for v, image in enumerate(record["images"]) if image["status"] == "ok"]
    if not usable or not document.sentences:
        return None
    place = {v: number for number, v in enumerate(usable)}
    similarity_SV = np.array(record["matrix"], np.float64)[:, usable]
    links = [(s, place[v]) for s, v in document.links if v in place]
    score = score_document(document.id, similarity_SV, links)
    return None if score is None else score.auc
