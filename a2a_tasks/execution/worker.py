"""The event loop inside a Celery worker: one loop in a thread, with the runner, or with other work of its queues.

Wake-ups only make it look for runs, so one worker process executes hundreds of waiting agents, and no broker time-out affects them.

At SIGTERM the runner drains at once, in parallel to Celery's own shutdown, which may wait for a job or a silent broker.
The process ends GRACE_SECONDS after the drain in any case.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from celery import bootsteps

from a2a_tasks import process, process_lifetime, wake_ups
from a2a_tasks.conf import conf
from a2a_tasks.execution import heartbeat, presence
from a2a_tasks.execution.celery_app import app
from a2a_tasks.execution.housekeeping import DutyKeeper
from a2a_tasks.execution.runner import Runner
from a2a_tasks.execution.sealer import Sealer
from a2a_tasks.failpoints import failpoint
from a2a_tasks.store.workers import WorkerKind
from a2a_tasks.telemetry import loop_lag

__all__ = [
    "begin_drain",
    "run_in_background",
    "patient",
    "list_active_runs",
    "start",
    "stop",
    "wake",
]

logger = logging.getLogger(__name__)
#: Seconds from the end of the drain to that of the process: enough to hand back a thousand runs.
GRACE_SECONDS = 3.0
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_runner: Runner | None = None
_draining: threading.Thread | None = None
#: A function that starts work on the worker's loop.
Begin = Callable[[], Awaitable[object]]
_others: dict[str, Begin] = {}


def run_in_background(queue: str, begin: Begin) -> None:
    """Register work that workers of this queue start with `begin`.

    The queue contains no runs, and a worker of this queue alone executes none.
    """
    _others[queue] = begin


def start(queues: Sequence[str] | None = None) -> None:
    """Start the loop in this process, once, with the runner and other work of these queues."""
    global _loop  # noqa: PLW0603 - one per process
    with _lock:
        if _loop is not None:
            return
        gc.collect()
        gc.freeze()  # the loaded objects stay: without this, each collection would search them
        _loop = asyncio.new_event_loop()
        threading.Thread(target=_loop.run_forever, name="runs", daemon=True).start()
        asyncio.run_coroutine_threadsafe(_begin(queues), _loop).result()


async def _begin(queues: Sequence[str] | None) -> None:
    global _runner  # noqa: PLW0603
    kind = WorkerKind.PUSHER if queues and set(queues) <= _others.keys() else WorkerKind.WORKER
    await presence.begin(kind, functools.partial(_load, queues or ()))
    await heartbeat.begin()
    await loop_lag.begin()
    for queue in _others.keys() & set(queues or ()):
        await _others[queue]()
    of_agents = None if queues is None else [name for name in queues if name not in _others]
    if of_agents is None or of_agents:
        runner = _runner = Runner(of_agents)
        runner.start()
        listener = wake_ups.Listener(lambda: runner.queues, lambda: runner.has_room, wake)
        listener.start()
        process_lifetime.on_drain(listener.close)
        process_lifetime.on_drain(runner.stop_claiming)
        process_lifetime.on_stop(Sealer().close)
        process_lifetime.on_stop(DutyKeeper().close)
        process_lifetime.on_stop(functools.partial(_drain_runner, runner))


def _load(queues: Sequence[str]) -> presence.WorkerLoad:
    load = presence.WorkerLoad() if _runner is None else _runner.load()
    return load._replace(queues=sorted({*queues, *load.queues}))


async def _drain_runner(runner: Runner) -> None:
    await runner.drain(process_lifetime.drain_seconds())


def wake() -> None:
    """Make the runner look for due runs. In prefork children, which the worker's start does not reach, start it."""
    start()
    failpoint("worker.rung")
    if _runner is not None:
        _runner.wake()


def patient() -> bool:
    """Return whether this worker pauses its rescues, because the database was away."""
    return _runner is not None and _runner.patient


def list_active_runs() -> list[int]:
    """Return the runs that this worker does not rescue now."""
    return [] if _runner is None else _runner.spared


def begin_drain() -> None:
    """Claim no runs, let active ones finish during the drain, hand the others back, and soon after end the process.

    Returns at once. Safe in a signal handler: a thread does all work that takes a lock.
    """
    global _draining  # noqa: PLW0603 - once per process
    if _draining is None:
        _draining = threading.Thread(target=_drain, name="drain", daemon=True)
        _draining.start()


def _drain() -> None:
    seconds = float(conf.DRAIN_SECONDS)
    process.exit_by(seconds + GRACE_SECONDS)
    process_lifetime.begin_drain(seconds)
    if _loop is not None:
        asyncio.run_coroutine_threadsafe(process_lifetime.stop(), _loop).result()


def stop() -> None:
    """Drain, and return when all runs have ended or were handed back."""
    begin_drain()
    if _draining is not None:
        _draining.join()


class Runs(bootsteps.StartStopStep):  # type: ignore[misc]
    """A step of the worker that executes runs until its end, also while the broker is away."""

    #: The step that forks: it must come before any threads start.
    requires = ("celery.worker.components:Pool",)

    def start(self, parent: Any) -> None:
        """Start the work of the worker's queues."""
        queues = sorted(parent.app.amqp.queues.consume_from)
        start(queues)
        of_agents = [name for name in queues if name not in _others]
        logger.info("worker started, queues: %s", ", ".join(of_agents) or "none")

    def stop(self, parent: Any) -> None:
        """Wait for the end of the drain."""
        stop()


app.steps["worker"].add(Runs)
