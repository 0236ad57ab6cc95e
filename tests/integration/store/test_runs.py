"""Runs: claimed once, kept by heartbeats, handed back, rescued, and given up where everybody sees it."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_tasks import pubsub
from a2a_tasks.execution.turns import read_run_request
from a2a_tasks.models import Run, RunStatus, Step, Task, Worker
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import runs, workers
from a2a_tasks.store.backend import postgres
from a2a_tasks.store.records import ClaimedRun, LeaseLost, RunEnd
from a2a_tasks.store.replies import reply
from a2a_tasks.store.tasks import find
from a2a_tasks.telemetry.trace_context import AttemptBefore
from tests.support.execution.waiting import eventually, somebody_waits_for_a_row
from tests.support.store.world import (
    ALICE,
    BOB,
    Pen,
    accepted,
    at_once,
    claim,
    everything,
    expire,
    found,
    held,
    new,
)


@pytest.mark.django_db
class TestClaim:
    def test_it_takes_the_oldest_first_and_no_more_than_asked(self) -> None:
        keys = [accepted(f"task-{number}").run for number in range(4)]
        assert [taken.key for taken in claim(3)] == keys[:3]
        assert [taken.key for taken in claim(3)] == keys[3:]
        assert claim(3) == []

    def test_it_takes_only_from_its_queues(self) -> None:
        accepted("task-1", queue="slow")
        fast = accepted("task-2", queue="fast")
        assert [taken.key for taken in claim(queues=["fast", "other"])] == [fast.run]

    def test_a_claimed_run_is_held_by_a_fresh_token_until_a_lease_ends(self) -> None:
        result = accepted()
        (taken,) = claim()
        run = Run.objects.get(pk=result.run)
        assert (run.status, run.token, run.attempt, run.worker) == (
            RunStatus.RUNNING,
            taken.token,
            1,
            "there:2",
        )
        assert run.lease_until is not None
        assert run.lease_until > timezone.now()
        assert Task.objects.get().run_token == taken.token
        assert len(taken.token) > 16

    def test_the_assignment_says_everything_needed(self) -> None:
        result = accepted(request='{"a":1}', text="do it", scope=BOB)
        (taken,) = claim()
        assert (taken.key, taken.task, taken.task_id) == (result.run, result.task, "task-1")
        assert (taken.scope, taken.context_id, taken.request) == (BOB, "context-1", '{"a":1}')
        assert (taken.state, taken.last_event, taken.input_number) == (TaskState.SUBMITTED, 1, 1)
        assert '"do it"' in taken.input

    def test_one_run_of_a_task_at_a_time_in_the_order_of_the_messages(self) -> None:
        first = accepted()
        second = reply(new(text="and?"))
        (taken,) = claim()
        assert taken.key == first.run
        assert claim() == []
        Pen(taken).state(TaskState.INPUT_REQUIRED, end=RunEnd())
        (taken,) = claim()
        assert taken.key == second.run
        assert '"and?"' in taken.input

    def test_a_run_of_a_task_that_has_ended_is_dropped(self) -> None:
        result = accepted()
        Task.objects.filter(pk=result.task).update(state=TaskState.COMPLETED)
        assert claim() == []
        assert Run.objects.get().status == RunStatus.DROPPED

    def test_it_brings_the_artifacts_that_are_there(self) -> None:
        pen = Pen(held())
        pen.begin("open", "some of it")
        pen.begin("closed", "all", position=1)
        pen.close("closed", " of it", position=1)
        runs.hand_back([pen.run.token])
        (taken,) = claim()
        assert taken.artifacts == (("open", 0, True), ("closed", 1, False))

    @pytest.mark.backend("stack")
    def test_the_artifacts_of_many_runs_are_no_queries_of_their_own(
        self, django_assert_max_num_queries: Any
    ) -> None:
        """What the claim itself asks is not Django's and is not counted."""
        for number in range(20):
            pen = Pen(held(f"task-{number}"))
            pen.begin("open", "some of it")
            runs.hand_back([pen.run.token])
        with django_assert_max_num_queries(1):  # which agents there are
            assert len(claim(20)) == 20

    def test_it_takes_no_more_bytes_than_fit_and_says_that_there_is_more(self) -> None:
        for number in range(5):
            accepted(f"task-{number}", text="x" * 600)
        taken = claim(most=2000)
        assert (len(taken), runs.has_more(taken, 10, 2000)) == (2, True)
        assert len(claim(most=2000)) == 2
        last = claim(most=2000)
        assert (len(last), runs.has_more(last, 10, 2000)) == (1, True)
        assert not runs.has_more(claim(most=2000), 10, 2000)

    def test_its_bytes_are_those_that_it_takes_in_memory(self) -> None:
        plain, other = held("task-1", text="x" * 1000), held("task-2", text="x" * 1000 + "😀")
        assert other.size > 3 * plain.size

    def test_the_bytes_count_for_all_queues_together(self) -> None:
        for number in range(2):
            accepted(f"task-{number}", text="x" * 3000, queue=f"queue-{number}")
        assert len(claim(queues=["queue-0", "queue-1"], most=2000)) == 1

    def test_a_run_is_not_due_before_its_time(self) -> None:
        accepted()
        Run.objects.update(due_at=timezone.now() + datetime.timedelta(hours=1))
        assert claim() == []


