"""An agent that says what a test has it say, when the test has it say it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from a2a_tasks.agents import Agent, Extension, Skill, Turn
from a2a_tasks.agents.emission import Emission

__all__ = ["Hand", "Puppet"]

PATIENCE = 20.0


class Hand:
    """One turn in a test's hand."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.words: asyncio.Queue[Emission | str | Exception | None] = asyncio.Queue()
        self._ended = asyncio.Event()

    def say(self, *words: Emission | str | Exception) -> None:
        """Have the agent say this; an exception is raised."""
        for word in words:
            self.words.put_nowait(word)

    def end(self) -> None:
        """Have `run` come to its end."""
        self.words.put_nowait(None)

    async def ended(self) -> None:
        """Wait until `run` is over, however it ended."""
        async with asyncio.timeout(PATIENCE):
            await self._ended.wait()


class Puppet(Agent, abstract=True):
    """Hosted by the fixture `puppet` alone."""

    slug = "puppet"
    name = "Puppet"
    description = "Says what a test has it say."
    skills = [Skill("puppet", "Puppet", "Says what it is told", tags=["test"])]
    extensions = (Extension("urn:x:one"), Extension("urn:x:two"))

    def __init__(self) -> None:
        self._hands: asyncio.Queue[Hand] = asyncio.Queue()

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Be led."""
        hand = Hand(turn)
        self._hands.put_nowait(hand)
        try:
            while (word := await hand.words.get()) is not None:
                if isinstance(word, Exception):
                    raise word
                yield word
        finally:
            hand._ended.set()

    async def hand(self) -> Hand:
        """The next turn that begins."""
        async with asyncio.timeout(PATIENCE):
            return await self._hands.get()
