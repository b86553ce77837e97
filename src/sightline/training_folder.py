"""The model folder of a run: how it begins, what its log says, and what is added at the end."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from sightline import __version__
from sightline.calibration import calibrate_packed
from sightline.checkpoints import FILE as CHECKPOINT
from sightline.corpus import Corpus
from sightline.files import write_atomically
from sightline.model import LinkModel
from sightline.model_files import FILES
from sightline.problems import SightlineError
from sightline.settings import Settings
from sightline.training_data import Say
from sightline.training_run import LOG, TrainingRun


def check_output(output: Path, resume: bool) -> None:
    """Refuse to write over a run that is not to be continued, or over files of another kind."""
    if not resume and (output / CHECKPOINT).exists():
        raise SightlineError(
            f"{output} already holds a training run; continue it with --resume, or name a new "
            "folder."
        )
    others = [name for name in FILES if (output / name).exists()]
    if others and not (output / LOG).exists():
        raise SightlineError(
            f"{output} holds a {others[0]} that no training run wrote, and nothing there is "
            "touched; name another folder."
        )


def check_settings(output: Path, settings: Settings) -> None:
    """Refuse to go on with a run under other settings than its log says, and name them."""
    start: dict[str, Any] = next(log_records(output), {}).get("start", {})
    before, now = start.get("settings", {}), settings.to_json()
    if settings.schedule != "cosine":  # whose learning rates depend on the last epoch
        now.pop("epochs")
    changed = [name for name, value in now.items() if before.get(name, value) != value]
    if changed:
        words = (f"--{n.replace('_', '-')} was {before[n]} and is now {now[n]}" for n in changed)
        raise SightlineError(
            f"{output} holds a run with other settings: {', '.join(words)}. Repeat the command "
            "that started it, with --resume, or train into a new folder."
        )


def start_folder(run: TrainingRun, corpus: Corpus, coverage: str, say: Say) -> None:
    """Begin the log; the folder is a model once the first epoch is done."""
    run.output.mkdir(parents=True, exist_ok=True)
    start = {
        "corpus": str(corpus.path),
        "training_documents": len(run.data.training),
        "validation_documents": len(run.data.validation),
        "words": len(run.data.vocabulary),
        "word_vectors": coverage,
        "settings": run.settings.to_json(),
        "versions": _versions(),
    }
    if run.settings.finetune_images:
        # What the backbone as it came gives, to see what tuning it adds.
        start["validation_loss"] = run.validation_loss()
        say(f"validation loss at the start {start['validation_loss']:.4f}")
    write_atomically(run.output / LOG, orjson.dumps({"start": start}) + b"\n")


def best_record(output: Path, best_epoch: int) -> dict[str, Any]:
    """What the log says of the best epoch."""
    return next((r for r in log_records(output) if r.get("epoch") == best_epoch), {})


def log_records(output: Path) -> Iterator[dict[str, Any]]:
    """Give the lines of the log."""
    for line in (output / LOG).read_bytes().splitlines():
        yield orjson.loads(line)


def is_finished(output: Path) -> bool:
    """Say whether a run ended here: then its model may have been calibrated anew since."""
    return "best_epoch" in (LinkModel.from_pretrained(output).notes or {})


def finish_folder(run: TrainingRun, corpus: Corpus, best: dict[str, Any], say: Say) -> None:
    """Add to the model folder what is known of the best epoch, and calibrate its model."""
    model = LinkModel.from_pretrained(run.output)
    scores = {"validation": {key: value for key, value in best.items() if "validation" in key}}
    notes = {
        "corpus": str(corpus.path.name),
        "best_epoch": run.state.best_epoch,
        "scores": scores,
        "versions": _versions(),
    }
    try:
        store = run.validation_features(model)
        notes["calibration"] = calibrate_packed(model, run.data.validation, store).to_json()
    except SightlineError as reason:
        say(f"links will have no confidence: {reason}")
    replace(model, settings=run.settings, notes=notes).save_pretrained(run.output)


def _versions() -> dict[str, str]:
    return {
        "sightline": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
