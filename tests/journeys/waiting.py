"""The one place where journeys wait: look, wait a little, look again, until a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ["PATIENCE", "eventually"]

T = TypeVar("T")
#: Seconds until a journey gives up. Generous: reached only when something is broken.
PATIENCE = 30.0
_PAUSE = 0.02


async def eventually(
    look: Callable[[], Awaitable[T | None]], what: str, *, seconds: float = PATIENCE
) -> T:
    """What `look` returns as soon as that is true; AssertionError with its last answer when it never is."""
    deadline = time.monotonic() + seconds
    while not (found := await look()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}; last seen: {found!r}"
        await asyncio.sleep(_PAUSE)
    return found
