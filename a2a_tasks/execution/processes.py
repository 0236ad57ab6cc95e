"""Processes for agents that say `runs_in = "process"`: begun when needed, used again, and killed if they must be.

The runner's process keeps the lease and writes what the agent says; the agent's process (`child`) runs it. They take
turns: the next word is asked for when the last one was taken. Whoever finds no process free waits for one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from a2a_tasks.agents import Agent, FileUnavailable, Turn
from a2a_tasks.conf import conf
from a2a_tasks.execution.hearing import current
from a2a_tasks.execution.pipe import (
    Answer,
    Ask,
    Begun,
    Carry,
    Close,
    Ended,
    Free,
    Insist,
    Logged,
    Next,
    Raised,
    Said,
    packed,
    received,
)
from a2a_tasks.execution.stopping import insist
from a2a_tasks.execution.workplace import Workplace

__all__ = ["ProcessDied", "Processes"]

logger = logging.getLogger(__name__)
#: Longest a process takes to start, in seconds.
START_SECONDS = 60.0
#: Longest anybody waits for the remains of a killed one, in seconds.
REAP_SECONDS = 0.3


class ProcessDied(Exception):
    """The agent's process died under it; the text says how."""


class Child:
    """One process, and the pipe to it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        #: Has it never carried a turn?
        self.fresh = True
        #: How it died.
        self.death = ""
        #: What it does, or did last.
        self.errand: Errand | None = None
        self.reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> Child:
        """Start one, in this very thread: the kernel kills it when the thread that started it ends."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = _popen(theirs.fileno())
        return cls(process, *await asyncio.open_unix_connection(sock=ours))

    @property
    def pid(self) -> int:
        """Its process id, and that of its group."""
        return self._process.pid

    def say(self, message: Any) -> None:
        """Tell it; a dead one does not mind."""
        if not self._writer.is_closing():
            self._writer.write(packed(message))

    def kill(self) -> None:
        """End it, with all that it has started."""
        if self._process.returncode is None:  # else the number may be another's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def _read(self) -> None:
        try:
            while True:
                self._tell(await received(self._reader))
        except (EOFError, OSError):
            logger.debug("the pipe to process %s has ended", self.pid)
        except Exception as fault:  # noqa: BLE001 - unpickling calls what the agent has defined
            self._tell(Raised(str(fault), traceback.format_exc(), told=False))
        finally:
            self.kill()  # a pipe that has ended is of no use, nor is what holds its other end
            self._writer.close()
        self.death = _death(await asyncio.to_thread(self._process.wait))
        self._tell(None)

    def _tell(self, message: Any) -> None:
        if self.errand is not None:
            self.errand.hear(message)


