"""Work that several requests want at the same time: done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


@dataclass
class _Work(Generic[Value]):
    task: asyncio.Task[Value]
    waiting: int = 0


class SharedWork(Generic[Value]):
    """Begins work that is not under way; ends it when nobody waits for it any more."""

    def __init__(self) -> None:
        self._under_way: dict[bytes, _Work[Value]] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._under_way

    async def __call__(self, key: bytes, begin: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Give the result of the work of this name."""
        work = self._under_way.get(key)
        if work is None:
            work = self._under_way[key] = _Work(asyncio.create_task(begin()))
            work.task.add_done_callback(lambda _: self._forget(key, work))
        work.waiting += 1
        try:
            # The one who began it may leave before the others.
            return await asyncio.shield(work.task)
        finally:
            work.waiting -= 1
            if not work.waiting:
                self._forget(key, work)
                work.task.cancel()

    def _forget(self, key: bytes, work: _Work[Value]) -> None:
        if self._under_way.get(key) is work:
            del self._under_way[key]
