"""CLIP and SigLIP backbones: any local folder of `transformers` that holds one.

Both networks put images and texts into one space; the vectors of images are features like any
backbone's, and `clip_model` compares them with those of sentences. A folder is read as data only:
its weights must be safetensors, and no code that it brings is run. torch and transformers (extra
`hf`) are imported when a folder is loaded, not before.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson

from sightline.backbones import Backbone, BackboneError, FloatArray, Preprocessing
from sightline.files import read_json_object
from sightline.problems import MissingExtraError

_CLASSES = {"clip": "CLIPModel", "siglip": "SiglipModel"}
_LARGEST_CONFIG = 2**20  # bytes; CLIP's have some 5 kB
_PROCESSOR = "preprocessor_config.json"
# Pillow's numbers, which preprocessor_config.json uses.
_INTERPOLATIONS: dict[object, Literal["bilinear", "bicubic", "lanczos"]] = {
    1: "lanczos",
    2: "bilinear",
    3: "bicubic",
}


def is_clip_folder(path: str | Path) -> bool:
    """Whether a folder comes from transformers, by its config.json; Sightline's have a `format`.

    Whether its kind of network can be used is for the loader to say, which names those that can.
    """
    file = Path(path) / "config.json"
    try:
        # Neither a pipe, which would keep us waiting, nor what is far too long for its purpose.
        if not file.is_file() or file.stat().st_size > _LARGEST_CONFIG:
            return False
        config = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "model_type" in config and "format" not in config


def load_clip_backbone(folder: Path) -> Backbone:
    """The image half of a CLIP or SigLIP folder: images as vectors of the space shared with text.

    `network.module` is the whole network of transformers, with the text half.
    """
    kind = folder_kind(folder)
    files = _weight_files(folder)
    processor = _read_processor(folder)
    module = _load_module(folder, kind)
    side = module.config.vision_config.image_size
    try:
        preprocessing = _preprocessing(processor, side)
    except ValueError as error:
        raise BackboneError(f"{folder / _PROCESSOR}: {error}.") from None
    if kind == "clip":
        dimension = module.config.projection_dim
    else:
        dimension = module.config.vision_config.hidden_size
    digest = _sha256(files)
    # Named by its weights: a folder may be renamed, and others bear the same name.
    name = f"{kind}-{digest[:12]}"
    return Backbone(name, dimension, preprocessing, digest, ClipNetwork(str(folder), module))


@dataclass(frozen=True, eq=False)
class ClipNetwork:
    """The image half in torch."""

    folder: str
    module: Any

    def features(self, batch: FloatArray) -> FloatArray:
        """Images x dimension, in the space shared with text."""
        import torch

        writable = np.require(batch, requirements=["C", "W"])  # torch warns of any other
        with torch.inference_mode():
            return pooled(self.module.get_image_features(torch.from_numpy(writable)))

    def class_scores(self, features: FloatArray) -> FloatArray:  # noqa: ARG002
        """Refuse: these networks know no fixed classes."""
        raise BackboneError(f"{self.folder} is a CLIP or SigLIP model, which has no class scores.")


def pooled(output: Any) -> FloatArray:
    """The vectors in a network's output; before transformers 5 they were the output."""
    vectors: FloatArray = getattr(output, "pooler_output", output).numpy()
    return vectors


@contextmanager
def quiet_transformers(folder: Path, what: str) -> Iterator[None]:
    """Load a part of a folder without progress bars; what transformers raises is one sentence."""
    import transformers

    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(log.CRITICAL)
    log.disable_progress_bar()
    try:
        yield
    except Exception as error:  # transformers has no class of its own for a bad folder
        if isinstance(error, ImportError) and "SentencePiece" in str(error):
            raise MissingExtraError(f"The {what} of {folder}", "hf") from None
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise BackboneError(
            f"{folder}: the {what} cannot be loaded ({reason or type(error).__name__})."
        ) from error
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


# ---- the parts of a folder


def folder_kind(folder: Path) -> str:
    """`clip` or `siglip`; refuses everything else."""
    if not folder.is_dir():
        raise BackboneError(f"{folder} is not a folder; expected a local CLIP or SigLIP model.")
    kind = _read_json(folder, "config.json").get("model_type")
    if kind == "siglip2":
        raise BackboneError(
            f"{folder} is a SigLIP 2 model of variable resolution (NaFlex), which is not "
            "supported; the SigLIP 2 models of a fixed resolution are."
        )
    if kind not in _CLASSES:
        raise BackboneError(
            f"{folder / 'config.json'}: the model type is {kind!r}; supported are "
            f"{' and '.join(_CLASSES)}."
        )
    return str(kind)


