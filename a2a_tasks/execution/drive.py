"""Driving an agent's `run`, whatever it is: async generator, coroutine, generator or plain function.

All become one async iterator of what the agent says. Synchronous ones run in a thread of their own pool, one step
at a time; their next step is asked for only when the last one was taken.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.conf import conf

__all__ = ["drive"]

_threads: ThreadPoolExecutor | None = None
_END = object()


def _pool() -> ThreadPoolExecutor:
    global _threads  # noqa: PLW0603 - one pool a process
    if _threads is None:
        _threads = ThreadPoolExecutor(int(conf.AGENT_THREADS), thread_name_prefix="agent")
    return _threads


async def _in_thread(work: Any, *args: Any) -> Any:
    def with_connections_closed() -> Any:
        try:
            return work(*args)
        finally:
            connections.close_all()  # an agent's own queries must not pin a connection to this thread

    return await asyncio.get_running_loop().run_in_executor(_pool(), with_connections_closed)


async def _steps(generator: Iterator[Any]) -> AsyncIterator[Any]:
    try:
        while (said := await _in_thread(next, generator, _END)) is not _END:
            yield said
    finally:
        close = getattr(generator, "close", None)
        if close is not None and not getattr(generator, "gi_running", False):
            await asyncio.shield(_in_thread(close))


async def _synchronous(agent: Agent, turn: Turn) -> AsyncIterator[Any]:
    answer = await _in_thread(agent.run, turn)
    if inspect.isgenerator(answer):
        async for said in _steps(answer):
            yield said
    elif inspect.isawaitable(answer):
        yield await answer
    elif answer is not None:
        yield answer


async def drive(agent: Agent, turn: Turn) -> AsyncGenerator[Any, None]:
    """Yield what the agent says about the turn, in order."""
    if agent.synchronous:
        async for said in _synchronous(agent, turn):
            yield said
        return
    answer: Any = agent.run(turn)
    if inspect.isasyncgen(answer):
        try:
            async for said in answer:
                yield said
        finally:
            await answer.aclose()
    elif (said := await answer) is not None:
        yield said
