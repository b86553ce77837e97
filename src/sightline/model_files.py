"""The files of a model folder: read with checks, written whole.

Nothing here trusts what it reads: a folder may come from anywhere.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sightline import class_words
from sightline.compact_weights import expand
from sightline.problems import SightlineError
from sightline.settings import Settings
from sightline.tuned_backbones import TunedBackbone
from sightline.vocabulary import Vocabulary

FORMAT = 1
#: What every model folder holds.
FILES = ("config.json", "model.safetensors", "vocabulary.json", "README.md")
#: What the Hugging Face hub looks for in `config.json`, to know and count a model.
HUB_KEYS = {"model_type": "sightline", "architectures": ["LinkModel"]}
_MOST_MEMBERS = 8
# Bytes; what a file may take in memory before anything in it was checked. Ours have 2 kB, and some
# 50 bytes of header a weight; 64 MiB of words are more than all 3 million of GoogleNews.
_LARGEST = {"config.json": 2**20, "vocabulary.json": 64 * 2**20, "model.safetensors": 8 * 2**30}
_LARGEST_OTHER = 2**30  # a tuned backbone
_LARGEST_HEADER = 4 * 2**20  # checkpoints of NASNet have some 700 kB

FloatArray = NDArray[np.float32]


class ModelError(SightlineError):
    """A model folder that is incomplete, damaged or does not fit together."""


def check_new_folder(folder: Path) -> None:
    """Refuse to write a model where there is one, or files that have the names of its own."""
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise SightlineError(
            f"{folder} holds a {there[0]} already, and nothing there is touched; name a new folder."
        )


def vocabulary_hash(vocabulary: Vocabulary) -> str:
    """A name for a vocabulary that no other one has."""
    words = "\n".join(vocabulary.words) + ("\n\nrelated" if vocabulary.related else "")
    return hashlib.sha256(words.encode()).hexdigest()


def expected_shapes(settings: Settings, words: int, feature_dimension: int) -> dict[str, list[int]]:
    """Name and shape of every weight that these settings call for."""
    word, out = settings.word_dimension, settings.dimension
    shapes = {"sentence.embedding": [words, word]}
    if settings.sentence_encoder == "gru":
        shapes |= {
            "sentence.weight_ih": [3 * out, word],
            "sentence.weight_hh": [3 * out, out],
            "sentence.bias_ih": [3 * out],
            "sentence.bias_hh": [3 * out],
        }
    heads = [("image.head", feature_dimension)]
    if settings.class_words:
        heads = [("image.head", feature_dimension + word)]
        shapes |= class_words.shapes(feature_dimension, word)
    if settings.sentence_encoder == "attention":
        shapes["sentence.attention"] = [word]
        heads.append(("sentence.head", word))
    for head, inputs in heads:
        sizes = [inputs, out] if settings.layers == 1 else [inputs, settings.hidden, out]
        for layer, (before, after) in enumerate(pairwise(sizes)):
            shapes[f"{head}.{layer}.weight"] = [after, before]
            shapes[f"{head}.{layer}.bias"] = [after]
    return shapes


def check_weights(
    folder: Path,
    weights: dict[str, FloatArray],
    settings: Settings,
    words: int,
    feature_dimension: object,
) -> None:
    """Refuse weights that are not those that the settings call for."""
    expected = expected_shapes(settings, words, _checked_dimension(folder, feature_dimension))
    found = {name: list(weight.shape) for name, weight in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise ModelError(
                f"{folder / 'model.safetensors'}: {name} has shape {found.get(name)}; "
                f"config.json and vocabulary.json call for {expected.get(name)}."
            )
        if not np.isfinite(weights[name]).all():
            raise ModelError(f"{folder / 'model.safetensors'}: {name} holds NaN or infinity.")


def largest_weights(folder: Path, settings: Settings, words: int, feature_dimension: object) -> int:
    """Bytes that the weights which the settings call for can take, in any number type."""
    shapes = expected_shapes(settings, words, _checked_dimension(folder, feature_dimension))
    return _LARGEST_HEADER + 8 + 8 * sum(map(math.prod, shapes.values()))


def _checked_dimension(folder: Path, feature_dimension: object) -> int:
    if not isinstance(feature_dimension, int):
        raise ModelError(
            f"{folder / 'config.json'}: feature_dimension is {shown(feature_dimension)}, expected "
            "a whole number."
        )
    return feature_dimension


def weights_bytes(weights: Mapping[str, NDArray[Any]], metadata: dict[str, str]) -> bytes:
    """Weights as safetensors, in a fixed order, so that equal weights are equal bytes."""
    from safetensors.numpy import save

    # Sorted metadata, because safetensors writes a hash map's order, which is not repeatable.
    ordered = {name: np.ascontiguousarray(weights[name]) for name in sorted(weights)}
    text = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode()
    data: bytes = save(ordered, {"sightline": text})
    return data


def read_weights(file: Path, data: bytes) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """A model's weights, compact or not, as float32, and their metadata."""
    stored, metadata = read_tensors(file, data)
    try:
        return expand(stored), metadata
    except SightlineError as error:
        raise ModelError(f"{file}: {error}") from None


