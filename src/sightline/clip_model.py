"""ClipModel: a CLIP or SigLIP folder that links documents with no training at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.backbones import Backbone, BackboneError, FloatArray
from sightline.choices import MaxLinks, Policy
from sightline.clip_backbones import (
    ClipNetwork,
    folder_kind,
    load_clip_backbone,
    pooled,
    quiet_transformers,
)
from sightline.document_links import DocumentLinks, all_read, check_document, link_document
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.image_features import (
    ImageFiles,
    ImageSource,
    StoredImages,
    check_vectors,
    groups,
)
from sightline.linking import LinkChoices
from sightline.model import Features, LinkModel
from sightline.numpy_encoders import document_matrices
from sightline.problems import SightlineError

_SENTENCES_AT_ONCE = 64
_TOKENIZERS = ("tokenizer.json", "vocab.json", "spiece.model", "tokenizer.model")


@dataclass(frozen=True, eq=False)
class ClipModel:
    """Both halves of a CLIP or SigLIP folder, with the methods of `LinkModel`."""

    image_backbone: Backbone
    #: The whole network of transformers, of which the text half is used here.
    module: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    #: SigLIP was trained on lower-case sentences, each filled up to the longest that it takes.
    siglip: bool

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> ClipModel:
        """Load a local folder; refuses one in which a part is missing."""
        folder = Path(folder)
        kind = folder_kind(folder)
        if not any((folder / name).is_file() for name in _TOKENIZERS):
            raise BackboneError(
                f"{folder} has no tokenizer, so it cannot read sentences: none of "
                f"{', '.join(_TOKENIZERS)} is there."
            )
        backbone = load_clip_backbone(folder)
        assert isinstance(backbone.network, ClipNetwork)
        with quiet_transformers(folder, "tokenizer"):
            import transformers

            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
        if tokenizer.pad_token_id is None:
            raise BackboneError(f"{folder}: the tokenizer has no token to fill sentences up with.")
        return cls(backbone, backbone.network.module, tokenizer, kind == "siglip")

    # ---- encoding

    def encode_sentences(self, sentences: Sequence[str]) -> FloatArray:
        """Unit vectors of sentences, cut at the network's limit; equal ones are encoded once."""
        place: dict[str, int] = {}
        places = [
            place.setdefault(sentence.lower() if self.siglip else sentence, len(place))
            for sentence in sentences
        ]
        vectors = np.empty((len(place), self.feature_dimension), np.float32)
        # By length, so that those that are computed together need little filling up.
        for group in groups(sorted(place, key=len), _SENTENCES_AT_ONCE):
            vectors[[place[sentence] for sentence in group]] = self._text_features(group)
        return _unit(vectors)[places]

    def encode_images(self, features: NDArray[np.floating]) -> FloatArray:
        """Unit vectors of images from their features (images x dimension)."""
        check_vectors(features, self.feature_dimension)
        return _unit(features.astype(np.float32, copy=False))

    def similarity_matrix(self, document: Document, features: Features = None) -> FloatArray:
        """Cosine similarity of each sentence (rows) and each image (columns) of a document."""
        return self.similarity_matrices([document], features)[0]

    def similarity_matrices(
        self, documents: Sequence[Document], features: Features = None
    ) -> list[FloatArray]:
        """Similarity matrices of several documents, encoded together.

        `features` is a feature store made with this model's backbone, or the features of all
        their images in order; without it, the image files are read.
        """
        if not isinstance(features, np.ndarray):
            features = self._image_features(documents, features)
        sentence_NE = self.encode_sentences([s for d in documents for s in d.sentences])
        image_ME = self.encode_images(features)
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
        """The links of a document, best first, as `LinkModel.link` gives them."""
        check_document(document)
        choices = LinkChoices(policy, max_links, threshold, min_confidence)
        if isinstance(features, np.ndarray):
            images, vectors = all_read(document), features
        else:
            (images,), vectors = self._source(features).read([document])
        return link_document(
            document,
            images,
            lambda readable: self.similarity_matrix(readable, vectors),
            self.calibration,
            choices,
        )

    def _text_features(self, sentences: list[str]) -> FloatArray:
        import torch

        text = self.module.config.text_config
        tokens = self.tokenizer(
            sentences,
            padding="max_length" if self.siglip else "longest",
            truncation=True,
            max_length=min(text.max_position_embeddings, self.tokenizer.model_max_length),
            return_tensors="pt",
        )
        largest = int(tokens["input_ids"].max())
        if largest >= text.vocab_size:
            raise BackboneError(
                f"The tokenizer gives a token {largest}, but the model knows {text.vocab_size}: "
                "the files of its folder do not belong together."
            )
        # SigLIP was trained without a mask: it reads what fills a sentence up, too.
        mask = None if self.siglip else tokens["attention_mask"]
        with torch.inference_mode():
            return pooled(self.module.get_text_features(tokens["input_ids"], attention_mask=mask))

    # ---- features

    #: The image half is always at hand.
    reads_images = True
    #: Its folder has no place for one, so that its links have no confidence.
    calibration = None

    @property
    def backbone(self) -> str:
        """Name of the image half, which features have to come from."""
        return self.image_backbone.name

    @property
    def feature_dimension(self) -> int:
        """How many numbers an image's features have."""
        return self.image_backbone.dimension

    def check_features(self, store: FeatureStore) -> None:
        """Refuse features that another backbone made."""
        if store.backbone and store.backbone != self.backbone:
            raise SightlineError(
                f"The features in {store.folder} come from {store.backbone}, but the model reads "
                f"those of its own image half, {self.backbone}."
            )
        if store.dimension != self.feature_dimension:
            raise SightlineError(
                f"The features in {store.folder} have {store.dimension} numbers an image, but the "
                f"model's have {self.feature_dimension}."
            )

    def _source(self, store: FeatureStore | None) -> ImageSource:
        if store is None:
            return ImageFiles(self.image_backbone)
        self.check_features(store)
        return StoredImages(store)

    def _image_features(
        self, documents: Sequence[Document], store: FeatureStore | None
    ) -> FloatArray:
        statuses, features = self._source(store).read(documents)
        for document, images in zip(documents, statuses, strict=True):
            for image in images:
                if image["status"] != "ok":
                    raise SightlineError(
                        f"Image {image['id']!r} of document {document.id!r} is "
                        f"{image['status']}: {image['reason']}"
                    )
        return features


#: What links documents: a model of ours, or a folder as its makers trained it.
Model = LinkModel | ClipModel


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit
