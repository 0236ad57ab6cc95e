"""The process of an agent with `runs_in = "process"`: it executes one turn at a time for the runner that started it.

    python -m a2a_tasks.execution.child DESCRIPTOR PARENT

The agent is called by `drive`, as in the runner's process. Stored data of the turn is requested over the pipe, so this
process never accesses the rows of its task. It ends with the pipe, so it never outlives its runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import itertools
import os
import pickle
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import django

from a2a_tasks.agents import (
    Agent,
    AgentError,
    Conversation,
    Files,
    Journal,
    Part,
    Secrets,
    Turn,
    registry,
)
from a2a_tasks.agents.author_errors import definition, keepable, line_of
from a2a_tasks.agents.emission import Emission, emission, mend_emission
from a2a_tasks.agents.turn import Later
from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.conf import conf
from a2a_tasks.execution.agent_call import RunThreads, drive, tell_of_cancel
from a2a_tasks.execution.pipe import (
    READ_LATER,
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
    iterate_messages,
    largest_frame,
    pack,
)
from a2a_tasks.execution.run_log_handler import LogLine as Line
from a2a_tasks.execution.run_log_handler import current, install
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import UNSET
from a2a_tasks.telemetry import log_context, printed_lines, tracing
from a2a_tasks.telemetry.provider import SHORT_MILLISECONDS, start_provider

__all__ = ["main"]

PR_SET_PDEATHSIG = 1
#: Characters of the text and the trace of an exception that are sent from their start, and from their end.
EACH_END = 32 * 1024
Asker = Callable[..., Awaitable[Any]]
M = TypeVar("M", bound=Callable[..., Awaitable[Any]])


def relay(method: M) -> M:
    """Return a method like this one, which the runner answers by that of its own object."""

    async def ask(self: Any, *arguments: Any, **named: Any) -> Any:
        return await self.ask(self.of, method.__name__, *arguments, **named)

    return cast("M", functools.wraps(method)(ask))


class RemoteJournal(Journal):
    """The journal of a turn whose real one is in the runner's process."""

    of, parks = "journal", True
    look_at_budgets, park = relay(Journal.look_at_budgets), relay(Journal.park)
    look, clock = relay(Journal.look), relay(Journal.clock)
    look_at_calls, read_answer = relay(Journal.look_at_calls), relay(Journal.read_answer)

    def __init__(self, ask: Asker, tell: Callable[[Any], None], threads: RunThreads) -> None:
        super().__init__()
        self.ask, self._tell, self._threads = ask, tell, threads

    async def load(self, name: str) -> Mapping[str, str]:
        """Read the stored results before each step, since an aborted write may have succeeded."""
        self.results.update(await self.ask("journal", "load", name))
        return self.results

    async def keep(self, name: str, result: str) -> None:
        """Store a step's result through the runner, after all earlier output."""
        await self.ask("journal", "keep", name, result)
        self.results[name] = result

    async def begin_call(self, call: WantedCall) -> str | float:
        """Begin a call through the runner."""
        begun: str | float = await self.ask("journal", "begin_call", call)
        if isinstance(begun, str):
            self.results[call.name] = begun
        return begun

    async def follow(self, keys: Collection[int], asking: Collection[int], seconds: float) -> None:
        """Wait, and look again soon: the runner answers one question after the other."""
        await self.pause(min(seconds, float(conf.POLL_SECONDS)))

    @property
    def may_wait(self) -> bool:
        """False: a process that waits would be no other agent's."""
        return False

    @contextlib.contextmanager
    def lend_slot(self, *, in_thread: bool) -> Iterator[None]:
        """Let the runner lend slot and process's place, as long as the block lasts."""
        self._tell(AgentWaits(begins=True))
        try:
            yield
        finally:
            self._tell(AgentWaits(begins=False))

    def report(self, used: UsageReport) -> None:
        """Send a report of usage to the runner at once."""
        self._tell(UsageReported(used))

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Call a function in a thread for agents."""
        return await self._threads.in_thread(work)


class RemotePart:
    """A part of a turn that is read through the runner."""

    def __init__(self, ask: Asker) -> None:
        super().__init__()
        self.ask = ask


class RemoteFiles(RemotePart, Files):
    """The files of a turn, read and downloaded through the runner."""

    of = "files"
    read_stored, download = relay(Files.read_stored), relay(Files.download)


class RemoteSecrets(RemotePart, Secrets):
    """The secrets of a turn."""

    of = "secrets"
    read_handed = relay(Secrets.read_handed)


class RemoteConversation(RemotePart, Conversation):
    """The conversation of a turn. The runner gets the changes at the end of the turn."""

    of = "conversation"
    read_value, read_version = relay(Conversation.read_value), relay(Conversation.read_version)
    read_items, count_keys = relay(Conversation.read_items), relay(Conversation.count_keys)
    read_history = relay(Conversation.read_history)


class TellingLog:
    """The log of a turn whose real one is in the runner's process. Thread-safe."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._left, self._missed = int(conf.RUN_LOG_LINES), 0

    def take(self, line: Line) -> None:
        """Send a line to the runner, or count it if the log is full."""
        with self._lock:
            if not self._left:
                self._missed += 1
                return
            self._left -= 1
        self._send(AgentLogged(line))

    def count_dropped(self, count: int) -> None:
        """Count lines that were not kept."""
        with self._lock:
            self._missed += count

    def close(self) -> None:
        """Send the number of lines that were not kept."""
        if self._missed:
            self._send(AgentLogged(None, self._missed))