@pytest.mark.django_db
class TestHeartbeat:
    def test_it_extends_the_leases_that_hold_and_tells_which_do(self) -> None:
        alive, gone = held("task-1"), held("task-2")
        expire(alive.key)
        Pen(gone).end()
        assert runs.heartbeat([alive.token, gone.token, "never was"]) == {alive.token}
        lease = Run.objects.get(pk=alive.key).lease_until
        assert lease is not None
        assert lease > timezone.now()

    def test_each_lease_is_extended_by_its_own_length(self) -> None:
        short, long = held("task-1"), held("task-2")
        Run.objects.filter(pk=long.key).update(lease_seconds=600)
        runs.heartbeat([short.token, long.token])
        leases = dict(Run.objects.values_list("pk", "lease_until"))
        one, other = leases[long.key], leases[short.key]
        assert one is not None
        assert other is not None
        between = one - other
        assert 560 < between.total_seconds() < 580

    def test_no_leases_are_no_work(self) -> None:
        assert runs.heartbeat([]) == set()


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
class TestLockedRows:
    def test_a_row_that_somebody_holds_costs_no_other_lease(self) -> None:
        stuck, *others = [held(f"task-{n}") for n in range(5)]
        with locked(stuck.key):
            assert runs.heartbeat([run.token for run in (stuck, *others)]) == {
                run.token for run in others
            }
            assert not runs.heartbeat_locked(stuck.token, runs_in_process=5), "it is still locked"
        assert runs.heartbeat_locked(stuck.token, runs_in_process=5)

    def test_whoever_waits_for_the_row_has_it_before_a_rescuer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(postgres, "LOCK_SECONDS", 10.0)
        stuck = held()
        with locked(stuck.key) as let_go:
            waiting = threading.Thread(target=let_go_when_awaited, args=(let_go,))
            waiting.start()
            assert runs.heartbeat_locked(stuck.token, runs_in_process=1)
            waiting.join(10)


@contextmanager
def locked(run: int) -> Iterator[threading.Event]:
    """Somebody else holds the row of a run until the event is set, or the block ends."""
    held_, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=run)
            held_.set()
            let_go.wait(15)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    held_.wait(10)
    try:
        yield let_go
    finally:
        let_go.set()
        holder.join(10)


def let_go_when_awaited(let_go: threading.Event) -> None:
    """Let the row go once a session waits for it."""
    eventually(somebody_waits_for_a_row, 10)
    let_go.set()
    connection.close()


@pytest.mark.django_db
class TestHandBack:
    def test_a_run_given_back_is_due_again_and_the_attempt_does_not_count(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.WORKING)
        runs.hand_back([pen.run.token])
        run = Run.objects.get()
        assert (run.status, run.token, run.attempt, run.lease_until) == (
            RunStatus.QUEUED,
            "",
            0,
            None,
        )
        with pytest.raises(LeaseLost):
            pen.state(TaskState.WORKING)
        (taken,) = claim()
        assert taken.attempt == 1

    def test_a_run_that_is_no_longer_ours_is_left_alone(self) -> None:
        old = held()
        expire(old.key)
        runs.reclaim_expired(max_attempts=3)
        (taken,) = claim()
        runs.hand_back([old.token])
        assert Run.objects.get().token == taken.token

    @pytest.mark.backend("stack")
    def test_all_that_nobody_else_holds_takes_the_statements_of_one(
        self, django_assert_max_num_queries: Any
    ) -> None:
        tokens = [held(f"task-{n}").token for n in range(20)]
        with django_assert_max_num_queries(5):
            runs.hand_back(tokens)
        given = Run.objects.filter(status=RunStatus.QUEUED, attempt=0, token="")
        assert given.count() == 20
        assert not Task.objects.exclude(run_token="").exists()

    @pytest.mark.parametrize("space", ["", " "])
    def test_the_next_attempt_of_a_run_with_a_trace_knows_the_one_before(self, space: str) -> None:
        old = held()
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        Run.objects.update(
            request=f'{{"principal":"alice","trace":{space}["{parent}",""],"before":["ff",1,2.0,3.0]}}'
        )
        runs.hand_back([old.token])
        (taken,) = claim()
        request = read_run_request(taken.request)
        assert request.before == AttemptBefore.of(old.token, 1)
        assert (request.principal, request.trace.traceparent) == ("alice", parent)

    def test_it_rings_so_that_somebody_else_starts_it_at_once(self) -> None:
        run = held(queue="slow")
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            runs.hand_back([run.token])
        assert hints == [pubsub.RunQueued("slow")]


