"""Retention: what goes, what stays, in which portions, and that nobody is hurt who is at work meanwhile."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from a2a_push.models import PushConfig
from a2a_push.store.receivers import receiver_of
from a2a_tasks.models import (
    Artifact,
    Context,
    Event,
    HandedSecret,
    HoldKind,
    Idempotency,
    Message,
    Run,
    RunLine,
    RunStatus,
    Tally,
    Task,
    Usage,
)
from a2a_tasks.protocol.lifecycle import EventKind, assemble
from a2a_tasks.protocol.values import Role, TaskState
from a2a_tasks.store import event_log, folding, purge, run_lines, task_counter
from a2a_tasks.store.backend import sessions
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.db import run_here
from a2a_tasks.store.legal_holds import lay, release
from a2a_tasks.store.purge import Removed, RetentionLimits
from a2a_tasks.store.replies import reply
from a2a_tasks.store.run_lines import RunLogLine
from tests.support.console.admin.rows import add_usage, make_task
from tests.support.store.world import (
    ALICE,
    BOB,
    Pen,
    accepted,
    at_once,
    everything,
    found,
    held,
    new,
)
from tests.support.thorough import thorough

#: What no other transaction sees: `make test` asks it of PostgreSQL. What other transactions meet is asked of both.
alone = pytest.mark.quick_on("stack")
pytestmark = pytest.mark.django_db

A_MONTH_AGO = timezone.now() - timedelta(days=30)
MONTH = RetentionLimits(tasks=A_MONTH_AGO)
LOGS = RetentionLimits(events=A_MONTH_AGO)


@pytest.fixture(autouse=True)
def _folded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread is still about to fold what a test has just ended."""
    monkeypatch.setattr(folding, "run_in_background", lambda work, *about: work(*about))


def ended(task: str = "task-1", *, days: float = 40, chunks: int = 2, **about: Any) -> int:
    """A task with an artifact that ended so many days ago."""
    pen = Pen(held(task, **about))
    pen.begin("a", "0")
    for n in range(1, chunks):
        pen.add("a", str(n))
    pen.close("a", "end")
    pen.end(text="done")
    aged(pen.run.task, days)
    return pen.run.task


def noted(task: int, count: int) -> None:
    """Let the runs of a task have so many lines in their log."""
    run = Run.objects.get(task=task).pk
    run_lines.write([RunLogLine(run, 1, timezone.now(), 20, "x", str(n)) for n in range(count)])


def aged(task: int, days: float) -> None:
    """Let everything about a task have been so long ago."""
    then = timezone.now() - timedelta(days=days)
    Task.objects.filter(pk=task).update(created_at=then, status_at=then)
    Context.objects.filter(tasks=task).update(created_at=then, updated_at=then)


def all_of(limits: RetentionLimits) -> Removed:
    """A purge, to its end."""
    return sum(purge.purge(limits), Removed())


def together(*works: Callable[[], Any]) -> list[Any]:
    """What these return that are done at the same time; what they raise is raised."""
    results = at_once(*works)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def rows() -> dict[str, int]:
    """How many rows each table has."""
    models = (Task, Context, Event, Message, Artifact, Run, PushConfig)
    return {model.__name__: model.objects.count() for model in models}


def many(count: int, *, days: float = 40, owner: str = ALICE.owner, live: int = 0) -> list[int]:
    """Ended tasks as the store leaves them, made at once; every `live`th of them works."""
    then = timezone.now() - timedelta(days=days)
    context = Context.objects.create(owner=owner, agent="demo", public_id=f"many-{owner}")
    Context.objects.update(updated_at=then)
    tasks = Task.objects.bulk_create(
        Task(
            public_id=f"many-{n}",
            owner=owner,
            agent="demo",
            context=context,
            state=TaskState.WORKING if live and n % live == 0 else TaskState.COMPLETED,
            status_at=then,
            created_at=then,
            last_event=2,
            origin_dialect="v10",
        )
        for n in range(count)
    )
    Message.objects.bulk_create(
        Message(task=task, number=1, role=Role.USER, body="{}") for task in tasks
    )
    Event.objects.bulk_create(
        Event(task=task, number=number, kind=kind, state=task.state if number == 2 else "")
        for task in tasks
        for number, kind in ((1, EventKind.INPUT), (2, EventKind.STATUS))
    )
    Run.objects.bulk_create(
        Run(
            task=task,
            input_number=1,
            queue="agents",
            status=RunStatus.QUEUED if task.state == TaskState.WORKING else RunStatus.ENDED,
        )
        for task in tasks
    )
    return [task.pk for task in tasks]


