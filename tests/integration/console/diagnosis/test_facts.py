"""What is known of a task that somebody finds stuck, read from tasks that the store has brought there."""

from __future__ import annotations

import datetime
import json
import time
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from a2a_console.diagnosis.facts import RunAt, RunBefore, TaskFacts, load_facts
from a2a_tasks.models import Run, RunStatus, Worker
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel, runs, steps, switches, workers
from a2a_tasks.store.accept import accept_many
from a2a_tasks.store.records import StepResult
from a2a_tasks.store.replies import reply
from tests.support.store.world import ALICE, Pen, accepted, claim, expire, held, new

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


def beat(name: str, **said: Any) -> None:
    at = datetime.datetime.now(datetime.UTC)
    kind = workers.WorkerKind.WORKER
    workers.beat(workers.Beat(name=name, kind=kind, host="box", pid=1, started_at=at, **said))


def of(task: int) -> TaskFacts:
    found = load_facts(task)
    assert found is not None
    return found


def run_of(task: int) -> RunAt:
    found = of(task).run
    assert found is not None
    return found


class TestATask:
    def test_that_is_not_there_has_none(self) -> None:
        assert load_facts(404) is None

    def test_tells_when_its_status_came_and_when_it_was_heard_of(self) -> None:
        run = held()
        Pen(run).state(TaskState.WORKING)
        at = of(run.task)
        assert at.state is TaskState.WORKING
        assert at.spoke_at is not None
        assert abs(at.now - at.spoke_at) < datetime.timedelta(minutes=1)

    def test_that_waits_for_its_client_has_no_run(self) -> None:
        run = held()
        Pen(run).end(TaskState.INPUT_REQUIRED)
        assert of(run.task).run is None

    def test_that_has_ended_has_none_either(self) -> None:
        run = held()
        Pen(run).end()
        assert of(run.task).run is None

    def test_that_was_cancelled_shows_the_run_that_is_being_stopped(self) -> None:
        run = held()
        cancel.cancel(ALICE, "task-1")
        found = run_of(run.task)
        assert (found.key, found.status, found.worker) == (run.key, RunStatus.CANCELED, "here:1")
        assert found.ended_at is not None

    def test_that_was_cancelled_before_it_began_shows_none(self) -> None:
        task = accepted().task
        cancel.cancel(ALICE, "task-1")
        assert of(task).run is None


class TestItsRun:
    def test_is_held_until_its_lease_ends(self) -> None:
        run = held()
        at = of(run.task)
        assert at.run is not None
        assert at.run.lease_until is not None
        assert at.run.lease_until > at.now
        expire(run.key)
        late = of(run.task)
        assert late.run is not None
        assert late.run.lease_until is not None
        assert late.run.lease_until < late.now

    def test_waits_again_once_it_was_rescued(self) -> None:
        run = held()
        expire(run.key)
        runs.reclaim_expired(max_attempts=3)
        at = of(run.task)
        assert at.line is not None
        assert (run_of(run.task).status, run_of(run.task).attempt) == (RunStatus.QUEUED, 1)

    def test_has_the_later_messages_of_its_task_behind_it(self) -> None:
        run = held()
        for text in ("and?", "well?"):
            reply(new("task-1", text=text))
        assert (run_of(run.task).key, run_of(run.task).behind) == (run.key, 2)

    def test_waits_for_the_earlier_ones_of_its_conversation(self) -> None:
        earlier = held("a", ordered=True)
        accepted("b", ordered=True)
        task = accepted("c", ordered=True).task
        assert of(earlier.task).before is None
        assert of(task).before == RunBefore(earlier.key, "a", 2)
        cancel.cancel(ALICE, "b")
        Pen(earlier).end()
        assert of(task).before is None


class TestANap:
    def nap(self, seconds: float, *, after: str = "") -> TaskFacts:
        """A task whose last step is to wake then."""
        run = held()
        steps.keep(StepResult(run, "nap", json.dumps(time.time() + seconds)))
        if after:
            steps.keep(StepResult(run, "more", after))
        return of(run.task)

    def test_lasts_until_the_moment_its_step_keeps(self) -> None:
        nap = self.nap(3600).nap
        assert nap is not None
        assert nap.name == "nap"
        assert 3500 < (nap.until - datetime.datetime.now(datetime.UTC)).total_seconds() <= 3600

    def test_is_over_then(self) -> None:
        assert self.nap(-1).nap is None

    @pytest.mark.parametrize(
        "result", ['"later"', "9999999999", "1e300", "1e999", "null", f'"{"x" * 100}"']
    )
    def test_is_over_when_another_step_was_taken(self, result: str) -> None:
        assert self.nap(3600, after=result).nap is None


