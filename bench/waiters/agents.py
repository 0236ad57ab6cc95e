"""Agents that wait for another service, as most agents do most of the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn


class Waiter(Agent):
    """Reads `HOW UNTIL`: waits until that moment (seconds since the epoch), in memory (`plain`) or by steps (`steps`)."""

    name = "Waiter"
    description = "Waits."
    skills = [Skill("wait", "Wait", "Waits until a moment", tags=["bench"])]

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Wait."""
        how, until = turn.text.split()
        yield turn.working("I wait.")
        if how == "steps":
            await turn.step("ask", str, "the answer of a model")
            await turn.sleep(float(until) - time.time())
            await turn.step("ask again", str, "another answer")
        else:
            await asyncio.sleep(float(until) - time.time())
        yield turn.complete("It is time.")


class Sleeper(Agent):
    """`SECONDS`: sleeps for so long."""

    name = "Sleeper"
    description = "Sleeps."
    skills = [Skill("sleep", "Sleep", "Sleeps for seconds", tags=["bench"])]

    async def run(self, turn: Turn) -> str:
        """Sleep."""
        await asyncio.sleep(float(turn.text))
        return "It is time."


class ThreadWaiter(Agent):
    """`SECONDS`: blocks a thread for so long."""

    slug = "thread-waiter"
    name = "Waiter in a thread"
    description = "Waits in a thread."
    skills = [Skill("wait", "Wait", "Waits for seconds", tags=["bench"])]

    def run(self, turn: Turn) -> Iterator[Any]:
        """Wait."""
        yield turn.working("I wait.")
        time.sleep(float(turn.text))
        yield turn.complete("It is time.")
