"""Work of many requests done together.

While one batch is computed the next one gathers, so that under load batches are as large as they
may be and nobody waits for company; only an idle service waits, for a few milliseconds, whether
more comes (the scheme of Triton's dynamic batcher and of text-embeddings-inference). Work whose
request was cancelled is dropped before it costs anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Gathers items and computes them in batches, one at a time, in a thread."""

    def __init__(
        self,
        compute: Callable[[list[Item]], Sequence[Result]],
        executor: Executor,
        most: int,
        seconds: float,
        weight: Callable[[Item], int] = lambda _: 1,
        observe: Callable[[int], None] = lambda _: None,
        queued: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`most` bounds the total weight of a batch; `seconds` is how long it may gather.

        `observe` hears of the weight of each batch, `queued` how many items wait.
        """
        self.compute = compute
        self.executor = executor
        self.most = most
        self.seconds = seconds
        self.weight = weight
        self.observe = observe
        self.queued = queued
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._weight = 0
        self._arrival = asyncio.Event()
        self._full = asyncio.Event()

    async def __call__(self, item: Item) -> Result:
        """Give the result for one item."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        self._weight += self.weight(item)
        self.queued(len(self._waiting))
        self._arrival.set()
        if self._weight >= self.most:
            self._full.set()
        return await future

    async def run(self) -> None:
        """Compute batches until cancelled."""
        while True:
            await self._arrival.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.seconds):
                    await self._full.wait()
            if batch := self._take():
                self.observe(sum(self.weight(item) for item, _ in batch))
                await self._compute(batch)

    def _take(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        total = 0
        while self._waiting:
            item, future = self._waiting[0]
            weight = self.weight(item)
            if batch and not future.done() and total + weight > self.most:
                break
            self._waiting.popleft()
            self._weight -= weight
            if not future.done():
                batch.append((item, future))
                total += weight
        self.queued(len(self._waiting))
        if not self._waiting:
            self._arrival.clear()
        if self._weight < self.most:
            self._full.clear()
        return batch

    async def _compute(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        items = [item for item, _ in batch]
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self.executor, self.compute, items)
        except Exception as error:
            if len(batch) > 1:
                # What one item breaks must not be the others' loss.
                for one in batch:
                    if not one[1].done():
                        await self._compute([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
