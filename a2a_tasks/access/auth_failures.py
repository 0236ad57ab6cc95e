"""Denied requests and failed sign-ins for the audit log: each kind once, then its count every few seconds.

Entries are written in the background, so that no request waits for them.

auth_failures.record_unauthenticated(address, slug, "an unknown API key")   # 401: the caller is unknown
auth_failures.record_forbidden(caller, agent, "lacks the scope pay", address=...)     # 403: the caller is known
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from a2a_tasks import process_lifetime
from a2a_tasks.agents.agent import Agent
from a2a_tasks.audit import Action
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.store import audit
from a2a_tasks.store.db import run_in_background

__all__ = [
    "NO_CREDENTIALS",
    "Denial",
    "Throttle",
    "record_forbidden",
    "record_failed_sign_in",
    "flush",
    "install",
    "record_unauthenticated",
]

#: The reason for a request without any. Many clients learn in this way which they need.
NO_CREDENTIALS = "no credentials"
#: Seconds between two entries about one kind of denial.
REST = 10.0
#: Kinds of denials that are counted separately; all further kinds are counted together.
MAX_COUNT = 200


class Denial(NamedTuple):
    """A kind of denials: equal denials are counted in one entry."""

    action: Action
    address: str
    why: str
    agent: str = ""
    tenant: str = ""
    actor: str = ""
    object: str = ""


class _DenialCount:
    """The number of unwritten denials of a kind, and the time from which the next entry may be written."""

    def __init__(self, until: float) -> None:
        self.count, self.until = 0, until


class Throttle:
    """A filter before the log: the first denial of a kind is written at once, further ones as a count. Thread-safe."""

    def __init__(
        self,
        write: Callable[[Denial, int], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._clock = write, clock
        self._lock = threading.Lock()
        self._counts: dict[Denial, _DenialCount] = {}

    def tell(self, denial: Denial) -> bool:
        """Count a denial. True if it was written at once, False if `flush` has to write it."""
        now = self._clock()
        with self._lock:
            kind = self._kind(denial, now)
            seen = self._counts.get(kind)
            if seen is not None and now < seen.until:
                seen.count += 1
                return False
            count = seen.count if seen is not None else 0
            self._counts[kind] = _DenialCount(now + REST)
        self._write(kind, count + 1)
        return True

    def flush(self) -> None:
        """Write the counts that were not written yet."""
        now = self._clock()
        with self._lock:
            counted = [(denial, seen.count) for denial, seen in self._counts.items() if seen.count]
            for denial, _ in counted:
                self._counts[denial] = _DenialCount(now + REST)
        for denial, count in counted:
            self._write(denial, count)

    def _kind(self, denial: Denial, now: float) -> Denial:
        """Return the denial, or the one for all others: a caller with many addresses fills neither memory nor log."""
        if denial in self._counts or len(self._counts) < MAX_COUNT:
            return denial
        for old in [
            old for old, seen in self._counts.items() if not seen.count and seen.until <= now
        ]:
            del self._counts[old]
        return denial if len(self._counts) < MAX_COUNT else Denial(denial.action, "others", "")


def _put(denial: Denial, count: int) -> Future[None]:
    return run_in_background(_note, denial, count)


def _note(denial: Denial, count: int) -> None:
    audit.note(
        denial.action,
        denial.object,
        scope=OwnerScope(denial.tenant, denial.actor, denial.agent),
        actor=denial.actor,
        request="",
        detail={"address": denial.address, "why": denial.why, "count": count},
    )


_throttle = Throttle(_put)
_timer: threading.Timer | None = None
_timer_lock = threading.Lock()


def record_unauthenticated(address: str, slug: str, why: str, principal: str = "") -> None:
    """Record a request without valid credentials for an agent or the host (401).

    The reason `why` contains no part of the credentials. `principal`: the owner of wrong credentials, if known.
    """
    _tell(Denial(Action.ACCESS_REFUSED, address, why, slug, object=principal))


def record_forbidden(caller: Caller, agent: Agent | None, why: str, *, address: str = "") -> None:
    """Record a request that its known caller may not make (403)."""
    slug = agent.slug if agent else ""
    _tell(Denial(Action.ACCESS_DENIED, address, why, slug, caller.tenant, caller.principal))


def record_failed_sign_in(address: str, user: str) -> None:
    """Record a failed sign-in to the pages; `user` is empty if the user does not exist."""
    _tell(Denial(Action.LOGIN_FAILED, address, "", object=user))


def flush() -> None:
    """Write the counts of this process that were not written yet."""
    _throttle.flush()


def _tell(denial: Denial) -> None:
    if not _throttle.tell(denial):
        _flush_soon()


def _flush_soon() -> None:
    global _timer  # noqa: PLW0603 - one timer per process
    with _timer_lock:
        if _timer is None or not _timer.is_alive():  # also after a fork
            _timer = threading.Timer(REST, _flush_late)
            _timer.daemon = True
            _timer.start()


def _flush_late() -> None:
    global _timer  # noqa: PLW0603 - one timer per process
    with _timer_lock:
        _timer = None  # a denial that comes during the flush needs the next one
    flush()


def install() -> None:
    """Flush the counts when the process ends."""
    process_lifetime.on_stop(functools.partial(asyncio.to_thread, flush))
