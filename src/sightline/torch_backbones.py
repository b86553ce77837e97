"""The paper's image networks, DenseNet-169 and NASNet-A mobile, from local weight files.

A weight file is safetensors with the published parameter names, torchvision's or Keras's, each
array laid out as published; `scripts/convert_weights.py` makes one from the published file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from sightline.backbones import Backbone, BackboneError, FloatArray, Preprocessing
from sightline.densenet import DenseNet169
from sightline.nasnet import NASNetMobile

Module = DenseNet169 | NASNetMobile
MODULES: dict[str, type[Module]] = {"densenet169": DenseNet169, "nasnet-mobile": NASNetMobile}

_PREPROCESSING = {
    # torchvision's for these weights; the mean and the deviation of ImageNet's pixels.
    "densenet169": Preprocessing(
        shorter_side=256,
        crop=224,
        interpolation="bilinear",
        mean=(0.485 * 255, 0.456 * 255, 0.406 * 255),
        scale=(0.229 * 255, 0.224 * 255, 0.225 * 255),
    ),
    # Keras scales to -1 ... 1 and leaves the size to the user; the weights were evaluated on the
    # middle 7/8 of an image (preprocess_for_eval in inception_preprocessing.py of
    # github.com/tensorflow/models, research/slim).
    "nasnet-mobile": Preprocessing(
        shorter_side=256,
        crop=224,
        interpolation="bilinear",
        mean=(127.5, 127.5, 127.5),
        scale=(127.5, 127.5, 127.5),
    ),
}

# Counts batches for a way of averaging that no published network uses; files may have it or not.
_COUNTER = "num_batches_tracked"


@dataclass(frozen=True, eq=False)
class TorchNetwork:
    """A backbone's network in torch; `module` gives features as tensors, to train it further."""

    file: str
    module: Module

    @torch.inference_mode()
    def features(self, batch: FloatArray) -> FloatArray:
        """Images x dimension; leaves the module in evaluation mode."""
        writable = np.require(batch, requirements=["C", "W"])  # torch warns of any other
        result: FloatArray = self.module.eval()(torch.from_numpy(writable)).numpy()
        return result

    @torch.inference_mode()
    def class_scores(self, features: FloatArray) -> FloatArray:
        """Images x 1000."""
        if self.module.classifier is None:
            raise BackboneError(f"{self.file} has no layer of class scores ({self.module.head}).")
        writable = np.require(features, requirements=["C", "W"])
        scores: FloatArray = self.module.classifier(torch.from_numpy(writable)).numpy()
        return scores


def load_torch_backbone(name: str, weights: Path) -> Backbone:
    """DenseNet-169 or NASNet-A mobile with the weights of a local safetensors file."""
    _require_known(name)
    return open_torch_backbone(name, str(weights), _read(name, weights))


def open_torch_backbone(name: str, file: str, data: bytes) -> Backbone:
    """The backbone of a safetensors file's content; `file` is its name in messages."""
    _require_known(name)
    module = build_module(name, _arrays(file, data), file)
    digest = hashlib.sha256(data).hexdigest()
    network = TorchNetwork(file, module)
    return Backbone(name, module.dimension, _PREPROCESSING[name], digest, network)


def _require_known(name: str) -> None:
    if name not in MODULES:
        raise BackboneError(
            f"There is no backbone {name!r} in torch; known are {', '.join(MODULES)}."
        )


