"""Agents whose tasks are told of: what they are asked is a number of words, and the seconds before each, `10 0.05`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn

__all__ = ["Large", "Teller", "Writer"]


class Told(Agent, abstract=True):
    """What they have in common."""

    description = "Of the farm."
    skills = [Skill("tell", "Tell", "Goes on for as long as asked", tags=["test"])]
    push_notifications = True


def asked(turn: Turn) -> tuple[int, float]:
    """How many words, and the seconds before each."""
    count, _, pace = turn.text.partition(" ")
    return int(count), float(pace or 0)


class Teller(Told):
    """Every word is a change of the status, and told by itself."""

    slug = "farm-tell"
    name = "Teller"
    push_events = "all"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Say them."""
        count, pace = asked(turn)
        for i in range(count):
            await asyncio.sleep(pace)
            yield turn.working(f"a{turn.attempt}:{i}")


class Writer(Told):
    """Every word is a piece of one artifact; they are joined as they come."""

    slug = "farm-write"
    name = "Writer"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Write them."""
        count, pace = asked(turn)
        page = turn.stream("page")
        for i in range(count):
            await asyncio.sleep(pace)
            yield page.write(f"a{turn.attempt}:{i};", last=i == count - 1)


class Large(Told):
    """Every word is a piece of one artifact, and half a megabyte long."""

    slug = "farm-large"
    name = "Large"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Write them."""
        count, _ = asked(turn)
        page = turn.stream("page")
        for i in range(count):
            yield page.write(f"a{turn.attempt}:{i};" * 80_000, last=i == count - 1)
