"""Connections that wait for the server no longer than A2A_DATABASE_SECONDS: to be made, for an answer, for a frozen process.

See docs/decisions/0080. Everything here is about the connection of the calling thread.
"""

from __future__ import annotations

import functools
import logging
import select
import time
from typing import Any

import psycopg
from django.db import OperationalError, connection
from psycopg.pq import TransactionStatus

from a2a_tasks.conf import conf

__all__ = ["await_no_longer_than_asked", "drop_dead_connection", "longest"]

logger = logging.getLogger(__name__)
#: Seconds a statement that is cancelled has to end before its connection is given up.
CANCEL_SECONDS = 1.0
#: Seconds after a failure to connect in which nobody else tries, at least.
CLOSED_SECONDS = 0.2


def longest() -> float:
    """Seconds until a statement has ended, one way or the other."""
    return float(conf.DATABASE_SECONDS) + 2 * CANCEL_SECONDS


def drop_dead_connection() -> None:
    """An idle connection has nothing to read, unless the server has hung up: then the work gets a new one.

    So it does when a transaction was left open: what is written in that one would be lost, or never be possible.
    """
    held = connection.connection
    if held is None or connection.in_atomic_block:
        return
    if _hung_up(held):
        connection.close()
    elif left := _left_in(held):
        logger.error("a connection was left in a transaction (%s); it is dropped", left)
        connection.close()


def _hung_up(held: Any) -> bool:
    return connection.vendor == "postgresql" and (held.closed or _readable(held.fileno()))


def _left_in(held: Any) -> str:
    """What it was left in, in the driver's eyes or in Django's; nothing if it is between two transactions."""
    if connection.vendor == "postgresql":
        status, autocommit = held.pgconn.transaction_status, held.autocommit
        if status != TransactionStatus.IDLE:
            return TransactionStatus(status).name
    else:
        autocommit = not held.in_transaction
    return "" if autocommit and connection.autocommit else "no autocommit"


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class _Door:
    """Connecting. After a failure nobody tries for as long as it took: a server that is away is not asked by everybody."""

    def __init__(self) -> None:
        self._closed_until, self._why = 0.0, ""

    def open(self) -> None:
        """Connect this thread. Raises OperationalError."""
        begun = time.monotonic()
        if begun < self._closed_until:
            raise OperationalError(self._why)
        try:
            connection.ensure_connection()
        except OperationalError as fault:
            now = time.monotonic()
            self._closed_until = now + max(CLOSED_SECONDS, now - begun)
            self._why = str(fault)
            raise


_door = _Door()


def await_no_longer_than_asked() -> None:
    """Connect, if need be; whoever waits for an answer on this connection waits A2A_DATABASE_SECONDS and no longer."""
    if connection.vendor != "postgresql":
        return
    if connection.connection is None:
        _door.open()
    held = connection.connection
    if "wait" not in vars(held):
        held.wait = functools.partial(_wait, held)
        if not connection.in_atomic_block:
            _be_cut_off_when_frozen()


def _be_cut_off_when_frozen() -> None:
    """A process that is frozen in a transaction holds its rows: after a third of a lease the server ends the session.

    Only the store's sessions, whose transactions are short: an agent's own may think in one.
    """
    with connection.cursor() as cursor:
        milliseconds = int(float(conf.LEASE_SECONDS) * 1000 / 3)
        cursor.execute(f"set idle_in_transaction_session_timeout = {milliseconds}")


def _wait(held: psycopg.Connection, answer: Any, **_: Any) -> Any:
    """`Connection.wait`, to a deadline: then the statement is cancelled, or if that is not answered either, the connection."""
    wait = functools.partial(psycopg.Connection.wait, held, answer)
    try:
        return wait(timeout=float(conf.DATABASE_SECONDS))
    except psycopg.OperationalError:
        if held.pgconn.transaction_status != TransactionStatus.ACTIVE:
            raise
    try:
        held.cancel_safe(timeout=CANCEL_SECONDS)
        return wait(timeout=CANCEL_SECONDS)
    except psycopg.OperationalError:
        if held.pgconn.transaction_status == TransactionStatus.ACTIVE:
            held.pgconn.finish()
        raise
