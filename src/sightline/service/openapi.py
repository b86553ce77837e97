"""The parts of the OpenAPI description that FastAPI cannot see: bodies and other forms."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from sightline.link_outputs import MEDIA_TYPES
from sightline.service.errors import MEDIA_TYPE
from sightline.service.schemas import (
    AltRecord,
    ArticleOptions,
    LinkRecord,
    LinkRequest,
    ProblemDetails,
    SimilarityRecord,
)

Responses = dict[int | str, dict[str, Any]]

#: The smallest picture there is, for examples that can be tried: one grey pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
_DOCUMENT = {
    "id": "doc-1",
    "sentences": ["A dog runs over the grass.", "A cat sleeps on the sofa."],
    "images": [{"id": "dog.jpg", "data": PIXEL}],
    "policy": "assignment",
    "matrix": True,
}
_RECORD = {
    "id": "doc-1",
    "links": [{"sentence": 0, "image": 0, "score": 0.41, "confidence": None}],
    "images": [{"id": "dog.jpg", "status": "ok", "reason": None}],
    "sentences": ["A dog runs over the grass.", "A cat sleeps on the sofa."],
    "matrix": [[0.41], [0.07]],
}
_PROBLEM = {
    "type": "urn:sightline:problem:invalid",
    "title": "Unprocessable Content",
    "status": 422,
    "detail": "images.0.data: is not base64 (Incorrect padding)",
    "errors": [{"field": "images.0.data", "reason": "is not base64 (Incorrect padding)"}],
}
_TEXT = {"schema": {"type": "string"}}


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """A schema that stands for itself: none of it is a component elsewhere."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def resolved(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return resolved(definitions[value["$ref"].rpartition("/")[2]])
            return {key: resolved(one) for key, one in value.items()}
        return [resolved(one) for one in value] if isinstance(value, list) else value

    found: dict[str, Any] = resolved(schema)
    return found


def _form(fields: tuple[str, ...] | None = None) -> dict[str, Any]:
    """The schema of a form with an uploaded file."""
    options = _schema(ArticleOptions)["properties"]
    file = {"type": "string", "format": "binary", "description": "The article or document."}
    images = {
        "type": "array",
        "items": {"type": "string", "format": "binary"},
        "description": "Images that the file refers to by name.",
    }
    chosen = {name: schema for name, schema in options.items() if not fields or name in fields}
    return {
        "type": "object",
        "required": ["file"],
        "properties": {"file": file, "images": images, **chosen},
        "additionalProperties": False,
    }


def _problems(*statuses: int) -> Responses:
    words = {
        400: "The body cannot be read.",
        401: "A token is needed.",
        413: "The body is too large.",
        415: "The body is of another type.",
        421: "The service is not called by this name.",
        422: "A field cannot be used; it is named.",
        429: "Too many requests are under way; come again after `Retry-After`.",
        503: "Not ready, or out of time; come again after `Retry-After`.",
    }
    content = {MEDIA_TYPE: {"schema": _schema(ProblemDetails), "example": _PROBLEM}}
    return {status: {"description": words[status], "content": content} for status in statuses}


_ALL = _problems(400, 401, 413, 415, 421, 422, 429, 503)
PLAIN_RESPONSES: Responses = _problems(401, 421, 503)
LINK_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _schema(LinkRequest), "example": _DOCUMENT},
            "multipart/form-data": {"schema": _form()},
        },
    }
}
ALT_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _form()}}}
}
LINK_RESPONSES: Responses = {
    200: {
        "description": "The record, in the form that was asked for.",
        "content": {
            "application/json": {"schema": _schema(LinkRecord), "example": _RECORD},
            **dict.fromkeys(MEDIA_TYPES.values(), _TEXT),
            MEDIA_TYPES["annotations"]: {"schema": {"type": "object"}},
        },
    },
    **_ALL,
}
SIMILARITY_RESPONSES: Responses = {
    200: {
        "description": "The matrix.",
        "content": {"application/json": {"schema": _schema(SimilarityRecord)}},
    },
    **_ALL,
}
ALT_RESPONSES: Responses = {
    200: {
        "description": "The audit and the candidates of each image.",
        "content": {
            "application/json": {"schema": _schema(AltRecord)},
            "text/plain": _TEXT,
            "text/html": _TEXT,
        },
    },
    **_ALL,
}
