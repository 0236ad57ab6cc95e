"""Connections with deadlines of DATABASE_SECONDS: to connect, for an answer, and for rows locked by a frozen process.

The server ends a statement that takes longer (`statement_timeout`). If the server does not answer within one more
second, the connection is closed, and the outcome of its transaction is unknown. The client never cancels a statement: if
a COMMIT that waits for a synchronous standby is cancelled, PostgreSQL answers with success. See docs/decisions/0005.
All functions work on the connection of the calling thread.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

import psycopg
from django.db import OperationalError, connection, transaction
from psycopg.pq import TransactionStatus

from a2a_tasks.conf import conf

__all__ = [
    "CLOSED_SECONDS",
    "CUT_OFF",
    "LOCKED",
    "Job",
    "allow_bytes",
    "check_connection",
    "current_job",
    "is_cut_off",
    "limit_transaction",
    "longest",
    "was_refused_at_once",
]

T = TypeVar("T")
logger = logging.getLogger(__name__)
#: Seconds from the server's deadline for a statement until the client closes the connection.
SILENCE_SECONDS = 1.0
#: SQLSTATE of a statement that the server ended because it waited too long for another transaction's lock.
LOCKED = "55P03"
#: SQLSTATEs after the server ended something that took too long: a statement, an idle transaction, a wait for a lock.
CUT_OFF = {"57014", "25P03", LOCKED}
#: The part of a statement's time that it may wait for one lock. It is below 1, so that both timeouts can be distinguished.
SHARE_OF_LOCKS = 0.9
#: Settings of a session that prepares its statements. The plan of a prepared statement is kept. On a young database, whose
#: tables are small and have no statistics, the plan would read whole tables, also after these have grown. Without
#: `force_generic_plan`, PostgreSQL plans each claim anew, which takes ten times as long as to execute it.
PLANNING = ("enable_seqscan = off", "jit = off", "plan_cache_mode = force_generic_plan")
#: Minimum expected speed of a large statement, in bytes per second. A character may have three bytes where only the
#: number of characters is known.
SPEED = 1024 * 1024
#: Minimum seconds after a failure to connect in which this process does not connect again.
CLOSED_SECONDS = 0.2
#: Seconds within which a server refuses a connection because it has none left; one that is away takes longer.
REFUSAL_SECONDS = 1.0
#: Seconds after which a session that was given up is no longer counted.
FORGOTTEN_SECONDS = 600.0


class Job(Future[T]):
    """A transaction in the store's threads."""

    #: True once a statement has got more time for its bytes: then its caller waits longer, too.
    is_large = False


#: The job of the running transaction.
current_job: contextvars.ContextVar[Job[Any]] = contextvars.ContextVar("current_job")


def longest() -> float:
    """Return the seconds after which a statement has certainly ended or failed."""
    return float(conf.DATABASE_SECONDS) + 2 * SILENCE_SECONDS


def is_cut_off(fault: BaseException) -> bool:
    """Return whether the server ended the statement or transaction because it took too long. Then nothing was written."""
    return getattr(fault.__cause__, "sqlstate", None) in CUT_OFF


@contextlib.contextmanager
def allow_bytes(size: int) -> Iterator[None]:
    """Open a transaction whose statements get more time, in proportion to the bytes that are sent.

    From the first bytes of a statement to its last ones the session is idle in its transaction. So this time is
    extended, too, until the statement has ended. A failure without an answer gets the attribute `size`.
    """
    if connection.vendor != "postgresql":
        with transaction.atomic():
            yield
        return
    if job := current_job.get(None):
        job.is_large = True
    with transaction.atomic():
        before = vars(connection.connection).get("more", 0.0)
        _allow(before + size / SPEED)
        session = connection.connection
        try:
            yield
            _allow(before)
        except OperationalError as fault:
            vars(fault)["size"] = size
            raise
        finally:
            vars(session)["more"] = before


def _allow(more: float) -> None:
    """Give the statements of this transaction `more` seconds than usual, beginning with the next one."""
    limits = {
        "statement_timeout": _milliseconds(more),
        "idle_in_transaction_session_timeout": _idle_milliseconds(more),
    }
    with connection.cursor() as cursor:
        cursor.execute("; ".join(f"set local {name} = {value}" for name, value in limits.items()))
    vars(connection.connection)["more"] = more


def check_connection() -> None:
    """Make this thread's connection fit for a transaction: one that the server answers, in time, and that is in none.

    Raises OperationalError if there is no new connection.
    """
    session = connection.connection
    if session is not None and not connection.in_atomic_block and not _is_fit(session):
        connection.close()
    if connection.vendor == "postgresql":
        _ensure_limits()


