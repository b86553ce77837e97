"""Which name means which backbone: the one door from `--backbone` to a network."""

from __future__ import annotations

from pathlib import Path

from sightline import efficientnet_lite
from sightline.backbones import DEFAULT, Backbone, BackboneError, load_backbone
from sightline.clip_backbones import load_clip_backbone
from sightline.problems import MissingExtraError

_IN_TORCH = ("densenet169", "nasnet-mobile")
NAMES = (*efficientnet_lite.VARIANTS, *_IN_TORCH)


def open_backbone(
    name: str = DEFAULT, weights: Path | None = None, threads: int | None = None
) -> Backbone:
    """Load a backbone by name, from `weights` where it does not come with the package.

    The name may also be the path of a local CLIP or SigLIP folder, which has its own weights.

    `threads` is how many processor threads one batch is computed with, where ONNX Runtime does.
    """
    if name in efficientnet_lite.VARIANTS:
        return load_backbone(name, weights, threads)
    if name in _IN_TORCH:
        if weights is None:
            raise BackboneError(
                f"The backbone {name} needs a weight file: give one with --weights "
                "(scripts/convert_weights.py makes it from the published one)."
            )
        try:
            from sightline.torch_backbones import load_torch_backbone
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtraError(f"The backbone {name}", "train") from None
        return load_torch_backbone(name, weights)
    if Path(name).is_dir():
        if weights is not None:
            raise BackboneError(f"{name} is a folder with weights of its own: drop --weights.")
        return load_clip_backbone(Path(name))
    raise BackboneError(
        f"There is no backbone {name!r}; known are {', '.join(NAMES)} and CLIP or SigLIP folders."
    )
