"""From the event loop to the database: one hop a transaction, on threads that keep their connection.

Never the thread-sensitive executor (one thread for a whole process) and never a hop a query; see
docs/decisions/0001. SQLite has one writer, so it gets one thread, and nobody waits on a busy lock.

A database that is away costs nobody more than A2A_DATABASE_SECONDS: see docs/decisions/0080. Which failures leave the
outcome unknown, and how a repeated write is recognised: docs/decisions/0174.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
)

from a2a_tasks.conf import conf
from a2a_tasks.outages import Outage
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.deadline import (
    CUT_OFF,
    await_no_longer_than_asked,
    drop_dead_connection,
    is_cut_off,
    longest,
)

__all__ = [
    "AWAY",
    "TooSlow",
    "behind",
    "close",
    "hang_up",
    "hop",
    "hop_for_list",
    "in_thread",
    "outcome",
    "until_answered",
]

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
#: The database is away, or takes no writes (read-only is an InternalError): that concerns everybody, whatever they ask.
AWAY = (OperationalError, InterfaceError, InternalError)
#: SQLSTATEs of transactions that lost against another one and were rolled back: a deadlock, a serialisation failure.
LOST = {"40001", "40P01"}
#: SQLSTATEs after which it is certain that nothing was written: lost (above), took too long (57014, 25P03), read-only,
#: out of resources, row locked, server starting. Class 08 is not certain: PgBouncer reports it also for a connection that
#: broke after the COMMIT. Nor is 57P01: a session that was shut down may have committed.
CERTAIN = LOST | CUT_OFF | {"25006", "53000", "53100", "53200", "53300", "55P03", "57P03"}
#: A transaction that takes too long is tried at least so often, and for so many seconds, before TooSlow is raised.
SLOW_TRIES, SLOW_SECONDS = 5, 300.0
#: How often a transaction that lost is tried in all.
TRIES = 4
#: Seconds between two attempts of those who until_answered.
AGAIN_SECONDS = 0.3
#: Threads for lists, which may be slow: the others are free for everybody else's requests meanwhile.
LIST_THREADS = 2
STORE, LISTS = "store", "lists"
_lock = threading.Lock()
_pools: dict[str, ThreadPoolExecutor] = {}
_outage = Outage(logger, "the database is away")


class TooSlow(Exception):
    """The database ended the transaction again and again because it took too long. Nothing was written."""


def _threads(name: str = STORE) -> int:
    if connection.vendor == "sqlite":
        return 1
    return LIST_THREADS if name == LISTS else int(conf.STORE_THREADS)


def _executor(name: str = STORE) -> ThreadPoolExecutor:
    """The threads of that name: one pool a process."""
    with _lock:
        if name not in _pools:
            _pools[name] = ThreadPoolExecutor(_threads(name), thread_name_prefix=name)
        return _pools[name]


def _sqlstate(fault: BaseException) -> str | None:
    return getattr(fault.__cause__, "sqlstate", None)


def _tried(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work; again if its transaction lost against another one."""
    for _ in range(TRIES - 1):
        try:
            return work(*args, **kwargs)
        except DatabaseError as fault:
            if _sqlstate(fault) not in LOST or connection.in_atomic_block:
                raise
    return work(*args, **kwargs)


def _away(fault: BaseException, *, undone: bool) -> Overloaded:
    _outage.count(fault)
    return Overloaded.away(undone=undone, slow=is_cut_off(fault))


def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction in this thread; a broken connection is dropped, so that the next one gets a new one.

    One that lost against another transaction is tried again. Raises Overloaded when the database cannot be reached,
    does not answer, or takes no writes.
    """
    drop_dead_connection()
    connected = False
    try:
        await_no_longer_than_asked()
        connected = True
        return _tried(work, *args, **kwargs)
    except AWAY as fault:
        connection.close()
        raise _away(fault, undone=not connected or _sqlstate(fault) in CERTAIN) from fault


def _begin(work: Callable[[], T], threads: str = STORE) -> Future[T]:
    """In the context of whoever asks: it says who acts (audit/actor.py)."""
    context = contextvars.copy_context()
    return _executor(threads).submit(lambda: context.run(in_thread, work))


async def _in_time(job: Future[T]) -> T:
    """The job's result; Overloaded if there is none in time. It is dropped then, if it has not begun."""
    late = asyncio.timeout(longest())
    try:
        async with late:
            return await asyncio.wrap_future(job)
    except TimeoutError as fault:
        if not late.expired():
            raise
        if job.done() and not job.cancelled():  # it is this loop that is late
            return job.result()
        raise _away(fault, undone=job.cancel()) from fault


async def hop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction in the store's threads and return its result. Raises what it raises, and Overloaded.

    Overloaded also when it takes too long, with the wait for a thread; what has begun by then may still happen.
    """
    return await _in_time(_begin(functools.partial(work, *args, **kwargs)))


async def hop_for_list(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same in threads that only lists have: slow ones keep nobody waiting but other lists."""
    return await _in_time(_begin(functools.partial(work, *args, **kwargs), LISTS))


async def outcome(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for who has no client waiting, and has to know what became of it: once begun, its end is waited for."""
    job = _begin(functools.partial(work, *args, **kwargs))
    try:
        return await _in_time(job)
    except Overloaded as away:
        if job.done() and not job.cancelled() and job.exception() is None:
            return job.result()  # it ended while it was given up
        if away.undone or job.done():
            raise
        return await asyncio.wrap_future(job)


async def until_answered(ask: Callable[[], Awaitable[T]], *, repeatable: bool = False) -> T:
    """Ask until the database answers.

    After a failure that may have written something it asks again only if `ask` is `repeatable`: it only reads, or its
    repetition is recognised. Otherwise that failure, an Overloaded, is raised. Raises TooSlow, and what `ask` raises.
    Whoever may lose interest cancels.
    """
    slow, since = 0, time.monotonic()
    while True:
        try:
            return await ask()
        except Overloaded as away:
            if not away.undone and not repeatable:
                raise
            slow, since = (slow + 1, since) if away.slow else (0, time.monotonic())
            if slow >= SLOW_TRIES and time.monotonic() - since >= SLOW_SECONDS:
                raise TooSlow(f"the database ended it {slow} times: {away.__cause__}") from away
        await asyncio.sleep(AGAIN_SECONDS)


def behind(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
    """Run a transaction in the store's threads, with nobody waiting for it: what it raises is for the log alone."""

    def done() -> None:
        try:
            in_thread(work, *args, **kwargs)
        except Exception as fault:  # noqa: BLE001 - nobody else hears of it
            logger.warning("%s came to nothing: %r", getattr(work, "__name__", work), fault)

    return _executor().submit(done)


def hang_up() -> None:
    """Close this thread's connections; the next query opens new ones."""
    connections.close_all()


def close() -> None:
    """End the threads and their connections. The next hop begins anew."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        _end(pool)


def _end(pool: ThreadPoolExecutor) -> None:
    gate = threading.Barrier(pool._max_workers)  # noqa: SLF001 - one job for each thread there may be

    def leave() -> None:
        gate.wait(timeout=10)
        hang_up()

    for _ in range(gate.parties):
        pool.submit(leave)
    pool.shutdown()