def _is_fit(session: Any) -> bool:
    """Return whether an idle connection can be used.

    One that the server has closed cannot: then there is something to read. Nor can one that was left in a transaction,
    in which writes would fail or be lost.
    """
    if connection.vendor == "postgresql":
        if session.closed or _readable(session.fileno()):
            return False
        status, autocommit = session.pgconn.transaction_status, session.autocommit
    else:
        status, autocommit = TransactionStatus.IDLE, not session.in_transaction
    if status == TransactionStatus.IDLE and autocommit and connection.autocommit:
        return True
    left = "no autocommit" if status == TransactionStatus.IDLE else TransactionStatus(status).name
    logger.error("a connection was left in a transaction (%s); it is closed", left)
    return False


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class _Door:
    """The control of new connections. After a failure, no thread connects for as long as the failed attempt took.

    An abandoned session may still run on the server: a COMMIT that waits for a standby runs until the standby is back.
    While there are A2A_STORE_THREADS such sessions, no new connection is opened.
    """

    def __init__(self) -> None:
        self._closed_until, self._why = 0.0, ""
        #: The last failure took no longer than a refusal.
        self.was_quick = False
        #: A copy of the socket of each abandoned session, and the time until which it counts: a dead host never closes it.
        self._given_up: list[tuple[socket.socket, float]] = []
        self._lock = threading.Lock()

    def open(self) -> None:
        """Connect this thread. Raises OperationalError."""
        begun = time.monotonic()
        if begun < self._closed_until:
            raise OperationalError(self._why)
        if self._count_abandoned(begun) >= int(conf.STORE_THREADS):
            raise OperationalError("the server has not ended the transactions that had no answer")
        try:
            connection.ensure_connection()
        except OperationalError as fault:
            now = time.monotonic()
            self._closed_until = now + max(CLOSED_SECONDS, now - begun)
            self.was_quick = now - begun < REFUSAL_SECONDS
            self._why = str(fault)
            raise

    def give_up(self, session: Any) -> None:
        """Close a session on this side. A copy of its socket becomes readable when the server ends it."""
        try:
            with contextlib.suppress(OSError, psycopg.Error), self._lock:
                copy = socket.socket(fileno=os.dup(session.socket))
                self._given_up.append((copy, time.monotonic() + FORGOTTEN_SECONDS))
        finally:
            session.finish()

    def _count_abandoned(self, now: float) -> int:
        """Return the number of abandoned sessions that still run on the server."""
        with self._lock:
            lasting = [
                (copy, end)
                for copy, end in self._given_up
                if now < end and not _readable(copy.fileno())
            ]
            for copy, _ in set(self._given_up) - set(lasting):
                copy.close()
            self._given_up = lasting
            return len(lasting)


_door = _Door()


def was_refused_at_once() -> bool:
    """Return whether the server refused the last connection that failed, and did not let the process wait for it."""
    return _door.was_quick


def _ensure_limits() -> None:
    """Connect if necessary, and limit each wait for an answer on this connection to DATABASE_SECONDS."""
    if connection.connection is None:
        _door.open()
    session = connection.connection
    if vars(session).get("seconds") != conf.DATABASE_SECONDS:
        session.wait = functools.partial(_wait, session)
        if not connection.in_atomic_block:
            with connection.wrap_database_errors:
                _limit(session)
        session.seconds = conf.DATABASE_SECONDS


def _limit(session: Any) -> None:
    """Set the server's timeouts: for a statement, and for a frozen process that holds rows in a transaction.

    Only the store's sessions, whose transactions are short, have them: an agent's own transaction may be long. Behind a
    pool of transactions (A2A_PREPARE=0) sessions are shared, so that each transaction sets its own limits.
    """
    limits = {
        "statement_timeout": _milliseconds(),
        "lock_timeout": int(_milliseconds() * SHARE_OF_LOCKS),
        "idle_in_transaction_session_timeout": _idle_milliseconds(),
    }
    commands = [f"{name} = {value}" for name, value in limits.items()]
    if conf.PREPARE:
        session.execute("; ".join(f"set {command}" for command in (*commands, *PLANNING)))
        session.prepare_threshold = 0
        return
    session.limits = "; ".join(f"set local {command}" for command in commands)
    if _execute_limited not in connection.execute_wrappers:
        connection.execute_wrappers.append(_execute_limited)


def limit_transaction() -> None:
    """Behind a pool, limit the transaction that begins with the next statement; otherwise the session has the limits."""
    session: Any = connection.connection
    limits = vars(session).get("limits")
    idle = session.pgconn.transaction_status == TransactionStatus.IDLE
    if limits and idle and connection.in_atomic_block:
        with connection.wrap_database_errors:
            session.execute(limits)


def _execute_limited(execute: Any, *statement: Any) -> Any:
    """Execute a statement of Django in a limited transaction; a new one if none is open. Django calls this wrapper."""
    with contextlib.nullcontext() if connection.in_atomic_block else transaction.atomic():
        limit_transaction()
        return execute(*statement)


def _milliseconds(more: float = 0.0) -> int:
    return int((float(conf.DATABASE_SECONDS) + more) * 1000)


def _idle_milliseconds(more: float = 0.0) -> int:
    return int((float(conf.LEASE_SECONDS) / 3 + more) * 1000)


def _wait(session: psycopg.Connection, answer: Any, **_: Any) -> Any:
    """Wait for an answer like `Connection.wait`, until a deadline. After it, the connection is closed."""
    seconds = float(conf.DATABASE_SECONDS) + SILENCE_SECONDS + vars(session).get("more", 0.0)
    try:
        return psycopg.Connection.wait(session, answer, timeout=seconds)
    except psycopg.errors._WaitTimeout:  # noqa: SLF001 - its base class stands for other errors, too
        # The statement is not cancelled, and its generator is not resumed.
        _door.give_up(session.pgconn)
        raise
