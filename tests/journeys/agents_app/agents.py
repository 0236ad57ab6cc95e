"""Agents whose inside a test can watch: they tick, or leave traces in a file.

They have a queue of their own, so that other workers leave them alone. What a story does to a worker reaches only the
agents of the queue `doomed`, whose workers belong to such stories.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn
from examples.demo.agents import Demo

QUEUE = "journeys"
#: Of the workers that are killed, held or replaced.
DOOMED = "doomed"
_log = logging.getLogger(__name__)


class Journey(Agent, abstract=True):
    """What they have in common."""

    queue = QUEUE
    description = "Of the tests."
    skills = [Skill("travel", "Travel", "Does one thing slowly", tags=["test"])]


class Ticker(Journey):
    """`N [PATH]`: one artifact in N pieces, piece i saying `#i;`, one every 50 ms; the last one when the file is there."""

    name = "Ticker"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Tick."""
        number, *path = turn.text.split()
        page, last = turn.stream("ticks"), int(number) - 1
        for i in range(last + 1):
            await asyncio.sleep(0.05)
            while i == last and path and not Path(path[0]).exists():  # noqa: ASYNC110, ASYNC240 - the test makes it
                await asyncio.sleep(0.05)
            yield page.write(f"#{i};", last=i == last)


class Silent(Journey):
    """`N`: says nothing for N seconds, not even whether the answer is a Message or a Task; then one artifact."""

    name = "Silent"
    replies_directly = True

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Keep silent."""
        await asyncio.sleep(float(turn.text))
        yield turn.artifact("done")


class Witness(Journey):
    """`PATH`: works until it is stopped, and writes the moments of its beginning and of its end to the file."""

    name = "Witness"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Wait for the end."""
        note(turn.text, "began")
        try:
            yield turn.working("I wait.")
            await asyncio.Event().wait()
        finally:
            note(turn.text, "ended")


class DeafWitness(Witness):
    """The same, on a queue of its own: no worker of other stories takes its runs."""

    slug = "deaf-witness"
    name = "Witness of a deaf worker"
    queue = "deaf"


class ThreadWitness(Journey):
    """The same in a thread, which looks at `turn.cancelled` between its steps."""

    slug = "thread-witness"
    name = "Witness in a thread"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Wait for the end."""
        note(turn.text, "began")
        while not turn.cancelled:
            time.sleep(0.01)
        note(turn.text, "ended")
        yield "nobody hears this"


class ThreadSleeper(Journey):
    """Sleeps an hour in a thread, and looks at nothing."""

    slug = "thread-sleeper"
    name = "Sleeper in a thread"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Sleep."""
        yield turn.working("Good night.")
        time.sleep(3600)


class ProcessWitness(Journey):
    """The same in a process of its own, and it keeps a core busy."""

    slug = "process-witness"
    name = "Witness in a process"
    runs_in = "process"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Count until the end."""
        yield turn.working("I count.")
        note(turn.text, "began")
        while not turn.cancelled:
            sum(range(1000))
        note(turn.text, "ended")
        yield "nobody hears this"


class Mortal(Journey):
    """`PATH`: says in the file which process carries it, and in the first attempt waits there for its death."""

    name = "Mortal"
    runs_in = "process"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Wait for death, once."""
        yield turn.working("Here.")
        note(turn.text, f"pid-{os.getpid()}")
        while turn.attempt == 1:
            sum(range(1000))
        yield f"attempt {turn.attempt}"


class MortalSleeper(Mortal):
    """The same after a long wait, which parks its run."""

    slug = "mortal-sleeper"
    name = "Mortal sleeper"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Work, sleep, and wait for death, once."""
        turn.step("prepare", dict).now()
        turn.sleep(6).now()
        yield from super().run(turn)


class Locked(Mortal):
    """The same, but it sits in C code and holds its interpreter: nothing in its process hears anything."""

    name = "Locked"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Hold the interpreter, once."""
        yield turn.working("Here.")
        note(turn.text, f"pid-{os.getpid()}")
        if turn.attempt == 1:
            ctypes.PyDLL(None).sleep(3600)
        yield f"attempt {turn.attempt}"


class Doomed(Journey, abstract=True):
    """What a worker of such a story carries."""

    queue = DOOMED


class DoomedTicker(Ticker):
    """Ticks there; in the first attempt it waits for its death before the last piece."""

    queue = DOOMED

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Tick."""
        page, last = turn.stream("ticks"), int(turn.text) - 1
        for i in range(last + 1):
            await asyncio.sleep(3600 if i == last and turn.attempt == 1 else 0.05)
            yield page.write(f"#{i};", last=i == last)


class DoomedMortal(Mortal):
    """Waits for its death there."""

    queue = DOOMED


class DoomedLocked(Locked):
    """Hears nothing there."""

    queue = DOOMED


class DoomedDemo(Demo):
    """Does there what the demo agent does."""

    queue = DOOMED


class Hog(Doomed):
    """`WHAT SECONDS PATH`: in the first attempt lets nothing else happen for so long: in its process, or on its event loop."""

    name = "Hog"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Say something, hold on to it, and say something again."""
        what, seconds, path = turn.text.split()
        yield turn.artifact(f"before {turn.attempt}", name=f"before {turn.attempt}")
        await turn.step("said", bool)  # what is said before a step is stored before its result
        note(path, f"began-{turn.attempt}")
        try:
            if turn.attempt == 1:
                hold(what, int(seconds))
            yield turn.artifact(f"after {turn.attempt}", name=f"after {turn.attempt}")
        finally:
            note(path, f"closed-{turn.attempt}")


