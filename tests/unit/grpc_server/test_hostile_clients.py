"""What clients do that no library for gRPC would, and what it costs the others."""

from __future__ import annotations

import asyncio

from h2 import events
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame, PingFrame

from a2a_project.grpc_server.connection import AHEAD_A_CALL
from a2a_project.grpc_server.limits import Limits
from a2a_tasks.bindings.grpc.call import Call
from tests.support.grpc_server.client import HEADERS, PATIENCE, connected, served
from tests.unit.grpc_server.test_connection import ECHO, EXHAUSTED, Waiting


async def test_a_client_that_leaves_gets_what_it_had_begun() -> None:
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, open_ones), connected(port) as client:
        stream = client.call(b"")
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        client.send(
            GoAwayFrame(0, last_stream_id=0).serialize() + PingFrame(0, b"go ahead").serialize()
        )
        await client.until(events.PingAckReceived)
        handler.go_on.set()
        assert (await client.status(stream))[0] == "0"
        await client.closed()
        await open_ones.none()


async def test_a_client_that_leaves_because_of_a_fault_is_left_at_once() -> None:
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, _), connected(port) as client:
        client.call(b"")
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        client.send(GoAwayFrame(0, error_code=ErrorCodes.INTERNAL_ERROR).serialize())
        await client.closed()
        await asyncio.wait_for(handler.left.wait(), PATIENCE)


async def test_what_is_no_request_and_is_taken_back_at_once_costs_the_connection_nothing() -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, [*HEADERS.items(), ("in valid", "x")])
        client.h2.reset_stream(stream)
        client.send()
        assert (await client.status(client.call(b"")))[0] == "0"


async def test_metadata_count_as_often_as_they_are_sent() -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(
            stream, [*HEADERS.items(), *[("x", "y" * 90)] * 400], end_stream=True
        )
        client.send()
        assert (await client.status(stream))[0] == EXHAUSTED


async def test_whatever_table_a_client_would_keep_ours_stays_small() -> None:
    async def told(call: Call) -> None:
        call.begin([("x", (await call.read() or b"").decode())])

    async with served({b"/a.B/Echo": told}) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        for size in (2**31, 0, 10_000, 100, 2**31):
            client.h2.update_settings({SettingCodes.HEADER_TABLE_SIZE: size})
            client.send()
        await client.until(events.SettingsAcknowledged)
        (connection,) = open_ones
        for number in range(100):
            assert (await client.status(client.call(b"%d" % number * 100)))[0] == "0"
        table = connection._h2.encoder.header_table
        assert table.maxsize == 4096
        assert len(table.dynamic_entries) * 32 <= 4096


async def test_messages_that_come_together_are_taken_in_turns_with_others() -> None:
    turns, seen = 0, []

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    async def take(call: Call) -> None:
        while await call.read() is not None:
            seen.append(turns)

    async with served({b"/a.B/Echo": take}) as (port, _), connected(port) as client:
        turn()
        stream = client.call(*[b""] * 1000)
        assert (await client.status(stream))[0] == "0"
    assert len(set(seen)) == len(seen) == 1000


async def test_all_calls_of_a_connection_may_keep_so_much_together() -> None:
    limits = Limits(message_bytes=400_000, unread_bytes=1_000_000)
    async with served(ECHO, limits) as (port, open_ones), connected(port) as client:
        await client.until(events.RemoteSettingsChanged)
        streams = [client.call(end=False) for _ in range(4)]
        for stream in streams:
            data = (400_000).to_bytes(5) + b"x" * 399_000
            for at in range(0, len(data), 16_000):
                while client.h2.local_flow_control_window(stream) < 16_000:
                    await client.more()
                client.h2.send_data(stream, data[at : at + 16_000])
                client.send()
                if any(
                    getattr(event, "stream_id", 0) == stream
                    for event in client.came
                    if isinstance(event, events.StreamEnded)
                ):
                    break
        (connection,) = open_ones
        assert (await client.status(streams[2]))[0] == EXHAUSTED
        assert connection._unread() <= 1_000_000 + AHEAD_A_CALL  # small ones are not counted
