"""What an agent asks the host for: awaited by asynchronous agents, waited for by those in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

__all__ = ["Later", "begun_on"]

T = TypeVar("T")


def begun_on(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> Future[T]:
    """Begin it on the host's loop, from a thread. RuntimeError on the loop's own thread, where it would never end."""

    async def done() -> T:
        return await work()

    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        raise RuntimeError("use await in an async agent")
    return asyncio.run_coroutine_threadsafe(done(), loop)


class Later(Generic[T]):
    """Something read only if asked for: `await turn.history`, or `turn.history.now()` in a synchronous agent."""

    def __init__(self, load: Callable[[], Awaitable[T]], loop: asyncio.AbstractEventLoop) -> None:
        self._load, self.loop = load, loop

    def __await__(self) -> Generator[Any, None, T]:
        return self._load().__await__()

    def now(self) -> T:
        """Wait for it in a thread. RuntimeError on the event loop's own thread, where it would never come."""
        return begun_on(self.loop, self._load).result()
