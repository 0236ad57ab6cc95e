"""Leases are extended in time, however long the database takes to answer."""

from __future__ import annotations

import math
import threading
from typing import Any, cast

import pytest

from a2a_tasks.execution import leases
from a2a_tasks.execution.active_run import ActiveRun
from a2a_tasks.execution.leases import Leases
from a2a_tasks.store import runs
from a2a_tasks.store.records import ClaimedRun
from tests.support.execution.waiting import until


class _Held:
    """A run in hand, as far as its lease goes."""

    def __init__(self) -> None:
        self.run = cast("ClaimedRun", self)
        self.token, self.key, self.extended, self.confirmed = "token", 1, math.inf, 0.0
        self.is_unknown = self.ending = self.parking = self.acted = False


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the heartbeat thread asks of the store, whose first answer takes longer than a beat."""
    found: list[str] = []
    never = threading.Event()

    def holding(_: Any) -> set[str]:
        found.append("look")
        never.wait(0.4)
        return {"token"}

    def heartbeat(_: Any, **__: Any) -> set[str]:
        found.append("beat")
        return {"token"}

    monkeypatch.setattr(runs, "find_held_tokens", holding)
    monkeypatch.setattr(runs, "heartbeat", heartbeat)
    monkeypatch.setattr(leases, "run_here", lambda work, *args, **more: work(*args, **more))
    return found


def _after_a_look(asked: list[str]) -> list[str]:
    """On a busy machine the first beat is due before there is time to look."""
    return asked[asked.index("look") + 1 :] if "look" in asked else []


async def test_a_look_that_takes_long_does_not_put_off_the_beat(
    settings: Any, asked: list[str]
) -> None:
    settings.A2A_BEAT_SECONDS, settings.A2A_POLL_SECONDS = 0.3, 0.02
    kept = Leases({1: cast("ActiveRun", _Held())}, lambda _: None)
    kept.start()
    try:
        first, *_ = await until(lambda: _after_a_look(asked))
    finally:
        kept.stop()
    assert first == "beat"


async def test_a_run_that_is_being_parked_is_lost_to_an_outage_and_not_to_a_heartbeat() -> None:
    """It may give up its lease itself; other branches of its agent must not work on without one."""
    held, lost = _Held(), list[ActiveRun]()
    carried = cast("ActiveRun", held)
    held.parking = True
    kept = Leases({1: carried}, lost.append)
    kept.stop()
    kept._miss(carried)
    kept._watch()
    assert lost == []
    held.is_unknown = True
    kept._watch()
    assert lost == [carried]
