"""Backbones that learn along with a model: `train --finetune-images`.

All of them compute each image by itself. EfficientNet-Lite has its batch norms folded into the
convolutions; those of DenseNet-169 and NASNet keep the statistics of their published weights,
while their scales and shifts learn.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor

from sightline import efficientnet_lite
from sightline.backbones import (
    DEFAULT,
    Backbone,
    BackboneError,
    backbone_file,
    open_backbone,
)
from sightline.efficientnet_lite_torch import EfficientNetLite
from sightline.image_colours import Pixels
from sightline.image_files import SquarePreprocessing
from sightline.torch_backbones import (
    MODULES,
    Module,
    TorchNetwork,
    build_module,
    load_torch_backbone,
    published_weights,
)
from sightline.tuned_backbones import TunedBackbone


@dataclass(frozen=True, eq=False)
class TrainableBackbone:
    """A network whose weights learn, and what it takes."""

    name: str
    module: EfficientNetLite | Module
    preprocessing: SquarePreprocessing
    #: Hash of the weights that the tuning begins with.
    weights_sha256: str

    def inputs(self, pixels: Pixels) -> Tensor:
        """The module's input from images x crop x crop x RGB."""
        return torch.from_numpy(np.stack([self.preprocessing.normalise(one) for one in pixels]))

    def tuned(self) -> TunedBackbone:
        """The weights as they stand, as a model folder keeps them."""
        if isinstance(self.module, EfficientNetLite):
            data = efficientnet_lite.write_tuned(self.name, self.module.folded_weights())
        else:
            weights = published_weights(self.module)
            data = save({name: weights[name] for name in sorted(weights)})
        return TunedBackbone(self.name, data)

    def open(self) -> Backbone:
        """The network as it stands, as linking will run it."""
        return self.tuned().open()


def load_trainable_backbone(name: str = DEFAULT, weights: Path | None = None) -> TrainableBackbone:
    """A backbone to tune; DenseNet-169 and NASNet need a local file of `weights`."""
    if name in efficientnet_lite.VARIANTS:
        file, data = backbone_file(name, weights)
        try:
            folded = efficientnet_lite.folded_weights(name, data)
        except ValueError as error:
            raise BackboneError(f"{file} is not the ONNX file of {name} ({error}).") from None
        module: EfficientNetLite | Module = EfficientNetLite(name, folded)
        preprocessing = open_backbone(name, file, data).preprocessing
        digest = hashlib.sha256(data).hexdigest()
    elif name in MODULES:
        if weights is None:
            raise BackboneError(f"{name} comes without weights; name a file of them.")
        backbone = load_torch_backbone(name, weights)
        assert isinstance(backbone.network, TorchNetwork)
        whole, preprocessing = backbone.network.module, backbone.preprocessing
        digest = backbone.weights_sha256
        # The layer of class scores would not learn.
        kept = {k: v for k, v in published_weights(whole).items() if not k.startswith(whole.head)}
        module = build_module(name, kept, str(weights))
    else:
        known = ", ".join([*efficientnet_lite.VARIANTS, *MODULES])
        raise BackboneError(f"There is no backbone {name!r} that can be tuned; known are {known}.")
    module.requires_grad_(True)
    return TrainableBackbone(name, module, SquarePreprocessing.like(preprocessing), digest)
