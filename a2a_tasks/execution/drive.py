"""Driving an agent's `run`, whatever it is: async generator, coroutine, generator or plain function.

All become one async iterator of what the agent says. Synchronous ones run in a thread of their own pool, one step
at a time; their next step is asked for only when the last one was taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.conf import conf

__all__ = ["drive", "in_thread"]

_threads: ThreadPoolExecutor | None = None
_END = object()


def _pool() -> ThreadPoolExecutor:
    global _threads  # noqa: PLW0603 - one pool a process
    if _threads is None:
        _threads = ThreadPoolExecutor(int(conf.AGENT_THREADS), thread_name_prefix="agent")
    return _threads


async def in_thread(work: Any, *args: Any) -> Any:
    def with_connections_closed() -> Any:
        try:
            return work(*args)
        except (
            StopIteration
        ) as end:  # a future takes any exception but this one, and would wait for ever
            raise RuntimeError("the agent raised StopIteration") from end
        finally:
            connections.close_all()  # an agent's own queries must not pin a connection to this thread

    return await asyncio.get_running_loop().run_in_executor(_pool(), with_connections_closed)


async def _steps(generator: Iterator[Any]) -> AsyncGenerator[Any, None]:
    try:
        while (said := await in_thread(next, generator, _END)) is not _END:
            yield said
    finally:
        close = getattr(generator, "close", None)
        if close is not None and not getattr(generator, "gi_running", False):
            await asyncio.shield(in_thread(close))


async def _synchronous(agent: Agent, turn: Turn) -> AsyncGenerator[Any, None]:
    answer = await in_thread(agent.run, turn)
    words = _steps(answer) if inspect.isgenerator(answer) else _asynchronous(answer)
    async with contextlib.aclosing(words):
        async for said in words:
            yield said


async def _asynchronous(answer: Any) -> AsyncGenerator[Any, None]:
    """What an async generator yields, a coroutine returns, or somebody returned at once; None says nothing."""
    if inspect.isasyncgen(answer):
        async with contextlib.aclosing(answer) as words:
            async for said in words:
                yield said
        return
    said = await answer if inspect.isawaitable(answer) else answer
    if said is not None:
        yield said


def drive(agent: Agent, turn: Turn) -> AsyncGenerator[Any, None]:
    """What the agent says about the turn, in order. Close it: then the agent is closed, too."""
    return _synchronous(agent, turn) if agent.synchronous else _asynchronous(agent.run(turn))
