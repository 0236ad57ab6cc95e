"""Agents that wait for another service, as most agents do most of the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn

#: Seconds that the last agent of a chain takes.
LEAF = 0.2


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


class Tree(Agent, abstract=True):
    """`DEPTH`: calls itself with one less, until nothing is left; the last one takes a while."""

    description = "Calls itself."
    skills = [Skill("call", "Call", "Calls itself to a depth", tags=["bench"])]
    recursive = True

    async def run(self, turn: Turn) -> str:
        """Call, or sleep."""
        depth = int(turn.text)
        if depth == 0:
            await asyncio.sleep(LEAF)
            return "leaf"
        return await self.call(turn, str(depth - 1))

    async def call(self, turn: Turn, text: str) -> str:
        """Call itself."""
        return (await turn.call(self.slug, text)).text


class Fan(Tree):
    """It calls itself twice."""

    slug, name, calls = "tree-fan", "Fan", ("tree-fan",)

    async def call(self, turn: Turn, text: str) -> str:
        """Call itself twice."""
        answers = await turn.gather(*(turn.call(self.slug, text, name=name) for name in "ab"))
        return " ".join([answer.text for answer in answers])


class Endless(Fan):
    """It calls itself twice, and the last ones never end."""

    slug, name, calls = "tree-endless", "Endless", ("tree-endless",)

    async def run(self, turn: Turn) -> str:
        """Call, or wait for a cancel."""
        if turn.text == "0":
            await asyncio.sleep(3600)
        return await self.call(turn, str(int(turn.text) - 1))


class Chain(Tree):
    """It calls itself once."""

    slug, name, calls = "tree-chain", "Chain", ("tree-chain",)


class OnceChain(Tree):
    """The same, of an agent that must not act twice."""

    slug, name, calls = "tree-once", "Chain of those that act once", ("tree-once",)
    after_crash = "fail"


class StepChain(Tree):
    """The same in a step."""

    slug, name, calls = "tree-step", "Chain of steps", ("tree-step",)

    async def call(self, turn: Turn, text: str) -> str:
        """Call itself in a step."""
        return str(await turn.step("tool", super().call, turn, text))


class ThreadChain(Agent):
    """The same of a synchronous agent."""

    slug, name, calls = "tree-thread", "Chain of threads", ("tree-thread",)
    description = "Calls itself."
    skills = [Skill("call", "Call", "Calls itself to a depth", tags=["bench"])]
    recursive = True

    def run(self, turn: Turn) -> str:
        """Call, or sleep."""
        depth = int(turn.text)
        if depth == 0:
            time.sleep(LEAF)
            return "leaf"
        return turn.call(self.slug, str(depth - 1)).now().text