def build_module(name: str, weights: Mapping[str, NDArray[Any]], source: str) -> Module:
    """The network with the given weights, by published name; refuses any that do not fit.

    `source` is where the weights come from, for the errors. Weights without a classifier are
    complete too: features do not need it.
    """
    module_type = MODULES[name]
    found = _by_plain_name(module_type, weights, source)
    # On the meta device nothing is allocated, and no random numbers are used up.
    with torch.device("meta"):
        module = module_type(classifier=any(key.startswith(module_type.head) for key in found))
    state = module.state_dict()
    wanted = {module.published(key)[0]: key for key in state if not key.endswith(_COUNTER)}
    _check_names(name, found, wanted, source)
    for published, key in wanted.items():
        axes = module.published(key)[1]
        place = f"{source}: {found[published]}"
        array = _torch_array(weights[found[published]], tuple(state[key].shape), axes, place)
        if key.endswith("running_var") and (array < 0).any():
            raise BackboneError(f"{place} is a variance, but holds negative numbers.")
        # Both networks are 1.5 times as fast with channels last (measured, batches of 16).
        layout = torch.channels_last if array.ndim == 4 else torch.contiguous_format
        state[key] = torch.from_numpy(array).contiguous(memory_format=layout)
    for key in state:
        if key.endswith(_COUNTER):
            state[key] = torch.tensor(0)
    module.load_state_dict(state, assign=True)
    return module.eval()


def published_weights(module: Module) -> dict[str, NDArray[np.float32]]:
    """A copy of a network's weights as `build_module` takes them: how a tuned one is kept."""
    weights = {}
    for key, tensor in module.state_dict().items():
        if not key.endswith(_COUNTER):
            published, axes = module.published(key)
            array = tensor.detach().cpu().numpy()
            turned = array if axes is None else array.transpose(np.argsort(axes))
            weights[published] = np.array(turned, np.float32, order="C")
    return weights


def _by_plain_name(
    module_type: type[Module], weights: Mapping[str, Any], source: str
) -> dict[str, str]:
    """The name in the file of each parameter."""
    found: dict[str, str] = {}
    for key in weights:
        plain = module_type.plain_name(key)
        if plain in found:
            raise BackboneError(f"{source} holds {plain} twice: as {found[plain]!r} and {key!r}.")
        if not plain.endswith(_COUNTER):
            found[plain] = key
    return found


def _check_names(
    name: str, found: Mapping[str, str], wanted: Mapping[str, str], source: str
) -> None:
    missing = [published for published in wanted if published not in found]
    unknown = [key for plain, key in found.items() if plain not in wanted]
    for complaint, names in (("lacks", missing), ("holds, beside its parameters,", unknown)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise BackboneError(
                f"{source} is not a weight file of {name}: it {complaint} {names[0]!r}{more}."
            )


def _torch_array(
    array: NDArray[Any], shape: tuple[int, ...], axes: tuple[int, ...] | None, place: str
) -> NDArray[np.float32]:
    """An array in torch's layout, in memory of its own: training writes to it."""
    if array.dtype not in (np.float16, np.float32, np.float64):
        raise BackboneError(f"{place} holds {array.dtype} numbers; expected float32.")
    expected = shape if axes is None else tuple(shape[axis] for axis in np.argsort(axes))
    if array.shape != expected:
        raise BackboneError(f"{place} has shape {array.shape}; expected {expected}.")
    turned = array if axes is None else array.transpose(axes)
    with np.errstate(over="ignore"):
        result = np.array(turned, np.float32, order="C")
    if not np.isfinite(result).all():
        raise BackboneError(f"{place} holds NaN or infinity.")
    return result


def _read(name: str, file: Path) -> bytes:
    """The content of a weight file."""
    if file.suffix.lower() in (".pth", ".pt", ".h5", ".hdf5"):
        raise BackboneError(
            f"{file} is not safetensors; convert it first: "
            f"python scripts/convert_weights.py {name} {file} {name}.safetensors"
        )
    try:
        return file.read_bytes()
    except OSError as error:
        raise BackboneError(f"The weights {file} cannot be read: {error.strerror}.") from None


def _arrays(file: str, data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file."""
    try:
        return dict(load(data))
    except SafetensorError as error:
        raise BackboneError(f"{file} is not a whole safetensors file ({error}).") from None
    except KeyError as error:  # a number type that numpy does not have
        raise BackboneError(f"{file} holds {error.args[0]} numbers; expected F32.") from None
