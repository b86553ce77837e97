"""Training: documents in, a model folder out; the paper's Section 3.1 and its protocol.

The folder fills as the run goes: `config.json` and `vocabulary.json` at the start,
`model.safetensors` at each epoch with a lower validation loss (both encoders together),
`checkpoint.safetensors` and a line of `log.jsonl` at every epoch.
"""

from __future__ import annotations

import math
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from sightline import __version__
from sightline.batches import open_features
from sightline.checkpoints import FILE as CHECKPOINT
from sightline.checkpoints import save_checkpoint
from sightline.corpus import Corpus
from sightline.decode_pool import DecodePool
from sightline.documents import split_name
from sightline.evaluation import mean_scores, score_packed
from sightline.features import FeatureStore
from sightline.files import write_atomically
from sightline.finetuning import FineTuningRun
from sightline.image_files import FileFeatures, check_files
from sightline.model import LinkModel
from sightline.problems import Problems, SightlineError
from sightline.progress import duration
from sightline.settings import Settings
from sightline.trainable_backbones import TrainableBackbone, load_trainable_backbone
from sightline.training_data import Say, TrainingData, prepare
from sightline.training_run import LOG, TrainingRun
from sightline.word_vectors import (
    WordVectors,
    embedding_matrix,
    read_word_vectors,
    start_from_related,
)


def _silent(words: str) -> None:
    """Nobody listens: the default of a run that is called from Python."""


def train(
    corpus: Corpus,
    output: Path,
    settings: Settings,
    store: FeatureStore | None = None,
    word_vectors: Path | None = None,
    *,
    backbone: TrainableBackbone | None = None,
    workers: int | None = None,
    resume: bool = False,
    problems: Problems | None = None,
    say: Say = _silent,
) -> dict[str, Any]:
    """Train a model into the folder `output`; returns the best epoch's record of the log.

    Features are those of `store`, by default the corpus's own. With `settings.finetune_images`
    they come from the image files through `backbone`, which learns along, by default the bundled
    one; `workers` processes decode them.
    """
    _check_output(output, resume)
    problems = problems or corpus.problems
    with DecodePool(workers, ahead=8) as pool:
        files: FileFeatures | None = None
        if settings.finetune_images:
            backbone = backbone or load_trainable_backbone()
            store = files = _files(corpus, backbone, pool, say)
        elif store is None:
            store = open_features(corpus)
        fixed = _fixed_vectors(settings, word_vectors, problems)
        data = prepare(corpus, store, settings, problems, say, fixed)
        embedding, coverage = _embedding(data, settings, word_vectors, fixed, problems)
        say(f"word vectors: {coverage}")
        if files is None or backbone is None:
            run = TrainingRun(data, embedding, settings, output)
        else:
            run = FineTuningRun(data, embedding, settings, output, files, backbone, pool)
        return _train(run, corpus, coverage, resume, say)


def _files(corpus: Corpus, backbone: TrainableBackbone, pool: DecodePool, say: Say) -> FileFeatures:
    """The image files of all documents that the run may use."""
    say("looking which images can be read")
    documents = (d for d in corpus.documents(None) if split_name(d.split) != "test")
    files = check_files(documents, backbone.open(), pool)
    say(f"{len(files):,} images can be read, {len(files.failures):,} cannot")
    if not len(files):
        raise SightlineError(f"None of the image files of {corpus.path} can be read.")
    return files


def _fixed_vectors(
    settings: Settings, word_vectors: Path | None, problems: Problems
) -> WordVectors | None:
    if not settings.fixed_word_vectors:
        return None
    if word_vectors is None:
        raise SightlineError("Fixed word vectors come from a file; name it with --word-vectors.")
    return read_word_vectors(word_vectors, None, problems)


def _embedding(
    data: TrainingData,
    settings: Settings,
    word_vectors: Path | None,
    fixed: WordVectors | None,
    problems: Problems,
) -> tuple[np.ndarray, str]:
    vectors = fixed
    if fixed is None and word_vectors is not None:
        vectors = read_word_vectors(word_vectors, data.vocabulary.words, problems)
    rng = np.random.default_rng(settings.seed)
    dimension = settings.word_dimension
    embedding, coverage = embedding_matrix(data.vocabulary, vectors, dimension, rng=rng)
    if fixed is not None:
        start_from_related(data.vocabulary, embedding, data.fixed_words)
    return embedding, str(coverage)


