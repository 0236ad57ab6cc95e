"""Agents whose every act is in the ledger, and who say their attempt with every word.

What they are asked is a number of pieces: `20`. A piece takes PIECE seconds.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import httpx

from a2a_tasks.agents import Agent, Skill, Turn
from a2a_tasks.agents.emission import Chunk, text
from lab.faultlab.agents_app.ledger import note, now

#: httpx has it imported at its first request. A loop and threads that compile at the same time fail in CPython 3.11
#: ("AST constructor recursion depth mismatch", gh-106905): seen once in 900 episodes.
anyio.Event  # noqa: B018 - looked up is imported

#: Seconds between the words of an agent.
PIECE = float(os.environ.get("FAULTLAB_PIECE", "0.1"))
#: Seconds of a long sleep: more than A2A_PARK_SECONDS.
NAP = float(os.environ.get("FAULTLAB_NAP", "6"))
MIB = 1024 * 1024


class LabAgent(Agent, abstract=True):
    """What they have in common."""

    description = "Of the fault lab."
    skills = [Skill("endure", "Endure", "Goes on whatever happens", tags=["test"])]


@contextmanager
def witnessed(turn: Turn, agent: str) -> Iterator[None]:
    """Have the ledger tell how the attempt began, and how it ended."""
    note("began", turn.task_id, turn.attempt, agent=agent, pid=os.getpid())
    why = "end"
    try:
        yield
    except BaseException as fault:
        why = type(fault).__name__
        raise
    finally:
        note("stopped", turn.task_id, turn.attempt, why=why, pid=os.getpid())


def took(turn: Turn, step: str, begun: float) -> None:
    """Have the ledger tell of a step's body."""
    told = {"step": step, "begun": begun, "ended": now(), "pid": os.getpid()}
    note("effect", turn.task_id, turn.attempt, **told)


def count(turn: Turn) -> int:
    """How many pieces are asked for."""
    return int(turn.text.split()[0])


class Short(LabAgent):
    """Says two things and is done."""

    slug = "lab-short"
    name = "Short"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Say them."""
        with witnessed(turn, self.slug):
            yield f"a{turn.attempt}:0;"
            yield f"a{turn.attempt}:1;"


class Streamer(LabAgent):
    """One artifact in pieces."""

    slug = "lab-stream"
    name = "Streamer"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Say them."""
        with witnessed(turn, self.slug):
            page, last = turn.stream("ticks"), count(turn) - 1
            for i in range(last + 1):
                await asyncio.sleep(PIECE)
                note("tick", turn.task_id, turn.attempt)
                yield page.write(f"a{turn.attempt}:{i};", last=i == last)


class Threaded(LabAgent):
    """The same in a thread."""

    slug = "lab-thread"
    name = "Threaded"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Say them."""
        with witnessed(turn, self.slug):
            page, last = turn.stream("ticks"), count(turn) - 1
            for i in range(last + 1):
                time.sleep(PIECE)
                if turn.cancelled:
                    return
                note("tick", turn.task_id, turn.attempt)
                yield page.write(f"a{turn.attempt}:{i};", last=i == last)


class Steps(LabAgent):
    """Durable steps, each with an effect in the world, and a word between."""

    slug = "lab-steps"
    name = "Steps"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Take them."""
        with witnessed(turn, self.slug):
            for i in range(count(turn)):
                yield turn.working(f"a{turn.attempt}:{i}")
                await turn.step(f"step-{i}", self.act, turn, f"step-{i}")
            yield turn.complete(f"a{turn.attempt}:done")

    @staticmethod
    async def act(turn: Turn, step: str) -> str:
        """Do something in the world, at once, and take a while to hear of it. Another attempt has another result."""
        took(turn, step, now())
        await asyncio.sleep(PIECE)
        return f"{step} in attempt {turn.attempt}"


class Parker(LabAgent):
    """The same with a long sleep after each step: the run is parked, and no attempt is under way meanwhile."""

    slug = "lab-park"
    name = "Parker"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Take them, and sleep."""
        for i in range(count(turn)):
            with witnessed(turn, self.slug):
                yield turn.working(f"a{turn.attempt}:{i}")
                await turn.step(f"step-{i}", Steps.act, turn, f"step-{i}")
            await turn.sleep(NAP, name=f"nap-{i}")
        with witnessed(turn, self.slug):
            yield turn.complete(f"a{turn.attempt}:done")


class Teller(LabAgent):
    """Says text and two artifacts, one of them as executors do: a piece before and after steps and sleeps of each kind."""

    slug = "lab-tell"
    name = "Teller"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Tell it: a word that is said twice is seen, whichever of its pauses an attempt dies in."""
        page = turn.stream("notes")
        for i in range(count(turn)):
            with witnessed(turn, self.slug):
                yield f"a{turn.attempt}:{i};"
                yield page.write(f"a{turn.attempt}:{i};")
                yield self.append(f"a{turn.attempt}:{i};")
                await turn.step(f"step-{i}", Steps.act, turn, f"step-{i}")
                yield f"a{turn.attempt}:{i} kept;"
                await turn.sleep(PIECE, name=f"rest-{i}")
                yield page.write(f"a{turn.attempt}:{i} rested;")
                yield self.append(f"a{turn.attempt}:{i} rested;")
            await turn.sleep(NAP, name=f"nap-{i}")
        with witnessed(turn, self.slug):
            yield f"a{turn.attempt}:slept;"
            await asyncio.sleep(PIECE)
            yield f"a{turn.attempt}:done;"

    @staticmethod
    def append(words: str) -> Chunk:
        """A piece that is appended, also if it is the first of its attempt."""
        return Chunk(artifact_id="ledger", parts=(text(words),), append=True)


