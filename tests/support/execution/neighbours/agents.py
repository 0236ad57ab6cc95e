"""Agents for the tests of what one run does to those beside it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn


class Good(Agent):
    """Works for as many seconds as the text says, in silence."""

    slug = "good"
    name = "Good"
    description = "Works for a while."
    queue = "neighbours"
    skills = [Skill("work", "Work", "Works for a while.", tags=["test"])]

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Work."""
        yield turn.working()
        await asyncio.sleep(float(turn.text))
        yield "done"


class Poison(Good):
    """Kills the process that it is in, so many seconds after it begins."""

    slug = "poison"
    name = "Poison"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Kill it."""
        yield turn.working()
        await asyncio.sleep(float(turn.text))
        os.kill(os.getpid(), signal.SIGKILL)
        yield "survived"


class Writer(Good):
    """Begins a text, and ends it as many seconds later as the message says."""

    slug = "writer"
    name = "Writer"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Write."""
        page = turn.stream("page")
        yield page.write("Once upon a time ")
        await asyncio.sleep(float(turn.text))
        yield page.write("they lived happily.", last=True)
