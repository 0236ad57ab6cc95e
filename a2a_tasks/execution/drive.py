"""Driving an agent's `run`, whatever it is: async generator, coroutine, generator or plain function.

All become one async iterator of what the agent says. Synchronous ones run in threads, one step at a time; their
next step is asked for only when the last one was taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator
from types import GeneratorType
from typing import Any

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.execution.workplace import Workplace

__all__ = ["drive"]

_END = object()


def _step(generator: GeneratorType[Any, None, Any], workplace: Workplace) -> Any:
    """The generator's next word. If nobody wants it any more, the generator is closed where it has been running."""
    said = next(generator, _END)
    if workplace.stopped:
        generator.close()
    return said


async def _steps(
    generator: GeneratorType[Any, None, Any], turn: Turn, workplace: Workplace
) -> AsyncGenerator[Any, None]:
    try:
        while (said := await workplace.in_thread(_step, generator, workplace)) is not _END:
            _note(turn, said, generator)
            yield said
    finally:
        if not generator.gi_running:
            await asyncio.shield(workplace.in_thread(generator.close))


def _call(agent: Agent, turn: Turn, workplace: Workplace) -> Any:
    workplace.begun = True
    return agent.run(turn)


async def _synchronous(agent: Agent, turn: Turn, workplace: Workplace) -> AsyncGenerator[Any, None]:
    answer = await workplace.in_thread(_call, agent, turn, workplace)
    if isinstance(answer, GeneratorType):
        words = _steps(answer, turn, workplace)
    else:
        words = _asynchronous(answer, turn)
    async with contextlib.aclosing(words):
        async for said in words:
            yield said


async def _asynchronous(answer: Any, turn: Turn) -> AsyncGenerator[Any, None]:
    """What an async generator yields, a coroutine returns, or somebody returned at once; None says nothing."""
    if inspect.isasyncgen(answer):
        async with contextlib.aclosing(answer) as words:
            async for said in words:
                _note(turn, said, words)
                yield said
        return
    said = await answer if inspect.isawaitable(answer) else answer
    if said is not None:
        _note(turn, said, None)
        yield said


def _note(turn: Turn, said: Any, where: Any) -> None:
    """Note that the agent used what it said, and which generator said it: an error in it names the generator's line."""
    turn._unused.used(said)  # noqa: SLF001 - what the agent is not to see of its turn
    turn._speaker = where  # noqa: SLF001


def drive(
    agent: Agent, turn: Turn, workplace: Workplace | None = None
) -> AsyncGenerator[Any, None]:
    """What the agent says about the turn, in order. Close it: then the agent is closed, too."""
    place = workplace or Workplace(agent.slug)
    if agent.synchronous:
        return _synchronous(agent, turn, place)
    return _asynchronous(_call(agent, turn, place), turn)
