"""Executors of the a2a-sdk for tests, of any version of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue

__all__ = ["Scripted", "Work"]

Work = Callable[[RequestContext, EventQueue], Awaitable[None]]


class Scripted(AgentExecutor):
    """An executor that does what a test says."""

    def __init__(self, work: Work, cancel: Work | None = None) -> None:
        self._work, self._cancel = work, cancel

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do it."""
        await self._work(context, event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel as the test says, or as most samples do."""
        if self._cancel is None:
            raise NotImplementedError("cancel not supported")
        await self._cancel(context, event_queue)
