"""Threads for synchronous agents, which can be told from outside to end what they do.

CPython raises an exception in a thread at its next bytecode, if somebody asks (`PyThreadState_SetAsyncExc`). A thread that
this was done to takes no more jobs, since the exception may come when the job is over; another one begins in its place. One
that sits in C code for ever is lost, but its place is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from a2a_tasks.conf import conf

__all__ = ["Job", "Threads", "raise_in"]

logger = logging.getLogger(__name__)


def raise_in(ident: int) -> None:
    """Have CancelledError raised in the thread of that ident, as soon as it executes Python."""
    error = ctypes.py_object(asyncio.CancelledError)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), error)


class Job:
    """A call to be made in a thread, for an agent."""

    def __init__(self, threads: Threads, work: Callable[[], Any], agent: str) -> None:
        self._threads, self._work, self._agent = threads, work, agent
        #: What the call returns or raises; cancelled before it has begun, it is not made.
        self.future: Future[Any] = Future()
        #: Who is at it.
        self.thread: threading.Thread | None = None
        self.over = False
        self._result: Any = None
        self._fault: BaseException | None = asyncio.CancelledError()

    def call(self) -> None:
        """Make the call in this thread; what comes of it is kept."""
        try:
            result = self._work()
        except BaseException as fault:  # noqa: BLE001 - whoever waits gets it
            self._fault = fault
        else:
            self._result, self._fault = result, None

    def tell(self) -> None:
        """Tell what came of it, when this thread cannot be interrupted any more: whoever waits has to hear of it."""
        if self._fault is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(self._fault)

    @property
    def gone(self) -> bool:
        """Is it over, or was it cancelled before it began?"""
        thread = self.thread
        return self.over or self.future.cancelled() or (thread and not thread.is_alive()) is True

    def force(self) -> None:
        """Raise CancelledError in its thread. Any thread."""
        self._threads.force(self)

    def let_go(self) -> None:
        """Say that its thread is lost."""
        logger.error(
            "agent %s does not end; its thread was replaced and is left to it", self._agent
        )


class Threads:
    """At most so many threads that are of use, begun when they are needed."""

    def __init__(self, size: Callable[[], int] = lambda: int(conf.AGENT_THREADS)) -> None:
        self._size = size
        self._waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        #: Threads that wait for a job and have been promised none.
        self._idle = 0
        self._lock = threading.RLock()
        self._useful: set[threading.Thread] = set()

    def submit(self, work: Callable[[], Any], agent: str) -> Job:
        """Have a thread call it, as soon as one is free. Raises RuntimeError if the machine has no memory for a thread."""
        job = Job(self, work, agent)
        with self._lock:  # nobody finds nothing to do between the look and the job
            if self._idle:
                self._idle -= 1
            else:
                self._begin()
            self._waiting.put(job)
        return job

    def _begin(self) -> None:
        with self._lock:
            if len(self._useful) >= self._size():
                return
            thread = threading.Thread(target=self._serve, name="agent", daemon=True)
            thread.start()
            self._useful.add(thread)  # it takes the lock before it asks whether it is useful

    def _serve(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # it came when the job was over
            while self._serve_one(self._next()):
                pass

    def _serve_one(self, job: Job) -> bool:
        """Do a job; returns whether this thread may take another."""
        if not job.future.set_running_or_notify_cancel():
            return True
        try:
            self._take(job)
            job.call()
        finally:
            try:
                useful = self._leave(job)
            except asyncio.CancelledError:  # it came when the call was over
                useful = self._leave(job)
            job.tell()
        return useful

    def _next(self) -> Job:
        with self._lock:
            try:
                return self._waiting.get_nowait()
            except queue.Empty:
                self._idle += 1
        return self._waiting.get()

    def _take(self, job: Job) -> None:
        with self._lock:
            job.thread = threading.current_thread()

    def _leave(self, job: Job) -> bool:
        """Let nobody interrupt this thread for that job any more; returns whether it is of use."""
        with self._lock:
            job.thread, job.over = None, True
            return threading.current_thread() in self._useful

    def force(self, job: Job) -> None:
        """Raise CancelledError in the thread that is at this job, and use the thread no more. Any thread."""
        with self._lock:
            if job.thread is None or job.thread.ident is None:
                return
            if job.thread in self._useful:
                self._useful.remove(job.thread)
                self._begin()  # others may be waiting for it
            raise_in(job.thread.ident)
