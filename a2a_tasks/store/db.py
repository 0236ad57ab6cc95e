"""From the event loop to the database: one job a transaction, on threads that keep their connection.

Never the thread-sensitive executor (one thread for a whole process) and never a job a query; see
docs/decisions/0002. SQLite has one writer, so it gets one thread, and nobody waits on a busy lock.

A database that is away costs nobody more than A2A_DATABASE_SECONDS. Which failures leave the
outcome unknown, and how a repeated write is recognised: docs/decisions/0005.
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
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Blame, Overloaded
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.backend.sessions import (
    CUT_OFF,
    LOCKED,
    await_no_longer_than_asked,
    drop_dead_connection,
    longest,
)

__all__ = [
    "AWAY",
    "TransactionRefused",
    "run_in_background",
    "close",
    "close_connections",
    "run_in_thread",
    "run_list_query",
    "run_here",
    "run_to_completion",
    "retry_until_answered",
]

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
#: The database is away, or takes no writes (read-only is an InternalError): that concerns everybody, whatever they ask.
AWAY = (OperationalError, InterfaceError, InternalError)
#: SQLSTATEs of transactions that lost against another one and were rolled back: a deadlock, a serialisation failure.
LOST = {"40001", "40P01"}
#: SQLSTATEs after which it is certain that nothing was written: lost (above), took too long, read-only, out of resources,
#: server starting. Class 08 is not certain: PgBouncer reports it also for a connection that broke after the COMMIT. Nor is
#: 57P01: a session that was shut down may have committed.
CERTAIN = LOST | CUT_OFF | {"25006", "53000", "53100", "53200", "53300", "57P03"}
#: The beginnings of the SQLSTATEs of an outage: no connection, read-only, out of resources, shut down or starting.
OUTAGE = ("08", "25006", "53", "57P0")
#: A transaction fails at least so often, and for so many seconds, while others succeed, before Refused is raised.
REFUSALS, REFUSED_SECONDS = 5, 300.0
#: SQLSTATE of a prepared statement whose columns a migration has changed.
STALE = "0A000"
#: The number of tries of a transaction that lost.
TRIES = 4
#: Seconds between two attempts of `retry_until_answered`.
AGAIN_SECONDS = 0.3
#: Threads for lists, which may be slow: the others are free for everybody else's requests meanwhile.
LIST_THREADS = 2
STORE, LISTS = "store", "lists"
_lock = threading.Lock()
_pools: dict[str, ThreadPoolExecutor] = {}
_outage = ThrottledLogger(logger, "the database is away")
_refusal = ThrottledLogger(logger, "the database refused a transaction")


class TransactionRefused(Exception):
    """The database refused the transaction again and again, while it did others."""


class _Successes:
    """The number of transactions of this process that have succeeded."""

    count = 0


_successes = _Successes()


def _threads(name: str = STORE) -> int:
    wanted = LIST_THREADS if name == LISTS else int(conf.STORE_THREADS)
    return min(wanted, backend().max_threads or wanted)


def _executor(name: str = STORE) -> ThreadPoolExecutor:
    """Return the threads of that name: one pool a process."""
    with _lock:
        if name not in _pools:
            _pools[name] = ThreadPoolExecutor(_threads(name), thread_name_prefix=name)
        return _pools[name]


def _sqlstate(fault: BaseException) -> str | None:
    return getattr(fault.__cause__, "sqlstate", None)


def _try(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work; again if its transaction lost against another one, or its plan is older than the tables."""
    for _ in range(TRIES - 1):
        try:
            return work(*args, **kwargs)
        except DatabaseError as fault:
            if _sqlstate(fault) not in {STALE, *LOST} or connection.in_atomic_block:
                raise
            if _sqlstate(fault) == STALE:
                connection.close()
                await_no_longer_than_asked()
    return work(*args, **kwargs)


def _blame(fault: BaseException) -> Blame:
    state = _sqlstate(fault)
    if state is None:  # a lost connection has none, nor has SQLite
        generic = getattr(fault.__cause__, "sqlite_errorname", "") == "SQLITE_ERROR"
        return Blame.ITSELF if generic else Blame.NOBODY
    if state.startswith(OUTAGE):
        return Blame.NOBODY
    return Blame.OTHERS if state in {LOCKED, *LOST} else Blame.ITSELF


