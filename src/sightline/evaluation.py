"""How well a model finds the true links of a corpus: per-document AUC and precision at C.

In percent, as the paper's tables have them; `metrics` says what they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.batches import PackedDocuments, open_features, pack_documents
from sightline.clip_model import Model
from sightline.confidence import Calibration, with_confidence
from sightline.corpus import Corpus, read
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.features import FeatureStore, features_beside
from sightline.image_features import ImageSource, ImageStatus, StoredImages, groups
from sightline.image_files import read_files
from sightline.linking import link
from sightline.metrics import area_under_curve, is_defined, precision_at, true_matrix
from sightline.model import LinkModel
from sightline.numpy_encoders import (
    FloatArray,
    encode_images,
    encode_sentences,
    similarity_matrices,
)
from sightline.progress import Progress
from sightline.reliability import Reliability
from sightline.tables import Kind, Table

if TYPE_CHECKING:
    import pandas
    import pyarrow

Links = Sequence[tuple[int, int]]

#: The cutoffs of the paper's tables.
CUTOFFS = (1, 5)
#: Encoded together: enough for the matrix products to run at speed, a few megabytes.
_DOCUMENTS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class DocumentScore:
    """The scores of one document, in percent."""

    id: str
    auc: float
    precision: dict[int, float]
    sentences: int
    images: int
    links: int
    #: The links that the model finds, by their confidence; None where they have none.
    reliability: Reliability | None = None

    def to_record(self) -> dict[str, object]:
        """One JSON line of the per-document file."""
        precision = {f"p@{cutoff}": value for cutoff, value in self.precision.items()}
        return {
            "id": self.id, "auc": self.auc, **precision,
            "sentences": self.sentences, "images": self.images, "links": self.links,
        }  # fmt: skip


class Evaluation(dict[str, float | int | None]):
    """Mean scores in percent, as `sightline evaluate` says them, and those of each document.

    `scores` are the documents that could be scored; `to_pandas()` and `to_arrow()` give one row
    each: `id`, `auc`, `p@1`, `p@5`, and how many `sentences`, `images` and `links` it has.
    """

    def __init__(
        self, means: Mapping[str, float | int | None], scores: Iterable[DocumentScore] = ()
    ) -> None:
        super().__init__(means)
        self.scores = tuple(scores)

    def table(self) -> Table:
        """One row per document."""
        kinds: dict[str, Kind] = {"id": "text", "auc": "number"}
        kinds |= {name: "number" for name in self if name.startswith("p@")}
        kinds |= dict.fromkeys(("sentences", "images", "links"), "whole number")
        return Table.of_rows((score.to_record() for score in self.scores), kinds)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per document."""
        return self.table().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """One row per document."""
        return self.table().to_arrow()

    def _repr_html_(self) -> str:
        from sightline.notebook import scores_html

        return scores_html(self)


def score_document(
    id: str,
    similarity_SV: NDArray[np.floating],
    links: Links,
    cutoffs: Collection[int] = CUTOFFS,
    calibration: Calibration | None = None,
) -> DocumentScore | None:
    """AUC and p@C of one document, or None where no link or every link is true.

    The paper's evaluation leaves such documents out: AUC is not defined for them.
    With a calibration, the links of the default policy are counted by their confidence.
    """
    true, scores = true_matrix(links, similarity_SV.shape).ravel(), similarity_SV.ravel()
    if not is_defined(true):
        return None
    return DocumentScore(
        id,
        100 * area_under_curve(true, scores),
        {cutoff: 100 * precision_at(true, scores, cutoff) for cutoff in cutoffs},
        similarity_SV.shape[0],
        similarity_SV.shape[1],
        int(true.sum()),
        _reliability(similarity_SV, links, calibration),
    )


def _reliability(
    similarity_SV: NDArray[np.floating], links: Links, calibration: Calibration | None
) -> Reliability | None:
    if calibration is None:
        return None
    found = with_confidence(link(similarity_SV), similarity_SV, calibration)
    return Reliability.of_links(found, links)


def mean_scores(
    scores: Iterable[DocumentScore], skipped: int, cutoffs: Collection[int] = CUTOFFS
) -> dict[str, float | int | None]:
    """Means over documents in percent, as the paper's tables; None where none could be scored.

    Where the model is calibrated, `calibration_error` is the expected calibration error of its
    links, in points of a hundred.
    """
    scored = list(scores)
    means: dict[str, float | int | None] = {"documents": len(scored), "skipped": skipped}
    means["auc"] = float(np.mean([score.auc for score in scored])) if scored else None
    for cutoff in cutoffs:
        values = [score.precision[cutoff] for score in scored]
        means[f"p@{cutoff}"] = float(np.mean(values)) if values else None
    counted = [score.reliability for score in scored if score.reliability is not None]
    if counted:
        error = Reliability.total(counted).expected_calibration_error
        means["calibration_error"] = None if error is None else 100 * error
    return means


