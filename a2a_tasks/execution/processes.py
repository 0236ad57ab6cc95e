"""Processes for agents with `runs_in = "process"`: started when needed, used again, and killed if necessary.

The runner's process keeps the lease and writes the events; the agent's process (`child`) runs the agent. It sends one
value at a time, and the next only after the last was recorded. A turn waits for a free process.
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
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec

from a2a_tasks.agents import Agent, AgentError, Turn
from a2a_tasks.conf import conf
from a2a_tasks.execution.agent_call import RunThreads
from a2a_tasks.execution.pipe import (
    AgentLogged,
    AgentRaised,
    AgentWaits,
    Answer,
    Ask,
    FrameTooLarge,
    Output,
    Signal,
    StartRun,
    TurnEnded,
    UsageReported,
    largest_frame,
    pack,
    receive,
)
from a2a_tasks.execution.run_log_handler import current

__all__ = ["ProcessDied", "Processes"]

logger = logging.getLogger(__name__)
#: Longest start of a process, in seconds.
START_SECONDS = 60.0
#: Bytes of messages from a process that wait for its run; the pipe is read no further meanwhile.
ROOM = 1024 * 1024
#: Longest wait for the end of killed processes, in seconds.
REAP_SECONDS = 0.3


class ProcessDied(Exception):
    """The death of the agent's process; the text describes it."""


class AgentProcess:
    """A process for agents, and the pipe to it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        #: True until its first turn.
        self.fresh = True
        #: Description of its death; empty = it is alive.
        self.death = ""
        #: Its present turn, or its last one.
        self.process_run: ProcessRun | None = None
        self.reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> AgentProcess:
        """Start a process from the calling thread: the kernel kills it when the thread that started it ends."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = _popen(theirs.fileno())
        return cls(process, *await asyncio.open_unix_connection(sock=ours))

    @property
    def pid(self) -> int:
        """Return its process id, which is also that of its group."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message; does nothing if the process is dead."""
        if not self._writer.is_closing():
            for piece in pack(message):
                self._writer.write(piece)

    async def drain(self) -> None:
        """Wait until the process has read most of what was sent."""
        with contextlib.suppress(OSError):  # it is dead
            await self._writer.drain()

    def kill(self) -> None:
        """Kill the process, with all processes that it has started."""
        if self._process.returncode is None:  # else the pid may be another process's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def _read(self) -> None:
        try:
            while True:
                self._deliver(*await receive(self._reader, 2 * largest_frame()))
                if self.process_run is not None:
                    await self.process_run.wait_room()
        except (EOFError, OSError):
            logger.debug("the pipe to process %s has ended", self.pid)
        except Exception as fault:  # noqa: BLE001 - unpickling calls code of the agent
            is_public = isinstance(fault, FrameTooLarge)
            self._deliver(AgentRaised(str(fault), traceback.format_exc(), is_public))
        finally:
            self.kill()  # without its pipe, the process is of no use
            self._writer.close()
        self.death = _death(await asyncio.to_thread(self._process.wait))
        self._deliver(None)

    def _deliver(self, message: Any, size: int = 0) -> None:
        if self.process_run is not None:
            self.process_run.take(message, size)


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