class Asker(LabAgent):
    """Asks once; the answer completes the task."""

    slug = "lab-ask"
    name = "Asker"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Ask, or thank."""
        with witnessed(turn, self.slug):
            said = ("thanks", "bye") if "answer" in turn.text else ("well", "so")
            yield f"a{turn.attempt}:{said[0]};"
            await asyncio.sleep(PIECE)
            yield f"a{turn.attempt}:{said[1]};"
            if "answer" not in turn.text:
                yield turn.ask(f"a{turn.attempt}:what?")


class Delegate(LabAgent):
    """Has another agent of the host do it, by A2A, in a step."""

    slug = "lab-delegate"
    name = "Delegate"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Pass it on, and say what came of it."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:asking")
            told = await turn.step("delegate", self.ask, turn)
            yield turn.complete(f"a{turn.attempt}:{told}")

    @staticmethod
    async def ask(turn: Turn) -> str:
        """Send, under the same key however often, until there is an answer."""
        begun = now()
        said = {"messageId": turn.task_id, "role": "ROLE_USER", "parts": [{"text": "1"}]}
        headers = {"A2A-Version": "1.0", "Idempotency-Key": f"delegate-{turn.task_id}"}
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            while True:
                for url in os.environ["FAULTLAB_WEBS"].split():
                    try:
                        answer = await http.post(
                            f"{url}/agents/lab-short/message:send",
                            json={"message": said},
                            headers=headers,
                        )
                    except httpx.TransportError:
                        continue
                    if answer.status_code == 200:
                        took(turn, "delegate", begun)
                        return str(answer.json()["task"]["status"]["state"])
                await asyncio.sleep(0.2)


class Tree(LabAgent):
    """Calls two agents at once; one of them calls another one, which asks the client."""

    slug = "lab-tree"
    name = "Tree"
    calls = ("lab-short", "lab-middle")

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Call them, and say what they say."""
        yield turn.working(f"a{turn.attempt}:calling")
        short, middle = await turn.gather(
            turn.call("lab-short", "1"), turn.call("lab-middle", turn.text)
        )
        yield turn.complete(f"a{turn.attempt}:{short.state.word} {middle.text}")


class Middle(LabAgent):
    """Calls the one that asks."""

    slug = "lab-middle"
    name = "Middle"
    calls = ("lab-leaf",)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Call it."""
        leaf = await turn.call("lab-leaf", turn.text)
        yield turn.complete(f"a{turn.attempt}:({leaf.text})")


class Leaf(LabAgent):
    """Asks once, and says the answer; it works a while before both."""

    slug = "lab-leaf"
    name = "Leaf"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Ask, or say it."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:0")
            await turn.step("work", Steps.act, turn, "work")
            await asyncio.sleep(10 * PIECE)
            if "answer" in turn.text:
                yield turn.complete(f"a{turn.attempt}:{turn.text}")
            else:  # its callers ask the same, whatever their attempts
                yield turn.ask("what?")


class Forever(LabAgent):
    """Works until it is cancelled."""

    slug = "lab-forever"
    name = "Forever"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Tick."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:0")
            while True:
                await asyncio.sleep(0.05)
                note("tick", turn.task_id, turn.attempt)


class Careful(LabAgent):
    """Acts in the world and must not do it twice."""

    slug = "lab-careful"
    name = "Careful"
    after_crash = "fail"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Act."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:0")
            took(turn, "act", now())
            for i in range(1, count(turn)):
                await asyncio.sleep(PIECE)
                yield turn.working(f"a{turn.attempt}:{i}")


class Blocking(LabAgent):
    """Holds the event loop and the GIL for as many tenths of a second as asked, then says so."""

    slug = "lab-blocking"
    name = "Blocking"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Spin."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:0")
            await asyncio.sleep(PIECE)
            end = time.monotonic() + count(turn) / 10
            while time.monotonic() < end:
                pass
            yield turn.complete(f"a{turn.attempt}:1")


class Poison(LabAgent):
    """Kills its process, so many tenths of a second after it begins."""

    slug = "lab-poison"
    name = "Poison"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Kill it."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:0")
            await asyncio.sleep(count(turn) / 10)
            os.kill(os.getpid(), signal.SIGKILL)


class Locking(LabAgent):
    """Keeps the interpreter for so many seconds, in a function in C that does not let go of it."""

    slug = "lab-locking"
    name = "Locking"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Keep it."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:0")
            await asyncio.sleep(PIECE)
            ctypes.PyDLL(None).sleep(count(turn))
            yield turn.complete(f"a{turn.attempt}:1")


class Hungry(LabAgent):
    """Takes so many megabytes of memory, a few at a time, and keeps them for a second."""

    slug = "lab-hungry"
    name = "Hungry"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Take them."""
        with witnessed(turn, self.slug):
            yield turn.working(f"a{turn.attempt}:0")
            taken = []
            for _ in range(count(turn) // 4):
                taken.append(bytearray(4 * MIB))
                await asyncio.sleep(0.01)
            await asyncio.sleep(1)
            yield turn.complete(f"a{turn.attempt}:{len(taken)}")


class Large(LabAgent):
    """One artifact in so many pieces of 4 MB."""

    slug = "lab-large"
    name = "Large"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Say them."""
        with witnessed(turn, self.slug):
            page, last = turn.stream("ticks"), count(turn) - 1
            for i in range(last + 1):
                yield page.write(f"a{turn.attempt}:{i};".ljust(4 * MIB, "."), last=i == last)
