"""Headers of a request for its agent, over every binding: what it names and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.bindings.client import Client, Exchange
from tests.support.bindings.peers import Fault, Peer, message
from tests.support.bindings.puppet import Puppet

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("peer", share=3)]
SENT = {"X-User-Id": "7", "x-other": "8", "cookie": "a=b"}
AT_ONCE = {"configuration": {"returnImmediately": True}}


@pytest.fixture
def reading(peer: Peer, puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    """A client of an agent that reads a header."""
    monkeypatch.setattr(Puppet, "forwarded_headers", ("x-user-id",), raising=False)
    yield peer.at("/agents/puppet")


async def test_an_agent_reads_the_headers_that_it_names(reading: Peer, puppet: Puppet) -> None:
    await reading.call("SendMessage", {**message(), **AT_ONCE}, SENT)
    hand = await puppet.hand()
    assert dict(hand.turn.headers) == {"x-user-id": "7"}
    assert hand.turn.headers["X-USER-ID"] == "7"
    hand.end()


async def test_each_message_of_a_task_has_its_own(reading: Peer, puppet: Puppet) -> None:
    task = (await reading.call("SendMessage", {**message(), **AT_ONCE}, SENT))["task"]
    first = await puppet.hand()
    first.say(first.turn.ask("What?"))
    first.end()
    await first.ended()
    await reading.call("SendMessage", {**message("b", taskId=task["id"]), **AT_ONCE})
    second = await puppet.hand()
    assert dict(second.turn.headers) == {}
    second.end()


async def test_too_many_bytes_are_refused_with_the_reason(reading: Peer, puppet: Puppet) -> None:
    with pytest.raises(Fault) as caught:
        await reading.call("SendMessage", message(), {"x-user-id": "x" * 8184})
    assert caught.value.reason == "INVALID_PARAMS"
    assert "more than 8192: x-user-id" in str(caught.value)


async def test_a_header_that_comes_twice_is_joined(
    host: None, client: Client, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client could otherwise choose which of the two values the agent sees."""
    monkeypatch.setattr(Puppet, "forwarded_headers", ("x-user-id",), raising=False)
    sent = b'{"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "a"}]}}'
    exchange = client.exchange("POST", "/agents/puppet/a2a/1.0/message:send")
    exchange.leave()
    twice = [(b"x-user-id", b"7"), (b"x-user-id", b"8"), (b"content-type", b"application/json")]
    scope = {**exchange.scope, "headers": [*exchange.scope["headers"], *twice]}
    async with Exchange(client.app, scope) as other:
        other.upload(sent)
        hand = await puppet.hand()
        assert hand.turn.headers["x-user-id"] == "7,8"
        hand.end()
        assert (await other.response()).status == 200
