"""Streams over every binding: how they begin, what they carry, when they end, and that nothing is lost on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks import pubsub
from a2a_tasks.models import Event as Row
from a2a_tasks.models import Task as Task_
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.store import event_log
from a2a_tasks.streaming.event_buffer import hub
from tests.support.bindings.client import Event, Stream, ends
from tests.support.bindings.peers import Fault, HttpJson, Peer, message, no_leak, state_of
from tests.support.bindings.puppet import Hand, Puppet
from tests.support.rows import rows

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("peer", share=3)]

SEND, SUBSCRIBE = "SendStreamingMessage", "SubscribeToTask"


async def streamed(peer: Peer, text: str, **members: Any) -> list[Any]:
    async with peer.stream(SEND, message(text, **members)) as stream:
        return await peer.items(stream)


def states(items: list[Any]) -> list[str]:
    return [state_of(item["statusUpdate"]) for item in items if "statusUpdate" in item]


def pieces(items: list[Any]) -> list[str]:
    return [
        part["text"]
        for item in items
        if "artifactUpdate" in item
        for part in item["artifactUpdate"]["artifact"]["parts"]
    ]


async def begun(peer: Peer, puppet: Puppet) -> tuple[Any, Hand]:
    """A task of the puppet that has just begun, and the hand that leads it."""
    task = await peer.send(configuration={"returnImmediately": True})
    return task, await puppet.hand()


class TestAStream:
    async def test_carries_pieces_in_order(self, peer: Peer) -> None:
        items = await streamed(peer, "chunks 300")
        assert [text.split(";")[0] for text in pieces(items)] == [f"#{i}" for i in range(300)]
        updates = [item["artifactUpdate"] for item in items if "artifactUpdate" in item]
        assert [update.get("append", False) for update in updates] == [False] + [True] * 299
        assert [update.get("lastChunk", False) for update in updates] == [False] * 299 + [True]

    async def test_shows_each_word_when_it_is_said(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        async with peer.stream(SEND, message()) as stream:
            assert "task" in await peer.next(stream)
            hand = await puppet.hand()
            assert states([await peer.next(stream)]) == ["working"]
            for word in ("a", "b", "c"):
                hand.say(word)
                assert pieces([await peer.next(stream)]) == [word]
            hand.end()

    async def test_of_a_sender_is_not_made_shorter_by_not_waiting(self, peer: Peer) -> None:
        params = {**message("chunks 3"), "configuration": {"returnImmediately": True}}
        async with peer.stream(SEND, params) as stream:
            assert states(await peer.items(stream))[-1] == "completed"


class TestTheFrames:
    async def test_are_told_as_an_event_stream(self, http_peer: Peer) -> None:
        async with http_peer.stream(SEND, message("echo hi")) as stream:
            assert stream.header("content-type") == "text/event-stream"
            assert "no-cache" in (stream.header("cache-control") or "")
            assert stream.header("x-accel-buffering") == "no"
            assert stream.header("a2a-version") == "1.0"

    async def test_are_numbered_as_the_log_is(self, peer: Peer) -> None:
        async with peer.stream(SEND, message("chunks 5")) as stream:
            numbers = [event.id for event in await stream.rest()]
        assert numbers == list(range(1, len(numbers) + 1))

    async def test_say_data_and_id_only(self, peer: Peer) -> None:
        async with peer.stream(SEND, message("echo a\nb\rc\u2028d")) as stream:
            events = await stream.rest()
        assert all(event.name == "message" for event in events)
        assert pieces([peer.item(event) for event in events]) == ["a\nb\rc\u2028d"]


class TestAnErrorBeforeAStream:
    @rows("accept", ["text/event-stream", "*/*", ""])
    async def test_is_no_stream(self, http_peer: Peer, accept: str) -> None:
        response = await http_peer.ask(SUBSCRIBE, {"id": "unknown"}, {"accept": accept})
        assert response.header("content-type") == "application/json"
        with pytest.raises(Fault) as caught:
            http_peer.unwrapped(response)
        assert caught.value.reason == "TASK_NOT_FOUND"


class TestAnErrorInAStream:
    async def test_travels_in_it_and_tells_nothing(
        self, http_peer: Peer, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        http_peer = http_peer.at("/agents/puppet")
        async with http_peer.stream(SEND, message()) as stream:
            assert "task" in await http_peer.next(stream)
            hand = await puppet.hand()

            def broken(*_: object, **__: object) -> bytes:
                raise RuntimeError("a secret of /etc/passwd")

            monkeypatch.setattr(type(DIALECTS["v10"]), "event", broken)
            hand.say("x")
            event = await stream.next()
            assert event is not None
            assert (event.name, event.id) == ("error", None)
            no_leak(json.dumps(event.data))
            assert "secret" not in json.dumps(event.data)
            assert event.data["error"]["message"] == "Internal error"
            assert await stream.next() is None
            hand.end()


class TestSubscribing:
    @pytest.mark.parametrize("http_peer", [HttpJson], ids=lambda peer: peer.name, indirect=True)
    @pytest.mark.parametrize("colon", [":", "%3A"])
    async def test_works_by_get_too(self, http_peer: Peer, puppet: Puppet, colon: str) -> None:
        http_peer = http_peer.at("/agents/puppet")
        task, hand = await begun(http_peer, puppet)
        async with http_peer.client.stream("GET", f"/tasks/{task['id']}{colon}subscribe") as stream:
            assert "task" in await http_peer.next(stream)
            hand.end()
            assert states(await http_peer.items(stream))[-1] == "completed"

    async def test_by_several_shows_all_the_same(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        task, hand = await begun(peer, puppet)
        ready = asyncio.Semaphore(0)

        async def follow() -> list[Event]:
            async with peer.stream(SUBSCRIBE, {"id": task["id"]}) as stream:
                await stream.next()
                ready.release()
                return await stream.rest()

        async def leave() -> None:
            async with peer.stream(SUBSCRIBE, {"id": task["id"]}) as stream:
                await stream.next()

        followers = [asyncio.create_task(follow()) for _ in range(5)]
        for _ in followers:
            await ready.acquire()
        await leave()
        hand.say(*(f"#{i}" for i in range(200)))
        hand.end()
        seen = await asyncio.gather(*followers)
        assert all(events == seen[0] for events in seen)
        assert pieces([peer.item(event) for event in seen[0]]) == [f"#{i}" for i in range(200)]


class TestResuming:
    async def test_gives_exactly_what_was_missed_at_every_cut(self, peer: Peer) -> None:
        async with peer.stream(SEND, message("chunks 9")) as stream:
            events = await stream.rest()
        task = peer.item(events[0])["task"]
        for cut, seen in enumerate(events[:-1]):
            after = {"last-event-id": str(seen.id)}
            async with peer.stream(SUBSCRIBE, {"id": task["id"]}, after) as stream:
                assert await stream.rest() == events[cut + 1 :]

    async def test_goes_on_live_where_the_log_ends(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        async with peer.stream(SEND, message()) as stream:
            first = await stream.next()
            assert first is not None
            task = peer.item(first)["task"]
            hand = await puppet.hand()
            hand.say("a", "b")
            seen = [first]
            while pieces([peer.item(seen[-1])]) != ["b"]:
                event = await stream.next()
                assert event is not None
                seen.append(event)
        after = {"last-event-id": str(seen[-2].id)}
        async with peer.stream(SUBSCRIBE, {"id": task["id"]}, after) as stream:
            assert await stream.next() == seen[-1]
            hand.say("c")
            hand.end()
            rest = [peer.item(event) for event in await stream.rest()]
        assert pieces(rest) == ["c"]
        assert states(rest)[-1] == "completed"

    async def test_begins_with_bytes_even_if_nothing_was_missed(
        self, http_peer: Peer, puppet: Puppet
    ) -> None:
        http_peer = http_peer.at("/agents/puppet")
        task, hand = await begun(http_peer, puppet)
        after = {"last-event-id": "1"}
        async with http_peer.stream(SUBSCRIBE, {"id": task["id"]}, after) as stream:
            block = await stream.block()
            assert block is not None
            assert block.comment is not None
            hand.end()
            assert states(await http_peer.items(stream))[-1] == "completed"

    async def test_after_the_last_event_of_an_ended_task_is_refused(self, peer: Peer) -> None:
        async with peer.stream(SEND, message("echo hi")) as stream:
            events = await stream.rest()
        id_ = peer.item(events[0])["task"]["id"]
        for number in (str(events[-1].id), "999999999"):
            with pytest.raises(Fault) as caught:
                await peer.call(SUBSCRIBE, {"id": id_}, {"last-event-id": number})
            assert caught.value.reason == "UNSUPPORTED_OPERATION"

    @rows("text", ["", "x", "-1", "1.5", "9" * 50, "0x1"])
    async def test_by_what_is_no_number_gives_the_whole_task(
        self, peer: Peer, puppet: Puppet, text: str
    ) -> None:
        peer = peer.at("/agents/puppet")
        task, hand = await begun(peer, puppet)
        async with peer.stream(SUBSCRIBE, {"id": task["id"]}, {"last-event-id": text}) as stream:
            assert "task" in await peer.next(stream)
            hand.end()

    async def test_from_0_gives_every_event_there_was(self, peer: Peer) -> None:
        async with peer.stream(SEND, message("chunks 3")) as stream:
            events = await stream.rest()
        id_ = peer.item(events[0])["task"]["id"]
        async with peer.stream(SUBSCRIBE, {"id": id_}, {"last-event-id": "0"}) as stream:
            assert await stream.rest() == events[1:]


class TestALogThatVanishesUnderAReader:
    """Retention may be quicker than a reader far behind (`tests/integration/dialects` has those who come too late)."""

    async def read(
        self, peer: Peer, monkeypatch: pytest.MonkeyPatch, remove: Callable[[int], Any]
    ) -> tuple[str, list[Event]]:
        """The blocks of a resumed stream, where `remove` is called with the task after its first events."""
        async with peer.stream(SEND, message("chunks 30")) as stream:
            events = await stream.rest()
        real = event_log.read_after

        def read_after(task: int, number: int, limit: int = 7) -> list[LogEvent]:
            if number >= 8:
                remove(task)
            return real(task, number, limit)

        monkeypatch.setattr(event_log, "SLICE", 7)
        monkeypatch.setattr(event_log, "read_after", read_after)
        id_ = peer.item(events[0])["task"]["id"]
        blocks = []
        async with peer.stream(SUBSCRIBE, {"id": id_}, {"last-event-id": "1"}) as stream:
            while (block := await stream.block()) is not None:
                blocks.append(block)
        return id_, blocks

    async def test_the_task_follows_and_the_reader_is_told(
        self, http_peer: Peer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def remove(task: int) -> None:
            Row.objects.filter(task_id=task, number__lt=20).delete()

        id_, blocks = await self.read(http_peer, monkeypatch, remove)
        *seen, notice, last = [block for block in blocks if block.comment != "keep-alive"]
        assert [event.id for event in seen] == list(range(2, 2 + len(seen)))
        assert notice.comment == "events before 20 were removed"
        assert http_peer.item(last)["task"] == await http_peer.call("GetTask", {"id": id_})

    async def test_the_reader_is_told_if_the_task_is_gone_too(
        self, http_peer: Peer, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        settings.A2A_POLL_SECONDS = 0.05

        def remove(task: int) -> None:
            Task_.objects.filter(pk=task).delete()

        _, blocks = await self.read(http_peer, monkeypatch, remove)
        assert blocks[-1].name == "error"
        assert "not found" in json.dumps(blocks[-1].data).lower()


class TestAClientThatLeaves:
    async def test_is_noticed_at_once_and_the_task_goes_on(
        self, http_peer: Peer, puppet: Puppet
    ) -> None:
        http_peer = http_peer.at("/agents/puppet")
        async with http_peer.stream(SEND, message()) as stream:
            task = (await http_peer.next(stream))["task"]
            hand = await puppet.hand()
            stream.exchange.leave()
            await stream.exchange.over()
            assert hub()._feeds == {}
        assert not hand.turn.cancelled
        async with http_peer.stream(SUBSCRIBE, {"id": task["id"]}) as again:
            assert "task" in await http_peer.next(again)
            hand.say("still here")
            hand.end()
            assert pieces(await http_peer.items(again)) == ["still here"]

    async def test_before_its_request_was_whole_is_not_answered(self, http_peer: Peer) -> None:
        method, path, body, headers = http_peer.request("SendMessage", message())
        async with http_peer.client.exchange(method, path, headers) as exchange:
            exchange.upload(body[:10], more=True)
            exchange.leave()
            assert await exchange.said_nothing()
        assert (await http_peer.call("ListTasks"))["totalSize"] == 0

    async def test_lets_go_of_everything_when_the_stream_ends_by_itself(self, peer: Peer) -> None:
        await streamed(peer, "echo hi")
        assert hub()._feeds == {}


class TestTheHintsOfOtherProcesses:
    async def test_end_even_if_redis_swallows_a_cancellation(self) -> None:
        """redis-py does, when it comes amid a read; the process must end all the same."""
        stopped: list[str] = []

        async def stubborn() -> None:
            for _ in range(2):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    stopped.append("asked")

        subscriber = pubsub.Subscriber(lambda hint: None)
        subscriber._reader = asyncio.create_task(stubborn())
        await asyncio.wait({subscriber._reader}, timeout=0)
        await ends(subscriber.close())
        assert stopped == ["asked", "asked"]


class TestAQuietStream:
    async def test_is_kept_alive_by_comments(
        self, http_peer: Peer, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_KEEPALIVE_SECONDS = 0.02
        http_peer = http_peer.at("/agents/puppet")
        async with http_peer.stream(SEND, message()) as stream:
            assert "task" in await http_peer.next(stream)
            hand = await puppet.hand()
            comments = 0
            while comments < 3:
                block = await stream.block()
                assert block is not None
                comments += block.comment == "keep-alive"
            hand.say("a")
            hand.end()
            assert pieces(await http_peer.items(stream)) == ["a"]

    async def test_gets_no_comments_where_none_are_wanted(
        self, http_peer: Peer, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_KEEPALIVE_SECONDS = 0.0
        http_peer = http_peer.at("/agents/puppet")
        async with http_peer.stream(SEND, message()) as stream:
            hand = await puppet.hand()
            for word in "abc":
                hand.say(word)
            hand.end()
            blocks = [block async for block in _blocks(stream)]
        assert [block.comment for block in blocks] == [None] * len(blocks)

    async def test_is_kept_alive_while_its_client_does_not_see_what_happens(
        self, http_peer: Peer, puppet: Puppet, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The calls of tools are events too, but this client has not asked for them."""
        settings.A2A_KEEPALIVE_SECONDS = 0.3
        monkeypatch.setattr(Puppet, "reports_tools", True)
        http_peer = http_peer.at("/agents/puppet")
        async with http_peer.stream(SEND, message()) as stream:
            hand = await puppet.hand()
            calls = asyncio.create_task(_call_tools(hand))
            while (block := await stream.block()) is not None and block.comment != "keep-alive":
                pass
            assert not calls.done()
            calls.cancel()
            hand.end()
            assert block is not None


async def _blocks(stream: Stream) -> AsyncIterator[Event]:
    while (block := await stream.block()) is not None:
        yield block


async def _call_tools(hand: Hand) -> None:
    """Report a call 20 times a second, for at most ten seconds."""
    for number in range(200):
        hand.say(hand.turn.tool_call(str(number), "add", {}))
        await asyncio.sleep(0.05)
