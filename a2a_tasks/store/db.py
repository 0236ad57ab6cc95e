"""Calls from the event loop to the database: each transaction is one job of a thread that keeps its connection.

The thread-sensitive executor of asgiref (one thread for a whole process) is not used, nor a job for each query; see
docs/decisions/0002. SQLite has one writer, so it gets one thread, and no thread waits on a busy lock.

If the database is away, a call fails after DATABASE_SECONDS. docs/decisions/0005 lists the failures that leave the
outcome unknown, and explains how a repeated write is recognised.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
)

from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Blame, Overloaded
from a2a_tasks.store.backend.server import is_server
from a2a_tasks.store.backend.sessions import (
    CLOSED_SECONDS,
    CUT_OFF,
    LOCKED,
    Job,
    check_connection,
    current_job,
    longest,
    was_refused_at_once,
)
from a2a_tasks.store.writability import REVOKED, note_refusal

__all__ = [
    "AWAY",
    "is_away",
    "TransactionRefused",
    "run_in_background",
    "close",
    "close_connections",
    "run_in_thread",
    "run_list_query",
    "run_here",
    "run_large_read",
    "run_to_completion",
    "retry_until_answered",
]

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
#: The database is away, or takes no writes (read-only is an InternalError): every transaction fails.
AWAY = (OperationalError, InterfaceError, InternalError)
#: SQLSTATEs of transactions that were rolled back because of another one: serialisation failure, deadlock.
LOST = {"40001", "40P01"}
#: SQLSTATEs after which it is certain that nothing was written: rolled back (above), too slow, read-only, out of
#: resources, server starting. Class 08 is not certain: PgBouncer reports it also for a connection that broke after the
#: COMMIT. 57P01 is not certain either: a session that was shut down may have committed.
CERTAIN = LOST | CUT_OFF | {REVOKED, "25006", "53000", "53100", "53200", "53300", "57P03"}
#: The beginnings of the SQLSTATEs of an outage: no connection, read-only, no rights, out of resources, shut down or starting.
OUTAGE = ("08", "25006", REVOKED, "53", "57P0")
#: Minimum number of failures, and of seconds since the first, while other transactions succeed, before TransactionRefused
#: is raised.
REFUSALS, REFUSED_SECONDS = 5, 300.0
#: SQLSTATE of a prepared statement whose columns a migration has changed.
STALE = "0A000"
#: Maximum number of tries of a transaction that is rolled back because of another one.
TRIES = 4
#: Seconds between two attempts of `retry_until_answered`.
AGAIN_SECONDS = 0.3
#: The longest time between two calls that slow down: each try to store a large file reads all of it, and leaves a row.
SLOWEST_SECONDS = 10.0
#: Number of threads for lists, which may be slow; the other threads stay free for other requests.
LIST_THREADS = 2
STORE, LISTS = "store", "lists"
_lock = threading.Lock()
_pools: dict[str, _Pool] = {}
_outage = ThrottledLogger(logger, "the database is away")
_refusal = ThrottledLogger(logger, "the database refused a transaction")


class TransactionRefused(Exception):
    """The database refused the transaction repeatedly, while it executed others."""


class _Successes:
    """The number of successful transactions of this process."""

    count = 0


_successes = _Successes()


def _threads(name: str = STORE) -> int:
    wanted = LIST_THREADS if name == LISTS else int(conf.STORE_THREADS)
    return wanted if is_server() else 1


class _Turns:
    """The turns of callers: of each caller, one job at a time is given to the threads. The others wait without a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By caller: the jobs behind the one that is under way, and what starts them.
        self._behind: dict[str, deque[tuple[Job[Any], Callable[[], object]]]] = {}

    def take(self, caller: str, job: Job[Any], start: Callable[[], object]) -> None:
        """Start the job as soon as all earlier ones of the caller have ended."""
        with self._lock:
            if caller in self._behind:
                self._behind[caller].append((job, start))
                return
            self._behind[caller] = deque()
        self._start(caller, job, start)

    def _start(self, caller: str, job: Job[Any], start: Callable[[], object]) -> None:
        start()
        job.add_done_callback(lambda _: self._start_next(caller))

    def _start_next(self, caller: str) -> None:
        with self._lock:
            behind = self._behind[caller]
            while behind and behind[0][0].cancelled():  # its caller waits no longer
                behind.popleft()
            if not behind:
                del self._behind[caller]
                return
            job, start = behind.popleft()
        self._start(caller, job, start)


