"""Convert the published weights of DenseNet-169 or NASNet-A mobile to safetensors.

    python scripts/convert_weights.py densenet169 densenet169-b2777c0a.pth densenet169.safetensors
    python scripts/convert_weights.py nasnet-mobile NASNet-mobile.h5 nasnet-mobile.safetensors

torchvision publishes a `.pth` file, Keras an `.h5` file (reading one needs `pip install h5py`).
The result keeps their parameter names and the layout of their arrays, and is checked against the
network before it is written, so that Sightline itself never has to open either format.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save

from sightline.files import write_atomically
from sightline.problems import SightlineError
from sightline.torch_backbones import MODULES, build_module, published_weights


def read_pth(file: Path) -> dict[str, NDArray[Any]]:
    """The state dictionary of a torch file, read without running any code that it may hold."""
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
        return {str(name): tensor.detach().numpy() for name, tensor in state.items()}
    except OSError as error:
        raise SightlineError(f"{file} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # torch raises whatever a damaged file provokes
        raise SightlineError(
            f"{file} is not a state dictionary of tensors, which is all that is safe to read "
            f"({type(error).__name__})."
        ) from None


def read_h5(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a Keras file of weights, or of a whole model, as `layer/array`."""
    try:
        h5py: Any = importlib.import_module("h5py")
    except ImportError:
        raise SightlineError(f"Reading {file} needs h5py: pip install h5py") from None
    weights: dict[str, NDArray[Any]] = {}

    def add(path: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            # A layer's group has its true name; the scopes between depend on Keras's version.
            layer, *_, array = path.removesuffix(":0").split("/")
            weights[f"{layer}/{array}"] = np.asarray(node)

    try:
        with h5py.File(file) as handle:
            handle.get("model_weights", handle).visititems(add)
    except OSError as error:
        raise SightlineError(f"{file} cannot be read as HDF5: {error}.") from None
    return weights


def main() -> int:
    """Convert one file; exit code 1 if it is not what it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(MODULES))
    parser.add_argument("published", type=Path, help="the .pth or .h5 file")
    parser.add_argument("output", type=Path, help="the .safetensors file to write")
    arguments = parser.parse_args()
    file: Path = arguments.published
    read = read_h5 if file.suffix in (".h5", ".hdf5") else read_pth
    try:
        module = build_module(arguments.name, read(file), str(file))
        # Sorted, and one entry of metadata alone, so that equal weights are equal bytes.
        weights = dict(sorted(published_weights(module).items()))
        data = save(weights, {"origin": f"{file.name} sha256:{_sha256(file)}"})
        write_atomically(arguments.output, data)
    except SightlineError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    digest = hashlib.sha256(data).hexdigest()
    sys.stderr.write(f"{arguments.output}: {len(weights)} arrays, sha256 {digest}\n")
    return 0


def _sha256(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
