"""NASNet-A mobile (Zoph et al. 2018), "NASNetSmall" of the paper's fine-tuning, in torch.

The network is Keras's, 4 @ 1056, down to its padding: the published weights are Keras's. Modules
are named so that the names of Keras's layers follow from the state dictionary by a rule.
Letters: B images, C channels, H and W height and width, F features.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# 4 @ 1056: four normal cells a stage; the last cells give 1056 = 6 x 4 x 44 channels.
_NORMAL_CELLS = 4
_FILTERS = 44
_STEM_CHANNELS = 32

# Modules that only hold others: Keras's layer names do not know them.
_CONTAINERS = {"cells", "adjust"}
# Keras's names of a batch norm's arrays.
_NORM_ARRAYS = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}
# Axes of Keras's kernels (height, width, then in and out, or channels and 1) in torch's order.
_KERNEL_AXES = {"plain": (3, 2, 0, 1), "pointwise": (3, 2, 0, 1), "depthwise": (2, 3, 0, 1)}


class NASNetMobile(nn.Module):
    """Images to the 1056 features of the pre-classification layer."""

    dimension = 24 * _FILTERS
    #: Names of the parameters that features do not need start so.
    head = "predictions/"

    def __init__(self, classifier: bool = True) -> None:
        super().__init__()
        self.stem_conv1 = nn.Conv2d(3, _STEM_CHANNELS, 3, stride=2, bias=False)
        self.stem_bn1 = _batch_norm(_STEM_CHANNELS)
        self.cells = nn.ModuleDict(_cells())
        self.predictions = nn.Linear(self.dimension, 1000) if classifier else None

    @property
    def classifier(self) -> nn.Linear | None:
        """The layer from features to ImageNet's classes, called as in every other network."""
        return self.predictions

    def forward(self, image_BCHW: Tensor) -> Tensor:
        """Features of preprocessed images: the mean over places, after the last ReLU."""
        now_BCHW = self.stem_bn1(self.stem_conv1(image_BCHW))
        before_BCHW = now_BCHW
        for cell in self.cells.values():
            now_BCHW, before_BCHW = cell(now_BCHW, before_BCHW), now_BCHW
        return F.relu(now_BCHW).mean((2, 3))

    @staticmethod
    def published(state_name: str) -> tuple[str, tuple[int, ...] | None]:
        """Keras's name `layer/array` of a parameter, and its axes there that torch wants in turn.

        The layer's name is the modules' names from the inside out.
        """
        *modules, array = state_name.split(".")
        kind = modules.pop() if modules[-1] in _KERNEL_AXES else "plain"
        layer = "_".join(name for name in reversed(modules) if name not in _CONTAINERS)
        if "_bn" in layer:
            return f"{layer}/{_NORM_ARRAYS[array]}", None
        if layer == "predictions":
            return (f"{layer}/kernel", (1, 0)) if array == "weight" else (f"{layer}/bias", None)
        return f"{layer}/{'' if kind == 'plain' else f'{kind}_'}kernel", _KERNEL_AXES[kind]

    @staticmethod
    def plain_name(name: str) -> str:
        """`layer/array`, which is unique, of the `scopes/layer/array:0` that Keras writes."""
        return "/".join(name.removesuffix(":0").split("/")[-2:])


