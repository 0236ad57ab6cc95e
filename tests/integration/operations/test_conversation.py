"""A blocking send follows its message's turn: it keeps a bounded part of what it hears, and answers with all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from a2a_tasks import process_lifetime
from a2a_tasks.models import Artifact, Event, Task
from a2a_tasks.operations import conversation as conversation_module
from a2a_tasks.operations.conversation import AcceptedSend, at_most
from a2a_tasks.protocol.errors import Overloaded, TaskNotFound
from a2a_tasks.protocol.lifecycle import INTERRUPTED, fold
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import db, event_log, folding
from a2a_tasks.store.accept import accept
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.idempotency import find_at
from a2a_tasks.store.purge import RetentionLimits, purge
from a2a_tasks.streaming.stream import EventReader
from tests.integration.execution.outage import locked
from tests.integration.store.test_purge import aged
from tests.support.execution.host import hosting
from tests.support.execution.waiting import until
from tests.support.store.world import Pen, everything, found, new

pytestmark = pytest.mark.django_db
PIECE = "x" * (event_log.SLICE_BYTES // 2)


@pytest.fixture(autouse=True)
async def alone() -> AsyncIterator[None]:
    """Each test has a hub of its own."""
    async with hosting():
        yield


async def begun(text: str = "hello") -> tuple[AcceptedSend, Pen]:
    """A message that was accepted, as a blocking send follows it, and its run."""
    accepted = await run_in_thread(accept, new(held=True, text=text))
    conversation = AcceptedSend(accepted, "", is_task=True, pauses=INTERRUPTED)
    conversation.follower = await EventReader.open(
        accepted.task, after=accepted.number, until=conversation.ends
    )
    assert accepted.claimed_run is not None
    return conversation, Pen(accepted.claimed_run)


def speak(pen: Pen) -> None:
    """Say eight pieces of one artifact, 4 MB in all."""
    pen.begin("a", PIECE)
    for _ in range(7):
        pen.add("a", PIECE)


class TestALongAnswer:
    async def test_is_not_kept_while_it_is_awaited(self) -> None:
        conversation, pen = await begun()
        settling = asyncio.ensure_future(conversation.wait_settled())
        await run_in_thread(pen.begin, "a", PIECE)
        for _ in range(16):
            last = await run_in_thread(pen.add, "a", PIECE)
            await until(partial(_is_at, conversation, last))
            assert sum(event.size for event in conversation.events) < 3 * event_log.SLICE_BYTES
        await run_in_thread(pen.end)
        assert await settling == (await run_in_thread(found)).view
        await conversation.close()

    async def test_is_that_of_the_turn_though_the_task_goes_on(self) -> None:
        conversation, pen = await begun()
        await run_in_thread(speak, pen)
        last = await run_in_thread(pen.state, TaskState.INPUT_REQUIRED, "What?")
        await run_in_thread(pen.state, TaskState.WORKING)
        await run_in_thread(pen.add, "a", PIECE)
        task = await conversation.wait_settled()
        await conversation.close()
        then = await run_in_thread(everything, pen.run.task)
        assert task == fold(conversation.accepted.view, then[1:last])
        assert task.status.state is TaskState.INPUT_REQUIRED

    async def test_is_the_task_as_it_is_where_retention_was_quicker(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folding, "FEW_PIECES", 0)  # or its log would stay
        conversation, pen = await begun()
        await run_in_thread(speak, pen)
        await run_in_thread(pen.close, "a", "the end")
        await run_in_thread(pen.end)
        while not conversation.follower.done:
            await conversation._hear()
        growing = Artifact.objects.filter(body="")
        await until(lambda: run_in_thread(lambda: not growing.exists()))
        await run_in_thread(aged, pen.run.task, 2)
        await run_in_thread(lambda: list(purge(RetentionLimits.of(0, 1))))
        assert len(await run_in_thread(everything, pen.run.task)) == 0
        assert await conversation.wait_settled() == (await run_in_thread(found)).view
        await conversation.close()


class TestTheTaskOfALargeMessage:
    async def test_is_read_again_for_the_answer(self) -> None:
        conversation, pen = await begun(PIECE)
        settling = asyncio.ensure_future(conversation.wait_settled())
        await until(lambda: conversation._view is None)
        assert not (conversation.accepted.view.history or conversation.accepted.claimed_run)
        await run_in_thread(pen.end)
        task = await settling
        assert task == (await run_in_thread(found)).view
        assert task.history and len(task.history[0]) > len(PIECE)
        await conversation.close()

    async def test_is_that_of_the_turn_though_the_task_goes_on(self) -> None:
        conversation, pen = await begun(PIECE)
        view = conversation.accepted.view
        await run_in_thread(speak, pen)
        last = await run_in_thread(pen.state, TaskState.INPUT_REQUIRED, "What?")
        await run_in_thread(pen.state, TaskState.WORKING)
        task = await conversation.wait_settled()
        await conversation.close()
        then = await run_in_thread(everything, pen.run.task)
        assert task == fold(view, then[1:last])
        assert task.status.state is TaskState.INPUT_REQUIRED

    async def test_is_the_task_as_it_is_where_retention_was_quicker(self) -> None:
        conversation, pen = await begun(PIECE)
        settling = asyncio.ensure_future(conversation.wait_settled())
        await until(lambda: conversation._view is None)
        last = await run_in_thread(pen.state, TaskState.INPUT_REQUIRED, "What?")
        await until(partial(_is_at, conversation, last))
        await run_in_thread(pen.end)
        await run_in_thread(Event.objects.filter(task=pen.run.task, number=1).delete)
        assert await run_in_thread(find_at, pen.run.task, last) == (await run_in_thread(found)).view
        await settling
        await conversation.close()

    async def test_is_missing_once_it_was_removed(self) -> None:
        conversation, pen = await begun(PIECE)
        conversation._forget_large()
        await run_in_thread(Task.objects.filter(pk=pen.run.task).delete)
        with pytest.raises(TaskNotFound):
            await conversation.task()
        await conversation.close()


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
class TestWhileTheDatabaseIsAway:
    @pytest.fixture
    def faults(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """What this process logs of the outage."""
        logged: list[object] = []
        monkeypatch.setattr(db._outage, "warning", logged.append)
        return logged

    async def test_the_task_of_an_accepted_message_is_told_once_it_is_back(
        self, faults: list[object]
    ) -> None:
        conversation = await self.begun()
        async with locked("a2a_tasks_task", 0.5):
            answer = asyncio.ensure_future(conversation.first(0.0))
            await until(lambda: faults)
        assert await answer == conversation.accepted.view
        await conversation.close()

    async def test_a_client_that_waits_is_told_so_before_the_process_ends(
        self, faults: list[object], life: process_lifetime.Lifetime
    ) -> None:
        conversation = await self.begun()
        async with locked("a2a_tasks_task", 0.5):
            answer = asyncio.ensure_future(conversation.first(0.0))
            await until(lambda: faults)
            life.begin_drain(0.9)
            with pytest.raises(Overloaded):
                await answer
            assert life.drain_seconds() > 0
        await conversation.close()

    async def test_so_is_one_that_goes_on_after_an_event_that_it_knows(
        self, life: process_lifetime.Lifetime
    ) -> None:
        conversation = await self.begun()
        async with locked("a2a_tasks_event", 0.5):
            answer = asyncio.ensure_future(conversation.reach(conversation.accepted.number + 1))
            life.begin_drain(0.9)
            with pytest.raises(Overloaded):
                await answer
            assert life.drain_seconds() > 0
        await conversation.close()

    async def begun(self) -> AcceptedSend:
        """A message that was accepted, whose agent may answer with a direct Message."""
        accepted = await run_in_thread(accept, new(held=True))
        conversation = AcceptedSend(accepted, "", is_task=False, pauses=INTERRUPTED)
        conversation.follower = await EventReader.open(
            accepted.task, after=accepted.number, until=conversation.ends
        )
        return conversation


@pytest.mark.django_db(transaction=True)
async def test_a_task_whose_process_ends_is_read_once_more(
    life: process_lifetime.Lifetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_module, "READ_SECONDS", 20.0)
    conversation, pen = await begun()
    await run_in_thread(speak, pen)
    answer = asyncio.ensure_future(conversation.wait_settled())
    await until(lambda: conversation.follower.number >= 8)
    life.begin_drain(conversation_module.READ_SECONDS)
    assert (await answer).artifacts
    await conversation.close()


@pytest.mark.django_db(transaction=True)
async def test_waits_end_early_enough_in_a_drain_for_all_that_their_answers_have(
    life: process_lifetime.Lifetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, pen = await begun()
    await run_in_thread(speak, pen)
    answer = asyncio.ensure_future(conversation.wait_settled())
    await until(lambda: conversation.follower.number >= 8)
    monkeypatch.setattr(conversation_module, "READ_SPEED", conversation_module._heard[0] / 3600)
    life.begin_drain(3600.0)
    assert (await answer).artifacts
    assert life.drain_seconds() > 3590
    assert conversation_module._heard == [0]
    await conversation.close()


async def test_a_drain_that_begins_as_a_wait_ends_is_no_fault(
    life: process_lifetime.Lifetime,
) -> None:
    faults = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with at_most(0.0):
        life.begin_drain(9.0)
        await asyncio.Event().wait()
    assert not faults
    assert not life._drain_callbacks


def _is_at(conversation: AcceptedSend, number: int) -> bool:
    return conversation.follower.number == number
