"""Signs of life: this process says every A2A_PRESENCE_SECONDS that it is there, what for, and how busy.

They are for operators; nothing is decided by them. A thread of its own has the store's threads write them, so that a
busy loop is no silence, and a database that is slow costs neither a request nor a lease anything.
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

from django.conf import settings

from a2a_tasks import lifetime, process
from a2a_tasks.agents import registry
from a2a_tasks.conf import conf
from a2a_tasks.outages import Outage
from a2a_tasks.store import workers
from a2a_tasks.store.hop import behind, in_thread
from a2a_tasks.store.workers import WorkerKind

__all__ = ["Load", "Presence", "begin"]

_silence = Outage(logging.getLogger(__name__), "no sign of life")
#: Seconds that are waited for the last one.
LAST_SECONDS = 1.0


class Load(NamedTuple):
    """What a process takes, and how much of it it has."""

    queues: Sequence[str] = ()
    slots: int = 0
    running: int = 0


class Presence:
    """Says that this process is there, from `start` to `close`."""

    def __init__(self, kind: WorkerKind, load: Callable[[], Load] = Load) -> None:
        """`load` is asked each time, in any thread."""
        self._kind, self._load = kind, load
        self._started_at = datetime.datetime.now(datetime.UTC)
        self._ended, self._due = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        """Begin, and say at once when the process begins to drain."""
        self._thread.start()
        lifetime.on_drain(self._due.set)

    def stop(self) -> None:
        """Take back that it is there; waits for that a moment. Blocks."""
        self._ended.set()
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(LAST_SECONDS)

    async def close(self) -> None:
        """The same, in a loop."""
        await asyncio.to_thread(self.stop)

    def _run(self) -> None:
        _write(workers.forget_old)
        while not self._ended.is_set():
            _write(workers.beat, self._said())
            self._due.wait(float(conf.PRESENCE_SECONDS))
            self._due.clear()
        _write(workers.leave, process.name())

    def _said(self) -> workers.Beat:
        return workers.Beat(
            name=process.name(),
            kind=self._kind,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self._started_at,
            version=str(conf.RELEASE) or settings.HOST_VERSION,
            agents={
                slug: agent.version for slug in registry.slugs() if (agent := registry.hosted(slug))
            },
            draining=lifetime.draining(),
            **self._load()._asdict(),
        )


def _write(work: Callable[..., object], *args: Any) -> None:
    """In one of the store's threads, which have connections. What fails is told to the log, and that is all."""
    try:
        behind(_tried, work, *args).result()
    except RuntimeError:  # the interpreter ends, and these threads have ended before
        _tried(work, *args)


def _tried(work: Callable[..., object], *args: Any) -> None:
    try:
        in_thread(work, *args)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the next one may be written
        _silence.count(fault.__cause__ or fault)


async def begin(kind: WorkerKind, load: Callable[[], Load] = Load) -> None:
    """Say it from now on, to the end of this process's helpers; nothing if A2A_PRESENCE_SECONDS is 0."""
    if float(conf.PRESENCE_SECONDS):
        made = Presence(kind, load)
        made.start()
        lifetime.on_stop(made.close)
