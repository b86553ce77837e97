"""The model at work for many requests: decoding, batches, cache; all CPU work off the event loop.

An image goes from its bytes through the cache, a decoding worker process and the backbone's
batcher to features; sentences go through the encoder's batcher. What then belongs to one document
alone (links, forms of the answer) is computed in a thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sightline.clip_model import Model
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.image_features import FloatArray, ImageStatus, groups
from sightline.images import Limits, Status
from sightline.link_records import open_model
from sightline.model import LinkModel
from sightline.problems import SightlineError
from sightline.service.batching import Batcher
from sightline.service.feature_cache import FeatureCache, ImageResult, content_key
from sightline.service.limits import ServiceLimits
from sightline.service.metrics import Metrics
from sightline.service.shared_work import SharedWork

Value = TypeVar("Value")

#: Per run of a network. On 2 cores, 8 images take no more CPU time each than any other number.
_BATCH_IMAGES = 8
_BATCH_SENTENCES = 256
#: Of one document in one batch, so that a book does not hold up everybody else.
_SENTENCES_AT_ONCE = 64
#: How long an idle service waits for company.
_BATCH_SECONDS = 0.003
#: Images of one request, and of all, between decoding and features: 0.6 MB each.
_IMAGES_OF_REQUEST = 16
_IMAGES_UNDER_WAY = 64
#: Bytes that take the event loop less time to hash than to hand to a thread and back.
_HASHED_AT_ONCE = 200_000
#: Address space of a decoding worker; what takes more is `too_large`.
_DECODER_BYTES = 600_000_000


@dataclass(frozen=True, slots=True)
class WaitingImage:
    """An image of a document: its name, and what to decode or why there is nothing."""

    name: str
    content: Path | bytes | None
    status: Status = Status.missing
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class KnownImages:
    """Images whose features are computed (an `image_features.ImageSource` of one document)."""

    names: Sequence[str]
    results: Sequence[ImageResult]
    dimension: int

    def read(self, documents: Sequence[Document]) -> tuple[list[list[ImageStatus]], FloatArray]:
        """The states of the images, and the features of those that are ok."""
        assert len(documents) == 1
        statuses: list[ImageStatus] = [
            {"id": name, "status": str(result.status), "reason": result.reason}
            for name, result in zip(self.names, self.results, strict=True)
        ]
        vectors = [result.features for result in self.results if result.features is not None]
        empty = np.empty((0, self.dimension), np.float32)
        return [statuses], np.stack(vectors) if vectors else empty


def with_vectors(model: Model, vectors: FloatArray) -> Model:
    """The same model for one document, whose sentences were encoded before, in a batch."""
    prepared = copy(model)
    # Both classes are frozen for everybody else; this copy lives for one call.
    object.__setattr__(prepared, "encode_sentences", lambda _: vectors)
    return prepared


class Engine:
    """One model and what it needs to serve, between `start` and `stop`."""

    def __init__(
        self, name: str, model: Model, pool: DecodePool, limits: ServiceLimits, metrics: Metrics
    ) -> None:
        self.name = name
        self.model = model
        self.pool = pool
        self.metrics = metrics
        self.cache = FeatureCache(limits.cached_images)
        self.under_way: SharedWork[ImageResult] = SharedWork()
        self.backbone = model.image_backbone
        # Two per process: one waits for it while the other prepares what it gave.
        self.decoding = ThreadPoolExecutor(2 * pool.workers, "decoding")
        self.networks = ThreadPoolExecutor(2, "networks")
        self.threads = ThreadPoolExecutor(max(2, os.cpu_count() or 1), "documents")
        self.room = asyncio.Semaphore(_IMAGES_UNDER_WAY)
        self.images: Batcher[FloatArray, FloatArray] = Batcher(
            lambda inputs: list(self.backbone.features(np.stack(inputs))),
            self.networks,
            _BATCH_IMAGES,
            _BATCH_SECONDS,
            observe=metrics.batches.labels("images").observe,
            queued=metrics.queued.labels("images").set,
        )
        self.sentences: Batcher[list[str], FloatArray] = Batcher(
            self._encode,
            self.networks,
            _BATCH_SENTENCES,
            _BATCH_SECONDS,
            weight=len,
            observe=metrics.batches.labels("sentences").observe,
            queued=metrics.queued.labels("sentences").set,
        )
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to take work; from the event loop."""
        self._tasks = [
            asyncio.create_task(self.images.run()),
            asyncio.create_task(self.sentences.run()),
        ]

    async def stop(self) -> None:
        """Take no more work and end the workers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.pool.close()
        for executor in (self.decoding, self.networks, self.threads):
            executor.shutdown(wait=False, cancel_futures=True)

    @property
    def shown_name(self) -> str:
        """The name of the model in answers: the folders above it are nobody's business."""
        return Path(self.name).name

    @property
    def dimension(self) -> int:
        """Of the space that sentences and images share."""
        if isinstance(self.model, LinkModel):
            return self.model.settings.dimension
        return self.model.feature_dimension

    async def in_thread(self, compute: Callable[..., Value], *arguments: Any) -> Value:
        """Compute something for one document off the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, compute, *arguments)

    async def encode_sentences(self, sentences: Sequence[str]) -> FloatArray:
        """Unit vectors of sentences, in their order."""
        parts = [self.sentences(group) for group in groups(sentences, _SENTENCES_AT_ONCE)]
        return np.concatenate(await _together(parts) or [self._encode([[]])[0]])

    async def encode_images(self, images: Sequence[WaitingImage]) -> KnownImages:
        """What becomes of each image, in their order."""
        own_room = asyncio.Semaphore(_IMAGES_OF_REQUEST)

        async def one(image: WaitingImage) -> ImageResult:
            if image.content is None:
                return ImageResult(image.status, image.reason)
            async with own_room, self.room:
                return await self._image(image.content)

        results = await _together([one(image) for image in images])
        return KnownImages([i.name for i in images], results, self.backbone.dimension)

    async def _image(self, content: Path | bytes) -> ImageResult:
        if isinstance(content, Path):
            try:
                content = await self.in_thread(content.read_bytes)
            except OSError as error:
                return ImageResult(Status.missing, f"The file cannot be read: {error.strerror}.")
        if len(content) <= _HASHED_AT_ONCE:
            key = content_key(content)
        else:
            key = await self.in_thread(content_key, content)
        known = self.cache.find(key)
        if known is not None:
            self.metrics.cache.labels("hit").inc()
            return known
        self.metrics.cache.labels("shared" if key in self.under_way else "miss").inc()
        return await self.under_way(key, partial(self._features, key, content))

    async def _features(self, key: bytes, content: bytes) -> ImageResult:
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self.decoding, self._prepare, content)
        if isinstance(prepared, ImageResult):
            result = prepared
        else:
            result = ImageResult(Status.ok, None, await self.images(prepared))
        self.cache.keep(key, result)
        return result

    def _prepare(self, content: bytes) -> FloatArray | ImageResult:
        """The backbone's input of an image, or why there is none."""
        preprocessing = self.backbone.preprocessing
        (decoded,) = self.pool.decode_many(
            [content], preprocessing.shorter_side, preprocessing.interpolation
        )
        if decoded.pixels is None:
            return ImageResult(decoded.status, decoded.reason)
        return self.backbone.preprocess(decoded.pixels)

    def _encode(self, parts: list[list[str]]) -> list[FloatArray]:
        vectors = self.model.encode_sentences([s for part in parts for s in part])
        ends = np.cumsum([len(part) for part in parts])
        return np.split(vectors, ends[:-1])


def load_engine(name: str, limits: ServiceLimits, metrics: Metrics) -> Engine:
    """Load a model, start its decoders, and run it once, so that the first request is quick."""
    model = open_model(name)
    if not model.reads_images:
        raise SightlineError(
            f"The image network of the model {name} does not come with the package, so that it "
            "cannot read images; serve another model."
        )
    pool = DecodePool(limits=Limits(
        file_bytes=limits.body_bytes, pixels=limits.pixels, memory_bytes=_DECODER_BYTES
    ))  # fmt: skip
    pool.__enter__()
    try:
        engine = Engine(name, model, pool, limits, metrics)
        # Nothing of it can be decoded, but every worker process has to start for it.
        list(pool.decode_many([b"warm up"] * pool.workers))
        side = engine.backbone.preprocessing.crop
        engine.backbone.features(np.zeros((1, 3, side, side), np.float32))
        model.encode_sentences(["A sentence."])
    except BaseException:
        pool.close()
        raise
    return engine


async def _together(parts: Sequence[Any]) -> list[Any]:
    """All results in order; if one fails or the caller is cancelled, the rest is dropped."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
