"""Real workers of the queue of webhooks are killed and ended: others send what they were sending."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from tests.support.push.inbox import Inbox, inbox, pen, register, settled, told
from tests.support.push.pushers import pusher

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]


@pytest.fixture(autouse=True)
def open_to_this_machine(settings: Settings) -> None:
    settings.A2A_WEBHOOK_ALLOW_HTTP = settings.A2A_WEBHOOK_ALLOW_PRIVATE = True


@pytest.fixture
async def receiver() -> AsyncIterator[Inbox]:
    async with inbox() as made:
        yield made


async def test_what_a_killed_one_was_sending_is_sent_again_by_another(receiver: Inbox) -> None:
    receiver.answers = [receiver.never]
    writer = await pen()
    await register(receiver.url())
    await run_in_thread(writer.state, TaskState.WORKING)
    await run_in_thread(writer.end)
    with pusher(A2A_WEBHOOK_SECONDS="2") as first:
        await receiver.has(1)
        first.kill()
    with pusher(2, A2A_POLL_SECONDS="0.3"):
        await settled(2)
    assert receiver.said == ["working", "working", "completed"]
    assert receiver.ids[0] == receiver.ids[1]
    assert [row.attempts for row in await told()] == [1, 1]


async def test_one_that_is_asked_to_end_lets_others_go_on_at_once(receiver: Inbox) -> None:
    receiver.answers = [receiver.never]
    writer = await pen()
    await register(receiver.url())
    await run_in_thread(writer.state, TaskState.WORKING)
    with pusher(A2A_WEBHOOK_SECONDS="60") as first:
        await receiver.has(1)
        first.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(first.process.wait, 20) == 0, first.log
    with pusher(2):
        await settled(1)
    assert receiver.said == ["working", "working"]
