"""Two processes at the same rows: barriers hold them together, and the outcome is one of two stories.

Each race is run often, since a barrier starts both sides at once but cannot say who is first. A deadlock shows as
OperationalError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from a2a_tasks import pubsub
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import ChatPrefix, Context, Run, RunStatus, Task
from a2a_tasks.protocol.chats import ChatPlace
from a2a_tasks.protocol.errors import TaskEnded, TaskNotCancelable
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import Task as TaskView
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import behind, cancel, runs
from a2a_tasks.store.accept import accept, accept_many
from a2a_tasks.store.append import append_many
from a2a_tasks.store.records import Accepted, LeaseLost, PlaceTaken, RunEnd
from a2a_tasks.store.replies import reply
from tests.support.execution.waiting import eventually, somebody_waits_for_a_row
from tests.support.store.world import (
    ALICE,
    BOB,
    Pen,
    accepted,
    at_once,
    chunk,
    claim,
    everything,
    expire,
    found,
    held,
    new,
    status,
)
from tests.support.thorough import examples

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
ROUNDS = examples(12, quick=6)


def race(*works: Callable[[], object], losers: Iterable[type[Exception]] = ()) -> list[Any]:
    """What the sides returned; a side may also lose by one of these errors."""
    results = at_once(*works)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, tuple(losers)):
            raise result
    return results


def consistent(task: str, scope: OwnerScope = ALICE) -> None:
    """Numbers without gaps, at most one end, the row is the fold of its events, and only one run at work."""
    read = found(task, scope)
    events = everything(read.task)
    assert [event.number for event in events] == list(range(1, read.last_event + 1))
    states = [event.state for event in events if event.state]
    ends = [state for state in states if state in TERMINAL]
    assert len(ends) <= 1
    assert not ends or events[-1].state in TERMINAL
    assert read.state is (states[-1] if states else TaskState.SUBMITTED)
    row = Task.objects.get(pk=read.task)
    running = list(
        Run.objects.filter(task=row, status=RunStatus.RUNNING).values_list("token", flat=True)
    )
    assert running == ([row.run_token] if row.run_token else [])


class TestRaces:
    def test_cancel_and_append(self) -> None:
        for n in range(ROUNDS):
            pen = Pen(held(f"task-{n}"))
            wrote, view = race(
                partial(pen.state, TaskState.WORKING),
                partial(cancel.cancel, ALICE, f"task-{n}"),
                losers=[LeaseLost],
            )
            assert view.status.state is TaskState.CANCELED
            assert found(f"task-{n}").last_event == (3 if wrote == 2 else 2)
            consistent(f"task-{n}")

    def test_two_cancels_both_get_the_canceled_task(self) -> None:
        for n in range(ROUNDS):
            held(f"task-{n}")
            once = partial(cancel.cancel, ALICE, f"task-{n}")
            views = race(once, once, losers=[TaskNotCancelable])
            assert any(not isinstance(view, Exception) for view in views)
            assert found(f"task-{n}").last_event == 2, "and one event"
            consistent(f"task-{n}")

    def test_cancel_and_the_end(self) -> None:
        for n in range(ROUNDS):
            pen = Pen(held(f"task-{n}"))
            results = race(
                pen.end,
                partial(cancel.cancel, ALICE, f"task-{n}"),
                losers=[LeaseLost, TaskNotCancelable],
            )
            assert sum(isinstance(result, Exception) for result in results) == 1, "one of them won"
            assert found(f"task-{n}").last_event == 2
            consistent(f"task-{n}")

    def test_claim_and_cancel(self) -> None:
        for n in range(ROUNDS):
            accepted(f"task-{n}")
            taken, _ = race(claim, partial(cancel.cancel, ALICE, f"task-{n}"))
            for run in taken:
                with pytest.raises(LeaseLost):
                    Pen(run).end()
            assert found(f"task-{n}").state is TaskState.CANCELED
            consistent(f"task-{n}")

    def test_two_claims_of_the_two_runs_of_a_task(self) -> None:
        for n in range(ROUNDS):
            first = accepted(f"task-{n}")
            reply(new(f"task-{n}", text="and?"))
            taken = [run for side in race(claim, claim) for run in side]
            taken = [run for run in taken if run.task == first.task]
            assert [run.key for run in taken] == [first.run]
            consistent(f"task-{n}")

    def test_a_claim_locks_no_more_than_it_takes(self) -> None:
        agents = [f"agent-{n}" for n in range(6)]
        for agent in agents:
            whose = OwnerScope("", "user:alice", agent)
            accept_many([new(f"{agent}-{n}", scope=whose) for n in range(3)])

        def count(number: int) -> int:
            return len(claim(number, agents=agents))

        with transaction.atomic():
            assert count(4) == 4
            (beside,) = at_once(partial(count, 9))
            assert beside == 9
            (last,) = at_once(partial(count, 9))
            assert last == 5
            assert at_once(partial(count, 1)) == [0]

    def test_rescue_and_append(self) -> None:
        for n in range(ROUNDS):
            pen = Pen(held(f"task-{n}"))
            expire(pen.run.key)
            wrote, rescued = race(
                partial(pen.state, TaskState.WORKING),
                partial(runs.reclaim_expired, max_attempts=3),
                losers=[LeaseLost],
            )
            if rescued == 0:  # the row was the writer's at that moment: next time
                rescued = runs.reclaim_expired(max_attempts=3)
            assert rescued == 1
            assert found(f"task-{n}").last_event == (2 if wrote == 2 else 1)
            consistent(f"task-{n}")

    def test_rescue_and_the_last_heartbeat(self) -> None:
        for n in range(ROUNDS):
            run = held(f"task-{n}")
            expire(run.key)
            alive, rescued = race(
                partial(runs.heartbeat, [run.token]),
                partial(runs.reclaim_expired, max_attempts=3),
            )
            assert (run.token in alive) == (rescued == 0)
            consistent(f"task-{n}")

    def test_a_rescue_does_not_wait_for_a_writer_that_is_frozen(self) -> None:
        frozen, other = held("task-frozen"), held("task-other")
        for run in (frozen, other):
            expire(run.key)
        with transaction.atomic():
            Task.objects.select_for_update().get(pk=frozen.task)
            (rescued,) = at_once(partial(runs.reclaim_expired, max_attempts=3))
        assert rescued == 1
        assert [again.key for again in claim()] == [other.key]
        assert runs.reclaim_expired(max_attempts=3) == 1

    def test_a_reply_and_the_end(self) -> None:
        for n in range(ROUNDS):
            pen = Pen(held(f"task-{n}"))
            race(
                pen.end,
                partial(reply, new(f"task-{n}", text="and?")),
                losers=[Exception],
            )
            assert found(f"task-{n}").state is TaskState.COMPLETED
            # A message that came at the very end is dropped by whoever looks next.
            behind.release_missed(0)
            claim()
            assert not Run.objects.filter(status=RunStatus.QUEUED).exists()
            consistent(f"task-{n}")

    def test_a_reply_that_comes_while_its_question_is_written_is_told_of(self) -> None:
        """The end of the run waits for the row of the task; the statement does not see what came meanwhile."""
        pen, hints = Pen(held()), list[pubsub.Hint]()
        asks = partial(pen.state, TaskState.INPUT_REQUIRED, end=RunEnd())
        with ThreadPoolExecutor(1) as pool, pubsub.listen(hints.append):
            with transaction.atomic():
                reply(new(text="Ada", context_id="", queue="slow"))
                asking = pool.submit(at_once, asks)
                eventually(somebody_waits_for_a_row, 10)
                hints.clear()
            assert asking.result() == [3]
        assert pubsub.RunQueued("slow") in hints
        assert len(claim(queues=["slow"])) == 1, "and it can be claimed"

    def test_two_replies_to_a_question(self) -> None:
        for n in range(ROUNDS):
            Pen(held(f"task-{n}")).state(TaskState.INPUT_REQUIRED, end=RunEnd())
            one, other = race(
                partial(reply, new(f"task-{n}", text="this", held=True)),
                partial(reply, new(f"task-{n}", text="that", held=True)),
            )
            assert [one.claimed_run is None, other.claimed_run is None].count(True) == 1
            consistent(f"task-{n}")

    def test_two_sends_to_one_context(self) -> None:
        for n in range(ROUNDS):
            results = race(
                *[partial(accept, new(f"task-{n}-{m}", context_id=f"c-{n}")) for m in range(3)]
            )
            assert all(isinstance(result, Accepted) for result in results)
            assert Context.objects.get(public_id=f"c-{n}").tasks.count() == 3

    def test_two_sends_with_one_id(self) -> None:
        for n in range(ROUNDS):
            results = race(
                *[partial(accept, new(f"task-{n}", text=f"t{m}")) for m in range(2)],
                losers=[Exception],
            )
            assert sum(isinstance(result, Accepted) for result in results) == 1

    def test_two_groups_of_messages_to_the_same_chats(self) -> None:
        """Each chat is continued by one side; the other's message begins nothing."""
        for n in range(ROUNDS):
            rows = {}
            for m in range(10):
                accept(new(f"chat-{n}-{m}", place=ChatPlace(asked=f"a-{n}-{m}")))
                rows[m] = ChatPrefix.objects.get(digest=f"a-{n}-{m}").pk

            def side(
                name: str, chats: Iterable[int], n: int = n, rows: dict[int, int] = rows
            ) -> Any:
                places = [
                    ChatPlace(asked=f"b-{n}-{m}", row=rows[m], before=f"a-{n}-{m}") for m in chats
                ]
                news = [new(f"{name}-{place.asked}", place=place) for place in places]
                return partial(accept_many, news)

            one, other = race(side("one", range(10)), side("other", reversed(range(10))))
            outcomes = zip(one, reversed(other), strict=True)
            for pair in outcomes:
                assert {type(outcome) for outcome in pair} == {Accepted, PlaceTaken}
            told = Task.objects.filter(public_id__contains=f"-b-{n}-")
            assert told.count() == 10


