"""Keeping what operators have switched known in this process: read anew after A2A_CREDENTIAL_SECONDS, or at a hint.

A request waits for that a moment at most. While the database is away, what was known stays.
"""

from __future__ import annotations

import asyncio
import logging
import time

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks import wakeups
from a2a_tasks.agents import switches
from a2a_tasks.conf import conf
from a2a_tasks.outages import Outage
from a2a_tasks.store import switches as stored
from a2a_tasks.store.hop import hop

__all__ = ["forget", "fresh"]

#: Longest anybody waits for the database to say it.
PATIENCE_SECONDS = 0.5

_unread = Outage(logging.getLogger(__name__), "switches of agents were not read")


class _Known:
    """Until when what is known counts as fresh, by the process's clock, and who is asking."""

    until = 0.0
    #: How often something was said to be switched: who reads meanwhile may have read what was before.
    said = 0
    asking: asyncio.Task[None] | None = None


async def fresh() -> None:
    """See to it that `agents.switches` is what operators have set. Never raises, and waits a moment at most."""
    if time.monotonic() < _Known.until:
        return
    asking = _Known.asking
    if asking is None or asking.done() or asking.get_loop() is not asyncio.get_running_loop():
        asking = _Known.asking = asyncio.create_task(_read())
    await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)


async def _read() -> None:
    began, said = time.monotonic(), _Known.said
    try:
        switches.put(await hop(stored.found))
    except Exception as fault:  # noqa: BLE001 - whatever it is, what was known stays
        _unread.count(fault.__cause__ or fault)
    if said == _Known.said:
        _Known.until = began + float(conf.CREDENTIAL_SECONDS)


def _hear(hint: wakeups.Hint) -> None:
    if isinstance(hint, wakeups.Switched):
        _Known.said += 1
        _Known.until = 0.0


@receiver(setting_changed)
def forget(**_: object) -> None:
    """Know nothing, as a process that begins."""
    _Known.until = 0.0
    switches.put({})


_listening = wakeups.listen(_hear)
_listening.__enter__()  # to the end of the process
