"""Training: documents in, a model folder out; the paper's Section 3.1 and its protocol.

The folder fills as the run goes: `config.json` and `vocabulary.json` at the start,
`model.safetensors` at each epoch with a lower validation loss (both encoders together),
`checkpoint.safetensors` and a line of `log.jsonl` at every epoch.
"""

from __future__ import annotations

import hashlib
import math
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch
from torch import Generator, Tensor

from sightline import __version__
from sightline.batches import (
    Batch,
    PackedDocuments,
    pack_documents,
    training_batches,
    validation_batches,
)
from sightline.checkpoints import FILE as CHECKPOINT
from sightline.checkpoints import RunState, load_checkpoint, save_checkpoint
from sightline.corpus import Corpus
from sightline.documents import Document, split_name
from sightline.encoders import Encoders
from sightline.evaluation import mean_scores, score_packed
from sightline.features import FeatureStore
from sightline.files import write_atomically
from sightline.model import LinkModel
from sightline.objective import constant_loss, document_similarities, loss_of
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress, duration
from sightline.sentences import tokenize
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary
from sightline.word_vectors import embedding_matrix, read_word_vectors

LOG = "log.jsonl"
#: Held out for validation where the corpus names no split of its own: one document in ten.
_HELD_OUT = 10

Say = Callable[[str], None]


def _silent(words: str) -> None:
    """Nobody listens: the default of a run that is called from Python."""


@dataclass(frozen=True, slots=True)
class TrainingData:
    """All that a run learns from, as arrays."""

    vocabulary: Vocabulary
    store: FeatureStore
    training: PackedDocuments
    validation: PackedDocuments

    def fingerprint(self, settings: Settings) -> str:
        """Names the run: its settings but for the number of epochs, and its data."""
        record = settings.to_json()
        del record["epochs"]
        digest = hashlib.sha256(orjson.dumps(record))
        for packed in (self.training, self.validation):
            for array in (packed.token_ids, packed.token_start, packed.sentence_start,
                          packed.image_rows, packed.image_start):  # fmt: skip
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def prepare(
    corpus: Corpus, store: FeatureStore, settings: Settings, problems: Problems, say: Say
) -> TrainingData:
    """Read the training and validation documents, count the words, pack both."""
    training, validation = _splits(corpus, say)
    # Captions come back in many documents and are needed twice; each is taken apart once.
    tokens = cache(tokenize)
    vocabulary = Vocabulary.from_sentences(
        (tokens(sentence) for document in training for sentence in document.sentences),
        settings.minimum_count,
    )
    limit, where = settings.token_limit, str(corpus.path)
    packed = [
        pack_documents(documents, vocabulary, store, limit, problems, where, tokens)
        for documents in (training, validation)
    ]
    for name, part in zip(("training", "validation"), packed, strict=True):
        if len(part) <= settings.negative_documents:
            raise SightlineError(
                f"{corpus.path} has {len(part)} usable {name} documents; "
                f"--negative-documents {settings.negative_documents} needs at least "
                f"{settings.negative_documents + 1}."
            )
    sentences = sum(len(part.token_start) - 1 for part in packed)
    cut = sum(part.cut_sentences for part in packed)
    say(
        f"{len(packed[0]):,} training and {len(packed[1]):,} validation documents, "
        f"{len(vocabulary) - 1:,} words; {cut:,} of {sentences:,} sentences were cut to "
        f"{settings.token_limit} tokens"
    )
    return TrainingData(vocabulary, store, packed[0], packed[1])


def _splits(corpus: Corpus, say: Say) -> tuple[list[Document], list[Document]]:
    """Training and validation documents; without a validation split some are held out."""
    by_split: dict[str, list[Document]] = {"train": [], "val": [], "": []}
    with Progress(f"reading {corpus.path}", None, "documents") as progress:
        for document in corpus.documents(None):
            split = split_name(document.split) or ""
            if split in by_split:
                by_split[split].append(document)
            progress.advance()
    training = by_split["train"] or by_split[""]
    if by_split["val"]:
        return training, by_split["val"]
    held_out = training[::_HELD_OUT]
    say(
        f"{corpus.path} has no validation split: every {_HELD_OUT}th training document "
        f"({len(held_out):,}) is held out for validation"
    )
    return [d for place, d in enumerate(training) if place % _HELD_OUT], held_out