def ended(task: str) -> None:
    """A task of 0.1 that has come to its end."""
    Pen(held(task, dialect="v01")).end()


def again(task: str, text: str = "again") -> Accepted:
    """A message of 0.1: an ended task begins anew."""
    return reply(new(task, text=text, dialect="v01", reopens=True, held=True))


class TestBeginningAnew:
    """Decision 9. Nobody is told that a task is not there while its id goes to its successor."""

    def test_and_a_cancel(self) -> None:
        for n in range(ROUNDS):
            ended(f"task-{n}")
            once = partial(cancel.cancel, ALICE, f"task-{n}")
            works = (partial(again, f"task-{n}"), once, once, once)
            accepted_, *views = race(*works, losers=[TaskNotCancelable])
            assert isinstance(accepted_, Accepted)
            states = {view.status.state for view in views if isinstance(view, TaskView)}
            assert states <= {TaskState.CANCELED}
            consistent(f"task-{n}")

    def test_and_a_message_that_begins_nothing_anew(self) -> None:
        for n in range(ROUNDS):
            ended(f"task-{n}")
            too_late = partial(reply, new(f"task-{n}", text="and?"))
            works = (partial(again, f"task-{n}"), too_late, too_late, too_late)
            results = race(*works, losers=[TaskEnded])
            assert isinstance(results[0], Accepted)
            consistent(f"task-{n}")

    def test_and_a_look(self) -> None:
        for n in range(ROUNDS):
            ended(f"task-{n}")
            _, *looks = race(
                partial(again, f"task-{n}"), *[partial(found, f"task-{n}") for _ in range(3)]
            )
            assert {look.state for look in looks} <= {TaskState.COMPLETED, TaskState.SUBMITTED}
            consistent(f"task-{n}")

    def test_of_many_at_once_makes_one_successor(self) -> None:
        for n in range(ROUNDS):
            ended(f"task-{n}")
            results = race(*[partial(again, f"task-{n}", f"t{m}") for m in range(6)])
            assert len({result.task for result in results}) == 1
            assert sum(result.claimed_run is not None for result in results) == 1
            assert found(f"task-{n}").last_event == len(results)
            consistent(f"task-{n}")


