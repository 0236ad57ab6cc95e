"""A message to a task that exists: refused, queued behind, or resuming what waited for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from django.db import transaction

from a2a_tasks import pubsub
from a2a_tasks.models import Message, Run, RunStatus, Task
from a2a_tasks.protocol.errors import InvalidParams, TaskEnded, TaskNotFound, UnsupportedOperation
from a2a_tasks.protocol.forms import FORM, read_answer
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel, replies
from a2a_tasks.store.records import NewTask, RunEnd
from a2a_tasks.store.replies import reply
from tests.support.store.world import (
    ALICE,
    BOB,
    CHARLIE,
    Pen,
    accepted,
    contents,
    everything,
    found,
    held,
    new,
)

pytestmark = pytest.mark.django_db
members = msgspec.json.Decoder(dict[str, Any]).decode


def interrupted(state: TaskState = TaskState.INPUT_REQUIRED, memory: str = "") -> Pen:
    """A task whose run has asked something and ended."""
    pen = Pen(held())
    pen.state(TaskState.WORKING)
    pen.state(state, "what?", end=RunEnd(), memory=memory or None)
    return pen


def ask(type_: str) -> None:
    """Let the task wait with a form of one property, of this type."""
    form = {"type": "object", "properties": {"x": {"type": type_}}}
    question = {
        "messageId": f"question-{type_}",
        "role": "ROLE_AGENT",
        "extensions": [FORM],
        "parts": [{"data": {"form": form}}],
    }
    Task.objects.update(status_message=msgspec.json.encode(question).decode())


class TestForms:
    """An answer is compared with the form while nothing is locked; under the lock the form is still the same."""

    def test_the_comparison_is_outside_of_the_transaction(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outside = len(transaction.get_connection().savepoint_ids)
        depths = []

        def read(*args: Any) -> Any:
            depths.append(len(transaction.get_connection().savepoint_ids))
            return read_answer(*args)

        monkeypatch.setattr(replies, "read_answer", read)
        interrupted()
        ask("string")
        assert reply(new(text="Rome")).view.status.state is TaskState.WORKING
        assert depths == [outside]

    def test_another_question_meanwhile_is_the_one_that_the_answer_must_fit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = []

        def read(form: Any, parts: Any) -> Any:
            asked.append(form["properties"]["x"]["type"])
            found = read_answer(form, parts)
            ask("integer")
            return found

        monkeypatch.setattr(replies, "read_answer", read)
        interrupted()
        ask("string")
        before = contents(ALICE.owner)
        with pytest.raises(InvalidParams):
            reply(new(text="Rome"))
        assert asked == ["string", "integer"]
        assert Task.objects.get().state == TaskState.INPUT_REQUIRED
        assert len(contents(ALICE.owner)) == len(before)


class TestRefusals:
    def refused(self, new_: NewTask, error: type[Exception]) -> None:
        """It raises, and nothing changes."""
        before = contents(ALICE.owner)
        with pytest.raises(error):
            reply(new_)
        assert contents(ALICE.owner) == before

    def test_a_missing_task_is_not_found(self) -> None:
        self.refused(new("task-1"), TaskNotFound)

    def test_a_task_of_somebody_else_is_not_found(self) -> None:
        interrupted()
        self.refused(new(scope=BOB), TaskNotFound)
        self.refused(new(scope=CHARLIE), TaskNotFound)

    def test_what_is_not_shown_to_clients_is_not_found(self) -> None:
        accepted(is_task=False)
        self.refused(new(), TaskNotFound)

    def test_another_context_is_a_bad_parameter(self) -> None:
        interrupted()
        self.refused(new(context_id="context-2"), InvalidParams)

    @pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.REJECTED])
    def test_an_ended_task_takes_no_message(self, state: TaskState) -> None:
        Pen(held()).end(state)
        self.refused(new(), UnsupportedOperation)

    def test_a_cancelled_task_takes_no_message(self) -> None:
        accepted()
        cancel.cancel(ALICE, "task-1")
        self.refused(new(), UnsupportedOperation)


class TestResuming:
    @pytest.mark.parametrize("context_id", ["", "context-1"], ids=["inferred", "said"])
    def test_the_message_is_kept_in_the_context_of_its_task(self, context_id: str) -> None:
        """R-105."""
        interrupted()
        result = reply(new(context_id=context_id, text="this", held=True))
        assert result.claimed_run is not None
        *_, kept = Message.objects.order_by("number").values_list("body", flat=True)
        seen = list(result.view.history or ())
        shown = [kept.encode(), result.claimed_run.input.encode(), *seen[-1:]]
        assert [members(text)["contextId"] for text in shown] == ["context-1"] * 3

    @pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
    def test_an_interrupted_task_works_again_from_the_message_on(self, state: TaskState) -> None:
        pen = interrupted(state)
        result = reply(new(text="this"))
        events = everything(pen.run.task)[3:]
        assert [(event.kind, event.state, event.run) for event in events] == [
            (EventKind.INPUT, None, None),
            (EventKind.STATUS, TaskState.WORKING, None),
        ]
        assert result.number == 5
        assert result.view == found().view
        assert found().state is TaskState.WORKING

    def test_with_a_hold_the_run_is_ours_with_all_it_needs(self) -> None:
        interrupted(memory='{"asked":1}')
        result = reply(new(text="this", held=True, token="mine"))
        given = result.claimed_run
        assert given is not None
        assert (given.token, given.attempt, given.input_number, given.memory) == (
            "mine",
            1,
            4,
            '{"asked":1}',
        )
        assert given.state is TaskState.WORKING
        assert given.last_event == 5
        assert Pen(given).end() == 6

    def test_without_a_hold_the_run_is_queued_and_rings(self) -> None:
        interrupted()
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            result = reply(new(text="this"))
        assert Run.objects.get(pk=result.run).status == RunStatus.QUEUED
        assert pubsub.RunQueued("agents") in hints
        (heard,) = [hint for hint in hints if isinstance(hint, pubsub.Committed)]
        assert [event.number for event in heard.events] == [4, 5]

    def test_an_empty_context_means_the_tasks_own(self) -> None:
        interrupted()
        assert reply(new(context_id="")).view.context_id == "context-1"

    def test_the_run_knows_which_artifacts_there_are(self) -> None:
        pen = Pen(held())
        pen.begin("a", "1", position=0)
        pen.begin("b", "1", position=1)
        pen.state(TaskState.INPUT_REQUIRED, end=RunEnd(), closed=[0])
        given = reply(new(held=True)).claimed_run
        assert given is not None
        assert given.artifacts == (("a", 0, False), ("b", 1, True))


class TestQueueing:
    def test_a_message_to_a_working_task_is_recorded_and_its_run_waits(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.WORKING)
        result = reply(new(text="and this", held=True))
        assert result.claimed_run is None
        assert Run.objects.get(pk=result.run).status == RunStatus.QUEUED
        assert Message.objects.get(number=3).task_id == pen.run.task
        assert pen.state(TaskState.WORKING) == 4, "the first run still holds the task"

    def test_a_message_to_a_submitted_task_waits_behind_the_first(self) -> None:
        accepted()
        result = reply(new(text="and this", held=True))
        assert result.claimed_run is None
        assert Task.objects.get().state == TaskState.SUBMITTED
        assert Run.objects.filter(status=RunStatus.QUEUED).count() == 2


class TestBeginningAnew:
    """Decision 9: what becomes of a message to an ended task that may be begun anew."""

    @pytest.mark.parametrize("made", ["s0", "v00", "v01"])
    def test_makes_a_successor_under_its_id(self, made: str) -> None:
        """In its context, with its memory."""
        pen = Pen(held(dialect=made))
        pen.end(memory="kept")
        ended = found()
        result = reply(new(context_id="", text="again", held=True, reopens=True))
        assert result.claimed_run is not None
        assert (result.claimed_run.memory, result.claimed_run.task_id) == ("kept", "task-1")
        again, row = found(), Task.objects.get(pk=result.task)
        assert (again.task, again.state) == (result.task, TaskState.SUBMITTED)
        assert again.view.context_id == ended.view.context_id
        assert row.predecessor_id == ended.task == pen.run.task
        before = members(again.view.metadata or b"{}")["predecessorTaskId"]
        assert found(before).view == msgspec.structs.replace(
            ended.view, id=before, history=found(before).view.history
        )
        assert [members(text)["taskId"] for text in found(before).view.history or ()] == [before]

    @pytest.mark.parametrize("made", ["v02", "v03", "dr", "v10"])
    def test_is_not_for_a_task_that_the_host_had_named(self, made: str) -> None:
        Pen(held(dialect=made)).end()
        before = contents(ALICE.owner)
        with pytest.raises(TaskEnded):
            reply(new(reopens=True))
        assert contents(ALICE.owner) == before
