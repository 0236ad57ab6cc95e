"""The operations as bindings call them: what is answered, what is refused, and what stays invisible."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.models import Context, Task
from a2a_tasks.protocol.errors import (
    ContentTypeNotSupported,
    PushNotificationNotSupported,
    TaskNotFound,
    UnsupportedOperation,
)
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import fold
from a2a_tasks.protocol.requests import ListTasksRequest, SendMessageRequest
from a2a_tasks.protocol.sse import EventId
from a2a_tasks.protocol.values import Message, Part, PushConfig, Raw, Role, TaskPage, TaskState
from a2a_tasks.store import tasks
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.streaming.event_buffer import hub
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, listened
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
async def local(settings: Any) -> AsyncIterator[None]:
    """Runs are this process's own."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    async with hosting():
        yield


async def obeys(turn: Turn) -> AsyncIterator[Any]:
    """Do as the text says."""
    match turn.text:
        case "ask":
            yield turn.ask("what?")
        case "auth":
            yield turn.need_auth("who?")
        case "wait":
            yield turn.working("waiting")
            await asyncio.Event().wait()
        case "reply":
            yield turn.reply("directly")
        case _:
            yield turn.text
            yield " and more"


@pytest.fixture
def agent() -> Any:
    with playing(obeys) as found:
        yield found


@pytest.fixture
def alice(agent: Agent) -> Client:
    return Client(agent)


