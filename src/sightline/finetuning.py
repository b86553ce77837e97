"""A run in which the image network learns too: the paper's "WIKI Fine-tuning Details".

Memory is bounded by gradient caching, which is exact because each image's features depend on that
image alone (`trainable_backbones`): all images of a batch go through the network a few at a time
without a trace, the loss says how it changes with their features, and then they go through it
once more, a few at a time, to carry that back to the weights. The price is one more forward pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

from sightline.backbones import Backbone
from sightline.batches import Batch
from sightline.decode_pool import DecodePool
from sightline.features import FeatureStore
from sightline.image_batches import image_batches
from sightline.image_files import FileFeatures, refresh_features
from sightline.model import LinkModel
from sightline.objective import document_similarities, loss_of
from sightline.settings import Settings
from sightline.trainable_backbones import TrainableBackbone
from sightline.training_data import TrainingData
from sightline.training_run import TrainingRun


class FineTuningRun(TrainingRun):
    """A run on image files; `data.store` is `files`, whose validation rows follow the backbone."""

    def __init__(
        self,
        data: TrainingData,
        embedding: np.ndarray,
        settings: Settings,
        output: Path,
        files: FileFeatures,
        backbone: TrainableBackbone,
        pool: DecodePool | None = None,
    ) -> None:
        super().__init__(data, embedding, settings, output, backbone.module)
        self.files, self.backbone, self.pool = files, backbone, pool
        names = "\n".join([self.state.fingerprint, backbone.weights_sha256, *files.id2row])
        self.state.fingerprint = hashlib.sha256(names.encode()).hexdigest()

    def batches(self) -> Iterator[Batch]:
        """The batches of the next epoch with the changed pixels of their images."""
        # Like all randomness of an epoch, from seed and epoch alone; 1 sets it apart.
        rng = np.random.default_rng([self.settings.seed, self.state.epoch + 1, 1])
        files, preprocessing = self.files.files, self.backbone.preprocessing
        return image_batches(super().batches(), files, preprocessing, rng, self.pool)

    def backward(self, batch: Batch, generator: Generator | None) -> float:
        """Gradients of a batch's mean loss for all parameters, by gradient caching."""
        assert batch.pixels is not None
        few = self.settings.finetune_images_at_once
        parts = [slice(start, start + few) for start in range(0, len(batch.pixels), few)]
        with torch.no_grad():
            features = torch.cat([self._features(batch.pixels[part]) for part in parts])
        features.requires_grad_(True)
        similarities = document_similarities(
            self.encoders, batch, features, self.settings, generator
        )
        loss = loss_of(similarities, self.settings).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        assert features.grad is not None
        for part in parts:
            self._features(batch.pixels[part]).backward(features.grad[part])  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _features(self, pixels: np.ndarray) -> Tensor:
        features: Tensor = self.backbone.module(self.backbone.inputs(pixels))
        return features

    def validation_loss(self) -> float:
        """The mean loss over the validation documents, with centre crops and no dropout."""
        self._refresh(self.backbone.open())
        return super().validation_loss()

    def validation_features(self, model: LinkModel) -> FeatureStore:
        """Those that the model's own backbone gives: its best epoch need not be the last."""
        self._refresh(model.image_backbone)
        return self.files

    def _refresh(self, backbone: Backbone) -> None:
        rows = np.unique(self.data.validation.image_rows)
        refresh_features(self.files, rows, backbone, self.pool)

    def model(self) -> LinkModel:
        """The encoders and the backbone as they stand."""
        return replace(super().model(), tuned=self.backbone.tuned())