class ProcessRun:
    """One turn in a process, from its start until the process is free again."""

    def __init__(self, child: AgentProcess, turn: Turn, pool: Processes) -> None:
        self.child, self._turn, self._pool = child, turn, pool
        self._log = current.get()
        #: Messages of the process, with their bytes; None is its death.
        self._messages: asyncio.Queue[tuple[Any, int]] = asyncio.Queue()
        #: The bytes of these messages, and whether there is room for more. They are dropped once the turn was left.
        self._held, self._room, self._left = 0, asyncio.Event(), False
        #: True once the agent has ended.
        self.over = False
        #: True once the process is free, or dead.
        self.gone = False
        #: Number of waits for other tasks, and what is lent as long as there are any.
        self._waits, self._lent = 0, contextlib.ExitStack()
        child.process_run = self

    def take(self, message: Any, size: int) -> None:
        """Handle a message of the process, which has so many bytes; None is its death."""
        match message:
            case AgentLogged():
                self._note(message)
                return
            case UsageReported(used):
                self._turn._journal.report(used)  # noqa: SLF001 - private to agents
                return
            case AgentWaits(begins):
                self._wait(1 if begins else -1)
                return
            case Signal.IDLE | None:
                self._release_child()
        if not self._left:
            self._held += size
            self._messages.put_nowait((message, size))

    async def wait_room(self) -> None:
        """Wait until messages have room again."""
        while self._held > ROOM and not self._left:
            self._room.clear()
            await self._room.wait()

    async def _get(self) -> Any:
        message, size = await self._messages.get()
        self._held -= size
        self._room.set()
        return message

    def _note(self, message: AgentLogged) -> None:
        if self._log is not None and message.line is not None:
            self._log.take(message.line)
        if self._log is not None and message.missed:
            self._log.count_dropped(message.missed)

    def _wait(self, step: int) -> None:
        """Lend slot and place of an agent that waits for other tasks, unless it is parked at once."""
        journal = self._turn._journal  # noqa: SLF001 - private to agents
        self._waits += step
        if not self._waits:
            self._lent.close()
        elif self._waits == step == 1 and not (self.gone or journal.parks):
            self._lent.enter_context(journal.lend_slot(in_thread=False))
            self._lent.enter_context(self._pool.lend_process())

    def _release_child(self) -> None:
        if not self.gone:
            self.gone = True
            self._lent.close()
            self._pool.take_back(self.child)

    async def begin(self, agent: str, *, cancelled: bool = False) -> bool:
        """Start the turn, or the call of `cancelled`. False if the process was dead already, and the agent was not called.

        Raises ProcessDied.
        """
        fresh, self.child.fresh = self.child.fresh, False
        self.child.send(StartRun.of(agent, self._turn, cancelled=cancelled))
        try:
            async with asyncio.timeout(START_SECONDS):
                first = await self._get()
        except TimeoutError:
            raise ProcessDied(f"the agent's process did not start in {START_SECONDS:g} s") from None
        if first is None and fresh:
            raise ProcessDied(self.child.death)
        return first is Signal.STARTED

    async def read_values(self, threads: RunThreads) -> AsyncGenerator[Any, None]:
        """Yield the agent's values. Raises its exceptions, and ProcessDied."""
        while (output := await self._next()) is not None:
            self._turn._source = output.line  # noqa: SLF001 - private to agents
            try:
                yield output.value
            except GeneratorExit:
                if not threads.stopped:
                    await self._close()
                raise
            self.child.send(Signal.NEXT)

    async def _close(self) -> None:
        """Close the agent, and let it clean up."""
        self.child.send(Signal.CLOSE)
        await self.wait_end()

    async def wait_end(self) -> None:
        """Answer questions until the agent has ended. Raises its exceptions, and ProcessDied."""
        while await self._next() is not None:
            pass

    async def _next(self) -> Output | None:
        """Return the next value, answering questions; None at the end of the agent."""
        while True:
            match await self._get():
                case Output() as output:
                    return output
                case Ask() as ask:
                    self.child.send(Answer(ask.number, await self._answer(ask)))
                    await self.child.drain()
                case TurnEnded() as ended:
                    self.over, self._turn.memory = True, msgspec.json.decode(ended.memory)
                    self._turn.conversation.adopt(ended.conversation)
                    return None
                case AgentRaised() as raised:
                    self.over = True
                    raise raised.fault()
                case None:
                    raise ProcessDied(self.child.death)

    async def _answer(self, ask: Ask) -> Any:
        """Return the answer to a question about the turn, or an AgentError for the agent. Raises LeaseLost, Overloaded."""
        try:
            return await self._find_answer(ask)
        except AgentError as fault:
            return fault

    async def _find_answer(self, ask: Ask) -> Any:
        turn = self._turn
        if ask.of == "turn":
            return await getattr(turn, ask.name)
        parts = {
            "journal": turn._journal,  # noqa: SLF001 - private to agents
            "files": turn._files,  # noqa: SLF001
            "secrets": turn._secrets,  # noqa: SLF001
            "conversation": turn.conversation,
        }
        return await getattr(parts[ask.of], ask.name)(*ask.arguments, **ask.named)

    def leave(self) -> None:
        """Leave the turn. An agent that still works is asked to stop, and killed after A2A_STOP_SECONDS."""
        self._left = True
        self._room.set()
        if not self.over:
            self.child.send(Signal.STOP)
        if not self.gone:
            asyncio.get_running_loop().call_later(float(conf.STOP_SECONDS), self._kill)

    def _kill(self) -> None:
        """Kill the process if its agent goes on."""
        if not self.gone:
            logger.warning("process %s does not end its agent and is killed", self.child.pid)
            self.child.kill()


