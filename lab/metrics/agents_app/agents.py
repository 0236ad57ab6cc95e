"""Agents that spend, crash and hold their worker."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn

#: The queue of the worker that is killed.
VICTIMS = "victims"
#: Attempts of a run that crash.
CRASHES = 7


class Troubled(Agent, abstract=True):
    """What they have in common."""

    description = "Of the tests."
    skills = [Skill("trouble", "Trouble", "Makes something to be measured.", tags=["test"])]


class Spender(Troubled):
    """Uses models in a step, sleeps so long that it is parked, and uses some more."""

    name = "Spender"
    push_notifications = True

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Spend."""
        yield turn.working("I think.")
        await turn.step("think", self.think, turn, "large")
        await turn.sleep(0.5)
        self.think(turn, "small")
        yield turn.artifact("That was expensive.")

    @staticmethod
    def think(turn: Turn, model: str) -> None:
        """Report what a model would have used."""
        turn.usage(model=model, input_tokens=1200, output_tokens=300, cost=0.004)


class Fragile(Troubled):
    """Its process dies in the first attempts."""

    name = "Fragile"
    runs_in = "process"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Die."""
        yield turn.working("Here.")
        if turn.attempt <= CRASHES:
            os.kill(os.getpid(), signal.SIGKILL)
        yield turn.artifact("It is a wonder.")


class Holder(Troubled):
    """`PIECES SECONDS`: holds the event loop of its worker so many times, for so long."""

    name = "Holder"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Hold it."""
        pieces, seconds = turn.text.split()
        yield turn.working("I hold it.")
        for _ in range(int(pieces)):
            await asyncio.sleep(0.1)
            time.sleep(float(seconds))  # noqa: ASYNC251 - that is the fault


class Victim(Troubled):
    """Answers, if its worker lives."""

    name = "Victim"
    queue = VICTIMS

    def run(self, turn: Turn) -> str:
        """Answer."""
        return "I live."
