"""Reads of what is large: they get the time that their bytes need, and small ones ask for none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import psycopg
import pytest
from django.db import connection, connections
from django.db.models import F
from django.test import override_settings

from a2a_tasks.agents import Turn
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Artifact, Event, Message, Run, RunStatus, Step
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import LogEvent, fold
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import db as store_db
from a2a_tasks.store import event_log, folding, runs, steps, tasks
from a2a_tasks.store.backend import sessions
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import ClaimedRun, LogPosition, RunEnd
from a2a_tasks.store.replies import reply
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, due, hosting, listened, runner
from tests.support.execution.waiting import until
from tests.support.proxy import Behaviour, Proxy
from tests.support.store.world import ALICE, Pen, accepted, claim, held, new, said

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
#: Bytes of what is large, and of what is small; what a link passes in a second.
LARGE, SMALL, RATE = 2_500_000, 1000, 2_500_000
KEY = (ALICE, "task-1")


def whole(size: int) -> Pen:
    """A task with an artifact in one piece."""
    pen = Pen(held())
    pen.begin("a", "x" * size)
    list(folding.fold(pen.run.task, 99))
    return pen


def growing(size: int) -> Pen:
    """A task with an artifact in many pieces."""
    pen = Pen(held())
    pen.begin("a", "x" * (size // 10))
    for _ in range(9):
        pen.add("a", "x" * (size // 10))
    return pen


def of_two_runs(size: int) -> Pen:
    """An artifact that another run has begun."""
    pen = growing(size)
    Event.objects.filter(task=pen.run.task, number__lt=11).update(run=0)
    return pen


def stepped(size: int) -> Pen:
    """A task whose turn has kept ten steps."""
    pen = Pen(held())
    for n in range(10):
        row = {"task_id": pen.run.task, "input_number": 1, "run": pen.run.key}
        Step.objects.create(name=str(n), result="x" * (size // 10), **row)
    return pen


def asking(size: int) -> Pen:
    """A task that asks at length."""
    pen = Pen(held())
    pen.state(TaskState.INPUT_REQUIRED, "x" * (size // 2), end=RunEnd())
    return pen


def talkative(size: int) -> Pen:
    """A task whose second message is at work, and whose first one was long."""
    pen = Pen(held(text="x" * size))
    reply(new(text="and?"))
    pen.state(TaskState.INPUT_REQUIRED, end=RunEnd())
    (second,) = claim()
    return Pen(second)


def waiting(size: int) -> Pen:
    """A message that waits for a process, and a run of another task."""
    accepted("waiting", text="x" * size)
    return Pen(held())


def read_each(pen: Pen) -> list[list[LogEvent]]:
    """The events of a growing artifact, as webhooks of many tasks read theirs."""
    pages = [LogPosition(pen.run.task, number) for number in range(1, 11)]
    return event_log.read_pages(pages, limit=1, max_bytes=1, longest=LARGE)


Read = Callable[[Pen], Awaitable[Any]]
LIST = ListTasksRequest(include_artifacts=True, history_length=9)
READS: dict[str, tuple[Callable[[int], Pen], Read]] = {
    "task": (whole, lambda pen: tasks.find_batched(KEY)),
    "task with a long history": (talkative, lambda pen: tasks.find_batched(KEY)),
    "task with a long status": (asking, lambda pen: tasks.find_batched(KEY)),
    "task of a stream": (whole, lambda pen: run_in_thread(tasks.find_by_key, pen.run.task)),
    "task that grows": (growing, lambda pen: tasks.find_batched(KEY)),
    "task before a message": (talkative, lambda pen: run_in_thread(tasks.find_before, pen.run)),
    "large event": (whole, lambda pen: run_in_thread(event_log.read_after, pen.run.task, 1)),
    "steps": (stepped, lambda pen: steps.load_batched((pen.run.task, 1))),
    "list": (whole, lambda pen: read_list(LIST)),
    "claim": (waiting, lambda pen: run_in_thread(lambda: runs.read_texts(*claim()))),
    "events of webhooks": (growing, lambda pen: run_in_thread(read_each, pen)),
    "references": (whole, lambda pen: run_in_thread(tasks.references, ALICE, ["task-1"])),
    "pieces of another run": (
        of_two_runs,
        lambda pen: run_in_thread(folding.assemble_without, pen.run.key, pen.run.task, "a"),
    ),
}


@pytest.fixture
def slow_link(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A link to the database that passes RATE, and statements that get half a second."""
    to = connection.get_connection_params()
    with Proxy(int(to.get("port") or 5432), to.get("host") or "127.0.0.1") as proxy:
        for name, value in {"HOST": proxy.host, "PORT": str(proxy.port)}.items():
            monkeypatch.setitem(connections.settings["default"], name, value)
        monkeypatch.setattr(sessions, "SILENCE_SECONDS", 0.2)
        store_db.close()
        with override_settings(A2A_DATABASE_SECONDS=0.5):
            yield proxy
        store_db.close()


