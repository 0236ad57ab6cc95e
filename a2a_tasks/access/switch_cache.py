"""The cache of operators' switches and budgets, and of announced versions of agents, in this process.

It is read again after A2A_CREDENTIAL_SECONDS, or at a hint.

A request waits only briefly for a read. While the database is away, the cached switches stay in force.
"""

from __future__ import annotations

import asyncio
import logging
import time

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks import pubsub
from a2a_tasks.agents import switches, versions
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store import budgets, clock
from a2a_tasks.store import switches as stored
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.versions import read_versions

__all__ = ["forget", "fresh", "install", "refresh"]

#: Maximum seconds that a request waits for a read.
PATIENCE_SECONDS = 0.5

_unread = ThrottledLogger(logging.getLogger(__name__), "switches of agents were not read")


class _Cache:
    """The state of the cache: its expiry by the monotonic clock, and the running read."""

    until = 0.0
    #: Number of hints of changes: a read during which this number grew may have returned old switches.
    changes = 0
    reading: asyncio.Task[None] | None = None


async def fresh() -> None:
    """Bring `agents.switches` up to date. Never raises, and waits PATIENCE_SECONDS at most."""
    if time.monotonic() < _Cache.until:
        return
    reading = _Cache.reading
    if reading is None or reading.done() or reading.get_loop() is not asyncio.get_running_loop():
        reading = _Cache.reading = asyncio.create_task(_read())
    await asyncio.wait({reading}, timeout=PATIENCE_SECONDS)


def refresh() -> None:
    """Read the clock, switches, budgets and announced versions now, in a thread that has a connection to the database."""
    clock.now()
    switches.put(stored.read_switches())
    budgets.put(budgets.read_budgets())
    if not conf.ENVIRONMENT:  # a worker in an environment serves no requests
        versions.put(read_versions())


async def _read() -> None:
    began, changes = time.monotonic(), _Cache.changes
    try:
        await run_in_thread(refresh)
    except Exception as fault:  # noqa: BLE001 - after any failure the old switches stay
        _unread.warning(fault.__cause__ or fault)
    if changes == _Cache.changes:
        _Cache.until = began + float(conf.CREDENTIAL_SECONDS)


def _on_change(_: pubsub.OverridesChanged) -> None:
    _Cache.changes += 1
    _Cache.until = 0.0


@receiver(setting_changed)
def forget(**_: object) -> None:
    """Clear the cache, as in a new process."""
    _Cache.until = 0.0
    switches.put({})
    budgets.put(())
    versions.put({})


_installed = pubsub.listen(_on_change, pubsub.OverridesChanged)


def install() -> None:
    """Read the switches again after each hint of a change, from now on to the end of the process."""
    _installed.__enter__()
