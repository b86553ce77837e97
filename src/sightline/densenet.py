"""DenseNet-169 (Huang et al. 2017), the image network of the paper's experiments, in torch.

Modules are named so that the state dictionary has torchvision's published parameter names.
Letters: B images, C channels, H and W height and width, F features.
"""

from __future__ import annotations

import re
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# The sizes of DenseNet-169: table 1 of the DenseNet paper, k = 32.
_GROWTH = 32
_BLOCKS = (6, 12, 32, 32)
_FIRST_CHANNELS = 64
# A bottleneck gives 4 k channels (section 3 of the DenseNet paper, "Bottleneck layers").
_BOTTLENECK = 4 * _GROWTH

# The files that torchvision publishes were written when a module's name could hold a point.
_OLD_NAME = re.compile(r"(\.denselayer\d+\.(?:norm|conv))\.([12]\.)")


class DenseNet169(nn.Module):
    """Images to the 1664 features of the pre-classification layer."""

    dimension = 1664
    #: Names of the parameters that features do not need start so.
    head = "classifier."

    def __init__(self, classifier: bool = True) -> None:
        super().__init__()
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(3, _FIRST_CHANNELS, 7, stride=2, padding=3, bias=False),
            norm0=nn.BatchNorm2d(_FIRST_CHANNELS),
            relu0=nn.ReLU(),
            pool0=nn.MaxPool2d(3, stride=2, padding=1),
        )
        channels = _FIRST_CHANNELS
        for number, size in enumerate(_BLOCKS, start=1):
            layers[f"denseblock{number}"] = _dense_block(channels, size)
            channels += size * _GROWTH
            if number < len(_BLOCKS):
                layers[f"transition{number}"] = _transition(channels)
                channels //= 2
        layers["norm5"] = nn.BatchNorm2d(channels)
        self.features = nn.Sequential(layers)
        self.classifier = nn.Linear(channels, 1000) if classifier else None

    def forward(self, image_BCHW: Tensor) -> Tensor:
        """Features of preprocessed images: the mean over places, after the last norm and ReLU."""
        feature_BF: Tensor = F.relu(self.features(image_BCHW)).mean((2, 3))
        return feature_BF

    @staticmethod
    def published(state_name: str) -> tuple[str, tuple[int, ...] | None]:
        """Name of a parameter in weight files, and how to transpose it there: torchvision's."""
        return state_name, None

    @staticmethod
    def plain_name(name: str) -> str:
        """The present name of a parameter that a weight file may call by its old one."""
        return _OLD_NAME.sub(r"\1\2", name)


class _DenseLayer(nn.Module):
    """Appends `_GROWTH` channels to what all layers before it in the block gave."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, _BOTTLENECK, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(_BOTTLENECK)
        self.conv2 = nn.Conv2d(_BOTTLENECK, _GROWTH, 3, padding=1, bias=False)

    def forward(self, before_BCHW: Tensor) -> Tensor:
        bottleneck_BCHW = self.conv1(F.relu(self.norm1(before_BCHW)))
        new_BCHW = self.conv2(F.relu(self.norm2(bottleneck_BCHW)))
        return torch.cat([before_BCHW, new_BCHW], dim=1)


def _dense_block(channels: int, size: int) -> nn.Sequential:
    layers = (
        (f"denselayer{number + 1}", _DenseLayer(channels + number * _GROWTH))
        for number in range(size)
    )
    return nn.Sequential(OrderedDict(layers))


def _transition(channels: int) -> nn.Sequential:
    """Halves channels, height and width (compression 0.5, the "C" of DenseNet-BC)."""
    return nn.Sequential(
        OrderedDict(
            norm=nn.BatchNorm2d(channels),
            relu=nn.ReLU(),
            conv=nn.Conv2d(channels, channels // 2, 1, bias=False),
            pool=nn.AvgPool2d(2),
        )
    )
