"""Reading: one task as a whole, pages that show each task once, and a total that counts without counting."""

from __future__ import annotations

import datetime
import json
import re
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_tasks.caller import OwnerScope, ScopePart
from a2a_tasks.models import Tally, Task
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.lifecycle import EventKind, fold
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import TaskPage, TaskState
from a2a_tasks.store import task_counter, tasks
from a2a_tasks.store.append import append
from a2a_tasks.store.records import NewEvent, RunEnd
from a2a_tasks.store.tasks import ReferencesTooLarge, list_tasks, references, reveal
from tests.support.store.world import (
    ALICE,
    AT,
    BOB,
    CHARLIE,
    Pen,
    accepted,
    everything,
    found,
    held,
    said,
)

pytestmark = pytest.mark.django_db


def listed(scope: OwnerScope = ALICE, **asked: Any) -> TaskPage:
    """One page."""
    return list_tasks(scope, ListTasksRequest(**asked))


def ids(page: TaskPage) -> list[str]:
    """The tasks of a page."""
    return [task.id for task in page.tasks]


def paged(scope: OwnerScope = ALICE, **asked: Any) -> list[str]:
    """The tasks of all pages."""
    page = listed(scope, **asked)
    shown = ids(page)
    while page.next_page_token:
        page = listed(scope, page_token=page.next_page_token, **asked)
        shown += ids(page)
    return shown


def at(task: int, seconds: float) -> None:
    """Let the status of a task be that old."""
    Task.objects.filter(pk=task).update(status_at=AT + datetime.timedelta(seconds=seconds))


class TestPages:
    def test_every_task_is_on_one_page_latest_status_first_then_newest(self) -> None:
        keys = [accepted(f"task-{number}").task for number in range(7)]
        for key, seconds in zip(keys, [5, 1, 1, 1, 9, 5, 0], strict=True):
            at(key, seconds)
        expected = ["task-4", "task-5", "task-0", "task-3", "task-2", "task-1", "task-6"]
        for size in (1, 2, 3, 6, 7, 8):
            assert paged(page_size=size) == expected

    def test_a_page_says_how_long_it_may_be_how_many_there_are_and_whether_more_come(self) -> None:
        for number in range(3):
            accepted(f"task-{number}")
        page = listed(page_size=2)
        assert (page.page_size, page.total_size, len(page.tasks)) == (2, 3, 2)
        assert page.next_page_token
        last = listed(page_size=2, page_token=page.next_page_token)
        assert (len(last.tasks), last.next_page_token, last.total_size) == (1, "", 3)

    def test_a_full_last_page_has_no_next(self) -> None:
        for number in range(4):
            accepted(f"task-{number}")
        page = listed(page_size=2)
        assert listed(page_size=2, page_token=page.next_page_token).next_page_token == ""

    def test_tasks_that_come_between_two_pages_double_nothing(self) -> None:
        for number in range(4):
            at(accepted(f"task-{number}").task, number)
        page = listed(page_size=2)
        at(accepted("task-new").task, 100)
        assert ids(listed(page_size=2, page_token=page.next_page_token)) == ["task-1", "task-0"]

    def test_a_scope_sees_its_own(self) -> None:
        accepted("task-1")
        accepted("task-2", scope=BOB)
        accepted("task-3", scope=CHARLIE)
        accepted("task-4", scope=OwnerScope("", "user:alice", "other"))
        assert (ids(listed()), listed().total_size) == (["task-1"], 1)

    def test_what_is_not_decided_yet_is_not_shown(self) -> None:
        key = accepted(is_task=False).task
        assert (ids(listed()), listed().total_size) == ([], 0)
        reveal(key)
        assert (ids(listed()), listed().total_size) == (["task-1"], 1)

    @pytest.mark.parametrize("token", ["x", "a:b:c", "\x00", "é" * 50, ":::", "W10:1aaaaa:x"])
    def test_a_token_that_is_none_is_a_bad_parameter(self, token: str) -> None:
        accepted()
        with pytest.raises(InvalidParams):
            listed(page_token=token)

    @pytest.mark.parametrize("other", [BOB, CHARLIE, OwnerScope("", "user:alice", "other")])
    def test_a_token_of_another_scope_is_a_bad_parameter(self, other: OwnerScope) -> None:
        for number in range(2):
            accepted(f"task-{number}", scope=other)
        token = listed(other, page_size=1).next_page_token
        with pytest.raises(InvalidParams):
            listed(page_token=token)


