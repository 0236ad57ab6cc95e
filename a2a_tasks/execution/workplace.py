"""Where a run is at work beside the event loop: in threads, or in a process. Stopping the run stops what is there."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import Any

from django.db import connections

from a2a_tasks.execution.stopping import insist
from a2a_tasks.execution.threads import Job, Threads

__all__ = ["Workplace"]

logger = logging.getLogger(__name__)
#: Seconds until a thread is begun again that the machine had no memory for.
AGAIN_SECONDS = 1.0
_threads = Threads()


class Workplace:
    """The threads that work for one run, and whether it was begun and stopped, wherever it works. It belongs to the event loop."""

    def __init__(self, agent: str = "") -> None:
        #: The agent's slug, for the log.
        self.agent = agent
        #: Is the run to end, though it has not come to its end?
        self.stopped = False
        #: Was the agent's `run` called? Then it may have acted.
        self.begun = False
        self._jobs: set[Job] = set()

    async def in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        """Call it in a thread. If nobody waits for it any more it goes on, until the run is stopped."""
        context = contextvars.copy_context()  # with it goes whose log it is
        job = None
        while job is None:
            try:
                job = _threads.submit(
                    lambda: context.run(_closing_connections, work, *args), self.agent
                )
            except RuntimeError as fault:  # that is no fault of the run's
                logger.warning("a run of agent %s waits for a thread: %s", self.agent, fault)
                await asyncio.sleep(AGAIN_SECONDS)
        self._jobs.add(job)
        job.future.add_done_callback(lambda _: self._jobs.discard(job))
        if self.stopped:
            insist(asyncio.get_running_loop(), job)
        return await asyncio.wrap_future(job.future)

    def check(self) -> None:
        """Raise CancelledError if the run was stopped: nothing it says counts any more."""
        if self.stopped:
            raise asyncio.CancelledError

    def stop(self) -> None:
        """The run is to end: what is in a thread gets its time, and is forced then."""
        self.stopped = True
        for job in tuple(self._jobs):
            insist(asyncio.get_running_loop(), job)

    async def left(self) -> None:
        """Wait until nothing is in a thread any more."""
        while self._jobs:
            jobs = [asyncio.wrap_future(job.future) for job in self._jobs]
            await asyncio.gather(*jobs, return_exceptions=True)

    def force(self) -> None:
        """Interrupt what is in threads now. Any thread."""
        for job in tuple(self._jobs):
            job.force()


def _closing_connections(work: Callable[..., Any], *args: Any) -> Any:
    """Call it; an agent's own queries must not pin a connection to the thread."""
    try:
        return work(*args)
    except StopIteration as end:  # a future takes any exception but this one
        raise RuntimeError("the agent raised StopIteration") from end
    finally:
        connections.close_all()