@pytest.mark.django_db
class TestRescue:
    def test_a_run_whose_lease_holds_is_left_alone(self) -> None:
        run = held()
        assert runs.reclaim_expired(max_attempts=3) == 0
        assert Run.objects.get().token == run.token

    def test_a_run_whose_lease_ended_is_queued_again_and_rings(self) -> None:
        pen = Pen(held(queue="slow"))
        pen.state(TaskState.WORKING)
        expire(pen.run.key)
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            assert runs.reclaim_expired(max_attempts=3) == 1
        assert hints == [pubsub.RunQueued("slow")]
        run = Run.objects.get()
        assert (run.status, run.token, run.attempt, run.lease_until) == (
            RunStatus.QUEUED,
            "",
            1,
            None,
        )
        (taken,) = claim(queues=["slow"])
        assert (taken.attempt, taken.state, taken.last_event) == (2, TaskState.WORKING, 2)

    @pytest.mark.backend("stack")
    def test_many_are_queued_again_in_a_handful_of_queries(
        self, django_assert_max_num_queries: Any
    ) -> None:
        for number in range(20):
            expire(held(f"task-{number}").key)
        with django_assert_max_num_queries(10):
            assert runs.reclaim_expired(max_attempts=3) == 20

    def test_a_lost_run_is_judged_by_the_steps_of_its_own_turn_alone(self) -> None:
        lost = [held(f"task-{number}") for number in range(2)]
        for run in lost:
            expire(run.key)
            Step.objects.bulk_create(
                Step(task_id=run.task, input_number=n, name="search", result="1", run=run.key)
                for n in range(1, 21)
            )
        with CaptureQueriesContext(connection) as captured:
            assert runs.reclaim_expired(max_attempts=3) == 2
        (query,) = (one["sql"] for one in captured if "a2a_tasks_step" in one["sql"])
        with connection.cursor() as cursor:
            cursor.execute(query)
            assert len(cursor.fetchall()) == 2

    def test_a_death_is_taken_back_if_the_process_lives(self) -> None:
        run = held().key
        for attempt in (1, 2, 3, 4):
            expire(run)
            runs.reclaim_expired(max_attempts=3)
            assert Run.objects.get().deaths == 1
            runs.take_back_deaths({run: attempt})
            assert Run.objects.get().deaths == 0
            assert claim()[0].attempt == attempt + 1
        assert "Attempt 4 had not died: its process was cut off." in Run.objects.get().error

    def test_what_was_given_up_in_between_stays_so(self) -> None:
        run = held().key
        expire(run)
        runs.reclaim_expired(max_attempts=1)
        runs.take_back_deaths({run: 1})
        assert Run.objects.get().deaths == 1
        assert Task.objects.get().state == TaskState.FAILED

    def test_a_zombie_with_the_old_token_is_fenced(self) -> None:
        zombie = Pen(held())
        expire(zombie.run.key)
        runs.reclaim_expired(max_attempts=3)
        with pytest.raises(LeaseLost):
            zombie.state(TaskState.WORKING)
        (taken,) = claim()
        with pytest.raises(LeaseLost):
            zombie.end()
        assert runs.heartbeat([zombie.run.token]) == set()
        assert Pen(taken).end() == 2

    def test_a_late_heartbeat_in_time_saves_the_run(self) -> None:
        run = held()
        expire(run.key)
        assert runs.heartbeat([run.token]) == {run.token}
        assert runs.reclaim_expired(max_attempts=3) == 0

    def given_up(self, **changes: object) -> ClaimedRun:
        """A task whose process died three times."""
        run = held(**changes)  # type: ignore[arg-type]
        for _ in range(2):
            expire(run.key)
            runs.reclaim_expired(max_attempts=3)
            (run,) = claim()
        expire(run.key)
        assert runs.reclaim_expired(max_attempts=3) == 1
        return run

    def test_after_the_last_attempt_the_task_fails_where_its_client_sees_it(self) -> None:
        run = self.given_up()
        task = found()
        assert task.state is TaskState.FAILED
        assert b"was interrupted 3 times" in bytes(task.view.status.message or b"")
        assert [event.state for event in everything(run.task) if event.state in TERMINAL] == [
            TaskState.FAILED
        ]
        row = Run.objects.get()
        assert (row.status, row.token) == (RunStatus.FAILED, "")
        assert "there:2" in row.error
        assert b"there:2" not in bytes(task.view.status.message or b"")
        with pytest.raises(LeaseLost):
            Pen(run).end()

    @pytest.mark.parametrize("end", [RunEnd(), RunEnd("failed", "Traceback: no paper")])
    def test_how_the_others_died_stays_with_the_run_however_the_last_one_ends(
        self, end: RunEnd
    ) -> None:
        expire(held().key)
        runs.reclaim_expired(max_attempts=3)
        (second,) = claim()
        Pen(second).state(TaskState.COMPLETED, end=end)
        row = Run.objects.get()
        assert (row.attempt, row.status) == (2, end.status)
        assert row.error.startswith("Attempt 1 on ")
        assert row.error.endswith(end.error)

    def test_what_is_given_up_before_its_first_word_is_a_task_its_client_can_read(self) -> None:
        self.given_up(is_task=False)
        read = find(ALICE, "task-1")
        assert read is not None
        assert read.state is TaskState.FAILED

    def test_messages_behind_a_task_given_up_are_dropped(self) -> None:
        run = held()
        waiting = reply(new(text="and?"))
        expire(run.key)
        runs.reclaim_expired(max_attempts=1)
        claim()
        assert Run.objects.get(pk=waiting.run).status == RunStatus.DROPPED


