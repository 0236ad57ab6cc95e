"""The lag of an event loop is what it wakes tasks too late."""

from __future__ import annotations

import asyncio
import time

import pytest

from a2a_tasks import process_lifetime
from a2a_tasks.telemetry import loop_lag
from tests.support.execution.waiting import until
from tests.support.metrics import samples


async def test_work_that_holds_the_loop_is_seen_and_the_measurement_ends_with_the_helpers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_lag, "EVERY", 0.01)
    lifetime = process_lifetime.Lifetime()
    monkeypatch.setattr(process_lifetime, "on_stop", lifetime.on_stop)
    before, tasks = slow(), asyncio.all_tasks()
    await loop_lag.begin()
    await asyncio.sleep(0)
    time.sleep(0.5)  # noqa: ASYNC251 - this is what holds the loop
    await until(lambda: slow() > before)
    await lifetime.stop()
    assert asyncio.all_tasks() == tasks


def slow() -> float:
    """The number of measurements of more than 0.3 s."""
    name = "a2a_event_loop_lag_seconds"
    return samples(f"{name}_count")[()] - samples(f"{name}_bucket", le="0.3")[()]
