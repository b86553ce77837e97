"""Logs: one JSON object a line on standard error."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import orjson

from sightline.verbosity import is_quiet

LOGGER = logging.getLogger("sightline.service")


class JsonLines(logging.Formatter):
    """A log record as one line of JSON; `extra={"fields": {...}}` adds keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(_writable(line)).decode()


def _writable(line: dict[str, Any]) -> dict[str, Any]:
    """Replace half surrogate pairs, which JSON cannot hold."""
    return {
        key: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for key, value in line.items()
    }


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its facts."""
    LOGGER.log(level, event, extra={"fields": fields})


def log_config() -> dict[str, Any]:
    """The configuration that uvicorn sets up in each process."""
    handler = {"class": "logging.StreamHandler", "formatter": "json"}
    level = "ERROR" if is_quiet() else "INFO"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "sightline.service.logs.JsonLines"}},
        "handlers": {"stderr": handler},
        "loggers": {
            "uvicorn": {"handlers": ["stderr"], "level": level, "propagate": False},
            "sightline.service": {"handlers": ["stderr"], "level": level, "propagate": False},
        },
    }