@pytest.mark.parametrize("name", READS)
async def test_what_is_large_comes_over_a_slow_link(name: str, slow_link: Proxy) -> None:
    make, read = READS[name]
    pen = await asyncio.to_thread(closing, partial(make, LARGE))
    slow_link.behave(Behaviour(rate=RATE))
    assert length_of(await read(pen)) > LARGE / 2


def length_of(found: Any) -> int:
    """The number of bytes in what was read, about."""
    return len(msgspec.json.encode(getattr(found, "view", found), enc_hook=repr))


def closing(make: Callable[[], Pen]) -> Pen:
    """Make rows in a thread, which has a connection of its own."""
    try:
        return make()
    finally:
        connections.close_all()


@pytest.mark.parametrize("name", READS)
async def test_what_is_small_asks_for_no_more_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[float] = []
    monkeypatch.setattr(sessions, "_allow", allowed.append)
    make, read = READS[name]
    pen = await asyncio.to_thread(closing, partial(make, SMALL))
    assert await read(pen)
    assert allowed == []


async def test_small_ones_are_read_in_one_statement_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await asyncio.to_thread(closing, partial(whole, SMALL))
    await tasks.find_batched(KEY)  # connects
    asked: list[str] = []
    execute = psycopg.RawCursor.execute

    def count(cursor: Any, query: Any, *values: Any, **more: Any) -> Any:
        asked.append(query)
        return execute(cursor, query, *values, **more)

    monkeypatch.setattr(psycopg.RawCursor, "execute", count)
    assert await tasks.find_batched(KEY)
    assert len(asked) == 1


async def speaks(turn: Turn) -> AsyncIterator[Any]:
    """Say what is large, and ask if there is to be more."""
    yield "and more" if turn.text == "yes" else "x" * LARGE
    if turn.text == "begin":
        yield turn.ask("more?")


async def asked(alice: Client) -> values.Task:
    """A large task that asks, and whose artifact was folded."""
    task = await alice.send("begin")
    await until(lambda: run_in_thread(Artifact.objects.exclude(body="").exists))
    return task


