"""The report of a reproduction: figures, analysis and one page that shows it all.

From the finished runs of a reproduction folder it writes `figures/` (PNG and SVG),
`analysis.json` and `report.html`. Pictures and sentences of the corpus can be left out, for
corpora that may not be published; ids and numbers remain.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sightline import __version__
from sightline.analysis import Analysis, analyse
from sightline.analysis_tables import analysis_tables
from sightline.batches import with_features
from sightline.corpus import Corpus
from sightline.document_measures import DocumentMeasures, documents_named, measure_corpus
from sightline.documents import Document
from sightline.evaluation import corpus_features
from sightline.features import FeatureStore
from sightline.files import write_atomically
from sightline.model import LinkModel
from sightline.problems import Problems
from sightline.progress import counted, silent
from sightline.report.drawn_figures import FIGURES, Drawn, draw_figures
from sightline.report.page import Page, render
from sightline.report.run_folders import Run, main_run, read_runs
from sightline.report.shown_documents import (
    PICTURE_SIDE,
    add_pictures,
    choose_for_page,
    page_record,
)
from sightline.reproduction.setup import FILE, read_setup
from sightline.thumbnails import read_thumbnails

_REPORT = "report.html"
_ANALYSIS = "analysis.json"
#: What reproductions are scored on.
_SPLIT = "test"
#: So many documents can be browsed on the page.
_DOCUMENTS_SHOWN = 100
# Of a corpus without known links, so many documents are looked at.
_LOOKED_AT = 2_000
# Encoded together.
_AT_ONCE = 32
_PACKAGES = ("numpy", "scipy", "torch", "matplotlib", "statsmodels", "onnxruntime", "pillow")


@dataclass(frozen=True, slots=True)
class _Material:
    """What the report is made of, beside the runs."""

    corpus: Corpus
    documents: dict[str, Document]
    measures: DocumentMeasures | None
    model: LinkModel | None
    store: FeatureStore | None

    def matrices(self, documents: Sequence[Document]) -> list[NDArray[np.float32]]:
        """Similarity matrices of the main run's model."""
        if self.model is None:
            return []
        found: list[NDArray[np.float32]] = []
        for begin in range(0, len(documents), _AT_ONCE):
            part = documents[begin : begin + _AT_ONCE]
            found += self.model.similarity_matrices(part, self.store)
        return found


def write_report(
    folder: Path,
    corpus: Corpus,
    features: Path | None = None,
    word_vectors: Path | None = None,
    *,
    images: bool = True,
    text: bool = True,
    say: Callable[[str], None] = silent,
) -> Path:
    """Write figures, analysis and the page of a reproduction folder; returns the page's file.

    `corpus` is the one whose test split the runs were scored on. Without `images` no picture of
    it is used, and without `text` none of its sentences.
    """
    runs = read_runs([folder], corpus.problems)
    main = main_run(runs)
    material = _material(main, corpus, features, word_vectors)
    runs = [run.only(material.documents) for run in runs]
    main = next((run for run in runs if main is not None and run.name == main.name), None)
    analysis = analyse(runs, material.measures)
    record = orjson.dumps(analysis.to_record(), option=orjson.OPT_INDENT_2)
    write_atomically(folder / _ANALYSIS, record + b"\n")
    drawn = draw_figures(
        folder / FIGURES, runs, main, material.documents, material.measures,
        material.matrices, corpus.root if images else None, text,
    )  # fmt: skip
    for note in drawn.notes:
        say(note)
    page = _page(folder, runs, main, material, analysis, drawn, images, text)
    write_atomically(folder / _REPORT, render(page).encode())
    return folder / _REPORT


def _material(
    main: Run | None,
    corpus: Corpus,
    features: Path | None,
    word_vectors: Path | None,
) -> _Material:
    model = store = None
    if main is not None and main.folder is not None:
        model = LinkModel.from_pretrained(main.folder)
        store = corpus_features(model, corpus, _SPLIT, features)
    if main is not None and main.auc:
        # Where there is no such split, others were scored in its place (`reproduction.documents`).
        documents = documents_named(corpus, _SPLIT, main.auc) or documents_named(
            corpus, None, main.auc
        )
    else:
        found: Iterator[Document] = corpus.documents(_SPLIT)
        if store is not None:
            found = (document for document, _ in with_features(found, store, Problems(), ""))
        documents = {document.id: document for document in islice(found, _LOOKED_AT)}
    measures = measure_corpus(corpus, list(documents.values()), features, word_vectors)
    return _Material(corpus, documents, measures, model, store)