def _train(
    run: TrainingRun, corpus: Corpus, coverage: str, resume: bool, say: Say
) -> dict[str, Any]:
    output = run.output
    if resume and (output / CHECKPOINT).exists():
        run.resume()
        say(f"resuming after epoch {run.state.epoch}")
    else:
        _start_folder(run, corpus, coverage, say)
    records = list(_epochs(run, say))
    if not records:
        say(f"the run is complete: {run.state.epoch} epochs were done before")
    best = _best_record(output, run.state.best_epoch)
    _finish_folder(run, corpus, best)
    return best


def _check_output(output: Path, resume: bool) -> None:
    if not resume and (output / CHECKPOINT).exists():
        raise SightlineError(
            f"{output} already holds a training run; continue it with --resume, or name a new "
            "folder."
        )


def _start_folder(run: TrainingRun, corpus: Corpus, coverage: str, say: Say) -> None:
    """Write all but better weights, so that the folder is a model from the first epoch on."""
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
    run.model().save_pretrained(run.output)


def _epochs(run: TrainingRun, say: Say) -> Iterator[dict[str, Any]]:
    """Train until the last epoch, keeping the folder up to date; yields the log's records."""
    settings = run.settings
    while run.state.epoch < settings.epochs:
        number = run.state.epoch + 1
        learning_rate = run.state.learning_rate
        wall, cpu = time.monotonic(), time.process_time()
        training_loss = run.train_epoch(f"epoch {number} of {settings.epochs}")
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        validation_loss = run.validation_loss()
        if not math.isfinite(training_loss) or not math.isfinite(validation_loss):
            raise SightlineError(
                f"The loss of epoch {number} is not a finite number; the last good state is in "
                f"{run.output}. Try a lower --learning-rate."
            )
        model = run.model()
        scores, skipped = score_packed(model, run.data.validation, run.data.store)
        best = run.finish_epoch(validation_loss)
        record = {
            "epoch": number,
            "training_loss": training_loss,
            "validation_loss": validation_loss,
            **{f"validation_{name}": value for name, value in mean_scores(scores, skipped).items()},
            "learning_rate": learning_rate,
            "best": best,
            "seconds": wall,
            "cpu_seconds": cpu,
            "documents_per_second": len(run.data.training) / wall,
            "peak_memory_mb": _peak_memory_mb(),
        }
        if best:
            model.save_weights(run.output)
        with (run.output / LOG).open("ab") as log:
            log.write(orjson.dumps(record) + b"\n")
        # Last: a kill before this line repeats the epoch, with the same outcome.
        save_checkpoint(run.output, run.encoders, run.optimizer, run.state)
        say(_summary(record, settings.epochs))
        yield record


def _summary(record: dict[str, Any], epochs: int) -> str:
    auc = record["validation_auc"]
    words = [
        f"epoch {record['epoch']} of {epochs}:",
        f"training loss {record['training_loss']:.4f},",
        f"validation loss {record['validation_loss']:.4f}{' (best)' if record['best'] else ''},",
    ]
    if auc is not None:
        words.append(f"AUC {auc:.1f}, p@1 {record['validation_p@1']:.1f},")
    words.append(f"{record['documents_per_second']:.0f} documents/s,")
    words.append(f"{duration((epochs - record['epoch']) * record['seconds'])} left")
    return " ".join(words)


def _best_record(output: Path, best_epoch: int) -> dict[str, Any]:
    lines = (output / LOG).read_bytes().splitlines()
    records = [orjson.loads(line) for line in lines]
    return next((r for r in records if r.get("epoch") == best_epoch), {})


def _finish_folder(run: TrainingRun, corpus: Corpus, best: dict[str, Any]) -> None:
    """Add to the model folder what is known of the best epoch."""
    model = LinkModel.from_pretrained(run.output)
    scores = {"validation": {key: value for key, value in best.items() if "validation" in key}}
    notes = {
        "corpus": str(corpus.path.name),
        "best_epoch": run.state.best_epoch,
        "scores": scores,
        "versions": _versions(),
    }
    replace(model, settings=run.settings, notes=notes).save_pretrained(run.output)


def _peak_memory_mb() -> float | None:
    """The most memory that this process has held so far, where the system says it."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def _versions() -> dict[str, str]:
    return {
        "sightline": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
