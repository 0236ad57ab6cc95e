"""From the event loop to the database: one hop a transaction, on threads that keep their connection.

Never the thread-sensitive executor (one thread for a whole process) and never a hop a query; see
docs/decisions/0001. SQLite has one writer, so it gets one thread, and nobody waits on a busy lock.
"""

from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection, connections

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import Overloaded

__all__ = ["close", "hang_up", "hop", "in_thread"]

P = ParamSpec("P")
T = TypeVar("T")
_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def _threads() -> int:
    return 1 if connection.vendor == "sqlite" else int(conf.STORE_THREADS)


def _executor() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603 - one pool a process
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = ThreadPoolExecutor(_threads(), thread_name_prefix="store")
    return _pool


def _drop_dead_connection() -> None:
    """An idle connection has nothing to read, unless the server has hung up: then the work gets a new one."""
    held = connection.connection
    if held is None or connection.vendor != "postgresql" or connection.in_atomic_block:
        return
    if held.closed or _readable(held.fileno()):
        connection.close()


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction in this thread; a broken connection is dropped, so that the next one gets a new one.

    Raises Overloaded when the database cannot be reached.
    """
    _drop_dead_connection()
    try:
        return work(*args, **kwargs)
    except (OperationalError, InterfaceError) as fault:
        connection.close()
        raise Overloaded(retry_after="1") from fault


async def hop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a transaction in the store's threads and return its result. Raises what it raises, and Overloaded."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_executor(), lambda: in_thread(work, *args, **kwargs))


def hang_up() -> None:
    """Close this thread's connections; the next query opens new ones."""
    connections.close_all()


def close() -> None:
    """End the threads and their connections. The next hop begins anew."""
    global _pool
    with _lock:
        pool, _pool = _pool, None
    if pool is None:
        return
    gate = threading.Barrier(pool._max_workers)  # noqa: SLF001 - one job for each thread there may be

    def leave() -> None:
        gate.wait(timeout=10)
        hang_up()

    for _ in range(gate.parties):
        pool.submit(leave)
    pool.shutdown()