def _weight_files(folder: Path) -> list[Path]:
    """The safetensors files, one or many."""
    whole = folder / "model.safetensors"
    files = [whole] if whole.is_file() else sorted(folder.glob("model-*.safetensors"))
    if files:
        return files
    if pickles := sorted(folder.glob("pytorch_model*.bin")):
        raise BackboneError(
            f"{folder} has its weights in {pickles[0].name}, which can run code when it is loaded "
            'and is refused; if you trust it, convert it once: python -c "from transformers '
            f"import AutoModel as M; M.from_pretrained('{folder}').save_pretrained('{folder}')\""
        )
    raise BackboneError(f"{folder} has no weights: model.safetensors is missing.")


def _sha256(files: list[Path]) -> str:
    """Hash of the weights; of several files, as if they were one."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            while piece := handle.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def _load_module(folder: Path, kind: str) -> Any:
    try:
        import torch
        import transformers
    except ModuleNotFoundError:
        raise MissingExtraError("A CLIP or SigLIP model", "hf") from None
    with quiet_transformers(folder, "model"):
        module, found = getattr(transformers, _CLASSES[kind]).from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    # What is missing, transformers has filled with random numbers.
    if missing := sorted(found["missing_keys"]):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise BackboneError(f"{folder} is not a whole model: it lacks {missing[0]!r}{more}.")
    for name, values in module.state_dict().items():
        if not bool(values.isfinite().all()):
            raise BackboneError(f"{folder}: {name} holds NaN or infinity.")
    return module.eval()


def _read_processor(folder: Path) -> dict[str, Any]:
    """How images are prepared; transformers 5 may keep it beside the tokenizer's settings."""
    if not (folder / _PROCESSOR).is_file() and (folder / "processor_config.json").is_file():
        nested = _read_json(folder, "processor_config.json").get("image_processor")
        if isinstance(nested, dict):
            return nested
    return _read_json(folder, _PROCESSOR)


def _preprocessing(processor: Mapping[str, Any], side: int) -> Preprocessing:
    """The record of a preprocessor_config.json; raises ValueError for what it cannot express."""
    for step in ("do_resize", "do_rescale", "do_normalize"):
        if processor.get(step, True) is not True:
            raise ValueError(f"{step} is {processor[step]!r}; only true is supported")
    resample = processor.get("resample")
    if resample not in _INTERPOLATIONS:
        raise ValueError(f"resample is {resample!r}; supported are {[*_INTERPOLATIONS]}")
    size = processor.get("size")
    crop = processor.get("crop_size") if processor.get("do_center_crop") else None
    square = {"height": side, "width": side}
    # The folders of the first CLIP give plain numbers for the shorter side and for the square.
    shorter_side = size.get("shortest_edge") if isinstance(size, dict) else size
    if size == square and crop in (None, side, square):
        shorter_side = None
    elif crop not in (side, square) or type(shorter_side) is not int or shorter_side < side:
        raise ValueError(
            f"the size {size!r}, with the crop {crop!r}, does not give the {side} x {side} "
            "pixels that the model takes"
        )
    factor = processor.get("rescale_factor", 1 / 255)
    mean, deviation = processor.get("image_mean", ()), processor.get("image_std", ())
    try:
        # x * factor is what mean and deviation are of; the record has them of x itself.
        (m1, m2, m3), (s1, s2, s3) = ([v / factor for v in of] for of in (mean, deviation))
        usable = all(map(math.isfinite, (m1, m2, m3, s1, s2, s3))) and min(s1, s2, s3) > 0
    except (TypeError, ValueError, ArithmeticError):
        usable = False
    if not usable:
        raise ValueError(
            f"image_mean {mean!r}, image_std {deviation!r} and rescale_factor {factor!r} must be "
            "three numbers, three numbers above 0 and one above 0"
        )
    return Preprocessing(shorter_side, side, _INTERPOLATIONS[resample], (m1, m2, m3), (s1, s2, s3))


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    if not (folder / name).exists():
        raise BackboneError(f"{folder} is not a whole CLIP or SigLIP folder: {name} is missing.")
    return read_json_object(folder / name, BackboneError)
