"""The process of an agent that says `runs_in = "process"`: it carries one turn at a time for the runner that started it.

    python -m a2a_tasks.execution.child DESCRIPTOR PARENT

The same `drive` calls the agent as in the runner's process. What the turn has in the store is asked for over the pipe, so this
process never touches the rows of its task. It ends when the pipe does, so it never outlives its runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import django

from a2a_tasks.agents import (
    AgentError,
    Files,
    FileUnavailable,
    Journal,
    Part,
    Secrets,
    Turn,
    registry,
)
from a2a_tasks.agents.mistakes import line_of
from a2a_tasks.agents.turn import Later
from a2a_tasks.conf import conf
from a2a_tasks.execution.drive import drive
from a2a_tasks.execution.hearing import Said as Line
from a2a_tasks.execution.hearing import current, install
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
    receiving,
)
from a2a_tasks.execution.threads import raise_in
from a2a_tasks.execution.workplace import Workplace

__all__ = ["main"]

PR_SET_PDEATHSIG = 1


class AskingJournal(Journal):
    """The journal of a turn whose real one is in the runner's process."""

    def __init__(self, ask: Callable[..., Awaitable[Any]], workplace: Workplace) -> None:
        super().__init__()
        self._ask, self._workplace = ask, workplace

    async def load(self) -> None:
        """Read what has been kept, always: of what was given up while being written only the store knows."""
        self.results.update(await self._ask("load"))

    async def keep(self, name: str, result: str) -> None:
        """Have the runner keep it, after everything said before."""
        await self._ask("keep", name, result)
        self.results[name] = result

    async def clock(self) -> float:
        """The database's clock."""
        return float(await self._ask("clock"))

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Call it in a thread for agents."""
        return await self._workplace.in_thread(work)


class AskingFiles(Files):
    """The files of a turn, which the runner has."""

    def __init__(self, ask: Callable[..., Awaitable[Any]]) -> None:
        super().__init__()
        self._ask = ask

    async def stored(self, file: str) -> bytes:
        """Have the runner read the storage. Raises FileUnavailable."""
        return _content(await self._ask("file", file))

    async def fetched(self, part: Part, most: int | None, seconds: float | None) -> bytes:
        """Have the runner ask the URL. Raises FileUnavailable."""
        return _content(await self._ask("fetch", part, most, seconds))


class AskingSecrets(Secrets):
    """The secrets of a turn, which the runner has."""

    def __init__(self, ask: Callable[..., Awaitable[Any]]) -> None:
        super().__init__()
        self._ask = ask

    async def handed(self) -> Mapping[str, str]:
        """Have the runner read them."""
        found: Mapping[str, str] = await self._ask("secrets")
        return found


def _content(answer: bytes | FileUnavailable) -> bytes:
    if isinstance(answer, FileUnavailable):
        raise answer
    return answer


class TellingLog:
    """The log of a turn whose real one is in the runner's process. Any thread."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._left, self._missed = int(conf.RUN_LOG_LINES), 0

    def take(self, said: Line) -> None:
        """Tell the runner, or count what it would not keep."""
        with self._lock:
            if not self._left:
                self._missed += 1
                return
            self._left -= 1
        self._tell(Logged(said))

    def miss(self, count: int) -> None:
        """Count them."""
        with self._lock:
            self._missed += count

    def close(self) -> None:
        """Tell the count."""
        if self._missed:
            self._tell(Logged(None, self._missed))


class Host:
    """The runner, as the agent's process sees it."""

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._taken: asyncio.Future[bool] | None = None
        self._carried: Carried | None = None
        #: Was the loop told to stop its run, and has not come to it?
        self._deaf = False
        #: Does nobody answer any more?
        self._left = False

    def listen(self) -> None:
        """Hear the runner, to the end of the pipe, and end the process. In a thread of its own."""
        with contextlib.suppress(OSError):
            for message in receiving(self._pipe):
                if isinstance(message, Insist):
                    self._insist()
                self._loop.call_soon_threadsafe(self._hear, message)
        os.killpg(0, signal.SIGKILL)  # with all that the agent has started

    def say(self, message: Any) -> None:
        """Tell the runner; waits while it does not listen."""
        self._pipe.sendall(packed(message))

    def tell(self, message: Any) -> None:
        """The same from any thread; of two at once neither may come in between the other."""
        if threading.current_thread() is threading.main_thread():
            self.say(message)
        else:
            self._loop.call_soon_threadsafe(self.say, message)

    async def taken(self) -> bool:
        """Wait until the last word was taken; returns whether another one is wanted."""
        self._taken = self._loop.create_future()
        return await self._taken

    async def ask(self, what: str, *arguments: Any) -> Any:
        """Ask the runner, and wait for the answer. CancelledError once it has left the turn."""
        if self._left:
            raise asyncio.CancelledError
        number = next(self._numbers)
        answer = self._questions[number] = self._loop.create_future()
        self.say(Ask(number, what, arguments))
        try:
            return await answer
        finally:
            del self._questions[number]

    def _insist(self) -> None:
        """Stop the agent, also where it holds the loop: then the exception is raised in its code."""
        if self._carried is not None:
            self._carried.turn._stop()  # noqa: SLF001 - as the runner does
            if self._deaf:
                raise_in(threading.main_thread().ident or 0)
        self._deaf = True

    def _hear(self, message: Any) -> None:
        match message:
            case Carry():
                self._left = False
                self._carried = Carried(self, message)
            case Insist():
                self._deaf, self._left = False, True
                for question in self._questions.values():
                    question.cancel()
                if self._carried is not None:
                    self._carried.insist()
            case Answer(number, value):
                asked = self._questions.get(number)
                if asked is not None and not asked.done():
                    asked.set_result(value)
            case Next() | Close() if self._taken is not None and not self._taken.done():
                self._taken.set_result(isinstance(message, Next))


