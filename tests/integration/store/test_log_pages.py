"""Pages of the log for followers, and the size of a task before it is read; one contract for both databases."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.log_pages import (
    ALL,
    ENDS,
    STATES,
    After,
    read_each,
    state_at,
    stored_bytes,
)
from tests.support.store.world import Pen, held

pytestmark = pytest.mark.django_db
PLENTY = 1_000_000


def written(name: str = "task-1") -> int:
    """A task with a message (1), a state (2), an artifact of two pieces (3, 4), and another state (5)."""
    pen = Pen(held(name))
    pen.state(TaskState.WORKING)
    pen.begin("a", "x" * 1000)
    pen.add("a", "y" * 10)
    pen.state(TaskState.INPUT_REQUIRED)
    return pen.run.task


def numbers(
    *after: After, limit: int = 100, most: int = PLENTY, longest: int = PLENTY
) -> list[list[int]]:
    """The numbers of the events of each page."""
    pages = read_each(after, limit=limit, most=most, longest=longest)
    return [[event.number for event in page] for page in pages]


class TestAPage:
    def test_has_what_was_asked_for_of_each_task_in_its_place(self) -> None:
        one, two = written(), written("task-2")
        pages = [After(two, 3), After(one, 0), After(two, 5), After(two, 3)]
        assert numbers(*pages) == [[4, 5], [1, 2, 3, 4, 5], [], [4, 5]]
        assert numbers() == []

    @pytest.mark.parametrize(
        ("which", "expected"), [(ALL, [1, 2, 3, 4, 5]), (STATES, [2, 5]), (ENDS, [5])]
    )
    def test_has_only_the_events_that_are_needed(self, which: int, expected: list[int]) -> None:
        assert numbers(After(written(), 0, which)) == [expected]
        assert numbers(After(written("task-2"), 0, which), limit=1) == [expected[:1]]

    def test_ends_after_so_many_bytes_but_not_before_its_first_event(self) -> None:
        task = written()
        assert numbers(After(task, 2), most=1) == [[3]]
        assert numbers(After(task, 2), most=2000) == [[3, 4, 5]]

    def test_leaves_out_texts_that_are_too_long_and_does_not_count_them(self) -> None:
        (page,) = read_each([After(written(), 2)], limit=100, most=1000, longest=500)
        assert [(event.number, bool(event.body)) for event in page] == [
            (3, False),
            (4, True),
            (5, True),
        ]


class TestATask:
    @pytest.mark.parametrize("closed", [False, True], ids=["growing", "closed"])
    def test_is_measured_with_all_its_pieces_and_messages(self, closed: bool) -> None:
        pen = Pen(held(text="m" * 500))
        pen.begin("a", "é" * 500)
        assert stored_bytes(pen.run.task) > 1500
        pen.add("a", "y" * 1000)
        if closed:
            pen.close("a", "z")
        with CaptureQueriesContext(connection) as queries:
            assert 2500 < stored_bytes(pen.run.task) < 3500
        assert len(queries) == 1, "what is folded between two statements would count twice"

    def test_is_told_as_it_stood_at_an_event(self) -> None:
        task = written()
        assert state_at(task, 1) is None
        found = [state_at(task, number) for number in (2, 4, 5)]
        assert [state and state[0] for state in found] == [
            TaskState.WORKING,
            TaskState.WORKING,
            TaskState.INPUT_REQUIRED,
        ]