class TrainingRun:
    """One run: the encoders, the optimiser and where they stand."""

    def __init__(
        self, data: TrainingData, embedding: np.ndarray, settings: Settings, output: Path
    ) -> None:
        self.data, self.settings, self.output = data, settings, output
        self.encoders = Encoders(embedding, data.store.dimension, settings, settings.seed)
        self.optimizer = torch.optim.Adam(
            self.encoders.parameters(), lr=settings.learning_rate, fused=True
        )
        self.state = RunState(
            epoch=0,
            learning_rate=settings.learning_rate,
            best_loss=math.inf,
            best_epoch=0,
            waited=0,
            fingerprint=data.fingerprint(settings),
        )

    def resume(self) -> None:
        """Go back to the last checkpoint and drop what the log holds beyond it."""
        self.state = load_checkpoint(
            self.output, self.encoders, self.optimizer, self.state.fingerprint
        )
        self._set_learning_rate(self.state.learning_rate)
        log = self.output / LOG
        lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
        kept = [line for line in lines if _epoch_of(line) <= self.state.epoch]
        write_atomically(log, b"".join(kept))

    def batch_loss(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        """The loss of each document of a batch."""
        features = torch.from_numpy(self.data.store.vectors(batch.image_rows))
        similarities = document_similarities(
            self.encoders, batch, features, self.settings, generator
        )
        return loss_of(similarities, self.settings)

    def step(self, batch: Batch, generator: Generator) -> float:
        """Learn from one batch; returns its mean loss."""
        loss = self.batch_loss(batch, generator).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return float(loss.detach())

    def train_epoch(self, title: str) -> float:
        """One pass over the training documents; returns the mean loss."""
        settings, training = self.settings, self.data.training
        # An epoch's randomness depends on seed and epoch alone, so that a resumed run repeats it.
        seeds = np.random.SeedSequence([settings.seed, self.state.epoch + 1])
        shuffle_rng, pick_rng = (np.random.default_rng(seed) for seed in seeds.spawn(2))
        generator = Generator().manual_seed(int(seeds.generate_state(1, np.uint64)[0] >> 1))
        batch_documents = settings.negative_documents + 1
        total, count = 0.0, 0
        with Progress(title, len(training), "documents") as progress:
            for documents in training_batches(len(training), batch_documents, shuffle_rng):
                batch = training.batch(documents, self._pick_one(pick_rng))
                total += self.step(batch, generator) * len(documents)
                count += len(documents)
                progress.advance(len(documents), f"loss {total / count:.4f}")
        return total / count

    def validation_loss(self) -> float:
        """The mean loss over the validation documents, without dropout."""
        validation = self.data.validation
        # The same draw at every epoch, so that NoStruct's epochs can be compared.
        pick_rng = np.random.default_rng(self.settings.seed)
        total = 0.0
        with torch.no_grad():
            for documents, counted in validation_batches(
                len(validation), self.settings.negative_documents + 1
            ):
                batch = validation.batch(documents, self._pick_one(pick_rng))
                total += float(self.batch_loss(batch)[:counted].sum())
        return total / len(validation)

    def _pick_one(self, rng: np.random.Generator) -> np.random.Generator | None:
        return rng if self.settings.similarity == "NoStruct" else None

    def finish_epoch(self, validation_loss: float) -> bool:
        """Count the epoch, lower the learning rate on a plateau; says whether it was the best."""
        state, settings = self.state, self.settings
        state.epoch += 1
        better = validation_loss < state.best_loss
        if better:
            state.best_loss, state.best_epoch, state.waited = validation_loss, state.epoch, 0
        # Before the loss falls below that of constant predictions a plateau only means that
        # learning has not begun (the original code waits likewise).
        elif state.best_loss < constant_loss(settings):
            state.waited += 1
            if state.waited > settings.plateau_patience:
                lower = state.learning_rate / settings.plateau_factor
                self._set_learning_rate(max(lower, settings.minimum_learning_rate))
                state.waited = 0
        return better

    def _set_learning_rate(self, learning_rate: float) -> None:
        self.state.learning_rate = learning_rate
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def model(self) -> LinkModel:
        """The encoders as they stand, as a model that shares their weights."""
        return LinkModel(
            self.settings,
            self.data.vocabulary,
            {name: weight.numpy() for name, weight in self.encoders.state_dict().items()},
            self.data.store.backbone,
        )


def train(
    corpus: Corpus,
    output: Path,
    settings: Settings,
    store: FeatureStore,
    word_vectors: Path | None = None,
    *,
    resume: bool = False,
    problems: Problems | None = None,
    say: Say = _silent,
) -> dict[str, Any]:
    """Train a model into the folder `output`; returns the best epoch's record of the log."""
    _check_output(output, resume)
    problems = problems or corpus.problems
    data = prepare(corpus, store, settings, problems, say)
    words = data.vocabulary.words
    embedding, coverage = embedding_matrix(
        data.vocabulary,
        read_word_vectors(word_vectors, words, problems) if word_vectors else None,
        settings.word_dimension,
        rng=np.random.default_rng(settings.seed),
    )
    say(f"word vectors: {coverage}")
    run = TrainingRun(data, embedding, settings, output)
    if resume and (output / CHECKPOINT).exists():
        run.resume()
        say(f"resuming after epoch {run.state.epoch}")
    else:
        _start_folder(run, corpus, str(coverage))
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


def _start_folder(run: TrainingRun, corpus: Corpus, coverage: str) -> None:
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
    LinkModel(run.settings, model.vocabulary, model.weights, model.backbone, notes).save_pretrained(
        run.output
    )


def _versions() -> dict[str, str]:
    return {
        "sightline": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def _epoch_of(line: bytes) -> int:
    try:
        epoch = orjson.loads(line).get("epoch", 0)
    except orjson.JSONDecodeError:  # a line that a kill cut short
        return 1 << 60
    return int(epoch)
