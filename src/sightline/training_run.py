"""One training run: the encoders, the optimiser, a step, an epoch, the learning rate.

The paper's Section 3.1 and its protocol. Nothing is written here but on `resume`; `training`
keeps the model folder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch
from torch import Generator, Tensor, nn

from sightline.adam import Adam
from sightline.backbones import DEFAULT, class_names, load_backbone
from sightline.batches import (
    Batch,
    Cut,
    IntArray,
    drop_words,
    training_batches,
    validation_batches,
)
from sightline.checkpoints import RunState, load_checkpoint
from sightline.class_words import WORDS, class_weights, join_class_words
from sightline.distributed import ALONE, Processes
from sightline.encoders import Encoders
from sightline.features import FeatureStore
from sightline.files import write_atomically
from sightline.model import LinkModel
from sightline.objective import (
    constant_loss,
    document_similarities,
    gathered_similarities,
    loss_of,
)
from sightline.progress import Progress
from sightline.settings import Settings
from sightline.training_data import TrainingData

LOG = "log.jsonl"
# Key of a parameter group: its learning rate as a multiple of the run's.
_RELATIVE = "relative_learning_rate"


class TrainingRun:
    """One run: the encoders, the optimiser and where they stand."""

    def __init__(
        self,
        data: TrainingData,
        embedding: np.ndarray,
        settings: Settings,
        output: Path,
        backbone: nn.Module | None = None,
        processes: Processes = ALONE,
        device: str = "cpu",
    ) -> None:
        self.data, self.settings, self.output = data, settings, output
        self.processes, self.device = processes, device
        self.classes = _classes(data, embedding) if settings.class_words else {}
        self._inputs = _image_inputs(data, self.classes) if settings.class_words else None
        dimension = data.store.dimension + settings.word_dimension * settings.class_words
        self.encoders = Encoders(
            embedding, dimension, settings, settings.seed, backbone, data.fixed_words
        ).to(device)
        self.optimizer = Adam(_parameter_groups(self.encoders, settings))
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
        if self.processes.is_first:
            write_atomically(log, b"".join(kept))

    def batch_loss(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        """The loss of each document of a batch."""
        features = self._features_of(batch.image_rows)
        similarities = document_similarities(
            self.encoders, batch, features, self.settings, generator
        )
        return loss_of(similarities, self.settings)

    def _features_of(self, rows: IntArray) -> Tensor:
        vectors = self.data.store.vectors(rows) if self._inputs is None else self._inputs[rows]
        return torch.from_numpy(vectors.astype(np.float32, copy=False)).to(self.device)

    def backward(self, batch: Batch, generator: Generator | None) -> float:
        """Gradients of a batch's mean loss for all parameters; returns that loss."""
        if self.processes.count > 1:
            return self._backward_together(batch, generator)
        loss = self.batch_loss(batch, generator).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _backward_together(self, batch: Batch, generator: Generator | None) -> float:
        similarities = gathered_similarities(
            self.encoders, batch, self._features_of, self.settings, generator, self.processes
        )
        loss = loss_of(similarities, self.settings).mean()
        if loss.requires_grad:  # not where this process has no documents
            loss.backward()  # type: ignore[no-untyped-call]
        self.processes.sum_gradients(self.encoders.parameters())
        return float(loss.detach())

    def step(self, batch: Batch, generator: Generator) -> float:
        """Learn from one batch; returns its mean loss."""
        self.optimizer.zero_grad()
        loss = self.backward(batch, generator)
        self.optimizer.step()
        return loss

    def batches(self) -> Iterator[Batch]:
        """The batches of the next epoch."""
        settings, training = self.settings, self.data.training
        seeds = self._epoch_seeds().spawn(4)
        shuffle_rng, pick_rng, cut_rng, drop_rng = (np.random.default_rng(seed) for seed in seeds)
        most = settings.finetune_cut if settings.finetune_images else settings.document_cut
        cut = Cut(most, cut_rng) if most else None
        batch_documents = settings.negative_documents + 1
        for documents in training_batches(training.group, batch_documents, shuffle_rng):
            batch = training.batch(documents, self._pick_one(pick_rng), cut)
            if settings.word_dropout:
                kept = drop_words(batch.sentences, settings.word_dropout, drop_rng)
                batch = replace(batch, sentences=kept)
            yield batch

    def _epoch_seeds(self) -> np.random.SeedSequence:
        # An epoch's randomness depends on seed and epoch alone, so that a resumed run repeats it.
        return np.random.SeedSequence([self.settings.seed, self.state.epoch + 1])

    def train_epoch(self, title: str) -> float:
        """One pass over the training documents; returns the mean loss."""
        state = self._epoch_seeds().generate_state(1, np.uint64)
        generator = Generator().manual_seed(int(state[0] >> 1))
        total, count = 0.0, 0
        with Progress(title, len(self.data.training), "documents") as progress:
            for step, batch in enumerate(self.batches()):
                if self.settings.schedule == "cosine":
                    self._set_learning_rate(self._cosine_rate(step))
                documents = len(batch.sentences_D)
                total += self.step(batch, generator) * documents
                count += documents
                progress.advance(documents, f"loss {total / count:.4f}")
        return total / count

    def _cosine_rate(self, step: int) -> float:
        """The learning rate of a step of the present epoch: it rises, then falls to the end."""
        settings = self.settings
        counts = np.bincount(self.data.training.group)
        steps = int((counts // (settings.negative_documents + 1)).sum())
        done = self.state.epoch * steps + step
        rise = min(1.0, (done + 1) / (settings.warm_up_steps + 1))
        fall = 0.5 * (1 + math.cos(math.pi * done / (settings.epochs * steps)))
        # A fiftieth remains at the end, so that the last steps count too.
        return settings.learning_rate * rise * (0.02 + 0.98 * fall)

    def validation_loss(self) -> float:
        """The mean loss over the validation documents, without dropout."""
        validation = self.data.validation
        # The same draw at every epoch, so that NoStruct's epochs can be compared.
        pick_rng = np.random.default_rng(self.settings.seed)
        total = 0.0
        with torch.no_grad():
            for documents, counted in validation_batches(
                validation.group, self.settings.negative_documents + 1
            ):
                batch = validation.batch(documents, self._pick_one(pick_rng))
                total += float(self.batch_loss(batch)[:counted].sum())
        return total / len(validation)

    def validation_features(self, _: LinkModel) -> FeatureStore:
        """The features of the validation documents' images, as a model needs them."""
        return self.data.store

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
        elif settings.schedule == "plateau" and state.best_loss < constant_loss(settings):
            state.waited += 1
            if state.waited > settings.plateau_patience:
                lower = state.learning_rate / settings.plateau_factor
                self._set_learning_rate(max(lower, settings.minimum_learning_rate))
                state.waited = 0
        return better

    def _set_learning_rate(self, learning_rate: float) -> None:
        self.state.learning_rate = learning_rate
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate * group.get(_RELATIVE, 1)

    def model(self) -> LinkModel:
        """The encoders as they stand, as a model that shares their weights."""
        weights = {
            name: weight.cpu().numpy()
            for name, weight in self.encoders.state_dict().items()
            if not name.startswith("backbone.")
        }
        weights |= self.classes
        weights["sentence.embedding"] = self.encoders.sentence.whole_embedding().cpu().numpy()
        return LinkModel(self.settings, self.data.vocabulary, weights, self.data.store.backbone)


def _classes(data: TrainingData, embedding: np.ndarray) -> dict[str, np.ndarray]:
    backbone = load_backbone(data.store.backbone or DEFAULT)
    return class_weights(backbone, class_names(), data.vocabulary, embedding)


def _image_inputs(data: TrainingData, classes: dict[str, np.ndarray]) -> np.ndarray:
    """The image encoder's inputs, a row for each of the store; of images in no document, zeros.

    Made once: the network's last layer would otherwise cost as much as the rest of a step.
    """
    word_dimension = classes[WORDS].shape[1]
    inputs = np.zeros((len(data.store), data.store.dimension + word_dimension), np.float16)
    used = np.unique(np.concatenate([data.training.image_rows, data.validation.image_rows]))
    for start in range(0, len(used), 4096):
        rows = used[start : start + 4096]
        inputs[rows] = join_class_words(classes, data.store.vectors(rows))
    return inputs


def _parameter_groups(encoders: Encoders, settings: Settings) -> list[dict[str, Any]]:
    """The encoders' parameters, and the backbone's with a learning rate of their own."""
    tuned = [] if encoders.backbone is None else list(encoders.backbone.parameters())
    of_backbone = {id(parameter) for parameter in tuned}
    own = [parameter for parameter in encoders.parameters() if id(parameter) not in of_backbone]
    groups: list[dict[str, Any]] = [{"params": own, "lr": settings.learning_rate}]
    if tuned:
        relative = settings.image_learning_rate / settings.learning_rate
        rate = settings.learning_rate * relative
        groups.append({"params": tuned, "lr": rate, _RELATIVE: relative})
    return groups


def _epoch_of(line: bytes) -> int:
    try:
        epoch = orjson.loads(line).get("epoch", 0)
    except orjson.JSONDecodeError:  # a line that a kill cut short
        return 1 << 60
    return int(epoch)
