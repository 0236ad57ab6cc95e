"""The choice of where runs start: in this process's own runner (`local`), or in workers (`celery`)."""

from __future__ import annotations

import asyncio
import functools
import weakref

from a2a_tasks import process_lifetime
from a2a_tasks.agents import Agent
from a2a_tasks.conf import conf, project
from a2a_tasks.execution.housekeeping import DutyKeeper, Housekeeper
from a2a_tasks.execution.presence import WorkerLoad
from a2a_tasks.execution.runner import Runner
from a2a_tasks.execution.sealer import Sealer
from a2a_tasks.store.records import ClaimedRun, PreclaimedLease

__all__ = [
    *("by_workers", "ensure_started", "give_back", "load", "preclaim", "start_run", "take_back")
]

_runners: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Runner] = weakref.WeakKeyDictionary()


def by_workers() -> bool:
    """Return whether Celery workers execute the runs."""
    return bool(conf.RUNS == "celery" or (conf.RUNS == "auto" and project.A2A_CELERY_BROKER_URL))


async def ensure_started() -> None:
    """Start the runner of this event loop once, if runs are local. It also finds the runs of an earlier process."""
    if not by_workers():
        _runner()


def _runner() -> Runner:
    loop = asyncio.get_running_loop()
    found = _runners.get(loop)
    if found is None:
        found = _runners[loop] = Runner()
        found.start()
        process_lifetime.on_drain(found.stop_claiming)
        process_lifetime.on_stop(functools.partial(_drain, found))
        process_lifetime.on_stop(Housekeeper().close)
        process_lifetime.on_stop(DutyKeeper().close)
        process_lifetime.on_stop(Sealer().close)
    return found


async def _drain(runner: Runner) -> None:
    await runner.drain(process_lifetime.drain_seconds())


def load() -> WorkerLoad:
    """Return the load of this process's runner; an empty one if workers execute the runs."""
    loads = [runner.load() for runner in list(_runners.values())]
    return loads[0] if loads else WorkerLoad()


def preclaim(
    queue: str, quota_key: str = "", agent: Agent | None = None, size: int = 0
) -> PreclaimedLease | None:
    """Return a lease, with a slot, for a run that is about to be accepted here; None = another process may claim it."""
    return None if by_workers() else _runner().preclaim(queue, quota_key, agent, size)


def give_back(lease: PreclaimedLease) -> None:
    """Give back the slot of a lease with which no run was accepted."""
    _runner().give_back(lease)


def start_run(run: ClaimedRun) -> None:
    """Start a run that was accepted with a lease of this process."""
    _runner().start_run(run)


def take_back(token: str) -> None:
    """Queue a run again that was perhaps accepted with this lease of this process."""
    _runner().take_back(token)
