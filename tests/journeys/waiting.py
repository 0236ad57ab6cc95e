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
#: Seconds between two looks, to begin with, and later: looks cost the host what it needs to come to what is looked for.
_PAUSE, _MAX_LENGTH = 0.02, 0.25


async def eventually(
    look: Callable[[], Awaitable[T | None]], what: str, *, seconds: float = PATIENCE
) -> T:
    """What `look` returns as soon as that is true; AssertionError with its last answer when it never is."""
    deadline, pause = time.monotonic() + seconds, _PAUSE
    while not (found := await look()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}; last seen: {found!r}"
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_LENGTH)
    return found
