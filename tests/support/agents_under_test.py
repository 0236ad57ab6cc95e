"""Agents that do what a test tells them: registered for as long as a block lasts."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn, registry

__all__ = ["look_at_nothing", "playing", "until_stopped", "until_told"]

_numbers = itertools.count(1)


@contextmanager
def playing(run: Callable[..., Any], **attributes: Any) -> Iterator[Agent]:
    """Host an agent whose `run` is this function of one turn, whatever kind of function it is."""
    members = {
        "slug": f"scripted-{next(_numbers)}",
        "name": "Scripted",
        "description": "Does as the test says.",
        "skills": [Skill("script", "Script", "Does as the test says.", tags=["test"])],
        **attributes,
        "run": staticmethod(run),
    }
    cls: type[Agent] = type("Scripted", (Agent,), members)
    registry.register(cls)
    try:
        agent = registry.find_hosted(cls.slug)
        assert agent is not None
        yield agent
    finally:
        registry._found.pop(cls.slug, None)
        cls.abstract = True  # nobody finds it again among the subclasses


def until_stopped(stopped: asyncio.Event) -> Callable[[Turn], AsyncIterator[Any]]:
    """An async agent that works until it is stopped, and tells of that."""

    async def run(turn: Turn) -> AsyncIterator[Any]:
        try:
            yield turn.working()
            await asyncio.Event().wait()
        finally:
            stopped.set()

    return run


def until_told(turn: Turn) -> None:
    """Work in a thread and look now and then whether to stop, as the guide wants it."""
    pause = threading.Event()
    while not turn.cancelled:
        pause.wait(0.01)


def look_at_nothing() -> None:
    """Keep a core busy until the process is killed."""
    while True:
        pass
