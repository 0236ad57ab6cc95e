"""Keys in the store: written with the message or not at all, one of many at once, recalled as it was, forgotten."""

from __future__ import annotations

import datetime
from functools import partial
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from a2a_tasks.models import Context, Event, Idempotency, Message, Run, Task
from a2a_tasks.protocol.errors import IdempotencyConflict
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept, accept_many
from a2a_tasks.store.idempotency import (
    IdempotencyKey,
    KeyTaken,
    PreviousSend,
    forget_idempotency,
    recall,
    remember,
)
from a2a_tasks.store.records import Accepted, NewTask, TaskExists
from a2a_tasks.store.replies import reply
from tests.support.store.world import ALICE, BOB, CHARLIE, Pen, at_once, found, held, new

pytestmark = pytest.mark.django_db

KEY = IdempotencyKey(ALICE, "key/1", "f")


def keyed(task: str, key: IdempotencyKey = KEY, **changes: Any) -> NewTask:
    """A message that brings a key."""
    return new(task, scope=key.scope, companions=(remember(key),), lock=key.name, **changes)


def recalled(key: IdempotencyKey = KEY) -> PreviousSend:
    """What is known of a key, of which something is known."""
    result = recall(key, key.scope)
    assert result is not None
    return result


def age(hours: float) -> None:
    """Let all keys be so old."""
    Idempotency.objects.update(created_at=Now() - datetime.timedelta(hours=hours))


class TestAKey:
    def test_is_unknown_at_first(self) -> None:
        assert recall(KEY, ALICE) is None

    def test_recalls_the_message_as_it_was_accepted(self) -> None:
        accepted = accept(keyed("task-1"))
        known = recalled()
        assert (known.accepted.task, known.accepted.number) == (accepted.task, 1)
        assert known.accepted.run == accepted.run
        assert known.accepted.claimed_run is None
        assert (known.is_task, known.last_event, known.over) == (True, 1, False)
        view = known.accepted.view
        assert (view.id, view.context_id) == ("task-1", "context-1")
        assert view.history == accepted.view.history
        assert view.status.state is TaskState.SUBMITTED

    def test_recalls_it_so_when_the_task_has_moved_on(self) -> None:
        pen = Pen(held("task-1", companions=(remember(KEY),)))
        before = recalled().accepted
        pen.begin("a", "one ")
        pen.close("a", "two")
        pen.end()
        known = recalled()
        assert known.accepted == before
        assert known.last_event == 4

    def test_recalls_a_message_to_a_task_as_it_was_then(self) -> None:
        pen = Pen(held("task-1"))
        pen.begin("a", "one ")
        pen.state(TaskState.INPUT_REQUIRED)
        accepted = reply(keyed("task-1", text="more"))
        known = recalled().accepted
        assert known == accepted
        pen.add("a", "two")
        assert recalled().accepted == accepted

    def test_of_somebody_else_is_unknown(self) -> None:
        accept(keyed("task-1"))
        others = [BOB, CHARLIE, type(ALICE)(ALICE.tenant, ALICE.owner, "another-agent")]
        for scope in others:
            assert recall(IdempotencyKey(scope, KEY.name, KEY.fingerprint), scope) is None
            accept(keyed("task-1", IdempotencyKey(scope, KEY.name, "different")))
        assert recalled().accepted.view.id == "task-1"

    def test_of_another_request_is_a_conflict(self) -> None:
        accept(keyed("task-1"))
        with pytest.raises(IdempotencyConflict):
            recall(IdempotencyKey(ALICE, KEY.name, "g"), ALICE)

    def test_is_not_kept_of_a_message_that_was_refused(self) -> None:
        accept(new("task-1"))
        with pytest.raises(TaskExists):
            accept(keyed("task-1"))
        assert recall(KEY, ALICE) is None

    @pytest.mark.parametrize("to_a_task", [False, True], ids=["accept", "reply"])
    def test_that_is_taken_undoes_the_message(self, to_a_task: bool) -> None:
        accept(keyed("task-1"))
        accept(new("task-2", context_id="context-2"))
        models = (Context, Task, Message, Event, Run, Idempotency)
        before = [model.objects.count() for model in models]
        last = found("task-2").last_event
        with pytest.raises(KeyTaken):
            if to_a_task:
                reply(keyed("task-2", context_id=""))
            else:
                accept(keyed("task-3", context_id="context-3"))
        assert [model.objects.count() for model in models] == before
        assert found("task-2").last_event == last

    def test_that_is_taken_does_not_hinder_others_of_its_batch(self) -> None:
        first, second, third = accept_many([keyed("task-1"), keyed("task-2"), new("task-3")])
        assert isinstance(first, Accepted)
        assert isinstance(second, KeyTaken)
        assert isinstance(third, Accepted)

    def test_survives_that_retention_removes_events(self) -> None:
        pen = Pen(held("task-1", companions=(remember(KEY),)))
        pen.end()
        Event.objects.filter(task=pen.run.task, number=1).delete()
        known = recalled()
        assert known.over
        assert known.accepted.view == found("task-1").view

    def test_goes_with_its_task(self) -> None:
        accept(keyed("task-1"))
        Task.objects.all().delete()
        assert recall(KEY, ALICE) is None


