"""The successor of an ended task: whatever the length of the log, its texts move in a few statements."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a_tasks.models import Event, Message, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import event_log, succeed
from a2a_tasks.store.replies import reply
from tests.support.store.world import AT, Pen, chunk, held, new, said

pytestmark = pytest.mark.django_db
#: Texts that are written in an unusual way in JSON, in arrays of PostgreSQL, or in statements.
ODD = ('"{it\'s}", \\ NULL', "ü \U0001f389 %s %% $1", "a\nb\t\x01")


def ended(task: str, count: int) -> int:
    """An ended task with so many further messages, and as many further events with messages; its key."""
    pen = Pen(held(task, dialect="v01"))
    pen.state(TaskState.WORKING)
    pen.end()
    numbers = range(1000, 1000 + count)
    bodies = [
        said(f"{number} {ODD[number % len(ODD)]}", task_id=task, context_id="context-1")
        for number in numbers
    ]
    shared = {"task_id": pen.run.task}
    messages, events = [], []
    for number, body in zip(numbers, bodies, strict=True):
        messages.append(Message(**shared, number=number, role="ROLE_USER", body=body))
        text = event_log.status_body(TaskState.WORKING, AT, body)
        events.append(Event(**shared, number=number, kind=EventKind.STATUS, body=text))
    Message.objects.bulk_create(messages)
    Event.objects.bulk_create(events)
    other = chunk("a", said("not a message of the task", task_id=task)).body
    Event.objects.create(**shared, number=999, kind=EventKind.ARTIFACT, body=other)
    return pen.run.task


def reopen(task: str) -> int:
    """Begin the task anew; the number of statements."""
    with CaptureQueriesContext(connection) as statements:
        reply(new(task, text="again", reopens=True, dialect="v01"))
    return len(statements)


def texts(task: int) -> list[tuple[str, int, str]]:
    """The bodies of its messages and events, and the message in its status."""
    found = [("task", 0, Task.objects.get(pk=task).status_message)]
    for model in (Message, Event):
        rows = model.objects.filter(task=task).order_by("number").values_list("number", "body")
        found += [(model.__name__, number, body) for number, body in rows]
    return found


def test_its_statements_are_as_many_after_a_long_conversation_as_after_a_short_one() -> None:
    ended("task-1", 10)
    ended("task-2", 500)
    assert reopen("task-2") == reopen("task-1")


@pytest.mark.parametrize(
    ("limit", "value"), [("SLICE", 1000), ("SLICE", 7), ("SLICE", 1), ("LARGE", 1000)]
)
def test_the_texts_of_the_ended_one_name_its_new_id_and_are_the_same_else(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succeed, limit, value, raising=False)
    key, beside = ended("task-1", 20), ended("task-2", 3)
    before, others = texts(key), texts(beside)
    assert sum('"taskId":"task-1"' in body for _, _, body in before) >= 40
    reopen("task-1")
    name = Task.objects.get(pk=key).public_id
    was, becomes = ('"taskId":"task-1"', f'"taskId":"{name}"')
    moved = [
        (table, number, body if (table, number) == ("Event", 999) else body.replace(was, becomes))
        for table, number, body in before
    ]
    assert texts(key) == moved
    assert texts(beside) == others
    assert name != "task-1"


def test_a_statement_writes_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(succeed, "LARGE", 2000, raising=False)
    ended("task-1", 30)
    with CaptureQueriesContext(connection) as statements:
        reply(new(text="again", reopens=True, dialect="v01"))
    written = [one["sql"] for one in statements if one["sql"].lower().startswith("update")]
    assert max(map(len, written)) < 6000
