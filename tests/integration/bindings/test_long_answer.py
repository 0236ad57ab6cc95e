"""Answers of JSON-RPC that take long: white space first, then the JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.bindings.jsonrpc_endpoint import LongAnswer
from tests.support.bindings.client import Client, Exchange, Response
from tests.support.bindings.peers import HttpJson, JsonRpc, message, state_of
from tests.support.bindings.puppet import Puppet

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def often(settings: Settings) -> None:
    """Give signs of life often."""
    settings.A2A_KEEPALIVE_SECONDS = 0.02


class TestASendThatWaits:
    async def test_gives_white_space_until_there_is_an_answer(
        self, host: None, client: Client, puppet: Puppet
    ) -> None:
        peer = JsonRpc(Client(client.app, "/agents/puppet"))
        method, path, body, headers = peer.request("SendMessage", message())
        async with peer.client.exchange(method, path, headers) as exchange:
            exchange.upload(body)
            await exchange.begin()
            hand = await puppet.hand()
            assert [await exchange.piece() for _ in range(3)] == [b" "] * 3
            hand.end()
            rest = b"".join([piece async for piece in _pieces(exchange)])
        answer = Response(exchange.status, exchange.headers, rest)
        assert answer.header("content-length") is None
        assert (answer.header("a2a-version"), answer.header("x-accel-buffering")) == ("1.0", "no")
        assert state_of(peer.unwrapped(answer)["task"]) == "completed"

    async def test_gives_none_where_none_is_wanted(
        self, host: None, client: Client, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_KEEPALIVE_SECONDS = 0.0
        peer = JsonRpc(Client(client.app, "/agents/puppet"))
        sent = asyncio.create_task(peer.client.ask(*peer.request("SendMessage", message())))
        hand = await puppet.hand()
        assert not (await asyncio.wait({sent}, timeout=0.05))[0]
        hand.end()
        assert (await sent).header("content-length") is not None

    async def test_keeps_its_status_for_the_outcome_over_http_json(
        self, host: None, client: Client, puppet: Puppet
    ) -> None:
        peer = HttpJson(Client(client.app, "/agents/puppet"))
        method, path, body, headers = peer.request("SendMessage", message())
        sent = asyncio.create_task(peer.client.ask(method, path, body, headers))
        hand = await puppet.hand()
        assert not (await asyncio.wait({sent}, timeout=0.1))[0]
        hand.end()
        answer = await sent
        assert answer.header("content-length") == str(len(answer.body))


async def _pieces(exchange: Exchange) -> AsyncIterator[bytes]:
    while (piece := await exchange.piece()) is not None:
        yield piece


async def test_an_error_that_comes_late_is_the_body_of_what_has_begun() -> None:
    sent: list[Any] = []
    signs = asyncio.Event()

    async def send(event: Any) -> None:
        sent.append(event)
        if event.get("body") == b" ":
            signs.set()

    answer = LongAnswer(send)
    async with answer.signs_of_life([(b"a2a-version", b"1.0")]):
        await asyncio.wait_for(signs.wait(), 20)
    await answer.respond(503, b"{}", [])
    starts = [event["status"] for event in sent if event["type"] == "http.response.start"]
    assert starts == [200]
    assert sent[-1] == {"type": "http.response.body", "body": b"{}"}
