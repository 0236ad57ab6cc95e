"""Calls that only look: no drain waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from a2a_tasks.bindings.grpc.call import Call, Handler

__all__ = ["Onlookers"]


class Onlookers:
    """Those that are open, wherever they wait: for a message, for news, or for a client that does not read."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._ended = False

    def of(self, handlers: Mapping[bytes, Handler]) -> Mapping[bytes, Handler]:
        """The same handlers, whose calls are ended with the others."""
        return {path: self._looking(handler) for path, handler in handlers.items()}

    def end(self) -> None:
        """End them, when whoever was told of it has had a turn to say so."""
        self._ended = True
        for task in self._tasks:
            _soon(task)

    def _looking(self, handler: Handler) -> Handler:
        async def look(call: Call) -> None:
            task = asyncio.current_task()
            self._tasks.add(task)
            if self._ended:  # it was on its way
                _soon(task)
            try:
                await handler(call)
            finally:
                self._tasks.discard(task)

        return look


def _soon(task: asyncio.Task[Any] | None) -> None:
    if task is not None:
        asyncio.get_running_loop().call_soon(task.cancel)
