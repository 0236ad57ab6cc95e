"""Values that the host loads on demand: async agents await them, agents in a thread wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

__all__ = ["Later", "begin_on", "is_running_here"]

T = TypeVar("T")


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this code runs on that event loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def begin_on(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> Future[T]:
    """Start work on the host's event loop, from a thread. RuntimeError on the loop's own thread: it would deadlock."""

    async def done() -> T:
        return await work()

    if is_running_here(loop):
        raise RuntimeError("use await in an async agent")
    return asyncio.run_coroutine_threadsafe(done(), loop)


class Later(Generic[T]):
    """A value that is loaded on demand: `await turn.history`, or `turn.history.now()` in a synchronous agent."""

    def __init__(self, load: Callable[[], Awaitable[T]], loop: asyncio.AbstractEventLoop) -> None:
        self._load, self.loop = load, loop

    def __await__(self) -> Generator[Any, None, T]:
        return self._load().__await__()

    def now(self) -> T:
        """Wait for the value in a thread. RuntimeError on the event loop's own thread: it would deadlock."""
        return begin_on(self.loop, self._load).result()
