"""Runs behind others: not in the queue, in order when their turn comes, and none is forgotten."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from a2a_tasks.models import IS_BEHIND, WAITS_FOR_SLOT, Run, RunStatus
from a2a_tasks.protocol.errors import RateLimited, TaskEnded, TaskNotCancelable
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import behind, runs
from a2a_tasks.store.accept import accept_many
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.parking import wake
from a2a_tasks.store.records import ClaimedRun, LeaseLost, RunEnd
from a2a_tasks.store.replies import reply
from tests.integration.store.test_parking import PAST, parked
from tests.support.store.world import ALICE, Pen, accepted, at_once, claim, expire, held, new
from tests.support.thorough import examples

pytestmark = pytest.mark.django_db


def ask(run: Any) -> None:
    """End a run with a question, so that its task goes on."""
    Pen(run).state(TaskState.INPUT_REQUIRED, end=RunEnd())


class TestTheQueue:
    def test_has_none_of_the_messages_that_wait_for_their_task(self) -> None:
        held("task-1", quota_key="a")
        for number in range(3):
            reply(new("task-1", text=str(number), quota_key="a"))
        assert runs.measure_queue("agents") == (0, 0.0)
        assert runs.count_waiting("agents", 10) == 0
        assert runs.count_unfinished("a", 10) == 4, "but the caller's limit counts them"
        assert runs.count_by_status()["behind"] == 3

    def test_has_none_of_those_that_wait_for_their_conversation_also_if_they_came_together(
        self,
    ) -> None:
        accept_many([new(f"task-{n}", ordered=True) for n in range(5)])
        accept_many([new(f"later-{n}", ordered=True) for n in range(5)])
        assert Run.objects.filter(IS_BEHIND).count() == 9
        assert runs.measure_queue("agents")[0] == 1

    def test_gets_the_next_as_if_it_were_new(self) -> None:
        run = held("task-1", quota_key="a")
        reply(new("task-1", text="and?", quota_key="a"))
        accept_many([new(f"b-{n}", quota_key="b") for n in range(3)])
        before = Run.objects.latest("pk").due_at
        ask(run)
        released = Run.objects.get(task__public_id="task-1", status="queued")
        assert (released.round, released.due_at > before) == (2, True)
        assert [taken.task_id for taken in claim(4)] == ["b-0", "task-1", "b-1", "b-2"]

    def test_is_not_walked_over_however_many_wait_behind_another(self) -> None:
        held("task-1", ordered=True)
        accept_many([new(f"task-{n}", ordered=True) for n in range(2, 60)])
        with CaptureQueriesContext(connection) as asked:
            assert not Run.objects.filter(WAITS_FOR_SLOT, queue="agents").exists()
            assert claim() == []
        assert asked


class TestTheLimit:
    def test_of_unfinished_messages_of_a_task_is_told(self, settings: Any) -> None:
        settings.A2A_MAX_UNFINISHED_PER_TASK = 3
        run = held("task-1")
        for number in range(2):
            reply(new("task-1", text=str(number)))
        with pytest.raises(RateLimited, match="3 messages to the task are unfinished"):
            reply(new("task-1", text="one too many"))
        ask(run)
        reply(new("task-1", text="one more"))
        accepted("task-2")

    def test_is_none_where_it_is_0(self, settings: Any) -> None:
        settings.A2A_MAX_UNFINISHED_PER_TASK = 0
        held("task-1")
        for number in range(5):
            reply(new("task-1", text=str(number)))
        assert Run.objects.count() == 6


class TestRelease:
    @pytest.mark.parametrize("way", ["end", "cancel", "give up", "crash"])
    def test_of_the_next_of_a_conversation_follows_every_end(self, way: str) -> None:
        run = held("task-1", ordered=True)
        accepted("task-2", ordered=True)
        if way == "end":
            Pen(run).end()
        elif way == "cancel":
            cancel(ALICE, "task-1")
        elif way == "crash":
            runs.report_crash(run, "it died", max_attempts=1)
        else:
            expire(run.key)
            assert runs.reclaim_expired(max_attempts=1) == 1
        assert [taken.task_id for taken in claim()] == ["task-2"]

    def test_waits_while_the_run_before_is_queued_again_or_parked(self) -> None:
        first = parked("task-1", PAST, ordered=True)
        accepted("task-2", ordered=True)
        assert behind.release_missed(0) == 0
        assert claim() == []
        wake()
        (again,) = claim()
        assert again.key == first.key
        runs.hand_back([again.token])
        assert behind.release_missed(0) == 0
        (again,) = claim()
        assert again.key == first.key
        Pen(again).end()
        assert [taken.task_id for taken in claim()] == ["task-2"]

    def test_of_one_in_the_middle_that_was_cancelled_lets_none_pass(self) -> None:
        run = held("task-1", ordered=True)
        accepted("task-2", ordered=True)
        accepted("task-3", ordered=True)
        cancel(ALICE, "task-2")
        assert claim() == []
        Pen(run).end()
        assert [taken.task_id for taken in claim()] == ["task-3"]

    def test_is_waited_for_also_by_those_that_an_earlier_release_has_put_into_the_queue(
        self,
    ) -> None:
        run = held("task-1")
        reply(new("task-1", text="and?"))
        Run.objects.filter(IS_BEHIND).update(round=1)
        assert claim() == []
        ask(run)
        assert [taken.task_id for taken in claim()] == ["task-1"]

    def test_of_a_message_to_its_task_follows_also_after_one_at_a_time_was_given_up(self) -> None:
        run = held("task-1", ordered=True)
        reply(new("task-1", text="and?", ordered=False))
        ask(run)
        assert [taken.task_id for taken in claim()] == ["task-1"]

    def test_that_a_dead_process_owed_is_made_up_for_in_slices(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(behind, "SLICE", 2)
        for name in "abc":
            accepted(f"{name}-1", ordered=True, context_id=name)
            accepted(f"{name}-2", ordered=True, context_id=name)
        first = claim(agents=["demo"])
        monkeypatch.setattr(behind, "release", lambda **_: [])  # the process dies before it
        for run in first:
            Run.objects.filter(pk=run.key).update(
                status=RunStatus.ENDED, token="", lease_until=None
            )
        assert claim() == []
        after, looks = 0, 0
        while (after := behind.release_missed(after)) and looks < 9:
            looks += 1
        assert sorted(run.task_id for run in claim()) == ["a-2", "b-2", "c-2"]


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
class TestAtTheSameMoment:
    """The end of a run and the message behind it: one of both sees the other, in whatever order they commit."""

    @pytest.mark.parametrize("ordered", [True, False], ids=["conversation", "task"])
    def test_none_is_forgotten(self, ordered: bool) -> None:
        for number in range(40):
            run = held(f"task-{number}", ordered=ordered, context_id=f"c-{number}")
            more: Callable[[], Any] = (
                partial(accepted, f"next-{number}", ordered=True, context_id=f"c-{number}")
                if ordered
                else partial(reply, new(f"task-{number}", text="and?", context_id=f"c-{number}"))
            )
            works: list[Callable[[], Any]] = [partial(ask, run), more]
            at_once(*works[:: 1 if number % 2 else -1])
            assert not Run.objects.filter(IS_BEHIND).exists(), f"round {number}"
            assert len(claim()) == 1
            Run.objects.filter(status=RunStatus.RUNNING).update(
                status=RunStatus.ENDED, token="", lease_until=None
            )


class Conversations:
    """Two conversations, whatever comes to them."""

    def __init__(self) -> None:
        self.going: list[ClaimedRun] = []
        self.made: list[tuple[str, str]] = []

    def do(self, what: str, number: int) -> None:
        """Do one thing, if it can be done now."""
        if what == "new":
            self.made.append((f"task-{len(self.made)}", f"c-{number % 2}"))
            accepted(self.made[-1][0], ordered=True, context_id=self.made[-1][1])
        elif what == "claim":
            self.going += claim(1 + number, agents=["demo"])
        elif what == "end" and self.going:
            self.end(self.going.pop(number % len(self.going)))
        elif what in {"cancel", "reply"} and self.made:
            name, context = self.made[number % len(self.made)]
            with contextlib.suppress(TaskEnded, TaskNotCancelable):
                if what == "cancel":
                    cancel(ALICE, name)
                else:
                    reply(new(name, text="and?", ordered=True, context_id=context))

    def end(self, run: ClaimedRun) -> None:
        """End a run, unless its task was cancelled."""
        with contextlib.suppress(LeaseLost):
            Pen(run).end()

    def end_all(self) -> None:
        """End what is under way, and what can be claimed then, until nothing can."""
        while self.going:
            self.end(self.going.pop())
            self.going += claim(10, agents=["demo"])


def check() -> None:
    """The first unfinished run of a context is in the queue or under way, and all others are behind it."""
    seen = set[Any]()
    for run in Run.objects.filter(status__in=["queued", "running"]).order_by("pk"):
        assert run.is_behind == (run.ordered_in in seen)
        seen.add(run.ordered_in)


class TestAlgebra(TestCase):
    """Whatever comes to conversations and tasks, in whatever order it is claimed, ended and cancelled."""

    @settings(max_examples=examples(60, quick=12))
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["new", "reply", "claim", "end", "cancel"]), st.integers(0, 5)
            ),
            max_size=25,
        )
    )
    def test_each_conversation_has_exactly_one_run_that_can_begin(
        self, steps: list[tuple[str, int]]
    ) -> None:
        both = Conversations()
        for what, number in steps:
            both.do(what, number)
            check()
        both.do("claim", 5)
        both.end_all()
        assert not Run.objects.filter(status__in=["queued", "running"]).exists()