class _Pool(ThreadPoolExecutor):
    """Threads with a connection each. Without one a thread leaves the work to those that have one.

    A server that has no connection left refuses a thread at once, so that this thread would be free again before the
    others, take all the work and fail it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(_threads(name), thread_name_prefix=name)
        #: Threads that have a connection, or are connecting.
        self._connected: set[int] = set()
        self.turns = _Turns()

    def perform(self, job: Future[T], context: contextvars.Context, work: Callable[[], T]) -> None:
        """Run a transaction in this thread, or submit it for another one."""
        this = threading.get_ident()
        self._connected.add(this)
        away = context.run(_find_no_connection)
        if away:
            self._connected.discard(this)
        if isinstance(away, Overloaded) and self._connected and was_refused_at_once():
            with contextlib.suppress(RuntimeError):  # the pool is ending
                self.submit(self.perform, job, context, work)
                time.sleep(CLOSED_SECONDS)
                return
        if not job.set_running_or_notify_cancel():
            return
        try:
            if away:
                raise away
            job.set_result(context.run(_run_connected, work))
        except BaseException as fault:  # noqa: BLE001 - for those who wait
            job.set_exception(fault)
            del job, context  # they hold the exception, whose traceback holds this frame


def _executor(name: str = STORE) -> _Pool:
    """Return the thread pool of that name: one per process."""
    with _lock:
        if name not in _pools:
            _pools[name] = _Pool(name)
        return _pools[name]


def _sqlstate(fault: BaseException) -> str | None:
    return getattr(fault.__cause__, "sqlstate", None)


def is_away(fault: BaseException) -> bool:
    """Return whether every transaction fails now: the database is away, takes no writes, or the role has lost a right."""
    return isinstance(fault, AWAY) or _sqlstate(fault) == REVOKED


def _try(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work; repeat it if it was rolled back because of another transaction, or its plan is older than the tables."""
    for _ in range(TRIES - 1):
        try:
            return work(*args, **kwargs)
        except DatabaseError as fault:
            if _sqlstate(fault) not in {STALE, *LOST} or connection.in_atomic_block:
                raise
            if _sqlstate(fault) == STALE:
                connection.close()
                check_connection()
    return work(*args, **kwargs)


def _blame(fault: BaseException) -> Blame:
    state = _sqlstate(fault)
    if state is None and vars(fault).get("size"):  # a large statement may itself cut its connection
        return Blame.ITSELF
    if state is None:  # a lost connection has no SQLSTATE, and SQLite has none at all
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
    """Run a transaction in this thread. A broken connection is closed, so that the next transaction gets a new one.

    A transaction that is rolled back because of another one is tried again. Raises Overloaded if the database cannot be
    reached, does not answer, or takes no writes.
    """
    if away := _find_no_connection():
        raise away
    return _run_connected(work, *args, **kwargs)


def _find_no_connection() -> Exception | None:
    """Make this thread's connection fit for a transaction, or return why it cannot be."""
    try:
        check_connection()
    except AWAY as fault:
        note_refusal(fault)
        connection.close()
        away = _away(fault, undone=True)
        away.__cause__ = fault
        return away
    except Exception as fault:  # noqa: BLE001 - of a receiver of connection_created, or the server is too old
        return fault
    return None


