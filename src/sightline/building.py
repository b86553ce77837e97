"""Writing a corpus folder: the documents as they come, and a manifest of where they come from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from sightline import __version__
from sightline.corpus_statistics import CorpusStatistics, StatisticsCounter
from sightline.documents import Document
from sightline.files import write_atomically
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress
from sightline.readers.native import open_for_reading, write_jsonl

DOCUMENTS = "documents.jsonl"
MANIFEST = "manifest.json"


def build_corpus(
    name: str,
    documents: Iterable[Document],
    output: Path,
    *,
    inputs: Sequence[Path],
    options: Mapping[str, Any],
    problems: Problems,
    dropped: Counter[str],
) -> CorpusStatistics:
    """Write the documents of a builder to a corpus folder, with a manifest; gives their statistics.

    `inputs` are the files that the builder reads. `dropped` counts, by a few words each, what its
    recipe left out; the builder fills it while it is iterated. Equal documents give equal bytes.
    """
    if (output / DOCUMENTS).exists() and not (output / MANIFEST).exists():
        raise SightlineError(
            f"{output} holds a {DOCUMENTS} that no builder wrote, and nothing there is touched; "
            "name another folder."
        )
    counter = StatisticsCounter()
    # Before the documents are put in place, so that their manifest follows at once.
    hashes = [{"file": file.name, "sha256": _sha256(file)} for file in inputs]
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be made a folder: {error.strerror}; name another"
        raise SightlineError(f"{output}: {reason}.") from error
    write_jsonl(_checked(name, counter.counted(documents), problems, dropped), output / DOCUMENTS)
    statistics = counter.statistics()
    manifest = {
        "builder": name,
        "sightline": __version__,
        "options": dict(options),
        "inputs": hashes,
        "dropped": dict(sorted((+dropped).items())),
        "bad_records": problems.count,
        "statistics": statistics.to_record(),
    }
    write_atomically(output / MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    return statistics


def builder_of(corpus: Path) -> str | None:
    """Which builder wrote a corpus folder; None if none did."""
    with suppress(OSError, orjson.JSONDecodeError, AttributeError):
        builder = orjson.loads((corpus / MANIFEST).read_bytes()).get("builder")
        return builder if isinstance(builder, str) else None
    return None


def _checked(
    name: str, documents: Iterable[Document], problems: Problems, dropped: Counter[str]
) -> Iterator[Document]:
    """Hand documents on with progress; none at all is an error, before a file takes its place."""
    with Progress(f"building {name}", None, "documents") as progress:
        for document in documents:
            progress.advance()
            yield document
        if not progress.done:
            reasons = [f"{count:,} {what} dropped" for what, count in sorted((+dropped).items())]
            reasons += [f"{problems.count:,} bad records"] if problems.count else []
            raise SightlineError(
                f"No document of {name} could be built ({', '.join(reasons) or 'no input'}); "
                "nothing was written."
            )


def _sha256(path: Path) -> str:
    with open_for_reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
