"""What requests and answers look like; the OpenAPI description is made of these."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
)

from sightline.choices import LinkFormat, MaxLinks, Policy, Unit
from sightline.linking import LinkChoices

#: The forms of an answer of /v1/link: one JSON object, or what `sightline link` writes.
Form = Literal["json", LinkFormat]
AltForm = Literal["json", "text", "html"]
_MOST_LINKS = 10_000


def _content(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("expected the file's bytes as a base64 string")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"is not base64 ({error})") from None


Base64Content = Annotated[
    bytes,
    BeforeValidator(_content),
    WithJsonSchema({"type": "string", "format": "byte", "contentEncoding": "base64"}),
]


def _max_links(value: Any) -> MaxLinks:
    if value == "all" or value == "half":
        return "all" if value == "all" else "half"
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:9])
    # JSON's true is no number of links.
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_LINKS:
        raise ValueError(f"expected all, half or a number from 1 to {_MOST_LINKS:,}")
    return value


MaxLinksField = Annotated[
    MaxLinks,
    PlainValidator(_max_links),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["all", "half"]},
                {"type": "integer", "minimum": 1, "maximum": _MOST_LINKS},
            ]
        }
    ),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class LinkOptions(_Strict):
    """How links are chosen and what the answer holds; as the options of `sightline link`."""

    policy: Policy = Field("assignment", description="How the similarity matrix becomes links.")
    max_links: MaxLinksField = Field("all", description="all, half or a number of links.")
    threshold: float = Field(
        0.0, ge=-1, le=1, description="Of the policy threshold: similarity above it."
    )
    min_confidence: float = Field(
        0.0, ge=0, le=1, description="Leave out links that are less sure; calibrated models only."
    )
    matrix: bool = Field(False, description="Add the similarity matrix.")

    def choices(self) -> LinkChoices:
        """The same for the linking functions."""
        return LinkChoices(self.policy, self.max_links, self.threshold, self.min_confidence)


class ArticleOptions(LinkOptions):
    """The form fields beside an uploaded file."""

    unit: Unit = Field("sentence", description="What one sentence is.")


class InlineImage(_Strict):
    """An image inside a JSON document."""

    id: str | None = Field(None, max_length=1000, description="Any name; by default its place.")
    data: Base64Content = Field(description="The bytes of the image file in base64.")


class LinkRequest(LinkOptions):
    """A document with its images."""

    id: str | None = Field(None, max_length=1000, description="Comes back in the record.")
    sentences: list[str]
    images: list[InlineImage]


class FoundLink(BaseModel):
    """A sentence and an image that belong together, by their places in the document."""

    sentence: int
    image: int
    score: float = Field(description="Cosine similarity, from -1 to 1.")
    confidence: float | None = Field(description="From 0 to 1; null for a model without.")


class ImageState(BaseModel):
    """What became of an image; the last three only in articles."""

    model_config = ConfigDict(extra="allow")

    id: str
    status: str = Field(description="ok, missing, undecodable, too_large, unsupported, timeout.")
    reason: str | None
    alt: str | None = None
    caption: str | None = None
    position: int | None = None


Matrix = list[list[float | None]]


class LinkRecord(BaseModel):
    """The record that `sightline link` writes; the last five keys only for articles."""

    model_config = ConfigDict(extra="allow")

    id: str
    links: list[FoundLink]
    images: list[ImageState]
    sentences: list[str]
    matrix: Matrix | None = Field(None, description="Sentences x images; null columns: no image.")
    title: str | None = None
    lang: str | None = None
    spans: list[list[int]] | None = Field(None, description="[start, end] of each sentence.")
    left_out: dict[str, dict[str, int]] | None = None


class SimilarityRecord(BaseModel):
    """The similarity matrix of a document."""

    id: str
    matrix: Matrix = Field(description="Sentences x images; null where an image is not ok.")
    images: list[ImageState]
    sentences: list[str]


class AltRecord(BaseModel):
    """The record that `sightline alt --json` writes of an article."""

    model_config = ConfigDict(extra="allow")

    article: str
    findings: int
    images: list[dict[str, Any]]
    left_out: dict[str, int]


class ModelRecord(BaseModel):
    """A model that is loaded."""

    name: str
    backbone: str | None = Field(description="The image network.")
    dimension: int = Field(description="Of the space that sentences and images share.")
    words: int | None = Field(description="Known words; null for CLIP and SigLIP.")
    calibrated: bool = Field(description="Whether links have a confidence.")
    limits: dict[str, int | float] = Field(description="What one request may hold.")


class ModelList(BaseModel):
    """The models of this service."""

    models: list[ModelRecord]


class Health(BaseModel):
    """A sign of life."""

    status: Literal["ok"]


class Fault(BaseModel):
    """One field that cannot be used."""

    field: str
    reason: str


class ProblemDetails(BaseModel):
    """Why a request failed (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault]