class TestForgetting:
    def test_comes_with_the_hours(self, settings: Any) -> None:
        settings.A2A_IDEMPOTENCY_HOURS = 2
        accept(keyed("task-1"))
        age(1.9)
        assert recalled().accepted.view.id == "task-1"
        age(2.1)
        assert recall(KEY, ALICE) is None
        accept(keyed("task-2"))
        assert recalled().accepted.view.id == "task-2"

    def test_makes_no_conflict_of_what_is_forgotten(self) -> None:
        accept(keyed("task-1"))
        age(25)
        assert recall(IdempotencyKey(ALICE, KEY.name, "g"), ALICE) is None

    def test_takes_the_oldest_first_and_no_more_than_asked(self) -> None:
        for n in range(5):
            accept(keyed(f"task-{n}", IdempotencyKey(ALICE, f"key/{n}", "f")))
            Idempotency.objects.filter(name=f"key/{n}").update(
                created_at=Now() - datetime.timedelta(hours=100 - n)
            )
        before = timezone.now() - datetime.timedelta(hours=97.5)
        assert forget_idempotency(before, 2) == 2
        assert sorted(Idempotency.objects.values_list("name", flat=True)) == [
            "key/2",
            "key/3",
            "key/4",
        ]
        assert forget_idempotency(before, 10) == 1
        assert forget_idempotency(before, 10) == 0
        assert Task.objects.count() == 5


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
class TestRaces:
    """Between processes: each thread has a connection of its own."""

    def test_one_of_many_begins_a_task(self) -> None:
        for n in range(5):
            key = IdempotencyKey(ALICE, f"key/{n}", "f")
            works = [partial(accept, keyed(f"task-{n}-{i}", key)) for i in range(16)]
            results = at_once(*works)
            (won,) = [result for result in results if isinstance(result, Accepted)]
            assert [type(r) for r in results if r is not won] == [KeyTaken] * 15
            assert recalled(key).accepted.task == won.task
        assert Task.objects.count() == 5

    def test_one_of_many_continues_a_task(self) -> None:
        accept(new("task-1"))
        works = [partial(reply, keyed("task-1", context_id="")) for _ in range(16)]
        results = at_once(*works)
        assert sum(isinstance(result, Accepted) for result in results) == 1
        assert Message.objects.count() == 2
        assert Run.objects.count() == 2

    def test_batches_in_any_order_do_not_wait_for_each_other(self) -> None:
        keys = [IdempotencyKey(ALICE, f"key/{n}", "f") for n in range(8)]
        for turn in range(5):
            ways = [keys, keys[::-1]]
            batches = [
                [
                    keyed(f"{turn}-{way}-{key.name}", key, context_id=f"{turn}-{way}")
                    for key in order
                ]
                for way, order in enumerate(ways)
            ]
            results = at_once(*[partial(accept_many, batch) for batch in batches])
            flat = [result for batch in results if isinstance(batch, list) for result in batch]
            assert len(flat) == 16, results  # a deadlock would be an OperationalError
            assert {type(result) for result in flat} == {Accepted, KeyTaken}
            assert sum(isinstance(result, Accepted) for result in flat) == 8
            Idempotency.objects.all().delete()


@pytest.mark.django_db
def test_a_message_without_a_key_leaves_no_row() -> None:
    accept(new("task-1"))
    assert not Idempotency.objects.exists()
