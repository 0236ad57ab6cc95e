"""A client that resumes where retention has removed events is told so, in every dialect: a gap is never silent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from a2a_tasks.models import Event as Row
from a2a_tasks.models import Task
from a2a_tasks.store import event_log
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.purge import RetentionLimits, purge
from tests.support.bindings.client import Client, Event
from tests.support.dialects.clients import WIRES, Refused, View, Wire

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("wire", share=4)]
SUBSCRIBERS = [wire for wire in WIRES if wire.subscribes]


@pytest.fixture(params=SUBSCRIBERS, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest, host: None, client: Client) -> Wire:
    """A client of each dialect and binding that can follow a task, of the demo agent."""
    made: Wire = request.param.of(client, "demo")
    return made


def forget_log(task: str) -> int:
    """Let its events be too old; returns the number before which there are none."""
    then = timezone.now() - timedelta(days=40)
    Task.objects.filter(public_id=task).update(status_at=then, created_at=then)
    for _ in purge(RetentionLimits.of(0, 30)):
        pass
    begins = event_log.find_first_number(Task.objects.get(public_id=task).pk)
    assert begins
    return begins


async def resumed(wire: Wire, task: str, seen: str) -> tuple[str | None, list[Event]]:
    """What a client gets that has seen an event: the header about removed ones, and every block."""
    blocks = []
    async with wire.opened("subscribe", {"id": task}, seen=seen) as stream:
        while (block := await stream.block()) is not None:
            blocks.append(block)
        return stream.header("a2a-events-removed-before"), blocks


async def test_it_gets_a_notice_and_the_task_again(wire: Wire) -> None:
    task = (await wire.send("chunks 3")).id
    begins = await run_in_thread(forget_log, task)
    for seen in ("0", "1", str(begins - 2)):
        header, (notice, *events) = await resumed(wire, task, seen)
        assert header == str(begins)
        assert notice.comment == f"events before {begins} were removed"
        assert {event.id for event in events} == {begins - 1}
        items = [wire.grammar.item(wire.binding.item(event)) for event in events]
        if wire.grammar.begins_with_task:
            whole = items.pop(0)
            assert isinstance(whole, View)
            assert whole == await wire.get(task)
        told = [item.status.word for item in items if hasattr(item, "status")]
        assert told == ["completed"] * wire.grammar.finals


async def test_it_gets_them_too_if_a_part_of_the_log_is_left(wire: Wire) -> None:
    task = (await wire.send("chunks 3")).id
    await run_in_thread(Row.objects.filter(task__public_id=task, number__lt=4).delete)
    header, (notice, *events) = await resumed(wire, task, "1")
    assert header == "4"
    assert notice.comment == "events before 4 were removed"
    last = (await run_in_thread(Task.objects.get, public_id=task)).last_event
    assert {event.id for event in events} == {last}


async def test_it_gets_the_rest_if_that_is_all_there(wire: Wire) -> None:
    task = (await wire.send("chunks 3")).id
    before = await resumed(wire, task, "4")
    await run_in_thread(Row.objects.filter(task__public_id=task, number__lt=5).delete)
    assert await resumed(wire, task, "4") == before
    assert before[0] is None
    assert all("removed" not in (block.comment or "") for block in before[1])


async def test_it_is_refused_if_the_task_is_gone(wire: Wire) -> None:
    task = (await wire.send("echo hi")).id
    await run_in_thread(forget_log, task)
    await run_in_thread(lambda: list(purge(RetentionLimits.of(30, 0))))
    with pytest.raises(Refused):
        await resumed(wire, task, "1")
