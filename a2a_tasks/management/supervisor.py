"""Keeps the processes of a stack running, replaces them one by one, and ends them together."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a_tasks.process import READY_FD

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

__all__ = ["Program", "Supervisor", "end_with_parent"]

#: Pauses before restarts, in seconds; the last one is repeated.
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
#: Seconds of life after which a process counts as well again.
WELL_AFTER = 30.0
#: Seconds a new process gets until it can work, before the old one is kept.
READY_SECONDS = 60.0
#: Longest line of output that is passed on whole, in bytes.
LONGEST_LINE = 1 << 20
WIDTH = 9
STDIN = 0
PR_SET_PDEATHSIG = 1


class NotReady(Exception):
    """A new process cannot take its place. The text says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """One process of the stack."""

    name: str
    command: tuple[str, ...]
    #: Descriptors it inherits: the sockets it accepts on.
    descriptors: tuple[int, ...] = ()
    #: There must never be two of it, so the old process ends before the new one starts.
    alone: bool = False

    def called(self, birth: int) -> list[str]:
        """The command of its n-th process: two Celery workers of one name would share a mailbox."""
        suffix = f".{birth}@%h" if birth > 1 else "@%h"
        return [word.replace("@%h", suffix) for word in self.command]


class Child:
    """A running process: its lines are passed on, its word that it is ready is heard."""

    def __init__(
        self, process: asyncio.subprocess.Process, told: int, say: Callable[[str], None]
    ) -> None:
        self._process, self._told, self._say = process, told, say
        self._loop = asyncio.get_running_loop()
        self.begun = self._loop.time()
        self._ready = asyncio.Event()
        self._loop.add_reader(told, self._hear)
        #: Its exit code, once it has ended and its last line was passed on.
        self.ended: asyncio.Task[int] = asyncio.create_task(self._live())

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def _hear(self) -> None:
        if os.read(self._told, 16):
            self._ready.set()
        self._deaf()

    def _deaf(self) -> None:
        if self._told >= 0:
            self._loop.remove_reader(self._told)
            os.close(self._told)
            self._told = -1

    async def _live(self) -> int:
        try:
            while self._process.stdout is not None and (line := await _line(self._process.stdout)):
                self._say(line.decode(errors="replace").rstrip())
            return await self._process.wait()
        finally:
            self._deaf()

    async def ready(self, seconds: float) -> None:
        """Return once it says that it can work. Raises NotReady when it ends, or is silent for so long."""
        hearing = asyncio.create_task(self._ready.wait())
        await asyncio.wait(
            {hearing, self.ended}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        hearing.cancel()
        if self.ended.done():
            raise NotReady(f"its new process {self.pid} ended with code {self.ended.result()}")
        if not self._ready.is_set():
            raise NotReady(f"its new process {self.pid} was not ready after {seconds:g} s")

    def signal(self, signum: int) -> None:
        """To the group for SIGKILL; only to the process else, which knows best how to end its children."""
        with contextlib.suppress(ProcessLookupError):
            if signum == signal.SIGKILL:
                os.killpg(self.pid, signum)
            else:
                self._process.send_signal(signum)


class Post:
    """One place in the stack: the process that fills it, kept alive, and replaced when asked."""

    def __init__(self, program: Program, stack: Supervisor) -> None:
        self.program, self._stack = program, stack
        self._child: Child | None = None
        self._births = 0
        #: Held by who puts a process into the place.
        self._change = asyncio.Lock()
        #: Ends a pause.
        self.stirred = asyncio.Event()

    def say(self, line: str) -> None:
        """Print a line under the name of the place."""
        self._stack.say(f"{self.program.name:{WIDTH}}| {line}")

    async def keep(self) -> None:
        """Run its program again and again, with a pause that grows while it does not stay alive."""
        deaths = 0
        while True:
            try:
                child = await self._occupant()
            except NotReady as fault:
                await self._rest(str(fault), deaths)
                deaths += 1
                continue
            if child is None:
                return
            code = await child.ended
            if not await self._vacated_by(child):
                continue
            if self._stack.ending:
                self.say(f"ended with code {code}")
                return
            lived = asyncio.get_running_loop().time() - child.begun
            deaths = 0 if lived > WELL_AFTER else deaths
            await self._rest(f"died with code {code}", deaths)
            deaths += 1

    async def _occupant(self) -> Child | None:
        async with self._change:
            if self._child is None and not self._stack.ending:
                self._child = await self._start()
            return self._child

    async def _vacated_by(self, child: Child) -> bool:
        """False when another process has taken the place already."""
        async with self._change:
            if self._child is not child:
                return False
            self._child = None
            return True

    async def _rest(self, why: str, deaths: int) -> None:
        pause = self._stack.pauses[min(deaths, len(self._stack.pauses) - 1)]
        self.say(f"{why}; again in {pause} s")
        self.stirred.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stirred.wait(), pause)

    async def replace(self) -> None:
        """Put a new process into the place; the old one stays until the new one can work. Raises NotReady."""
        async with self._change:
            if self.program.alone:
                await self._hand_over_alone()
            else:
                await self._hand_over()
        self.stirred.set()

    async def _hand_over(self) -> None:
        new = await self._start()
        try:
            await new.ready(self._stack.ready_seconds)
        except NotReady:
            await self._retire(new)
            raise
        old, self._child = self._child, new
        if old is not None:
            await self._retire(old)

    async def _hand_over_alone(self) -> None:
        if self._child is not None:
            await self._retire(self._child)
        if not self._stack.ending:
            self._child = await self._start()
            await self._child.ready(self._stack.ready_seconds)

    async def _start(self) -> Child:
        self._births += 1
        return await self._stack.start(self.program, self._births, self.say)

    async def _retire(self, child: Child) -> None:
        """Have a process end that is not needed any more."""
        if not child.ended.done():
            child.signal(signal.SIGTERM)
            await asyncio.wait({child.ended}, timeout=self._stack.patience)
        if not child.ended.done():
            self.say(f"process {child.pid} did not end in time and is killed")
            child.signal(signal.SIGKILL)
        self.say(f"process {child.pid} was relieved and ended with code {await child.ended}")