class TestTheLine:
    def test_counts_who_goes_first_by_rounds(self) -> None:
        accept_many([new(f"a-{n}", quota_key="a") for n in range(5)])
        mine = accepted("b-0", quota_key="b").task
        last = accepted("a-last", quota_key="a").task
        line, end = of(mine).line, of(last).line
        assert line is not None
        assert (line.ahead, line.ahead_with_key) == (
            2,
            0,
        )  # one of the round before, one of its own
        assert end is not None
        assert (end.ahead, end.ahead_with_key) == (6, 5)

    def test_is_that_of_its_queue(self) -> None:
        accept_many([new(f"a-{n}", queue="slow") for n in range(5)])
        line = of(accepted("b").task).line
        assert line is not None
        assert line.ahead == 0

    def test_counts_what_is_under_way_and_who_carries_it(self) -> None:
        accept_many([new(f"a-{n}", quota_key="a") for n in range(4)])
        claim(2, worker="one:1")
        claim(1, worker="two:2")
        line = of(accepted("b", quota_key="b").task).line
        assert line is not None
        assert (line.running, line.running_with_key, line.processes) == (3, 0, 2)

    def test_does_not_count_processes_that_are_lost(self) -> None:
        expire(held("lost").key)
        line = of(accepted("b").task).line
        assert line is not None
        assert (line.running, line.processes) == (0, 0)

    def test_knows_who_says_that_it_takes_from_the_queue(self) -> None:
        beat("one:1", queues=("agents",), agents={"demo": "1"}, slots=7)
        beat("two:2", queues=("agents", "slow"), slots=2)
        beat("far:3", queues=("slow",), slots=100)
        line = of(accepted().task).line
        assert line is not None
        assert (line.processes, line.hosting, line.slots, line.last) == (2, 1, 9, None)

    def test_counts_what_these_carry_of_other_queues(self) -> None:
        beat("two:2", queues=("agents", "slow"), slots=2)
        accept_many([new(f"a-{n}", queue="slow") for n in range(2)])
        claim(2, worker="two:2", queues=["slow"])
        line = of(accepted("b").task).line
        assert line is not None
        assert (line.running, line.slots) == (2, 2)

    @pytest.mark.parametrize("draining", [True, False])
    def test_names_who_took_from_it_last_if_nobody_does(self, draining: bool) -> None:
        for name in ("one:1", "two:2", "far:3"):
            beat(name, queues=("slow" if name == "far:3" else "agents",), draining=draining)
        if not draining:
            hour = datetime.timedelta(hours=1)
            Worker.objects.update(seen_at=Now() - hour)
            Worker.objects.filter(name="one:1").update(seen_at=Now() - 2 * hour)
        line = of(accepted().task).line
        assert line is not None
        assert line.processes == 0
        assert line.last is not None
        assert line.last.draining == draining
        if not draining:
            assert line.last.name == "two:2"

    def test_believes_its_own_word_of_a_process_more_than_its_leases(self) -> None:
        accept_many([new(f"a-{n}") for n in range(2)])
        claim(1, worker="one:1")
        beat("one:1", queues=("agents",), draining=True)
        line = of(accepted("b").task).line
        assert line is not None
        assert line.processes == 0

    def test_tells_what_operators_have_set_of_the_agent(self) -> None:
        switches.limit("demo", 1)
        switches.set_state("demo", switches.SwitchState.DRAINING)
        accept_many([new(f"a-{n}") for n in range(2)])
        claim(1)
        at = of(accepted("b").task)
        assert (at.switch.state, at.switch.max_running) == ("draining", 1)
        assert at.line is not None
        assert at.line.running_of_agent == 1

    def test_is_not_counted_beyond_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("a2a_console.diagnosis.facts.COUNTED", 20)
        accept_many([new(f"a-{n}", quota_key="a") for n in range(3)])
        first = Run.objects.order_by("pk")[0]
        copies = [
            Run(task=first.task, input_number=1, queue="agents", quota_key="a", status="queued")
            for _ in range(25)
        ]
        Run.objects.bulk_create(copies)
        line = of(accepted("b").task).line
        assert line is not None
        assert line.ahead == 20


def test_is_read_in_a_handful_of_queries() -> None:
    accept_many([new(f"a-{n}", quota_key="a") for n in range(20)])
    task = accepted("b").task
    with CaptureQueriesContext(connection) as queries:
        load_facts(task)
    assert len(queries) <= 13