@pytest.mark.django_db(transaction=True)
class TestSlowLists:
    async def test_keep_nobody_waiting_who_asks_for_a_task(
        self, alice: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task, real, read = await alice.send("hello"), tasks.list_tasks, threading.Event()

        def slow(scope: OwnerScope, request: ListTasksRequest, max_bytes: int) -> TaskPage:
            read.wait(20)
            return real(scope, request, max_bytes)

        monkeypatch.setattr(tasks, "list_tasks", slow)
        lists = [
            asyncio.ensure_future(TABLE["ListTasks"](ListTasksRequest(), alice.call()))
            for _ in range(20)
        ]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(5):
                assert await alice.get(task.id) == task
            assert not any(page.done() for page in lists)
        finally:
            read.set()
        assert {page.total_size for page in await asyncio.gather(*lists)} == {1}


class TestSendMessage:
    async def test_it_answers_when_the_task_has_settled(self, alice: Client) -> None:
        task = await alice.send("hello")
        assert task.status.state.word == "completed"
        assert task == await alice.get(task.id)

    async def test_it_answers_at_once_if_asked_so(self, alice: Client) -> None:
        task = await alice.begin("wait")
        assert task.status.state.word == "submitted"
        await alice.cancel(task.id)

    @pytest.mark.parametrize(
        ("text", "word"), [("ask", "input-required"), ("auth", "auth-required")]
    )
    async def test_a_question_settles_it(self, text: str, word: str, alice: Client) -> None:
        task = await alice.send(text)
        assert task.status.state.word == word
        task = await alice.send("hello", task_id=task.id)
        assert task.status.state.word == "completed"
        assert len(task.history or ()) == 3  # the question is there, too

    async def test_it_answers_with_what_there_is_after_the_longest_block(
        self, alice: Client, settings: Any
    ) -> None:
        settings.A2A_MAX_BLOCK_SECONDS = 0.2
        task = await asyncio.wait_for(alice.send("wait"), 20)
        # Whether the agent has begun by then is a matter of the machine.
        assert task.status.state.word in {"submitted", "working"}

    async def test_it_returns_when_another_cancels_the_task(self, alice: Client) -> None:
        sending = asyncio.ensure_future(alice.send("wait"))
        row = await until(lambda: run_in_thread(Task.objects.first))
        await alice.cancel(row.public_id)
        assert (await asyncio.wait_for(sending, 20)).status.state.word == "canceled"

    async def test_a_sender_that_leaves_leaves_the_task_alone(self, alice: Client) -> None:
        sending = asyncio.ensure_future(alice.send("wait"))
        row = await until(
            lambda: run_in_thread(Task.objects.filter(state="TASK_STATE_WORKING").first)
        )
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert await alice.states(row.public_id) == "working"

    @pytest.mark.parametrize("length", [0, 1, 2, 5, None])
    async def test_the_history_is_as_long_as_asked(self, length: int | None, alice: Client) -> None:
        task = await alice.send("ask")
        task = await alice.send("hello", task_id=task.id, history_length=length)
        shown = list(task.history or [])
        assert len(shown) == (3 if length is None else min(length, 3))
        if shown:
            assert b'"hello"' in bytes(shown[-1])

    async def test_a_message_without_context_gets_one_and_with_one_shares_it(
        self, alice: Client
    ) -> None:
        one = await alice.send("hello")
        other = await alice.send("hello", context_id=one.context_id)
        assert other.context_id == one.context_id
        assert await run_in_thread(Context.objects.count) == 1

    async def test_a_client_may_choose_its_context(self, alice: Client) -> None:
        assert (await alice.send("hello", context_id="mine")).context_id == "mine"


class TestRefusals:
    async def test_what_the_agent_does_not_take(self, alice: Client) -> None:
        message = Message(message_id="m", role=Role.USER, parts=(Part(data={}),))
        with pytest.raises(ContentTypeNotSupported):
            await TABLE["SendMessage"](SendMessageRequest(message=message), alice.call())

    async def test_push_configs(self, alice: Client) -> None:
        with pytest.raises(PushNotificationNotSupported):
            await alice.send("hello", push_config=PushConfig(url="https://x"))

    async def test_messages_to_ended_and_unknown_tasks(self, alice: Client) -> None:
        task = await alice.send("hello")
        with pytest.raises(UnsupportedOperation):
            await alice.send("more", task_id=task.id)
        for missing in ("nothing", "no\x00thing"):
            with pytest.raises(TaskNotFound):
                await alice.send("more", task_id=missing)

    async def test_a_refused_message_leaves_nothing(self, alice: Client) -> None:
        with pytest.raises(PushNotificationNotSupported):
            await alice.send("hello", push_config=PushConfig(url="https://x"))
        assert await run_in_thread(Task.objects.count) == 0


class TestStreams:
    async def test_a_stream_is_the_task_and_what_becomes_of_it(self, alice: Client) -> None:
        stream = await alice.stream("hello")
        assert not isinstance(stream.first, Raw)
        assert stream.first is not None
        events = await listened(stream)
        assert fold(stream.first, events) == await alice.get(stream.subject.id)
        assert [event.number for event in events] == list(range(2, 2 + len(events)))

    async def test_a_stream_ends_when_the_turn_asks(self, alice: Client) -> None:
        stream = await alice.stream("ask")
        assert (await listened(stream))[-1].state is not None

    async def test_a_second_turn_is_streamed_from_its_message_on(self, alice: Client) -> None:
        task = await alice.send("ask")
        stream = await alice.stream("hello", task_id=task.id)
        assert stream.first is not None
        assert not isinstance(stream.first, Raw)
        assert stream.first.status.state.word == "working"
        events = await listened(stream)
        assert fold(stream.first, events) == await alice.get(task.id)

    async def test_a_subscriber_gets_the_task_and_the_rest(self, alice: Client) -> None:
        stream = await alice.stream("wait")
        subscribed = await alice.subscribe(stream.subject.id)
        await alice.cancel(stream.subject.id)
        assert subscribed.first is not None
        assert not isinstance(subscribed.first, Raw)
        assert fold(subscribed.first, await listened(subscribed)) == await alice.get(
            stream.subject.id
        )
        await stream.close()

    async def test_a_client_that_lost_its_stream_resumes_after_any_event(
        self, alice: Client
    ) -> None:
        stream = await alice.stream("ask")
        assert stream.first is not None
        assert not isinstance(stream.first, Raw)
        events = await listened(stream)
        await alice.begin("hello", task_id=stream.subject.id)
        for seen in range(1, 1 + len(events)):
            resumed = await alice.subscribe(stream.subject.id, last_event_id=EventId(seen))
            assert resumed.first is None
            rest = await listened(resumed)
            numbers = [event.number for event in rest]
            assert numbers == sorted(set(numbers))
            assert all(number > seen for number in numbers)
            known = [event for event in events if event.number <= seen]
            task = await alice.get(stream.subject.id)
            assert fold(stream.first, [*known, *rest]).status == task.status

    @pytest.mark.parametrize("mark", ["", "1a2b3c4d"])
    async def test_an_event_that_is_not_of_the_task_is_no_resumption(
        self, alice: Client, mark: str
    ) -> None:
        stream = await alice.stream("ask")
        last = (await listened(stream))[-1].number
        foreign = EventId(1, mark) if mark else EventId(last + 1000)
        resumed = await alice.subscribe(stream.subject.id, last_event_id=foreign)
        assert resumed.first == await alice.get(stream.subject.id)
        await alice.send("hello", task_id=stream.subject.id)
        rest = await listened(resumed)
        assert rest[-1].state is not None
        assert rest[0].number > last

    async def test_an_ended_task_has_no_stream_but_what_was_missed(self, alice: Client) -> None:
        task = await alice.send("hello")
        with pytest.raises(UnsupportedOperation):
            await alice.subscribe(task.id)
        missed = await listened(await alice.subscribe(task.id, last_event_id=EventId(1)))
        assert missed[-1].state is not None

    async def test_a_stream_closed_at_once_lets_go(self, alice: Client) -> None:
        stream = await alice.stream("wait")
        await stream.close()
        assert hub()._feeds == {}
        assert await alice.states(stream.subject.id) in {"submitted", "working"}


class TestDirectMessages:
    async def test_other_words_make_it_a_task(self) -> None:
        with playing(obeys, replies_directly=True) as agent:
            client = Client(agent)
            task = await client.send("hello")
            assert task == await client.get(task.id)

    async def test_who_takes_too_long_for_a_message_has_a_task(self, settings: Any) -> None:
        settings.A2A_FIRST_WORD_SECONDS = 0.1
        go = asyncio.Event()

        async def slow(turn: Turn) -> Any:
            await go.wait()
            return turn.reply("late")

        with playing(slow, replies_directly=True) as agent:
            client = Client(agent)
            task = await client.begin("hello")
            assert task.id == (await client.get(task.id)).id
            go.set()
            await until(lambda: client.states(task.id))
            stream_end = await asyncio.wait_for(ended(client, task.id), 20)
            assert stream_end == "completed"

    async def test_who_was_told_of_a_task_is_told_of_its_end(self, settings: Any) -> None:
        """The late Message is the task's closing word: for who waits, who streams and who reads."""
        settings.A2A_FIRST_WORD_SECONDS = 0.1
        go = asyncio.Event()

        async def slow(turn: Turn) -> Any:
            await go.wait()
            return turn.reply("late")

        with playing(slow, replies_directly=True) as agent:
            client = Client(agent)
            waiting = asyncio.create_task(client.send("hello"))
            stream = await client.stream("hello")  # the host has given up waiting for a first word
            assert not isinstance(stream.first, Raw)

            async def both_are_tasks() -> bool:
                page = await TABLE["ListTasks"](ListTasksRequest(), client.call())
                return int(page.total_size) == 2

            await until(both_are_tasks)
            go.set()
            events = await asyncio.wait_for(listened(stream), 20)
            assert [event.state for event in events][-1] is TaskState.COMPLETED
            assert '"late"' in events[-1].body
            task = await asyncio.wait_for(waiting, 20)
            assert task.status.state is TaskState.COMPLETED
            assert task == await client.get(task.id)


async def ended(client: Client, task: str) -> str:
    async def word() -> str:
        found = await client.states(task)
        return found if found not in {"submitted", "working"} else ""

    return str(await until(word))


class TestStrangers:
    """What is somebody else's is answered as what is not."""

    async def test_a_turn_is_told_nothing_of_others(self, alice: Client) -> None:
        given: list[Any] = []
        told = threading.Event()

        async def curious(turn: Turn) -> str:
            given.extend(await turn.references)
            told.set()
            return "x"

        with playing(curious) as agent:
            bobs = await Client(agent, Caller(principal="user:bob")).send("x")
            mine = await Client(agent).send("x")
            given.clear()
            message = Message(
                message_id="m",
                role=Role.USER,
                parts=(Part(text="x"),),
                reference_task_ids=(bobs.id, mine.id, "nothing"),
            )
            await TABLE["SendMessage"](SendMessageRequest(message=message), Client(agent).call())
        assert [task.id for task in given] == [mine.id]

    async def test_a_client_is_told_that_the_tasks_it_refers_to_are_too_large(
        self, settings: Any
    ) -> None:
        async def curious(turn: Turn) -> str:
            return f"{len(await turn.references)} tasks"

        with playing(curious) as agent:
            mine = await Client(agent).send("x" * 5_000)
            settings.A2A_MAX_ARTIFACT_BYTES = 4_000
            message = Message(
                message_id="m",
                role=Role.USER,
                parts=(Part(text="x"),),
                reference_task_ids=(mine.id,),
            )
            call = Client(agent).call()
            answer = await TABLE["SendMessage"](SendMessageRequest(message=message), call)
        assert b"an agent reads at most 4000" in write(answer.status.message)
