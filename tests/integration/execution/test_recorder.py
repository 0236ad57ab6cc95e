"""The recorder: what an agent says becomes few transactions, in order, and never more than there is room for."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from a2a_tasks import pubsub
from a2a_tasks.agents.emission import Chunk, Reply, StatusUpdate
from a2a_tasks.execution import recorder as recording
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.models import Artifact, Task
from a2a_tasks.protocol.lifecycle import EventKind, IllegalTransition, LogEvent
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import cancel, folding, runs
from a2a_tasks.store import db as store_db
from a2a_tasks.store.append import append_batched
from a2a_tasks.store.db import TransactionRefused, run_in_thread
from a2a_tasks.store.records import ClaimedRun, LeaseLost, RunEnd
from a2a_tasks.store.tasks import find
from tests.integration.execution.outage import locked
from tests.support.execution.waiting import until
from tests.support.store.world import ALICE, claim, everything, expire, found, held, replayed

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
S = TaskState


def piece(text: str, artifact: str = "a", *, append: bool = True, last: bool = False) -> Chunk:
    """A piece of an artifact."""
    return Chunk(artifact_id=artifact, parts=(Part(text=text),), append=append, last=last)


def word(state: TaskState, *texts: str) -> StatusUpdate:
    """A status."""
    return StatusUpdate(state, tuple(Part(text=text) for text in texts))


class Transactions:
    """What was committed, one list of events a transaction."""

    def __init__(self) -> None:
        self.batches: list[list[LogEvent]] = []

    def hear(self, hint: pubsub.Hint) -> None:
        if isinstance(hint, pubsub.Committed):
            self.batches.append(list(hint.events))

    @property
    def shown(self) -> list[list[str]]:
        """States by their word, artifacts by their text."""
        return [[_short(event) for event in batch] for batch in self.batches]


def _short(event: LogEvent) -> str:
    if event.state is not None:
        return event.state.word
    return event.body.partition('"text":"')[2].partition('"')[0]


@pytest.fixture
def transactions() -> Iterator[Transactions]:
    """Every transaction from here on."""
    heard = Transactions()
    with pubsub.listen(heard.hear):
        yield heard


async def taken(**about: Any) -> ClaimedRun:
    """A run in our hands."""
    return await run_in_thread(held, **about)


async def recorded(words: Iterable[Any], run: ClaimedRun, *, end: bool = True) -> Recorder:
    """Say the words in one breath; None is a pause for breath."""
    pen = Recorder(run)
    for said in words:
        if said is None:
            await pen.wait_written()
        else:
            pen.emit(said)
    if end:
        pen.finish(RunEnd())
    await pen.wait_written()
    return pen


@contextmanager
def slow_database(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[threading.Event, asyncio.Event]]:
    """Hold the first flush until told: (let it go, it is there)."""
    go, there = threading.Event(), asyncio.Event()
    loop, real = asyncio.get_running_loop(), append_batched

    async def held_up(batch: Any) -> int:
        loop.call_soon(there.set)
        await asyncio.to_thread(go.wait, 30)
        return await real(batch)

    monkeypatch.setattr(recording, "append_batched", held_up)
    try:
        yield go, there
    finally:
        go.set()


class TestBatching:
    async def test_all_in_one_breath_is_one_transaction(self, transactions: Transactions) -> None:
        run = await taken()
        transactions.batches.clear()
        await recorded([word(S.WORKING), *(piece(str(n)) for n in range(100))], run)
        assert transactions.shown == [["working", *map(str, range(100)), "completed"]]

    async def test_a_word_alone_is_written_at_once(self, transactions: Transactions) -> None:
        run = await taken()
        await recorded([word(S.WORKING), None, piece("1"), None, piece("2"), None], run)
        assert transactions.shown == [["working"], ["1"], ["2"], ["completed"]]

    async def test_what_is_said_during_a_flush_goes_with_the_next_in_order(
        self, transactions: Transactions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = await taken()
        pen = Recorder(run)
        with slow_database(monkeypatch) as (go, there):
            pen.emit(word(S.WORKING))
            await there.wait()
            for n in range(10):
                pen.emit(piece(str(n)))
                await asyncio.sleep(0)
            go.set()
            pen.finish(RunEnd())
            await pen.wait_written()
        assert transactions.shown == [["working"], [*map(str, range(10)), "completed"]]
        numbers = [event.number for batch in transactions.batches for event in batch]
        assert numbers == list(range(2, 14))

    async def test_a_fast_agent_waits_for_a_slow_database(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "MAX_WAITING", 5)
        pen = Recorder(await taken())
        with slow_database(monkeypatch) as (go, there):
            pen.emit(word(S.WORKING))
            await there.wait()
            for n in range(5):
                assert not pen.full
                pen.emit(piece(str(n)))
            assert pen.full
            waiting = asyncio.ensure_future(pen.room())
            await asyncio.sleep(0)
            assert not waiting.done()
            go.set()
            await waiting
            assert not pen.full
        pen.finish(RunEnd())
        await pen.wait_written()

    async def test_an_agent_whose_statuses_and_messages_are_long_waits_too(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "MAX_BYTES", 1000)
        pen = Recorder(await taken())
        pen.emit(word(S.WORKING, "x" * 500))
        assert not pen.full
        pen.emit(word(S.WORKING, "x" * 500))
        assert pen.full
        await pen.wait_written()
        direct = Recorder(await taken(task="task-2", is_task=False))
        direct.emit(Reply((Part(text="x" * 500),)))
        assert direct.full, "it is a message, and the closing word of a task"
        for one in (pen, direct):
            one.finish(RunEnd())
            await one.wait_written()

    async def test_after_a_refusal_nothing_more_is_written_whoever_goes_on_speaking(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The log would have a hole."""
        refusals, real = [TransactionRefused("too long")], append_batched

        async def refusing(batch: Any) -> int:
            if refusals:
                raise refusals.pop()
            return await real(batch)

        monkeypatch.setattr(recording, "append_batched", refusing)
        run = await taken()
        pen = Recorder(run)
        pen.emit(word(S.WORKING))
        with pytest.raises(TransactionRefused):
            await pen.wait_written()
        for text in ("1", "2"):
            with pytest.raises(TransactionRefused):
                pen.emit(piece(text))
        pen.finish(RunEnd())
        with pytest.raises(TransactionRefused):
            await pen.wait_written()
        assert len(await run_in_thread(everything, run.task)) == 1

    async def test_a_fence_is_told_to_whoever_speaks_or_waits(self) -> None:
        run = await taken()
        await run_in_thread(cancel.cancel, ALICE, "task-1")
        pen = Recorder(run)
        pen.emit(word(S.WORKING))
        with pytest.raises(LeaseLost):
            await pen.wait_written()
        pen = Recorder(run)
        pen.emit(word(S.WORKING))
        with pytest.raises(LeaseLost):
            for n in range(100_000):  # when enough waits, a word waits for the database
                pen.emit(piece(str(n)))
                await pen.room()


