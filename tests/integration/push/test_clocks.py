"""A pusher whose clock is wrong by an hour: webhooks are tried and signed by the database's."""

from __future__ import annotations

import datetime
import time

import pytest
from pytest_django import Settings

from a2a_push.models import Receiver
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from tests.support.execution.waiting import until
from tests.support.push.inbox import delivering, inbox, pen, register, told
from tests.support.push.receivers import answer
from tests.support.store.clocks import wrong_clock

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]


@pytest.fixture(autouse=True)
def near(settings: Settings) -> None:
    """Receivers are on this machine."""
    settings.A2A_WEBHOOK_ALLOW_HTTP = True
    settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
    settings.A2A_POLL_SECONDS = 0.05


@pytest.mark.parametrize("hours", [1, -1])
async def test_the_next_try_and_the_signature_are_of_the_databases_time(hours: int) -> None:
    right = time.time
    async with inbox() as receiver:
        receiver.answers = [answer("500 X")]
        with wrong_clock(hours):
            writer = await pen()
            await register(receiver.url())
            async with delivering():
                await run_in_thread(writer.state, TaskState.WORKING)
                await until(has_failed)
        (waits,) = await told()
        (seen, *_) = receiver.seen
    assert waits.next_at is not None
    assert 0 < waits.next_at.timestamp() - right() < 300
    (signed_at,) = seen.header("webhook-timestamp")
    assert abs(int(signed_at) - right()) < 60


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_pause_that_a_receiver_asks_for_is_as_long_as_it_says(hours: int) -> None:
    right = time.time
    async with inbox() as receiver:
        receiver.answers = [answer("429 X", "Retry-After: 600")]
        with wrong_clock(hours):
            writer = await pen()
            await register(receiver.url())
            async with delivering():
                await run_in_thread(writer.state, TaskState.WORKING)
                await until(has_failed)
        row = await run_in_thread(Receiver.objects.get)
    assert row.paused_until is not None
    assert 540 < row.paused_until.timestamp() - right() <= 600
    assert row.last_failure_at is not None
    assert abs(row.last_failure_at - datetime.datetime.now(datetime.UTC)).total_seconds() < 60


async def has_failed() -> bool:
    """Has the first attempt failed?"""
    return any(row.attempts for row in await told())