class ProcessHog(Hog):
    """The same in a process of its own."""

    slug = "process-hog"
    name = "Hog in a process"
    runs_in = "process"


class Stepper(Doomed):
    """`PATH`: takes two steps, each of which leaves a trace in the file; the first attempt stays between them."""

    name = "Stepper"
    push_notifications = True

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Step, and step again."""
        yield turn.working("One.")
        await turn.step("one", note, turn.text, "one")
        if turn.attempt == 1:
            yield turn.working("Between.")
            await asyncio.Event().wait()
        await turn.step("two", note, turn.text, "two")
        yield turn.complete("Done.")


class Scout(Journey):
    """`URL`: calls it in a step, and says what was answered."""

    name = "Scout"
    push_notifications = True

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Look there."""

        async def look() -> int:
            async with turn.http.get(turn.text) as answer:
                return answer.status

        yield f"it answers {await turn.step('look', look)}"


class ProcessScout(Scout):
    """The same in a process of its own."""

    slug = "process-scout"
    name = "Scout in a process"
    runs_in = "process"


class ThreadStepper(Doomed):
    """The same in a thread."""

    slug = "thread-stepper"
    name = "Stepper in a thread"

    def run(self, turn: Turn) -> Iterator[Any]:
        """Step, and step again."""
        yield turn.working("One.")
        turn.step("one", note, turn.text, "one").now()
        if turn.attempt == 1:
            yield turn.working("Between.")
            while not turn.cancelled:
                time.sleep(0.05)
            return
        turn.step("two", note, turn.text, "two").now()
        yield turn.complete("Done.")


class Napper(Doomed):
    """`PATH SECONDS`: is parked between two traces in the file, and leaves one whenever it begins."""

    name = "Napper"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Sleep."""
        path, seconds = turn.text.split()
        note(path, "began")
        yield turn.working("Good night.")
        await turn.sleep(float(seconds))
        note(path, "woke")


class Careful(Doomed):
    """`PATH`: does something in the world, and must not do it twice."""

    name = "Careful"
    after_crash = "fail"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Act, and wait for the end."""
        note(turn.text, "acted")
        yield turn.working("I have acted.")
        await asyncio.Event().wait()


class Courier(Journey):
    """`WORDS PATH`: says so and logs it, waits for the file, and fails if `lost` stands in it."""

    name = "Courier"
    push_notifications = True

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Look for a parcel."""
        file = Path(turn.text.split()[-1])
        yield turn.working("I ask the depot.")
        _log.info("asked the depot for %s", file.name)
        if await asyncio.to_thread(awaited, file) == "lost":
            raise LookupError(f"{file.name} is nowhere")
        _log.warning("%s lay in the wrong van", file.name)
        yield turn.artifact("It comes tomorrow.", name="parcel")


def hold(what: str, seconds: int) -> None:
    """Hold the interpreter, in C code as some libraries do, or the event loop."""
    if what == "interpreter":
        ctypes.PyDLL(None).sleep(seconds)
    else:
        time.sleep(seconds)


def awaited(file: Path) -> str:
    """What stands in the file, once there is one."""
    while not file.exists():
        time.sleep(0.05)
    return file.read_text()


def note(path: str, word: str) -> None:
    """Add a line with the word and the moment. A text that is no whole path is no file of a test: nothing is written."""
    if not Path(path).is_absolute():
        raise ValueError(f"{path!r} is no absolute path")
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{word} {time.time()}\n")


class Tree(Journey, abstract=True):
    """The agents of a tree that may call each other."""

    queue = DOOMED
    calls = "*"


class TreeRoot(Tree):
    """Calls two agents at once, and tells their answers."""

    name = "Tree root"

    async def run(self, turn: Turn) -> str:
        """Call them."""
        quick, middle = await turn.gather(
            turn.call("tree-quick", "go"), turn.call("tree-middle", "go")
        )
        return f"{quick.text}; {middle.text}"


class TreeQuick(Tree):
    """Answers at once."""

    name = "Tree quick"

    async def run(self, turn: Turn) -> str:
        """Answer."""
        return "quick"


class TreeMiddle(Tree):
    """Calls the leaf."""

    name = "Tree middle"

    async def run(self, turn: Turn) -> str:
        """Call it."""
        return (await turn.call("tree-leaf", "go")).text


class TreeLeaf(Tree):
    """Asks for a seat."""

    name = "Tree leaf"

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Ask, and tell the answer."""
        if turn.text == "go":
            yield turn.ask("Which seat?")
        else:
            yield f"seat: {turn.text}"
