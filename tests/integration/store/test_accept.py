"""Accepting a message: everything at once, under an id that is the owner's own."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from a2a_tasks import pubsub
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Context, Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept
from a2a_tasks.store.tasks import find
from tests.support.store.world import (
    ALICE,
    AT,
    BOB,
    CHARLIE,
    accepted,
    everything,
    found,
    held,
    new,
    said,
)

pytestmark = pytest.mark.django_db


def history() -> list[str]:
    """The messages a reader of task-1 gets."""
    texts = found().view.history
    return [bytes(text).decode() for text in texts] if texts else []


class TestAccept:
    def test_it_writes_context_task_message_event_1_and_run(self) -> None:
        result = accept(new(text="hi", metadata='{"a":1}'))
        task = Task.objects.get(pk=result.task)
        assert (task.public_id, task.tenant, task.owner, task.agent) == (
            "task-1",
            "",
            "user:alice",
            "demo",
        )
        assert (task.state, task.status_at, task.last_event) == (TaskState.SUBMITTED, AT, 1)
        assert task.context.public_id == "context-1"
        assert Message.objects.get(task=task).body == said(
            "hi", task_id="task-1", context_id="context-1"
        )
        event = Event.objects.get(task=task)
        assert (event.number, event.kind, event.run) == (1, EventKind.INPUT, None)
        run = Run.objects.get(pk=result.run)
        assert (run.task_id, run.input_number, run.queue, run.request) == (
            task.pk,
            1,
            "agents",
            "{}",
        )

    def test_it_returns_the_task_as_a_read_gives_it(self) -> None:
        result = accept(new(metadata='{"a":1}'))
        assert result.view == found().view
        assert (result.task, result.number) == (found().task, found().last_event)

    def test_the_message_is_in_the_log_though_it_is_stored_once(self) -> None:
        result = accepted(text="only once")
        assert [event.body for event in everything(result.task)] == [
            said("only once", task_id="task-1", context_id="context-1")
        ]

    def test_a_run_without_a_hold_is_queued_and_rings(self) -> None:
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            result = accepted(queue="slow")
        run = Run.objects.get(pk=result.run)
        assert (run.status, run.token, run.attempt, run.lease_until) == (
            RunStatus.QUEUED,
            "",
            0,
            None,
        )
        assert result.claimed_run is None
        assert hints == [pubsub.RunQueued("slow")]

    def test_a_run_with_a_hold_is_running_and_does_not_ring(self) -> None:
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            claimed = held(token="mine")
        run = Run.objects.get(pk=claimed.key)
        assert (run.status, run.token, run.attempt, run.worker) == (
            RunStatus.RUNNING,
            "mine",
            1,
            "here:1",
        )
        assert run.lease_until is not None
        assert run.lease_seconds == 30.0
        assert Task.objects.get().run_token == "mine"
        assert (claimed.token, claimed.attempt, claimed.last_event) == ("mine", 1, 1)
        assert hints == []

    def test_tasks_of_one_context_share_it_and_it_knows_the_latest(self) -> None:
        accepted("task-1")
        before = Context.objects.get().updated_at
        accepted("task-2")
        assert Context.objects.get().updated_at >= before
        assert Task.objects.filter(context=Context.objects.get()).count() == 2

    def test_nul_in_text_survives(self) -> None:
        accepted(text="a\x00b")
        assert history()[0] == said("a\x00b", task_id="task-1", context_id="context-1")


class TestPublicIds:
    def test_an_owner_has_each_id_once_and_nothing_of_the_second_is_written(self) -> None:
        accepted(text="first")
        with pytest.raises(IntegrityError, match="task"), transaction.atomic():
            accept(new(text="second", context_id="context-2"))
        assert Task.objects.count() == 1
        assert not Context.objects.filter(public_id="context-2").exists()

    @pytest.mark.parametrize("scope", [BOB, CHARLIE], ids=["another owner", "another tenant"])
    def test_somebody_elses_id_is_free(self, scope: OwnerScope) -> None:
        accepted(text="first")
        accept(new(text="theirs", scope=scope))
        assert history() == [said("first", task_id="task-1", context_id="context-1")]
        assert Context.objects.count() == 2

    def test_a_task_of_somebody_else_is_as_missing_as_no_task(self) -> None:
        accepted()
        assert find(BOB, "task-1") is None
        assert find(CHARLIE, "task-1") is None
        assert find(BOB, "task-2") is None

    def test_an_id_with_nul_names_no_task(self) -> None:
        assert find(ALICE, "task\x001") is None


def test_binding_and_opening_are_kept_for_lists() -> None:
    task = accept(new(binding="GRPC", opening="hello there")).task
    assert Task.objects.get(pk=task).origin_binding == "GRPC"
    assert Message.objects.get(task=task, number=1).opening == "hello there"
