"""A send that comes again under its key: one task, one run, and the same answer, over both bindings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.agents import registry
from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS
from a2a_tasks.models import Idempotency, Run, Task
from a2a_tasks.store.db import run_in_thread
from tests.support.bindings.client import Event
from tests.support.bindings.peers import Fault, JsonRpc, Peer, message, no_leak, state_of
from tests.support.bindings.puppet import Puppet
from tests.support.rows import rows
from tests.support.thorough import examples

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("peer", share=3)]

SEND, STREAM = "SendMessage", "SendStreamingMessage"
KEY = {"idempotency-key": '"8e03978e-40d5-43e8-bc93-6894a57f9324"'}
CONFLICT = "IDEMPOTENCY_CONFLICT"


async def count(model: Any) -> int:
    return int(await run_in_thread(model.objects.count))


async def send(peer: Peer, params: Any, key: dict[str, str] = KEY) -> Any:
    """Send, and return the task (or the direct Message under `message`)."""
    answer = await peer.call(SEND, params, key)
    return answer.get("task", answer)


async def events(peer: Peer, params: Any, headers: dict[str, str] = KEY) -> list[Event]:
    async with peer.stream(STREAM, params, headers) as stream:
        return await stream.rest()


def without_moment(items: list[Any]) -> list[Any]:
    """Without the moment of the first status: it is that of the log, some milliseconds off."""
    items[0]["task"]["status"].pop("timestamp")
    return items


class TestASendUnderItsKey:
    async def test_gives_the_same_task(self, peer: Peer) -> None:
        params = message("echo hi")
        once = await send(peer, params)
        again = await send(peer, params)
        assert again == once
        assert state_of(once) == "completed"
        assert (await count(Task), await count(Run)) == (1, 1)

    async def test_without_a_key_is_another_task(self, peer: Peer) -> None:
        params = message("echo hi")
        ids = {(await send(peer, params, key))["id"] for key in ({}, {}, KEY)}
        assert len(ids) == 3
        assert await count(Idempotency) == 1

    async def test_is_the_same_with_the_key_bare(self, peer: Peer) -> None:
        params, bare = message("echo hi"), {"idempotency-key": KEY["idempotency-key"].strip('"')}
        assert await send(peer, params) == await send(peer, params, bare)

    async def test_waits_for_the_task_that_is_under_way(self, peer: Peer, puppet: Puppet) -> None:
        peer, params = peer.at("/agents/puppet"), message("hi")
        waiting = [asyncio.create_task(send(peer, params)) for _ in range(5)]
        hand = await puppet.hand()
        waiting += [asyncio.create_task(send(peer, params)) for _ in range(5)]
        hand.say("one", "two")
        hand.end()
        first, *others = await asyncio.gather(*waiting)
        assert state_of(first) == "completed"
        assert all(other == first for other in others)
        assert puppet._hands.empty()

    async def test_does_not_wait_when_asked_so(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        params = {**message("hi"), "configuration": {"returnImmediately": True}}
        task = await send(peer, params)
        hand = await puppet.hand()
        assert (await send(peer, params))["id"] == task["id"]
        hand.end()
        await hand.ended()
        while state_of(now := await send(peer, params)) != "completed":  # it tells how it stands
            assert now["id"] == task["id"]

    async def test_gives_the_answer_of_its_turn(self, peer: Peer) -> None:
        params = message("ask What?")
        asked = await send(peer, params)
        assert state_of(asked) == "input-required"
        answer = message("Alice", taskId=asked["id"])
        second = {"idempotency-key": "second"}
        done = await send(peer, answer, second)
        assert state_of(done) == "completed"
        assert await send(peer, params) == asked
        assert await send(peer, answer, second) == done
        assert await count(Run) == 2

    async def test_of_a_message_gives_the_same_message(self, peer: Peer) -> None:
        params = message("message hello")
        once = await send(peer, params)
        assert once.keys() == {"message"}
        assert await send(peer, params) == once
        assert await count(Run) == 1
        (streamed,) = await events(peer, params)
        assert peer.item(streamed) == once

    async def test_that_was_refused_is_not_remembered(self, peer: Peer) -> None:
        with pytest.raises(Fault) as caught:
            await send(peer, message("echo hi", taskId="missing"))
        assert caught.value.reason == "TASK_NOT_FOUND"
        assert state_of(await send(peer, message("echo hi"))) == "completed"

    async def test_is_forgotten_in_time(self, peer: Peer, settings: Settings) -> None:
        params = message("echo hi")
        once = await send(peer, params)
        settings.A2A_IDEMPOTENCY_HOURS = 0
        assert (await send(peer, params))["id"] != once["id"]

    async def test_over_another_binding_is_the_same(self, peer: Peer) -> None:
        params = message("echo hi")
        key = {**KEY, "a2a-extensions": RESUMABLE_STREAMS.uri}
        once = await send(peer, params, key)
        assert await send(JsonRpc(peer.client), params, key) == once

    @pytest.mark.parametrize("sends", [pytest.param(examples(200, quick=80), id="many")])
    async def test_sent_many_times_at_once_is_one_task(self, peer: Peer, sends: int) -> None:
        params = message("echo hi")
        tasks = await asyncio.gather(*[send(peer, params) for _ in range(sends)])
        assert len({task["id"] for task in tasks}) == 1
        assert (await count(Task), await count(Run)) == (1, 1)


class TestAConflict:
    @rows(
        "other",
        [
            message("echo ho"),
            message("echo hi", contextId="another"),
            message("echo hi", metadata={"a": 1}),
            {**message("echo hi"), "metadata": {"a": 1}},
        ],
    )
    async def test_is_another_request_under_the_key(self, peer: Peer, other: Any) -> None:
        await send(peer, message("echo hi"))
        for operation in (SEND, STREAM):
            with pytest.raises(Fault) as caught:
                await peer.call(operation, other, KEY)
            fault = caught.value
            assert fault.reason == CONFLICT
            codes = {"JSONRPC": (200, -32602), "HTTP+JSON": (422, 422)}
            told = codes.get(peer.name, (0, "INVALID_ARGUMENT"))
            assert (fault.response.status, fault.error["code"]) == told
            no_leak(fault.response.body)
        assert (await count(Task), await count(Run)) == (1, 1)

    @rows("key", ["", "k" * 256])
    async def test_is_not_what_a_bad_key_is(self, peer: Peer, key: str) -> None:
        with pytest.raises(Fault) as caught:
            await send(peer, message("echo hi"), {"idempotency-key": key})
        assert caught.value.reason == "INVALID_PARAMS"
        assert caught.value.fields == ["Idempotency-Key"]
        assert await count(Task) == 0

    async def test_is_not_what_a_key_with_a_tab_is(self, http_peer: Peer) -> None:
        with pytest.raises(Fault) as caught:
            await send(http_peer, message("echo hi"), {"idempotency-key": "a\tb"})
        assert caught.value.fields == ["Idempotency-Key"]


class TestAStreamUnderItsKey:
    async def test_is_told_again_from_its_beginning(self, peer: Peer) -> None:
        params = message("chunks 20")
        once, again = await events(peer, params), await events(peer, params)
        assert [event.id for event in again] == [event.id for event in once]
        told = [without_moment([peer.item(event) for event in told]) for told in (once, again)]
        assert told[0] == told[1]
        assert (await count(Task), await count(Run)) == (1, 1)

    async def test_is_joined_while_it_is_told(self, peer: Peer, puppet: Puppet) -> None:
        peer, params = peer.at("/agents/puppet"), message("hi")
        async with peer.stream(STREAM, params, KEY) as one:
            first = await peer.next(one)
            hand = await puppet.hand()
            hand.say(hand.turn.working("a"))
            said = [await peer.next(one) for _ in range(2)]
            async with peer.stream(STREAM, params, KEY) as two:
                joined = [await peer.next(two) for _ in range(3)]
                hand.end()
                rest = [await peer.items(stream) for stream in (one, two)]
        assert without_moment(joined) == without_moment([first, *said])
        assert rest[0] == rest[1]
        assert puppet._hands.empty()

    async def test_goes_on_where_it_was_lost(self, peer: Peer) -> None:
        params = message("chunks 20")
        once = await events(peer, params)
        for n in (1, 7, len(once) - 1):
            after = {**KEY, "last-event-id": str(once[n - 1].id)}
            assert await events(peer, params, after) == once[n:]

    async def test_tells_how_the_task_ended_if_nothing_is_missing(self, peer: Peer) -> None:
        params = message("echo hi")
        once = await events(peer, params)
        (last,) = await events(peer, params, {**KEY, "last-event-id": str(once[-1].id)})
        assert last.id == once[-1].id
        assert peer.item(last)["task"] == await send(peer, params)

    async def test_begins_for_a_client_that_has_seen_what_is_not_there(self, peer: Peer) -> None:
        params = message("echo hi")
        once = await events(peer, params)
        again = await events(peer, params, {**KEY, "last-event-id": "99"})
        assert [event.id for event in again] == [event.id for event in once]


class TestTheIdOfAMessage:
    @pytest.fixture
    def knowing(self, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> Peer:
        """A client of the demo agent when that knows messages by their ids."""
        agent = registry.find_hosted("demo")
        assert agent is not None
        monkeypatch.setattr(type(agent), "idempotent_message_ids", True)
        return peer

    async def test_is_no_key_unless_the_agent_says_so(self, peer: Peer) -> None:
        params = message("echo hi")
        assert (await send(peer, params, {}))["id"] != (await send(peer, params, {}))["id"]
        assert await count(Idempotency) == 0

    async def test_gives_the_same_task(self, knowing: Peer) -> None:
        params = message("echo hi")
        once = await send(knowing, params, {})
        assert await send(knowing, params, {}) == once
        assert (await send(knowing, message("echo hi"), {}))["id"] != once["id"]

    async def test_under_which_other_things_are_said_is_a_conflict(self, knowing: Peer) -> None:
        await send(knowing, message("echo hi", messageId="same"), {})
        with pytest.raises(Fault) as caught:
            await send(knowing, message("echo ho", messageId="same"), {})
        assert caught.value.reason == CONFLICT

    async def test_is_another_in_another_context_and_task(self, knowing: Peer) -> None:
        begun = [
            await send(knowing, message("ask What?", messageId="same", **place), {})
            for place in ({}, {"contextId": "one"}, {"contextId": "two"})
        ]
        assert len({task["id"] for task in begun}) == 3
        done = await send(knowing, message("Al", messageId="same", taskId=begun[0]["id"]), {})
        assert state_of(done) == "completed"

    async def test_gives_way_to_a_key(self, knowing: Peer) -> None:
        params = message("echo hi")
        assert (await send(knowing, params, {}))["id"] != (await send(knowing, params))["id"]
