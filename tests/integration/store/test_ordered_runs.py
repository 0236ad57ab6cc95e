"""Runs of one conversation wait for each other, if their agent wants it; other runs pay nothing for that."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from a2a_tasks import pubsub
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import runs
from a2a_tasks.store.accept import accept, accept_many
from a2a_tasks.store.backend import postgres
from a2a_tasks.store.backend.statements import fetch
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.replies import reply
from tests.support.execution.waiting import eventually, somebody_waits_for_a_row
from tests.support.store.world import (
    ALICE,
    BOB,
    CHARLIE,
    Pen,
    accepted,
    at_once,
    claim,
    expire,
    new,
)

pytestmark = pytest.mark.django_db


def names(taken: list[ClaimedRun]) -> list[str]:
    """The tasks that were claimed."""
    return [run.task_id for run in taken]


def hints(work: Callable[[], Any]) -> list[pubsub.Hint]:
    """The hints about due runs while this is done."""
    heard: list[pubsub.Hint] = []
    with pubsub.listen(heard.append):
        work()
    return [hint for hint in heard if isinstance(hint, pubsub.RunQueued)]


def only() -> ClaimedRun:
    """The one run that can be claimed now."""
    (run,) = claim()
    return run


class TestOrder:
    def test_a_conversation_is_answered_one_after_the_other_and_in_order(self) -> None:
        for number in range(4):
            accepted(f"task-{number}", ordered=True)
        for number in range(4):
            run = only()
            assert run.task_id == f"task-{number}"
            assert claim() == []
            Pen(run).end()

    def test_messages_that_are_accepted_together_keep_their_order(self) -> None:
        accept_many([new(f"task-{n}", ordered=True, quota_key=f"s{9 - n}") for n in range(9)])
        keys = Run.objects.order_by("pk").values_list("task__public_id", flat=True)
        assert list(keys) == [f"task-{n}" for n in range(9)]
        assert names(claim()) == ["task-0"]

    def test_other_conversations_do_not_wait(self) -> None:
        accepted("mine", ordered=True)
        accepted("mine-2", ordered=True)
        accepted("other", ordered=True, context_id="context-2")
        accepted("bobs", ordered=True, scope=BOB)
        accepted("tenants", ordered=True, scope=CHARLIE)
        accepted("agents", ordered=True, scope=OwnerScope("", "user:alice", "another"))
        assert sorted(names(claim())) == ["agents", "bobs", "mine", "other", "tenants"]

    def test_runs_of_other_agents_do_not_wait(self) -> None:
        accepted("a")
        accepted("b")
        assert sorted(names(claim())) == ["a", "b"]
        assert set(Run.objects.values_list("ordered_in", flat=True)) == {None}

    def test_a_run_that_was_started_when_it_was_accepted_is_in_the_way(self) -> None:
        held = accept(new("a", held=True, ordered=True)).claimed_run
        accepted("b", ordered=True)
        assert claim() == []
        assert held is not None
        Pen(held).end()
        assert names(claim()) == ["b"]

    def test_a_task_that_waits_for_input_is_not_in_the_way(self) -> None:
        accepted("a", ordered=True)
        accepted("b", ordered=True)
        Pen(only()).end(TaskState.INPUT_REQUIRED)
        second = only()
        reply(new("a", ordered=True, text="the answer"))
        assert second.task_id == "b"
        assert claim() == [], "the answer was accepted later than the task b"
        Pen(second).end()
        assert names(claim()) == ["a"]

    def test_a_run_that_waits_for_its_conversation_does_not_hold_the_rounds_back(self) -> None:
        accepted("a-0", ordered=True, quota_key="a")
        only()
        accepted("a-1", ordered=True, quota_key="a")
        for number in range(6):
            accepted(f"b-{number}", quota_key="b")
        claim(4)
        accepted("c", quota_key="c")
        rounds = dict(Run.objects.values_list("task__public_id", "round"))
        assert rounds["c"] == rounds["b-4"] + 1


class TestRelease:
    @pytest.fixture(autouse=True)
    def two(self) -> None:
        """Two tasks of a conversation."""
        accepted("a", ordered=True)
        accepted("b", ordered=True)

    @pytest.mark.parametrize(
        "state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.INPUT_REQUIRED]
    )
    def test_the_end_of_a_run_announces_the_next(self, state: TaskState) -> None:
        run = only()
        assert hints(lambda: Pen(run).end(state)) == [pubsub.RunQueued("agents")]
        assert names(claim()) == ["b"]

    @pytest.mark.parametrize("begun", [True, False])
    def test_a_cancellation_announces_the_next(self, begun: bool) -> None:
        if begun:
            only()
        assert hints(lambda: cancel(ALICE, "a")) == [pubsub.RunQueued("agents")]
        assert names(claim()) == ["b"]

    def test_a_run_whose_process_died_stays_before_the_next_one(self) -> None:
        expire(only().key)
        assert claim() == []
        assert runs.reclaim_expired(max_attempts=3) == 1
        again = only()
        assert (again.task_id, again.attempt) == ("a", 2)
        Pen(again).end()
        assert names(claim()) == ["b"]

    def test_a_run_that_is_given_up_announces_the_next(self) -> None:
        run = only()
        reply(new("a", ordered=True, text="and?"))
        expire(run.key)
        found = hints(lambda: runs.reclaim_expired(max_attempts=1))
        assert found == [pubsub.RunQueued("agents")]
        assert Task.objects.get(public_id="a").state == TaskState.FAILED
        assert names(claim()) == ["b"]

    def test_a_run_that_killed_its_process_announces_the_next(self) -> None:
        run = only()
        found = hints(lambda: runs.report_crash(run, "it died", max_attempts=1))
        assert found == [pubsub.RunQueued("agents")]
        assert names(claim()) == ["b"]

    def test_a_run_in_quarantine_is_in_the_way_until_it_has_ended(self) -> None:
        Run.objects.filter(task__public_id="a").update(shared_deaths=3)
        assert claim() == []
        (run,) = claim(quarantine=Quarantine.PROCESS)
        Pen(run).end()
        assert names(claim()) == ["b"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
class TestAtOnce:
    def test_claims_at_once_never_get_two_runs_of_a_conversation(self) -> None:
        for number in range(24):
            accepted(f"task-{number}", ordered=True, context_id=f"c{number % 2}")
        order: dict[str, list[int]] = {"c0": [], "c1": []}
        lock, open_ = threading.Lock(), set[str]()

        def work() -> None:
            while Run.objects.filter(status=RunStatus.QUEUED).exists():
                for run in claim():
                    with lock:
                        assert run.context_id not in open_
                        open_.add(run.context_id)
                        order[run.context_id].append(int(run.task_id.removeprefix("task-")))
                    with lock:
                        open_.discard(run.context_id)
                    Pen(run).end()

        assert at_once(*[work] * 4) == [None] * 4
        assert order == {"c0": list(range(0, 24, 2)), "c1": list(range(1, 24, 2))}

    def test_a_message_that_is_not_committed_yet_is_not_overtaken(self) -> None:
        """The later message waits for the row of the context, so that it cannot be claimed before the earlier one."""
        accepted("begins", ordered=True)
        Pen(only()).end()
        written = threading.Event()

        def slow() -> None:
            with transaction.atomic():
                accepted("first", ordered=True)
                written.set()
                eventually(somebody_waits_for_a_row)

        def quick() -> None:
            assert written.wait(30)
            accepted("second", ordered=True)

        assert at_once(slow, quick) == [None, None]
        assert names(claim()) == ["first"]


@pytest.mark.backend("stack")
class TestCost:
    def plan(self, monkeypatch: pytest.MonkeyPatch) -> tuple[list[ClaimedRun], str]:
        """What is claimed, and how PostgreSQL found it."""
        asked: list[tuple[str, Any]] = []

        def listen(sql: str, values: Any, **more: Any) -> Any:
            if sql in postgres.CLAIMS.values():
                asked.append((sql, values))
            return fetch(sql, values, **more)

        monkeypatch.setattr(postgres, "fetch", listen)
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("analyze a2a_tasks_run")
            taken = claim()
            transaction.set_rollback(True)
        ((sql, values),) = asked
        rows = fetch(f"explain (analyze, timing off, summary off, costs off) {sql}", values)
        return taken, "\n".join(line for (line,) in rows)

    def test_a_run_without_an_order_is_claimed_without_a_look_at_its_conversation(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        accept_many([new(f"task-{n}", context_id="all") for n in range(300)])
        taken, plan = self.plan(monkeypatch)
        assert len(taken) == 10
        assert re.search(r"using run_ordered on a2a_tasks_run \w+ \(never executed\)", plan)

    def test_the_earlier_runs_of_a_conversation_are_found_by_an_index(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        accept_many([new(f"task-{n}", ordered=True, context_id=f"c{n}") for n in range(300)])
        taken, plan = self.plan(monkeypatch)
        assert len(taken) == 10
        assert re.search(r"using run_ordered on a2a_tasks_run \w+ \(actual rows=0 loops", plan)
