"""A backbone that was tuned together with a model, as the model folder keeps it.

EfficientNet-Lite is kept as ONNX, which linking runs without torch; DenseNet-169 and NASNet as
safetensors, which need torch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sightline import efficientnet_lite
from sightline.backbones import Backbone, BackboneError, open_backbone
from sightline.image_files import SquarePreprocessing
from sightline.problems import MissingExtraError


@dataclass(frozen=True, eq=False)
class TunedBackbone:
    """The bytes of a tuned network."""

    #: Name of the backbone that the tuning began with.
    name: str
    data: bytes

    @cached_property
    def sha256(self) -> str:
        """Names these very weights."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def file(self) -> str:
        """Its name in a model folder; other weights have another name.

        So a folder is whole at every moment: the new file stands beside the old one until the
        model's weights, which are replaced in one step, name it.
        """
        suffix = "onnx" if self.name in efficientnet_lite.VARIANTS else "safetensors"
        return f"backbone-{self.sha256[:12]}.{suffix}"

    def open(self) -> Backbone:
        """The network, ready to run, with the preprocessing that evaluation uses."""
        if self.name in efficientnet_lite.VARIANTS:
            self._check_graph()
            backbone = open_backbone(self.name, self.file, self.data)
            self._check_sizes(backbone)
        else:
            try:
                from sightline.torch_backbones import open_torch_backbone
            except ModuleNotFoundError:
                raise MissingExtraError(f"A model tuned from {self.name}", "train") from None
            backbone = open_torch_backbone(self.name, self.file, self.data)
        return replace(backbone, preprocessing=SquarePreprocessing.like(backbone.preprocessing))

    def _check_sizes(self, backbone: Backbone) -> None:
        """Refuse weights that do not fit each other, which shows when they are used."""
        side = backbone.preprocessing.crop
        try:
            backbone.features(np.zeros((1, 3, side, side), np.float32))
        except Exception as error:  # ONNX Runtime has no class of its own for all its errors
            reason = str(error).strip().partition("\n")[0][:200]
            raise BackboneError(f"{self.file} cannot be run ({reason}).") from None

    def _check_graph(self) -> None:
        """Refuse an ONNX file that is not what we write of the weights in it.

        ONNX Runtime runs any graph, however long it takes; only our own, with other weights, is one
        that a model folder can need.
        """
        try:
            weights = efficientnet_lite.folded_weights(self.name, self.data)
            ours = efficientnet_lite.write_tuned(self.name, weights) == self.data
        except ValueError as error:
            raise BackboneError(f"{self.file} is damaged: {error}.") from None
        if not ours:
            raise BackboneError(
                f"{self.file} is not a network of {self.name} as Sightline writes it; train the "
                "model anew, or ask whoever made the folder."
            )