class TestFilters:
    @pytest.fixture(autouse=True)
    def tasks(self) -> None:
        """Six tasks: two contexts, two states, three moments."""
        for number, (context, ended) in enumerate(
            [("c1", False), ("c1", True), ("c2", False), ("c2", True), ("c1", True), ("c2", True)]
        ):
            run = held(f"task-{number}", context_id=context)
            if ended:
                Pen(run).end()
            at(run.task, number)

    def test_by_context(self) -> None:
        assert paged(context_id="c1", page_size=1) == ["task-4", "task-1", "task-0"]
        assert paged(context_id="c3") == []
        assert paged(BOB, context_id="c1") == []
        assert listed(context_id="c\x001").total_size == 0

    def test_by_state(self) -> None:
        assert paged(status=TaskState.SUBMITTED, page_size=1) == ["task-2", "task-0"]
        assert paged(status=TaskState.WORKING) == []

    def test_by_moment_which_is_included(self) -> None:
        after = rfc3339(AT + datetime.timedelta(seconds=4))
        assert paged(status_timestamp_after=after, page_size=1) == ["task-5", "task-4"]

    def test_all_together(self) -> None:
        asked: dict[str, Any] = {
            "context_id": "c1",
            "status": TaskState.COMPLETED,
            "status_timestamp_after": rfc3339(AT + datetime.timedelta(seconds=2)),
        }
        assert paged(**asked) == ["task-4"]
        assert listed(**asked).total_size == 1

    def test_the_total_is_that_of_the_filter_on_every_page(self) -> None:
        page = listed(context_id="c1", page_size=1)
        assert page.total_size == 3
        assert listed(context_id="c1", page_size=1, page_token=page.next_page_token).total_size == 3

    def test_the_total_of_a_filter_is_counted_so_far_and_no_further(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tasks, "MAX_COUNTED", 2)
        with CaptureQueriesContext(connection) as captured:
            assert listed(status=TaskState.COMPLETED).total_size == 2
        counts = [query["sql"] for query in captured if "COUNT(" in query["sql"].upper()]
        assert counts
        assert all("LIMIT 2" in sql for sql in counts)
        assert listed().total_size == 6, "all of an owner are in the tally"
        both = OwnerScope(ALICE.tenant, ALICE.owner, ALICE.agent, ScopePart(BOB.owner))
        accepted("task-1", scope=BOB, context_id="c1")
        assert listed(both, context_id="c1").total_size == 2


class TestWhatAListShows:
    def test_history_and_artifacts_are_left_out_unless_asked_for(self) -> None:
        pen = Pen(held())
        pen.begin("a", "1")
        (task,) = listed().tasks
        assert not task.history
        assert not task.artifacts
        (task,) = listed(history_length=5, include_artifacts=True).tasks
        assert task == found().view

    def test_the_newest_messages_are_shown(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.INPUT_REQUIRED, end=RunEnd())
        (task,) = listed(history_length=1).tasks
        assert task.history
        assert len(task.history) == 1


