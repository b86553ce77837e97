"""What all rows of a reproduction share, and the record of it in the output folder.

`reproduction.json` is written once, at the start. A later command with the same output folder
continues the same reproduction, and is refused if it would mix rows made in different ways. Only
if it says so may its rows differ in what `MAY_DIFFER` names; the record then gains its command.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from sightline import __version__
from sightline.features import FeatureStore
from sightline.files import write_atomically
from sightline.problems import SightlineError
from sightline.reproduction.documents import ChosenDocuments
from sightline.reproduction.rows import Row
from sightline.settings import Settings

FILE = "reproduction.json"
RUNS = "runs"
#: The settings that a row brings itself.
_OF_ROWS = ("similarity", "negatives", "max_links", "negative_documents")
#: The settings in which the rows of one folder may differ if they are asked to.
MAY_DIFFER = ("dimension", "epochs", "learning_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The choices that hold for every row."""

    corpus: Path
    output: Path
    settings: Settings
    #: So many training documents, drawn by the seed; None takes all.
    documents: int | None = None
    features: Path | None = None
    word_vectors: Path | None = None
    #: Threads of each run, on which the last digits of its results depend; None leaves the choice.
    threads: int | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run's process is asked to do."""

    setup: Setup
    row: Row

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.setup.output / RUNS / self.row.folder_name

    def to_json(self) -> dict[str, Any]:
        """The request as a JSON object."""
        setup = self.setup
        return {
            "corpus": str(setup.corpus),
            "output": str(setup.output),
            "settings": setup.settings.to_json(),
            "documents": setup.documents,
            "features": _text(setup.features),
            "word_vectors": _text(setup.word_vectors),
            "threads": setup.threads,
            "strict": setup.strict,
            "row": [self.row.name, self.row.negative_documents],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> RunRequest:
        """The request that a JSON object says."""
        row = Row(*record.pop("row"))
        settings = Settings.from_json(record.pop("settings"), "request")
        for name in ("corpus", "output", "features", "word_vectors"):
            record[name] = None if record[name] is None else Path(record[name])
        return cls(Setup(settings=settings, **record), row)


def start(
    setup: Setup,
    chosen: ChosenDocuments,
    store: FeatureStore,
    jobs: int,
    command: str,
    mixed: bool = False,
) -> Setup:
    """Write `reproduction.json`, or check that it says what this command asks for.

    `mixed` lets the settings of `MAY_DIFFER` be others than those of the rows before. Returns the
    setup with its number of threads: as asked for, or as the reproduction began with, or such
    that `jobs` runs share the cores.
    """
    record: dict[str, Any] = {
        "command": command,
        "corpus": str(setup.corpus),
        "features": {"backbone": store.backbone, "dimension": store.dimension},
        "word_vectors": _file(setup.word_vectors),
        "documents": {**chosen.counts, "scorable": chosen.scorable},
        "notes": chosen.notes,
        "fingerprint": chosen.fingerprint,
        "threads": setup.threads or max(1, (os.cpu_count() or 1) // jobs),
        "settings": _common(setup.settings.to_json()),
        "versions": _versions(),
    }
    file = setup.output / FILE
    if file.exists():
        before = read_setup(setup.output)
        if setup.threads is None:
            record["threads"] = before.get("threads")
        differing = _check_same(file, before, record, mixed)
        if differing and command not in before.get("further_commands", []):
            before["further_commands"] = [*before.get("further_commands", []), command]
            write_atomically(file, orjson.dumps(before, option=orjson.OPT_INDENT_2))
    else:
        setup.output.mkdir(parents=True, exist_ok=True)
        write_atomically(file, orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return replace(setup, threads=record["threads"])


def read_setup(output: Path) -> dict[str, Any]:
    """What `reproduction.json` of an output folder says."""
    file = output / FILE
    try:
        record = orjson.loads(file.read_bytes())
    except FileNotFoundError:
        raise SightlineError(f"{output} holds no reproduction: {FILE} is missing.") from None
    except orjson.JSONDecodeError as error:
        raise SightlineError(f"{file} is not JSON ({error}).") from None
    if not isinstance(record, dict) or not isinstance(record.get("settings"), dict):
        raise SightlineError(f"{file} is not the record of a reproduction.")
    return record


def _check_same(file: Path, before: dict[str, Any], now: dict[str, Any], mixed: bool) -> bool:
    """Refuse to mix rows that were made in different ways; says whether settings differ."""
    changed = [
        name for name, value in now["settings"].items() if before["settings"].get(name) != value
    ]
    refused = [name for name in changed if not (mixed and name in MAY_DIFFER)]
    differences = [
        f"{name} was {before['settings'].get(name)!r} and is now {now['settings'][name]!r}"
        for name in refused
    ]
    differences += [
        f"the {name.replace('_', ' ')} were {before.get(name)} and are now {now[name]}"
        for name in ("documents", "features", "word_vectors", "threads")
        if before.get(name) != now[name]
    ]
    if not differences and before.get("fingerprint") != now["fingerprint"]:
        differences = ["the documents of the corpus have changed"]
    if differences:
        way_out = "Repeat the command that began it, or name another --output."
        if len(differences) == len(refused) and set(refused) <= set(MAY_DIFFER):
            way_out = f"{way_out[:-1]}; --mixed lets the rows of one folder differ in that."
        raise SightlineError(
            f"{file.parent} holds a reproduction made otherwise: {'; '.join(differences)}. "
            f"{way_out}"
        )
    return bool(changed)


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "numpy", "scipy", "onnxruntime")}
    return {"sightline": __version__, "python": platform.python_version(), **packages}


def _common(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _OF_ROWS}


def _file(path: Path | None) -> dict[str, Any] | None:
    """A file's name and size, by which it is known again wherever it lies."""
    if path is None:
        return None
    if not path.is_file():
        raise SightlineError(f"{path} is not a file; expected word vectors.")
    return {"name": path.name, "bytes": path.stat().st_size}


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