class TestStates:
    async def told(self, *words: Any, **about: Any) -> list[str]:
        run = await taken(**about)
        await recorded(words, run)
        events = await run_in_thread(everything, run.task)
        return [_short(event) for event in events[1:]]

    async def test_nothing_said_is_done(self) -> None:
        assert await self.told() == ["working", "completed"]

    async def test_the_first_word_is_working(self) -> None:
        assert await self.told(piece("x")) == ["working", "x", "completed"]

    async def test_who_says_working_himself_is_not_doubled(self) -> None:
        assert await self.told(word(S.WORKING), piece("x")) == ["working", "x", "completed"]

    async def test_who_refuses_at_once_never_worked(self) -> None:
        assert await self.told(word(S.REJECTED, "no")) == ["rejected"]

    @pytest.mark.parametrize("state", [S.COMPLETED, S.FAILED])
    async def test_an_end_is_the_end(self, state: TaskState) -> None:
        assert await self.told(word(state, "so")) == ["working", state.word]

    @pytest.mark.parametrize("state", [S.INPUT_REQUIRED, S.AUTH_REQUIRED])
    async def test_a_question_is_left_open(self, state: TaskState) -> None:
        assert await self.told(word(state, "what?")) == ["working", state.word]

    async def test_after_the_end_nothing_can_be_said(self) -> None:
        pen = Recorder(await taken())
        pen.emit(word(S.COMPLETED))
        for late in (word(S.WORKING), word(S.COMPLETED), word(S.FAILED)):
            with pytest.raises(IllegalTransition):
                pen.emit(late)
        pen.finish(RunEnd())
        await pen.wait_written()
        assert (await run_in_thread(found)).last_event == 3

    async def test_an_end_and_its_run_are_one_transaction(self, transactions: Transactions) -> None:
        """An ended task is held by no run, and the constraint of that name holds between any two commits."""
        pen = Recorder(await taken())
        pen.emit(word(S.WORKING))
        await pen.wait_written()
        pen.emit(word(S.COMPLETED))
        for _ in range(20):
            await asyncio.sleep(0)  # an agent cleans up after its last word
        pen.finish(RunEnd())
        await pen.wait_written()
        assert transactions.shown == [["working"], ["completed"]]

    async def test_a_direct_message_is_no_task(self) -> None:
        run = await taken(is_task=False)
        await recorded([Reply((Part(text="hi"),))], run)
        events = await run_in_thread(everything, run.task)
        assert [event.kind for event in events] == [
            EventKind.INPUT,
            EventKind.MESSAGE,
            EventKind.STATUS,
        ]
        assert '"taskId"' not in events[1].body
        assert await run_in_thread(find, ALICE, "task-1") is None

    async def test_a_direct_message_of_a_task_is_its_closing_word(self) -> None:
        run = await taken()
        await recorded([piece("x"), Reply((Part(text="bye"),))], run)
        read = await run_in_thread(found)
        assert read.state is S.COMPLETED
        assert b'"bye"' in bytes(read.view.status.message or b"")

    async def test_a_message_of_a_status_names_its_task_and_context(self) -> None:
        await recorded([word(S.COMPLETED, "done")], await taken())
        message = bytes((await run_in_thread(found)).view.status.message or b"")
        assert b'"taskId":"task-1"' in message
        assert b'"contextId":"context-1"' in message

    async def test_memory_is_written_with_the_end(self) -> None:
        pen = Recorder(await taken())
        pen.remember({"asked": 1})
        pen.finish(RunEnd())
        await pen.wait_written()
        assert (await run_in_thread(Task.objects.get)).memory == '{"asked":1}'