class RunnerPipe:
    """The pipe to the runner, in the agent's process."""

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._taken: asyncio.Future[bool] | None = None
        self._hosted: HostedTurn | None = None
        #: True once the runner has left the turn, and answers no more.
        self._left = False

    def listen(self) -> None:
        """Read messages of the runner to the end of the pipe, then end the process. In a thread of its own."""
        with contextlib.suppress(OSError):
            for message in iterate_messages(self._pipe):
                if message is Signal.STOP and self._hosted is not None:
                    self._hosted.turn._stop()  # noqa: SLF001 - at once: the agent may keep the loop busy
                self._loop.call_soon_threadsafe(self._take, message)
        os.killpg(0, signal.SIGKILL)  # with all processes that the agent has started

    def send(self, message: Any) -> None:
        """Send a message to the runner; blocks while the pipe is full. Raises FrameTooLarge, before it sends anything."""
        for piece in pack(message, largest_frame()):
            self._pipe.sendall(piece)

    def send_from_any_thread(self, message: Any) -> None:
        """Send a message as `send` does, from any thread; messages of two threads do not mix."""
        if threading.current_thread() is threading.main_thread():
            self.send(message)
        else:
            self._loop.call_soon_threadsafe(self.send, message)

    async def wait_taken(self) -> bool:
        """Wait until the runner has recorded the last value; returns whether it wants another one."""
        self._taken = self._loop.create_future()
        return await self._taken

    async def ask(self, of: str, name: str, *arguments: Any, **named: Any) -> Any:
        """Ask the runner, and wait for the answer. Raises CancelledError once the runner has left the turn."""
        if self._left:
            raise asyncio.CancelledError
        number = next(self._numbers)
        answer = self._questions[number] = self._loop.create_future()
        try:
            self.send(Ask(number, of, name, arguments, named))
            return await answer
        finally:
            del self._questions[number]

    def _take(self, message: Any) -> None:
        match message:
            case StartRun():
                self._left = False
                self._hosted = HostedTurn(self, message)
            case Signal.STOP:
                self._left = True
                for question in self._questions.values():
                    question.cancel()
                if self._hosted is not None:
                    self._hosted.stop()
            case Answer(number, value):
                waiting = self._questions.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(value)
            case Signal.NEXT | Signal.CLOSE if self._taken is not None and not self._taken.done():
                self._taken.set_result(message is Signal.NEXT)