def _away(fault: BaseException, *, undone: bool) -> Overloaded:
    blame = _blame(fault)
    (_refusal if blame is Blame.ITSELF else _outage).warning(fault)
    return Overloaded.away(undone=undone, blame=blame)


def run_here(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction in this thread; a broken connection is dropped, so that the next one gets a new one.

    One that lost against another transaction is tried again. Raises Overloaded when the database cannot be reached,
    does not answer, or takes no writes.
    """
    drop_dead_connection()
    connected = False
    try:
        await_no_longer_than_asked()
        connected = True
        done = _try(work, *args, **kwargs)
    except AWAY as fault:
        connection.close()
        raise _away(fault, undone=not connected or _sqlstate(fault) in CERTAIN) from fault
    _successes.count += 1
    return done


def _begin(work: Callable[[], T], threads: str = STORE) -> Future[T]:
    """In the context of whoever asks: it says who acts (audit/actor.py)."""
    context = contextvars.copy_context()
    return _executor(threads).submit(lambda: context.run(run_here, work))


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


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction in the store's threads and return its result. Raises what it raises, and Overloaded.

    Overloaded also when it takes too long, with the wait for a thread; what has begun by then may still happen.
    """
    return await _in_time(_begin(functools.partial(work, *args, **kwargs)))


async def run_list_query(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `run_in_thread`, in threads for lists alone: slow lists delay only other lists."""
    return await _in_time(_begin(functools.partial(work, *args, **kwargs), LISTS))


async def run_to_completion(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `run_in_thread`, for callers without a waiting client that must know the result: a transaction that began is waited for."""
    job = _begin(functools.partial(work, *args, **kwargs))
    try:
        return await _in_time(job)
    except Overloaded as away:
        if job.done() and not job.cancelled() and job.exception() is None:
            return job.result()  # it ended while it was given up
        if away.undone or job.done():
            raise
        return await asyncio.wrap_future(job)


async def retry_until_answered(ask: Callable[[], Awaitable[T]], *, repeatable: bool = False) -> T:
    """Ask until the database answers.

    After a failure that may have written something it asks again only if `ask` is `repeatable`: it only reads, or its
    repetition is recognised. Otherwise that failure, an Overloaded, is raised. Raises Refused, and what `ask` raises.
    A caller that loses interest cancels.

    A failure counts as a refusal if it may be its own fault, and the database has done other work of this process since the
    one before: what stops everybody is nobody's fault.
    """
    refusals, since, successes = 0, time.monotonic(), _successes.count
    while True:
        try:
            return await ask()
        except Overloaded as away:
            if not away.undone and not repeatable:
                raise
            if away.blame is Blame.NOBODY:
                refusals, since = 0, time.monotonic()
            elif away.blame is Blame.ITSELF and _successes.count > successes:
                refusals, successes = refusals + 1, _successes.count
            if refusals >= REFUSALS and time.monotonic() - since >= REFUSED_SECONDS:
                raise TransactionRefused(
                    f"the database refused it {refusals} times: {away.__cause__}"
                ) from away
        await asyncio.sleep(AGAIN_SECONDS)


def run_in_background(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
    """Run a transaction in the store's threads, with nobody waiting for it: what it raises is for the log alone."""

    def done() -> None:
        try:
            run_here(work, *args, **kwargs)
        except Exception as fault:  # noqa: BLE001 - nobody else hears of it
            logger.warning("%s failed: %r", getattr(work, "__name__", work), fault)

    return _executor().submit(done)


def close_connections() -> None:
    """Close this thread's connections; the next query opens new ones."""
    connections.close_all()


def close() -> None:
    """End the threads and their connections. The next call starts new ones."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        _end(pool)


def _end(pool: ThreadPoolExecutor) -> None:
    gate = threading.Barrier(pool._max_workers)  # noqa: SLF001 - one job for each thread there may be

    def leave() -> None:
        gate.wait(timeout=10)
        close_connections()

    for _ in range(gate.parties):
        pool.submit(leave)
    pool.shutdown()
