"""Who starts a run: this process's own runner (`local`), or workers called by the bell (`celery`)."""

from __future__ import annotations

import asyncio
import functools
import weakref

from django.conf import settings

from a2a_tasks import lifetime
from a2a_tasks.conf import conf
from a2a_tasks.execution.housekeeping import Housekeeper
from a2a_tasks.execution.presence import Load
from a2a_tasks.execution.runner import Runner
from a2a_tasks.execution.sealer import Sealer
from a2a_tasks.store.records import Assignment, Hold

__all__ = ["by_workers", "carry", "ensure_started", "hold", "load"]

_runners: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Runner] = weakref.WeakKeyDictionary()


def by_workers() -> bool:
    """Are runs carried by Celery workers?"""
    return bool(conf.RUNS == "celery" or (conf.RUNS == "auto" and settings.CELERY_BROKER_URL))


async def ensure_started() -> None:
    """Start this process's runner, once a loop, if runs are local. Also finds what an earlier process left."""
    if not by_workers():
        _runner()


def _runner() -> Runner:
    loop = asyncio.get_running_loop()
    found = _runners.get(loop)
    if found is None:
        found = _runners[loop] = Runner()
        found.start()
        lifetime.on_drain(found.stop_claiming)
        lifetime.on_stop(functools.partial(_drain, found))
        lifetime.on_stop(Housekeeper().close)
        lifetime.on_stop(Sealer().close)
    return found


async def _drain(runner: Runner) -> None:
    await runner.drain(lifetime.drain_left())


def load() -> Load:
    """What the runners of this process take and carry; nothing where workers do."""
    loads = [runner.load() for runner in list(_runners.values())]
    return loads[0] if loads else Load()


def hold(queue: str, share: str = "") -> Hold | None:
    """A lease for a run about to be accepted here; None leaves it to whoever claims it."""
    return None if by_workers() else _runner().hold(queue, share)


def carry(assignment: Assignment) -> None:
    """Start a run that was accepted with a lease of this process."""
    _runner().carry(assignment)