class HostedTurn:
    """The turn that this process executes."""

    def __init__(self, host: RunnerPipe, start: StartRun) -> None:
        log_context.current.set(start.log_context)
        self._host, self._agent, self._trace = host, start.agent, start.trace
        self._cancelled = start.cancelled
        self._threads = RunThreads(start.agent)
        loop = asyncio.get_running_loop()
        journal = RemoteJournal(self._ask, self._tell, self._threads)
        later: dict[str, Any] = {
            name: Later(partial(self._ask, "turn", name), loop) for name in READ_LATER
        }
        self.turn = Turn(
            **start.about,
            **later,
            journal=journal,
            files=RemoteFiles(self._ask),
            secrets=RemoteSecrets(self._ask),
            conversation=RemoteConversation(self._ask),
        )
        #: True once the agent has ended. Work that it left running must not send questions in the name of the next turn.
        self._over = False
        self._running = journal.task = asyncio.create_task(self._run())
        self._freeing = asyncio.create_task(self._free())

    def stop(self) -> None:
        """Cancel the agent. The runner kills this process if that does not end it."""
        self._threads.stopped = True
        self._running.cancel()

    async def _ask(self, of: str, name: str, *arguments: Any, **named: Any) -> Any:
        if self._over:
            raise asyncio.CancelledError
        answer = await self._host.ask(of, name, *arguments, **named)
        if isinstance(answer, AgentError):
            raise answer
        return answer

    def _tell(self, message: Any) -> None:
        if not self._over:
            self._host.send_from_any_thread(message)

    async def _run(self) -> None:
        """Run the agent, and report how it ended."""
        self._host.send(Signal.STARTED)
        log = TellingLog(self._host.send_from_any_thread)
        current.set(log)
        tracing.join(self._trace, self.turn.task_id, self.turn.context_id)
        try:
            memory = await self._run_agent()
            self._over = True
            log.close()
            changes = self.turn.conversation.list_changes()
            self._host.send(TurnEnded(memory, changes))
        except BaseException as fault:  # noqa: BLE001 - the runner decides about it
            self._over = True
            log.close()
            self._host.send(_describe_fault(fault))

    async def _free(self) -> None:
        """Report when also the threads have ended for which the agent did not wait."""
        await asyncio.wait([self._running])
        await self._threads.wait_idle()
        self._host.send(Signal.IDLE)

    async def _run_agent(self) -> str:
        """Run the agent; return the memory that it has left, as JSON."""
        agent = registry.find_own(self._agent)
        if agent is None:
            raise AgentError("The agent is no longer hosted here.")
        if self._cancelled:
            await tell_of_cancel(agent, self.turn, self._threads)
            return "{}"
        async with contextlib.aclosing(drive(agent, self.turn, self._threads)) as values:
            async for value in values:
                self._send_value(value, line_of(self.turn._source) or definition(agent.run))  # noqa: SLF001
                if not await self._host.wait_taken():
                    break
        memory = self._read_memory(agent)
        self.turn._unused.tell(type(agent).__module__, agent.run)  # noqa: SLF001
        return memory

    def _send_value(self, value: Any, line: str) -> None:
        """Send a value to the runner, after the check of its type: other values may not be picklable either."""
        try:
            _check_size(mend_emission(emission(value, begun=False)))
            try:
                self._host.send(Output(value, line))
            except (pickle.PicklingError, TypeError, AttributeError):
                write(value)  # raises the error of JSON, as on the event loop
                raise
        except Exception as fault:
            fault.add_note(f"It was emitted at {line}")
            raise fault from None

    def _read_memory(self, agent: Agent) -> str:
        """Return the memory as JSON; other values may not be picklable either."""
        try:
            where = definition(agent.run)
            return write(keepable("turn.memory", self.turn.memory, where)).decode()
        except TypeError as fault:
            fault.add_note(f"It is the memory that the agent has left: {definition(agent.run)}")
            raise


def _describe_fault(fault: BaseException) -> AgentRaised:
    is_public = isinstance(fault, AgentError)
    trace = "".join(traceback.format_exception(fault))
    notes = "\n".join(map(str, getattr(fault, "__notes__", ()))).splitlines()
    # This works even if its str() raises; the notes come last and are skipped.
    text = traceback.format_exception_only(fault)[-1 - len(notes)].rstrip()
    return AgentRaised(_shorten(str(fault) if is_public else text), _shorten(trace), is_public)


def _shorten(text: str) -> str:
    """Return a text, or both ends of a very long one: the last lines of a trace name the exception."""
    return text if len(text) <= 2 * EACH_END else f"{text[:EACH_END]}\n…\n{text[-EACH_END:]}"


def _check_size(value: Emission) -> None:
    """Raise FrameTooLarge for a value that no artifact may hold.

    The runner would find the same, but only after it has read the value, and written it as JSON: an object in several
    places is pickled once. The base64 of files does not count here.
    """
    most = int(conf.MAX_ARTIFACT_BYTES)
    if most and sum(map(_measure, value.parts)) > most:
        raise FrameTooLarge(most)


def _measure(part: Part) -> int:
    text = len(part.text) if isinstance(part.text, str) else 0
    about = [each for each in (part.data, part.metadata) if each is not None and each is not UNSET]
    return text + sum(len(write(each)) for each in about)


# --- the process ----------------------------------------------------------------------------


def main(descriptor: int, parent: int) -> None:
    """Execute turns until the pipe of that descriptor ends."""
    os.set_inheritable(descriptor, False)
    os.register_at_fork(after_in_child=lambda: os.close(descriptor))  # it would keep the pipe open
    _die_with(parent)
    for signum in (signal.SIGTERM, signal.SIGINT):
        # Supervisors signal the whole group, but the runner decides. SIG_IGN would be inherited by other programs.
        signal.signal(signum, lambda *_: None)
    django.setup()
    printed_lines.log_printed_lines()
    start_provider(delay=SHORT_MILLISECONDS)
    install()
    asyncio.run(_serve(socket.socket(fileno=descriptor)))


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this process with its runner: while the GIL is held, the end of the pipe is unseen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


async def _serve(pipe: socket.socket) -> None:
    host = RunnerPipe(pipe)
    threading.Thread(target=host.listen, name="pipe", daemon=True).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
