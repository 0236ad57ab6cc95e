"""Agents that are executors of the a2a-sdk, unchanged. docs/frameworks/executor.md is the guide."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from a2a_frameworks.shared.base import FrameworkAgent, resolve
from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Emission, Reply, StatusUpdate
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL

__all__ = ["ExecutorAgent"]


class ExecutorAgent(FrameworkAgent, abstract=True):
    """An agent that an `a2a.server.agent_execution.AgentExecutor` of a2a-sdk 1.x works for."""

    framework = "a2a"
    attribute = "executor"
    #: The executor; one for all turns, as in the server of the a2a-sdk.
    executor: ClassVar[Any] = None
    #: Longest time for the executor to clean up after its last event, in seconds; the client waits for it.
    cleanup_seconds: ClassVar[float] = 5.0
    #: Longest time for the executor to end when it is cancelled, and for its `cancel`, in seconds.
    cancel_seconds = 2.0

    def find_fault(self, hosted: Any) -> str:
        """Return why the executor cannot be hosted; empty = it can."""
        if isinstance(hosted, type):
            return f"is the class {hosted.__name__}, not an executor"
        fits = all(callable(getattr(hosted, name, None)) for name in ("execute", "cancel"))
        return "" if fits else "needs the methods execute and cancel"

    async def cancelled(self, turn: Turn) -> None:
        """Call the executor's `cancel` for a task that was cancelled while it waited."""
        from a2a_frameworks.executor.call import cancel_waiting  # noqa: PLC0415

        await cancel_waiting(await resolve(self.build(turn)), turn)

    async def run(self, turn: Turn) -> AsyncIterator[Emission]:
        """Answer one message with the events of the executor."""
        # the server of the a2a-sdk is not loaded before it is needed
        from a2a_frameworks.executor.call import ExecutorCall  # noqa: PLC0415

        executor = await resolve(self.build(turn))
        call = await ExecutorCall.begin(executor, turn, may_reply=self.replies_directly)
        over = asks = False
        try:
            while (said := await call.next()) is not None:
                over = isinstance(said, Reply) or (
                    isinstance(said, StatusUpdate) and said.state in TERMINAL
                )
                asks = isinstance(said, StatusUpdate) and said.state in INTERRUPTED
                yield said
        finally:
            await call.end(self.cleanup_seconds if over else 0, self.cancel_seconds)
            if turn.cancelled and not asks:  # else `cancelled` is called
                await call.cancel(self.cancel_seconds)