@pytest.mark.django_db
class TestSurrender:
    """The holder itself says that the process of its agent has died."""

    def test_the_next_attempt_is_due_at_once(self) -> None:
        run = held(queue="slow")
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            runs.report_crash(run, "it died with signal 9", max_attempts=3)
        assert hints == [pubsub.RunQueued("slow")]
        died = Run.objects.get(pk=run.key).error
        assert died.startswith("Attempt 1 on ")
        assert died.endswith(" died: it died with signal 9.\n")
        (taken,) = claim(queues=["slow"])
        assert taken.attempt == 2
        with pytest.raises(LeaseLost):
            Pen(run).end()

    def test_after_the_last_attempt_the_task_fails_and_says_how(self) -> None:
        run = held()
        runs.report_crash(run, "it died with signal 9", max_attempts=1)
        task = found()
        assert task.state is TaskState.FAILED
        said = b"was interrupted once and was given up: it died with signal 9."
        assert said in bytes(task.view.status.message or b"")
        assert Run.objects.get().status == RunStatus.FAILED

    def test_who_has_lost_the_task_is_fenced(self) -> None:
        run = held()
        expire(run.key)
        runs.reclaim_expired(max_attempts=3)
        (taken,) = claim()
        with pytest.raises(LeaseLost):
            runs.report_crash(run, "it died", max_attempts=3)
        assert Run.objects.get().token == taken.token


@pytest.mark.django_db
def test_a_look_between_heartbeats_tells_which_runs_are_held_and_extends_none() -> None:
    run, lost = held("task-1"), held("task-2")
    expire(lost.key)
    runs.reclaim_expired(max_attempts=3)
    before = Run.objects.get(pk=run.key).lease_until
    assert runs.find_held_tokens([run.key, lost.key]) == {run.token}
    assert Run.objects.get(pk=run.key).lease_until == before


