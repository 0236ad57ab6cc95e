"""Agents for the tests of what one run does to those beside it."""

from __future__ import annotations

import asyncio
import os
import re
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


class Hog(Good):
    """Keeps the interpreter's lock for ever, so many seconds after it begins."""

    slug = "hog"
    name = "Hog"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Keep it: no match is found before the sun has burnt out."""
        yield turn.working()
        await asyncio.sleep(float(turn.text))
        yield str(re.match(r"(a+)+$", "a" * 99 + "b"))


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


class Speaker(Good):
    """Says as many pieces as the text says, each of so many bytes, after so many seconds: "40 8 0.1"."""

    slug = "speaker"
    name = "Speaker"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Speak."""
        number, size, seconds = turn.text.split()
        said = turn.stream("said")
        for n in range(int(number)):
            yield said.write(f"{n};".ljust(int(size), "."), last=n == int(number) - 1)
            await asyncio.sleep(float(seconds))


class Spender(Good):
    """Calls a model as many times as the text says, each in a step: "3"; in none: "3 bare"."""

    slug = "spender"
    name = "Spender"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Spend."""

        async def ask() -> None:
            await asyncio.sleep(0.01)
            await turn.usage(model="m")

        count, *bare = turn.text.split()
        yield turn.working()
        for number in range(int(count)):
            await (ask() if bare else turn.step(f"ask {number}", ask))
        yield "done"


class Maker(Good):
    """Makes as many artifacts as the text says, each of so many bytes at once: "5 8000000"."""

    slug = "maker"
    name = "Maker"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Make them."""
        number, size = map(int, turn.text.split())
        for n in range(number):
            yield turn.artifact("x" * size, id=f"thing-{n}")


class Walker(Good):
    """Takes as many steps as the text says, each with a result of so many bytes, and kills its first process: "8 8000000"."""

    slug = "walker"
    name = "Walker"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Walk."""
        number, size = map(int, turn.text.split())

        async def walk() -> str:
            return "x" * size

        yield turn.working()
        results = [await turn.step(f"step {n}", walk) for n in range(number)]
        if turn.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        yield str(sum(map(len, results)))