@alone
class TestWhatGoes:
    def test_is_an_old_task_with_everything_that_is_its_own(self) -> None:
        key = ended()
        webhook = {"task_id": key, "public_id": "c", "dialect": "v10", "url": "https://x.test/"}
        told = receiver_of("", "https://x.test/")
        PushConfig.objects.create(receiver_id=told, active=False, **webhook)
        before = sum(rows().values())
        assert all_of(MONTH) == Removed(tasks=1, contexts=1, rows=before)
        assert sum(rows().values()) == 0

    def test_is_only_what_ended_before_the_limit(self) -> None:
        ended("old", days=31)
        ended("new", days=29)
        all_of(MONTH)
        assert [task.public_id for task in Task.objects.all()] == ["new"]

    def test_counts_from_the_end_of_a_task_and_not_from_its_beginning(self) -> None:
        key = ended(days=40)
        Task.objects.filter(pk=key).update(status_at=timezone.now())
        assert all_of(MONTH) == Removed()

    def test_includes_what_ended_and_was_no_task(self) -> None:
        key = ended()
        Task.objects.update(is_task=False)
        assert all_of(MONTH).tasks == 1
        assert not Event.objects.filter(task_id=key).exists()

    def test_is_nothing_without_a_limit(self) -> None:
        ended(days=10_000)
        assert all_of(RetentionLimits.of(0, 0)) == Removed()
        assert all_of(RetentionLimits.from_settings()) == Removed(), "that is the default"
        assert all_of(RetentionLimits.of(1e300, 1e300)) == Removed(), (
            "longer than there have been days"
        )

    def test_may_be_the_predecessor_of_a_task(self) -> None:
        ended(dialect="v01", days=40)
        reply(new(dialect="v01", reopens=True))
        assert all_of(MONTH).tasks == 1
        successor = Task.objects.get()
        assert successor.predecessor_id is not None
        assert found().view.status.state is TaskState.SUBMITTED

    def test_is_the_same_if_asked_again(self) -> None:
        ended()
        all_of(RetentionLimits.of(30, 10))
        assert all_of(RetentionLimits.of(30, 10)) == Removed()


@alone
class TestWhatStays:
    @pytest.mark.parametrize(
        "state", [TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED]
    )
    def test_is_a_task_that_has_not_ended_however_old(self, state: TaskState) -> None:
        pen = Pen(held())
        if state is not TaskState.SUBMITTED:
            pen.state(state)
        aged(pen.run.task, 4000)
        before = rows()
        assert all_of(RetentionLimits.of(30, 30)) == Removed()
        assert rows() == before

    @pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING])
    def test_is_a_task_with_a_run_under_way(self, status: RunStatus) -> None:
        key = ended()
        running = {"token": "t", "lease_until": timezone.now()}
        Run.objects.update(status=status, **(running if status is RunStatus.RUNNING else {}))
        assert all_of(RetentionLimits.of(30, 30)) == Removed()
        assert everything(key)

    def test_is_a_context_with_another_task(self) -> None:
        ended("old")
        ended("new", days=1)
        assert all_of(MONTH).contexts == 0
        assert Context.objects.count() == 1

    def test_is_a_context_used_since(self) -> None:
        ended()
        Context.objects.update(updated_at=timezone.now())
        assert all_of(MONTH) == Removed(tasks=1, rows=9)
        assert Context.objects.count() == 1

    def test_is_the_other_owners(self) -> None:
        ended("same", scope=BOB, days=1)
        ended("same")
        all_of(MONTH)
        assert Task.objects.get().owner == BOB.owner

    def test_is_the_log_of_artifacts_that_stay_in_pieces(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folding, "MAX_BYTES", 0)
        key = ended()
        before = found()
        assert all_of(LOGS) == Removed()
        assert everything(key)
        assert found().view == before.view