class Carried:
    """The turn this process carries."""

    def __init__(self, host: Host, carry: Carry) -> None:
        self._host, self._agent = host, carry.agent
        self._workplace = Workplace(carry.agent)
        loop = asyncio.get_running_loop()
        self.turn = Turn(
            **carry.about(),
            history=Later(lambda: self._ask("history"), loop),
            references=Later(lambda: self._ask("references"), loop),
            journal=AskingJournal(self._ask, self._workplace),
            files=AskingFiles(self._ask),
            secrets=AskingSecrets(self._ask),
        )
        #: Has the agent come to its end? What it left at work must not ask as if it were the turn that comes next.
        self._over = False
        self._carrying = asyncio.create_task(self._carry())
        self._freeing = asyncio.create_task(self._free())

    def insist(self) -> None:
        """Stop the agent; the second time interrupt what it has in threads."""
        if self._workplace.stopped:
            self._workplace.force()
        self._workplace.stopped = True
        self._carrying.cancel()

    async def _ask(self, what: str, *arguments: Any) -> Any:
        if self._over:
            raise asyncio.CancelledError
        return await self._host.ask(what, *arguments)

    async def _carry(self) -> None:
        """Run the agent, and say how it ended."""
        self._host.say(Begun())
        log = TellingLog(self._host.tell)
        current.set(log)
        try:
            await self._speak()
            self._over = True
            log.close()
            self._host.say(Ended(self.turn.memory))
        except BaseException as fault:  # noqa: BLE001 - it is the runner's to judge
            self._over = True
            log.close()
            self._host.say(_raised(fault))

    async def _free(self) -> None:
        """Say when also that has ended which the agent did not wait for."""
        await asyncio.wait([self._carrying])
        await self._workplace.left()
        self._host.say(Free())

    async def _speak(self) -> None:
        agent = registry.hosted(self._agent)
        if agent is None:
            raise AgentError("The agent is no longer hosted here.")
        async with contextlib.aclosing(drive(agent, self.turn, self._workplace)) as words:
            async for word in words:
                self._host.say(Said(word, line_of(self.turn._speaker)))  # noqa: SLF001 - the turn's other half has it, too
                if not await self._host.taken():
                    break
        self.turn._unused.tell(type(agent).__module__)  # noqa: SLF001


def _raised(fault: BaseException) -> Raised:
    told = isinstance(fault, AgentError)
    trace = "".join(traceback.format_exception(fault))
    text = traceback.format_exception_only(fault)[-1].rstrip()  # whatever its own str() does
    return Raised(str(fault) if told else text, trace, told)


# --- the process ----------------------------------------------------------------------------


def main(descriptor: int, parent: int) -> None:
    """Carry turns until the pipe of that descriptor ends."""
    os.set_inheritable(descriptor, False)
    os.register_at_fork(after_in_child=lambda: os.close(descriptor))  # it would keep the pipe open
    _die_with(parent)
    for signum in (signal.SIGTERM, signal.SIGINT):
        # A supervisor's, for all processes of a group: the runner decides. No SIG_IGN, which programs would inherit.
        signal.signal(signum, lambda *_: None)
    django.setup()
    install()
    asyncio.run(_serve(socket.socket(fileno=descriptor)))


def _die_with(parent: int) -> None:
    """Have the kernel kill this process with its runner: the end of the pipe tells nothing to who holds the GIL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


async def _serve(pipe: socket.socket) -> None:
    host = Host(pipe)
    threading.Thread(target=host.listen, name="pipe", daemon=True).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
