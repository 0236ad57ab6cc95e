"""The store's transactions, run on the connection of the test and inside the test's own transaction.

In production the store works on threads of its own, each with a connection (`a2a_tasks/store/db.py`). A test with such
threads has to commit, and its tables must be emptied after it. Most tests are not about concurrency: for them the store
works at once, on the test's connection, and everything is rolled back at the end.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any
from unittest import mock

from django.db import DatabaseError, connections, transaction

from a2a_tasks.store import db

__all__ = ["inline_store"]

#: Names of threads that borrow the test's connection: a host's own, which keep rows fresh, those that verify a password,
#: and the event loop of `async_to_sync`, for which the test's thread waits.
BORROWERS = ("heartbeat", "presence", "passwords", "ThreadPoolExecutor")


@contextlib.contextmanager
def inline_store() -> Iterator[None]:
    """Run what is given to the store at once, in the thread that gives it, on the connection of the calling thread.

    Other threads than `BORROWERS` are refused: a test that needs threads is about concurrency, and has to commit
    (`django_db(transaction=True)`).
    """
    own, lock, tried, thread = (
        connections["default"],
        threading.RLock(),
        db._try,
        threading.get_ident(),
    )

    over = threading.Event()

    def on_own_connection(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread and not threading.current_thread().name.startswith(
            BORROWERS
        ):
            raise AssertionError(
                "this test reaches the store from another thread: mark it transaction=True"
            )
        with lock:
            if over.is_set():
                raise AssertionError("the test is over, and its connection is nobody else's")
            refused: Exception
            with _installed(own), transaction.atomic():
                try:
                    return tried(work, *args, **kwargs)
                except DatabaseError:
                    raise  # after a failed statement PostgreSQL takes no other one before a rollback
                except Exception as fault:  # noqa: BLE001 - raised below
                    refused = fault  # what it wrote without a transaction stays, as in production
            raise refused

    def at_once(work: Callable[[], Any], threads: str = db.STORE) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(copy_context().run(db.run_here, work))
        except Exception as fault:  # noqa: BLE001 - the future carries it
            future.set_exception(fault)
        return future

    own.inc_thread_sharing()
    try:
        with (
            # Django's handlers close a connection that is not in autocommit mode. Django's test client prevents that too.
            mock.patch.object(own, "close_if_unusable_or_obsolete", _nothing),
            mock.patch.object(db, "check_connection", _nothing),
            mock.patch.object(db, "_try", on_own_connection),
            mock.patch.object(db, "_begin", at_once),
            mock.patch.object(transaction, "on_commit", _at_once),
        ):
            yield
    finally:
        with lock:  # a heartbeat may be at it
            over.set()
            own.dec_thread_sharing()


def _nothing() -> None:
    """The connection of a test is there, and has no deadlines."""


def _at_once(work: Callable[[], object]) -> None:
    """What is done after the commit of the host's transaction: the test's own is never committed."""
    work()


@contextlib.contextmanager
def _installed(connection: Any) -> Iterator[None]:
    """Make it the connection of this thread. Django refuses one to a thread with a running event loop, unless told."""
    before = getattr(vars(connections)["_connections"], "default", None)
    allowed = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    connections["default"], os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = connection, "1"
    try:
        yield
    finally:
        if allowed is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        if before is None:
            del connections["default"]
        else:
            connections["default"] = before
