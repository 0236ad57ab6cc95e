"""A Celery worker's inside: one event loop in a thread, with the runner on it, or what else its queues are for.

Jobs only wake it, so one worker process carries hundreds of waiting agents, and no broker time-out concerns them.

At SIGTERM the runner drains from the signal on, beside Celery's own shutdown, which may wait for a job, or for a
broker that is silent; the process is gone GRACE_SECONDS after the drain whatever still holds it.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from celery import bootsteps, current_app, signals

from a2a_tasks import lifetime, process
from a2a_tasks.conf import conf
from a2a_tasks.execution import presence
from a2a_tasks.execution.runner import Runner
from a2a_tasks.execution.sealer import Sealer
from a2a_tasks.failpoints import failpoint
from a2a_tasks.store.workers import WorkerKind

__all__ = [
    "WATCHDOG",
    "begin_drain",
    "beside",
    "carrying",
    "patient",
    "spared",
    "start",
    "stop",
    "wake",
]

logger = logging.getLogger(__name__)
#: Begins the name of the queue in which a worker rings itself.
WATCHDOG = "watchdog."
#: Seconds after the drain at which the process is gone: time to hand back a thousand runs.
GRACE_SECONDS = 3.0
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_runner: Runner | None = None
_draining: threading.Thread | None = None
#: Begins something on the worker's loop, and returns what is set once that can work.
Begin = Callable[[], Awaitable[asyncio.Event]]
_others: dict[str, Begin] = {}
#: What has to be set before this process can work.
_able: list[asyncio.Event] = []


def beside(queue: str, begin: Begin) -> None:
    """Have workers of this queue `begin` something else; no runs are in it, and who serves no other carries none."""
    _others[queue] = begin


def start(queues: Sequence[str] | None = None) -> None:
    """Start the loop in this process, once, with the runner of these queues, and what else belongs to them."""
    global _loop  # noqa: PLW0603 - one a process
    with _lock:
        if _loop is not None:
            return
        gc.collect()
        gc.freeze()  # what is loaded now stays; searching it again and again costs pauses
        _loop = asyncio.new_event_loop()
        threading.Thread(target=_loop.run_forever, name="runs", daemon=True).start()
        asyncio.run_coroutine_threadsafe(_begin(queues), _loop).result()


async def _begin(queues: Sequence[str] | None) -> None:
    global _runner  # noqa: PLW0603
    kind = WorkerKind.PUSHER if queues and set(queues) <= _others.keys() else WorkerKind.WORKER
    await presence.begin(kind, functools.partial(_load, queues or ()))
    for queue in _others.keys() & set(queues or ()):
        _able.append(await _others[queue]())
    of_agents = None if queues is None else [name for name in queues if name not in _others]
    if of_agents is None or of_agents:
        _runner = Runner(of_agents)
        _runner.start()
        _able.append(_runner.looked)
        lifetime.on_drain(_runner.stop_claiming)
        lifetime.on_stop(Sealer().close)
        lifetime.on_stop(functools.partial(_drain_runner, _runner))


def _load(queues: Sequence[str]) -> presence.Load:
    load = presence.Load() if _runner is None else _runner.load()
    return load._replace(queues=sorted({*queues, *load.queues}))


async def _drain_runner(runner: Runner) -> None:
    await runner.drain(lifetime.drain_left())


def wake() -> None:
    """Have the runner look for due runs; starts it where the worker's own start did not (prefork children)."""
    start()
    failpoint("worker.rung")
    if _runner is not None:
        _runner.wake()


def carrying() -> int:
    """How many runs are in this worker's hands?"""
    return 0 if _runner is None else _runner.carrying


def patient() -> bool:
    """Does this worker rescue nothing at this moment, because the database was away?"""
    return _runner is not None and _runner.patient


def spared() -> list[int]:
    """The runs that this worker does not rescue at this moment."""
    return [] if _runner is None else _runner.spared


def begin_drain() -> None:
    """No new runs; the drain time for those under way, then hand them back; soon after, end the process.

    Returns at once. Made for a signal handler: whatever takes a lock is done by a thread.
    """
    global _draining  # noqa: PLW0603 - once a process
    if _draining is None:
        _draining = threading.Thread(target=_drain, name="drain", daemon=True)
        _draining.start()


def _drain() -> None:
    seconds = float(conf.DRAIN_SECONDS)
    process.exit_by(seconds + GRACE_SECONDS)
    lifetime.begin_drain(seconds)
    if _loop is not None:
        asyncio.run_coroutine_threadsafe(lifetime.stop(), _loop).result()


def stop() -> None:
    """Drain, and return when all runs have ended or were handed back."""
    begin_drain()
    if _draining is not None:
        _draining.join()


class Runs(bootsteps.StartStopStep):  # type: ignore[misc]
    """Carries runs for as long as the worker lives, also while it waits for a broker that is away."""

    #: What forks must have forked before there are threads.
    requires = ("celery.worker.components:Pool",)

    def start(self, parent: Any) -> None:
        """Start what these queues are for."""
        consumed = parent.app.amqp.queues.consume_from
        queues = sorted(name for name in consumed if not name.startswith(WATCHDOG))
        start(queues)
        of_agents = [name for name in queues if name not in _others]
        logger.info("carrying runs of %s", ", ".join(of_agents) or "no queue")

    def stop(self, parent: Any) -> None:
        """Wait for the end of the drain."""
        stop()


current_app.steps["worker"].add(Runs)


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _on_ready(**_: Any) -> None:
    """The bell is heard now; once the tables were looked at, too, the worker can work."""
    if _loop is not None:
        asyncio.run_coroutine_threadsafe(_tell_ready(), _loop)


async def _tell_ready() -> None:
    for looked in _able:
        await looked.wait()
    process.tell_ready()


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _on_shutting_down(**_: Any) -> None:
    begin_drain()
