"""Agents that do what a test tells them: registered for as long as a block lasts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from a2a_tasks.agents import Agent, Skill, registry

__all__ = ["playing"]

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
        agent = registry.hosted(cls.slug)
        assert agent is not None
        yield agent
    finally:
        registry._found.pop(cls.slug, None)
        cls.abstract = True  # nobody finds it again among the subclasses
