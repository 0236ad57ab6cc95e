"""The cache of the switches of operators in this process: read anew after A2A_CREDENTIAL_SECONDS, or at a hint.

A request waits only briefly for a read. While the database is away, the cached switches stay in force.
"""

from __future__ import annotations

import asyncio
import logging
import time

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks import pubsub
from a2a_tasks.agents import switches
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store import switches as stored
from a2a_tasks.store.db import run_in_thread

__all__ = ["forget", "fresh"]

#: Longest that a request waits for a read.
PATIENCE_SECONDS = 0.5

_unread = ThrottledLogger(logging.getLogger(__name__), "switches of agents were not read")


class _Known:
    """The state of the cache: its expiry by the monotonic clock, and the running read."""

    until = 0.0
    #: Number of hints of changes: a read during which this number grew may have returned old switches.
    said = 0
    asking: asyncio.Task[None] | None = None


async def fresh() -> None:
    """Bring `agents.switches` up to date. Never raises, and waits PATIENCE_SECONDS at most."""
    if time.monotonic() < _Known.until:
        return
    asking = _Known.asking
    if asking is None or asking.done() or asking.get_loop() is not asyncio.get_running_loop():
        asking = _Known.asking = asyncio.create_task(_read())
    await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)


async def _read() -> None:
    began, said = time.monotonic(), _Known.said
    try:
        switches.put(await run_in_thread(stored.read_switches))
    except Exception as fault:  # noqa: BLE001 - after any failure the old switches stay
        _unread.warning(fault.__cause__ or fault)
    if said == _Known.said:
        _Known.until = began + float(conf.CREDENTIAL_SECONDS)


def _hear(hint: pubsub.Hint) -> None:
    if isinstance(hint, pubsub.OverridesChanged):
        _Known.said += 1
        _Known.until = 0.0


@receiver(setting_changed)
def forget(**_: object) -> None:
    """Clear the cache, as in a new process."""
    _Known.until = 0.0
    switches.put({})


_listening = pubsub.listen(_hear)
_listening.__enter__()  # to the end of the process
