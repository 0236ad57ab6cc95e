"""After a burst of runs, statements read few of them, also while the planner does not know of the burst.

A host whose queue is empty most of the time has statistics of an empty queue. They change with the next ANALYZE, and of a
large table PostgreSQL makes that after many changes.
"""

from __future__ import annotations

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
from a2a_tasks.store import behind, parking, runs
from a2a_tasks.store.backend import fair_queue
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.parking import Parking
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.replies import reply
from tests.support.store.copies import copy_worlds
from tests.support.store.reading import count_rows
from tests.support.store.world import Pen, accepted, claim, expire, new

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
#: Runs of the burst, and the most rows and index entries that a statement may read: two for each of a claim's candidates.
BURST, READ = 3000, 500
OTHER = OwnerScope("", "user:bob", "other")


@pytest.fixture(params=["force_custom_plan", "force_generic_plan"])
def planned(request: pytest.FixtureRequest) -> Iterator[str]:
    """How statements are planned: for their values, or for any values, as those that are prepared."""
    with connection.cursor() as cursor:
        cursor.execute(f"set plan_cache_mode = {request.param}")
        yield request.param
        cursor.execute("reset plan_cache_mode")


@pytest.fixture
def burst(planned: str) -> None:
    """Runs of one caller that have ended when the planner looks. Then they wait in the queue, behind others, and parked."""
    accepted(quota_key="alice")
    copy_worlds(2 * BURST)
    Run.objects.update(status=RunStatus.ENDED)
    Task.objects.update(
        state=TaskState.COMPLETED,
        public_id=Concat(Value("task-"), F("pk"), output_field=CharField()),
    )
    with connection.cursor() as cursor:
        cursor.execute("vacuum analyze")
    first = Run.objects.earliest("pk").pk
    rows = Run.objects.filter(pk__lt=first + BURST).annotate(kind=F("pk") % 3)
    wait = {"status": RunStatus.QUEUED}
    rows.filter(kind=0).update(**wait, due_at=Now(), round=F("pk"))
    rows.filter(kind=1).update(**wait, round=BEHIND)
    rows.filter(kind=2).update(**wait, round=PARKED, due_at=Now() + datetime.timedelta(days=1))
    Task.objects.filter(runs__in=rows).update(state=TaskState.SUBMITTED)


def send(task: str, **changes: object) -> None:
    """Accept a message of another caller to another agent."""
    accepted(task, scope=OTHER, quota_key="bob", context_id=f"of-{task}", **changes)


def each_step() -> Iterator[tuple[str, Callable[[], object]]]:
    """What is done with a few other runs, step by step."""
    yield "send", lambda: send("one")
    yield "send to a conversation in order", lambda: send("two", ordered=True)
    yield (
        "send another to it",
        lambda: accepted("three", scope=OTHER, quota_key="bob", context_id="of-two", ordered=True),
    )
    for task in ("four", "five", "six"):
        yield f"send {task}", partial(send, task)
    yield "list the agents", lambda: fair_queue.list_waiting_agents("agents")
    taken: list[ClaimedRun] = []
    yield "claim", lambda: taken.extend(claim(agents=["other"]))
    one, two, four, five, six = taken
    yield (
        "claim beside callers whose share is full",
        lambda: claim(agents=["demo", "other"], full=["alice"]),
    )
    yield "claim what has no process", lambda: claim(agents=["none"], orphans=True)
    for kind in (Quarantine.GROUP, Quarantine.PROCESS):
        yield f"claim suspects of {kind}", partial(claim, agents=["demo"], quarantine=kind)
    yield "claim of many", lambda: claim(agents=["demo"])
    yield "heartbeat", lambda: runs.heartbeat([run.token for run in taken])
    yield "reply", lambda: reply(new("one", scope=OTHER, context_id="of-one"))
    yield "write", lambda: Pen(one).begin("a", "text")
    yield "end", lambda: Pen(one).end()
    yield "release", lambda: behind.release(task=one.task)
    yield "end in order", lambda: Pen(two).end()
    yield "release in order", lambda: behind.release(context=Run.objects.get(pk=two.key).ordered_in)
    yield "hand back", lambda: runs.hand_back([four.token])
    yield "expire", lambda: expire(five.key)
    yield "rescue", lambda: runs.queue_again(max_attempts=3)
    yield "park", lambda: parking.park(Parking(six, "sleep", 10_000_000_000.0))
    yield "wake", parking.wake
    yield "cancel", lambda: cancel(OTHER, "four")
    yield "count a share", lambda: runs.count_unfinished("bob", 100)
    yield "fail", lambda: runs.fail_unstarted_task(five.task, "It cannot start.")


@pytest.mark.usefixtures("burst")
def test_each_step_of_another_run_reads_few_rows(planned: str) -> None:
    read: dict[str, int] = {}
    with transaction.atomic():
        for name, do in each_step():
            before = count_rows(entries=True)
            do()
            read[name] = count_rows(entries=True) - before
    if planned == "force_generic_plan":
        del read["wake"]  # it is Django's own, which is never prepared
    assert {name: count for name, count in read.items() if count > READ} == {}