class TestALargeTask:
    """It is answered and cancelled over a slow link, and what was written is told."""

    @pytest.fixture
    async def alice(self, slow_link: Proxy, settings: Any) -> AsyncIterator[Client]:
        settings.A2A_RUNS = "local"
        with playing(speaks) as agent:
            async with hosting():
                yield Client(agent)

    async def test_is_answered(self, alice: Client, slow_link: Proxy) -> None:
        task = await asked(alice)
        slow_link.behave(Behaviour(rate=RATE))
        answered = await alice.send("yes", task_id=task.id)
        assert answered.status.state is TaskState.COMPLETED
        assert length_of(answered) > LARGE
        assert len(answered.history or ()) == 3

    async def test_is_the_start_of_a_stream_as_it_was_answered(
        self, alice: Client, slow_link: Proxy
    ) -> None:
        task = await asked(alice)
        slow_link.behave(Behaviour(rate=RATE))
        stream = await alice.stream("yes", task_id=task.id)
        first = stream.take_first()
        assert isinstance(first, values.Task)
        assert first.status.state is TaskState.WORKING
        assert length_of(first) > LARGE
        events = await listened(stream)
        assert fold(first, events) == await alice.get(task.id)

    async def test_is_cancelled(self, alice: Client, slow_link: Proxy) -> None:
        task = await asked(alice)
        slow_link.behave(Behaviour(rate=RATE))
        canceled = await alice.cancel(task.id)
        assert canceled.status.state is TaskState.CANCELED
        assert canceled == await alice.get(task.id)

    async def test_is_told_to_be_cancelled_though_it_cannot_be_read(
        self, alice: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = await asked(alice)
        monkeypatch.setattr(cancel_task, "find_batched", refused)
        assert (await alice.cancel(task.id)).status.state is TaskState.CANCELED
        assert await alice.states(task.id) == "canceled"

    async def test_is_repeated_after_retention_has_removed_the_begin_of_its_log(
        self, alice: Client, slow_link: Proxy
    ) -> None:
        alice.circumstances["idempotency_key"] = "key-1"
        task = await alice.send("once")
        await run_in_thread(Event.objects.filter(number=1).delete)
        slow_link.behave(Behaviour(rate=RATE))
        assert await alice.send("once") == await alice.get(task.id)


def conversed(size: int) -> Pen:
    """An ended task of a long conversation, whose dialect lets a further message begin it anew."""
    pen = Pen(held(dialect="v01"))
    pen.end()
    rows = [{"number": 100 + n, "body": said("x" * (size // 10))} for n in range(30)]
    Message.objects.bulk_create(
        [Message(task_id=pen.run.task, role="ROLE_USER", **row) for row in rows]
    )
    return pen


async def test_an_ended_task_of_a_long_conversation_begins_anew(slow_link: Proxy) -> None:
    pen = await asyncio.to_thread(closing, partial(conversed, LARGE))
    slow_link.behave(Behaviour(rate=RATE))
    begun = await run_in_thread(reply, new(text="again", reopens=True, dialect="v01"))
    assert begun.task != pen.run.task


async def test_a_run_of_a_large_message_reads_it_over_a_slow_link(slow_link: Proxy) -> None:
    heard = list[int]()

    async def run(turn: Turn) -> None:
        heard.append(len(turn.text))

    with playing(run) as agent:
        await due(agent.slug, text="x" * LARGE)
        await due(agent.slug, "small", text="x")
        slow_link.behave(Behaviour(rate=RATE))
        async with runner():
            await until(both_ended)
    assert (sorted(heard), await run_in_thread(count_deaths)) == ([1, LARGE], 0)


class TestARunWhoseLargeMessageDoesNotArrive:
    """It holds its lease, can be cancelled and handed back, and waits for the database."""

    @pytest.fixture
    async def heard(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
        """The lengths of messages that an agent gets; its run waits, and its first read fails."""
        self.asked, self.comes = threading.Event(), threading.Event()
        heard, read = list[int](), runs.read_texts

        def read_late(run: ClaimedRun) -> ClaimedRun:
            if not self.asked.is_set():
                self.asked.set()
                raise Overloaded
            self.comes.wait(20)
            return read(run)

        async def run(turn: Turn) -> None:
            heard.append(len(turn.text))

        monkeypatch.setattr(runs, "read_texts", read_late)
        with playing(run) as agent:
            await due(agent.slug, text="x" * LARGE)
            async with runner() as self.runner:
                assert await asyncio.to_thread(self.asked.wait, 20)
                self.client = Client(agent)
                yield heard
        assert await run_in_thread(count_deaths) == 0

    async def test_it_is_executed_as_soon_as_it_arrives(self, heard: list[int]) -> None:
        self.comes.set()
        await until(both_ended)
        assert heard == [LARGE]

    async def test_a_cancelled_one_is_not_executed(self, heard: list[int]) -> None:
        await self.client.cancel("task-1")
        await until(lambda: not self.runner.runs_in_process)
        self.comes.set()
        assert (await self.client.states("task-1"), heard) == ("canceled", [])

    async def test_one_that_is_handed_back_waits_for_another_process(
        self, heard: list[int]
    ) -> None:
        await self.runner.drain(0.1)
        self.comes.set()
        assert (await run_in_thread(stand_of_runs), heard) == ([RunStatus.QUEUED], [])

    async def test_a_drain_hands_it_back_though_a_claim_cannot_be_taken_back(
        self, heard: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(runs, "unclaim", refuse)
            self.runner._unanswered.append("a claim")
            await self.runner.drain(0.1)
        assert await run_in_thread(stand_of_runs) == [RunStatus.QUEUED]


async def test_a_run_whose_texts_cannot_be_read_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with playing(speaks) as agent:
        await due(agent.slug, text="x" * LARGE)
        with monkeypatch.context() as patch:
            patch.setattr(runs, "read_texts", partial(refuse, fault=ValueError("odd")))
            async with runner():
                await until(lambda: run_in_thread(count_deaths))
        async with runner():
            await until(both_ended)
    assert "ValueError: odd" in await run_in_thread(lambda: Run.objects.get().error)


@pytest.mark.parametrize("shared", ["queues", "agents"])
def test_a_claim_is_bounded_whatever_its_texts_belong_to(shared: str) -> None:
    names = ["a", "b", "c", "d"]
    for name in names:
        of = {"queue": name} if shared == "queues" else {"scope": OwnerScope("", "", name)}
        accepted(name, text="x" * 450_000, **of)  # twice in the message
    wanted = {"queues": names} if shared == "queues" else {"limits": dict.fromkeys(names, 9)}
    claimed = [len(claim(**wanted)), len(claim(**wanted))]
    assert claimed == [3, 1]


def test_a_small_message_behind_a_large_one_is_read_by_its_claim() -> None:
    for name, text in {"large": "x" * LARGE, "small": "x"}.items():
        accepted(name, text=text)
    (large,), (small,) = claim(), claim()
    assert (large.unread > LARGE, large.input) == (True, "")
    assert (small.unread, bool(small.input)) == (0, True)


def refuse(*_: Any, fault: Exception | None = None) -> Any:
    raise fault or Overloaded


def stand_of_runs() -> list[str]:
    return list(Run.objects.values_list("status", flat=True))


def count_deaths() -> int:
    return sum(Run.objects.values_list(F("deaths") + F("shared_deaths"), flat=True))


async def both_ended() -> bool:
    return set(await run_in_thread(stand_of_runs)) == {RunStatus.ENDED}


async def refused(*_: Any) -> Any:
    """The database is away."""
    raise Overloaded


async def test_large_ones_keep_no_small_one_waiting(slow_link: Proxy) -> None:
    """They are read in the threads for lists, and in no flush with others."""
    await asyncio.to_thread(closing, partial(whole, LARGE))
    await asyncio.to_thread(closing, lambda: Pen(held("small")))
    assert await tasks.find_batched((ALICE, "small"))  # connects
    slow_link.behave(Behaviour(rate=RATE))
    large = asyncio.ensure_future(tasks.find_batched(KEY))
    for _ in range(10):
        assert await tasks.find_batched((ALICE, "small"))
        assert not large.done()
    assert await large


@pytest.mark.parametrize(
    "read",
    [lambda: tasks.find_batched(KEY), lambda: read_list(LIST)],
    ids=["tasks", "pages"],
)
async def test_many_large_ones_of_a_caller_keep_no_list_waiting(
    read: Callable[[], Awaitable[Any]], slow_link: Proxy
) -> None:
    await asyncio.to_thread(closing, partial(whole, LARGE))
    small = ListTasksRequest()
    await asyncio.gather(read_list(small), read_list(small))  # connects
    slow_link.behave(Behaviour(rate=RATE))
    large = [asyncio.ensure_future(read()) for _ in range(4)]
    assert (await read_list(small)).total_size == 1
    assert not large[0].done()
    assert await large[0]
    await asyncio.gather(*large, return_exceptions=True)


def read_list(request: ListTasksRequest) -> Awaitable[values.TaskPage]:
    """A page of alice's tasks."""
    return tasks.list_in_turn(ALICE, request)
