"""Daemon threads for synchronous agents.

A thread cannot be stopped from outside. If the thread of a stopped run goes on, it is abandoned and replaced: an agent
that never ends costs a thread of the machine, but none of the A2A_AGENT_THREADS.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from a2a_tasks.conf import conf

__all__ = ["ThreadJob", "Threads"]

logger = logging.getLogger(__name__)


class ThreadJob:
    """A call in a thread, for an agent."""

    def __init__(self, work: Callable[[], Any], agent: str) -> None:
        self.work, self.agent = work, agent
        #: The result of the call. If it is cancelled before the call begins, the call is not made.
        self.future: Future[Any] = Future()
        #: True once the call has ended, or its thread was abandoned.
        self.settled = False


class Threads:
    """A pool of at most `size` threads that take jobs, started when they are needed. Thread-safe."""

    def __init__(self, size: Callable[[], int] = lambda: int(conf.AGENT_THREADS)) -> None:
        self._size = size
        self._waiting: queue.SimpleQueue[ThreadJob] = queue.SimpleQueue()
        self._lock = threading.Lock()
        #: Number of threads that take jobs, and of those that wait for one, without those that will take a queued job.
        self._count = self._idle = 0

    def submit(self, work: Callable[[], Any], agent: str) -> ThreadJob:
        """Call `work` in a thread as soon as one is free. Raises RuntimeError if no memory is left for a thread."""
        job = ThreadJob(work, agent)
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._count < self._size():
                self._start()
            self._waiting.put(job)
        return job

    def abandon(self, job: ThreadJob) -> None:
        """Abandon the thread of a job, and start another one in its place; does nothing if the job is over."""
        with self._lock:
            if job.settled or not job.future.running():
                return
            job.settled = True
            self._count -= 1
            with contextlib.suppress(RuntimeError):  # no memory now: the next job starts one
                self._start()
        logger.error("agent %s does not end; its thread was abandoned and replaced", job.agent)

    def spare(self, count: int) -> None:
        """Count so many threads more, or less, that wait for other tasks: others may be started in their place."""
        with self._lock:
            self._count -= count
            if count > 0 and not self._idle and not self._waiting.empty():
                self._start()

    def _start(self) -> None:
        threading.Thread(target=self._serve, name="agent", daemon=True).start()
        self._count += 1

    def _serve(self) -> None:
        while self._serve_one(self._next()):
            pass  # a thread that waits refers to no job: a generator without other references is closed

    def _serve_one(self, job: ThreadJob) -> bool:
        """Do a job. Returns whether this thread takes another one."""
        if not job.future.set_running_or_notify_cancel():
            return True
        try:
            result, fault = job.work(), None
        except BaseException as raised:  # noqa: BLE001 - the caller gets it
            result, fault = None, raised
        with self._lock:
            abandoned, job.settled = job.settled, True
        if fault is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(fault)
        return not abandoned

    def _next(self) -> ThreadJob:
        with self._lock:
            try:
                return self._waiting.get_nowait()
            except queue.Empty:
                self._idle += 1
        return self._waiting.get()
