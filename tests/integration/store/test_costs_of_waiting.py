"""Runs and questions that wait cost the looks of each second nothing, however many there are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from a2a_tasks.models import IS_PARKED, Delegation, Run, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import call_trees, parking, workers
from a2a_tasks.store.backend.call_news import BATCH
from a2a_tasks.store.parking import Parking
from a2a_tasks.store.records import RunEnd
from tests.integration.store.test_delegations import WANTED, call
from tests.support.store.copies import copy_worlds
from tests.support.store.reading import count_rows
from tests.support.store.world import AT, Pen, claim, held

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]
WORLDS = 4 * BATCH


def count_read(look: Callable[[], object], *, entries: bool = False) -> int:
    """The rows that a look reads, with `entries` also those of indexes."""
    before = count_rows(entries=entries)
    look()
    return count_rows(entries=entries) - before


def test_of_runs_that_are_parked_for_the_figures_of_queues() -> None:
    parking.park(Parking(held(), "sleep", 10_000_000_000.0))
    copy_worlds(WORLDS)
    read = count_read(lambda: workers.count_serving([], []), entries=True)
    assert read < WORLDS // 2


def test_of_callers_whose_clients_are_asked() -> None:
    run = held()
    call(run, "child")
    (child,) = claim()
    Pen(child).state(TaskState.INPUT_REQUIRED, "what?", end=RunEnd())
    parking.park(Parking(run, "call billing: answer", 10_000_000_000.0, calls=[WANTED.name]))
    call_trees.settle(child.task)
    for number in range(2, 5):
        Pen(held(f"task-{number}")).end()
    Task.objects.update(status_at=AT)  # long ago
    copy_worlds(WORLDS)
    assert Delegation.objects.filter(open=True, relayed__isnull=False).count() == WORLDS + 1
    assert count_read(parking.wake, entries=True) < WORLDS
    assert count_read(call_trees.look) < 5 * BATCH


def test_of_questions_each_is_looked_at_after_a_while() -> None:
    run = held()
    call(run, "child")
    Task.objects.filter(public_id="child").update(state=TaskState.INPUT_REQUIRED, status_at=AT)
    Delegation.objects.update(relayed=1)
    copy_worlds(WORLDS)
    newest = Delegation.objects.latest("pk")
    Task.objects.filter(pk=newest.child_id).update(state=TaskState.WORKING)
    looks = 0
    while Delegation.objects.get(pk=newest.pk).relayed is not None:
        call_trees.look()
        looks += 1
        assert looks <= 2 * (WORLDS // BATCH + 1)
    assert Delegation.objects.filter(relayed=1).count() == WORLDS


def test_of_calls_that_go_on_for_the_look_at_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_trees, "PIECES", 1)
    monkeypatch.setattr(call_trees._Looks, "at_run", 0)
    monkeypatch.setattr(call_trees._Looks, "at_call", 0)
    run = held()
    call(run, "child")
    parking.park(Parking(run, "call billing: answer", 10_000_000_000.0, calls=[WANTED.name]))
    for number in range(2, 5):
        Pen(held(f"task-{number}")).end()
    copy_worlds(3 * WORLDS)  # of fewer, PostgreSQL rather reads all
    newest = Run.objects.filter(awaits_calls=True).latest("pk")
    call_trees.look_at_all()  # the statements are known to the database
    assert count_read(call_trees.look_at_all, entries=True) < 100 * BATCH  # all would be 476,000
    ended = Task.objects.filter(delegation__parent=newest.task_id)
    ended.update(state=TaskState.COMPLETED, status_at=AT)
    for _ in range(3 * WORLDS // BATCH + 1):
        call_trees.look_at_all()
    assert not Run.objects.get(pk=newest.pk).is_parked
    assert Run.objects.filter(IS_PARKED).count() == 3 * WORLDS
