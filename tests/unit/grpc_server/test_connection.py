"""The limits of one connection, and its signs of life: no client can hold more of the server than is meant for it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import weakref
from collections import Counter

import pytest
from grpclib.protocol import Stream
from h2 import events
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import StreamClosedError
from hpack import Encoder
from pytest_django import Settings

from a2a_grpc.binding.call import GrpcCall
from a2a_grpc.server import Server, connection
from a2a_tasks import process_lifetime
from tests.support.grpc_server.client import HEADERS, PATIENCE, Client, connected, dialled, served

FRAME = 16_384
MIB = 1024 * 1024


async def measure(call: GrpcCall) -> None:
    """Return the length of each message."""
    while (message := await call.read()) is not None:
        await call.write(str(len(message)).encode())


MEASURE = {b"/a.B/Echo": measure}


async def pour(client: Client, stream: int, size: int, *, whole: int = 4 * MIB) -> None:
    """Send this much of a message, as the windows allow, and its end if it is all; less if it is refused."""
    sent = 0
    with contextlib.suppress(StreamClosedError):  # the call was refused
        while sent < size:
            room = min(client.h2.local_flow_control_window(stream), FRAME, size - sent)
            if not room:
                async with asyncio.timeout(PATIENCE):
                    await client.more()
                continue
            piece = b"\0" + whole.to_bytes(4) if not sent else b""
            piece += b"x" * (room - len(piece))
            sent += room
            client.h2.send_data(stream, piece, end_stream=sent == whole + 5)
            client.send()
            await client.writer.drain()


async def measured(client: Client, size: int) -> bool:
    """Whether a message of this size is answered."""
    stream = client.call(end=False)
    await pour(client, stream, size + 5, whole=size)
    return await client.status(stream) == ("0", "") and client.answers(stream) == [b"%d" % size]


async def settled(server: Server, used: int) -> None:
    """Wait until this many bytes are unread."""
    async with asyncio.timeout(PATIENCE):
        while server.unread.used != used:  # noqa: ASYNC110 - they come in the next turns of the loop
            await asyncio.sleep(0)


async def gone(server: Server) -> None:
    """Wait until there is no connection."""
    async with asyncio.timeout(PATIENCE):
        while server.protocols:  # noqa: ASYNC110 - it goes in the next turns of the loop
            await asyncio.sleep(0)


async def test_nothing_is_left_of_a_closed_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(
        logging.WARNING, "grpclib.server"
    )  # lines of cancelled calls have their frames
    async with served(MEASURE) as (port, server):
        async with connected(port) as client:
            await pour(client, client.call(end=False), MIB)
            await pour(client, client.call(end=False), MIB)
            await settled(server, 2 * MIB - 10)  # without what was read: the lengths
            (protocol,) = server.protocols
            left = [weakref.ref(stream) for stream in protocol.processor.streams.values()]
            del protocol
            assert len(left) == 2
        await gone(server)
        await settled(server, 0)
        gc.collect()
        assert [ref for ref in left if ref() is not None] == []
        assert [each for each in gc.get_objects() if issubclass(type(each), Stream)] == []


async def test_a_connection_holds_no_more_than_a_few_unfinished_messages() -> None:
    async with (
        served(MEASURE) as (port, server),
        connected(port) as client,
        connected(port) as other,
    ):
        streams = [client.call(end=False) for _ in range(12)]
        for stream in streams:
            if stream not in client.reset:
                await pour(client, stream, 4 * MIB - FRAME)
        (status, message) = await client.status(streams[-1])
        assert (status, message) == ("8", "Too many messages are unfinished")
        assert server.unread.used <= 32 * MIB
        for one in (client, other):  # small messages always get in
            assert await one.status(one.call(b"small")) == ("0", "")


async def test_a_server_holds_no_more_for_many_connections(settings: Settings) -> None:
    async with served(MEASURE) as (port, server):
        server.unread._limit = 6 * MIB
        async with connected(port) as first, connected(port) as second:
            await pour(first, first.call(end=False), 3 * MIB)
            await settled(server, 3 * MIB - 5)
            stream = second.call(end=False)
            await pour(second, stream, 2 * MIB)
            assert (await second.status(stream))[0] == "8"
            assert await measured(second, MIB)
        await gone(server)
        await settled(server, 0)


async def test_data_that_nobody_reads_do_not_stop_other_calls() -> None:
    """As behind a proxy that sends the calls of many clients through one connection."""
    going_on = asyncio.Event()

    async def read_once(call: GrpcCall) -> None:
        await call.read()
        await going_on.wait()

    rpcs = {**MEASURE, b"/a.B/Once": read_once}
    async with served(rpcs) as (port, _), connected(port) as client:
        stream = client.call(b"one", headers={":path": "/a.B/Once"}, end=False)
        await pour(client, stream, 5 * MIB)
        assert await measured(client, MIB)
        going_on.set()
        assert await client.status(stream) == ("0", "")


async def test_a_frame_that_announces_too_much_closes_its_connection() -> None:
    async with served(MEASURE) as (port, _), connected(port) as client, connected(port) as hostile:
        hostile.send(b"\xff\xff\xff\0\0\0\0\0\1")
        await hostile.closed()
        assert await client.status(client.call(b"one")) == ("0", "")


async def test_the_largest_frame_is_read() -> None:
    async with served(MEASURE) as (port, _), connected(port) as client, connected(port) as other:
        await client.until(events.SettingsAcknowledged)
        stream = client.call(end=False)
        data = b"\0" + (FRAME - 5).to_bytes(4) + b"x" * (FRAME - 5)
        client.h2.send_data(stream, data, end_stream=True)
        sent = client.h2.data_to_send()
        client.writer.write(sent[:5])
        assert await measured(other, 1)  # meanwhile the server has looked at the beginning
        client.writer.write(sent[5:])
        assert await client.status(stream) == ("0", "")


class TestSignsOfLife:
    @pytest.fixture(autouse=True)
    def often(self, settings: Settings) -> None:
        """Look for them often."""
        settings.A2A_GRPC_PING_SECONDS = 0.3

    async def test_a_silent_connection_is_closed(self) -> None:
        async with served(MEASURE) as (port, server):
            async with dialled(port) as (reader, _), asyncio.timeout(PATIENCE):
                with pytest.raises(ConnectionResetError):
                    while await reader.read(65_536):
                        pass
                    raise ConnectionResetError  # closed is as good
            await gone(server)

    async def test_a_connection_that_never_reads_is_closed(self) -> None:
        async def much(call: GrpcCall) -> None:
            await call.write(b"x" * 20 * MIB)

        async with served({b"/a.B/Echo": much}) as (port, server), connected(port) as client:
            client.h2.increment_flow_control_window(30 * MIB)
            stream = client.call(b"")
            client.h2.increment_flow_control_window(30 * MIB, stream)
            client.send()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.wait_for(server.lost.wait(), PATIENCE)
            assert not server.protocols

    async def test_one_that_answers_stays_without_a_call(self, settings: Settings) -> None:
        settings.A2A_GRPC_PING_SECONDS = 1.0  # client and server share an event loop
        async with served(MEASURE) as (port, _), connected(port) as client:
            while sum(isinstance(event, events.PingReceived) for event in client.came) < 2:
                assert await client.more()
            assert await client.status(client.call(b"one")) == ("0", "")


async def test_a_client_that_reads_nothing_does_not_keep_the_server_from_its_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_lifetime, "drain_seconds", lambda: 0.1)
    began, left = asyncio.Event(), asyncio.Event()

    async def much(call: GrpcCall) -> None:
        began.set()
        try:
            await call.write(b"x" * 20 * MIB)
        finally:
            left.set()

    async with served({b"/a.B/Echo": much}) as (port, server), connected(port) as client:
        client.h2.increment_flow_control_window(30 * MIB)
        stream = client.call(b"")
        client.h2.increment_flow_control_window(30 * MIB, stream)
        client.send()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.wait_for(began.wait(), PATIENCE)
        await asyncio.wait_for(server.stop(), PATIENCE)
        assert left.is_set()


async def test_pings_to_a_client_that_reads_nothing_are_not_answered_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "VOIDS", "")
    async with served(MEASURE) as (port, server), connected(port) as hostile:
        await hostile.until(events.SettingsAcknowledged)
        hostile.writer.transport.pause_reading()  # type: ignore[attr-defined]
        own = hostile.writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, FRAME)  # or the kernel takes megabytes
        ping = b"\0\0\x08\6\0\0\0\0\0" + b"x" * 8
        hostile.writer.write(ping * (32 * MIB // len(ping)))
        (protocol,) = server.protocols
        transports = (hostile.writer.transport, protocol._socket)
        unsent, turns = [0, 0], 0  # turns of the loop since anything was sent
        while turns < 1000 and unsent[1] < MIB:
            await asyncio.sleep(0)
            left = [transport.get_write_buffer_size() for transport in transports]
            unsent, turns = left, turns + 1 if left == unsent else 0
        assert unsent[0] > 0
        assert unsent[1] < MIB


def taken_back(client: Client, count: int) -> bytes:
    """Calls that are taken back at once."""
    for _ in range(count):
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, list(HEADERS.items()))
        client.h2.reset_stream(stream)
    return client.h2.data_to_send()


async def test_a_client_that_takes_back_too_many_calls_loses_its_connection() -> None:
    async with served(MEASURE) as (port, _), connected(port) as client, connected(port) as hostile:
        hostile.send(taken_back(hostile, 3000))
        told = await hostile.until(events.ConnectionTerminated)
        assert told.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        await hostile.closed()
        assert await client.status(client.call(b"one")) == ("0", "")


async def test_a_client_may_take_back_many_calls() -> None:
    async with served(MEASURE) as (port, _), connected(port) as client:
        client.send(taken_back(client, 900))
        assert await client.status(client.call(b"one")) == ("0", "")


def head(size: int, kind: int, flags: int = 0, stream: int = 0) -> bytes:
    """The head of a frame (RFC 9113 §4.1)."""
    return size.to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4)


#: Frames that carry nothing, of every kind; those of stream 1 belong to a call that has begun.
VOID = {
    "empty DATA": head(0, 0, stream=1),
    "padding": head(101, 0, flags=8, stream=1) + b"\x64" + bytes(100),
    "PRIORITY": head(5, 2, stream=3) + bytes([0, 0, 0, 0, 15]),
    "SETTINGS": head(0, 4),
    "acknowledged SETTINGS": head(0, 4, flags=1),
    "PING": head(8, 6) + bytes(8),
    "an unknown kind": head(0, 0x77),
}


#: The rest of a GOAWAY, after the last stream (RFC 9113 §6.8).
GOODBYE = ErrorCodes.ENHANCE_YOUR_CALM.to_bytes(4)


async def calmed(hostile: Client, flood: bytes) -> bool:
    """Whether the connection is ended for what it sends."""
    hostile.writer.write(flood)
    told = b""
    async with asyncio.timeout(PATIENCE):
        while data := await hostile.reader.read(65_536):
            told += data
    return GOODBYE in told


@pytest.mark.parametrize("frame", VOID.values(), ids=VOID.keys())
async def test_a_client_that_sends_too_many_frames_without_content_loses_its_connection(
    frame: bytes,
) -> None:
    async with served(MEASURE) as (port, _), connected(port) as client, connected(port) as hostile:
        hostile.call(end=False)
        assert await calmed(hostile, frame * 3000)
        assert await client.status(client.call(b"one")) == ("0", "")


async def test_empty_continuations_of_heads_end_their_connection() -> None:
    encoder, flood = Encoder(), b""
    for stream in range(1, 200, 2):
        block = encoder.encode(list(HEADERS.items()))
        flood += head(len(block), 1, flags=1, stream=stream) + block
        flood += head(0, 9, stream=stream) * 50 + head(0, 9, flags=4, stream=stream)
    async with served(MEASURE) as (port, _), connected(port) as client, connected(port) as hostile:
        assert await calmed(hostile, flood)
        assert await client.status(client.call(b"one")) == ("0", "")


@pytest.mark.parametrize("frame", VOID.values(), ids=VOID.keys())
async def test_a_client_may_send_many_of_them(frame: bytes) -> None:
    async with served(MEASURE) as (port, _), connected(port) as client:
        client.call(end=False)
        client.send(frame * 900)
        assert await client.status(client.call(b"one")) == ("0", "")


async def test_pings_after_data_do_not_count() -> None:
    """As those of grpc-go and grpc-java, which measure the bandwidth."""
    async with served(MEASURE) as (port, _), connected(port) as client:
        stream = client.call(end=False)
        for _ in range(1500):
            client.h2.send_data(stream, b"\0\0\0\0\1x")
            client.send()
            await client.until(events.DataReceived, stream)
            client.came.clear()
            client.send(VOID["PING"])
        assert await client.status(client.call(b"one")) == ("0", "")


async def test_a_large_message_may_come_in_very_small_frames() -> None:
    async with served(MEASURE) as (port, _), connected(port) as client:
        stream = client.call(end=False)
        client.send(head(5, 0, stream=1) + b"\0" + (10_000).to_bytes(4))
        client.send((head(1, 0, stream=1) + b"x") * 9_999 + head(1, 0, flags=1, stream=1) + b"x")
        assert await client.status(stream) == ("0", "")
        assert client.answers(stream) == [b"10000"]


async def test_a_call_may_end_with_an_empty_frame_however_many_there_are() -> None:
    async with served(MEASURE) as (port, _), connected(port) as client:
        for _ in range(30):
            streams = []
            for _ in range(50):
                streams.append(client.call(b"one", end=False))
                client.h2.end_stream(streams[-1])
            client.send()
            for stream in streams:
                assert await client.status(stream) == ("0", "")
            client.came.clear()


async def test_a_flood_leaves_turns_of_the_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "VOIDS", "")
    turn, frames = 0, Counter[int]()
    receive_data, loop = H2Connection.receive_data, asyncio.get_running_loop()

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count_turns)

    def note(h2: H2Connection, data: bytes) -> list[events.Event]:
        if not h2.config.client_side:
            frames[turn] += 1
        return receive_data(h2, data)

    monkeypatch.setattr(H2Connection, "receive_data", note)
    count_turns()
    async with served(MEASURE) as (port, _), connected(port) as hostile:
        hostile.send(VOID["acknowledged SETTINGS"] * 20_000)
        assert await hostile.status(hostile.call(b"one")) == ("0", "")
    assert frames.total() > 20_000
    assert max(frames.values()) <= 51  # the greeting, and 50 frames


UNREADABLE = {
    "one sign of base64": {"x-bin": "A"},
    "no text": {"x-bin": "\xff"},
    "no time": {"grpc-timeout": "-5x"},
    "a time of 400 digits": {"grpc-timeout": "9" * 400 + "H"},
    "a time of 5000 digits": {"grpc-timeout": "9" * 5000 + "H"},
}


@pytest.mark.parametrize("headers", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_metadata_that_cannot_be_decoded_are_refused(
    headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async with served(MEASURE) as (port, _), connected(port) as client:
        client.h2.config.header_encoding = "latin-1"
        given = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in {**HEADERS, **headers}.items()
        ]
        client.h2.send_headers(1, given, end_stream=True)
        client.send()
        assert await client.status(1) == ("3", "The metadata or the deadline cannot be read")
        assert await client.status(client.call(b"one")) == ("0", "")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_call_that_ends_without_an_answer_is_reset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(*_: object) -> None:
        """Fail as grpclib does before it answers."""

    monkeypatch.setattr("a2a_grpc.server.connection.request_handler", nothing)
    async with served(MEASURE) as (port, _), connected(port) as client:
        stream = client.call(b"one")
        await client.until(events.StreamReset, stream)


async def test_a_drained_connection_stays_open_until_its_client_has_been_told() -> None:
    async with served(MEASURE) as (port, server), connected(port) as client:
        assert await client.status(client.call(b"one")) == ("0", "")
        server._leave()
        client.call(b"late")  # on its way when the GOAWAY was sent
        await client.until(events.ConnectionTerminated)
        client.call(b"later")
        await client.closed()  # without a reset, which could overtake the GOAWAY
