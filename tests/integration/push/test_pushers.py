"""A real worker of the queue of webhooks. What becomes of it when it is killed: lab/outages/test_pushers.py."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from a2a_tasks import pubsub
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from tests.support.execution.waiting import until
from tests.support.push.inbox import Inbox, inbox, pen, register, settled
from tests.support.push.pushers import pusher

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]


@pytest.fixture(autouse=True)
def open_to_this_machine(settings: Settings) -> None:
    settings.A2A_WEBHOOK_ALLOW_HTTP = settings.A2A_WEBHOOK_ALLOW_PRIVATE = True


@pytest.fixture
async def receiver() -> AsyncIterator[Inbox]:
    async with inbox() as made:
        yield made


async def test_hears_of_events_from_other_processes_and_carries_no_runs(receiver: Inbox) -> None:
    writer = await pen()
    await register(receiver.url())
    with pusher() as child:
        await run_in_thread(writer.state, TaskState.WORKING)

        async def is_told() -> bool:  # it may not have subscribed yet
            pubsub.publish(pubsub.Committed(writer.run.task, 2))
            return bool(receiver.said)

        await until(is_told, 30)
        await settled(1)
        await run_in_thread(writer.end)
        await settled(2)
    assert receiver.said == ["working", "completed"]
    assert "worker started, queues: none" in child.log
