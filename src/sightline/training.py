"""Training: documents in, a model folder out; the paper's Section 3.1 and its protocol.

The folder fills as the run goes: `config.json` and `vocabulary.json` at the start,
`model.safetensors` at each epoch with a lower validation loss (both encoders together),
`checkpoint.safetensors` and a line of `log.jsonl` at every epoch.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from sightline.batches import open_features
from sightline.checkpoints import FILE as CHECKPOINT
from sightline.checkpoints import save_checkpoint
from sightline.corpus import Corpus
from sightline.decode_pool import DecodePool
from sightline.distributed import ALONE, Processes, found_device
from sightline.documents import split_name
from sightline.evaluation import mean_scores, score_packed
from sightline.features import FeatureStore
from sightline.files import remove_leftovers
from sightline.finetuning import FineTuningRun
from sightline.image_files import FileFeatures, check_files
from sightline.machine import peak_memory_bytes
from sightline.problems import Problems, SightlineError
from sightline.progress import counted, duration, silent
from sightline.settings import Settings
from sightline.tensorboard_log import check_tensorboard, tensorboard_log
from sightline.trainable_backbones import TrainableBackbone, load_trainable_backbone
from sightline.training_data import Say, TrainingData, open_prepared, prepare
from sightline.training_folder import (
    best_record,
    check_output,
    check_settings,
    finish_folder,
    is_finished,
    log_records,
    start_folder,
)
from sightline.training_run import LOG, TrainingRun
from sightline.word_embedding import embedding_matrix, start_from_related
from sightline.word_vectors import WordVectors, read_word_vectors

#: Folder of the packed documents within the output, while a run that packs on disk goes on.
_PACKED = "packed"


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
    pack_on_disk: bool = False,
    tensorboard: Path | None = None,
    processes: Processes = ALONE,
    device: str = "cpu",
    problems: Problems | None = None,
    say: Say = silent,
) -> dict[str, Any]:
    """Train a model into the folder `output`; returns the best epoch's record of the log.

    `word_vectors` is a word2vec or GloVe file (`.bin`, `.txt`, `.gz`, `.npz`), `device` "cpu" or
    "cuda". `resume` goes on with the run in `output`; `say` is called with each line of progress.
    Features are those of `store`, by default the corpus's own. With `settings.finetune_images`
    they come from the image files through `backbone`, which learns along, by default the bundled
    one; `workers` processes decode them.
    With `pack_on_disk` the documents lie in files within `output` instead of in memory. The curves
    of the run go to TensorBoard in the folder `tensorboard`, below the name of `output`. Of several
    `processes` (`distributed.started_processes`) each calls this, and the first writes.
    """
    check_output(output, resume)
    if resume and (output / CHECKPOINT).exists() and (output / LOG).exists():
        check_settings(output, settings)
    if word_vectors is not None and not word_vectors.is_file():  # before the corpus is read
        raise SightlineError(f"{word_vectors}: there is no such file of word vectors.")
    if tensorboard is not None:
        check_tensorboard()
        tensorboard /= output.resolve().name
    if settings.finetune_images and processes.count > 1:
        raise SightlineError(
            "--finetune-images works in one process only; start it without torchrun."
        )
    if settings.finetune_images and device != "cpu":
        raise SightlineError("--finetune-images works on the CPU only; leave --device out.")
    problems = problems or corpus.problems
    with (
        DecodePool(workers, ahead=8) as pool,
        _packed_folder(output, pack_on_disk, processes) as folder,
    ):
        files: FileFeatures | None = None
        if settings.finetune_images:
            backbone = backbone or load_trainable_backbone()
            store = files = _files(corpus, backbone, pool, say)
        elif store is None:
            store = open_features(corpus)
        fixed = _fixed_vectors(settings, word_vectors, problems)
        data = _prepare(corpus, store, settings, problems, say, fixed, folder, processes)
        embedding, coverage = _embedding(data, settings, word_vectors, fixed, problems)
        say(f"word vectors: {coverage}")
        if files is None or backbone is None:
            place = found_device(device)
            run = TrainingRun(data, embedding, settings, output, None, processes, place)
        else:
            run = FineTuningRun(data, embedding, settings, output, files, backbone, pool)
        return _train(run, corpus, coverage, resume, tensorboard, say)


@contextmanager
def _packed_folder(output: Path, pack_on_disk: bool, processes: Processes) -> Iterator[Path | None]:
    """The folder for documents packed on disk, if they are to be; gone at the end."""
    if not pack_on_disk:
        yield None
        return
    folder = output / _PACKED
    if processes.is_first:
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    try:
        yield folder
    finally:
        if processes.is_first:
            # Some systems keep files that are still mapped; the next run removes them.
            shutil.rmtree(folder, ignore_errors=True)


def _prepare(
    corpus: Corpus,
    store: FeatureStore,
    settings: Settings,
    problems: Problems,
    say: Say,
    fixed: WordVectors | None,
    folder: Path | None,
    processes: Processes,
) -> TrainingData:
    """Prepare the data; on disk the first process does it for all."""
    if folder is None:
        return prepare(corpus, store, settings, problems, say, fixed)
    if processes.is_first:
        data = prepare(corpus, store, settings, problems, say, fixed, folder)
    processes.from_first(lambda: None)  # the others wait for it
    if not processes.is_first:
        _check_seen(folder)
        data = open_prepared(folder, store, fixed)
    return data


def _check_seen(path: Path) -> None:
    if not path.exists():
        raise SightlineError(
            f"{path} was written by the first process, but this one does not see it; name an "
            "output folder that all machines share."
        )


def _files(corpus: Corpus, backbone: TrainableBackbone, pool: DecodePool, say: Say) -> FileFeatures:
    """The image files of all documents that the run may use."""
    say("looking which images can be read")
    documents = (d for d in corpus.documents(None) if split_name(d.split) != "test")
    files = check_files(documents, backbone.open(), pool)
    say(f"{counted(len(files), 'image')} can be read, {len(files.failures):,} cannot")
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
    run: TrainingRun,
    corpus: Corpus,
    coverage: str,
    resume: bool,
    tensorboard: Path | None,
    say: Say,
) -> dict[str, Any]:
    output, processes = run.output, run.processes
    _check_alike(run)
    if processes.is_first:
        remove_leftovers(output)
    if processes.from_first(lambda: resume and (output / CHECKPOINT).exists()):
        _check_seen(output / CHECKPOINT)
        run.resume()
        say(f"resuming after epoch {run.state.epoch}")
    elif processes.is_first:
        start_folder(run, corpus, coverage, say)
    processes.start_alike(run.encoders.parameters())
    was_complete = run.state.epoch >= run.settings.epochs
    if was_complete:
        say(f"the run is complete: {counted(run.state.epoch, 'epoch')} done before")
    curves = tensorboard if processes.is_first else None
    with tensorboard_log(curves, run.state.epoch, log_records(output)) as add_to_curves:
        _epochs(run, add_to_curves, say)

    def finish() -> dict[str, Any]:
        best = best_record(output, run.state.best_epoch)
        if not (was_complete and is_finished(output)):
            finish_folder(run, corpus, best, say)
        return best

    best: dict[str, Any] = processes.from_first(finish)
    return best


def _check_alike(run: TrainingRun) -> None:
    """Refuse processes that would train on different things."""
    if run.processes.from_first(lambda: run.state.fingerprint) != run.state.fingerprint:
        raise SightlineError(
            f"Process {run.processes.rank} has other settings or reads another corpus than the "
            "first one; give all the same command and the same files."
        )


def _epochs(run: TrainingRun, add_to_curves: Callable[[dict[str, Any]], None], say: Say) -> None:
    """Train until the last epoch; the first process keeps the folder up to date."""
    settings = run.settings
    while run.state.epoch < settings.epochs:
        number = run.state.epoch + 1
        learning_rate = run.state.learning_rate
        wall, cpu = time.monotonic(), time.process_time()
        training_loss = run.train_epoch(f"epoch {number} of {settings.epochs}")
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        validation_loss = run.processes.from_first(run.validation_loss)
        if not math.isfinite(training_loss) or not math.isfinite(validation_loss):
            raise SightlineError(
                f"The loss of epoch {number} is not a finite number; the last good state is in "
                f"{run.output}. Try a lower --learning-rate."
            )
        best = run.finish_epoch(validation_loss)
        if not run.processes.is_first:
            continue
        model = run.model()
        memory = peak_memory_bytes()
        scores, skipped = score_packed(model, run.data.validation, run.data.store)
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
            "peak_memory_mb": None if memory is None else memory / 1e6,
            "processes": run.processes.count,
        }
        if best and number == 1:
            model.save_pretrained(run.output)
        elif best:
            model.save_weights(run.output)
        with (run.output / LOG).open("ab") as log:
            log.write(orjson.dumps(record) + b"\n")
        add_to_curves(record)
        # Last: a kill before this line repeats the epoch, with the same outcome.
        save_checkpoint(run.output, run.encoders, run.optimizer, run.state)
        say(_summary(record, settings.epochs))


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
