"""The work of a run outside the event loop, in threads or in a process; it stops with the run."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import Any

from django.db import connections

from a2a_tasks.conf import conf
from a2a_tasks.execution.threads import ThreadJob, Threads

__all__ = ["RunThreads"]

logger = logging.getLogger(__name__)
#: Seconds until the next try to start a thread, if the machine had no memory for it.
AGAIN_SECONDS = 1.0
_threads = Threads()


class RunThreads:
    """The threads that work for one run, and whether the run was started and stopped. It belongs to the event loop."""

    def __init__(self, agent: str = "") -> None:
        #: The agent's slug, for the log.
        self.agent = agent
        #: True if the run was stopped before its end.
        self.stopped = False
        #: True once the agent's `run` was called: it may have acted.
        self.begun = False
        self._jobs: set[ThreadJob] = set()

    async def in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a thread. If the caller is cancelled, the call goes on until the run is stopped."""
        context = contextvars.copy_context()  # it names the log of the run
        job = None
        while job is None:
            try:
                job = _threads.submit(lambda: context.run(_call_and_close, work, *args), self.agent)
            except RuntimeError as fault:  # not the run's fault
                logger.warning("a run of agent %s waits for a thread: %s", self.agent, fault)
                await asyncio.sleep(AGAIN_SECONDS)
        self._jobs.add(job)
        job.future.add_done_callback(lambda _: self._jobs.discard(job))
        if self.stopped:
            self._abandon_later(job)
        return await asyncio.wrap_future(job.future)

    def check(self) -> None:
        """Raise CancelledError if the run was stopped: its further output does not count."""
        if self.stopped:
            raise asyncio.CancelledError

    def stop(self) -> None:
        """Stop the run: its threads get A2A_STOP_SECONDS to end, and are abandoned then."""
        self.stopped = True
        for job in tuple(self._jobs):
            self._abandon_later(job)

    def _abandon_later(self, job: ThreadJob) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(float(conf.STOP_SECONDS), _threads.abandon, job)

    async def wait_idle(self) -> None:
        """Wait until all threads of the run have ended."""
        while self._jobs:
            jobs = [asyncio.wrap_future(job.future) for job in self._jobs]
            await asyncio.gather(*jobs, return_exceptions=True)


def _call_and_close(work: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and close the database connections that an agent's own queries opened in this thread."""
    try:
        return work(*args)
    except StopIteration as end:  # a future takes any exception but this one
        raise RuntimeError("the agent raised StopIteration") from end
    finally:
        connections.close_all()
