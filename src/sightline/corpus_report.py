"""All checks of a corpus in one report: for people, for machines, and as warnings of leaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sightline.corpus import Corpus
from sightline.corpus_checks import (
    FREQUENT,
    FULL_IMAGES,
    FULL_SENTENCES,
    FULL_TOKENS,
    DocumentChecks,
    Finding,
    Shared,
    check_documents,
)
from sightline.corpus_statistics import statistics_table
from sightline.features import FeatureStore, features_beside
from sightline.histograms import Histogram
from sightline.image_checks import (
    FeatureChecks,
    ImageChecks,
    check_features,
    check_images,
    has_image_files,
)
from sightline.progress import counted

_SAME = {
    "same_name": "",
    "same_bytes": " under other names (the same bytes)",
    "look_alikes": " in other files that look the same",
}


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """What was found; None for what was not looked at."""

    corpus: Path
    documents: DocumentChecks
    images: ImageChecks | None
    features: FeatureChecks | None

    @property
    def leaks(self) -> dict[str, list[Shared]]:
        """The images that two splits share, by the way in which they are the same."""
        return {
            "same_name": self.documents.shared_images,
            "same_bytes": [] if self.images is None else self.images.same_bytes,
            "look_alikes": [] if self.images is None else self.images.look_alikes,
        }


def check_corpus(corpus: Corpus, images: bool = True, features: Path | None = None) -> CorpusReport:
    """Check the documents and, unless told otherwise, each image file and each row of features.

    Files are left alone where there seem to be none but a feature store is there.
    """
    documents = check_documents(corpus)
    if not images:
        return CorpusReport(corpus.path, documents, None, None)
    total = documents.statistics.unique_images
    folder = features or features_beside(corpus.root)
    store = None if folder is None else FeatureStore.open(folder)
    of_files = check_images(corpus, total) if store is None or has_image_files(corpus) else None
    of_features = None if store is None else check_features(corpus, store, total)
    return CorpusReport(corpus.path, documents, of_files, of_features)


# ---- as JSON


def report_record(report: CorpusReport) -> dict[str, Any]:
    """Give everything as one JSON object."""
    documents = report.documents
    return {
        "corpus": str(report.corpus),
        "statistics": documents.statistics.to_record(),
        "bad_records": asdict(documents.bad_records),
        "duplicate_ids": asdict(documents.duplicate_ids),
        "duplicate_documents": asdict(documents.duplicate_documents),
        "near_empty": asdict(documents.near_empty),
        **{name: histogram.to_record() for name, histogram in _histograms(documents).items()},
        "words": documents.words,
        "frequent_words": documents.frequent_words,
        "unknown_links_share": _unknown_share(documents),
        "shared_sentences": [_shared_record(shared) for shared in documents.shared_sentences],
        "leaks": {
            kind: [_shared_record(one) for one in found] for kind, found in report.leaks.items()
        },
        "image_files": _files_record(report.images),
        "features": None if report.features is None else asdict(report.features),
    }


def _histograms(documents: DocumentChecks) -> dict[str, Histogram]:
    return {
        "tokens_per_sentence": Histogram.of(documents.sentence_tokens),
        "sentences_per_document": Histogram.of(documents.document_sentences),
        "images_per_document": Histogram.of(documents.document_images),
        "links_per_image": Histogram.of(documents.image_links),
        "links_per_sentence": Histogram.of(documents.sentence_links),
    }


def _shared_record(shared: Shared) -> dict[str, Any]:
    return {**asdict(shared), "share": shared.count / shared.total}


def _files_record(images: ImageChecks | None) -> dict[str, Any] | None:
    if images is None:
        return None
    return {
        "checked": images.checked,
        "statuses": images.statuses,
        "broken": asdict(images.broken),
    }


def _unknown_share(documents: DocumentChecks) -> float:
    return documents.statistics.unknown_links / documents.statistics.total


# ---- as text


def report_text(report: CorpusReport) -> str:
    """Lay everything out for a terminal."""
    documents = report.documents
    name = report.corpus.resolve().name
    table = statistics_table(name, documents.statistics, None)
    parts = [
        "\n".join(map(_plain, table.split("\n"))),
        "\n".join(f"{title:<20} {words}" for title, words in _rows(report)),
    ]
    for title, histogram in _histograms(documents).items():
        if histogram.bins:
            spread = f"mean {histogram.mean:.1f}, median {histogram.median:g}"
            head = f"{title.replace('_', ' ')} ({spread}, most {histogram.maximum:,})"
            parts.append("\n".join([head, *(f"  {line}" for line in histogram.lines())]))
    return "\n\n".join(parts)


def _rows(report: CorpusReport) -> Iterator[tuple[str, str]]:
    documents = report.documents
    yield "bad records", _finding(documents.bad_records)
    yield "duplicate ids", _finding(documents.duplicate_ids)
    yield "duplicate documents", _finding(documents.duplicate_documents)
    rule = (
        f" (fewer than {FULL_SENTENCES} sentences of {FULL_TOKENS} tokens or fewer than "
        f"{FULL_IMAGES} images)"
    )
    yield "nearly empty", _finding(documents.near_empty, rule)
    frequent = f"{documents.frequent_words:,} of them at least {FREQUENT} times"
    yield "words", f"{documents.words:,}, {frequent}"
    unknown = documents.statistics.unknown_links
    yield (
        "unknown links",
        f"{counted(unknown, 'document')} ({100 * _unknown_share(documents):.1f} %)",
    )
    for shared in documents.shared_sentences:
        yield "shared sentences", _shared_words(shared)
    for kind, found in report.leaks.items():
        for shared in found:
            yield "LEAK of images", f"{_shared_words(shared)}{_SAME[kind]}"
    yield "image files", _files_words(report)
    if report.features is not None:
        features = report.features
        yield "features", f"{counted(features.checked, 'image')} looked up in {features.store}"
        yield "  without a row", _finding(features.missing)
        yield "  NaN or infinity", _finding(features.damaged)


def _files_words(report: CorpusReport) -> str:
    if report.images is None:
        return "none here, only features" if report.features is not None else "not looked at"
    statuses = ", ".join(f"{count:,} {status}" for status, count in report.images.statuses.items())
    broken = report.images.broken.first
    examples = "; ".join(f"{one['image']}: {one['reason']}" for one in broken)
    return f"{statuses}{f' ({_plain(examples)} ...)' if broken else ''}"


def _finding(finding: Finding, rule: str = "") -> str:
    examples = ", ".join(_example(example) for example in finding.first)
    more = ", ..." if finding.count > len(finding.first) > 0 else ""
    return f"{finding.count:,}{rule}{f': {examples}{more}' if examples else ''}"


def _example(example: Any) -> str:
    if isinstance(example, dict) and "places" in example:
        return _plain(f"{example['id']} ({', '.join(example['places'])})")
    if isinstance(example, dict):
        return _plain(f"{example['image']} of {example['document']}")
    return _plain(" = ".join(example) if isinstance(example, list) else str(example))


def _shared_words(shared: Shared) -> str:
    first, second = shared.splits
    share = f"{shared.count:,} of its {shared.total:,} ({100 * shared.count / shared.total:.1f} %)"
    return f"{_plain(second)} shares {share} with {_plain(first)}"


def leak_warnings(report: CorpusReport) -> Iterator[str]:
    """Whole sentences on the images that two splits share."""
    for kind, found in report.leaks.items():
        for shared in found:
            first, second = map(_plain, shared.splits)
            examples = "".join(f"\n  {_leak_example(example)}" for example in shared.first)
            yield (
                f"LEAK: {second} shares {shared.count:,} of its {shared.total:,} images with "
                f"{first}{_SAME[kind]}: what is measured on {second} may be too good.{examples}"
            )


def _leak_example(example: dict[str, Any]) -> str:
    images = example.get("images") or [example["image"]]
    first, second = example["documents"]
    return _plain(f"{' = '.join(images)} in {first} and {second}")


def _plain(text: str) -> str:
    """Show what a document says without letting it move the cursor or colour the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
