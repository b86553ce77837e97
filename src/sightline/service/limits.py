"""What one request, and all of them together, may cost the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """More than this is refused (413, 422) or has to wait and come again (429, 503)."""

    # Bytes of one request, counted as they arrive, and of all requests that are under way.
    body_bytes: int = 32 * 2**20
    bodies_bytes: int = 256 * 2**20
    # Of one document. Its matrix and its candidates for alternative text grow with the pairs.
    images: int = 200
    sentences: int = 5_000
    characters: int = 1_000_000
    pairs: int = 250_000
    # Of one image, as its header says them.
    pixels: int = 50_000_000
    # From the first byte of a request to its answer, and from SIGTERM to the end.
    seconds: float = 30.0
    stop_seconds: float = 30.0
    # Requests that are read or worked on at a time; further ones are refused at once.
    requests: int = 64
    # Uploads that are unpacked at a time; further ones wait.
    articles: int = 8
    # Unpacked bytes of one archive.
    unpacked_bytes: int = 128 * 2**20
    # Images whose features are kept: 5 kB each.
    cached_images: int = 10_000
