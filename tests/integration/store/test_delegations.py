"""The call of an agent is accepted with its delegation and its step in one transaction, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Delegation, Step, Task
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import call_trees, parking, replies, runs
from a2a_tasks.store.accept import accept
from a2a_tasks.store.delegations import CallBegun, CallCompanion, find_tree, list_relayed
from a2a_tasks.store.parking import Parking
from a2a_tasks.store.records import ClaimedRun, LeaseLost
from tests.support.store.world import Pen, claim, expire, held, new

pytestmark = pytest.mark.django_db
WANTED = WantedCall(agent="billing", name="call billing", parts=(Part(text="x"),), seconds=60.0)


def call(run: ClaimedRun, child: str, *companions: Callable[[int], None]) -> None:
    """Let the agent of a run call another one, whose task gets this id."""
    begins = CallCompanion(run, WANTED, find_tree(run))
    scope = OwnerScope("", "user:alice", WANTED.agent)
    accept(new(child, scope=scope, context_id=child, companions=(begins, *companions)))


def rows() -> tuple[int, int, int]:
    """How many tasks, delegations and steps there are."""
    return Task.objects.count(), Delegation.objects.count(), Step.objects.count()


def test_both_are_there_before_the_task_is_accepted() -> None:
    seen = list[tuple[int, int, int]]()
    call(held(), "child", lambda _: seen.append(rows()))
    assert seen == [rows()] == [(2, 1, 1)]


def test_none_is_there_if_the_task_cannot_be_accepted() -> None:
    run = held()

    def fail(_: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(run, "child", fail)
    assert rows() == (1, 0, 0)


def test_a_run_that_has_lost_its_task_calls_nobody() -> None:
    run = held()
    expire(run.key)
    assert runs.reclaim_expired(max_attempts=3) == 1
    with pytest.raises(LeaseLost):
        call(run, "child")
    assert rows() == (1, 0, 0)


def test_a_call_that_has_begun_begins_no_other_task() -> None:
    run = held()
    call(run, "child")
    with pytest.raises(CallBegun, match='"task":"child"'):
        call(run, "other")
    assert rows() == (2, 1, 1)


def test_a_caller_waits_on_while_its_client_is_asked() -> None:
    run = held()
    call(run, "child")
    Task.objects.filter(public_id="child").update(state=TaskState.INPUT_REQUIRED)
    assert parking.park(Parking(run, "call billing: answer", 10_000_000_000.0, calls=[WANTED.name]))
    assert parking.wake_callers([run.task]) == 0
    Task.objects.filter(public_id="child").update(state=TaskState.COMPLETED)
    assert parking.wake_callers([run.task]) == 1


def test_a_question_stands_at_the_caller_until_the_answer_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = held()
    call(run, "child")
    assert parking.park(Parking(run, "call billing: answer", 10_000_000_000.0, calls=[WANTED.name]))
    (child,) = claim(agents=[WANTED.agent])
    Pen(child).end(TaskState.INPUT_REQUIRED, text="Which account?")
    call_trees.settle(child.task)
    caller = Task.objects.get(pk=run.task)
    stands = {"before": list_relayed(caller).exists()}
    monkeypatch.setattr(
        replies, "failpoint", lambda point: stands.update({point: list_relayed(caller).exists()})
    )
    replies.reply(new("task-1", text="The first.", context_id=""))
    assert stands == {"before": True, "call.answering": True, "call.answered": False}
