"""What a client may do to a connection, and what it may not."""

from __future__ import annotations

import asyncio
import contextlib
import gzip

import pytest
from h2 import events
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import PingFrame, RstStreamFrame

from a2a_project.grpc_server.connection import WITH_TAKEN_BACK
from a2a_project.grpc_server.limits import Limits
from a2a_tasks.bindings.grpc.call import Call, Status
from tests.support.grpc_server.client import PATIENCE, connected, served

UNAVAILABLE, EXHAUSTED, DEADLINE = "14", "8", "4"
#: More than any window or buffer on the way.
MUCH = 20 * 1024 * 1024
#: What may be sent to a client that does not say how much (RFC 9113 §6.9.2).
WINDOW = 65_535


async def echo(call: Call) -> None:
    """Say everything again."""
    while (message := await call.read()) is not None:
        await call.write(message)


async def fail(call: Call) -> None:
    """A mistake of ours."""
    raise ValueError("/etc/secret")


class Waiting:
    """A handler that waits, and tells what happens to it."""

    def __init__(self) -> None:
        self.began, self.left = asyncio.Event(), asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, call: Call) -> None:
        """Wait to be told."""
        await call.read()
        self.began.set()
        try:
            await self.go_on.wait()
        finally:
            self.left.set()
        await call.write(b"done")


ECHO = {b"/a.B/Echo": echo}


async def test_messages_go_both_ways_at_once() -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        stream = client.call(b"one", end=False)
        await client.until(events.DataReceived, stream)
        assert client.answers(stream) == [b"one"]
        client.h2.send_data(stream, b"\0\0\0\0\3two", end_stream=True)
        client.send()
        assert await client.status(stream) == ("0", "")
        assert client.answers(stream) == [b"one", b"two"]


async def test_a_large_answer_comes_as_the_client_makes_room_for_it() -> None:
    let_go = asyncio.Event()

    async def much(call: Call) -> None:
        await call.write(b"x" * MUCH)
        let_go.set()

    async with served({b"/a.B/Echo": much}) as (port, _), connected(port) as client:
        stream = client.call(b"")
        while len(client.data(stream)) < WINDOW:
            await client.more()
        assert not let_go.is_set()
        client.h2.increment_flow_control_window(2 * MUCH)
        client.h2.increment_flow_control_window(2 * MUCH, stream)
        client.send()
        assert (await client.status(stream))[0] == "0"
        assert client.answers(stream) == [b"x" * MUCH]


async def test_a_client_that_does_not_read_is_not_read_either() -> None:
    said = 0

    async def talk(call: Call) -> None:
        nonlocal said
        while True:
            await call.write(b"x" * 65_536)
            said += 65_536

    limits = Limits(alive_seconds=0.2, answer_seconds=0.2)
    async with served({b"/a.B/Echo": talk}, limits) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        client.h2.increment_flow_control_window(2**30)
        stream = client.call(b"")
        client.h2.increment_flow_control_window(2**30, stream)
        client.send()
        await open_ones.none()  # it is silent, since nothing is read of it, and it is given up
        assert 0 < said < MUCH


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({":method": "GET"}, "405"),
        ({"content-type": "application/json"}, "415"),
        ({"content-type": "application/grpc-web+proto"}, "415"),
        ({":path": "/a.B/Nothing"}, str(Status.UNIMPLEMENTED.value)),
        ({"grpc-timeout": "soon"}, str(Status.INVALID_ARGUMENT.value)),
        ({"x": "y" * 40_000}, EXHAUSTED),
    ],
)
async def test_what_is_no_call_is_refused(headers: dict[str, str], status: str) -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        stream = client.call(b"", headers=headers)
        assert (await client.status(stream))[0] == status
        again = client.call(b"still there")
        assert (await client.status(again))[0] == "0"


async def test_grpc_has_subtypes() -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        for kind in ("application/grpc+proto", "application/grpc;charset=utf-8"):
            assert await client.status(client.call(headers={"content-type": kind})) == ("0", "")


