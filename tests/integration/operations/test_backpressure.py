"""Back-pressure: a full line sends away at once, and whoever was let in is served to the end."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from pytest_django import Settings

from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.host_extensions import USAGE
from a2a_tasks.caller import Caller
from a2a_tasks.execution import dispatch, slots
from a2a_tasks.models import Run, Task
from a2a_tasks.operations import backpressure
from a2a_tasks.operations.backpressure import limit_waiting
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import InvalidParams, Overloaded, RateLimited, TaskNotFound
from a2a_tasks.protocol.requests import ListTasksRequest, SendMessageRequest
from a2a_tasks.store import files
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.streaming.event_buffer import hub
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until

BOB = Caller(principal="user:bob")
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
async def local(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Runs are this process's own, and nothing is known of their queues."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    monkeypatch.setattr(
        "a2a_tasks.operations.accept_message.queue_limit", backpressure.make_queue_limit()
    )
    monkeypatch.setattr(
        "a2a_tasks.operations.accept_message.tenant_limit", backpressure.make_tenant_limit()
    )
    async with hosting():
        yield


async def waits(turn: Turn) -> AsyncIterator[Any]:
    yield turn.working("I work.")
    if turn.text == "wait":
        await asyncio.Event().wait()


@pytest.fixture
def agent() -> Any:
    with playing(waits) as made:
        yield made


async def all_of(work: list[Any]) -> tuple[list[values.Task], list[Overloaded]]:
    """What was answered and what was refused; anything else is an error."""
    answers = await asyncio.gather(*work, return_exceptions=True)
    given = [answer for answer in answers if isinstance(answer, values.Task)]
    refused = [answer for answer in answers if isinstance(answer, Overloaded)]
    assert len(given) + len(refused) == len(work), answers
    return given, refused


def request_of(client: Client, *parts: values.Part) -> SendMessageRequest:
    """A message of these parts."""
    request = client.request("")
    message = msgspec.structs.replace(request.message, parts=parts)
    return dataclasses.replace(request, message=message)


def request_with_file(client: Client) -> SendMessageRequest:
    """A message with a file of 300 bytes."""
    return request_of(client, values.Part(raw="eHh4" * 100, media_type="text/plain"))


async def ended(client: Client, task: str) -> bool:
    return await client.states(task) == "completed"


class TestTheSlotsOfThisProcess:
    @pytest.fixture(autouse=True)
    async def ready(self, local: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        """The runner does nothing of its own: while it claims, what is accepted gets no slot."""
        settings.A2A_POLL_SECONDS = 60
        monkeypatch.setattr(slots, "RUN_BYTES", 1_000_000)
        await dispatch._runner().ready.wait()

    async def test_large_messages_that_come_together_begin_as_far_as_there_are_bytes(self) -> None:
        go = asyncio.Event()

        async def run(turn: Turn) -> str:
            await go.wait()
            return "done"

        with playing(run) as agent:
            alice = Client(agent)
            tasks = await asyncio.gather(*(alice.begin("x" * 300_000) for _ in range(10)))
            assert dispatch.load().running <= 4, "the last one may exceed the bytes"
            go.set()
            for task in tasks:
                await until(functools.partial(ended, alice, task.id))

    @pytest.mark.parametrize("wrong", ["no task", "refused"])
    async def test_a_slot_is_free_again_if_nothing_is_accepted(
        self, agent: Agent, settings: Settings, wrong: str
    ) -> None:
        alice, runner = Client(agent), dispatch._runner()
        if wrong == "refused":
            settings.A2A_MAX_MESSAGE_BYTES = 10
        send = asyncio.ensure_future(
            alice.send("x", **{"task_id": "none"} if wrong == "no task" else {})
        )
        (fault,) = await asyncio.gather(send, return_exceptions=True)
        assert isinstance(fault, TaskNotFound | InvalidParams)
        assert (runner._reserved, runner._slots.room) == ({}, runner._slots.count)

    async def test_a_message_counts_until_it_is_accepted_though_its_caller_has_left(
        self, agent: Agent
    ) -> None:
        runner = dispatch._runner()
        send = asyncio.ensure_future(Client(agent).send())
        while not (runner._reserved or send.done()):  # noqa: ASYNC110 - it lasts for one write
            await asyncio.sleep(0)
        send.cancel()
        await asyncio.gather(send, return_exceptions=True)
        assert (backpressure._bytes and backpressure._waiting == 1) or not runner._reserved
        await until(lambda: not (backpressure._bytes or backpressure._waiting))
        assert not runner._reserved

    @pytest.mark.parametrize(
        "parts",
        [
            [values.Part(text="x", metadata={"a": "y" * 60_000})] * 9,
            [values.Part(text="\x01" * 100_000)],
            [values.Part(raw="eHh4" * 100_000, media_type="text/plain")],
        ],
        ids=["metadata", "escapes", "file"],
    )
    async def test_a_run_counts_with_what_it_has_in_memory(self, parts: list[values.Part]) -> None:
        go = asyncio.Event()

        async def run(turn: Turn) -> None:
            await go.wait()

        with playing(run) as agent:
            alice, runner = Client(agent), dispatch._runner()
            free = runner._slots._left
            request = request_of(alice, *parts)
            send = asyncio.ensure_future(TABLE["SendMessage"](request, alice.call()))
            await until(lambda: runner.runs_in_process)
            (active,) = runner._active.values()
            assert free - runner._slots._left == active.run.size
            go.set()
            await send
            await until(lambda: runner._slots._left == free)

    async def test_a_message_whose_files_are_being_stored_has_no_slot_yet(
        self, agent: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stores, kept = asyncio.Event(), files.keep

        async def keep(*args: Any) -> Any:
            await stores.wait()
            return await kept(*args)

        monkeypatch.setattr(files, "keep", keep)
        settings.A2A_FILE_INLINE_BYTES = 10
        alice, runner = Client(agent), dispatch._runner()
        request = request_with_file(alice)
        send = asyncio.ensure_future(TABLE["SendMessage"](request, alice.call()))
        assert (await alice.send()).status.state.word == "completed"
        assert (runner._reserved, send.done()) == ({}, False)
        stores.set()
        assert (await send).status.state.word == "completed"

    async def test_a_slot_is_free_again_if_the_run_waits_behind_another(self) -> None:
        go = asyncio.Event()

        async def run(turn: Turn) -> str:
            await go.wait()
            return "done"

        with playing(run) as agent:
            alice, runner = Client(agent), dispatch._runner()
            first = asyncio.ensure_future(alice.send())
            await until(lambda: runner.runs_in_process)
            task = await run_in_thread(Task.objects.get)
            second = asyncio.ensure_future(alice.send(task_id=task.public_id))
            await until(lambda: run_in_thread(lambda: Run.objects.count() == 2))
            await until(lambda: not runner._reserved)
            assert runner._slots.room == runner._slots.count - 1
            go.set()
            await asyncio.gather(first, second, return_exceptions=True)


class TestTheLineToTheDatabase:
    async def test_who_comes_to_a_full_line_is_told_to_come_again(
        self, agent: Agent, settings: Settings
    ) -> None:
        alice = Client(agent)
        settings.A2A_MAX_WAITING = 1
        task = await alice.send()
        with limit_waiting():
            for refused in (
                alice.send(),
                alice.stream(),
                alice.get(task.id),
                alice.cancel(task.id),
                alice.subscribe(task.id),
                TABLE["ListTasks"](ListTasksRequest(), alice.call()),
            ):
                with pytest.raises(Overloaded) as caught:
                    await refused
                assert caught.value.metadata == {"retry_after": "1"}
        assert await alice.states(task.id) == "completed"

    @pytest.mark.parametrize(
        "large",
        [
            {"text": "x" * 300_000},
            {"text": "😀" + "x" * 75_000},
            {"raw": "eA==" * 75_000},
            {"data": {"a": ["😀" + "x" * 75_000]}},
        ],
        ids=["ASCII", "emoji", "raw", "data"],
    )
    async def test_large_messages_wait_for_each_other_and_small_ones_for_none(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch, large: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(backpressure, "WAITING_BYTES", 1_000_000)
        part = values.Part(**large)
        with limit_waiting(part), pytest.raises(Overloaded) as caught, limit_waiting(part):
            pass
        assert caught.value.metadata == {"retry_after": "1"}
        with limit_waiting(values.Part(text="x" * 1_000_000)):  # alone, one may be larger
            assert (await Client(agent).send("hello")).status.state.word == "completed"
        with limit_waiting(part):
            pass

    def test_a_large_message_beside_reads_is_alone(self) -> None:
        part = values.Part(data={"a": ["😀" + "x" * 9_000_000]})
        with limit_waiting(), limit_waiting(), limit_waiting(part), limit_waiting():
            pass

    async def test_who_waits_for_an_agent_stands_in_no_line(self, settings: Settings) -> None:
        settings.A2A_MAX_WAITING = 1
        begun, go = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> str:
            begun.set()
            await go.wait()
            return "done"

        with playing(run) as agent:
            alice = Client(agent)
            blocked = asyncio.create_task(alice.send())
            await begun.wait()
            assert await TABLE["ListTasks"](ListTasksRequest(), alice.call())
            go.set()
            assert (await blocked).status.state.word == "completed"

    async def test_of_many_at_once_each_is_refused_at_once_or_served_to_the_end(
        self, agent: Agent, settings: Settings
    ) -> None:
        alice = Client(agent)
        settings.A2A_MAX_WAITING = 20
        given, refused = await all_of([alice.send(f"{n}") for n in range(200)])
        assert len(given) >= 20
        assert refused
        assert {task.status.state.word for task in given} == {"completed"}
        page = await TABLE["ListTasks"](ListTasksRequest(page_size=100), alice.call())
        assert page.total_size == len(given)


class TestTheQueueOfRuns:
    async def test_only_so_many_runs_wait(
        self, agent: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backpressure, "COUNT_SECONDS", 3600.0)
        alice = Client(agent)
        settings.A2A_RUN_SLOTS, settings.A2A_MAX_QUEUED = 1, 3
        first = await alice.begin("wait")
        given, refused = await all_of([alice.begin("hello") for _ in range(50)])
        assert len(given) == 3
        assert {fault.metadata["retry_after"] for fault in refused} == {"5"}
        monkeypatch.setattr(backpressure, "COUNT_SECONDS", 0.0)
        await alice.cancel(first.id)
        await until(lambda: self.all_ended(alice, given))
        assert (await alice.send("hello")).status.state.word == "completed"

    @staticmethod
    async def all_ended(alice: Client, tasks: list[values.Task]) -> bool:
        return {await alice.states(task.id) for task in tasks} == {"completed"}

    async def test_a_run_that_starts_at_once_is_not_counted(
        self, agent: Agent, settings: Settings
    ) -> None:
        alice = Client(agent)
        settings.A2A_MAX_QUEUED = 1
        given, refused = await all_of([alice.begin("wait") for _ in range(20)])
        assert (len(given), refused) == (20, [])
        for task in given:
            await alice.cancel(task.id)

    async def test_files_of_a_message_that_the_queue_refuses_are_not_stored(
        self, agent: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backpressure, "COUNT_SECONDS", 3600.0)
        monkeypatch.setattr(dispatch, "by_workers", lambda: True)
        monkeypatch.setattr(files, "keep", None)
        settings.A2A_MAX_QUEUED, settings.A2A_FILE_INLINE_BYTES = 1, 10
        alice = Client(agent)
        await alice.begin()
        with pytest.raises(Overloaded):
            await TABLE["SendMessage"](request_with_file(alice), alice.call())


class TestWhatIsUnfinished:
    async def test_of_one_caller_only_so_many_runs_are(
        self, agent: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backpressure, "COUNT_SECONDS", 3600.0)
        alice, bob = Client(agent), Client(agent, BOB)
        settings.A2A_RUN_SLOTS, settings.A2A_MAX_UNFINISHED_PER_TENANT = 2, 3
        begun = [await alice.begin("wait") for _ in range(3)]
        for again in (alice.begin("wait"), alice.send("hello"), alice.stream("hello")):
            with pytest.raises(RateLimited) as caught:
                await again
            assert caught.value.metadata == {"retry_after": "5"}
        await bob.begin("hello")
        monkeypatch.setattr(backpressure, "COUNT_SECONDS", 0.0)
        await alice.cancel(begun[0].id)
        await alice.begin("hello")


class TestOpenStreams:
    async def test_of_one_caller_only_so_many_are_open(
        self, agent: Agent, settings: Settings
    ) -> None:
        alice, bob = Client(agent), Client(agent, BOB)
        settings.A2A_MAX_STREAMS_PER_TENANT = 2
        task = await alice.begin("wait")
        open_ = [await alice.subscribe(task.id), await alice.stream("wait")]
        for again in (alice.subscribe(task.id), alice.stream("wait")):
            with pytest.raises(RateLimited) as caught:
                await again
            assert caught.value.metadata == {"retry_after": "5"}
        await (await bob.stream("hello")).close()
        await open_[0].close()
        await open_[0].close()  # twice is once
        open_[0] = await alice.subscribe(task.id)
        with pytest.raises(RateLimited):
            await alice.subscribe(task.id)
        for stream in open_:
            await stream.close()
        assert not backpressure.stream_limit._open

    async def test_one_that_could_not_be_opened_does_not_count(
        self, agent: Agent, settings: Settings
    ) -> None:
        alice = Client(agent)
        settings.A2A_MAX_STREAMS_PER_TENANT = 1
        for _ in range(3):
            with pytest.raises(TaskNotFound):
                await alice.subscribe("nowhere")
        assert not backpressure.stream_limit._open

    async def test_one_whose_usage_could_not_be_read_does_not_count(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> None:
            raise Overloaded

        monkeypatch.setattr("a2a_tasks.operations.usage.read_usage", fail)
        alice = Client(agent)
        alice.circumstances = {"extensions": (USAGE.uri,)}
        with pytest.raises(Overloaded):
            await alice.stream("wait")
        assert not backpressure.stream_limit._open
        assert not hub()._feeds
