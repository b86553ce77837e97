"""Which figures a report has, of which runs and documents, and what is said below them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.document_measures import DocumentMeasures
from sightline.documents import Document
from sightline.image_colours import Pixels
from sightline.report.figure_links import Prediction, draw_links, draw_sentences, typical, varied
from sightline.report.figures import Curve, curve_of, draw_dynamics, missing_characters
from sightline.report.page import PageFigure
from sightline.report.run_folders import Run
from sightline.thumbnails import read_thumbnails

#: The folder of the figures.
FIGURES = "figures"
#: Example documents as bipartite graphs.
_EXAMPLES = 3
_PICTURE_SIDE = 256

Matrices = Callable[[Sequence[Document]], list[NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The figures, and sentences on what could not be drawn."""

    figures: list[PageFigure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def draw_figures(
    folder: Path,
    runs: Sequence[Run],
    main: Run | None,
    documents: Mapping[str, Document],
    measures: DocumentMeasures | None,
    matrices: Matrices,
    pictures: Path | None,
    text: bool,
) -> Drawn:
    """Draw the training curves, example predictions and the predicted sentences of one document.

    `pictures` is the folder of the corpus, or None to draw grey tiles.
    """
    drawn = Drawn()
    curves = [curve for run in runs if (curve := curve_of(run.name, run.epochs))]
    own = [curve for curve in curves if main is not None and curve.name == main.name]
    if own:
        drawn.figures.append(_dynamics(own, folder / "dynamics"))
    if len(curves) > 1:
        drawn.figures.append(_dynamics(curves, folder / "dynamics-all"))
    if main is None:
        return drawn
    # A document without any similarity above zero has no links to show: the next one takes over.
    examples = typical(main.auc, documents, 3 * _EXAMPLES)
    long = None if measures is None else varied(measures)
    chosen = [*examples, *([documents[long]] if long is not None else [])]
    predictions = [
        Prediction(document, similarity_SV, main.auc.get(document.id))
        for document, similarity_SV in zip(chosen, matrices(chosen), strict=True)
    ]
    shown = [p for p in predictions[: len(examples)] if p.links()][:_EXAMPLES]
    of_long = [p for p in predictions[len(examples) :] if p.links()]
    used = [p.document.images[found.image] for p in (*shown, *of_long) for found in p.links()]
    thumbnails = read_thumbnails(pictures, used, _PICTURE_SIDE) if pictures is not None else {}
    for number, prediction in enumerate(shown, 1):
        drawn.figures.append(_example(prediction, thumbnails, folder / f"links-{number}", text))
    for prediction in of_long:
        drawn.figures.append(_sentences(prediction, thumbnails, folder / "sentences", text))
    drawn.notes.extend(_notes([*shown, *of_long], text))
    return drawn


def _dynamics(curves: Sequence[Curve], stem: Path) -> PageFigure:
    file = draw_dynamics(curves, stem)[1]
    names = ", ".join(curve.name for curve in curves)
    ends = "; ".join(_ends(curve) for curve in curves)
    caption = (
        "Inter-document objective (negative validation loss) and intra-document AUC over the "
        "epochs of training, as the paper plots them."
    )
    if len(curves) > 1:
        caption += " The scales differ from panel to panel."
    if any(curve.auc is None for curve in curves):
        caption += " Without known links there is no AUC to draw."
    alt = f"Training curves of {names}. {ends}."
    return PageFigure(file.read_bytes(), "image/svg+xml", alt, caption)


def _ends(curve: Curve) -> str:
    words = f"{curve.name}: objective {curve.objective[0]:.3f} to {curve.objective[-1]:.3f}"
    return words if curve.auc is None else f"{words}, AUC {curve.auc[0]:.1f} to {curve.auc[-1]:.1f}"


def _example(
    prediction: Prediction, thumbnails: Mapping[str, Pixels], stem: Path, text: bool
) -> PageFigure:
    file = draw_links(prediction, thumbnails, stem, text)[1]
    caption = (
        "The most confident links of a document, by best assignment: "
        "an image over its predicted sentence, most confident on the left. Edges are as wide as "
        "their cosine, only positive ones are drawn; green ones with a tick are true. The document "
        "is one of those closest to the average AUC that have the most links to show."
    )
    alt = f"Predicted links of {prediction.document.id}: {_links_in_words(prediction)}."
    return PageFigure(file.read_bytes(), "image/svg+xml", alt, caption)


def _sentences(
    prediction: Prediction, thumbnails: Mapping[str, Pixels], stem: Path, text: bool
) -> PageFigure:
    file = draw_sentences(prediction, thumbnails, stem, text)[1]
    caption = (
        "Predicted sentences, with cosines, for images of one long document, most confident first, "
        "as the paper shows them for Mauritius. The document is the one with the highest image and "
        "text spread in the longest quarter."
    )
    alt = f"Predicted sentences of {prediction.document.id}: {_links_in_words(prediction)}."
    return PageFigure(file.read_bytes(), "image/svg+xml", alt, caption)


def _links_in_words(prediction: Prediction) -> str:
    return "; ".join(
        f"image {found.image + 1} with sentence {found.sentence + 1}, cosine {found.score:.2f}"
        + (", true" if prediction.is_true(found.sentence, found.image) else "")
        for found in prediction.links()
    )


def _notes(predictions: Sequence[Prediction], text: bool) -> list[str]:
    if not text:
        return []
    shown = [p.document.sentences[found.sentence] for p in predictions for found in p.links()]
    missing = missing_characters(shown)
    if not missing:
        return []
    return [
        f"No installed font has {len(missing)} characters of the figures' sentences (such as "
        f"{missing[0]}): they show as boxes. Install one that has, such as Noto Sans CJK."
    ]