async def test_a_mistake_of_ours_tells_nothing_of_itself() -> None:
    async with served({b"/a.B/Echo": fail}) as (port, _), connected(port) as client:
        stream = client.call(b"")
        assert await client.status(stream) == (str(Status.INTERNAL.value), "Internal error")


async def test_a_message_may_be_compressed_and_must_be_whole() -> None:
    async with served(ECHO, Limits(message_bytes=100)) as (port, _), connected(port) as client:
        packed = gzip.compress(b"hello")
        stream = client.call(headers={"grpc-encoding": "gzip"}, end=False)
        client.h2.send_data(stream, b"\1" + len(packed).to_bytes(4) + packed, end_stream=True)
        client.send()
        assert (await client.status(stream))[0] == "0"
        assert client.answers(stream) == [b"hello"]
        cut = client.call(end=False)
        client.h2.send_data(cut, b"\0\0\0\0\5hel", end_stream=True)
        client.send()
        assert (await client.status(cut))[0] == str(Status.INVALID_ARGUMENT.value)
        large = client.call(b"x" * 101)
        assert (await client.status(large))[0] == EXHAUSTED


async def test_whoever_compresses_as_nobody_here_can_is_told_what_can_be_read() -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        stream = client.call(headers={"grpc-encoding": "snappy"}, end=False)
        client.h2.send_data(stream, b"\1\0\0\0\1x", end_stream=True)
        client.send()
        assert (await client.status(stream))[0] == str(Status.UNIMPLEMENTED.value)
        told = await client.until(events.ResponseReceived, stream)
        assert dict(told.headers)["grpc-accept-encoding"] == "identity,deflate,gzip"


async def test_a_message_that_does_not_come_ends_its_call_and_every_byte_buys_time() -> None:
    limits = Limits(request_seconds=0.2, request_bytes_per_second=1)
    async with served(ECHO, limits) as (port, _), connected(port) as client:
        stream = client.call(end=False)
        assert (await client.status(stream))[0] == DEADLINE
        slow = client.call(end=False)
        client.h2.send_data(slow, b"\0\0\0\0\5")  # five more seconds for it
        client.send()
        other = client.call(end=False)
        assert (await client.status(other))[0] == DEADLINE
        client.h2.send_data(slow, b"hello", end_stream=True)
        client.send()
        assert (await client.status(slow))[0] == "0"


async def test_messages_that_nobody_asked_for_are_not_kept() -> None:
    handler = Waiting()
    limits = Limits(message_bytes=1000)
    async with served({b"/a.B/Echo": handler}, limits) as (port, _), connected(port) as client:
        stream = client.call(b"x", end=False)
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        for _ in range(4):
            client.h2.send_data(stream, b"x" * 1000)
            client.send()
        assert (await client.status(stream))[0] == EXHAUSTED
        await asyncio.wait_for(handler.left.wait(), PATIENCE)


async def test_a_call_that_is_taken_back_is_stopped() -> None:
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, _), connected(port) as client:
        stream = client.call(b"")
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.send()
        await asyncio.wait_for(handler.left.wait(), PATIENCE)


async def test_a_call_is_stopped_with_its_connection() -> None:
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, _), connected(port) as client:
        client.call(b"")
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        client.writer.transport.abort()
        await asyncio.wait_for(handler.left.wait(), PATIENCE)


async def test_a_call_is_stopped_at_its_deadline() -> None:
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, _), connected(port) as client:
        stream = client.call(b"", headers={"grpc-timeout": "50m"})
        assert (await client.status(stream))[0] == DEADLINE
        await asyncio.wait_for(handler.left.wait(), PATIENCE)


async def test_more_calls_at_once_than_allowed_are_refused_one_by_one() -> None:
    handler, limits = Waiting(), Limits(calls=2)
    async with (
        served({b"/a.B/Echo": handler}, limits) as (port, _),
        connected(port) as client,
    ):
        *served_ones, late = [client.call(b"") for _ in range(WITH_TAKEN_BACK * 2 + 1)]
        refused = await client.until(events.StreamReset, late)  # and it had not read our settings
        assert refused.error_code == ErrorCodes.REFUSED_STREAM
        assert client.h2.remote_settings.max_concurrent_streams == 2
        handler.go_on.set()
        for stream in served_ones:
            assert await client.status(stream) == ("0", "")


