"""LinkModel: a trained model in a folder, and what it can do without torch.

A model folder holds `config.json` (settings, backbone, scores), `model.safetensors` (the weights
of both encoders), `vocabulary.json` and `README.md` (the model card); where the image network
learned along, also `backbone-<hash>.onnx`, which `model.safetensors` names. Models that score
along with it lie in folders of their own inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sightline import efficientnet_lite, numpy_encoders
from sightline.backbone_names import NAMES
from sightline.backbones import Backbone, load_backbone
from sightline.choices import MaxLinks, Policy
from sightline.compact_weights import compact
from sightline.confidence import Calibration, calibration_of
from sightline.document_links import DocumentLinks, all_read, check_document, link_document
from sightline.documents import Document
from sightline.features import FeatureStore, features_beside
from sightline.files import write_atomically
from sightline.hub import DEFAULT, model_folder, no_model_folder
from sightline.image_features import ImageStatus, StoredImages, check_vectors
from sightline.image_files import read_files
from sightline.linking import LinkChoices
from sightline.model_card import model_card
from sightline.model_files import (
    FORMAT,
    HUB_KEYS,
    ModelError,
    check_weights,
    largest_weights,
    member_folders,
    part,
    read_config,
    read_tuned,
    read_weights,
    vocabulary_hash,
    weights_bytes,
)
from sightline.numpy_encoders import FloatArray, document_matrices
from sightline.problems import SightlineError
from sightline.settings import Settings
from sightline.token_ids import TokenIds
from sightline.tuned_backbones import TunedBackbone
from sightline.vocabulary import Vocabulary

#: The folder of the model that comes with the package.
BUNDLED = Path(__file__).parent / "data" / "default"

Features = FeatureStore | NDArray[np.floating] | None


@dataclass(frozen=True, slots=True)
class Member:
    """A model that scores along with another, and its share of the score, above 0 and below 1."""

    model: LinkModel
    share: float


@dataclass(frozen=True)
class LinkModel:
    """Two encoders with their vocabulary: documents in, similarity matrices and links out.

    `LinkModel.from_pretrained("default")` opens the bundled one.
    """

    settings: Settings
    vocabulary: Vocabulary
    weights: dict[str, FloatArray]
    #: Name of the image network whose features the model was trained on; None if not recorded.
    backbone: str | None = None
    #: What `config.json` says beside the settings: scores, data, versions.
    notes: dict[str, Any] | None = None
    #: The image network, where it learned along with the model.
    tuned: TunedBackbone | None = None
    #: Models of the same image features that score along; this one has the rest of the share.
    members: tuple[Member, ...] = ()

    def __repr__(self) -> str:
        facts = [
            f"{self.settings.sentence_encoder} encoder",
            f"dimension {self.settings.dimension}",
            f"{len(self.vocabulary):,} words",
            f"image features of {self.backbone or 'an unknown network'}",
        ]
        facts += [f"{len(self.members)} more that score along"] if self.members else []
        return f"LinkModel({', '.join(facts)})"

    def __getstate__(self) -> dict[str, Any]:
        # Not what was opened along the way, such as the image network, which cannot be pickled.
        return {name: vars(self)[name] for name in self.__dataclass_fields__}

    # ---- encoding

    def encode_sentences(self, sentences: Sequence[str]) -> FloatArray:
        """Unit vectors of sentences; equal sentences are encoded once."""
        if isinstance(sentences, str):
            raise SightlineError(f"Give a list of sentences, [{shown(sentences)}], not one text.")
        others = [member.model.encode_sentences(sentences) for member in self.members]
        return self._joined(self._encode_sentences(sentences), others)

    def _joined(self, own: FloatArray, others: Sequence[FloatArray]) -> FloatArray:
        """Vectors side by side, so weighted that a cosine is the weighted mean of the members'."""
        if not others:
            return own
        shares = [member.share for member in self.members]
        weights = [math.sqrt(share) for share in (1 - sum(shares), *shares)]
        return np.concatenate(
            [vectors * np.float32(w) for w, vectors in zip(weights, (own, *others), strict=True)],
            axis=1,
        )

    def _encode_sentences(self, sentences: Sequence[str]) -> FloatArray:
        distinct, places = self._token_ids.of(sentences)
        if not len(places):
            return np.empty((0, numpy_encoders.dimension(self.weights)), np.float32)
        vectors = numpy_encoders.encode_sentences(self.weights, distinct)
        return vectors if len(vectors) == len(places) else vectors[places]

    def unknown_words(self, sentences: Sequence[str]) -> float:
        """Share of the words that the vocabulary lacks, as most of another language are."""
        ids = self._token_ids.of(sentences)[0].token_ids
        return float(np.mean(ids == 0)) if len(ids) else 0.0  # the unknown word is the first

    def common_words(self, sentences: Sequence[str]) -> float:
        """Share of the words that are common ones of the vocabulary, as in its own language."""
        ids = self._token_ids.of(sentences)[0].token_ids
        return float(np.mean(np.isin(ids, self.vocabulary.common()))) if len(ids) else 0.0

    @cached_property
    def _token_ids(self) -> TokenIds:
        return TokenIds(self.vocabulary, self.settings.token_limit)

    def encode_images(self, features: NDArray[np.floating]) -> FloatArray:
        """Unit vectors of images from their backbone features (images x dimension)."""
        check_vectors(features, self.feature_dimension)
        vectors = features.astype(np.float32, copy=False)
        own = numpy_encoders.encode_images(self.weights, vectors)
        return self._joined(own, [member.model.encode_images(vectors) for member in self.members])

    def similarity_matrix(self, document: Document, features: Features = None) -> FloatArray:
        """Cosine similarity of each sentence (rows) and each image (columns) of a document.

        `features` are as `similarity_matrices` takes them.
        """
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
        return document_matrices(documents, sentence_NE, image_ME)

    def link(
        self,
        document: Document,
        policy: Policy = "assignment",
        max_links: MaxLinks = "all",
        features: Features = None,
        *,
        threshold: float = 0.0,
        min_confidence: float = 0.0,
    ) -> DocumentLinks:
        """The links of a document, the highest score first.

        - `policy`: "assignment", "dense", "top-k", "threshold" or "mmc4"; `linking.link` describes
          each.
        - `max_links`: the most links: "all", which is as many as the smaller of sentences and
          images, "half" of it, or a number.
        - `features`: as `similarity_matrices` takes them.
        - `threshold`: for the policy of this name, the similarity that a link has to exceed.
        - `min_confidence`: from 0 to 1; less sure links are left out.

        An image that cannot be read has no link; a warning says so, and `images` of the result why.
        """
        check_document(document)
        choices = LinkChoices(policy, max_links, threshold, min_confidence)
        images, vectors = self._read_images(document, features)
        return link_document(
            document,
            images,
            lambda readable: self.similarity_matrix(readable, vectors),
            self.calibration,
            choices,
        )

    @cached_property
    def calibration(self) -> Calibration | None:
        """What gives links their confidence; None for a model that was not calibrated."""
        return calibration_of(self.notes, "notes")

    def _read_images(
        self, document: Document, features: Features
    ) -> tuple[list[ImageStatus], NDArray[np.floating]]:
        """The status of each image of a document, and the features of those that have some."""
        if isinstance(features, np.ndarray):
            return all_read(document), features
        store = self._store(document, features)
        (statuses,), vectors = StoredImages(store).read([document])
        return statuses, vectors

    def _store(self, document: Document, features: FeatureStore | None) -> FeatureStore:
        store = self._features_beside(document) if features is None else features
        self.check_features(store)
        return store

    def _image_features(
        self, documents: Sequence[Document], features: Features
    ) -> NDArray[np.floating]:
        if isinstance(features, np.ndarray):
            return features
        vectors = [np.empty((0, self.feature_dimension), np.float32)]
        for document in documents:
            store = self._store(document, features)
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
            remedy = f"name the features of {self.backbone} with --features DIR"
            if self.backbone in NAMES:
                remedy += f", or extract them with --backbone {self.backbone}"
            raise SightlineError(
                f"The features in {store.folder} come from {store.backbone}, but the model was "
                f"trained on {self.backbone}; {remedy}."
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
        card = model_card(self.settings, len(self.vocabulary), self.backbone, self.notes or {})
        write_atomically(folder / "README.md", card.encode())
        config = {
            **HUB_KEYS,
            "format": FORMAT,
            "backbone": self.backbone,
            "feature_dimension": self.feature_dimension,
            "settings": self.settings.to_json(),
            **(self.notes or {}),
        }
        if self.members:
            folders = [f"member-{number}" for number in range(1, len(self.members) + 1)]
            for name, member in zip(folders, self.members, strict=True):
                member.model.save_pretrained(folder / name, small=small)
            shares = [member.share for member in self.members]
            config["members"] = dict(zip(folders, shares, strict=True))
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
    def from_pretrained(
        cls, name_or_folder: str | Path, *, revision: str | None = None
    ) -> LinkModel:
        """Load a model folder; refuses one whose parts are missing or do not belong together.

        The name `default` is the model that comes with the package; `owner/name` is a model of the
        Hugging Face hub, of which `revision` names a branch, tag or commit (extra `hub`).
        """
        if name_or_folder == DEFAULT and revision is None:
            return cls._load(BUNDLED)
        return cls._load(model_folder(name_or_folder, revision))

    @classmethod
    def _load(cls, folder: Path, within: Path | None = None) -> LinkModel:
        """Load a folder; `within` is the folder of the model that it is a member of."""
        if not folder.is_dir():
            raise no_model_folder(folder)
        config = read_config(folder)
        # Before they are read: a member could be a link to the folder that it lies in.
        if within is not None and config.get("members"):
            raise ModelError(f"{within}: a member does not fit the model: it has members itself.")
        settings = Settings.from_json(config.pop("settings", None), str(folder / "config.json"))
        part(folder, "vocabulary.json")
        vocabulary = Vocabulary.load(folder / "vocabulary.json")
        file = folder / "model.safetensors"
        dimension = config.pop("feature_dimension")
        most = largest_weights(folder, settings, len(vocabulary), dimension)
        weights, metadata = read_weights(file, part(folder, file.name, most))
        if metadata.get("vocabulary_sha256") != vocabulary_hash(vocabulary):
            raise ModelError(
                f"{folder / 'vocabulary.json'} is not the vocabulary that model.safetensors was "
                "trained with; copy the whole folder again."
            )
        check_weights(folder, weights, settings, len(vocabulary), dimension)
        calibration_of(config, str(folder / "config.json"))  # refused here, not when it is used
        for key in ("format", *HUB_KEYS):
            config.pop(key, None)
        backbone = config.pop("backbone")
        tuned = read_tuned(folder, backbone, metadata) if settings.finetune_images else None
        members = tuple(
            Member(cls._load(inside, folder), share)
            for inside, share in member_folders(folder, config.pop("members", {}))
        )
        model = cls(settings, vocabulary, weights, backbone, config, tuned, members)
        for member in members:
            if member.model.feature_dimension != model.feature_dimension:
                raise ModelError(f"{folder}: a member does not fit the model.")
        return model


@lru_cache(maxsize=8)
def _opened(folder: Path) -> FeatureStore:
    return FeatureStore.open(folder)
