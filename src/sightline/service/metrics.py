"""Counters and histograms for Prometheus."""

from __future__ import annotations

import os

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Where several worker processes put their numbers together, if there are several.
_SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30)
_ITEMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The numbers of one process; with several workers, an answer has the sum of all."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sightline_requests",
            "Requests answered.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "sightline_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batches = Histogram(
            "sightline_batch_items",
            "Images or sentences computed together.",
            ["kind"],
            buckets=_ITEMS,
            registry=self.registry,
        )
        self.cache = Counter(
            "sightline_image_cache",
            "Images looked up in the cache.",
            ["result"],
            registry=self.registry,
        )
        self.active = Gauge(
            "sightline_requests_active",
            "Requests that are read or worked on.",
            multiprocess_mode="livesum",
            registry=self.registry,
        )
        self.queued = Gauge(
            "sightline_queue_items",
            "Images or sentence groups that wait to be computed.",
            ["kind"],
            multiprocess_mode="livesum",
            registry=self.registry,
        )
        self.ready = Gauge(
            "sightline_ready",
            "Processes that have their model loaded.",
            multiprocess_mode="livesum",
            registry=self.registry,
        )

    def text(self) -> bytes:
        """All numbers in Prometheus's text format."""
        if _SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
        return generate_latest(everyone)
