"""Resolution of names to addresses by the machine's own resolver, with a timeout."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from a2a_tasks.outbound.faults import FaultKind, NameNotResolved

__all__ = ["Resolve", "SystemResolver"]

#: Different names without an answer after which the resolver counts as away.
NAMES_AWAY = 3
#: Errors of the C library itself.
OWN_FAULTS = {socket.EAI_SYSTEM: FaultKind.HOST, socket.EAI_MEMORY: FaultKind.HOST}
#: A function from a name to its addresses, best first. Raises NameNotResolved.
Resolve = Callable[[str], Awaitable[Sequence[str]]]


class SystemResolver:
    """getaddrinfo(3) on threads of its own, so that /etc/hosts and the like count. Thread-safe, for any event loop.

    A lookup cannot be interrupted: one that hangs keeps its thread until the C library gives up. So concurrent callers
    share one lookup per name, and each waits for `seconds` at most.

    A missing answer may be the fault of the name. It is the host's fault if the lookup never got a thread, or if
    NAMES_AWAY names in a row had no answer, not even that they do not exist.
    """

    def __init__(self, *, seconds: float = 5.0, threads: int = 16) -> None:
        self._seconds = seconds
        self._threads = threads
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._asked: dict[str, Future[list[str]]] = {}
        #: Names without an answer since the last answer to any name.
        self._silent: set[str] = set()

    async def __call__(self, name: str) -> Sequence[str]:
        """Return the addresses of a name. Raises NameNotResolved."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(self._share(name))
        except TimeoutError:
            late = f"{name}: not resolved within {self._seconds:g} s"
            raise NameNotResolved(late, self._without_answer(name)) from None
        except socket.gaierror as fault:
            unanswered = fault.errno == socket.EAI_AGAIN
            kind = self._without_answer(name) if unanswered else OWN_FAULTS.get(fault.errno or 0)
            raise NameNotResolved(f"{name}: {fault}", kind or FaultKind.DNS) from None
        except (OSError, UnicodeError) as fault:
            raise NameNotResolved(f"{name}: {fault}") from None

    def _without_answer(self, name: str) -> FaultKind:
        """Return the kind of fault for a name without an answer: the name's, or this host's."""
        with self._lock:
            job = self._asked.get(name)
            if job is not None and not (job.running() or job.done()):
                return FaultKind.HOST
            self._silent.add(name)
            return FaultKind.HOST if len(self._silent) >= NAMES_AWAY else FaultKind.DNS

    def _share(self, name: str) -> Future[list[str]]:
        """Return a future for a shared lookup; cancelling it does not affect the other waiters."""
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
            self._answer()
        except socket.gaierror as fault:
            if fault.errno not in {socket.EAI_AGAIN, *OWN_FAULTS}:
                self._answer()
            raise
        finally:
            with self._lock:
                self._asked.pop(name, None)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def _answer(self) -> None:
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