@dataclass
class Supervisor:
    """Keeps programs running until it is told to end, then ends them together."""

    environ: dict[str, str]
    directory: str
    #: Seconds between SIGTERM and SIGKILL.
    patience: float
    say: Callable[[str], None]
    pauses: tuple[float, ...] = PAUSES
    ready_seconds: float = READY_SECONDS
    #: Sockets its programs inherit; closed when it ends, so that nobody waits in vain.
    sockets: Sequence[socket.socket] = ()
    #: What is run, to its end, before processes are replaced.
    prepare: Program | None = None
    #: Told when a roll begins (None), and how it ended: empty, or why it stopped.
    on_roll: Callable[[str | None], None] = lambda _: None
    #: Told once signals are heard.
    on_running: Callable[[], None] = lambda: None
    ending: bool = False
    _had_terminal: bool = field(default_factory=lambda: os.isatty(STDIN))
    _posts: list[Post] = field(default_factory=list)
    _children: set[Child] = field(default_factory=set)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _rolling: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, programs: Sequence[Program]) -> None:
        """Start all; return when all have ended after SIGTERM or SIGINT. A second signal kills them.

        SIGHUP replaces them one by one, in the order given.
        """
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self.end)
        loop.add_signal_handler(signal.SIGHUP, self.hang_up)
        self.on_running()
        self._posts = [Post(program, self) for program in programs]
        keepers = [asyncio.create_task(post.keep()) for post in self._posts]
        roller = asyncio.create_task(self._roll_when_asked())
        await self._ended.wait()
        await self._all_ended(keepers)
        async with self._rolling:  # a roll that was under way has seen its processes end
            roller.cancel()

    async def _all_ended(self, keepers: list[asyncio.Task[None]]) -> None:
        _, late = await asyncio.wait(keepers, timeout=self.patience)
        if late:
            self.tell(f"{len(late)} process(es) did not end in time and are killed")
            self._signal_all(signal.SIGKILL)
        await asyncio.gather(*keepers)

    def tell(self, line: str) -> None:
        """Print a line of the supervisor's own."""
        self.say(f"{'stack':{WIDTH}}| {line}")

    def end(self) -> None:
        """Ask all processes to end; asked again, kill them."""
        signum = signal.SIGKILL if self.ending else signal.SIGTERM
        self.ending = True
        for sock in self.sockets:
            sock.close()
        self._signal_all(signum)
        for post in self._posts:
            post.stirred.set()
        self._ended.set()

    def roll(self) -> None:
        """Replace all processes, one by one. Asked during a roll, another one follows."""
        self._asked.set()

    def hang_up(self) -> None:
        """SIGHUP: end if it is because the terminal was closed; else somebody wants new processes."""
        if self._had_terminal and not os.isatty(STDIN):
            self.end()
        else:
            self.roll()

    async def start(self, program: Program, birth: int, say: Callable[[str], None]) -> Child:
        """Start a process of a program. Raises NotReady if that cannot be done, as while its files are replaced."""
        told, tell = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *program.called(birth),
                cwd=self.directory,
                env={**self.environ, READY_FD: str(tell)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                limit=LONGEST_LINE,
                start_new_session=True,  # Ctrl-C is for us: we end them in order
                preexec_fn=end_with_parent,
                pass_fds=(tell, *program.descriptors),
            )
        except BaseException as fault:
            os.close(told)
            if isinstance(fault, OSError):
                raise NotReady(f"it cannot be started: {fault}") from fault
            raise
        finally:
            os.close(tell)
        child = Child(process, told, say)
        self._children.add(child)
        child.ended.add_done_callback(lambda _: self._children.discard(child))
        say(f"started as process {process.pid}")
        if self.ending:  # asked to end while it was being started
            child.signal(signal.SIGTERM)
        return child

    async def _roll_when_asked(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            async with self._rolling:
                await self._roll()

    async def _roll(self) -> None:
        self.on_roll(None)
        self.tell("replacing the processes one by one")
        try:
            await self._prepare()
            for post in self._posts:
                await self._replace(post)
        except NotReady as fault:
            self.tell(f"the restart stopped at {fault}. Who was not replaced goes on as before")
            self.on_roll(str(fault))
        else:
            self.tell("all processes were replaced")
            self.on_roll("")

    async def _prepare(self) -> None:
        program = self.prepare
        if program is None:
            return
        child = await self.start(
            program, 1, lambda line: self.say(f"{program.name:{WIDTH}}| {line}")
        )
        if code := await child.ended:
            raise NotReady(f"{program.name}: it ended with code {code}")

    async def _replace(self, post: Post) -> None:
        if self.ending:
            raise NotReady(f"{post.program.name}: the stack ends")
        try:
            await post.replace()
        except NotReady as fault:
            raise NotReady(f"{post.program.name}: {fault}") from fault

    def _signal_all(self, signum: int) -> None:
        for child in list(self._children):
            child.signal(signum)


async def _line(output: asyncio.StreamReader) -> bytes:
    """The next line; b"" at the end. One that is too long comes in pieces."""
    try:
        return await output.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await output.readexactly(error.consumed)


def end_with_parent() -> None:
    """In the child, on Linux: SIGTERM when the supervisor dies without a word, so that nothing keeps the ports."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
