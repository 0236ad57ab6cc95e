"""Calls that are taken back: as many as a busy proxy has, and not as many as begin more than would be answered."""

from __future__ import annotations

import asyncio
from typing import Any

from h2 import events
from h2.errors import ErrorCodes
from hyperframe.frame import DataFrame

from a2a_project.grpc_server.connection import RESETS, WITH_TAKEN_BACK
from a2a_project.grpc_server.limits import Limits
from a2a_tasks.bindings.grpc.call import Call, Handler
from tests.support.grpc_server.client import HEADERS, Client, Open, connected, served
from tests.unit.grpc_server.test_connection import ECHO, Waiting

#: Fewer than may be open at once.
PORTION = 50
END = events.ConnectionTerminated
ECHO_PATH, WAIT = b"/a.B/Echo", {":path": "/a.B/Wait"}


class Counting:
    """A handler that counts how often it is begun, and says nothing, or so much as that it has begun."""

    def __init__(self, *, begins: bool = False) -> None:
        self.begun, self.begins = 0, begins

    async def __call__(self, call: Call) -> None:
        """Wait until it is taken back."""
        self.begun += 1
        if self.begins:
            call.begin()
        await asyncio.Event().wait()


def take_back(client: Client, stream: int) -> None:
    """Reset a call."""
    client.h2.reset_stream(stream, ErrorCodes.CANCEL)
    client.send()


async def a_turn(client: Client) -> None:
    """What was sent has had a turn: a ping behind it was answered, or the connection ended."""
    client.h2.ping(b"done it?")
    client.send()
    while not client.saw(END) and not client.saw(events.PingAckReceived):
        assert await client.more()
    client.came = [event for event in client.came if not isinstance(event, events.PingAckReceived)]


async def hung_up(client: Client, open_ones: Open) -> None:
    """The connection ends with a word."""
    end = await client.until(END)
    assert end.error_code == ErrorCodes.ENHANCE_YOUR_CALM
    await client.closed()
    await open_ones.none()


async def test_a_flood_of_calls_taken_back_begins_none_and_ends_the_connection() -> None:
    handler = Counting()
    async with served({ECHO_PATH: handler}) as (port, open_ones), connected(port) as client:
        for _ in range(2 * RESETS):
            take_back(client, client.call(b""))
        await hung_up(client, open_ones)
    assert handler.begun == 0  # what comes together is taken back before it has had a turn


async def test_a_flood_in_small_portions_begins_a_bounded_number() -> None:
    handler = Counting()
    async with served({ECHO_PATH: handler}) as (port, open_ones), connected(port) as client:
        while not client.saw(END):
            client.came.clear()
            streams = [client.call(b"") for _ in range(PORTION)]
            await a_turn(client)
            for stream in streams:
                take_back(client, stream)
        await hung_up(client, open_ones)
    assert RESETS <= handler.begun < 2 * RESETS


async def test_a_flood_of_what_is_no_request_ends_the_connection() -> None:
    async with served(ECHO) as (port, open_ones), connected(port) as client:
        while not client.saw(END):
            *_, last = [client.call(b"", headers={"in valid": "x"}) for _ in range(PORTION)]
            while not client.saw(END) and last not in client.reset:
                assert await client.more()
        await hung_up(client, open_ones)


async def test_calls_that_the_client_has_us_end_by_its_faults_are_a_flood_too() -> None:
    handler = Waiting()
    async with served({ECHO_PATH: handler}) as (port, open_ones), connected(port) as client:
        for _ in range(2 * RESETS):
            stream = client.call(b"")
            client.send(DataFrame(stream, b"more, after the end").serialize())
        await hung_up(client, open_ones)


async def test_what_comes_behind_a_flood_is_nobodys() -> None:
    wrong: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: wrong.append(about))
    async with served(ECHO) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        for _ in range(2 * RESETS):  # a slow machine forgives some of them meanwhile
            stream = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream, list(HEADERS.items()))
            client.h2.reset_stream(stream)
        client.call(b"x" * 1000, headers={"in valid": "x"})  # all of it in one segment
        await client.closed()
        await open_ones.none()
    assert wrong == []


async def test_a_proxy_may_take_back_as_many_as_are_answered() -> None:
    handler = Counting()
    handlers: dict[bytes, Handler] = {**ECHO, b"/a.B/Wait": handler}
    async with served(handlers) as (port, _), connected(port) as client:
        client.h2.increment_flow_control_window(2**30)
        for _ in range(3 * RESETS // PORTION):
            waiting = [client.call(b"", headers=WAIT) for _ in range(PORTION - 1)]
            answered = [client.call(b"x") for _ in range(PORTION)]
            for stream in answered:
                assert (await client.status(stream))[0] == "0"
            for stream in waiting:
                take_back(client, stream)
            client.came.clear()
        assert (await client.status(client.call(b"x")))[0] == "0"
    assert handler.begun > 2 * RESETS


async def test_a_stream_that_has_begun_may_be_left_as_often_as_one_likes() -> None:
    handler = Counting(begins=True)
    handlers: dict[bytes, Handler] = {**ECHO, b"/a.B/Wait": handler}
    async with served(handlers) as (port, _), connected(port) as client:
        for _ in range(2 * RESETS // PORTION):
            streams = [client.call(b"", headers=WAIT) for _ in range(PORTION)]
            for stream in streams:
                await client.until(events.ResponseReceived, stream)
                take_back(client, stream)
            client.came.clear()
        assert (await client.status(client.call(b"x")))[0] == "0"


async def test_calls_that_are_taken_back_and_not_over_leave_no_place_for_more() -> None:
    over, begun = asyncio.Event(), 0

    async def stubborn(_: Call) -> None:
        nonlocal begun
        begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            await over.wait()

    limits = Limits(calls=5)
    async with served({ECHO_PATH: stubborn}, limits) as (port, _), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        most = WITH_TAKEN_BACK * limits.calls
        for number in range(1, most + 1):
            stream = client.call(b"")
            await a_turn(client)
            assert begun == number
            take_back(client, stream)
        refused = await client.until(events.StreamReset, client.call(b""))
        assert refused.error_code == ErrorCodes.REFUSED_STREAM
        assert begun == most
        over.set()
