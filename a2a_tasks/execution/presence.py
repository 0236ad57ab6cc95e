"""Presence reports: every A2A_PRESENCE_SECONDS, this process records that it is alive, with its queues and load.

The reports are for operators; no lease depends on them. A thread of its own passes them to the store's threads, so that
a busy event loop does not stop them, and a slow database delays neither requests nor leases.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from a2a_tasks import process, process_lifetime
from a2a_tasks.access import switch_cache
from a2a_tasks.agents import registry
from a2a_tasks.conf import conf, project
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store import workers
from a2a_tasks.store.db import run_here, run_in_background
from a2a_tasks.store.workers import WorkerKind

__all__ = ["WorkerLoad", "Presence", "begin"]

_silence = ThrottledLogger(
    logging.getLogger(__name__), "the presence of this process was not reported"
)
#: Longest wait for the last report, in seconds.
LAST_SECONDS = 1.0


class WorkerLoad(NamedTuple):
    """The queues and slots of a process, and its number of runs."""

    queues: Sequence[str] = ()
    slots: int = 0
    running: int = 0


class Presence:
    """The presence reports of this process, from `start` to `close`."""

    def __init__(self, kind: WorkerKind, load: Callable[[], WorkerLoad] = WorkerLoad) -> None:
        """Make the reports; `load` is called for each, in any thread."""
        self._kind, self._load = kind, load
        self._started_at = datetime.datetime.now(datetime.UTC)
        self._ended, self._due = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        """Start the reports; one is also written as soon as the process drains."""
        self._thread.start()
        process_lifetime.on_drain(self._due.set)

    def stop(self) -> None:
        """Report that this process ends; blocks for LAST_SECONDS at most."""
        self._ended.set()
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(LAST_SECONDS)

    async def close(self) -> None:
        """Stop without blocking the event loop."""
        await asyncio.to_thread(self.stop)

    def _run(self) -> None:
        _write(workers.forget_old)
        while not self._ended.is_set():
            _write(workers.beat, self._make_beat())
            # In other processes requests and runs refresh the cache; a pusher has neither.
            if self._kind is WorkerKind.PUSHER:
                _write(switch_cache.refresh)
            self._due.wait(float(conf.PRESENCE_SECONDS))
            self._due.clear()
        _write(workers.leave, process.name())

    def _make_beat(self) -> workers.Beat:
        return workers.Beat(
            name=process.name(),
            kind=self._kind,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self._started_at,
            version=str(conf.RELEASE) or project.A2A_HOST_VERSION,
            agents={agent.slug: agent.version for agent in registry.list_own()},
            draining=process_lifetime.is_draining(),
            **self._load()._asdict(),
        )


def _write(work: Callable[..., object], *args: Any) -> None:
    """Call `work` in one of the store's threads, which have connections. Failures are only logged."""
    try:
        run_in_background(_heartbeat, work, *args).result()
    except RuntimeError:  # the interpreter is ending, and its pools of threads have ended
        _heartbeat(work, *args)


def _heartbeat(work: Callable[..., object], *args: Any) -> None:
    try:
        run_here(work, *args)
    except Exception as fault:  # noqa: BLE001 - after any failure the next report follows
        _silence.warning(fault.__cause__ or fault)


async def begin(kind: WorkerKind, load: Callable[[], WorkerLoad] = WorkerLoad) -> None:
    """Start the reports of this process, until its helpers stop; does nothing if A2A_PRESENCE_SECONDS is 0."""
    if float(conf.PRESENCE_SECONDS):
        made = Presence(kind, load)
        made.start()
        process_lifetime.on_stop(made.close)