@pytest.mark.django_db(transaction=True)
class TestTwoProcesses:
    def test_no_run_is_claimed_twice(self) -> None:
        keys = {accepted(f"task-{number}").run for number in range(30)}

        def take() -> list[int]:
            taken: list[int] = []
            while got := claim(3):
                taken += [run.key for run in got]
            return taken

        results = at_once(take, take, take)
        assert all(isinstance(result, list) for result in results), results
        taken = [run for result in results if isinstance(result, list) for run in result]
        taken += [run.key for run in claim(30)]  # what everybody left to the others
        assert sorted(taken) == sorted(keys)

    def test_no_run_is_rescued_twice(self) -> None:
        for number in range(10):
            expire(held(f"task-{number}").key)
        Run.objects.update(worker=F("token"))  # a process for each: they died alone
        results = at_once(
            lambda: runs.reclaim_expired(max_attempts=1),
            lambda: runs.reclaim_expired(max_attempts=1),
        )
        assert all(isinstance(result, int) for result in results), results
        left = runs.reclaim_expired(
            max_attempts=1
        )  # what each left to the other, until its next look
        assert sum(result for result in results if isinstance(result, int)) + left == 10
        assert Task.objects.filter(state=TaskState.FAILED, last_event=2).count() == 10


@pytest.mark.django_db
class TestRunsOfAgentsHostedElsewhere:
    def test_they_are_left_to_who_hosts_them(self) -> None:
        result = accepted()
        assert claim(agents=["another"]) == []
        (taken,) = claim(agents=["another", Task.objects.get().agent])
        assert taken.key == result.run

    def test_they_are_taken_to_be_failed_when_nobody_came(self, settings: Any) -> None:
        settings.A2A_ORPHAN_SECONDS = 0.0
        result = accepted()
        (taken,) = claim(agents=["another"])
        assert taken.key == result.run

    def test_they_are_not_taken_by_a_process_that_cannot_know_yet(self) -> None:
        overdue()
        assert claim(agents=["another"], orphans=False) == []
        assert len(claim(agents=["another"])) == 1

    @pytest.mark.parametrize("about", [{}, {"draining": True}], ids=["there", "draining"])
    def test_they_are_left_to_a_living_process_that_has_the_agent(
        self, about: dict[str, Any]
    ) -> None:
        """However long they wait: it is busy."""
        overdue()
        there(**about)
        assert claim(agents=["another"]) == []

    def test_they_are_left_to_whoever_follows_a_process_that_has_just_ended(self) -> None:
        """A deploy: the process that had the agent has left, and its successor has not come yet."""
        overdue()
        there()
        workers.leave("there:1")
        assert claim(agents=["another"]) == []

    @pytest.mark.parametrize(
        "about", [{"queues": ["elsewhere"]}, {"agents": {"another": "1"}}], ids=["queue", "agents"]
    )
    def test_a_process_with_another_queue_or_other_agents_does_not_help_them(
        self, about: dict[str, Any]
    ) -> None:
        overdue()
        there(**about)
        assert len(claim(agents=["another"])) == 1

    def test_a_process_that_was_not_seen_for_long_does_not_help_them(self) -> None:
        overdue()
        there()
        Worker.objects.update(seen_at=timezone.now() - datetime.timedelta(seconds=61))
        assert len(claim(agents=["another"])) == 1

    def test_a_message_whose_turn_has_just_come_is_as_good_as_new(self) -> None:
        first = held()
        second = reply(new(text="and?"))
        Run.objects.update(due_at=timezone.now() - datetime.timedelta(hours=1))
        Pen(first).state(TaskState.INPUT_REQUIRED, end=RunEnd())
        assert claim(agents=["another"]) == []
        Run.objects.filter(pk=second.run).update(
            due_at=timezone.now() - datetime.timedelta(seconds=61)
        )
        (taken,) = claim(agents=["another"])
        assert taken.key == second.run

    def test_a_run_that_was_handed_back_is_as_good_as_new(self) -> None:
        run = held()
        Run.objects.update(due_at=timezone.now() - datetime.timedelta(hours=1))
        runs.hand_back([run.token])
        assert claim(agents=["another"]) == []


def overdue() -> None:
    """A run that has waited for longer than A2A_ORPHAN_SECONDS."""
    accepted()
    Run.objects.update(due_at=timezone.now() - datetime.timedelta(hours=1))


def there(**about: Any) -> None:
    """A process that says that it has the agent of all tests, and takes from its queue."""
    said = {"queues": ["agents"], "agents": {"demo": "1.0"}, **about}
    kind, now = workers.WorkerKind.WORKER, timezone.now()
    workers.beat(
        workers.Beat(name="there:1", kind=kind, host="there", pid=1, started_at=now, **said)
    )