def beat_often(tokens: list[str]) -> None:
    """A heart in haste."""
    for _ in range(5):
        runs.heartbeat(tokens)


class TestManyRows:
    """Statements that lock many rows lock them in one order, or they will meet head on."""

    def test_two_groups_of_sends_to_the_same_contexts(self) -> None:
        scopes = [ALICE, BOB, *[OwnerScope("", f"user:{n}", "demo") for n in range(20)]]
        for n in range(ROUNDS):
            sides = [
                [
                    new(f"task-{n}-{side}", scope=scope, context_id="one name for many")
                    for scope in (scopes if side == 0 else reversed(scopes))
                ]
                for side in range(2)
            ]
            for results in race(*[partial(accept_many, news) for news in sides]):
                assert all(isinstance(result, Accepted) for result in results)

    def test_heartbeats_while_many_runs_end_at_once(self) -> None:
        for n in range(ROUNDS):
            pens = [Pen(held(f"task-{n}-{m}")) for m in range(60)]
            event, row = status(TaskState.COMPLETED)
            ends = [pen.batch(event, status=row, end=RunEnd()) for pen in reversed(pens)]
            tokens = [pen.run.token for pen in pens]
            _, results = race(
                partial(beat_often, tokens),
                partial(append_many, ends),
            )
            assert results == [2] * 60

    def test_two_groups_of_words_while_the_runs_are_rescued(self) -> None:
        for n in range(ROUNDS):
            pens = [Pen(held(f"task-{n}-{m}")) for m in range(40)]
            for pen in pens:
                expire(pen.run.key)
            words = [pen.batch(chunk("a", "x")) for pen in reversed(pens)]
            race(
                partial(append_many, words),
                partial(runs.reclaim_expired, max_attempts=3),
                partial(runs.heartbeat, [pen.run.token for pen in reversed(pens)]),
            )

    def test_two_rescues_and_a_process_that_gives_back(self) -> None:
        for n in range(ROUNDS):
            pens = [Pen(held(f"task-{n}-{m}")) for m in range(20)]
            for pen in pens:
                expire(pen.run.key)
            race(
                partial(runs.reclaim_expired, max_attempts=3),
                partial(runs.reclaim_expired, max_attempts=3),
                partial(runs.hand_back, [pen.run.token for pen in reversed(pens)]),
            )
            assert not Run.objects.filter(status=RunStatus.RUNNING).exists()
            Run.objects.all().update(status=RunStatus.DROPPED)