def _run_connected(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        done = _try(work, *args, **kwargs)
    except (*AWAY, ProgrammingError) as fault:
        if not is_away(fault):
            raise
        note_refusal(fault)
        connection.close()
        raise _away(fault, undone=_sqlstate(fault) in CERTAIN) from fault
    _successes.count += 1
    return done


def _begin(work: Callable[[], T], threads: str = STORE, caller: str | None = None) -> Job[T]:
    """Submit the work with the caller's context variables, which hold the actor for the audit log (audit/actor.py).

    With a `caller` it waits for the caller's turn.
    """
    pool, job = _pools.get(threads) or _executor(threads), Job[T]()
    context = contextvars.copy_context()
    context.run(current_job.set, job)
    if caller is None:
        pool.submit(pool.perform, job, context, work)
    else:
        pool.turns.take(caller, job, lambda: pool.submit(pool.perform, job, context, work))
    return job


async def _in_time(job: Job[T]) -> T:
    """Return the job's result; raise Overloaded if it is late. A late job that has not begun is cancelled.

    One with a large statement is not late: this ends, or fails, in the time that its bytes need.
    """
    late = asyncio.timeout(longest())
    try:
        async with late:
            return await asyncio.wrap_future(job)
    except TimeoutError as fault:
        if not late.expired():
            raise
        if job.done() and not job.cancelled():  # the loop is late, not the job
            return job.result()
        if job.is_large:
            return await asyncio.wrap_future(job)
        raise _away(fault, undone=job.cancel()) from fault


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction in the store's threads and return its result. Raises its exceptions, and Overloaded.

    Overloaded is also raised if it takes too long, including the wait for a thread; a transaction that has begun may
    then still commit.
    """
    return await _in_time(_begin(functools.partial(work, *args, **kwargs)))


async def run_list_query(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a query like `run_in_thread`, but in the threads for lists: slow lists delay only other lists."""
    return await _in_time(_begin(functools.partial(work, *args, **kwargs), LISTS))


async def run_large_read(caller: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a query like `run_list_query`, one of a caller (`OwnerScope.quota_key`) at a time: none holds all threads."""
    return await _in_time(_begin(functools.partial(work, *args, **kwargs), LISTS, caller))


async def run_to_completion(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction like `run_in_thread`, but wait until a transaction that has begun ends.

    It is for callers without a waiting client that must know the result.
    """
    job = _begin(functools.partial(work, *args, **kwargs))
    try:
        return await _in_time(job)
    except Overloaded as away:
        if job.done() and not job.cancelled() and job.exception() is None:
            return job.result()  # it ended just after the deadline
        if away.undone or job.done():
            raise
        return await asyncio.wrap_future(job)


async def retry_until_answered(
    ask: Callable[[], Awaitable[T]], *, repeatable: bool = False, slows_down: bool = False
) -> T:
    """Call `ask` until the database answers, and return its result. One that is dear `slows_down`, to SLOWEST_SECONDS.

    After a failure that may have written something, `ask` is repeated only if it is `repeatable`: if it only reads, or
    its repetition is recognised. Otherwise this failure, an Overloaded, is raised. Raises TransactionRefused, and the
    exceptions of `ask`. The caller may cancel at any time.

    A failure counts as a refusal if the transaction itself may be the cause, and if other transactions of this process
    have succeeded since the failure before: an outage is no refusal.
    """
    refusals, since, successes = 0, time.monotonic(), _successes.count
    pause = AGAIN_SECONDS
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
        await asyncio.sleep(pause)
        pause = min(2 * pause, SLOWEST_SECONDS) if slows_down else pause


def run_in_background(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
    """Run a transaction in the store's threads without waiting; exceptions are only logged."""
    done: Future[None] = Future()

    def end(job: Future[object]) -> None:
        if fault := job.exception():
            logger.warning("%s failed: %r", getattr(work, "__name__", work), fault)
        done.set_result(None)

    _begin(functools.partial(work, *args, **kwargs)).add_done_callback(end)
    return done


def close_connections() -> None:
    """Close this thread's connections; the next query opens new ones."""
    connections.close_all()


def close() -> None:
    """End all threads and their connections. The next call starts new ones."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        _end(pool)


def _end(pool: ThreadPoolExecutor) -> None:
    gate = threading.Barrier(pool._max_workers)  # noqa: SLF001 - one job for each possible thread

    def leave() -> None:
        gate.wait(timeout=10)
        close_connections()

    for _ in range(gate.parties):
        pool.submit(leave)
    pool.shutdown()
