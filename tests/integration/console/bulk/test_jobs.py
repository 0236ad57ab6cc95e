"""Bulk jobs go on until all of their tasks are done, whatever happens to the workers, and do nothing twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import OperationalError, connection
from django.db.models.functions import Now

from a2a_console.bulk import actions, jobs
from a2a_console.bulk.actions import Choice
from a2a_console.bulk.jobs import begin, is_due, list_results, stop, work
from a2a_console.rerun.run_again import run_again
from a2a_console.search.selection import Selection, page
from a2a_tasks import process_lifetime
from a2a_tasks.execution.housekeeping import DUTIES
from a2a_tasks.models import AuditEntry, BulkJob, BulkResult, BulkState, Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import writability
from tests.integration.store.test_writability import ALL, as_role, session
from tests.support.console.admin.rows import add_run, make_task

pytestmark = pytest.mark.django_db

CANCELED = TaskState.CANCELED


class Killed(BaseException):
    """The end of a worker."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tasks are a slice, and the process has seen no job yet."""
    monkeypatch.setattr(jobs, "SLICE", 3)
    for name in ("_strange", "_refused", "_still_held"):
        monkeypatch.setattr(jobs, name, type(getattr(jobs, name))())


@pytest.fixture
def root() -> User:
    """A user who may do anything."""
    return User.objects.create_superuser("root")


def job_of(user: User, action: str = "cancel", **wanted: Any) -> BulkJob:
    count = Task.objects.count()
    choice = Choice(selection=Selection(**wanted), found=count)
    return begin(action, choice, user=user, nonce=f"n-{BulkJob.objects.count()}")


def dies_at(
    monkeypatch: pytest.MonkeyPatch, number: int, fault: Callable[[], BaseException]
) -> None:
    """Let the cancellation of one task fail; later ones work again."""
    cancel, seen = cancel_task.cancel_by_key, []

    async def act(task: int, *, by: str) -> None:
        seen.append(task)
        await cancel(task, by=by)
        if len(seen) == number:
            raise fault()

    monkeypatch.setattr(cancel_task, "cancel_by_key", act)


def cannot_give_up(monkeypatch: pytest.MonkeyPatch, other: Any) -> None:
    """Let the database be away at the first task, and the rows of all jobs be locked by another session from then on."""

    def lock() -> Exception:
        other.execute("select from a2a_tasks_bulkjob for update")
        return Overloaded()

    dies_at(monkeypatch, 1, lock)


def states() -> set[str]:
    return set(Task.objects.values_list("state", flat=True))


def counts(job: BulkJob) -> tuple[str, int, int]:
    job.refresh_from_db()
    return job.state, job.done, job.failed


def test_all_tasks_are_done_in_slices(root: User) -> None:
    for number in range(10):
        make_task(f"t-{number}")
    make_task("ended", state=TaskState.COMPLETED)
    job = job_of(root)
    work()
    assert counts(job) == (BulkState.ENDED, 10, 0)
    assert job.ended_at is not None
    assert job.held_until is None
    assert states() == {CANCELED, TaskState.COMPLETED}
    assert AuditEntry.objects.filter(action="task.cancel").count() == 10


