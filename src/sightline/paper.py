"""The paper's Table 1 as data: what its corpora look like.

Hessel, Lee and Mimno (EMNLP 2019). The table is rounded, "25K" and "5%"; a number here is what
such a figure stands for. The paper's results are in `paper_results.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One row of Table 1; its numbers of documents and images are in round thousands."""

    documents: tuple[int, int, int]  # train, validation, test
    median_sentences: int
    median_images: int
    unique_images: int
    density: float | None  # true links of possible ones; None where no links are known


#: In the paper's order: the crowdlabeled datasets, then the organic ones.
TABLE_1: dict[str, DatasetRow] = {
    # The 25K are versions; the supplement has 4968/1655/1655 documents, the first about five times.
    "mscoco": DatasetRow((25_000, 2_000, 2_000), 10, 10, 83_000, 0.05),
    "dii": DatasetRow((22_000, 3_000, 3_000), 5, 5, 47_000, 0.20),
    "sis": DatasetRow((37_000, 5_000, 5_000), 5, 5, 76_000, 0.20),
    "dii-stress": DatasetRow((22_000, 3_000, 3_000), 50, 5, 47_000, 0.02),
    "diy": DatasetRow((7_000, 1_000, 1_000), 15, 16, 154_000, 0.08),
    # The supplement has 69K images, the share of its 6502 training recipes among 6502/946/878.
    "rqa": DatasetRow((7_000, 1_000, 1_000), 6, 8, 88_000, 0.17),
    "wiki": DatasetRow((14_000, 1_000, 1_000), 86, 5, 92_000, None),
}
