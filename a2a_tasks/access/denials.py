"""Who was not let in, for the audit log: each kind once, then how often every few seconds, and never in a request's way.

denials.refused(address, slug, "an API key that is not there")      # 401: nobody knows who it is
denials.denied(caller, agent, "lacks the scope pay", address=...)    # 403: it is known who it is
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from a2a_tasks import lifetime
from a2a_tasks.agents.agent import Agent
from a2a_tasks.audit import Action
from a2a_tasks.caller import Caller, Scope
from a2a_tasks.store import audit
from a2a_tasks.store.hop import behind

__all__ = ["Denial", "Throttle", "denied", "failed", "flush", "install", "refused"]

#: Seconds between two entries about the same.
REST = 10.0
#: Kinds that are told apart; what comes beyond is one more kind.
MOST = 200


class Denial(NamedTuple):
    """What makes two denials the same."""

    action: Action
    address: str
    why: str
    agent: str = ""
    tenant: str = ""
    actor: str = ""
    object: str = ""


class _Seen:
    """A kind of denials: how many were not written yet, and when they may be."""

    def __init__(self, until: float) -> None:
        self.count, self.until = 0, until


class Throttle:
    """Denials on their way to the log: the first at once, the next as a number. Thread-safe."""

    def __init__(
        self,
        write: Callable[[Denial, int], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._clock = write, clock
        self._lock = threading.Lock()
        self._seen: dict[Denial, _Seen] = {}

    def tell(self, denial: Denial) -> bool:
        """It happened. True if it was written at once, False if that is left to `flush`."""
        now = self._clock()
        with self._lock:
            known = self._kind(denial, now)
            seen = self._seen.get(known)
            if seen is not None and now < seen.until:
                seen.count += 1
                return False
            count = seen.count if seen is not None else 0
            self._seen[known] = _Seen(now + REST)
        self._write(known, count + 1)
        return True

    def flush(self) -> None:
        """Write what was counted."""
        now = self._clock()
        with self._lock:
            told = [(denial, seen.count) for denial, seen in self._seen.items() if seen.count]
            for denial, _ in told:
                self._seen[denial] = _Seen(now + REST)
        for denial, count in told:
            self._write(denial, count)

    def _kind(self, denial: Denial, now: float) -> Denial:
        """The denial, or that of all others: whoever comes from many addresses fills neither memory nor log."""
        if denial in self._seen or len(self._seen) < MOST:
            return denial
        for old in [
            old for old, seen in self._seen.items() if not seen.count and seen.until <= now
        ]:
            del self._seen[old]
        return denial if len(self._seen) < MOST else Denial(denial.action, "others", "")


def _put(denial: Denial, count: int) -> Future[None]:
    return behind(_note, denial, count)


def _note(denial: Denial, count: int) -> None:
    audit.note(
        denial.action,
        denial.object,
        scope=Scope(denial.tenant, denial.actor, denial.agent),
        actor=denial.actor,
        request="",
        detail={"address": denial.address, "why": denial.why, "count": count},
    )


_throttle = Throttle(_put)
_timer: threading.Timer | None = None
_timer_lock = threading.Lock()


def refused(address: str, slug: str, why: str, whose: str = "") -> None:
    """Somebody without credentials that open an agent, or the host itself (401). `why` holds nothing of them.

    `whose`: the principal whose credentials were wrong, if that is known.
    """
    _tell(Denial(Action.ACCESS_REFUSED, address, why, slug, object=whose))


def denied(caller: Caller, agent: Agent | None, why: str, *, address: str = "") -> None:
    """A known caller may not do that (403)."""
    slug = agent.slug if agent else ""
    _tell(Denial(Action.ACCESS_DENIED, address, why, slug, caller.tenant, caller.principal))


def failed(address: str, user: str) -> None:
    """A sign-in to the pages failed; `user` is empty unless there is one of that name."""
    _tell(Denial(Action.LOGIN_FAILED, address, "", object=user))


def flush() -> None:
    """Write down what was counted until now."""
    _throttle.flush()


def _tell(denial: Denial) -> None:
    if not _throttle.tell(denial):
        _flush_soon()


def _flush_soon() -> None:
    global _timer  # noqa: PLW0603 - one a process
    with _timer_lock:
        if _timer is None or not _timer.is_alive():  # also after a fork
            _timer = threading.Timer(REST, flush)
            _timer.daemon = True
            _timer.start()


def install() -> None:
    """Write down what was counted when the process ends."""
    lifetime.on_stop(functools.partial(asyncio.to_thread, flush))
