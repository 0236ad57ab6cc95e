"""Waiting for what no signal tells: a condition is looked at until it holds, and a deadline says what did not."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.support.sessions import WAITS_FOR_A_LOCK, count_sessions

__all__ = ["eventually", "somebody_waits_for_a_row", "until"]

T = TypeVar("T")
PAUSE = 0.01


async def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """The first true value of the condition, which may be a coroutine function. AssertionError when it is late."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{condition!r} did not come true in {seconds} s; last: {found!r}")
        await asyncio.sleep(PAUSE)


def eventually(condition: Callable[[], T], seconds: float = 60) -> T:
    """The same, where no event loop runs; looked at in this thread."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{condition!r} did not come true in {seconds} s; last: {found!r}")
        pause.wait(PAUSE)
    return found


def somebody_waits_for_a_row() -> bool:
    """Does a session of this database wait for a lock? (PostgreSQL)"""
    return count_sessions(WAITS_FOR_A_LOCK) > 0