class Processes:
    """The processes of one runner, at most A2A_AGENT_PROCESSES. Must be made in the event loop."""

    def __init__(self, *, used_again: bool = True) -> None:
        """Make the pool; `used_again`: a process may execute another turn after its first."""
        #: Most processes.
        self.count = int(conf.AGENT_PROCESSES) or os.cpu_count() or 1
        self._places, self._used_again = asyncio.Semaphore(self.count), used_again
        self._children: set[AgentProcess] = set()
        #: Places that were lent, and are to be taken back.
        self._owed: set[asyncio.Future[Any]] = set()
        self._idle: list[AgentProcess] = []

    async def drive(
        self, agent: Agent, turn: Turn, threads: RunThreads
    ) -> AsyncGenerator[Any, None]:
        """Yield the agent's values for a turn in a process, in order. Raises its exceptions, and ProcessDied."""
        process_run = ProcessRun(await self._take_idle(), turn, self)
        try:
            threads.begun = True
            while not await process_run.begin(agent.slug):
                process_run = ProcessRun(await self._take_idle(), turn, self)
            async with contextlib.aclosing(process_run.read_values(threads)) as values:
                async for value in values:
                    yield value
        finally:
            process_run.leave()

    async def tell_of_cancel(self, agent: Agent, turn: Turn) -> None:
        """Call the agent's `cancelled` in a process. Raises its exceptions, ProcessDied, and TimeoutError."""
        process_run = ProcessRun(await self._take_idle(), turn, self)
        try:
            while not await process_run.begin(agent.slug, cancelled=True):
                process_run = ProcessRun(await self._take_idle(), turn, self)
            async with asyncio.timeout(agent.cancel_seconds):
                await process_run.wait_end()
        finally:
            process_run.leave()

    async def _take_idle(self) -> AgentProcess:
        """Wait for a free process and return it."""
        await self._places.acquire()
        try:
            self._idle = [child for child in self._idle if not child.death]
            child = self._idle.pop() if self._idle else await AgentProcess.start()
        except BaseException:
            self._places.release()
            raise
        self._children = {child, *(other for other in self._children if not other.death)}
        return child

    @contextlib.contextmanager
    def lend_process(self) -> Iterator[None]:
        """Let another turn have a process, as long as the block lasts; for a while there may be more of them then."""
        self._places.release()
        try:
            yield
        finally:
            owed = asyncio.ensure_future(self._places.acquire())
            self._owed.add(owed)
            owed.add_done_callback(self._owed.discard)

    def take_back(self, child: AgentProcess) -> None:
        """Take the process of a turn back, successful or not: use it again, or kill it."""
        if not self._used_again:
            child.kill()
        elif not child.death:
            self._idle.append(child)
        self._places.release()

    async def kill(self) -> None:
        """Kill all processes at once."""
        for owed in self._owed:
            owed.cancel()
        for child in self._children:
            child.kill()
        if self._children:
            await asyncio.wait([child.reading for child in self._children], timeout=REAP_SECONDS)