async def test_nothing_is_kept_of_calls_that_waited_for_room_and_were_taken_back() -> None:
    async with served(ECHO) as (port, open_ones), connected(port) as client:
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        await client.until(events.SettingsAcknowledged)
        (connection,) = open_ones
        for _ in range(10):
            stream = client.call(b"x")
            await client.until(events.ResponseReceived, stream)
            client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.h2.ping(b"done it?")
        client.send()
        await client.until(events.PingAckReceived)
        over = [task for _, task in connection._calls.values()]
        await asyncio.gather(*over, return_exceptions=True)
        assert not connection._waiting


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
)
async def test_whoever_speaks_something_else_is_hung_up_on(said: bytes) -> None:
    async with served(ECHO) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said + b"x" * 30)
        async with asyncio.timeout(PATIENCE):
            await reader.read()
        writer.close()


async def test_whoever_says_nothing_is_hung_up_on() -> None:
    async with served(ECHO, Limits(request_seconds=0.05)) as (port, open_ones):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionResetError):
                while await reader.read(1000):
                    pass
        await open_ones.none()
        writer.close()


async def test_a_silent_client_is_asked_and_given_up_when_it_does_not_answer() -> None:
    limits = Limits(alive_seconds=0.05, answer_seconds=0.05)
    async with served(ECHO, limits) as (port, open_ones), connected(port) as client:
        for _ in range(3):
            client.came.clear()
            await client.until(events.PingReceived)  # and h2 answers
        assert open_ones
        await open_ones.none()  # nothing is read, so nothing is answered


async def test_a_connection_that_leaves_takes_what_was_on_its_way_and_ends_when_all_is_done() -> (
    None
):
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, open_ones), connected(port) as client:
        first = client.call(b"")
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        (connection,) = open_ones
        second = client.call(b"")  # is on its way
        connection.leave()
        handler.go_on.set()
        told = await client.until(events.ConnectionTerminated)
        assert told.error_code == ErrorCodes.NO_ERROR
        await client.closed()
        for stream in (first, second):
            assert client.answers(stream) == [b"done"]


async def test_a_client_that_does_not_answer_the_goodbye_begins_nothing_more_and_gets_what_it_had_begun() -> (
    None
):
    handler, limits = Waiting(), Limits(answer_seconds=0.05)
    async with (
        served({b"/a.B/Echo": handler}, limits) as (port, open_ones),
        connected(port) as client,
    ):
        client.h2._frame_dispatch_table[PingFrame] = lambda _: ([], [])
        first = client.call(b"")
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        (connection,) = open_ones
        connection.leave()
        await client.until(events.ConnectionTerminated)
        client.came.clear()
        await client.until(events.ConnectionTerminated)  # the second one names what is served
        late = client.call(b"")
        refused = await client.until(events.StreamReset, late)
        assert refused.error_code == ErrorCodes.REFUSED_STREAM
        handler.go_on.set()
        await client.closed()
        assert client.answers(first) == [b"done"]
        await open_ones.none()


async def test_whoever_was_hung_up_on_gets_no_goodbye_any_more() -> None:
    async with served(ECHO) as (port, open_ones), connected(port) as client:
        client.send(RstStreamFrame(99).serialize())
        await client.until(events.ConnectionTerminated)
        (connection,) = open_ones  # it lingers
        connection.leave()
        await client.closed()
        await open_ones.none()


async def test_what_is_left_at_the_end_of_the_drain_is_told_so() -> None:
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, open_ones), connected(port) as client:
        stream = client.call(b"")
        await asyncio.wait_for(handler.began.wait(), PATIENCE)
        (connection,) = open_ones
        connection.cut_off()
        assert await client.status(stream) == (UNAVAILABLE, "This process stops")
        await client.closed()
