"""Calling an agent's `run` of any kind: async generator, coroutine, generator or plain function.

All become one async iterator of the agent's values. Synchronous ones run in threads, one step at a time: the next step
starts only after its value was consumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator
from types import GeneratorType
from typing import Any

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.execution.run_threads import RunThreads
from a2a_tasks.protocol.lifecycle import INTERRUPTED

__all__ = ["drive"]

_END = object()


def _step(generator: GeneratorType[Any, None, Any], threads: RunThreads) -> Any:
    """Return the generator's next value. If the run was stopped meanwhile, close the generator in its own thread."""
    value = next(generator, _END)
    if threads.stopped:
        generator.close()
    return value


async def _steps(
    generator: GeneratorType[Any, None, Any], turn: Turn, threads: RunThreads
) -> AsyncGenerator[Any, None]:
    try:
        while (value := await threads.in_thread(_step, generator, threads)) is not _END:
            _note(turn, value, generator)
            yield value
    finally:
        if not generator.gi_running:
            await asyncio.shield(threads.in_thread(generator.close))


def _call(agent: Agent, turn: Turn, threads: RunThreads) -> Any:
    threads.begun = True
    return agent.run(turn)


async def _synchronous(agent: Agent, turn: Turn, threads: RunThreads) -> AsyncGenerator[Any, None]:
    answer = await threads.in_thread(_call, agent, turn, threads)
    if isinstance(answer, GeneratorType):
        values = _steps(answer, turn, threads)
    else:
        values = _asynchronous(answer, turn)
    async with contextlib.aclosing(values):
        async for value in values:
            yield value


async def _asynchronous(answer: Any, turn: Turn) -> AsyncGenerator[Any, None]:
    """Yield the values of an async generator, the result of a coroutine, or a plain value; None is skipped."""
    try:
        if inspect.isasyncgen(answer):
            async with contextlib.aclosing(answer) as values:
                async for value in values:
                    _note(turn, value, values)
                    yield value
            return
        value = await answer if inspect.isawaitable(answer) else answer
        if value is not None:
            _note(turn, value, None)
            yield value
    finally:
        await turn._close()  # noqa: SLF001 - private to agents, not to the host


def _note(turn: Turn, value: Any, where: Any) -> None:
    """Note that the agent yielded a value, and from which generator: an error about the value names its line."""
    turn._unused.note_use(value)  # noqa: SLF001 - private to agents, not to the host
    turn.conversation.note_word(asks=isinstance(value, StatusUpdate) and value.state in INTERRUPTED)
    turn._source = where  # noqa: SLF001


def drive(agent: Agent, turn: Turn, threads: RunThreads | None = None) -> AsyncGenerator[Any, None]:
    """Yield the agent's values for a turn, in order. The iterator must be closed, which closes the agent, too."""
    place = threads or RunThreads(agent.slug)
    if agent.synchronous:
        return _synchronous(agent, turn, place)
    return _asynchronous(_call(agent, turn, place), turn)
