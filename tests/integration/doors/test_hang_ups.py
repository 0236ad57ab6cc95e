"""What becomes of a task whose client closes the connection while it waits at a door."""

from __future__ import annotations

import asyncio

import pytest
from pytest_django import Settings

from a2a_doors import hang_ups
from a2a_doors.hang_ups import serve_until_gone
from a2a_doors.visit import Visit, enter
from a2a_project.operations import TABLE
from a2a_tasks import process_lifetime, pubsub
from a2a_tasks.bindings.http import Receive, Request, Scope, Send
from a2a_tasks.models import AuditEntry, Task
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, Role
from a2a_tasks.store.db import run_in_thread
from tests.support.bindings.client import Client, Exchange
from tests.support.bindings.puppet import Puppet
from tests.support.thorough import examples

pytestmark = [pytest.mark.django_db]

KEY = {"idempotency-key": "the-same"}


async def plain_door(scope: Scope, receive: Receive, send: Send) -> None:
    """A door that tells its client the number of each event."""
    request = Request(scope, receive)
    visit = await enter(request, "puppet", Binding.OPENAI, TABLE)
    with visit.context.observed.by(visit.binding, request.headers):
        await tell(visit, send)


async def tell(visit: Visit, send: Send) -> None:
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="go"),))
    stream = await visit.converse(SendMessageRequest(message=message), streams=True)

    async def answer() -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async for events in stream.batches(60.0):
            for event in events or ():
                body = b"%d\n" % event.number
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def farewell() -> None:
        await send({"type": "http.response.body", "body": b"drained"})

    await serve_until_gone(visit, stream, answer(), farewell)


@pytest.fixture
def client() -> Client:
    """A client of that door."""
    return Client(plain_door)


@pytest.fixture(autouse=True)
def soon(settings: Settings) -> None:
    """Cancel soon."""
    settings.A2A_HANG_UP_SECONDS = 0.05


async def begun(client: Client, headers: dict[str, str] | None = None) -> Exchange:
    exchange = client.exchange("POST", "/", headers)
    exchange.upload(b"")
    await exchange.begin()
    return exchange


async def state() -> str:
    """The state of the only task."""
    return str(await run_in_thread(lambda: Task.objects.get().state))


async def leave(exchange: Exchange) -> None:
    """Hang up, and wait until the door has decided about the task."""
    exchange.leave()
    await exchange.over()
    while waiting := set(hang_ups._waiting):
        await asyncio.wait(waiting, timeout=20)


class TestAClientThatLeaves:
    async def test_has_its_task_cancelled(self, client: Client, puppet: Puppet) -> None:
        exchange = await begun(client)
        hand = await puppet.hand()
        await leave(exchange)
        assert await state() == "TASK_STATE_CANCELED"
        await hand.ended()

    async def test_has_it_cancelled_by_its_own_hand(self, client: Client, puppet: Puppet) -> None:
        exchange = await begun(client, {"x-request-id": "r-1"})
        await puppet.hand()
        await leave(exchange)
        entry = await run_in_thread(lambda: AuditEntry.objects.get(action="task.cancel"))
        assert entry.request == "r-1"

    async def test_leaves_an_agent_that_goes_on(
        self, client: Client, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Puppet, "on_hangup", "go on")
        exchange = await begun(client)
        hand = await puppet.hand()
        await leave(exchange)
        assert not hand.turn.cancelled
        hand.end()
        await hand.ended()

    async def test_loses_nothing_if_its_repeat_follows_the_task(
        self, client: Client, puppet: Puppet
    ) -> None:
        first = await begun(client, KEY)
        hand = await puppet.hand()
        again = await begun(client, KEY)
        await leave(first)
        hand.say("hello")
        hand.end()
        while await again.piece() is not None:
            pass
        await again.over()
        assert await state() == "TASK_STATE_COMPLETED"

    async def test_has_it_cancelled_by_the_last_of_its_repeats(
        self, client: Client, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_HANG_UP_SECONDS = 0.5  # as below
        first, again = await begun(client, KEY), await begun(client, KEY)
        await leave(first)
        await leave(again)
        assert await state() == "TASK_STATE_CANCELED"

    @pytest.mark.backend("stack")
    async def test_loses_nothing_if_another_process_follows_the_task(
        self, client: Client, puppet: Puppet
    ) -> None:
        exchange = await begun(client)
        hand = await puppet.hand()
        elsewhere = pubsub.Subscriber(lambda _: None)
        key = await run_in_thread(lambda: Task.objects.get().pk)
        await elsewhere.follow(pubsub.channel(key))
        while not await pubsub.has_subscribers(pubsub.channel(key)):  # noqa: ASYNC110 - Redis tells nobody
            await asyncio.sleep(0.01)
        await leave(exchange)
        await elsewhere.close()
        assert not hand.turn.cancelled
        hand.end()
        await hand.ended()

    async def test_after_the_end_changes_nothing(self, client: Client, puppet: Puppet) -> None:
        exchange = await begun(client)
        hand = await puppet.hand()
        hand.end()
        await hand.ended()
        while await exchange.piece() is not None:
            pass
        await leave(exchange)
        assert await state() == "TASK_STATE_COMPLETED"


class TestManyClients:
    MANY = examples(100, quick=30)

    async def begin(self, client: Client) -> list[Exchange]:
        """Many clients, each with a task of its own."""
        return [await begun(client) for _ in range(self.MANY)]

    async def states(self) -> set[str]:
        """The states of all tasks."""
        found = await run_in_thread(lambda: list(Task.objects.values_list("state", flat=True)))
        assert len(found) == self.MANY
        return set(found)

    async def test_that_leave_at_once_have_all_their_tasks_cancelled(
        self, client: Client, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_HANG_UP_SECONDS = 0.5  # Redis needs a while to forget that they were followed
        exchanges = await self.begin(client)
        await asyncio.gather(*map(leave, exchanges))
        assert await self.states() == {"TASK_STATE_CANCELED"}

    async def test_of_a_process_that_drains_keep_all_their_tasks(
        self, client: Client, puppet: Puppet, life: process_lifetime.Lifetime
    ) -> None:
        exchanges = await self.begin(client)
        life.begin_drain()
        await asyncio.gather(*map(leave, exchanges))
        assert "TASK_STATE_CANCELED" not in await self.states()


class TestADrain:
    async def test_cancels_nothing_and_says_a_last_word(
        self, client: Client, puppet: Puppet, life: process_lifetime.Lifetime
    ) -> None:
        exchange = await begun(client)
        hand = await puppet.hand()
        life.begin_drain()
        pieces = []
        while (piece := await exchange.piece()) is not None:
            pieces.append(piece)
        assert pieces[-1] == b"drained"
        await leave(exchange)
        assert not hand.turn.cancelled
        hand.end()
        await hand.ended()

    async def test_cancels_nothing_whose_client_has_just_left(
        self,
        client: Client,
        puppet: Puppet,
        life: process_lifetime.Lifetime,
        settings: Settings,
    ) -> None:
        settings.A2A_HANG_UP_SECONDS = 60.0
        exchange = await begun(client)
        hand = await puppet.hand()
        exchange.leave()
        await exchange.over()
        life.begin_drain()
        await leave(exchange)
        assert not hand.turn.cancelled
        hand.end()
        await hand.ended()
