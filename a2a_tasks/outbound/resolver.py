"""From names to addresses: what the machine's own resolver says, in time or not at all."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from a2a_tasks.outbound.faults import Kind, NameNotResolved

__all__ = ["Resolve", "SystemResolver"]

#: Different names without an answer after which it is the resolver that is away.
NAMES_AWAY = 3
#: What the C library cannot do at all.
OWN_FAULTS = {socket.EAI_SYSTEM: Kind.HOST, socket.EAI_MEMORY: Kind.HOST}
#: From a name to its addresses, best first. Raises NameNotResolved.
Resolve = Callable[[str], Awaitable[Sequence[str]]]


class SystemResolver:
    """getaddrinfo(3), so that /etc/hosts and the like count, on threads of its own. Thread-safe, for any loop.

    It cannot be interrupted: one that hangs keeps its thread until the C library gives up. So a name is asked for once
    at a time, however many want it, and nobody waits longer than `seconds`.

    A name that nobody answers for may be its own fault. It is the host's if it never had a thread, or if as many as
    NAMES_AWAY in a row had no answer, not even that they do not exist.
    """

    def __init__(self, *, seconds: float = 5.0, threads: int = 16) -> None:
        self._seconds = seconds
        self._threads = threads
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._asked: dict[str, Future[list[str]]] = {}
        #: Names nobody answered for, since any name was answered for.
        self._silent: set[str] = set()

    async def __call__(self, name: str) -> Sequence[str]:
        """The addresses of a name. Raises NameNotResolved."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(self._shared(name))
        except TimeoutError:
            late = f"{name}: not resolved within {self._seconds:g} s"
            raise NameNotResolved(late, self._without_answer(name)) from None
        except socket.gaierror as fault:
            unanswered = fault.errno == socket.EAI_AGAIN
            kind = self._without_answer(name) if unanswered else OWN_FAULTS.get(fault.errno or 0)
            raise NameNotResolved(f"{name}: {fault}", kind or Kind.DNS) from None
        except (OSError, UnicodeError) as fault:
            raise NameNotResolved(f"{name}: {fault}") from None

    def _without_answer(self, name: str) -> Kind:
        """Whose fault it is that nobody answered for a name."""
        with self._lock:
            job = self._asked.get(name)
            if job is not None and not (job.running() or job.done()):
                return Kind.HOST
            self._silent.add(name)
            return Kind.HOST if len(self._silent) >= NAMES_AWAY else Kind.DNS

    def _shared(self, name: str) -> Future[list[str]]:
        """A future of one's own, which may be cancelled, for an answer that others wait for too."""
        mine: Future[list[str]] = Future()
        with self._lock:
            job = self._asked.get(name)
            if job is None:
                job = self._asked[name] = self._executor().submit(self._look_up, name)
        job.add_done_callback(lambda done: _pass_on(done, mine))
        return mine

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="resolver")
        return self._pool

    def _look_up(self, name: str) -> list[str]:
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            self._answered()
        except socket.gaierror as fault:
            if fault.errno not in {socket.EAI_AGAIN, *OWN_FAULTS}:
                self._answered()
            raise
        finally:
            with self._lock:
                self._asked.pop(name, None)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def _answered(self) -> None:
        with self._lock:
            self._silent.clear()


def _pass_on(done: Future[list[str]], mine: Future[list[str]]) -> None:
    if not mine.set_running_or_notify_cancel():
        return
    fault = done.exception()
    if fault is not None:
        mine.set_exception(fault)
    else:
        mine.set_result(done.result())