def _page(
    folder: Path,
    runs: Sequence[Run],
    main: Run | None,
    material: _Material,
    analysis: Analysis,
    drawn: Drawn,
    images: bool,
    text: bool,
) -> Page:
    setup = read_setup(folder) if (folder / FILE).is_file() else {}
    chosen = choose_for_page(main.auc if main else {}, material.documents, _DOCUMENTS_SHOWN)
    chosen_documents = [one.document for one in chosen]
    records = [
        page_record(one, similarity_SV, text, credited=images or text)
        for one, similarity_SV in zip(
            chosen if material.model else [], material.matrices(chosen_documents), strict=True
        )
    ]
    pictured = [d.images[v[0]] for d, r in zip(chosen_documents, records, strict=False)
                for v in r["images"]]  # fmt: skip
    thumbnails = read_thumbnails(material.corpus.root, pictured, PICTURE_SIDE) if images else {}
    pictures = add_pictures(records, chosen_documents, thumbnails)
    tables = folder / "tables.json"
    return Page(
        title=f"Reproduction of Hessel, Lee and Mimno (2019) on {material.corpus.path.name}",
        summary=_summary(runs, main, material, images, text),
        commands=[
            command
            for command in (setup.get("command"), *setup.get("further_commands", []))
            if command
        ],
        results=orjson.loads(tables.read_bytes()) if tables.is_file() else {},
        figures=drawn.figures,
        analysis=analysis_tables(analysis),
        analysis_notes=analysis.notes,
        documents=records,
        pictures=pictures,
        documents_note=_documents_note(len(records), main, material),
        facts=_facts(setup, main, runs),
    )


def _summary(
    runs: Sequence[Run], main: Run | None, material: _Material, images: bool, text: bool
) -> list[str]:
    documents = counted(len(material.documents), "test document")
    words = [f"{counted(len(runs), 'row')} of the paper's grid, {documents}."]
    if main is not None:
        reached = "" if main.mean_auc is None else f", whose mean AUC is {main.mean_auc:.1f}"
        words.append(f"Figures and documents show the row {main.name}{reached}.")
    absent = [name for name, there in (("pictures", images), ("sentences", text)) if not there]
    if absent:
        words.append(f"The corpus's {' and '.join(absent)} are left out of this page on purpose.")
    return words


def _documents_note(shown: int, main: Run | None, material: _Material) -> str:
    total = len(material.documents)
    if main is None:
        return "There is nothing to browse: no model was trained."
    if not main.auc:
        return f"{counted(shown, 'document')}; the true links are not known, so there is no AUC."
    if shown == total:
        return (
            f"All {total:,} test documents with their AUC in percent, similarity matrix and links."
        )
    return (
        f"{shown:,} of {total:,} test documents with their AUC in percent, similarity matrix and "
        "links: a third each of the hardest, of those closest to the average AUC, and of the "
        f"easiest. The page is limited to {_DOCUMENTS_SHOWN:,}."
    )


def _facts(
    setup: Mapping[str, Any], main: Run | None, runs: Sequence[Run]
) -> dict[str, dict[str, str]]:
    """Settings, data and versions in words."""
    settings = dict(setup.get("settings") or {})
    if not settings and main is not None and main.settings is not None:
        settings = main.settings.to_json()
    trained = [run.settings.to_json() for run in runs if run.settings is not None]
    settings = {
        name: value
        for name, value in settings.items()
        if all(of_run.get(name, value) == value for of_run in trained)
    }
    data = {
        name: _words(setup[name])
        for name in ("corpus", "documents", "features", "word_vectors", "fingerprint", "threads")
        if setup.get(name) is not None
    }
    seeds = sorted({run.settings.seed for run in runs if run.settings is not None})
    if seeds:
        data["seeds"] = ", ".join(map(str, seeds))
    trained_with = next((run.notes.get("versions") for run in runs if run.notes), None) or {}
    versions = {"sightline": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    facts = {
        "Settings that all rows share": {name: _words(value) for name, value in settings.items()},
        "Data and seeds": data,
        "Versions, of this page": versions,
        "Versions, of the training": {name: str(value) for name, value in trained_with.items()},
    }
    return {heading: values for heading, values in facts.items() if values}


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    return str(value)
