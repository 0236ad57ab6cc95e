"""Calls of agents lock their tree from the root down, so that no two of them wait for each other."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.models import Delegation, Run, Task
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store.delegations import CallCompanion, CallTree
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.replies import reply
from tests.support.execution.waiting import eventually, somebody_waits_for_a_row
from tests.support.store.world import Pen, held, new

pytestmark = [pytest.mark.backend("stack"), pytest.mark.django_db(transaction=True)]


def continue_call(run: ClaimedRun) -> None:
    """Continue the child in the name of its parent's run."""
    wanted = WantedCall(
        agent="child", name="again", parts=(Part(text="x"),), task_id="child", seconds=9
    )
    companion = CallCompanion(run, wanted, CallTree(run.task, run.task_id, ("parent",)))
    try:
        reply(new("child", text="more", companions=(companion,)))
    finally:
        connection.close()


def test_a_call_that_continues_a_task_locks_its_caller_before_it() -> None:
    parent, child = held("parent"), held("child")
    Pen(child).end(TaskState.INPUT_REQUIRED)
    thread = threading.Thread(target=continue_call, args=[parent])
    with transaction.atomic():
        Task.objects.select_for_update(no_key=True).get(pk=parent.task)
        thread.start()
        eventually(somebody_waits_for_a_row)
        # Its own call, which has locked its root, locks it now.
        Task.objects.select_for_update(no_key=True, nowait=True).get(pk=child.task)
    thread.join(30)
    assert Delegation.objects.get().child_id == child.task
    assert Run.objects.filter(task=child.task).count() == 2
