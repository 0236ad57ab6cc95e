"""A run in this process's hands: how it is stopped, and whether it is still this process's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from a2a_tasks.agents import Turn, registry
from a2a_tasks.conf import conf
from a2a_tasks.execution.stopping import insist
from a2a_tasks.execution.workplace import Workplace
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import Assignment

__all__ = ["Carried"]

logger = logging.getLogger(__name__)


class Carried:
    """A run in this process's hands."""

    def __init__(self, assignment: Assignment, forget: Callable[[Carried], None]) -> None:
        self.assignment, self._forget = assignment, forget
        self.task: asyncio.Task[None]
        self.turn: Turn | None = None
        self.workplace = Workplace(assignment.scope.agent)
        #: Its last words are being written, and with them it lets go of its lease.
        self.ending = False
        #: When its lease was last known to be extended, by this process's clock.
        self.extended = assignment.asked
        #: When the database was last asked, and said that the run is still this process's.
        self.heard = self._begun = time.monotonic()

    @property
    def on_probation(self) -> bool:
        """Is it one of a group in quarantine that may still die as it did before?"""
        lived = time.monotonic() - self._begun
        return (
            self.assignment.quarantine is Quarantine.GROUP and lived < self.assignment.longest_life
        )

    @property
    def acted(self) -> bool:
        """May its agent have acted, which must not act twice?"""
        agent = registry.hosted(self.assignment.scope.agent)
        return self.workplace.begun and agent is not None and agent.after_crash == "fail"

    def holds(self) -> bool:
        """Is it certain that no other process can have the run?"""
        return time.monotonic() - self.extended <= float(conf.LEASE_SECONDS)

    @property
    def is_unknown(self) -> bool:
        """Has the database said nothing for a lease and the grace that follows an outage (`Runner.patient`)?"""
        return time.monotonic() - self.heard > 2 * float(conf.LEASE_SECONDS)

    def stop(self) -> None:
        """Tell the agent that nobody waits for it, once, and see to it that it ends."""
        if self.workplace.stopped:
            return
        self.workplace.stop()
        if self.turn is not None:
            self.turn._stop()  # noqa: SLF001 - ours to say, the agent's to notice
        self.task.cancel()
        insist(asyncio.get_running_loop(), self)

    @property
    def gone(self) -> bool:
        return self.task.done()

    def force(self) -> None:
        """Cancel it again: it was cleaning up, or took no notice."""
        self.task.cancel()

    def let_go(self) -> None:
        """Do without it. What it says is not heard, and its slot is another's."""
        about = self.assignment
        logger.error("agent %s does not end; run %s is left to it", about.scope.agent, about.run)
        self._forget(self)
