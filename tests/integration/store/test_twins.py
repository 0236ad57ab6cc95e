"""The hand-written statements and their portable twins leave the same rows behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from a2a_tasks.caller import OwnerScope, ScopePart
from a2a_tasks.conversation_changes import (
    ConversationChanged,
    ConversationChanges,
    ListChange,
    MemoryChange,
    ValueKind,
)
from a2a_tasks.models import ChatPrefix, Step, Task
from a2a_tasks.protocol.chats import ChatPlace
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import event_log
from a2a_tasks.store.backend import portable, postgres, statements
from a2a_tasks.store.records import (
    ArtifactRow,
    Batch,
    FoundChat,
    InsertedTask,
    NewEvent,
    NewTask,
    RunEnd,
    StoredTask,
)
from a2a_tasks.store.replies import reply
from tests.support.store.world import ALICE, chunk, contents, new, said, status

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]

Insert = Callable[[NewTask], InsertedTask]
Append = Callable[[Batch], int | None]


def written(inserted: list[InsertedTask | None]) -> InsertedTask:
    """The only one, whose place was free."""
    assert inserted[0]
    return inserted[0]


STATEMENT, PORTABLE = OwnerScope("", "statement", "demo"), OwnerScope("", "portable", "demo")
TWINS: dict[OwnerScope, tuple[Insert, Append]] = {
    STATEMENT: (
        lambda new_: written(postgres.insert_tasks([new_])),
        lambda batch: postgres.append_batches([batch])[0],
    ),
    PORTABLE: (
        lambda new_: written(portable.insert_tasks([new_])),
        lambda batch: portable.append_batches([batch])[0],
    ),
}


def both(story: Callable[[OwnerScope, Insert, Append], list[Any]]) -> list[Any]:
    """Live a story both ways; both return and leave the same."""
    told = {scope: story(scope, *twins) for scope, twins in TWINS.items()}
    assert told[STATEMENT] == told[PORTABLE]
    rows = contents("statement")
    assert rows == contents("portable")
    assert rows["tasks"]
    return told[STATEMENT]


@pytest.mark.parametrize("held", [False, True], ids=["queued", "held"])
@pytest.mark.parametrize("is_task", [False, True], ids=["undecided", "task"])
def test_accept(held: bool, is_task: bool) -> None:
    def story(scope: OwnerScope, insert: Insert, append: Append) -> list[Any]:
        for number in (1, 2):  # the second finds its context there
            insert(
                new(
                    f"task-{number}",
                    scope=scope,
                    held=held,
                    token=f"{scope.owner}-{number}"[-2:],
                    is_task=is_task,
                    ordered=is_task,
                    metadata='{"a":1}',
                    request='{"b":2}',
                    text="nul: \x00 and ü",
                )
            )
        return []

    both(story)


def test_places_in_chats() -> None:
    def story(scope: OwnerScope, insert: Insert, append: Append) -> list[Any]:
        store = postgres if scope is STATEMENT else portable
        shared, no_more = (
            replace(scope, owner="nobody", read_only=ScopePart(scope.owner, maker))
            for maker in ("", "somebody")
        )

        def find(*names: str) -> list[FoundChat]:
            scopes = (scope, shared, no_more, ALICE)
            mine, seen, *others = store.find_chats([(one, names) for one in scopes])
            assert seen == mine
            assert others == [[], []]
            return [replace(chat, row=0) for chat in mine]

        for name in ("first", "again"):
            insert(new(name, scope=scope, place=ChatPlace(asked="a")))
        place = ChatPlace(asked="b", row=ChatPrefix.objects.latest("pk").pk, before="a")
        insert(new("next", scope=scope, place=place))
        taken = store.insert_tasks([new("late", scope=scope, place=place)])
        found = find("c", "b", "a")
        store.move_chats([("next", "b", "x"), ("first", "b", "y")])
        return [taken, [chat.task_id for chat in found], find("y", "x")]

    taken, ids, moved = both(story)
    assert taken == [None]
    assert ids == ["next", "first"]
    assert [chat.task_id for chat in moved] == ["next"]


def batches(task: int, run: int, token: str) -> list[Batch]:
    """One of everything a run may say."""

    def batch(*events: NewEvent, **more: Any) -> Batch:
        return Batch(task=task, run=run, token=token, events=list(events), **more)

    working, asked, done = (
        status(TaskState.WORKING, "at it"),
        status(TaskState.INPUT_REQUIRED, "what?"),
        status(TaskState.COMPLETED),
    )
    return [
        batch(working[0], status=working[1], reveal=True),
        batch(
            chunk("a", "1"),
            chunk("b", "1", last=True),
            chunk("a", "2", append=True),
            artifacts=[ArtifactRow(0, "a", 0), ArtifactRow(1, "b", 1, '{"whole":true}')],
        ),
        batch(memory='{"kept":1}'),
        batch(),
        batch(chunk("x", "1"), chunk("a", "anew"), artifacts=[ArtifactRow(0, "a", 1)]),
        batch(NewEvent(EventKind.MESSAGE, said("by the way")), asked[0], status=asked[1]),
        batch(working[0], status=working[1], memory=""),
        batch(done[0], status=done[1], end=RunEnd("failed", "trace"), conversation=first_changes()),
    ]


def first_changes() -> ConversationChanges:
    """One of everything a turn may begin in its conversation."""
    return ConversationChanges(
        [
            MemoryChange("json", 0, ValueKind.JSON, b'{"a":1}'),
            MemoryChange("bytes", 0, ValueKind.BYTES, bytes(range(256))),
        ],
        [ListChange("log", 0, 0, False, ["1", '"two"'], 6), ListChange("no", 0, 0, False, [], 0)],
    )


def further_changes(version: int) -> ConversationChanges:
    """One of everything a turn may do to that."""
    return ConversationChanges(
        [
            MemoryChange("json", version, ValueKind.TEXT, b"a\x00b"),
            MemoryChange("bytes", version, ValueKind.JSON, None),
            MemoryChange("new", 0, ValueKind.TEXT, b""),
        ],
        [
            ListChange("log", version, 1, True, ["3"], 2),
            ListChange("no", version, 0, False, ["4"], 1),
        ],
    )


def test_conversations() -> None:
    def story(scope: OwnerScope, insert: Insert, append: Append) -> list[Any]:
        results: list[Any] = []
        versions: list[int] = [0]
        for number, change in enumerate(
            [first_changes, lambda: further_changes(versions[-1]), first_changes]
        ):
            task, run, _ = insert(new(f"task-{number}", scope=scope, held=True, token=f"t{number}"))
            done = status(TaskState.COMPLETED)
            batch = Batch(
                task=task,
                run=run,
                token=f"t{number}",
                events=[done[0]],
                status=done[1],
                end=RunEnd(),
                conversation=change(),
            )
            try:
                with transaction.atomic():
                    results.append(append(batch))
            except ConversationChanged as fault:
                results.append(str(fault))
            versions.append(run)
        return results

    first, second, third = both(story)
    assert (first, second) == (2, 2)
    assert "meanwhile" in third


@pytest.mark.parametrize("waiting", [False, True], ids=["alone", "with a message waiting"])
@pytest.mark.parametrize("last", [8, 7], ids=["to the end", "to a question"])
def test_append(waiting: bool, last: int) -> None:
    def story(scope: OwnerScope, insert: Insert, append: Append) -> list[Any]:
        token = scope.owner[:1]
        task, run, _ = insert(new(scope=scope, held=True, token=token, is_task=False))
        Task.objects.filter(pk=task).update(is_task=True)
        if waiting:
            reply(new(scope=scope, text="and?", queue="slow"))
        said_ = batches(task, run, token)[:last]
        if last == 7:
            said_[-1].end = RunEnd()
        results: list[Any] = [append(batch) for batch in said_]
        Task.objects.filter(pk=task).update(run_token="")
        return [*results, append(said_[0])]

    results = both(story)
    assert results[-1] is None, "fenced"


def test_many_at_once_are_each_of_them_alone() -> None:
    """What goes together in one statement leaves what goes one by one."""

    def story(together: bool, scope: OwnerScope) -> None:
        news = [
            new(
                f"task-{n}",
                scope=scope,
                context_id=f"c{n % 2}",
                held=n != 3,
                token=f"{scope.owner[:1]}{n}"[-1:],
            )
            for n in range(4)
        ]
        groups = [news] if together else [[one] for one in news]
        keys = [key for group in groups for key in postgres.insert_tasks(group) if key]
        stories = [batches(task, run, str(n)) for n, (task, run, _) in enumerate(keys)]
        for one in stories[2:]:  # two tasks of a conversation cannot begin the same keys
            one[-1].conversation = None
        for step in range(8):
            said_ = [one[step] for one in stories]
            for group in [said_] if together else [[one] for one in said_]:
                done = postgres.append_batches(group)
                assert [result is None for result in done] == [
                    batch.token == "3" for batch in group
                ]

    story(True, STATEMENT)
    story(False, PORTABLE)
    assert contents("statement") == contents("portable")
    assert len(contents("statement")["tasks"]) == 4


def seen(row: StoredTask | None) -> StoredTask:
    """The row, with numbers as numbers: a statement returns those of artifacts as texts, and counts bytes."""
    assert row is not None
    artifacts = [(key, int(first), body) for key, first, body in row.artifacts or ()]
    return row._replace(artifacts=artifacts, messages=list(row.messages or ()), size=0)


def test_find() -> None:
    token = "t"
    first = new(scope=STATEMENT, held=True, token=token, metadata='{"a":1}')
    task, run, _ = written(postgres.insert_tasks([first]))
    key = (STATEMENT, "task-1")
    for batch in batches(task, run, token):
        postgres.append_batches([batch])
        one, other = postgres.find_tasks([key])[key], portable.find_tasks([key])[key]
        assert seen(one) == seen(other) == seen(postgres.find_task(task))
    missing = [(STATEMENT, "task-2"), (STATEMENT, ""), (PORTABLE, "task-1")]
    assert postgres.find_tasks(missing) == portable.find_tasks(missing) == {}
    assert postgres.find_task(0) is portable.find_task(0) is None


def test_the_bytes_of_a_task_are_those_of_all_it_shows() -> None:
    """Also of artifacts that grow, whose pieces are read after it."""
    token = "t"
    first = new(scope=STATEMENT, held=True, token=token)
    task, run, _ = written(postgres.insert_tasks([first]))
    for batch in batches(task, run, token):
        postgres.append_batches([batch])
        row = postgres.find_task(task)
        assert row
        assert row.size == event_log.count_bytes(task) + len(row.status_message.encode())


@pytest.mark.parametrize("large", [False, True])
def test_steps(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "LARGE_READ", 0 if large else 10)
    for task in (1, 2):
        Step.objects.bulk_create(
            Step(task_id=task, input_number=number, name=name, result=f'"{number}"', run=1)
            for number in (1, 2)
            for name in "ab"
        )
    for turns in ([], [(1, 2)], [(1, 1), (2, 2)], [(3, 1)]):
        assert sorted(postgres.read_steps(turns)) == sorted(portable.read_steps(turns))
    assert sorted(postgres.read_steps([(1, 2)])) == [(1, 2, "a", '"2"'), (1, 2, "b", '"2"')]