def _popen(descriptor: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "a2a_tasks.execution.child"]
    return subprocess.Popen(  # noqa: S603 - our own module
        [*command, str(descriptor), str(os.getpid())],
        pass_fds=[descriptor],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def _death(code: int) -> str:
    how = f"died with signal {-code}" if code < 0 else f"ended with code {code}"
    return f"the agent's process {how}"


class Errand:
    """One turn in a process, from its beginning until the process is free again."""

    def __init__(self, child: Child, turn: Turn, rested: Callable[[Errand], None]) -> None:
        self.child, self._turn, self._rested = child, turn, rested
        self._log = current.get()
        #: What the process said; None is its death.
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        #: Is the agent at its end, or never begun?
        self.over = False
        #: Is the process free, or dead?
        self.gone = False
        #: Had it to be forced? Then nobody knows what is left in it.
        self.forced = False
        child.errand = self

    def hear(self, message: Any) -> None:
        """Take down what the process says."""
        if isinstance(message, Logged):
            self._note(message)
            return
        if isinstance(message, Free) or message is None:
            self._rest()
        self._heard.put_nowait(message)

    def _note(self, message: Logged) -> None:
        if self._log is not None and message.line is not None:
            self._log.take(message.line)
        if self._log is not None and message.missed:
            self._log.miss(message.missed)

    def _rest(self) -> None:
        if not self.gone:
            self.gone = True
            self._rested(self)

    async def begun(self, agent: str) -> bool:
        """Begin. False if the process was dead already, so that nothing has happened. Raises ProcessDied."""
        fresh, self.child.fresh = self.child.fresh, False
        self.child.say(Carry.of(agent, self._turn))
        try:
            async with asyncio.timeout(START_SECONDS):
                first = await self._heard.get()
        except TimeoutError:
            raise ProcessDied(f"the agent's process did not start in {START_SECONDS:g} s") from None
        if first is None and fresh:
            raise ProcessDied(self.child.death)
        return isinstance(first, Begun)

    async def words(self, workplace: Workplace) -> AsyncGenerator[Any, None]:
        """What the agent says. Raises what it raises, and ProcessDied."""
        while (said := await self._next()) is not None:
            self._turn._speaker = said.line  # noqa: SLF001 - the turn's other half
            try:
                yield said.word
            except GeneratorExit:
                if not workplace.stopped:
                    await self._close()
                raise
            self.child.say(Next())

    async def _close(self) -> None:
        """It was the last word: let the agent clean up."""
        self.child.say(Close())
        while await self._next() is not None:
            pass

    async def _next(self) -> Said | None:
        """The next word; None at the end of the agent."""
        while True:
            match await self._heard.get():
                case Said() as said:
                    return said
                case Ask() as ask:
                    self.child.say(Answer(ask.number, await self._answer(ask)))
                case Ended(memory):
                    self.over, self._turn.memory = True, memory
                    return None
                case Raised() as raised:
                    self.over = True
                    raise raised.fault()
                case None:
                    raise ProcessDied(self.child.death)

    async def _answer(self, ask: Ask) -> Any:
        """What the turn has here. Raises Fenced, Overloaded."""
        journal = self._turn._journal  # noqa: SLF001 - the turn's other half asks
        match ask.what:
            case "history":
                return await self._turn.history
            case "references":
                return await self._turn.references
            case "load":
                await journal.load()
                return dict(journal.results)
            case "file":
                return await _or_why(self._turn._files.stored(*ask.arguments))  # noqa: SLF001
            case "fetch":
                return await _or_why(self._turn._files.fetched(*ask.arguments))  # noqa: SLF001
            case "secrets":
                return await self._turn._secrets.handed()  # noqa: SLF001
            case "keep":
                return await journal.keep(*ask.arguments)
            case _:
                return await journal.clock()

    def leave(self) -> None:
        """Nobody listens any more. What is still at work is told, then forced, then killed."""
        if not self.over:
            self.child.say(Insist())
        if not self.gone:
            insist(asyncio.get_running_loop(), self)

    def force(self) -> None:
        """Have the exception raised in the agent's code."""
        self.forced = True
        self.child.say(Insist())

    def let_go(self) -> None:
        """Kill the process."""
        logger.warning("process %s does not end its agent and is killed", self.child.pid)
        self.child.kill()


async def _or_why(content: Awaitable[bytes]) -> bytes | FileUnavailable:
    """A file, or why it cannot be had, which is the agent's to hear."""
    try:
        return await content
    except FileUnavailable as fault:
        return fault


class Processes:
    """The processes of one runner, at most A2A_AGENT_PROCESSES. Make it in the loop."""

    def __init__(self, *, used_again: bool = True) -> None:
        """`used_again`: a process may carry another turn after its first."""
        #: How many there are at most.
        self.count = int(conf.AGENT_PROCESSES) or os.cpu_count() or 1
        self._places, self._used_again = asyncio.Semaphore(self.count), used_again
        self._children: set[Child] = set()
        self._idle: list[Child] = []

    async def words(
        self, agent: Agent, turn: Turn, workplace: Workplace
    ) -> AsyncGenerator[Any, None]:
        """What the agent says about the turn in a process, in order. Raises what it raises, and ProcessDied."""
        errand = Errand(await self._taken(), turn, self._rested)
        try:
            workplace.begun = True
            while not await errand.begun(agent.slug):
                errand = Errand(await self._taken(), turn, self._rested)
            async with contextlib.aclosing(errand.words(workplace)) as words:
                async for word in words:
                    yield word
        finally:
            errand.leave()

    async def _taken(self) -> Child:
        """A free process, when there is one."""
        await self._places.acquire()
        try:
            self._idle = [child for child in self._idle if not child.death]
            child = self._idle.pop() if self._idle else await Child.start()
        except BaseException:
            self._places.release()
            raise
        self._children = {child, *(other for other in self._children if not other.death)}
        return child

    def _rested(self, errand: Errand) -> None:
        """A process has ended its errand, for good or ill."""
        child = errand.child
        if errand.forced or not self._used_again:
            child.kill()
        elif not child.death:
            self._idle.append(child)
        self._places.release()

    async def kill(self) -> None:
        """End all of them at once, whatever they do."""
        for child in self._children:
            child.kill()
        if self._children:
            await asyncio.wait([child.reading for child in self._children], timeout=REAP_SECONDS)