def read_tensors(file: Path, data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Arrays and metadata from safetensors; a damaged file is refused with a sentence."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    size = int.from_bytes(data[:8], "little")
    if size > _LARGEST_HEADER:
        raise ModelError(f"{file} is damaged: its header cannot have {size:,} bytes.")
    try:
        weights = dict(load(data))
        header = orjson.loads(data[8 : 8 + size])
        metadata = orjson.loads(header.get("__metadata__", {}).get("sightline", "{}"))
        if not isinstance(metadata, dict):
            raise ValueError("its metadata is not a JSON object")
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{file} is damaged or cut short ({str(error)[:200]}).") from None
    return weights, {name: str(text) for name, text in metadata.items()}


def member_folders(folder: Path, members: object) -> list[tuple[Path, float]]:
    """Where the models lie that score along, and their shares."""
    where = f"{folder / 'config.json'}: members"
    if not isinstance(members, dict) or len(members) > _MOST_MEMBERS:
        raise ModelError(f"{where} is not an object of at most {_MOST_MEMBERS} folders.")
    for name, share in members.items():
        # A name from a file that nobody vouches for must not lead out of the folder.
        if not re.fullmatch(r"member-\d+", name):
            raise ModelError(f"{where} names {name[:40]!r}; expected member-1, member-2, ...")
        if type(share) is not float or not 0 < share < 1:
            raise ModelError(f"{where}.{name} is {shown(share)}; expected a share of the score.")
    if sum(members.values()) >= 1:
        raise ModelError(f"{where}: the shares leave nothing for the model itself.")
    return [(folder / name, share) for name, share in members.items()]


def read_config(folder: Path) -> dict[str, Any]:
    """What `config.json` says; it must name settings, backbone and feature dimension."""
    file = folder / "config.json"
    try:
        config = orjson.loads(part(folder, "config.json"))
    except orjson.JSONDecodeError as error:
        raise ModelError(f"{file} is not JSON ({error}).") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f"{file} is not the configuration of a Sightline model (format {FORMAT}).")
    for key in ("settings", "feature_dimension", "backbone"):
        if key not in config:
            raise ModelError(f"{file} does not say {key!r}.")
    if not isinstance(config["backbone"], str | None):
        raise ModelError(f"{file}: backbone is {shown(config['backbone'])}, expected a name.")
    return config


def part(folder: Path, name: str, most: int | None = None) -> bytes:
    """The bytes of a file that a model folder must have, `most` of them at most."""
    file = folder / name
    largest = _LARGEST.get(name, _LARGEST_OTHER)
    most = largest if most is None else min(most, largest)
    try:
        size = file.stat().st_size
        # A pipe would keep us waiting, a device would never end.
        if not file.is_file():
            raise ModelError(f"{file} is not a regular file.")
        if size > most:
            raise ModelError(f"{file} has {size:,} bytes; {most:,} are the most that it can need.")
        return file.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{folder} is not a complete model folder: {name} is missing.") from None
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    except MemoryError:
        raise ModelError(f"{file} does not fit into the memory of this machine.") from None


def read_tuned(folder: Path, backbone: str, metadata: dict[str, str]) -> TunedBackbone:
    """The backbone that the weights name, its hash checked."""
    name = metadata.get("backbone_file", "")
    # A name from a file that nobody vouches for must not lead out of the folder.
    if not re.fullmatch(r"backbone-[0-9a-f]+\.(onnx|safetensors)", name):
        raise ModelError(f"{folder / 'model.safetensors'} does not name its fine-tuned backbone.")
    tuned = TunedBackbone(backbone, part(folder, name))
    if tuned.sha256 != metadata.get("backbone_sha256"):
        raise ModelError(
            f"{folder / name} is not the backbone that model.safetensors was trained with; copy "
            "the whole folder again."
        )
    return tuned
