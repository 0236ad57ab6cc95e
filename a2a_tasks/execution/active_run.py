"""A run that this process executes: its state, its lease, and how it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Callable, Iterator

from a2a_tasks.agents import Turn, registry
from a2a_tasks.conf import conf
from a2a_tasks.execution.agent_call import RunThreads
from a2a_tasks.execution.slots import AgentKind, SlotLender
from a2a_tasks.execution.turns import request_of
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import ClaimedRun

__all__ = ["ActiveRun"]

logger = logging.getLogger(__name__)
#: The parts of A2A_STOP_SECONDS after which a run that was stopped is cancelled again.
CANCEL_AGAIN = (0.5, 0.625, 0.75, 0.875)


def _cancel(timer: asyncio.TimerHandle, _: asyncio.Task[None]) -> None:
    timer.cancel()


class ActiveRun:
    """A run that this process executes."""

    def __init__(self, run: ClaimedRun, forget: Callable[[ActiveRun], None]) -> None:
        self._forget = forget
        #: The agent, if this process has its code.
        self.agent = registry.find_own(run.scope.agent)
        isolated = run.quarantine is Quarantine.PROCESS
        #: The kind of place that it takes; a run in quarantine has a process of its own.
        self.kind = AgentKind.LOOP if isolated else AgentKind.of(self.agent)
        self.take_texts(run)
        self.task: asyncio.Task[None]
        self.turn: Turn | None = None
        self.threads = RunThreads(run.scope.agent)
        #: Lends its slot while it waits for other tasks; set by the runner that executes it.
        self.lender: SlotLender
        #: True while its last events are written. With them it gives up its lease.
        self.ending = False
        #: True while the park is written. With it the run gives up its lease, unless it may not be parked.
        self.parking = False
        #: True if it is stopped because it was parked.
        self.parked = False
        #: True if it is stopped because it lost its lease: to a cancellation, or to another process.
        self.fenced = False
        #: Time of the last known extension of its lease, by this process's clock.
        self.extended = run.requested_at
        #: Time of the last query that confirmed the lease of this process.
        self.confirmed = self._begun = time.monotonic()

    def take_texts(self, run: ClaimedRun) -> None:
        """Take the run with its texts, as far as they have been read."""
        self.run = run
        #: The data of the request, decoded once for all that need it.
        self.request = request_of(run)
        #: Key, kind and size, by which its slot is counted.
        self.place = (run.quota_key, self.kind, run.size)

    @property
    def on_probation(self) -> bool:
        """True if the run is in a quarantine group, and within the time in which it died before."""
        grouped = self.run.quarantine is Quarantine.GROUP
        return grouped and self.age < self.run.longest_life

    @property
    def age(self) -> float:
        """The seconds since this process began to execute it."""
        return time.monotonic() - self._begun

    @property
    def acts_once(self) -> bool:
        """True if its agent must not act twice."""
        return self.agent is not None and self.agent.after_crash == "fail"

    @property
    def acted(self) -> bool:
        """True if its agent may have acted, and must not act twice."""
        return self.threads.begun and self.acts_once

    def holds(self) -> bool:
        """True if it is certain that no other process has the run."""
        return time.monotonic() - self.extended <= float(conf.LEASE_SECONDS)

    @property
    def is_unknown(self) -> bool:
        """True if the database has not answered for a lease and the pause after an outage (`Runner.patient`)."""
        return time.monotonic() - self.confirmed > 2 * float(conf.LEASE_SECONDS)

    @contextlib.contextmanager
    def give_up_lease(self) -> Iterator[None]:
        """Mark the run as being parked, for as long as the block lasts."""
        self.parking = True
        try:
            yield
        finally:
            self.parking = False

    def park(self) -> None:
        """Stop it, because it was parked."""
        self.parked = True
        self.stop()

    def stop(self) -> None:
        """Tell the agent once that it was stopped. It has A2A_STOP_SECONDS to end.

        In the second half of that time it is cancelled again, since its cleanup may hang.
        """
        if self.threads.stopped:
            return
        self.threads.stop()
        if self.turn is not None:
            self.turn._stop()  # noqa: SLF001 - private to agents, not to the host
        self.task.cancel()
        loop, seconds = asyncio.get_running_loop(), float(conf.STOP_SECONDS)
        timers = [loop.call_later(part * seconds, self.task.cancel) for part in CANCEL_AGAIN]
        timers.append(loop.call_later(seconds, self._abandon))
        for timer in timers:  # they would keep the run in memory after its end
            self.task.add_done_callback(functools.partial(_cancel, timer))

    def _abandon(self) -> None:
        """Abandon the run if it goes on: its output is ignored, and its slot is free for another."""
        if self.task.done():
            return
        about = self.run
        logger.error("agent %s does not end; run %s is abandoned", about.scope.agent, about.key)
        self._forget(self)
