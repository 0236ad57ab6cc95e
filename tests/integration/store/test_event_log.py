"""Reading the logs of many tasks at once, within bounds: one contract for both databases."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a_tasks.models import Task
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import event_log
from a2a_tasks.store.event_log import count_bytes, read_pages, state_at
from a2a_tasks.store.records import LogPosition, WantedEvents
from tests.support.store.world import Pen, everything, held

pytestmark = pytest.mark.django_db
PLENTY = 1_000_000


def talkative(name: str = "task-1") -> Pen:
    """A task with five events, each of which says something of its own, the first the client's."""
    pen = Pen(held(name))
    for word in ("a", "é" * 100, "c"):
        pen.state(TaskState.WORKING, f"{name} {word}")
    pen.end()
    return pen


def sizes(events: list[LogEvent]) -> list[int]:
    """Bytes of each."""
    return [len(event.body.encode()) for event in events]


class TestReadingOne:
    def test_ends_with_the_event_that_has_the_last_byte(self) -> None:
        task = talkative().run.task
        whole = everything(task)
        for count in range(1, 5):
            within = sum(sizes(whole)[:count])
            assert event_log.read_after(task, 0, 1000, within) == whole[:count]
            assert event_log.read_after(task, 0, 1000, within + 1) == whole[: count + 1]

    def test_reads_the_first_however_large_it_is(self) -> None:
        task = talkative().run.task
        assert event_log.read_after(task, 2, 1000, 1) == everything(task)[2:3]

    def test_says_whether_the_slice_was_full(self) -> None:
        pen = Pen(held())
        pen.begin("a", "ü" * (event_log.SLICE_BYTES // 4))
        pen.add("a", "ü" * (event_log.SLICE_BYTES // 4))
        pen.add("a", "the rest")
        full = event_log.read_after(pen.run.task, 0)
        assert [event.number for event in full] == [1, 2, 3]
        assert not event_log.all_there_was(full)
        rest = event_log.read_after(pen.run.task, 3)
        assert [event.number for event in rest] == [4]
        assert event_log.all_there_was(rest)


class TestOtherEnds:
    def test_are_those_that_are_not_the_known_ones(self) -> None:
        quiet, spoke, gone = (talkative(name).run.task for name in ("task-1", "task-2", "task-3"))
        Task.objects.filter(pk=gone).delete()
        ends = event_log.find_other_ends({quiet: 5, spoke: 3, gone: 5})
        assert ends == {spoke: 5, gone: None}
        assert event_log.find_other_ends({}) == {}


def written(name: str = "task-1") -> int:
    """A task with a message (1), a state (2), an artifact of two pieces (3, 4), and another state (5)."""
    pen = Pen(held(name))
    pen.state(TaskState.WORKING)
    pen.begin("a", "x" * 1000)
    pen.add("a", "y" * 10)
    pen.state(TaskState.INPUT_REQUIRED)
    return pen.run.task


def numbers(
    *after: LogPosition, limit: int = 100, max_bytes: int = PLENTY, longest: int = PLENTY
) -> list[list[int]]:
    """The numbers of the events of each page."""
    pages = read_pages(after, limit=limit, max_bytes=max_bytes, longest=longest)
    return [[event.number for event in page] for page in pages]


@pytest.mark.django_db
class TestAPage:
    def test_has_what_was_asked_for_of_each_task_in_its_place(self) -> None:
        one, two = written(), written("task-2")
        pages = [LogPosition(two, 3), LogPosition(one, 0), LogPosition(two, 5), LogPosition(two, 3)]
        assert numbers(*pages) == [[4, 5], [1, 2, 3, 4, 5], [], [4, 5]]
        assert numbers() == []

    @pytest.mark.parametrize(
        ("which", "expected"),
        [
            (WantedEvents.ALL, [1, 2, 3, 4, 5]),
            (WantedEvents.STATES, [2, 5]),
            (WantedEvents.ENDS, [5]),
        ],
    )
    def test_has_only_the_events_that_are_needed(
        self, which: WantedEvents, expected: list[int]
    ) -> None:
        assert numbers(LogPosition(written(), 0, which)) == [expected]
        assert numbers(LogPosition(written("task-2"), 0, which), limit=1) == [expected[:1]]

    def test_ends_after_so_many_bytes_but_not_before_its_first_event(self) -> None:
        task = written()
        assert numbers(LogPosition(task, 2), max_bytes=1) == [[3]]
        assert numbers(LogPosition(task, 2), max_bytes=2000) == [[3, 4, 5]]

    def test_leaves_out_texts_that_are_too_long_and_does_not_count_them(self) -> None:
        (page,) = read_pages([LogPosition(written(), 2)], limit=100, max_bytes=1000, longest=500)
        assert [(event.number, bool(event.body)) for event in page] == [
            (3, False),
            (4, True),
            (5, True),
        ]


@pytest.mark.django_db
class TestATask:
    @pytest.mark.parametrize("closed", [False, True], ids=["growing", "closed"])
    def test_is_measured_with_all_its_pieces_and_messages(self, closed: bool) -> None:
        pen = Pen(held(text="m" * 500))
        pen.begin("a", "é" * 500)
        assert count_bytes(pen.run.task) > 1500
        pen.add("a", "y" * 1000)
        if closed:
            pen.close("a", "z")
        with CaptureQueriesContext(connection) as queries:
            assert 2500 < count_bytes(pen.run.task) < 3500
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
