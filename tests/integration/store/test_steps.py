"""Steps in the store: kept once, read by every later attempt, and written by nobody who has lost the task."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from django.db import IntegrityError, transaction

from a2a_tasks.models import Run, Step, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel, runs, steps
from a2a_tasks.store.records import ClaimedRun, LeaseLost, RunEnd, StepResult
from a2a_tasks.store.replies import reply
from tests.support.store.world import ALICE, Pen, at_once, claim, expire, held, new


def kept(run: ClaimedRun) -> dict[str, str]:
    """The steps of a run's turn."""
    return steps.read_results(run.task, run.input_number)


def taken_over(run: ClaimedRun) -> ClaimedRun:
    """The next attempt, when the process of this one has died."""
    expire(run.key)
    runs.reclaim_expired(max_attempts=9)
    (taken,) = claim()
    return taken


@pytest.mark.django_db
class TestKeep:
    def test_a_result_is_there_for_the_next_attempt_with_the_run_that_made_it(self) -> None:
        run = held()
        steps.keep(StepResult(run, "pay", '{"receipt":"\\u0000"}'))
        again = taken_over(run)
        assert kept(again) == {"pay": '{"receipt":"\\u0000"}'}
        assert Step.objects.get().run == run.key

    def test_each_message_has_steps_of_its_own(self) -> None:
        run = held()
        steps.keep(StepResult(run, "pay", "1"))
        reply(new(text="and?"))
        Pen(run).state(TaskState.INPUT_REQUIRED, end=RunEnd())
        (second,) = claim()
        assert kept(second) == {}
        steps.keep(StepResult(second, "pay", "2"))
        assert (kept(run), kept(second)) == ({"pay": "1"}, {"pay": "2"})

    def test_a_result_is_kept_once(self) -> None:
        run = held()
        steps.keep(StepResult(run, "pay", "1"))
        with pytest.raises(IntegrityError), transaction.atomic():
            steps.keep(StepResult(run, "pay", "2"))
        assert kept(run) == {"pay": "1"}

    def test_a_run_that_was_rescued_writes_nothing(self) -> None:
        zombie = held()
        again = taken_over(zombie)
        with pytest.raises(LeaseLost):
            steps.keep(StepResult(zombie, "pay", "1"))
        steps.keep(StepResult(again, "pay", "2"))
        assert kept(again) == {"pay": "2"}

    def test_a_run_whose_task_was_cancelled_writes_nothing(self) -> None:
        run = held()
        cancel.cancel(ALICE, "task-1")
        with pytest.raises(LeaseLost):
            steps.keep(StepResult(run, "pay", "1"))
        assert not Step.objects.exists()

    def test_a_run_that_has_ended_writes_nothing(self) -> None:
        run = held()
        Pen(run).end()
        with pytest.raises(LeaseLost):
            steps.keep(StepResult(run, "pay", "1"))

    def test_a_run_handed_back_writes_nothing_and_its_steps_stay(self) -> None:
        run = held()
        steps.keep(StepResult(run, "one", "1"))
        runs.hand_back([run.token])
        with pytest.raises(LeaseLost):
            steps.keep(StepResult(run, "two", "2"))
        (again,) = claim()
        assert (again.attempt, kept(again)) == (1, {"one": "1"})


@pytest.mark.django_db
class TestMany:
    def test_each_is_kept_or_refused_by_itself(self) -> None:
        mine, lost, twice = held("task-1"), held("task-2"), held("task-3")
        again = taken_over(lost)
        steps.keep(StepResult(twice, "pay", "1"))
        outcome = steps.keep_many([StepResult(run, "pay", "2") for run in (lost, mine, again)])
        assert outcome == [False, True, True]
        assert steps.read_many_results([(run.task, 1) for run in (twice, mine, lost)]) == [
            {"pay": "1"},
            {"pay": "2"},
            {"pay": "2"},
        ]

    def test_the_steps_of_another_turn_are_not_this_ones(self) -> None:
        run = held()
        steps.keep(StepResult(run, "pay", "1"))
        assert steps.read_many_results([(run.task, 1), (run.task, 2)]) == [{"pay": "1"}, {}]


@pytest.mark.django_db
def test_the_steps_of_earlier_turns_are_not_even_read() -> None:
    """Else each turn of a conversation would cost as much as all turns before it."""

    def peak(turns: int) -> int:
        run = held(f"task-{turns}")
        of_turns = [
            Step(task_id=run.task, input_number=n, name="search", result="x" * 100_000, run=run.key)
            for n in range(1, turns + 1)
        ]
        Step.objects.bulk_create(of_turns)
        steps.read_results(run.task, turns)  # what is loaded once is no part of it
        tracemalloc.start()
        try:
            assert len(steps.read_results(run.task, turns)) == 1
            assert steps.read_results(run.task, turns + 1) == {}
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(50) < 2 * peak(1)


@pytest.mark.django_db
def test_one_that_was_kept_with_another_result_is_not_written_and_the_others_are() -> None:
    first, second = held("task-1"), held("task-2")
    steps.keep(StepResult(first, "pay", "1"))
    assert steps.keep_many([StepResult(first, "pay", "2"), StepResult(second, "pay", "2")]) == [
        False,
        True,
    ]
    assert (kept(first), kept(second)) == ({"pay": "1"}, {"pay": "2"})


@pytest.mark.django_db
def test_the_same_result_of_the_same_run_is_kept_again() -> None:
    run, other = held("task-1"), held("task-2")
    for _ in range(2):
        steps.keep(StepResult(run, "pay", "1"))
        assert steps.keep_many([StepResult(run, "pay", "1"), StepResult(other, "pay", "1")]) == [
            True,
            True,
        ]
    assert (kept(run), kept(other)) == ({"pay": "1"}, {"pay": "1"})


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
def test_who_keeps_many_leaves_a_row_that_somebody_holds_and_waits_for_nobody() -> None:
    first, second = held("task-1"), held("task-2")
    both = [StepResult(first, "pay", "1"), StepResult(second, "pay", "1")]
    with transaction.atomic():
        Task.objects.select_for_update().get(pk=second.task)
        (outcome,) = at_once(lambda: steps.keep_many(both))
    assert outcome == [True, False]
    steps.keep(StepResult(second, "pay", "1"))
    assert (kept(first), kept(second)) == ({"pay": "1"}, {"pay": "1"})


@pytest.mark.django_db
def test_the_clock_is_the_one_leases_are_measured_by() -> None:
    run = held()
    lease = Run.objects.get(pk=run.key).lease_until
    assert lease is not None
    assert abs(lease.timestamp() - 30 - steps.clock()) < 5
    assert abs(time.time() - steps.clock()) < 3600


@pytest.mark.django_db(transaction=True)
def test_a_rescue_and_a_step_at_the_same_moment_do_not_both_have_the_task() -> None:
    for number in range(10):
        run = held(f"task-{number}")
        expire(run.key)
        written, rescued = at_once(
            lambda run=run: steps.keep(StepResult(run, "pay", "1")),  # type: ignore[misc]
            lambda: runs.reclaim_expired(max_attempts=3),
        )
        assert written is None or isinstance(written, LeaseLost), written
        # A rescue leaves out what is locked at that moment.
        assert rescued or runs.reclaim_expired(max_attempts=3) == 1
        assert kept(run) == ({"pay": "1"} if written is None else {})
