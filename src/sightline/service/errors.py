"""What is wrong with a request, as problem details (RFC 9457) that name the field."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from pydantic import ValidationError
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
#: What went wrong, for programs; the words after the colon are stable.
_TYPES = {
    400: "malformed",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "too-large",
    415: "unsupported-media-type",
    421: "wrong-host",
    422: "invalid",
    429: "busy",
    500: "internal",
    503: "unavailable",
}
Fault = tuple[str, str]


class ServiceError(Exception):
    """A request that is not answered as it wishes; `faults` are fields with their reasons."""

    def __init__(
        self,
        status: int,
        detail: str,
        faults: Sequence[Fault] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.faults = list(faults)
        self.headers = headers or {}


def invalid(field: str, reason: str) -> ServiceError:
    """The error for one field that cannot be used."""
    return ServiceError(422, f"{field}: {reason}", [(field, reason)])


def too_large(field: str, reason: str) -> ServiceError:
    """The error for a request of too many bytes."""
    return ServiceError(413, reason, [(field, reason)])


def busy(status: int, detail: str, seconds: float = 0.0) -> ServiceError:
    """The error for a request that may succeed later, after about so many seconds."""
    return ServiceError(status, detail, headers={"Retry-After": str(max(1, math.ceil(seconds)))})


def from_validation(error: ValidationError) -> ServiceError:
    """All faults that pydantic found."""
    faults = [
        (_place(fault["loc"]) or "body", str(fault["msg"]).removeprefix("Value error, "))
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return _from_faults(faults)


def _place(parts: Iterable[object]) -> str:
    return ".".join(map(str, parts))


def _from_faults(faults: list[Fault]) -> ServiceError:
    field, reason = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return ServiceError(422, f"{field}: {reason}{more}", faults[:100])


def from_request_faults(errors: Iterable[dict[str, Any]]) -> ServiceError:
    """The faults of a query, which FastAPI checks itself."""
    faults = [(_place(error.get("loc", ())[1:]) or "query", str(error["msg"])) for error in errors]
    return _from_faults(faults or [("query", "it cannot be used")])


def problem_response(error: ServiceError) -> Response:
    """The answer to a request that failed."""
    return Response(
        _problem_json(error), error.status, headers=error.headers, media_type=MEDIA_TYPE
    )


def _problem_json(error: ServiceError) -> bytes:
    """The problem details as JSON; whatever a client sent is made writable."""
    record = {
        "type": f"urn:sightline:problem:{_TYPES.get(error.status, 'other')}",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": _text(error.detail),
        "errors": [
            {"field": _text(field), "reason": _text(reason)} for field, reason in error.faults
        ],
    }
    return orjson.dumps(record)


def _text(text: str) -> str:
    """Replace half surrogate pairs, which JSON cannot hold."""
    return text.encode("utf-8", "replace").decode()
