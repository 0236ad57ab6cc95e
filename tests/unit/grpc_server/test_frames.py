"""Frames that no client of gRPC sends, or not so many of them: answered as RFC 9113 says, or the connection ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from h2 import events
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from a2a_project.grpc_server.bucket import Bucket
from a2a_project.grpc_server.connection import A_FRAME, SETTINGS, TALK, Connection
from a2a_project.grpc_server.limits import Limits
from a2a_project.grpc_server.wire import framed
from a2a_tasks.bindings.grpc.call import Call
from tests.support.grpc_server.client import HEADERS, PATIENCE, Client, Open, connected, served
from tests.support.thorough import thorough
from tests.unit.grpc_server.test_connection import ECHO

OK = ("0", "")


async def deaf(_: Call) -> None:
    """It is over before anything was said to it."""


#: What one client may have us keep for it, whatever it sends.
LITTLE = 1024 * 1024


@asynccontextmanager
async def echoing(limits: Limits | None = None) -> AsyncIterator[tuple[Client, Open]]:
    """A client that was greeted, and the connections that are open."""
    async with served(ECHO, limits) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        yield client, open_ones


def raw(kind: int, stream: int, body: bytes = b"", flags: int = 0) -> bytes:
    """A frame that no library would write."""
    return len(body).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + body


async def test_trailers_of_a_client_end_what_it_says() -> None:
    async with echoing() as (client, _):
        stream = client.call(b"one", end=False)
        client.h2.send_headers(stream, [("x-checksum", "1")], end_stream=True)
        client.send()
        assert await client.status(stream) == OK
        assert client.answers(stream) == [b"one"]


async def test_padding_is_taken_off_and_its_room_given_back() -> None:
    async with echoing() as (client, _):
        client.h2.increment_flow_control_window(2**30)
        message = framed([b"x" * 100])
        sent = 0
        while sent < 5 * 1024 * 1024:  # more than a connection may send ahead
            stream = client.call(end=False)
            for _ in range(200):
                client.h2.send_data(stream, message, pad_length=255)
                sent += len(message) + 256
            client.h2.end_stream(stream)
            client.send()
            assert await client.status(stream) == OK
            assert client.answers(stream) == [b"x" * 100] * 200


async def test_priorities_are_nothing_to_us() -> None:
    async with echoing() as (client, _):
        client.send(PriorityFrame(1, depends_on=3, stream_weight=7).serialize())
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, list(HEADERS.items()), priority_weight=9)
        client.h2.send_data(stream, framed([b"one"]), end_stream=True)
        client.send()
        assert await client.status(stream) == OK


async def test_frames_and_settings_that_nobody_knows_are_ignored() -> None:
    async with echoing() as (client, _):
        client.send(raw(0x99, 0, b"hello") + raw(4, 0, b"\xab\xcd\0\0\0\1"))
        assert await client.status(client.call(b"one")) == OK


BROKEN = {
    "a push": (raw(5, 1, b"\0\0\0\2", 4), ErrorCodes.PROTOCOL_ERROR),
    "no window": (WindowUpdateFrame(0, window_increment=1).serialize()[:-1] + b"\0", 1),
    "too large a window": (WindowUpdateFrame(0, window_increment=2**31 - 1).serialize() * 2, 3),
    "a short ping": (raw(6, 0, b"short"), ErrorCodes.FRAME_SIZE_ERROR),
    "a ping of a stream": (raw(6, 1, b"x" * 8), ErrorCodes.PROTOCOL_ERROR),
    "settings of a stream": (raw(4, 1), ErrorCodes.PROTOCOL_ERROR),
    "settings cut short": (raw(4, 0, b"\0\3\0"), ErrorCodes.FRAME_SIZE_ERROR),
    "an answer to settings with some": (
        raw(4, 0, b"x" * 6, 1),
        1,
    ),  # h2's word for it, not RFC 9113's
    "a wrong window for streams": (
        SettingsFrame(0, settings={SettingCodes.INITIAL_WINDOW_SIZE: 2**31}).serialize(),
        ErrorCodes.FLOW_CONTROL_ERROR,
    ),
    "data of no stream": (DataFrame(0x7F, b"x").serialize(), ErrorCodes.PROTOCOL_ERROR),
    "a frame too long": (raw(0, 1, b"x" * 16_385), ErrorCodes.FRAME_SIZE_ERROR),
    "headers of the connection": (raw(1, 0, b"", 4), ErrorCodes.PROTOCOL_ERROR),
    "headers of a server": (HeadersFrame(2, b"\x82", flags=["END_HEADERS"]).serialize(), 1),
    "continuation of nothing": (ContinuationFrame(1, b"x").serialize(), 1),
    "a frame amid headers": (HeadersFrame(1, b"").serialize() + PingFrame(0).serialize(), 1),
    "too much padding": (raw(0, 1, b"\xff", 8), ErrorCodes.PROTOCOL_ERROR),
    "headers that cannot be unpacked": (raw(1, 1, b"\xff" * 6, 4), 1),  # the same
    "a reset of no stream": (RstStreamFrame(99).serialize(), ErrorCodes.PROTOCOL_ERROR),
}


async def broken(case: str) -> None:
    """A client says that, and its connection ends."""
    said, code = BROKEN[case]
    try:
        async with echoing() as (client, open_ones):
            client.send(said)
            end = await client.until(events.ConnectionTerminated)
            assert end.error_code == code
            await client.closed()
            await open_ones.none()
    except BaseException as fault:
        fault.add_note(f"in the case of {case}")
        raise


async def test_what_breaks_the_protocol_ends_the_connection() -> None:
    """All at once: a connection lingers half a second before it is closed."""
    async with asyncio.TaskGroup() as cases:
        for case in BROKEN:
            cases.create_task(broken(case))


async def test_a_frame_that_is_too_long_is_not_waited_for() -> None:
    async with echoing() as (client, open_ones):
        client.send(b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 20_000)  # of 16 MB
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == ErrorCodes.FRAME_SIZE_ERROR
        await open_ones.none()


async def test_trailers_that_end_nothing_are_no_trailers() -> None:
    async with echoing() as (client, open_ones):
        stream = client.call(b"one", end=False)
        block = client.h2.encoder.encode([("x", "y")])
        client.send(HeadersFrame(stream, block, flags=["END_HEADERS"]).serialize())
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == ErrorCodes.PROTOCOL_ERROR
        await open_ones.none()


FLOODS = {
    "pings": PingFrame(0, b"anyone??").serialize(),
    "settings": SettingsFrame(0, settings={SettingCodes.INITIAL_WINDOW_SIZE: 100}).serialize(),
    "answers to settings": SettingsFrame(0, flags=["ACK"]).serialize(),
    "priorities": PriorityFrame(1, depends_on=3).serialize(),
    "what nobody knows": raw(0x99, 0),
    "room for nothing": WindowUpdateFrame(0, window_increment=1).serialize(),
    "room in what is over": WindowUpdateFrame(1, window_increment=1).serialize(),
    "taking back what is over": RstStreamFrame(1).serialize(),
}
#: One that is answered, one that is ignored, one that is unknown; the others only in `make test-all`.
FEW_FLOODS = ("pings", "priorities", "what nobody knows")
CASES = [case if case in FEW_FLOODS else thorough(case) for case in FLOODS]


@pytest.mark.parametrize("case", CASES)
async def test_a_flood_that_says_nothing_ends_the_connection(case: str) -> None:
    async with echoing() as (client, open_ones):
        assert await client.status(client.call(b"one")) == OK
        for _ in range(20):
            client.send(FLOODS[case] * 1000)
            with contextlib.suppress(ConnectionError):
                await client.writer.drain()
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        await client.closed()
        await open_ones.none()


@pytest.mark.parametrize("data", [b"", b"x"], ids=["without a byte", "byte by byte"])
async def test_data_that_say_hardly_anything_are_a_flood_too(data: bytes) -> None:
    async with echoing() as (client, open_ones):
        stream = client.call(end=False)
        client.h2.send_data(stream, (2 * TALK).to_bytes(5))
        client.send(DataFrame(stream, data).serialize() * 2 * TALK)
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        await client.closed()
        await open_ones.none()


async def test_data_for_what_is_over_are_a_flood_too() -> None:
    async with served({b"/a.B/Echo": deaf}) as (port, open_ones), connected(port) as client:
        stream = client.call(b"one", end=False)
        assert await client.status(stream) == OK
        client.send(DataFrame(stream, b"").serialize() * 2 * TALK)
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        await client.closed()
        await open_ones.none()


async def test_headers_by_the_byte_are_a_flood_too() -> None:
    async with echoing() as (client, open_ones):
        (connection,) = open_ones
        connection._talk = Bucket(TALK, 0)  # however slow the machine
        many = [*HEADERS.items(), *[("x", "y")] * 9_000]  # a byte each
        for _ in range(TALK * A_FRAME // 9_000 + 2):
            stream = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream, many, end_stream=True)
            client.send()
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        await client.closed()
        await open_ones.none()


async def test_headers_by_the_byte_for_what_is_over_are_a_flood_too() -> None:
    async with echoing() as (client, open_ones):
        stream = client.call(b"one", end=False)
        client.h2.reset_stream(stream)
        client.send()
        (connection,) = open_ones
        connection._talk = Bucket(TALK, 0)  # however slow the machine
        block = client.h2.encoder.encode([("x", "y")])
        block += client.h2.encoder.encode([("x", "y")]) * 9_000
        for _ in range(TALK * A_FRAME // 9_000 + 2):
            client.send(HeadersFrame(stream, block, flags=["END_HEADERS"]).serialize())
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        await client.closed()
        await open_ones.none()


async def test_room_for_what_is_read_is_no_flood() -> None:
    async def much(call: Call) -> None:
        await call.write(b"x" * 100 * 16_384)

    async with (
        served({b"/a.B/Echo": much}) as (port, open_ones),
        connected(port) as client,
    ):
        await client.until(events.SettingsAcknowledged)
        (connection,) = open_ones
        connection._talk = Bucket(50, 0)
        stream, seen = client.call(), 0
        while not client.saw(events.StreamEnded):
            assert await client.more()
            for event in client.came[seen:]:
                if isinstance(event, events.DataReceived) and event.flow_controlled_length:
                    client.h2.increment_flow_control_window(event.flow_controlled_length)
                    with contextlib.suppress(ProtocolError):  # the last of it
                        client.h2.increment_flow_control_window(
                            event.flow_controlled_length, stream
                        )
            seen = len(client.came)
            client.send()
        assert await client.status(stream) == OK


async def test_calls_that_come_with_a_priority_are_none() -> None:
    async with echoing() as (client, open_ones):
        client.h2.increment_flow_control_window(2**30)
        (connection,) = open_ones
        connection._talk = Bucket(10, 0)
        for _ in range(50):
            stream = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream, list(HEADERS.items()), priority_weight=9)
            client.h2.send_data(stream, framed([]), end_stream=True)
            client.send()
            assert await client.status(stream) == OK


async def test_as_much_as_clients_do_say_is_none() -> None:
    async with echoing() as (client, _):
        client.send(FLOODS["pings"] * (TALK // 4))
        client.send(FLOODS["settings"] * (TALK // 4 // SETTINGS))
        assert await client.status(client.call(b"one")) == OK


def kept(connection: Connection) -> int:
    """Bytes that wait to be sent."""
    return connection._transport.get_write_buffer_size() + len(connection._h2._data_to_send)


@pytest.mark.parametrize("case", CASES)
async def test_what_is_not_read_is_not_kept_without_end(case: str) -> None:
    limits = Limits(alive_seconds=0.2, answer_seconds=0.2)
    async with echoing(limits) as (client, open_ones):
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        (connection,) = open_ones
        most = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE):
                while open_ones:
                    client.writer.write(FLOODS[case] * 1000)
                    await asyncio.sleep(0)
                    most = max(most, kept(connection))
                    if client.writer.transport.get_write_buffer_size() > LITTLE:
                        break
        assert most < LITTLE
        await open_ones.none()


async def test_settings_that_nobody_knows_are_not_kept() -> None:
    async with echoing() as (client, open_ones):
        (connection,) = open_ones
        for first in range(100, 60_000, 2500):
            numbers = range(first, first + 2500)
            client.send(raw(4, 0, b"".join(n.to_bytes(2) + b"\0\0\0\1" for n in numbers)))
        assert await client.status(client.call(b"one")) == OK
        assert len(connection._h2.remote_settings) < 10
