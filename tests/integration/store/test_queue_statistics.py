"""After a burst of runs, PostgreSQL plans for many of them, and statements read few.

Claims read few in any case: without the agent in the order of its rows, one read the waiting runs of all agents.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from django.db import connection, transaction
from django.db.models import CharField, F, Value
from django.db.models.functions import Concat, Now

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import BEHIND, Run, RunStatus, Task
from a2a_tasks.models.run import PARKED
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import behind, parking, queue_statistics, runs
from a2a_tasks.store.backend import fair_queue, sessions
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.parking import Parking
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.replies import reply
from tests.support.store.copies import copy_worlds
from tests.support.store.reading import count_rows
from tests.support.store.world import Pen, accepted, claim, expire, new

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
#: Runs of the burst, and the most rows and index entries that a step may read. A claim of ten runs of many reads 400.
BURST, READ = 3000, 500
OTHER = OwnerScope("", "user:bob", "other")


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A session as those of the store, which prepare each statement at once and keep its plan."""
    monkeypatch.setattr(queue_statistics._Last, "ends", 0.0)
    connection.ensure_connection()
    connection.connection.prepare_threshold = 0
    with connection.cursor() as cursor:
        cursor.execute("; ".join(f"set {setting}" for setting in sessions.PLANNING))
    yield
    with (
        connection.cursor() as cursor
    ):  # other tests count the entries of indexes, also those of rows that went
        cursor.execute("truncate a2a_tasks_context cascade")
    connection.close()


def ended(count: int) -> None:
    """Runs of one caller that have ended, when PostgreSQL counts them."""
    accepted(quota_key="alice")
    copy_worlds(count)
    Run.objects.update(status=RunStatus.ENDED)
    name = Concat(Value("task-"), F("pk"), output_field=CharField())
    Task.objects.update(state=TaskState.COMPLETED, public_id=name)
    with connection.cursor() as cursor:
        cursor.execute("vacuum analyze")


def burst(count: int) -> None:
    """So many of them wait: in the queue, behind others, and parked."""
    first = Run.objects.earliest("pk").pk
    rows = Run.objects.filter(pk__lt=first + count).annotate(kind=F("pk") % 3)
    wait = {"status": RunStatus.QUEUED}
    rows.filter(kind=0).update(**wait, due_at=Now(), round=F("pk"))
    rows.filter(kind=1).update(**wait, round=BEHIND)
    rows.filter(kind=2).update(**wait, round=PARKED, due_at=Now() + datetime.timedelta(days=1))
    Task.objects.filter(runs__in=rows).update(state=TaskState.SUBMITTED)


def send(task: str, context: str = "", **changes: object) -> None:
    """Accept a message of another caller to another agent."""
    context_id = context or f"of-{task}"
    accepted(task, scope=OTHER, quota_key="bob", context_id=context_id, **changes)


def each_step(name: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is done with a few other runs, step by step; their tasks have this name and a number."""
    yield "send", partial(send, f"{name}1")
    yield "send to a conversation in order", partial(send, f"{name}2", ordered=True)
    yield "send another to it", partial(send, f"{name}3", f"of-{name}2", ordered=True)
    for number in (4, 5, 6):
        yield f"send number {number}", partial(send, f"{name}{number}")
    yield "list the agents", partial(fair_queue.list_waiting_agents, "agents")
    taken: list[ClaimedRun] = []
    yield "claim", lambda: taken.extend(claim(agents=["other"]))
    one, two, four, five, six = [run for run in taken if run.task_id.startswith(name)]
    yield "claim beside a full share", partial(claim, agents=["demo", "other"], full=["alice"])
    yield "claim what has no process", partial(claim, agents=["none"], orphans=True)
    for kind in (Quarantine.GROUP, Quarantine.PROCESS):
        yield f"claim suspects of {kind}", partial(claim, agents=["demo"], quarantine=kind)
    yield "claim of many", partial(claim, agents=["demo"])
    yield "heartbeat", partial(runs.heartbeat, [run.token for run in taken])
    yield "reply", lambda: reply(new(f"{name}1", scope=OTHER, context_id=f"of-{name}1"))
    yield "write", lambda: Pen(one).begin("a", "text")
    yield "end", lambda: Pen(one).end()
    yield "release", partial(behind.release, task=one.task)
    yield "end in order", lambda: Pen(two).end()
    yield "release in order", lambda: behind.release(context=Run.objects.get(pk=two.key).ordered_in)
    yield "hand back", partial(runs.hand_back, [four.token])
    yield "expire", partial(expire, five.key)
    yield "rescue", partial(runs.queue_again, max_attempts=3)
    yield "park", partial(parking.park, Parking(six, "sleep", 10_000_000_000.0))
    yield "wake", parking.wake
    yield "cancel", partial(cancel, OTHER, f"{name}4")
    yield "count a share", partial(runs.count_unfinished, "bob", 100)
    yield "fail", partial(runs.fail_unstarted_task, five.task, "It cannot start.")


def count_each(name: str) -> dict[str, int]:
    """The rows and index entries that each step reads."""
    read: dict[str, int] = {}
    with transaction.atomic():
        for step, do in each_step(name):
            before = count_rows(entries=True)
            do()
            read[step] = count_rows(entries=True) - before
    return read


def test_after_a_burst_each_step_of_another_run_reads_few_rows() -> None:
    ended(2 * BURST)
    count_each("early")  # prepared for an empty queue
    burst(BURST)
    assert queue_statistics.renew()
    assert {step: count for step, count in count_each("late").items() if count > READ} == {}


@pytest.mark.parametrize("waiting", [0, queue_statistics.MANY // 2])
def test_a_queue_is_not_counted_again_for_a_few_runs(waiting: int) -> None:
    ended(queue_statistics.MANY)
    burst(waiting)
    assert not queue_statistics.renew()


def test_a_queue_is_counted_once_and_tried_again_after_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended(BURST)
    burst(BURST)
    assert queue_statistics.renew()
    assert not queue_statistics.renew()
    monkeypatch.setattr(queue_statistics._Last, "ends", 0.0)
    assert not queue_statistics.renew(), "PostgreSQL knows of them"


def test_a_count_does_not_wait_for_who_changes_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    ended(BURST)
    burst(BURST)
    with contextlib.closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("begin; lock table a2a_tasks_run in share mode")
        assert queue_statistics.renew()
    monkeypatch.setattr(queue_statistics._Last, "ends", 0.0)
    assert queue_statistics.renew(), "it was left out"