@alone
class TestTheLog:
    @pytest.mark.django_db(transaction=True)
    def test_is_folded_before_the_transaction_that_cuts_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Putting pieces together may take long; nobody waits for the task's row meanwhile."""
        ended()
        Artifact.objects.update(body="")
        inside: list[bool] = []

        def assembling(bodies: Iterable[str]) -> dict[str, bytes]:
            inside.append(connection.in_atomic_block)
            return assemble(bodies)

        monkeypatch.setattr(folding, "assemble", assembling)
        assert all_of(LOGS).rows > 0
        assert inside == [False]

    def test_goes_after_artifacts_that_were_not_folded_are(self) -> None:
        key = ended()
        before = found()
        Artifact.objects.update(body="")
        assert all_of(LOGS).rows > 0
        assert everything(key) == []
        assert found().view == before.view

    def test_goes_and_the_task_stays_as_it_was(self) -> None:
        key = ended()
        before = found()
        events = Event.objects.filter(task=key).count()
        assert all_of(LOGS) == Removed(rows=events)
        assert found().view == before.view
        assert found().last_event == before.last_event == events
        assert everything(key) == []

    def test_says_where_it_begins(self) -> None:
        key = ended()
        last = found().last_event
        assert event_log.find_first_number(key) == 1
        Event.objects.filter(task=key, number__lt=4).delete()
        assert event_log.find_first_number(key) == 4
        all_of(LOGS)
        assert event_log.find_first_number(key) == last + 1
        all_of(MONTH)
        assert event_log.find_first_number(key) is None

    def test_of_a_large_task_goes_from_its_beginning_in_portions(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 10
        key = ended(chunks=30)
        count, seen = found().last_event, []
        for removed in purge.purge(LOGS):
            assert removed.rows <= 10
            seen.append(event_log.find_first_number(key))
        assert seen[:3] == [11, 21, 31]
        assert event_log.find_first_number(key) == count + 1

    def test_goes_sooner_than_its_task(self) -> None:
        old, middle, young = (ended(f"t{days}", days=days) for days in (40, 20, 5))
        assert all_of(RetentionLimits.of(30, 10)).tasks == 1
        assert [event_log.find_first_number(key) for key in (old, middle, young)] == [
            None,
            Task.objects.get(pk=middle).last_event + 1,
            1,
        ]

    def test_is_not_looked_for_where_it_is_gone(
        self, django_assert_max_num_queries: Any, settings: Any
    ) -> None:
        settings.A2A_WEBHOOK_RETENTION_DAYS = 0
        many(100)
        all_of(LOGS)
        # one of them for files without a task, one for secrets, one for lists without a conversation, two for usage and
        # budgets, one for notices of cancels
        with django_assert_max_num_queries(8):
            assert all_of(LOGS) == Removed()


@alone
class TestBatches:
    def test_stay_small_at_hundreds_of_tasks_and_come_oldest_first(self) -> None:
        keys = many(400, live=20)
        working = set(keys[::20])
        oldest, steps, most = keys[0], 0, 0
        for removed in purge.purge(MONTH):
            steps, most = steps + 1, max(most, removed.rows)
            ended_now = Task.objects.filter(state=TaskState.COMPLETED).order_by("pk")
            first = ended_now.values_list("pk", flat=True).first() or keys[-1] + 1
            gone = [key for key in keys if oldest <= key < first and key not in working]
            assert len(gone) == removed.tasks, "from the oldest on, without a gap"
            oldest = first
        assert most <= 500
        assert steps >= 4
        assert set(Task.objects.values_list("pk", flat=True)) == working
        assert rows() == {
            "Task": 20,
            "Context": 1,
            "Event": 40,
            "Message": 20,
            "Artifact": 0,
            "Run": 20,
            "PushConfig": 0,
        }

    def test_are_a_transaction_each(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 5
        many(10)
        steps = purge.purge(MONTH)
        next(steps)
        del steps
        assert Task.objects.count() == 9
        assert all_of(MONTH).tasks == 9

    def test_hold_a_task_of_many_events_in_portions(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 10
        ended("small")
        ended("large", chunks=60)
        ended("next")
        sizes = [removed.rows for removed in purge.purge(MONTH)]
        assert max(sizes) <= 10
        assert rows()["Task"] == rows()["Event"] == rows()["Context"] == 0

    def test_hold_a_task_of_many_log_lines_in_portions(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 10
        noted(ended("large", chunks=5), 60)
        ended("next")
        sizes = [removed.rows for removed in purge.purge(MONTH)]
        assert max(sizes) <= 10
        assert not RunLine.objects.exists()
        assert rows()["Task"] == rows()["Event"] == 0

    def test_of_logs_hold_lines_as_well_as_events(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 10
        noted(ended("old"), 25)
        noted(ended("young", days=20), 3)
        sizes = [removed.rows for removed in purge.purge(LOGS)]
        assert max(sizes) <= 10
        assert RunLine.objects.count() == 3
        assert rows()["Task"] == 2

    def test_hold_a_task_of_many_messages_alone(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 10
        large = ended("large")
        Message.objects.bulk_create(
            Message(task_id=large, number=n, role=Role.USER, body="{}") for n in range(100, 130)
        )
        ended("next")
        assert [removed.tasks for removed in purge.purge(MONTH) if removed.tasks] == [1, 1]
        assert Message.objects.count() == 0

    def test_of_one_row_come_to_an_end(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 0
        ended()
        ended("task-2", days=20)
        assert all_of(RetentionLimits.of(30, 10)).tasks == 1
        assert Event.objects.count() == 0

    def test_stop_looking_at_the_first_young_task(
        self, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any, settings: Any
    ) -> None:
        settings.A2A_WEBHOOK_RETENTION_DAYS = 0
        monkeypatch.setattr(purge, "SLICE", 10)
        many(5, live=1)
        many(100, days=1, owner="user:bob")
        # one of them for files without a task, one for secrets, one for lists without a conversation, two for usage and
        # budgets, one for notices of cancels
        with django_assert_max_num_queries(9):
            assert all_of(MONTH) == Removed()


@contextmanager
def undeletable(task: int) -> Iterator[None]:
    """A task that the database refuses to delete, as one with a broken row."""
    if connection.vendor == "postgresql":
        make = [
            "create function refuse() returns trigger language plpgsql as "
            "$$ begin raise exception 'poison'; end $$",
            "create trigger poison before delete on a2a_tasks_task for each row "
            f"when (old.id = {task}) execute function refuse()",
        ]
        end = ["drop trigger poison on a2a_tasks_task", "drop function refuse()"]
    else:
        make = [
            f"create trigger poison before delete on a2a_tasks_task when old.id = {task} "
            "begin select raise(abort, 'poison'); end"
        ]
        end = ["drop trigger poison"]
    with connection.cursor() as cursor:
        for statement in make:
            cursor.execute(statement)
        try:
            yield
        finally:
            for statement in end:
                cursor.execute(statement)


class TestWhatCannotBeRemoved:
    @pytest.mark.parametrize("place", [0, thorough(57), 119])
    def test_is_skipped_and_all_else_goes(
        self, place: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        keys = many(120)
        with undeletable(keys[place]):
            steps = list(purge.purge(MONTH))
            assert list(Task.objects.values_list("pk", flat=True)) == [keys[place]]
            assert sum(steps, Removed()).tasks == 119
            assert len(steps) < 40, "portions grow again behind it"
            assert f"task {keys[place]} could not be removed" in caplog.text
            assert all_of(MONTH).tasks == 0
        assert all_of(MONTH).tasks == 1

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    def test_in_time_since_its_context_is_in_use_is_skipped(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SHARE_OF_LOCKS", 0.1)
        settings.A2A_DATABASE_SECONDS = 2.0
        kept = many(1)[0]
        many(60, owner=BOB.owner)
        with transaction.atomic():
            Context.objects.select_for_update().get(tasks=kept)
            (done,) = together(lambda: run_here(all_of, MONTH))
        assert done.tasks == 60
        assert list(Task.objects.values_list("pk", flat=True)) == [kept]
        assert all_of(MONTH).tasks == 1

    def test_of_one_kind_stops_no_other(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(_: object, most: int) -> int:
            raise LookupError(most)

        monkeypatch.setattr(purge, "forget_idempotency", broken)
        many(20)
        secret = HandedSecret.objects.create(
            task_id=many(1, days=1, owner=BOB.owner)[0],
            asked_in=1,
            sealed="x",
            expires_at=timezone.now(),
        )
        done = all_of(MONTH._replace(keys=timezone.now()))
        assert done.tasks == 20
        secret.refresh_from_db()
        assert secret.sealed == ""
        assert "LookupError(1)" in caplog.text, "portions were halved before"


@alone
class TestEachKind:
    def test_has_its_turn_before_another_has_its_second(self) -> None:
        tasks = many(150)
        Idempotency.objects.create(
            owner=ALICE.owner, agent="demo", name="key", task_id=tasks[-1], number=1, run=1
        )
        HandedSecret.objects.create(
            task_id=tasks[-1], asked_in=1, sealed="x", expires_at=timezone.now()
        )
        limits = MONTH._replace(keys=timezone.now() + timedelta(seconds=1))
        first = list(itertools.islice(purge.purge(limits), 3))
        assert [removed.tasks for removed in first] == [100, 0, 0]
        assert not Idempotency.objects.exists()
        assert not HandedSecret.objects.exclude(sealed="").exists()


class TestTotals:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(task_counter, "STRIDE", 3)

    def test_stay_right(self) -> None:
        keys = many(8)
        assert task_counter.total(ALICE) == 8
        assert Tally.objects.get().through == keys[-1]
        aged(keys[0], 1)
        aged(ended("young", days=0), 0)
        all_of(MONTH)
        assert task_counter.total(ALICE) == 2
        many(8, days=20, owner="user:bob")
        assert [task_counter.total(ALICE), task_counter.total(BOB)] == [2, 8]

    def test_stay_right_if_nothing_was_tallied_yet(self) -> None:
        many(8)
        all_of(MONTH)
        assert task_counter.total(ALICE) == 0

    @pytest.mark.django_db(transaction=True)
    def test_stay_right_if_a_tally_moves_meanwhile(self) -> None:
        many(40)
        together(lambda: all_of(MONTH), *[lambda: task_counter.total(ALICE)] * 6)
        assert task_counter.total(ALICE) == 0


class TestBesideOthers:
    @pytest.mark.django_db(transaction=True)
    def test_two_purges_remove_everything_once(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 10
        many(48)
        for n in range(12):
            ended(f"t-{n}", context_id=f"c-{n % 3}")
        Context.objects.update(updated_at=timezone.now() - timedelta(days=40))
        done = together(*[lambda: all_of(MONTH)] * 3)
        assert sum(done, Removed()).tasks == 60
        assert sum(rows().values()) == 0, "no context is left between two chairs either"

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    def test_what_another_transaction_holds_is_left_out_without_waiting(self) -> None:
        kept, gone = ended("kept"), ended("gone", context_id="c-2")
        with transaction.atomic():
            assert event_log.lock_task(pk=kept)
            (done,) = together(lambda: all_of(MONTH))
        assert done.tasks == 1
        assert list(Task.objects.values_list("pk", flat=True)) == [kept]
        assert gone not in Task.objects.values_list("pk", flat=True)

    @pytest.mark.django_db(transaction=True)
    def test_a_task_at_work_says_what_it_has_to_say(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 5
        pens = [Pen(held(f"live-{n}", context_id="many-user:alice")) for n in range(4)]
        for pen in pens:
            aged(pen.run.task, 40)
        Context.objects.all().update(public_id="shared")
        many(50)

        def talk(pen: Pen) -> None:
            pen.begin("a", "0")
            for n in range(20):
                pen.add("a", str(n))
            pen.close("a", "end")
            pen.end()

        talks = [lambda pen=pen: talk(pen) for pen in pens]
        accepts = [lambda n=n: accepted(f"new-{n}", context_id="many-user:alice") for n in range(8)]
        together(lambda: all_of(MONTH), *talks, *accepts)
        assert Task.objects.count() == 12
        for pen in pens:
            assert [event.number for event in everything(pen.run.task)] == list(range(1, 25))
        assert Context.objects.filter(public_id="many-user:alice").exists()

    @pytest.mark.django_db(transaction=True)
    def test_a_message_to_a_task_that_goes_is_answered_one_way_or_the_other(self) -> None:
        for n in range(20):
            ended(f"task-{n}", context_id=f"c-{n}", dialect="v01")

        def answer(n: int) -> str:
            try:
                return str(reply(new(f"task-{n}", context_id="", reopens=True)).task)
            except Exception as fault:  # noqa: BLE001 - looked at below
                return type(fault).__name__

        results = together(lambda: all_of(MONTH), *[lambda n=n: answer(n) for n in range(20)])[1:]
        all_of(MONTH)  # what was answered at that moment was left to the next one
        missing = results.count("TaskNotFound")
        assert Task.objects.count() == 20 - missing
        assert all(text.isdecimal() or text == "TaskNotFound" for text in results)

    def test_a_cancelled_task_goes_when_its_time_has_come(self) -> None:
        key = accepted().task
        cancel(ALICE, "task-1")
        aged(key, 40)
        assert all_of(MONTH).tasks == 1

    @pytest.mark.thorough
    @pytest.mark.backend("stack")
    def test_looks_at_a_million_rows_by_their_key(self) -> None:
        many(2000, live=1)
        with connection.cursor() as cursor:
            cursor.execute("analyze a2a_tasks_task")
            cursor.execute("analyze a2a_tasks_event")
            cursor.execute("set enable_seqscan = on")
            cursor.execute("explain " + purge.LOGGED, [0, 1000])
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "Seq Scan" not in plan
        text = Task.objects.filter(pk__gt=0).order_by("pk")[:10].explain()
        assert "Seq Scan" not in text


def said(*arguments: str) -> str:
    """What the command says."""
    out = io.StringIO()
    call_command("purge", *arguments, stdout=out)
    return out.getvalue()


class Terminal(io.StringIO):
    """A screen."""

    def isatty(self) -> bool:
        return True


@alone
class TestTheCommand:
    def test_purges_by_the_settings(self, settings: Settings) -> None:
        settings.A2A_RETENTION_DAYS = 30.0
        ended()
        assert said() == "Gone: 1 tasks, 1 contexts, 10 rows in all\n"
        assert Task.objects.count() == 0

    def test_purges_what_it_is_told(self) -> None:
        ended("a", days=40)
        ended("b", days=20)
        ended("c", days=2)
        said("--older-than", "30", "--events-older-than", "10.5")
        assert list(Task.objects.order_by("pk").values_list("public_id", flat=True)) == ["b", "c"]
        assert Event.objects.values("task").distinct().count() == 1

    def test_counts_only_if_it_shall_not_remove(self) -> None:
        ended("a", days=40)
        ended("b", days=20)
        before = rows()
        text = said("--older-than", "30", "--events-older-than", "10", "--dry-run")
        assert rows() == before
        done = all_of(RetentionLimits.of(30, 10))
        assert text == f"Would go: {done.tasks} tasks, {done.rows - done.contexts} rows\n"

    def test_shows_on_a_terminal_how_far_it_is(self, settings: Settings) -> None:
        settings.A2A_PURGE_BATCH = 20
        many(20)
        screen = Terminal()
        call_command("purge", "--older-than", "30", stdout=screen, no_color=True)
        assert "\r4 tasks, 20 rows" in screen.getvalue()

    def test_removes_old_reports_of_usage_in_batches_unless_something_is_on_hold(
        self, settings: Settings
    ) -> None:
        settings.A2A_PURGE_BATCH, settings.A2A_USAGE_RETENTION_DAYS = 2, 30.0
        task = make_task()
        for days in (40, 50, 35, 20):
            add_usage(task, at=timezone.now() - timedelta(days=days))
        hold = lay(HoldKind.TENANT, "acme", "a lawsuit")
        said()
        assert Usage.objects.count() == 4
        release(hold.pk)
        said()
        assert Usage.objects.count() == 1

    def test_says_so_if_everything_is_kept(self) -> None:
        with pytest.raises(CommandError, match="A2A_RETENTION_DAYS"):
            said()

    @pytest.mark.parametrize("days", ["-1", "nan", "inf"])
    def test_refuses_what_are_no_days(self, days: str) -> None:
        with pytest.raises(CommandError):
            said(f"--older-than={days}")


@alone
class TestKeys:
    def test_are_forgotten_with_the_hours_in_portions(self, settings: Settings) -> None:
        settings.A2A_IDEMPOTENCY_HOURS = 24.0
        settings.A2A_PURGE_BATCH = 2
        task = ended(days=1)
        for n in range(5):
            key = Idempotency.objects.create(
                owner=ALICE.owner, agent="demo", name=f"key/{n}", task_id=task, number=1, run=1
            )
            if n:
                then = timezone.now() - timedelta(hours=25)
                Idempotency.objects.filter(pk=key.pk).update(created_at=then)
        assert [removed.rows for removed in purge.purge(RetentionLimits.from_settings())] == [2, 2]
        assert [key.name for key in Idempotency.objects.all()] == ["key/0"]
