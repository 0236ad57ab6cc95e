"""Cancelling is final at once, for everybody."""

from __future__ import annotations

import pytest

from a2a_tasks import pubsub
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel
from a2a_tasks.store.records import RunEnd
from a2a_tasks.store.replies import reply
from a2a_tasks.store.tasks import find
from tests.support.store.world import (
    ALICE,
    BOB,
    Pen,
    accepted,
    contents,
    everything,
    found,
    held,
    new,
)

pytestmark = pytest.mark.django_db


class TestCancel:
    def test_the_task_is_cancelled_and_taken_from_its_run(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.WORKING)
        view = cancel.cancel(ALICE, "task-1")
        assert view.status.state is TaskState.CANCELED
        assert view.status == found().view.status
        run = Run.objects.get()
        assert (run.status, run.token, run.lease_until) == (RunStatus.CANCELED, "", None)
        assert Task.objects.get().run_token == ""
        assert [event.state for event in everything(pen.run.task)][-1] is TaskState.CANCELED

    def test_it_tells_the_followers_and_every_run(self) -> None:
        pen = Pen(held())
        waiting = reply(new(text="and?"))
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            cancel.cancel(ALICE, "task-1")
        assert isinstance(hints[0], pubsub.Committed)
        assert hints[0].last == 3
        assert set(hints[1:]) == {pubsub.Stop(pen.run.key), pubsub.Stop(waiting.run)}

    def test_runs_that_waited_are_cancelled_too(self) -> None:
        accepted()
        reply(new(text="and?"))
        cancel.cancel(ALICE, "task-1")
        assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.CANCELED}

    def test_a_task_that_waits_for_its_client_can_be_cancelled(self) -> None:
        Pen(held()).state(TaskState.INPUT_REQUIRED, end=RunEnd())
        assert cancel.cancel(ALICE, "task-1").status.state is TaskState.CANCELED
        assert Run.objects.get().status == RunStatus.ENDED

    @pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.REJECTED])
    def test_an_ended_task_cannot_be_cancelled(self, state: TaskState) -> None:
        Pen(held()).end(state)
        before = contents(ALICE.owner)
        with pytest.raises(TaskNotCancelable):
            cancel.cancel(ALICE, "task-1")
        assert contents(ALICE.owner) == before

    def test_it_happens_once(self) -> None:
        accepted()
        cancel.cancel(ALICE, "task-1")
        with pytest.raises(TaskNotCancelable):
            cancel.cancel(ALICE, "task-1")

    def test_other_peoples_tasks_do_not_exist(self) -> None:
        accepted()
        with pytest.raises(TaskNotFound):
            cancel.cancel(BOB, "task-1")
        with pytest.raises(TaskNotFound):
            cancel.cancel(ALICE, "no\x00such")
        assert Task.objects.get().state == TaskState.SUBMITTED

    def test_an_operator_cancels_by_key(self) -> None:
        result = accepted()
        assert cancel.cancel_by_key(result.task).status.state is TaskState.CANCELED
        with pytest.raises(TaskNotFound):
            cancel.cancel_by_key(result.task + 1)

    def test_what_is_cancelled_before_its_first_word_is_a_task_its_client_can_read(self) -> None:
        result = accepted(
            is_task=False
        )  # the client is answered with this task: no Message can come any more
        cancel.cancel_by_key(result.task)
        read = find(ALICE, "task-1")
        assert read is not None
        assert read.state is TaskState.CANCELED
