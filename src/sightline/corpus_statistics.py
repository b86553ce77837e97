"""What a corpus looks like in numbers, in the form of the paper's Table 1."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sightline.choices import SPLITS
from sightline.documents import Document, split_name
from sightline.histograms import mean_and_median
from sightline.paper import DatasetRow

#: Hashes of image names gathered before they are sorted in among the others.
_UNSORTED = 2**16


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many sentences, or images, the documents have."""

    median: float
    mean: float
    maximum: int


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """The numbers of a corpus; `documents` counts each split as first seen, None without one."""

    documents: dict[str | None, int]
    sentences: Sizes
    images: Sizes
    unique_images: int
    # The mean over documents with known links of links / (sentences x images). Table 1's caption
    # could also mean all links over all pairs, but its own figures rule that out: RQA's documents
    # have 7 sentences on average and one link an image, which would give at most 1/7, not 17 %.
    density: float | None
    links: int
    unknown_links: int  # documents of which no links are known

    @property
    def total(self) -> int:
        """All documents."""
        return sum(self.documents.values())

    def to_record(self) -> dict[str, Any]:
        """Give the statistics as JSON takes them, documents without a split apart."""
        splits = {split: count for split, count in self.documents.items() if split is not None}
        return {
            "documents": self.total,
            "splits": splits,
            "without_split": self.documents.get(None, 0),
            "sentences": asdict(self.sentences),
            "images": asdict(self.images),
            "unique_images": self.unique_images,
            "density": self.density,
            "links": self.links,
            "unknown_links": self.unknown_links,
        }


class StatisticsCounter:
    """Counts documents on their way to somewhere else; memory grows by 8 to 16 bytes an image."""

    def __init__(self) -> None:
        self._documents: Counter[str | None] = Counter()
        self._sentences: Counter[int] = Counter()
        self._images: Counter[int] = Counter()
        self._names = _Distinct()
        # The sum of densities in units of 2**-64: adding floats would turn 5 % into 4.99...
        self._density = 0
        self._scored = 0
        self._links = 0
        self._unknown_links = 0

    def counted(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Hand the documents on, each counted."""
        for document in documents:
            self.add(document)
            yield document

    def add(self, document: Document) -> None:
        """Count one document."""
        sentences, images = len(document.sentences), len(document.images)
        self._documents[document.split] += 1
        self._sentences[sentences] += 1
        self._images[images] += 1
        self._names.add(document.images)
        if document.links is None:
            self._unknown_links += 1
            return
        self._links += len(document.links)
        if sentences and images:
            self._density += (len(document.links) << 64) // (sentences * images)
            self._scored += 1

    def statistics(self) -> CorpusStatistics:
        """Give the numbers of what was counted so far."""
        return CorpusStatistics(
            documents=dict(self._documents),
            sentences=_sizes(self._sentences),
            images=_sizes(self._images),
            unique_images=len(self._names),
            density=self._density / self._scored / 2**64 if self._scored else None,
            links=self._links,
            unknown_links=self._unknown_links,
        )


class _Distinct:
    """How many different strings were added, by 8-byte hashes: half of what `HashCounts` keeps.

    Two of ten million strings share a hash with a probability of about 3 in a million.
    """

    def __init__(self) -> None:
        self._sorted = np.empty(0, np.int64)
        self._new = array("q")

    def add(self, strings: Iterable[str]) -> None:
        self._new.extend(map(hash, strings))
        # As many as there are already: sorting then takes its share of the time, no more.
        if len(self._new) > max(_UNSORTED, len(self._sorted)):
            self._merge()

    def __len__(self) -> int:
        self._merge()
        return len(self._sorted)

    def _merge(self) -> None:
        self._sorted = np.union1d(self._sorted, np.array(self._new, np.int64))
        self._new = array("q")


def _sizes(counts: Counter[int]) -> Sizes:
    mean, median = mean_and_median(counts)
    return Sizes(median, mean, max(counts, default=0))


# ---- as a table


def statistics_table(name: str, statistics: CorpusStatistics, paper_row: DatasetRow | None) -> str:
    """Lay the statistics out as Table 1 does, above the paper's own row where there is one."""
    rows = [
        ("", "train/val/test", "|S|/|V|", "# imgs", "density"),
        ("", "", "(median)", "(unique)", ""),
        (name, *_row(statistics)),
    ]
    if paper_row is not None:
        rows.append(("the paper", *_paper_row(paper_row)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    name, *cells = row
    aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
    return "  ".join([name.ljust(widths[0]), *aligned]).rstrip()


def _row(statistics: CorpusStatistics) -> tuple[str, ...]:
    medians = f"{statistics.sentences.median:g}/{statistics.images.median:g}"
    density = "N/A" if statistics.density is None else f"{100 * statistics.density:.1f}%"
    return _documents(statistics), medians, f"{statistics.unique_images:,}", density


def _documents(statistics: CorpusStatistics) -> str:
    splits: Counter[str | None] = Counter()
    for split, count in statistics.documents.items():
        splits[split_name(split)] += count
    known = [splits.pop(split, 0) for split in SPLITS]
    shown = ["/".join(f"{count:,}" for count in known)] if any(known) else []
    shown += [f"{count:,} {split or 'without split'}" for split, count in splits.items()]
    return " + ".join(shown) or "0/0/0"


def _paper_row(row: DatasetRow) -> tuple[str, ...]:
    documents = "/".join(map(_thousands, row.documents))
    density = "N/A" if row.density is None else f"{100 * row.density:.0f}%"
    medians = f"{row.median_sentences}/{row.median_images}"
    return documents, medians, _thousands(row.unique_images), density


def _thousands(count: int) -> str:
    return f"{count // 1000}K"
