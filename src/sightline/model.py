"""LinkModel: a trained model in a folder, and what it can do without torch.

A model folder holds `config.json` (settings, backbone, scores), `model.safetensors` (the weights
of both encoders), `vocabulary.json` and `README.md` (the model card); where the image network
learned along, also `backbone-<hash>.onnx`, which `model.safetensors` names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sightline import class_words, efficientnet_lite, numpy_encoders
from sightline.backbones import Backbone, load_backbone
from sightline.compact_weights import compact, expand
from sightline.documents import Document
from sightline.features import FeatureStore, features_beside
from sightline.files import write_atomically
from sightline.image_files import read_files
from sightline.linking import Link, MaxLinks, Policy, link
from sightline.numpy_encoders import FloatArray, similarity_matrices
from sightline.problems import SightlineError
from sightline.settings import Settings
from sightline.token_ids import TokenIds
from sightline.tuned_backbones import TunedBackbone
from sightline.vocabulary import Vocabulary

FORMAT = 1
#: The folder of the model that comes with the package.
BUNDLED = Path(__file__).parent / "data" / "default"

Features = FeatureStore | NDArray[np.floating] | None


class ModelError(SightlineError):
    """A model folder that is incomplete, damaged or does not fit together."""


@dataclass(frozen=True)
class LinkModel:
    """Two encoders with their vocabulary: documents in, similarity matrices out."""

    settings: Settings
    vocabulary: Vocabulary
    weights: dict[str, FloatArray]
    #: Name of the image network whose features the model was trained on; None if not recorded.
    backbone: str | None = None
    #: What `config.json` says beside the settings: scores, data, versions.
    notes: dict[str, Any] | None = None
    #: The image network, where it learned along with the model.
    tuned: TunedBackbone | None = None

    # ---- encoding

    def encode_sentences(self, sentences: Sequence[str]) -> FloatArray:
        """Unit vectors of sentences; equal sentences are encoded once."""
        distinct, places = self._token_ids.of(sentences)
        if not len(places):
            return np.empty((0, numpy_encoders.dimension(self.weights)), np.float32)
        vectors = numpy_encoders.encode_sentences(self.weights, distinct)
        return vectors if len(vectors) == len(places) else vectors[places]

    @cached_property
    def _token_ids(self) -> TokenIds:
        return TokenIds(self.vocabulary, self.settings.token_limit)

    def encode_images(self, features: NDArray[np.floating]) -> FloatArray:
        """Unit vectors of images from their backbone features (images x dimension)."""
        expected = self.feature_dimension
        if features.ndim != 2 or features.shape[1] != expected:
            raise SightlineError(
                f"The image features have shape {features.shape}; the model expects "
                f"{expected} numbers an image."
            )
        if not np.isfinite(features).all():
            row = int(np.argmin(np.isfinite(features).all(axis=1)))
            raise SightlineError(f"The features of image {row} are not all finite numbers.")
        return numpy_encoders.encode_images(self.weights, features.astype(np.float32, copy=False))

    def similarity_matrix(self, document: Document, features: Features = None) -> FloatArray:
        """Cosine similarity of each sentence (rows) and each image (columns) of a document."""
        return self.similarity_matrices([document], features)[0]

    def similarity_matrices(
        self, documents: Sequence[Document], features: Features = None
    ) -> list[FloatArray]:
        """Similarity matrices of several documents, encoded together.

        `features` is a feature store, or the features of all their images in order; without it
        they come from the store beside the corpus that each document was read from, or, where
        there is none or the model has an image network of its own, from the image files.
        """
        sentence_NE = self.encode_sentences([s for d in documents for s in d.sentences])
        image_ME = self.encode_images(self._image_features(documents, features))
        sentences_D = [len(document.sentences) for document in documents]
        images_D = [len(document.images) for document in documents]
        return similarity_matrices(sentence_NE, image_ME, sentences_D, images_D)

    def link(
        self,
        document: Document,
        policy: Policy = "assignment",
        max_links: MaxLinks = "all",
        features: Features = None,
    ) -> list[Link]:
        """The links of a document, best first; `linking.link` describes the policies."""
        return link(self.similarity_matrix(document, features), policy, max_links)

    def _image_features(
        self, documents: Sequence[Document], features: Features
    ) -> NDArray[np.floating]:
        if isinstance(features, np.ndarray):
            return features
        vectors = [np.empty((0, self.feature_dimension), np.float32)]
        for document in documents:
            store = self._features_beside(document) if features is None else features
            self.check_features(store)
            rows = store.rows(document.images)
            if (rows < 0).any():
                missing = document.images[int(np.argmax(rows < 0))]
                reason = store.absence(missing)[1].rstrip(".")
                raise SightlineError(f"Image {missing!r}: {reason}.")
            vectors.append(store.vectors(rows))
        return np.concatenate(vectors)

    def _features_beside(self, document: Document) -> FeatureStore:
        folder = document.folder and features_beside(document.folder)
        if folder is not None and self.tuned is None:
            return _opened(folder)
        if not self.reads_images:
            raise SightlineError(
                f"Document {document.id!r} has no image features beside it; give them as "
                "`features`."
            )
        return read_files([document], self.image_backbone)

    @property
    def feature_dimension(self) -> int:
        """How many numbers an image's features have."""
        inputs = int(self.weights["image.head.0.weight"].shape[1])
        return inputs - self.settings.word_dimension if self.settings.class_words else inputs

    @property
    def reads_images(self) -> bool:
        """Whether the image network is at hand: the model's own, or one with known weights."""
        return self.tuned is not None or self.backbone in efficientnet_lite.VARIANTS

    @cached_property
    def image_backbone(self) -> Backbone:
        """The image network, ready to run; only for a model that `reads_images`."""
        if self.tuned is not None:
            return self.tuned.open()
        if not self.reads_images:
            raise SightlineError(f"The weights of {self.backbone or 'the backbone'} are not known.")
        return load_backbone(str(self.backbone))

    def check_features(self, store: FeatureStore) -> None:
        """Refuse features that another backbone made."""
        if self.tuned and (store.manifest or {}).get("weights_sha256") != self.tuned.sha256:
            raise SightlineError(
                f"The features in {store.folder} come from {store.backbone or 'another network'}, "
                "but the model has an image network of its own; leave --features out, then it "
                "reads the image files."
            )
        if self.backbone and store.backbone and self.backbone != store.backbone:
            raise SightlineError(
                f"The features in {store.folder} come from {store.backbone}, but the model was "
                f"trained on {self.backbone}; extract them again with --backbone {self.backbone}."
            )
        expected = self.feature_dimension
        if store.dimension != expected:
            raise SightlineError(
                f"The features in {store.folder} have {store.dimension} numbers an image, but the "
                f"model was trained on {expected}."
            )

    # ---- the model folder

    def save_pretrained(self, folder: str | Path, *, small: bool = False) -> None:
        """Write the model folder; each file appears whole or not at all.

        `small` stores the weights with less precision, in about a quarter of the bytes.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.vocabulary.save(folder / "vocabulary.json")
        write_atomically(folder / "README.md", self._card().encode())
        config = {
            "format": FORMAT,
            "backbone": self.backbone,
            "feature_dimension": self.feature_dimension,
            "settings": self.settings.to_json(),
            **(self.notes or {}),
        }
        text = orjson.dumps(config, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        write_atomically(folder / "config.json", text)
        self.save_weights(folder, small=small)

    def save_weights(self, folder: Path, *, small: bool = False) -> None:
        """Replace the weights alone, in one step: training does so at each better epoch."""
        # The weights name the vocabulary that they were trained with, so that parts of two
        # models are not mistaken for one.
        metadata = {"vocabulary_sha256": vocabulary_hash(self.vocabulary)}
        if self.tuned is not None:
            metadata |= {"backbone_file": self.tuned.file, "backbone_sha256": self.tuned.sha256}
            write_atomically(folder / self.tuned.file, self.tuned.data)
        weights = compact(self.weights) if small else self.weights
        write_atomically(folder / "model.safetensors", weights_bytes(weights, metadata))
        for file in folder.glob("backbone-????????????.*"):
            if self.tuned is not None and file.name != self.tuned.file:
                file.unlink()

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path) -> LinkModel:
        """Load a model folder; refuses one whose parts are missing or do not belong together.

        The name `default` is the model that comes with the package.
        """
        folder = BUNDLED if name_or_folder == "default" else Path(name_or_folder)
        if not folder.is_dir():
            raise ModelError(
                f"{name_or_folder} is not a model folder; train one with "
                f"'sightline train CORPUS -o {name_or_folder}'."
            )
        config = _read_config(folder)
        settings = Settings.from_json(config.pop("settings", None), str(folder / "config.json"))
        _part(folder, "vocabulary.json")
        vocabulary = Vocabulary.load(folder / "vocabulary.json")
        file = folder / "model.safetensors"
        stored, metadata = read_weights(file, _part(folder, file.name))
        try:
            weights = expand(stored)
        except SightlineError as error:
            raise ModelError(f"{file}: {error}") from None
        if metadata.get("vocabulary_sha256") != vocabulary_hash(vocabulary):
            raise ModelError(
                f"{folder / 'vocabulary.json'} is not the vocabulary that model.safetensors was "
                "trained with; copy the whole folder again."
            )
        _check_weights(folder, weights, settings, len(vocabulary), config.pop("feature_dimension"))
        config.pop("format")
        backbone = config.pop("backbone")
        tuned = _tuned(folder, backbone, metadata) if settings.finetune_images else None
        return cls(settings, vocabulary, weights, backbone, config, tuned)

    def _card(self) -> str:
        notes = self.notes or {}
        scores = "".join(
            f"- {split}: {values}\n" for split, values in (notes.get("scores") or {}).items()
        )
        settings = "\n".join(f"- {key}: {value}" for key, value in self.settings.to_json().items())
        return (
            "# A Sightline model\n\n"
            "Finds which sentence each image of a document belongs to. Trained without labelled\n"
            "pairs by the method of Hessel, Lee and Mimno (EMNLP 2019).\n\n"
            f"- image features: {self.backbone or 'not recorded'}\n"
            f"- words: {len(self.vocabulary):,}\n"
            f"- trained on: {notes.get('corpus', 'not recorded')}\n\n"
            f"## Scores\n\n{scores or 'None recorded.'}\n\n## Settings\n\n{settings}\n"
        )


def _tuned(folder: Path, backbone: str, metadata: dict[str, str]) -> TunedBackbone:
    """The backbone that the weights name, its hash checked."""
    name = metadata.get("backbone_file", "")
    # A name from a file that nobody vouches for must not lead out of the folder.
    if not name.startswith("backbone-") or Path(name).name != name:
        raise ModelError(f"{folder / 'model.safetensors'} does not name its fine-tuned backbone.")
    tuned = TunedBackbone(backbone, _part(folder, name))
    if tuned.sha256 != metadata.get("backbone_sha256"):
        raise ModelError(
            f"{folder / name} is not the backbone that model.safetensors was trained with; copy "
            "the whole folder again."
        )
    return tuned


@lru_cache(maxsize=8)
def _opened(folder: Path) -> FeatureStore:
    return FeatureStore.open(folder)


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


def _check_weights(
    folder: Path,
    weights: dict[str, FloatArray],
    settings: Settings,
    words: int,
    feature_dimension: object,
) -> None:
    if not isinstance(feature_dimension, int):
        raise ModelError(
            f"{folder / 'config.json'}: feature_dimension is {feature_dimension!r}, expected a "
            "whole number."
        )
    expected = expected_shapes(settings, words, feature_dimension)
    found = {name: list(weight.shape) for name, weight in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise ModelError(
                f"{folder / 'model.safetensors'}: {name} has shape {found.get(name)}; "
                f"config.json and vocabulary.json call for {expected.get(name)}."
            )
        if not np.isfinite(weights[name]).all():
            raise ModelError(f"{folder / 'model.safetensors'}: {name} holds NaN or infinity.")


def weights_bytes(weights: Mapping[str, NDArray[Any]], metadata: dict[str, str]) -> bytes:
    """Weights as safetensors, in a fixed order, so that equal weights are equal bytes."""
    from safetensors.numpy import save

    # Sorted metadata, because safetensors writes a hash map's order, which is not repeatable.
    ordered = {name: np.ascontiguousarray(weights[name]) for name in sorted(weights)}
    text = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode()
    data: bytes = save(ordered, {"sightline": text})
    return data


def read_weights(file: Path, data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Weights and metadata from safetensors; a damaged file is refused with a sentence."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        weights = dict(load(data))
        header = orjson.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        metadata = orjson.loads(header.get("__metadata__", {}).get("sightline", "{}"))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{file} is damaged or cut short ({error}).") from None
    return weights, metadata


def _read_config(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    try:
        config = orjson.loads(_part(folder, "config.json"))
    except orjson.JSONDecodeError as error:
        raise ModelError(f"{file} is not JSON ({error}).") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f"{file} is not the configuration of a Sightline model (format {FORMAT}).")
    for key in ("settings", "feature_dimension", "backbone"):
        if key not in config:
            raise ModelError(f"{file} does not say {key!r}.")
    return config


def _part(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{folder} is not a complete model folder: {name} is missing.") from None
