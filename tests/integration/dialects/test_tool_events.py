"""Calls of tools on the wire: in streams of clients that activate the extension, in every dialect and binding."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.bindings.peers import Peer, message
from tests.support.bindings.rpc_peer import Grpc
from tests.support.dialects.clients import WIRES, Wire

pytestmark = pytest.mark.django_db
CALL = {"toolCall": {"id": "1", "name": "add", "arguments": {"a": 2}}}
RESULT = {"toolResult": {"id": "1", "content": {"sum": 4}, "error": False}}


async def add(turn: Turn) -> AsyncIterator[Any]:
    """Call a tool."""
    yield turn.tool_call("1", "add", {"a": 2})
    yield turn.tool_result("1", {"sum": 4})
    yield "4"


@pytest.fixture
def adder(host: None) -> Iterator[Agent]:
    """An agent that calls a tool."""
    with playing(add, reports_tools=True) as agent:
        yield agent


def told(document: Any) -> list[Any]:
    """The objects in a document that say something about a tool."""
    if isinstance(document, list):
        return [one for item in document for one in told(item)]
    if not isinstance(document, dict):
        return []
    if document.keys() & {"toolCall", "toolResult"}:
        return [document]
    return [one for member in document.values() for one in told(member)]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_clients_that_activate_the_extension_see_them_and_others_see_nothing(
    wire: Wire, adder: Agent, client: Client
) -> None:
    made = wire.of(client, adder.slug)
    assert made.client is not None
    method, path, body, headers = made._asked("stream", made._params(["x"], "", ""))
    numbers = []
    for extension in ({"a2a-extensions": TOOL_EVENTS.uri}, {}):
        async with made.client.stream(method, path, body, {**headers, **extension}) as stream:
            events = await stream.rest()
        seen = [item for event in events if (item := told(event.data))]
        assert seen == ([[CALL], [RESULT]] if extension else [])
        if extension:
            (event, *_) = [event for event in events if told(event.data)]
            spoken = str(event.data)
            assert (TOOL_EVENTS.uri in spoken) == (wire.name not in {"s0", "v00", "v01"})
        numbers.append([event.id for event in events])
    # The numbers are those of the log for both.
    assert set(numbers[1]) < set(numbers[0])


async def test_over_grpc_it_is_the_same(adder: Agent, client: Client) -> None:
    peer: Peer = Grpc(Client(client.app, f"/agents/{adder.slug}"))
    for extension in (TOOL_EVENTS.uri, ""):
        headers = {"a2a-extensions": extension} if extension else {}
        async with peer.stream("SendStreamingMessage", message("x"), headers) as stream:
            items = await peer.items(stream)
        assert [one for item in items for one in told(item)] == (
            [CALL, RESULT] if extension else []
        )
