"""Which paragraph of a PDF is the caption of which picture: the nearest one, below or above."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.pages import BlockKind
from sightline.readers.figure_captions import begins_like_table_caption
from sightline.readers.pdf_layout import Box
from sightline.readers.pdf_paragraphs import Paragraph, PlacedPicture

_FARTHEST = 80.0  # points between a picture and its caption
_ABOVE = 20.0  # points that a caption above, or beside, has to be nearer than one below
_OVERLAP = 0.3  # of the narrower of both, that they share


def find_captions(
    paragraphs: Sequence[Paragraph], pictures: Sequence[PlacedPicture]
) -> list[tuple[int, ...]]:
    """Give the caption of each picture as the index of a paragraph, or none.

    Pictures that stand together may share one.
    """
    by_page: dict[int, list[int]] = {}
    for index, paragraph in enumerate(paragraphs):
        if paragraph.kind is BlockKind.CAPTION and not begins_like_table_caption(paragraph.text):
            by_page.setdefault(paragraph.page, []).append(index)
    found: list[tuple[int, ...]] = []
    for placed in pictures:
        distances = {
            index: _distance(placed.picture.box, paragraphs[index].box)
            for index in by_page.get(placed.page, ())
        }
        best = min(distances, key=distances.__getitem__, default=None)
        near = best is not None and distances[best] < _FARTHEST
        found.append((best,) if best is not None and near else ())
    return found


def _distance(picture: Box, caption: Box) -> float:
    if picture.shared_width(caption) >= _OVERLAP * min(picture.width, caption.width):
        if caption.top <= picture.bottom + 5:
            return max(0.0, picture.bottom - caption.top)
        if caption.bottom >= picture.top - 5:
            return max(0.0, caption.bottom - picture.top) + _ABOVE
        return _FARTHEST  # written across the picture
    if picture.shared_height(caption) >= _OVERLAP * min(picture.height, caption.height):
        gap = max(caption.left - picture.right, picture.left - caption.right)
        return max(0.0, gap) + _ABOVE
    return _FARTHEST