def test_a_job_whose_worker_was_killed_goes_on_with_its_last_slice(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [make_task(f"t-{number}") for number in range(7)]
    job = job_of(root)
    dies_at(monkeypatch, 5, Killed)
    with pytest.raises(Killed):
        work()
    assert counts(job)[1:] == (3, 0), "the second slice was not counted"
    BulkJob.objects.update(held_until=Now() + jobs.LEASE)
    work()
    assert counts(job)[1:] == (3, 0), "it may still be alive"
    BulkJob.objects.update(held_until=Now() - jobs.LEASE)
    work()
    assert counts(job) == (BulkState.ENDED, 7, 0)
    assert AuditEntry.objects.filter(action="task.cancel").count() == 7
    assert BulkResult.objects.filter(job=job, ok=True).count() == len(tasks)


def test_a_task_is_run_again_once_though_its_worker_was_killed(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(make_task("one", state=TaskState.FAILED))
    job = job_of(root, "run-again")

    async def dying(*args: Any, **options: Any) -> None:
        await run_again(*args, **options)
        raise Killed

    monkeypatch.setattr(actions, "run_again", dying)
    with pytest.raises(Killed):
        work()
    monkeypatch.setattr(actions, "run_again", run_again)
    work()
    assert counts(job) == (BulkState.ENDED, 1, 0)
    assert Task.objects.count() == 2


def test_a_job_waits_while_the_database_is_away(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        make_task(f"t-{number}")
    job = job_of(root)
    dies_at(monkeypatch, 2, Overloaded)
    work()
    assert counts(job) == (BulkState.RUNNING, 0, 0)
    work()
    assert counts(job) == (BulkState.ENDED, 3, 0)


class TestARightThatIsMissing:
    """For a while: an outage, which every task of a job outlasts."""

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("table", ["task", "run", "auditentry", "event", "bulkresult"])
    def test_fails_no_task(
        self,
        root: User,
        table: str,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(writability._refusal, "lasts", False)
        for number in range(3):
            add_run(make_task(f"t-{number}"))
        job = job_of(root)
        with as_role(*ALL, f"revoke insert, update on a2a_tasks_{table} from"):
            connection.close()
            for _ in range(2):
                work()
            assert counts(job) == (BulkState.RUNNING, 0, 0)
            assert {record.levelname for record in caplog.records} <= {"WARNING", "INFO"}
        connection.close()
        work()
        assert counts(job) == (BulkState.ENDED, 3, 0)

    def test_outside_the_store_fails_none_either(
        self, root: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_task("t-1")
        job = job_of(root)
        dies_at(monkeypatch, 1, lambda: OperationalError("the connection is closed"))
        work()
        assert counts(job) == (BulkState.RUNNING, 0, 0)
        work()
        assert counts(job) == (BulkState.ENDED, 1, 0)


def test_a_job_that_waits_for_room_in_the_queue_does_not_hold_up_the_one_that_makes_room(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(make_task("failed", state=TaskState.FAILED))
    add_run(make_task("waits"))
    again, cancel = job_of(root, "run-again"), job_of(root, "cancel")

    async def refuse(*_: Any, **__: Any) -> None:
        raise Overloaded

    monkeypatch.setattr(actions, "run_again", refuse)
    work()
    assert counts(again) == (BulkState.RUNNING, 0, 0)
    assert counts(cancel) == (BulkState.ENDED, 1, 0)


class TestATaskThatTheDatabaseRefuses:
    """While it does others, such as one whose row is locked or damaged."""

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_is_one_that_is_not_done_after_a_few_tries(self, root: User) -> None:
        for number in range(4):
            make_task(f"t-{number}")
        job = job_of(root)
        with refusing("t-2"):
            for _ in range(jobs.TRIES - 1):
                work()
            assert counts(job) == (BulkState.RUNNING, 0, 0)
            assert Task.objects.filter(state=CANCELED).count() == 2, "the others of the slice"
            work()
        assert counts(job) == (BulkState.ENDED, 3, 1)
        (row,) = BulkResult.objects.filter(ok=False)
        assert row.outcome == "the database refused it 5 times: this row is damaged"
        assert not jobs._refused

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_is_done_if_the_database_takes_it_again(self, root: User) -> None:
        make_task("t-2")
        job = job_of(root)
        with refusing("t-2"):
            work()
        work()
        assert counts(job) == (BulkState.ENDED, 1, 0)

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("how", [stop, BulkJob.delete, "counted elsewhere"])
    def test_is_forgotten_when_its_job_ends_elsewhere(self, root: User, how: Any) -> None:
        make_task("t-2")
        job = job_of(root)
        with refusing("t-2"):
            work()
        assert jobs._refused
        if callable(how):
            how(job)
        else:
            BulkJob.objects.update(counted=BulkResult.objects.get().pk)
        work()
        assert not jobs._refused


@contextlib.contextmanager
def refusing(public_id: str) -> Iterator[None]:
    """The database fails each change of this task."""
    with connection.cursor() as cursor:
        cursor.execute(
            "create function refuse() returns trigger language plpgsql as"
            " $$begin raise 'this row is damaged' using errcode = 'XX001'; end$$"
        )
        cursor.execute(
            "create trigger refuse before update on a2a_tasks_task for each row"
            f" when (new.public_id = '{public_id}') execute function refuse()"
        )
        try:
            yield
        finally:
            connection.close()
            with connection.cursor() as again:
                again.execute("drop function refuse cascade")


class TestAJobThatAWorkerHolds:
    """For a minute, and longer while the worker is at work."""

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_goes_on_at_once_after_an_outage_in_which_it_could_not_be_given_up(
        self, root: User, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_DATABASE_SECONDS = 0.5
        make_task()
        job = job_of(root)
        connection.close()
        with session() as other, other.transaction():
            cannot_give_up(monkeypatch, other)
            work()
        assert BulkJob.objects.get().held_until is not None
        work()
        assert counts(job) == (BulkState.ENDED, 1, 0)
        assert not jobs._still_held

    def test_stays_that_of_the_worker_that_took_it_when_a_frozen_one_comes_back(
        self, root: User
    ) -> None:
        make_task()
        job_of(root)
        frozen = jobs._claim(set())
        assert frozen
        BulkJob.objects.update(held_until=Now() - jobs.LEASE)
        other = jobs._claim(set())
        assert other
        assert not jobs._do_slice(frozen)
        jobs._give_up(frozen.pk, frozen.held_until)
        assert BulkJob.objects.get().held_until == other.held_until
        assert jobs._do_slice(other)

    def test_does_not_look_for_tasks_once_more_when_a_frozen_worker_comes_back(
        self, root: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_task("t-1", state=TaskState.FAILED)
        job_of(root, "run-again")
        frozen = jobs._claim(set())
        assert frozen

        def freeze(*args: Any, **options: Any) -> Any:
            found = page(*args, **options)
            if BulkJob.objects.get().before != 1:
                BulkJob.objects.update(held_until=Now() - jobs.LEASE, before=1, counted=0)
                assert jobs._claim(set())
            return found

        monkeypatch.setattr(jobs, "page", freeze)
        jobs._do_slice(frozen)
        assert BulkJob.objects.get().before == 1
        assert not BulkResult.objects.exists()

    def test_is_held_on_while_its_tasks_take_long(
        self, root: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "LEASE", timedelta())
        for number in range(2):
            make_task(f"t-{number}")
        job_of(root)
        mine = jobs._claim(set())
        assert mine
        first = mine.held_until
        assert jobs._do_slice(mine)
        assert mine.held_until
        assert first
        assert mine.held_until > first

    def test_is_free_as_soon_as_the_process_is_to_end(
        self, root: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(3):
            make_task(f"t-{number}")
        job = job_of(root)
        cancel = cancel_task.cancel_by_key

        async def drain(task: int, *, by: str) -> None:
            await cancel(task, by=by)
            monkeypatch.setattr(process_lifetime, "is_draining", lambda: True)

        monkeypatch.setattr(cancel_task, "cancel_by_key", drain)
        work()
        assert Task.objects.filter(state=CANCELED).count() == 1
        assert BulkJob.objects.get().held_until is None
        monkeypatch.undo()
        work()
        assert counts(job) == (BulkState.ENDED, 3, 0)

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_holds_up_no_other_while_its_row_is_locked(self, root: User, settings: Any) -> None:
        settings.A2A_DATABASE_SECONDS = 0.5
        make_task("t-1")
        locked, other = job_of(root), job_of(root)
        connection.close()
        with session() as psql, psql.transaction():
            psql.execute("select from a2a_tasks_bulkjob where id = %s for update", [locked.pk])
            work()
            assert counts(locked)[0] == BulkState.QUEUED
            assert counts(other) == (BulkState.ENDED, 1, 0)
        work()
        assert counts(locked)[0] == BulkState.ENDED

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_holds_up_no_other_while_it_cannot_be_given_up(
        self, root: User, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_DATABASE_SECONDS = 0.5
        make_task("t-1")
        locked = job_of(root)
        connection.close()
        with session() as psql, psql.transaction():
            cannot_give_up(monkeypatch, psql)
            work()
            make_task("t-2")
            other = job_of(root)
            work()
            assert counts(other)[0] == BulkState.ENDED
        work()
        assert counts(locked)[0] == BulkState.ENDED


class TestAJobOfAnotherRelease:
    """After the host went back to an earlier one, say."""

    def test_holds_up_no_other(self, root: User) -> None:
        make_task("t-1")
        unknown, job = job_of(root, "unknown"), job_of(root)
        work()
        assert counts(unknown) == (BulkState.QUEUED, 0, 0)
        assert counts(job) == (BulkState.ENDED, 1, 0)

    def test_holds_up_no_other_however_many_there_are(self, root: User) -> None:
        for number in range(12):
            begin("unknown", Choice(selection=Selection()), user=root, nonce=f"u-{number}")
        make_task("t-1")
        job = job_of(root)
        work()
        assert counts(job) == (BulkState.ENDED, 1, 0)

    def test_is_told_of_once(self, root: User, caplog: pytest.LogCaptureFixture) -> None:
        job = job_of(root, "unknown")
        work()
        work()
        (line,) = [record for record in caplog.records if record.name == jobs.__name__]
        assert f"job {job.pk} waits" in line.getMessage()
        assert "'unknown'" in line.getMessage()
        assert not line.exc_info
        assert not is_due()

    @pytest.mark.parametrize("choice", ["", "{}", "7"])
    def test_does_nothing_if_its_tasks_cannot_be_read(self, root: User, choice: str) -> None:
        make_task("t-1")
        job = job_of(root)
        BulkJob.objects.update(choice=choice)
        work()
        assert counts(job) == (BulkState.QUEUED, 0, 0)

    @pytest.mark.parametrize("path", [(), ("selection",)])
    def test_leaves_alone_what_a_condition_would_exclude_that_is_unknown_here(
        self, root: User, path: tuple[str, ...]
    ) -> None:
        make_task("t-1")
        job = job_of(root)
        choice = json.loads(job.choice)
        (choice[path[0]] if path else choice)["colour"] = "red"
        BulkJob.objects.update(choice=json.dumps(choice))
        work()
        assert counts(job) == (BulkState.QUEUED, 0, 0)
        assert states() == {TaskState.SUBMITTED}

    @pytest.mark.parametrize("wanted", [{"mark": "red"}, {"stuck": "asleep"}])
    def test_is_not_over_because_nothing_here_matches_a_condition_that_is_unknown(
        self, root: User, wanted: dict[str, str]
    ) -> None:
        job = job_of(root, **wanted)
        work()
        assert counts(job) == (BulkState.QUEUED, 0, 0)

    def test_is_removed_a_month_after_it_was_stopped(self, root: User) -> None:
        job = job_of(root, "unknown")
        work()
        stop(job)
        BulkJob.objects.update(created_at=Now() - 2 * jobs.KEPT)
        assert is_due()
        work()
        assert not BulkJob.objects.exists()


def test_a_fault_of_the_host_fails_one_task(root: User, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task("t-1")
    make_task("t-2")
    job = job_of(root)
    dies_at(monkeypatch, 2, lambda: ZeroDivisionError("secret"))
    work()
    assert counts(job) == (BulkState.ENDED, 1, 1)
    assert f"{task.pk},t-1,False,the host failed: ZeroDivisionError" in "".join(list_results(job))


def test_two_workers_do_not_count_a_slice_twice(root: User) -> None:
    make_task("t-1")
    job = job_of(root)
    first, second = (BulkJob.objects.get() for _ in range(2))
    BulkJob.objects.update(state=BulkState.RUNNING)
    assert jobs._do_slice(first)
    second.held_until = first.held_until
    assert not jobs._count(second, list(BulkResult.objects.all()))
    assert counts(job)[1:] == (1, 0)


def test_only_tasks_that_its_user_sees_are_found() -> None:
    for tenant in ("acme", "globex"):
        Task.objects.filter(pk=make_task(tenant).pk).update(tenant=tenant)
    bob = User.objects.create_user("bob", is_staff=True)
    bob.user_permissions.set(Permission.objects.filter(codename="change_task"))
    bob.groups.add(Group.objects.create(name="tenant:acme"))
    job = job_of(bob)
    work()
    assert counts(job)[1:] == (1, 0)
    assert Task.objects.get(tenant="globex").state == TaskState.SUBMITTED


def test_a_job_stops_when_its_user_may_no_longer(root: User) -> None:
    make_task()
    job = job_of(root)
    User.objects.update(is_active=False)
    work()
    assert counts(job) == (BulkState.STOPPED, 0, 0)
    assert states() == {TaskState.SUBMITTED}


def test_results_are_removed_after_a_month(root: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "REMOVED", 2)
    for number in range(3):
        make_task(f"t-{number}")
    job_of(root)
    work()
    BulkJob.objects.update(created_at=Now() - jobs.KEPT)
    for _ in range(3):
        work()
    assert not BulkResult.objects.exists()
    assert not BulkJob.objects.exists()


def test_every_process_with_duties_works_on_jobs() -> None:
    assert (is_due, work) in DUTIES
    assert not is_due()