def large(task: str, size: int, *, whole: bool = True) -> Pen:
    """A task with an artifact of so many bytes, in two pieces, closed or still growing."""
    pen = Pen(held(task))
    pen.begin("a", "x" * (size // 2))
    (pen.close if whole else pen.add)("a", "x" * (size // 2))
    return pen


class TestALargePage:
    """A page has PAGE_BYTES at the most, or one task: what does not fit comes on the next one."""

    THIRD = tasks.PAGE_BYTES // 3

    @pytest.mark.parametrize("whole", [True, False])
    def test_comes_shorter_with_its_token(self, *, whole: bool) -> None:
        for number in range(7):
            large(f"task-{number}", self.THIRD, whole=whole)
        page = listed(include_artifacts=True, page_size=5)
        assert (len(page.tasks), page.page_size, page.total_size) == (2, 5, 7)
        assert len(listed(page_size=5).tasks) == 5, "no artifact was asked for"
        shown = paged(include_artifacts=True)
        assert sorted(shown) == [f"task-{number}" for number in range(7)]

    def test_has_a_task_that_is_too_large_alone(self) -> None:
        for number, size in enumerate([1, 2 * tasks.PAGE_BYTES, 1]):
            large(f"task-{number}", size)
        page = listed(include_artifacts=True)
        pages = [ids(page)]
        while page.next_page_token:
            page = listed(include_artifacts=True, page_token=page.next_page_token)
            pages.append(ids(page))
        assert pages == [["task-2"], ["task-1"], ["task-0"]]
        (task,) = listed(
            include_artifacts=True, page_token=listed(page_size=1).next_page_token
        ).tasks
        assert task.artifacts == found("task-1").view.artifacts

    def test_looks_for_unfinished_artifacts_once_and_not_beside_each_piece(self) -> None:
        """SQLite read the body of the artifact beside each piece: 20,000 pieces took it six seconds."""
        large("task-1", 100, whole=False)
        with CaptureQueriesContext(connection) as asked:
            listed(include_artifacts=True)
        sums = [each["sql"] for each in asked if "SUM" in each["sql"] and "event" in each["sql"]]
        assert len(sums) == 1
        assert 'artifact"' not in sums[0].partition(" FROM ")[2]

    def test_counts_what_tasks_say_of_their_status(self) -> None:
        for number in range(3):
            Pen(held(f"task-{number}")).state(TaskState.WORKING, "x" * self.THIRD)
        assert len(listed().tasks) == 1, "the text is in the message and in its id"
        assert len(paged()) == 3

    def test_counts_the_metadata_of_tasks(self) -> None:
        for number in range(3):
            held(f"task-{number}")
        Task.objects.update(metadata=json.dumps({"text": "x" * 2 * self.THIRD}))
        assert len(listed().tasks) == 1
        assert len(paged()) == 3

    def test_counts_the_messages_that_are_shown_and_no_others(self) -> None:
        for number in range(3):
            pen = Pen(held(f"task-{number}", text="x" * self.THIRD))
            append(pen.batch(NewEvent(EventKind.MESSAGE, said("b"))))
        assert len(listed(history_length=1).tasks) == 3
        assert len(listed(history_length=2).tasks) == 1
        assert len(paged(history_length=2)) == 3

    @pytest.mark.parametrize("whole", [True, False])
    def test_is_cut_before_its_artifacts_are_read(self, *, whole: bool) -> None:
        for number in range(20):
            large(f"task-{number}", self.THIRD, whole=whole)
        tracemalloc.start()
        try:
            assert len(listed(include_artifacts=True, page_size=100).tasks) == 2
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * tasks.PAGE_BYTES


class TestTotal:
    """`totalSize` is exact, wherever the checkpoint stands."""

    @pytest.fixture(autouse=True)
    def short_stride(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the checkpoint move soon."""
        monkeypatch.setattr(task_counter, "STRIDE", 3)

    def settle(self) -> None:
        """Let everything so far be older than any transaction."""
        Task.objects.update(created_at=timezone.now() - 2 * task_counter.SETTLED)

    def test_it_counts_on_from_the_checkpoint(self) -> None:
        for number in range(6):
            accepted(f"task-{number}")
        self.settle()
        assert task_counter.total(ALICE) == 6
        assert Tally.objects.get().total == 6
        for number in range(6, 8):
            accepted(f"task-{number}")
        assert task_counter.total(ALICE) == 8
        assert Tally.objects.get().total == 6
        for number in range(8, 12):
            accepted(f"task-{number}")
        self.settle()
        assert [task_counter.total(ALICE) for _ in range(2)] == [12, 12]
        assert Tally.objects.get().total == 12

    def test_the_checkpoint_passes_nothing_that_is_young(self) -> None:
        for number in range(6):
            accepted(f"task-{number}")
        assert task_counter.total(ALICE) == 6
        assert not Tally.objects.exists()

    def test_the_checkpoint_waits_for_what_may_yet_become_a_task(self) -> None:
        accepted("task-0")
        undecided = accepted("task-1", is_task=False)
        for number in range(2, 8):
            accepted(f"task-{number}")
        self.settle()
        assert task_counter.total(ALICE) == 7
        assert task_counter.total(ALICE) == 7
        reveal(undecided.task)
        assert [task_counter.total(ALICE) for _ in range(3)] == [8, 8, 8]
        assert Tally.objects.get().total == 8

    def test_each_scope_has_its_own(self) -> None:
        for number in range(6):
            accepted(f"task-{number}")
            accepted(f"task-{number}", scope=BOB)
        accepted("task-9", scope=CHARLIE)
        self.settle()
        assert [task_counter.total(scope) for scope in (ALICE, BOB, CHARLIE)] == [6, 6, 1]
        assert [task_counter.total(scope) for scope in (ALICE, BOB, CHARLIE)] == [6, 6, 1]

    def test_no_page_counts_what_the_checkpoint_has_counted(self) -> None:
        for number in range(6):
            accepted(f"task-{number}")
        self.settle()
        listed()
        with CaptureQueriesContext(connection) as captured:
            listed()
        counts = [query["sql"] for query in captured if "COUNT(" in query["sql"].upper()]
        through = Tally.objects.get().through
        assert counts, "a count of what came since"
        assert all(f'"id" > {through}' in sql for sql in counts), counts

    def test_a_page_is_read_by_its_key_without_offset(self) -> None:
        for number in range(4):
            accepted(f"task-{number}")
        token = listed(page_size=2).next_page_token
        with CaptureQueriesContext(connection) as captured:
            listed(page_size=2, page_token=token)
        assert not any("OFFSET" in query["sql"].upper() for query in captured)

    def test_the_statements_of_a_page_do_not_grow_with_it(self) -> None:
        for number in range(20):
            Pen(held(f"task-{number}")).end()
        counts = []
        for size in (2, 20):
            with CaptureQueriesContext(connection) as captured:
                listed(page_size=size, history_length=3, include_artifacts=True)
            counts.append(len(captured))
        assert counts[0] == counts[1]


class TestReferences:
    def test_only_the_scopes_own_are_given(self) -> None:
        accepted("task-1")
        accepted("task-2", scope=BOB)
        accepted("task-3", is_task=False)
        given = references(ALICE, ["task-1", "task-2", "task-3", "task-4", "t\x00"])
        assert given == [found("task-1").view]

    def test_large_ones_are_refused_before_they_are_read(self) -> None:
        for name in ("task-1", "task-2"):
            large(name, 5_000)
        assert len(references(ALICE, ["task-1", "task-2"], 20_000)) == 2
        with pytest.raises(ReferencesTooLarge) as refused:
            references(ALICE, ["task-1", "task-2"], 10_000)
        assert 10_000 < refused.value.size < 20_000


@contextmanager
def before_the_artifacts(work: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread, once, right before this connection reads artifacts or their events."""
    left = [work]

    def meanwhile() -> None:
        try:
            left.pop()()
        finally:
            connections.close_all()

    def wrapper(execute: Any, sql: str, *rest: Any) -> Any:
        if left and re.search(r'FROM "a2a_tasks_(artifact|event)"', sql):
            thread = threading.Thread(target=meanwhile)
            thread.start()
            thread.join(30)
        return execute(sql, *rest)

    with connection.execute_wrapper(wrapper):
        yield
    assert not left, "the query never came"


@pytest.mark.django_db(transaction=True)
class TestFind:
    def test_a_task_read_while_it_grows_is_that_of_its_number(self) -> None:
        """A subscriber gets this task and then the events after this number: nothing may come twice."""
        result = accepted(held=True)
        assert result.claimed_run is not None
        pen = Pen(result.claimed_run)
        pen.begin("a", "1")
        with before_the_artifacts(lambda: pen.add("a", "2")):
            read = found()
        later = [event for event in everything(read.task) if event.number > read.last_event]
        assert fold(read.view, later) == found().view

    def test_a_task_read_while_its_artifact_begins_anew_is_that_of_its_number(self) -> None:
        result = accepted(held=True)
        assert result.claimed_run is not None
        pen = Pen(result.claimed_run)
        pen.begin("a", "1")
        with before_the_artifacts(lambda: pen.begin("a", "2")):
            read = found()
        before = [event for event in everything(read.task)[1:] if event.number <= read.last_event]
        assert fold(result.view, before) == read.view
