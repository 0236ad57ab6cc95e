"""Is the client still there? One that is silent is asked, and given up when it does not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_project.grpc_server.limits import Limits

__all__ = ["Pulse"]


class Pulse:
    """Of one connection. It has so long to say hello, and may then be silent for a while."""

    def __init__(
        self, limits: Limits, ask: Callable[[], None], give_up: Callable[[], None]
    ) -> None:
        """What is done to one that is silent, and to one that stays so."""
        self._limits, self._ask, self._give_up = limits, ask, give_up
        self._begun_at = self._due = self.heard_at = 0.0
        self._greeted = False
        self._watch: asyncio.TimerHandle | None = None

    @property
    def begun(self) -> bool:
        """Was there ever a connection?"""
        return self._watch is not None

    def begin(self) -> None:
        """The connection is there."""
        self._begun_at = self._due = self.heard_at = time.monotonic()
        self._look()

    def greeted(self) -> None:
        """It said hello."""
        self._greeted = True

    def heard(self) -> None:
        """It said something."""
        self.heard_at = time.monotonic()

    def end(self) -> None:
        """The connection is gone."""
        if self._watch is not None:
            self._watch.cancel()

    def _look(self) -> None:
        limits, now = self._limits, time.monotonic()
        self._excuse(now)
        alive, silent = limits.alive_seconds, now - self.heard_at
        hello = self._begun_at + limits.greeting_seconds - now
        if silent >= alive + limits.answer_seconds or (hello <= 0 and not self._greeted):
            self._give_up()
            return
        if silent >= alive:
            self._ask()
        wait = limits.answer_seconds if silent >= alive else alive - silent
        wait = wait if self._greeted else min(wait, hello)
        self._due = now + wait
        self._watch = asyncio.get_running_loop().call_later(wait, self._look)

    def _excuse(self, now: float) -> None:
        """When this process stood still, nobody listened, and what the client said waits to be read: its time begins anew."""
        late = now - self._due
        if late > self._limits.answer_seconds / 2:
            self._begun_at += late
            self.heard_at = now