def _cells() -> dict[str, nn.Module]:
    """All cells by Keras's block id, in order; each sees the two before it."""
    cells: dict[str, nn.Module] = {}
    # Channels of the last output and of the one before it, and whether that one is twice as large.
    now, before, halved = _STEM_CHANNELS, _STEM_CHANNELS, False

    def add(name: str, kind: type[_NormalCell] | type[_ReductionCell], filters: int) -> None:
        nonlocal now, before, halved
        adjust = _adjust(before, filters, halved) if cells else None
        cells[name] = kind(now, before if adjust is None else filters, filters, adjust)
        now, before, halved = kind.outputs * filters, now, kind is _ReductionCell

    add("stem_1", _ReductionCell, _FILTERS // 4)
    add("stem_2", _ReductionCell, _FILTERS // 2)
    for stage, filters in enumerate((_FILTERS, 2 * _FILTERS, 4 * _FILTERS)):
        first = stage * _NORMAL_CELLS
        if stage:
            add(f"reduce_{first}", _ReductionCell, filters)
            first += 1  # Keras leaves out a number at the first reduction only: 0-3, 5-8, 9-12.
        for number in range(first, first + _NORMAL_CELLS):
            add(str(number), _NormalCell, filters)
    return cells


class _SeparableConv(nn.Module):
    """A convolution of each channel by itself, then a mixture of the channels at each place."""

    def __init__(self, channels: int, filters: int, size: int, stride: int) -> None:
        super().__init__()
        self.size, self.stride = size, stride
        self.depthwise = nn.Conv2d(
            channels,
            channels,
            size,
            stride=stride,
            padding=size // 2 if stride == 1 else 0,
            groups=channels,
            bias=False,
        )
        self.pointwise = _conv1x1(channels, filters)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        padded_BCHW = x_BCHW if self.stride == 1 else _pad_for_stride_2(x_BCHW, self.size)
        mixed_BCHW: Tensor = self.pointwise(self.depthwise(padded_BCHW))
        return mixed_BCHW


class _SeparableBlock(nn.Module):
    """ReLU, separable convolution and batch norm, twice; the stride belongs to the first."""

    def __init__(self, channels: int, filters: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self.separable_conv_1 = _SeparableConv(channels, filters, size, stride)
        self.separable_conv_1_bn = _batch_norm(filters)
        self.separable_conv_2 = _SeparableConv(filters, filters, size, 1)
        self.separable_conv_2_bn = _batch_norm(filters)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        once_BCHW = self.separable_conv_1_bn(self.separable_conv_1(F.relu(x_BCHW)))
        twice_BCHW: Tensor = self.separable_conv_2_bn(self.separable_conv_2(F.relu(once_BCHW)))
        return twice_BCHW


class _Projection(nn.Module):
    """Brings the output before the last one to a cell's number of channels."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.adjust_conv_projection = _conv1x1(channels, filters)
        self.adjust_bn = _batch_norm(filters)

    def forward(self, before_BCHW: Tensor) -> Tensor:
        adjusted_BCHW: Tensor = self.adjust_bn(self.adjust_conv_projection(F.relu(before_BCHW)))
        return adjusted_BCHW


class _Halving(nn.Module):
    """Brings the output before the last one to half its height and width as well.

    One half of the channels sees the places with even coordinates, the other those with odd ones.
    """

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.adjust_conv_1 = _conv1x1(channels, filters // 2)
        self.adjust_conv_2 = _conv1x1(channels, filters // 2)
        self.adjust_bn = _batch_norm(filters)

    def forward(self, before_BCHW: Tensor) -> Tensor:
        active_BCHW = F.relu(before_BCHW)
        even_BCHW = active_BCHW[:, :, ::2, ::2]
        # The zeros below and to the right make as many odd places as even ones.
        odd_BCHW = F.pad(active_BCHW, (0, 1, 0, 1))[:, :, 1::2, 1::2]
        halves = [self.adjust_conv_1(even_BCHW), self.adjust_conv_2(odd_BCHW)]
        adjusted_BCHW: Tensor = self.adjust_bn(torch.cat(halves, dim=1))
        return adjusted_BCHW


def _adjust(channels: int, filters: int, halved: bool) -> nn.Module:
    return _Halving(channels, filters) if halved else _Projection(channels, filters)


class _NormalCell(nn.Module):
    """Keeps height and width: figure 4, left, of the NASNet paper."""

    outputs = 6

    def __init__(self, now: int, before: int, filters: int, adjust: nn.Module | None) -> None:
        super().__init__()
        self.adjust = adjust
        self.normal_conv_1 = _conv1x1(now, filters)
        self.normal_bn_1 = _batch_norm(filters)
        self.normal_left1 = _SeparableBlock(filters, filters, 5)
        self.normal_right1 = _SeparableBlock(before, filters, 3)
        self.normal_left2 = _SeparableBlock(before, filters, 5)
        self.normal_right2 = _SeparableBlock(before, filters, 3)
        self.normal_left5 = _SeparableBlock(filters, filters, 3)

    def forward(self, now_BCHW: Tensor, before_BCHW: Tensor) -> Tensor:
        p = before_BCHW if self.adjust is None else self.adjust(before_BCHW)
        h = self.normal_bn_1(self.normal_conv_1(F.relu(now_BCHW)))
        parts = [
            p,
            self.normal_left1(h) + self.normal_right1(p),
            self.normal_left2(p) + self.normal_right2(p),
            _average_same(h) + p,
            2 * _average_same(p),
            self.normal_left5(h) + h,
        ]
        return torch.cat(parts, dim=1)


class _ReductionCell(nn.Module):
    """Halves height and width: figure 4, right, of the NASNet paper."""

    outputs = 4

    def __init__(self, now: int, before: int, filters: int, adjust: nn.Module | None) -> None:
        super().__init__()
        self.adjust = adjust
        self.reduction_conv_1 = _conv1x1(now, filters)
        self.reduction_bn_1 = _batch_norm(filters)
        self.reduction_left1 = _SeparableBlock(filters, filters, 5, stride=2)
        self.reduction_right1 = _SeparableBlock(before, filters, 7, stride=2)
        self.reduction_right2 = _SeparableBlock(before, filters, 7, stride=2)
        self.reduction_right3 = _SeparableBlock(before, filters, 5, stride=2)
        self.reduction_left4 = _SeparableBlock(filters, filters, 3)

    def forward(self, now_BCHW: Tensor, before_BCHW: Tensor) -> Tensor:
        p = before_BCHW if self.adjust is None else self.adjust(before_BCHW)
        h = self.reduction_bn_1(self.reduction_conv_1(F.relu(now_BCHW)))
        # Keras pads with zeros, not with nothing: they take part in the maximum and the mean.
        padded = _pad_for_stride_2(h, 3)
        maximum = F.max_pool2d(padded, 3, stride=2)
        first = self.reduction_left1(h) + self.reduction_right1(p)
        second = maximum + self.reduction_right2(p)
        third = F.avg_pool2d(padded, 3, stride=2) + self.reduction_right3(p)
        fourth = _average_same(first) + second
        fifth = self.reduction_left4(first) + maximum
        return torch.cat([second, third, fourth, fifth], dim=1)


def _conv1x1(channels: int, filters: int) -> nn.Conv2d:
    return nn.Conv2d(channels, filters, 1, bias=False)


def _batch_norm(channels: int) -> nn.BatchNorm2d:
    # Keras's momentum of 0.9997 is the share of the old mean, torch's that of the new one.
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=1 - 0.9997)


def _average_same(x_BCHW: Tensor) -> Tensor:
    """Mean of 3 x 3 places; at the border, of those that there are."""
    return F.avg_pool2d(x_BCHW, 3, stride=1, padding=1, count_include_pad=False)


def _pad_for_stride_2(x_BCHW: Tensor, size: int) -> Tensor:
    """Zeros around, one row or column fewer above or left where the number of them is even.

    With stride 2 this is what TensorFlow calls "same"; torch's symmetric padding would look at
    places one further up and left.
    """
    height, width = x_BCHW.shape[2:]
    after = size // 2
    top, left = after - (1 - height % 2), after - (1 - width % 2)
    return F.pad(x_BCHW, (left, after, top, after))
