"""Appending: numbers without gaps, a fence, artifacts whose price does not grow with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from a2a_tasks import pubsub
from a2a_tasks.models import Artifact, Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import append as appending
from a2a_tasks.store import cancel
from a2a_tasks.store.append import append, append_many
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.records import ArtifactRow, Batch, ClaimedRun, LeaseLost, NewEvent, RunEnd
from a2a_tasks.store.replies import reply
from tests.support.store.world import (
    ALICE,
    AT,
    Pen,
    accepted,
    at_once,
    chunk,
    contents,
    everything,
    found,
    held,
    new,
    replayed,
    said,
    status,
)


def artifacts() -> list[str]:
    """The artifacts a reader of task-1 gets."""
    texts = found().view.artifacts
    return [bytes(text).decode() for text in texts] if texts else []


@pytest.mark.django_db
class TestAppend:
    def test_numbers_have_no_gaps(self) -> None:
        pen = Pen(held())
        assert pen.state(TaskState.WORKING) == 2
        assert (
            append(pen.batch(chunk("a", "1"), chunk("a", "2"), artifacts=[ArtifactRow(0, "a", 0)]))
            == 4
        )
        assert pen.end() == 5
        assert [event.number for event in everything(pen.run.task)] == [1, 2, 3, 4, 5]
        assert Task.objects.get().last_event == 5

    def test_the_size_of_a_batch_counts_all_that_is_written(self) -> None:
        """A statement gets time by it, and large ones go alone."""
        pen, text = Pen(held()), "x" * 1000
        event, row = status(TaskState.WORKING, text)
        assert pen.batch(event).size > 1000
        assert pen.batch(event, status=row).size > 2000
        assert pen.batch(memory=text).size == 1000
        assert pen.batch(NewEvent(EventKind.MESSAGE, text)).size == 2000, "it is also a message"
        assert pen.batch(artifacts=[ArtifactRow(0, "a", 0, text)]).size == 1000

    def test_the_last_status_is_the_tasks(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.WORKING, "at it")
        task = Task.objects.get()
        assert (task.state, task.status_at, task.status_message) == (
            TaskState.WORKING,
            AT,
            said("at it"),
        )
        assert task.status_text == "at it"
        pen.state(TaskState.INPUT_REQUIRED)
        task.refresh_from_db()
        assert (task.state, task.status_message) == (TaskState.INPUT_REQUIRED, "")
        assert task.status_text == ""

    def test_an_event_knows_its_run_and_state(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.WORKING)
        event = Event.objects.get(number=2)
        assert (event.kind, event.state, event.run) == (
            EventKind.STATUS,
            TaskState.WORKING,
            pen.run.key,
        )

    def test_a_direct_message_is_in_the_history_and_makes_no_task(self) -> None:
        pen = Pen(held(is_task=False))
        event, row = status(TaskState.COMPLETED)
        append(pen.batch(NewEvent(EventKind.MESSAGE, said("hi")), event, status=row, end=RunEnd()))
        assert Message.objects.get(number=2).body == said("hi")
        assert Task.objects.get().is_task is False

    def test_a_first_word_that_is_not_a_message_makes_it_a_task(self) -> None:
        pen = Pen(held(is_task=False))
        pen.state(TaskState.WORKING, reveal=True)
        assert Task.objects.get().is_task is True

    def test_memory_is_kept(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.WORKING, memory='{"a":1}')
        pen.state(TaskState.WORKING)
        assert Task.objects.get().memory == '{"a":1}'

    def test_the_end_of_a_run_lets_go_of_the_task(self) -> None:
        pen = Pen(held())
        pen.state(TaskState.INPUT_REQUIRED, end=RunEnd())
        run = Run.objects.get()
        assert (run.status, run.token, run.lease_until) == (RunStatus.ENDED, "", None)
        assert run.ended_at is not None
        assert Task.objects.get().run_token == ""

    def test_a_failure_keeps_its_trace_in_the_run_only(self) -> None:
        Pen(held()).state(TaskState.FAILED, end=RunEnd("failed", "Traceback: secret"))
        run = Run.objects.get()
        assert (run.status, run.error) == (RunStatus.FAILED, "Traceback: secret")
        assert not any("secret" in event.body for event in everything(run.task_id))

    def test_it_announces_what_it_wrote(self) -> None:
        pen = Pen(held())
        hints: list[Any] = []
        with pubsub.listen(hints.append):
            pen.state(TaskState.WORKING)
        (hint,) = hints
        assert (hint.task, hint.last) == (pen.run.task, 2)
        assert list(hint.events) == everything(pen.run.task)[1:]

    def test_a_run_that_ends_the_task_drops_what_waited_behind_it(self) -> None:
        pen = Pen(held())
        waiting = reply(new(text="and?", context_id=""))
        pen.end()
        assert Run.objects.get(pk=waiting.run).status == RunStatus.DROPPED

    def test_a_run_that_ends_without_ending_the_task_rings_for_the_next(self) -> None:
        pen = Pen(held())
        reply(new(text="and?", context_id="", queue="slow"))
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            pen.state(TaskState.INPUT_REQUIRED, end=RunEnd())
        assert pubsub.RunQueued("slow") in hints


@pytest.mark.django_db
class TestFence:
    """Every write names the token; none matched means nothing was written."""

    def refused(self, pen: Pen) -> None:
        """Nothing this pen may try changes anything."""
        before = contents(ALICE.owner)
        hints: list[pubsub.Hint] = []
        with pubsub.listen(hints.append):
            for write in (
                lambda: pen.state(TaskState.WORKING),
                lambda: pen.begin("late", "x", position=9),
                lambda: pen.add("a", "x"),
                lambda: pen.end(),
                lambda: append(pen.batch(closed=[0], memory="{}", end=RunEnd())),
            ):
                with pytest.raises(LeaseLost):
                    write()  # type: ignore[no-untyped-call]
        assert contents(ALICE.owner) == before
        assert hints == []

    def test_another_token_writes_nothing(self) -> None:
        run = held()
        Pen(run).begin("a", "x")
        wrong = ClaimedRun(
            **{name: getattr(run, name) for name in ClaimedRun.__slots__} | {"token": "stolen"}
        )
        self.refused(Pen(wrong))

    def test_no_token_at_all_holds_nothing_either(self) -> None:
        result = accepted()  # queued: the task is held by nobody, its row says ""
        event, row = status(TaskState.WORKING)
        with pytest.raises(LeaseLost):
            append(Batch(task=result.task, run=result.run, token="", events=[event], status=row))

    def test_nothing_is_written_after_the_end(self) -> None:
        pen = Pen(held())
        pen.begin("a", "x")
        pen.end(closed=[0])
        self.refused(pen)

    def test_nothing_is_written_after_a_cancel(self) -> None:
        pen = Pen(held())
        pen.begin("a", "x")
        cancel.cancel(ALICE, "task-1")
        self.refused(pen)


@pytest.mark.django_db
class TestArtifacts:
    def test_a_growing_artifact_is_its_events(self) -> None:
        pen = Pen(held())
        pen.begin("a", "1")
        pen.add("a", "2")
        assert Artifact.objects.get().body == ""
        assert artifacts() == ['{"artifactId":"a","parts":[{"text":"1"},{"text":"2"}]}']

    def test_a_closed_artifact_is_folded_into_its_row(self) -> None:
        pen = Pen(held())
        pen.begin("a", "1")
        pen.close("a", "2")
        whole = '{"artifactId":"a","parts":[{"text":"1"},{"text":"2"}]}'
        assert Artifact.objects.get().body == whole
        assert artifacts() == [whole]

    def test_an_artifact_that_begins_anew_has_nothing_of_the_old_one(self) -> None:
        pen = Pen(held())
        pen.begin("a", "old")
        pen.add("a", "older")
        pen.begin("a", "new")
        pen.add("a", "newer")
        assert artifacts() == ['{"artifactId":"a","parts":[{"text":"new"},{"text":"newer"}]}']
        pen.end(closed=[0])
        assert artifacts() == ['{"artifactId":"a","parts":[{"text":"new"},{"text":"newer"}]}']

    def test_artifacts_that_grow_together_keep_apart_and_in_order_of_creation(self) -> None:
        pen = Pen(held())
        pen.begin("b", "b1", position=0)
        pen.begin("a", "a1", position=1)
        pen.add("b", "b2")
        pen.close("a", "a2", position=1)
        assert artifacts() == [
            '{"artifactId":"b","parts":[{"text":"b1"},{"text":"b2"}]}',
            '{"artifactId":"a","parts":[{"text":"a1"},{"text":"a2"}]}',
        ]

    def test_a_cancelled_tasks_artifacts_are_folded(self) -> None:
        pen = Pen(held())
        pen.begin("a", "1")
        pen.add("a", "2")
        cancel.cancel(ALICE, "task-1")
        assert (
            Artifact.objects.get().body == '{"artifactId":"a","parts":[{"text":"1"},{"text":"2"}]}'
        )

    def test_two_tasks_with_one_artifact_id_keep_apart(self) -> None:
        first = accepted("task-1", held=True)
        second = Pen(held("task-2"))
        assert first.claimed_run is not None
        Pen(first.claimed_run).begin("a", "1")
        second.begin("a", "2")
        assert replayed(first.view, first.task) == found().view
        assert artifacts() == ['{"artifactId":"a","parts":[{"text":"1"}]}']


@pytest.mark.django_db
class TestPrice:
    """Appending a chunk costs the same to a long artifact as to a short one."""

    def test_the_statements_do_not_grow_with_the_artifact(self) -> None:
        pen = Pen(held())
        pen.begin("a", "0")

        def statements() -> list[str]:
            with CaptureQueriesContext(connection) as captured:
                pen.add("a", "x")
            return [query["sql"].partition(" ")[0] for query in captured]

        first = statements()
        for _ in range(200):
            pen.add("a", "x")
        assert statements() == first

    @pytest.mark.backend("stack")
    def test_the_rows_touched_do_not_grow_with_the_artifact(self) -> None:
        pen = Pen(held())
        pen.begin("a", "0")

        def touched() -> list[tuple[Any, ...]]:
            with connection.cursor() as cursor:
                cursor.execute(
                    "select relname, n_tup_ins, n_tup_upd, n_tup_del from pg_stat_xact_user_tables "
                    "where relname like 'a2a_tasks_%' order by relname"
                )
                return list(cursor.fetchall())

        def price() -> list[tuple[Any, ...]]:
            before = touched()
            pen.add("a", "x")
            return [
                (now[0], *(b - a for a, b in zip(then[1:], now[1:], strict=True)))
                for then, now in zip(before, touched(), strict=True)
                if now != then
            ]

        first = price()
        for _ in range(200):
            pen.add("a", "x")
        assert price() == first == [("a2a_tasks_event", 1, 0, 0), ("a2a_tasks_task", 0, 1, 0)]


@pytest.mark.django_db
class TestTogether:
    @pytest.mark.django_db(transaction=True)
    def test_of_batches_that_cannot_go_together_each_is_told_what_became_of_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A database that goes away between them must not have those tried again that are written."""
        pens = [Pen(held(f"task-{n}")) for n in (1, 2, 3)]
        good, bad, late = (pen.batch(chunk("a", "1")) for pen in pens)
        real = backend().append_batches
        raised = {id(bad): DataError("nonsense"), id(late): OperationalError("away")}

        def write(batches: Sequence[Batch]) -> Any:
            for batch in batches[::-1]:
                if id(batch) in raised and (len(batches) == 1 or batch is bad):
                    raise raised[id(batch)]
            return real(batches)

        monkeypatch.setattr(backend(), "append_batches", write)
        number, spoilt, away = append_many([good, bad, late])
        assert (number, spoilt) == (2, raised[id(bad)])
        assert isinstance(away, Overloaded)
        assert [len(everything(pen.run.task)) for pen in pens] == [2, 1, 1]

    def test_a_database_away_while_one_is_looked_up_leaves_the_others_their_numbers(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are written. Told that nothing is known of them, each would come again."""
        pens = [Pen(held(f"task-{n}")) for n in (1, 2, 3)]
        batches = [pen.batch(chunk("a", "1"), after=0) for pen in pens]
        append(batches[1])
        batches[1].again = True

        def written_before(_: Batch) -> Any:
            raise OperationalError("away")

        real = appending._find_written
        monkeypatch.setattr(
            appending,
            "_find_written",
            lambda batch: written_before(batch) if batch is batches[1] else real(batch),
        )
        first, unknown, third = append_many(batches)
        assert (first, third) == (2, 2)
        assert isinstance(unknown, Overloaded)
        assert not unknown.undone


@pytest.mark.django_db(transaction=True)
class TestTwoWriters:
    def test_two_writers_never_share_a_number(self) -> None:
        pen = Pen(held())

        def write(name: str) -> list[int]:
            return [append(pen.batch(chunk(name, "x"), chunk(name, "y"))) for _ in range(20)]

        first, second = at_once(lambda: write("a"), lambda: write("b"))
        assert isinstance(first, list) and isinstance(second, list), (first, second)
        assert sorted(first + second) == list(range(3, 82, 2))
        assert [event.number for event in everything(pen.run.task)] == list(range(1, 82))

    def test_a_batch_is_all_or_nothing(self) -> None:
        pen = Pen(held())
        before = contents(ALICE.owner)
        event, row = status(TaskState.COMPLETED)
        with pytest.raises(IntegrityError):  # an end that keeps the task
            append(pen.batch(chunk("a", "x"), event, status=row))
        assert contents(ALICE.owner) == before
        with transaction.atomic():
            assert Task.objects.get().last_event == 1


@pytest.mark.django_db
class TestARepetition:
    """Nobody knows what became of a batch, so it comes again."""

    def test_is_written_once_and_gets_the_number_it_missed(self) -> None:
        pen = Pen(held())
        event, row = status(TaskState.WORKING)
        batch = pen.batch(event, status=row, after=0)
        assert append(batch) == 2
        reply(new(text="and?", context_id=""))  # a message of the client moves the log on
        batch.again = True
        assert append(batch) == 2
        assert Event.objects.filter(run=pen.run.key).count() == 1

    def test_of_the_end_is_known_too(self) -> None:
        pen = Pen(held())
        event, row = status(TaskState.COMPLETED)
        batch = pen.batch(event, status=row, end=RunEnd(), after=0)
        assert append(batch) == 2
        batch.again = True
        assert append(batch) == 2
        assert Task.objects.get().last_event == 2

    def test_of_an_end_that_another_attempt_wrote_is_fenced(self) -> None:
        pen = Pen(held())
        event, row = status(TaskState.COMPLETED, "mine")
        batch = pen.batch(event, status=row, end=RunEnd(), after=0, again=True)
        pen.end(text="another's")
        with pytest.raises(LeaseLost):
            append(batch)

    def test_that_was_never_written_is_written(self) -> None:
        pen = Pen(held())
        event, row = status(TaskState.WORKING)
        assert append(pen.batch(event, status=row, after=0, again=True)) == 2

    def test_of_one_that_is_not_the_next_is_fenced(self) -> None:
        pen = Pen(held())
        event, row = status(TaskState.WORKING)
        with pytest.raises(LeaseLost):
            append(pen.batch(event, status=row, after=3))
