"""Reading the logs of many tasks at once, within bounds: one contract for both databases."""

from __future__ import annotations

import pytest

from a2a_tasks.protocol.lifecycle import Recorded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log
from tests.support.store.world import Pen, everything, held

pytestmark = pytest.mark.django_db(transaction=True)
PLENTY = 1_000_000


def talkative(name: str = "task-1") -> Pen:
    """A task with five events, each of which says something of its own, the first the client's."""
    pen = Pen(held(name))
    for word in ("a", "é" * 100, "c"):
        pen.state(TaskState.WORKING, f"{name} {word}")
    pen.end()
    return pen


def sizes(events: list[Recorded]) -> list[int]:
    """Bytes of each."""
    return [len(event.body.encode()) for event in events]


class TestReadingEach:
    def test_gives_of_every_task_what_comes_after_its_number(self) -> None:
        one, two = talkative("one").run.task, talkative("two").run.task
        read = log.read_each([(one, 0), (two, 3), (two, 5)], 1000, PLENTY)
        assert read == [everything(one), everything(two)[3:], []]

    def test_of_none_is_none(self) -> None:
        assert log.read_each([], 1000, PLENTY) == []

    def test_ends_after_so_many_events(self) -> None:
        task = talkative().run.task
        assert log.read_each([(task, 0)], 2, PLENTY) == [everything(task)[:2]]

    def test_ends_with_the_event_that_has_the_last_byte(self) -> None:
        task = talkative().run.task
        whole = everything(task)
        for count in range(1, 5):
            within = sum(sizes(whole)[:count])
            assert log.read_each([(task, 0)], 1000, within) == [whole[:count]]
            assert log.read_each([(task, 0)], 1000, within + 1) == [whole[: count + 1]]

    def test_reads_the_first_however_large_it_is(self) -> None:
        one, two = talkative("one").run.task, talkative("two").run.task
        read = log.read_each([(one, 0), (two, 2)], 1000, 1)
        assert read == [everything(one)[:1], everything(two)[2:3]]


class TestReadingOne:
    def test_ends_with_the_event_that_has_the_last_byte(self) -> None:
        task = talkative().run.task
        whole = everything(task)
        for count in range(1, 5):
            within = sum(sizes(whole)[:count])
            assert log.read_after(task, 0, 1000, within) == whole[:count]
            assert log.read_after(task, 0, 1000, within + 1) == whole[: count + 1]

    def test_reads_the_first_however_large_it_is(self) -> None:
        task = talkative().run.task
        assert log.read_after(task, 2, 1000, 1) == everything(task)[2:3]

    def test_says_whether_the_slice_was_full(self) -> None:
        pen = Pen(held())
        pen.begin("a", "ü" * (log.SLICE_BYTES // 4))
        pen.add("a", "ü" * (log.SLICE_BYTES // 4))
        pen.add("a", "the rest")
        full = log.read_after(pen.run.task, 0)
        assert [event.number for event in full] == [1, 2, 3]
        assert not log.all_there_was(full)
        rest = log.read_after(pen.run.task, 3)
        assert [event.number for event in rest] == [4]
        assert log.all_there_was(rest)
