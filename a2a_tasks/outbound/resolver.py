"""Resolution of names to addresses by the machine's own resolver, with a timeout."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from a2a_tasks.outbound.faults import FaultKind, NameNotResolved

__all__ = ["Resolve", "SystemResolver"]

#: Different names without an answer after which the resolver counts as away.
NAMES_AWAY = 3
#: Ranks of names, by their last lookups: a quick answer, nothing known, no answer. Names whose answer comes within
#: QUICK_SECONDS are quick. The ranks of MAX_RANKS names are kept.
QUICK, UNKNOWN, SILENT = range(3)
QUICK_SECONDS, MAX_RANKS = 1.0, 10_000
#: Errors of the C library itself.
OWN_FAULTS = {socket.EAI_SYSTEM: FaultKind.HOST, socket.EAI_MEMORY: FaultKind.HOST}
#: A function from a name to its addresses, best first. Raises NameNotResolved.
Resolve = Callable[[str], Awaitable[Sequence[str]]]


@dataclass(slots=True)
class _Lookup:
    """The lookup of a name, and how many callers wait for it."""

    job: Future[list[str]]
    waiters: int = 0


class SystemResolver:
    """getaddrinfo(3) on threads of its own, so that /etc/hosts and the like count. Thread-safe, for any event loop.

    A lookup cannot be interrupted: one that hangs keeps its thread until the C library gives up. So concurrent callers
    share one lookup per name, each waits for `seconds` at most, and a lookup that all have left before it began is never
    made. The names of each rank have `threads` of their own: those that hang hold up only their like.

    A missing answer may be the fault of the name. It is the host's fault if NAMES_AWAY names in a row had no answer, not
    even that they do not exist; or if the lookup never got a thread, unless the name itself is one that holds threads.
    """

    def __init__(self, *, seconds: float = 5.0, threads: int = 8) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._pools = [ThreadPoolExecutor(threads, f"resolver-{rank}") for rank in range(3)]
        self._asked: dict[str, _Lookup] = {}
        self._ranks: dict[str, int] = {}
        #: Names without an answer since the last answer to any name.
        self._silent: set[str] = set()

    async def __call__(self, name: str) -> Sequence[str]:
        """Return the addresses of a name. Raises NameNotResolved."""
        lookup, mine = self._join(name)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(mine)
        except TimeoutError:
            late = f"{name}: not resolved within {self._seconds:g} s"
            began = lookup.job.running() or lookup.job.done()
            raise NameNotResolved(late, self._without_answer(name, began=began)) from None
        except socket.gaierror as fault:
            unanswered = fault.errno == socket.EAI_AGAIN
            kind = self._without_answer(name) if unanswered else OWN_FAULTS.get(fault.errno or 0)
            raise NameNotResolved(f"{name}: {fault}", kind or FaultKind.DNS) from None
        except (OSError, UnicodeError) as fault:
            raise NameNotResolved(f"{name}: {fault}") from None
        finally:
            self._leave(name, lookup, mine)

    def _without_answer(self, name: str, *, began: bool = True) -> FaultKind:
        """Return the kind of fault for a name without an answer: the name's, or this host's."""
        with self._lock:
            if began:
                self._silent.add(name)
            elif self._ranks.get(name) != SILENT:
                return FaultKind.HOST
            return FaultKind.HOST if len(self._silent) >= NAMES_AWAY else FaultKind.DNS

    def _join(self, name: str) -> tuple[_Lookup, Future[list[str]]]:
        """Return the lookup of a name, and a future for one more waiter; its cancellation does not affect the others."""
        mine: Future[list[str]] = Future()
        with self._lock:
            lookup = self._asked.get(name)
            if lookup is None:
                pool = self._pools[self._ranks.get(name, UNKNOWN)]
                lookup = self._asked[name] = _Lookup(pool.submit(self._look_up, name))
            lookup.waiters += 1
        lookup.job.add_done_callback(lambda done: _pass_on(done, mine))
        return lookup, mine

    def _leave(self, name: str, lookup: _Lookup, mine: Future[list[str]]) -> None:
        """Wait no longer; the last waiter takes back a lookup that has not begun."""
        mine.cancel()
        with self._lock:
            lookup.waiters -= 1
            if not lookup.waiters and lookup.job.cancel():
                del self._asked[name]

    def _look_up(self, name: str) -> list[str]:
        began, answered = time.monotonic(), False
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            answered = True
        except socket.gaierror as fault:
            answered = fault.errno not in {socket.EAI_AGAIN, *OWN_FAULTS}
            raise
        finally:
            self._end(name, time.monotonic() - began, answered=answered)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def _end(self, name: str, seconds: float, *, answered: bool) -> None:
        """Give the name its rank for the next lookup; without an answer in time it is one lower."""
        with self._lock:
            self._asked.pop(name, None)
            rank = min(SILENT, self._ranks.pop(name, UNKNOWN) + 1)
            if answered:
                self._silent.clear()
            if answered and seconds < self._seconds:
                rank = QUICK if seconds < QUICK_SECONDS else UNKNOWN
            self._ranks[name] = rank
            if len(self._ranks) > MAX_RANKS:
                del self._ranks[next(iter(self._ranks))]


def _pass_on(done: Future[list[str]], mine: Future[list[str]]) -> None:
    if not mine.set_running_or_notify_cancel():
        return
    fault = done.exception()
    if fault is not None:
        mine.set_exception(fault)
    else:
        mine.set_result(done.result())