class TestArtifacts:
    async def artifacts(self, *words: Any) -> list[str]:
        """What is read at every pause equals what is replayed; the artifacts in the end."""
        run = await taken()
        pen = Recorder(run)
        accepted = await self.accepted()
        for said in [*words, None, "end"]:
            if said == "end":
                pen.finish(RunEnd())
                await pen.wait_written()
            elif said is None:
                await pen.wait_written()
            else:
                pen.emit(said)
                continue
            assert (
                await run_in_thread(replayed, accepted, run.task)
                == (await run_in_thread(found)).view
            )
        growing = Artifact.objects.filter(body="")
        await until(lambda: run_in_thread(lambda: not growing.exists()))  # all are folded
        assert (
            await run_in_thread(replayed, accepted, run.task) == (await run_in_thread(found)).view
        )
        return [bytes(text).decode() for text in (await run_in_thread(found)).view.artifacts or ()]

    async def accepted(self) -> Any:
        return (await run_in_thread(found)).view

    async def test_over_several_batches(self) -> None:
        assert await self.artifacts(
            piece("1"), None, piece("2"), piece("3"), None, piece("4", last=True)
        ) == ['{"artifactId":"a","parts":[{"text":"1"},{"text":"2"},{"text":"3"},{"text":"4"}]}']

    async def test_two_at_a_time(self) -> None:
        assert await self.artifacts(
            piece("1"),
            piece("2", "b"),
            None,
            piece("3"),
            piece("4", "b", last=True),
            None,
            piece("5"),
        ) == [
            '{"artifactId":"a","parts":[{"text":"1"},{"text":"3"},{"text":"5"}]}',
            '{"artifactId":"b","parts":[{"text":"2"},{"text":"4"}]}',
        ]

    async def test_begun_anew(self) -> None:
        assert await self.artifacts(
            piece("1"), None, piece("2", append=False), piece("3"), None, piece("4", append=False)
        ) == ['{"artifactId":"a","parts":[{"text":"4"}]}']

    async def test_closed_and_begun_anew_in_one_breath(self) -> None:
        assert await self.artifacts(
            piece("1"), None, piece("2", last=True), piece("3", append=False), None, piece("4")
        ) == ['{"artifactId":"a","parts":[{"text":"3"},{"text":"4"}]}']

    async def test_continued_after_it_was_closed(self) -> None:
        assert await self.artifacts(piece("1", last=True), None, piece("2"), None, piece("3")) == [
            '{"artifactId":"a","parts":[{"text":"1"},{"text":"2"},{"text":"3"}]}'
        ]

    async def test_continued_in_the_breath_it_was_closed_in(self) -> None:
        assert await self.artifacts(piece("1", last=True), piece("2"), None, piece("3")) == [
            '{"artifactId":"a","parts":[{"text":"1"},{"text":"2"},{"text":"3"}]}'
        ]

    async def test_continued_after_it_was_closed_and_then_cancelled(self) -> None:
        run = await taken()
        accepted = await self.accepted()
        await recorded([piece("1", last=True), None, piece("2"), None], run, end=False)
        await run_in_thread(cancel.cancel, ALICE, "task-1")
        assert (
            await run_in_thread(replayed, accepted, run.task) == (await run_in_thread(found)).view
        )

    async def test_that_is_folded_after_the_next_attempt_was_claimed_grows_all_the_same(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        late: list[Any] = []
        monkeypatch.setattr(folding, "run_in_background", lambda *work: late.append(work))
        run = await taken()
        await recorded([piece("1"), None, piece("2", last=True), None], run, end=False)
        await run_in_thread(expire, run.key)
        await run_in_thread(runs.reclaim_expired, max_attempts=9)
        (again,) = await run_in_thread(claim)
        assert again.artifacts == (("a", 0, True),), "as it is not folded, it seems to grow"
        for fold, *about in late:
            await run_in_thread(fold, *about)
        assert await run_in_thread(Artifact.objects.exclude(body="").exists)
        await recorded([piece("3")], again)
        artifacts = (await run_in_thread(found)).view.artifacts
        assert isinstance(artifacts, list)
        (artifact,) = artifacts
        assert [part["text"] for part in json.loads(bytes(artifact))["parts"]] == ["1", "2", "3"]

    async def last_chunks(self, *words: Any) -> list[bool]:
        run = await taken()
        await recorded(words, run)
        events = await run_in_thread(everything, run.task)
        return ['"lastChunk":true' in e.body for e in events if e.kind is EventKind.ARTIFACT]

    async def test_the_last_piece_of_the_answer_says_so(self) -> None:
        assert await self.last_chunks(piece("1", "answer"), piece("2", "answer")) == [False, True]

    async def test_a_piece_that_said_so_does_not_say_it_twice(self) -> None:
        run = await taken()
        await recorded([piece("1", "answer", last=True)], run)
        assert (await run_in_thread(everything, run.task))[2].body.count("lastChunk") == 1

    async def test_a_word_that_cannot_be_written_leaves_nothing_behind(self) -> None:
        """The task can still be failed, and the next artifact is in its place."""
        run = await taken()
        accepted = await self.accepted()
        pen = Recorder(run)
        pen.emit(piece("1"))
        with pytest.raises((TypeError, ValueError)):
            pen.emit(Chunk(artifact_id="b", parts=(Part(data=object()),)))
        with pytest.raises((TypeError, ValueError)):
            pen.emit(Chunk(artifact_id="a", parts=(Part(text="\ud800"),)))
        pen.emit(piece("2"))
        pen.emit(word(S.FAILED, "sorry"))
        pen.finish(RunEnd("failed"))
        await pen.wait_written()
        read = await run_in_thread(found)
        assert read.state is S.FAILED
        assert await run_in_thread(replayed, accepted, run.task) == read.view


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
class TestWithoutADatabase:
    async def test_what_was_certainly_not_written_is_written_when_the_database_is_back(
        self, transactions: Transactions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refused: list[BaseException] = []
        monkeypatch.setattr(store_db._outage, "warning", refused.append)
        run = await taken()
        async with locked("a2a_tasks_event", 0.1):
            writing = asyncio.create_task(recorded([piece("a"), None, piece("b", last=True)], run))
            await until(lambda: len(refused) > 1)
        await asyncio.wait_for(writing, 10)
        assert transactions.shown == [["working", "a"], ["b", "completed"]]
        assert (await run_in_thread(Task.objects.get)).state == S.COMPLETED