def evaluate(
    model: LinkModel | str | Path,
    corpus: Corpus | str | Path,
    split: str | None = "test",
    features: str | Path | None = None,
    cutoffs: Collection[int] = CUTOFFS,
) -> Evaluation:
    """Mean AUC and p@C of a model on a corpus's split, in percent, as `sightline evaluate` says.

    - `model`: an open model, "default", or a model folder.
    - `corpus`: what `read` gave, or a path that it takes.
    - `split`: "test", "val", "train" or another that the corpus has; "all" or None for every
      document.
    - `features`: a folder with a feature store, if it is not beside the corpus.
    - `cutoffs`: the C of p@C.
    """
    if isinstance(model, str | Path):
        model = LinkModel.from_pretrained(model)
    opened = corpus if isinstance(corpus, Corpus) else read(corpus)
    store = corpus_features(model, opened, split, None if features is None else Path(features))
    before = opened.problems.count
    scores, skipped = score_corpus(model, opened, split, store, cutoffs)
    skipped += opened.problems.count - before
    if split is not None and not scores and not skipped:
        raise opened.split_not_found(split)
    return Evaluation(mean_scores(scores, skipped, cutoffs), scores)


def corpus_features(
    model: LinkModel, corpus: Corpus, split: str | None, folder: Path | None = None
) -> FeatureStore:
    """The feature store in `folder`, or the corpus's own, or what the model's network gives.

    Without a store, and for a model whose image network learned along, the image files are read,
    each once; their features are held in memory, 5 kB an image.
    """
    stored = folder or (None if model.tuned else features_beside(corpus.root))
    if stored is not None or not model.reads_images:
        return open_features(corpus, folder)
    with DecodePool() as pool:
        return read_files(corpus.documents(split), model.image_backbone, pool)


def score_documents(
    model: Model,
    corpus: Corpus,
    split: str | None,
    images: ImageSource,
    cutoffs: Collection[int] = CUTOFFS,
) -> tuple[list[DocumentScore], int]:
    """As `score_corpus`, for any model and source of features, a group of documents at a time."""
    scores: list[DocumentScore] = []
    documents = 0
    with Progress("evaluating", None, "documents") as progress:
        for group in groups(corpus.documents(split), _DOCUMENTS_AT_ONCE):
            known = [document for document in group if document.links is not None]
            documents += len(group)
            statuses, features = images.read(known)
            usable = _usable(known, statuses, corpus)
            documents -= len(known) - int(usable.sum())
            kept = np.repeat(usable, [_readable(of_document) for of_document in statuses])
            seen = [d for d, whole in zip(known, usable, strict=True) if whole]
            for document, similarity_SV in zip(
                seen, model.similarity_matrices(seen, features[kept]), strict=True
            ):
                true = document.links or ()
                score = score_document(document.id, similarity_SV, true, cutoffs, model.calibration)
                if score is not None:
                    scores.append(score)
            progress.advance(len(group))
    return scores, documents - len(scores)


def _readable(statuses: Sequence[ImageStatus]) -> int:
    return sum(status["status"] == "ok" for status in statuses)


def _usable(
    documents: Sequence[Document], statuses: Sequence[Sequence[ImageStatus]], corpus: Corpus
) -> NDArray[np.bool_]:
    """Which documents have all their images; the others are reported as problems."""
    usable = np.ones(len(documents), bool)
    for place, (document, of_document) in enumerate(zip(documents, statuses, strict=True)):
        for image in of_document:
            if image["status"] != "ok":
                reason = f"image {image['id']!r} is {image['status']}: {image['reason']}"
                corpus.problems.add(corpus.path, document.id, "images", reason)
                usable[place] = False
                break
    return usable


def score_corpus(
    model: LinkModel,
    corpus: Corpus,
    split: str | None,
    store: FeatureStore,
    cutoffs: Collection[int] = CUTOFFS,
) -> tuple[list[DocumentScore], int]:
    """Score every document of a corpus's split; returns the scores and how many had none.

    Skipped are documents whose links are unknown, and those in which no link or every link is
    true; documents with a missing image are reported as problems.
    """
    model.check_features(store)
    if model.members:  # which have vocabularies of their own
        return score_documents(model, corpus, split, StoredImages(store), cutoffs)
    packed = pack_documents(
        corpus.documents(split),
        model.vocabulary,
        store,
        model.settings.token_limit,
        corpus.problems,
        str(corpus.path),
    )
    return score_packed(model, packed, store, cutoffs)


def score_packed(
    model: LinkModel,
    packed: PackedDocuments,
    store: FeatureStore,
    cutoffs: Collection[int] = CUTOFFS,
) -> tuple[list[DocumentScore], int]:
    """Score packed documents, some hundreds encoded at a time."""
    scores: list[DocumentScore] = []
    with Progress("evaluating", len(packed), "documents") as progress:
        for begin in range(0, len(packed), _DOCUMENTS_AT_ONCE):
            end = min(begin + _DOCUMENTS_AT_ONCE, len(packed))
            documents = np.arange(begin, end)
            documents = documents[[packed.links[d] is not None for d in documents]]
            for document, similarity_SV in zip(
                documents, _similarity_matrices(model, packed, store, documents), strict=True
            ):
                links = packed.links[document] or ()
                score = score_document(
                    packed.ids[document], similarity_SV, links, cutoffs, model.calibration
                )
                if score is not None:
                    scores.append(score)
            progress.advance(end - begin)
    return scores, len(packed) - len(scores)


def _similarity_matrices(
    model: LinkModel, packed: PackedDocuments, store: FeatureStore, documents: NDArray[np.int64]
) -> list[FloatArray]:
    if not len(documents):
        return []
    batch = packed.batch(documents)
    sentence_NE = encode_sentences(model.weights, batch.sentences)
    image_ME = encode_images(model.weights, store.vectors(batch.image_rows))
    return similarity_matrices(sentence_NE, image_ME, batch.sentences_D, batch.images_D)
