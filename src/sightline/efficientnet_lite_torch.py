"""EfficientNet-Lite in torch, to be tuned further; `efficientnet_lite` has the same without torch.

The batch norms are folded into the convolutions, as in the ONNX file that the weights come from:
what is trained is convolutions with a bias. That is a frozen batch norm. An image's features then
depend on that image alone, which is what makes bounded memory exact (`finetuning`), and a run
does not depend on how its images are grouped.
Modules have the wheel's names. Letters: B images, C channels, H and W height and width, F features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from sightline.efficientnet_lite import DIMENSION, VARIANTS, Block, blocks, same_padding


class EfficientNetLite(nn.Module):
    """Images to the 1280 pooled features, from a variant's folded weights."""

    dimension = DIMENSION

    def __init__(self, name: str, weights: Mapping[str, NDArray[Any]]) -> None:
        super().__init__()
        found = blocks(VARIANTS[name])
        # On the meta device nothing is allocated, and no random numbers are used up.
        with torch.device("meta"):
            self._conv_stem = _SameConv(3, found[0].inputs, 3, 2)
            self._blocks = nn.ModuleList(_Block(block) for block in found)
            self._conv_head = _SameConv(found[-1].outputs, DIMENSION, 1)
        state = {}
        for key, array in weights.items():
            # Channels last: 1.4 times as fast on a CPU (measured, forward and backward).
            layout = torch.channels_last if array.ndim == 4 else torch.contiguous_format
            own = torch.from_numpy(np.array(array, np.float32))
            state[key] = own.contiguous(memory_format=layout)
        self.load_state_dict(state, assign=True)
        self.requires_grad_(True)

    def forward(self, image_BCHW: Tensor) -> Tensor:
        """Features of preprocessed images: the mean over places of the last feature map."""
        value = image_BCHW.contiguous(memory_format=torch.channels_last)
        value = F.relu6(self._conv_stem(value), inplace=True)
        for block in self._blocks:
            value = block(value)
        feature_BF: Tensor = F.relu6(self._conv_head(value), inplace=True).mean((2, 3))
        return feature_BF

    @torch.inference_mode()
    def compute(self, image_BCHW: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same on arrays, to use the network rather than to train it."""
        writable = np.require(image_BCHW, requirements=["C", "W"])  # torch warns of any other
        feature_BF: NDArray[np.float32] = self(torch.from_numpy(writable)).numpy()
        return feature_BF

    def folded_weights(self) -> dict[str, NDArray[np.float32]]:
        """A copy of the weights as `efficientnet_lite.write_tuned` takes them."""
        return {
            name: np.array(tensor.detach().numpy(), np.float32, order="C")
            for name, tensor in self.state_dict().items()
        }


class _SameConv(nn.Conv2d):
    """A convolution with TensorFlow's "same" padding, whose odd pixel comes last."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups)

    def forward(self, value: Tensor) -> Tensor:
        start, end = same_padding(value.shape[-1], self.kernel_size[0], self.stride[0])
        if start != end:
            value, start = F.pad(value, (start, end, start, end)), 0
        return F.conv2d(value, self.weight, self.bias, self.stride, start, groups=self.groups)


class _Block(nn.Module):
    """An inverted residual block: expansion, depthwise convolution, projection."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        expanded = block.inputs * block.expansion
        self.residual = block.residual
        self._expand_conv = _SameConv(block.inputs, expanded, 1) if block.expansion > 1 else None
        self._depthwise_conv = _SameConv(expanded, expanded, block.kernel, block.stride, expanded)
        self._project_conv = _SameConv(expanded, block.outputs, 1)

    def forward(self, before: Tensor) -> Tensor:
        value = before
        if self._expand_conv is not None:
            value = F.relu6(self._expand_conv(value), inplace=True)
        value = F.relu6(self._depthwise_conv(value), inplace=True)
        after: Tensor = self._project_conv(value)
        return after + before if self.residual else after
