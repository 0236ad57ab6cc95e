"""What a client may do to a call, and what it may not: the contract of gRPC's server, whatever library it stands on."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import grpc.aio
import pytest
from grpclib.server import Stream
from h2 import events
from pytest_django import Settings

from a2a_grpc.binding.call import GrpcCall, Handler
from a2a_tasks import process_lifetime
from tests.support.grpc_server.client import HEADERS, PATIENCE, Client, connected, dialled, served

#: More than any window or buffer on the way.
MUCH = 20 * 1024 * 1024
#: What may be sent to a client that does not say how much (RFC 9113 §6.9.2).
WINDOW = 65_535


async def echo(call: GrpcCall) -> None:
    """Say everything again."""
    while (message := await call.read()) is not None:
        await call.write(message)


async def fail(call: GrpcCall) -> None:
    """A mistake of ours."""
    raise ValueError("/etc/secret")


class Waiting:
    """A handler that waits, and tells what happens to it."""

    def __init__(self) -> None:
        self.began, self.left = asyncio.Event(), asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, call: GrpcCall) -> None:
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

    async def much(call: GrpcCall) -> None:
        await call.write(b"x" * MUCH)
        let_go.set()

    async with served({b"/a.B/Echo": much}) as (port, _), connected(port) as client:
        stream = client.call(b"")
        while len(client.data(stream)) < WINDOW:
            await client.more()
        assert not let_go.is_set()
        client.h2.increment_flow_control_window(MUCH)
        client.h2.increment_flow_control_window(MUCH, stream)
        client.send()
        assert await client.status(stream) == ("0", "")
        assert len(client.answers(stream)[0]) == MUCH


async def test_a_mistake_of_ours_tells_nothing_of_itself() -> None:
    async with served({b"/a.B/Echo": fail}) as (port, _), connected(port) as client:
        status, message = await client.status(client.call(b""))
        assert status == "2"
        assert "secret" not in message


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\1\0\0\0\1x", "12"),
        (b"\0\0\0\0\5abc", "3"),
        (b"\0\xff\xff\xff\xffx", "8"),
        (b"\0\0\0", "3"),
    ],
    ids=["compressed", "cut short", "too large", "no message"],
)
async def test_what_is_no_message_ends_its_call_and_no_other(data: bytes, status: str) -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        other = client.call(b"one", end=False)
        stream = client.call(end=False)
        client.h2.send_data(stream, data, end_stream=True)
        client.send()
        assert (await client.status(stream))[0] == status
        client.h2.end_stream(other)
        client.send()
        assert await client.status(other) == ("0", "")


async def test_a_message_that_does_not_come_ends_its_call(settings: Settings) -> None:
    settings.A2A_REQUEST_SECONDS = 0.2
    async with served(ECHO) as (port, _), connected(port) as client:
        stream = client.call(end=False)
        assert (await client.status(stream))[0] == "4"


async def test_a_call_that_is_taken_back_is_stopped() -> None:
    waiting = Waiting()
    async with served({b"/a.B/Echo": waiting}) as (port, _), connected(port) as client:
        stream = client.call(b"")
        await asyncio.wait_for(waiting.began.wait(), PATIENCE)
        client.h2.reset_stream(stream)
        client.send()
        await asyncio.wait_for(waiting.left.wait(), PATIENCE)


async def test_a_call_is_stopped_with_its_connection() -> None:
    waiting = Waiting()
    async with served({b"/a.B/Echo": waiting}) as (port, server):
        async with connected(port) as client:
            client.call(b"")
            await asyncio.wait_for(waiting.began.wait(), PATIENCE)
            client.writer.transport.abort()
        await asyncio.wait_for(waiting.left.wait(), PATIENCE)
        while server.protocols:  # noqa: ASYNC110 - it goes in the next turns of the loop
            await asyncio.sleep(0)


async def test_a_call_is_stopped_at_its_deadline() -> None:
    waiting = Waiting()
    async with served({b"/a.B/Echo": waiting}) as (port, _), connected(port) as client:
        assert (await client.status(client.call(b"", headers={"grpc-timeout": "100m"})))[0] == "4"
        assert waiting.left.is_set()


@pytest.mark.parametrize("timeout", ["0n", "0S", "1n"])
async def test_a_deadline_that_is_over_is_told_as_one(
    timeout: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served({b"/a.B/Echo": Waiting()}) as (port, _), connected(port) as client:
        assert (await client.status(client.call(b"", headers={"grpc-timeout": timeout})))[0] == "4"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_deadline_that_comes_while_the_machine_is_busy_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the reading of the deadline and the beginning of the call."""
    real = Stream.__init__

    def made(self: Any, *args: Any, **about: Any) -> None:
        real(self, *args, **about)
        time.sleep(0.2)

    monkeypatch.setattr(Stream, "__init__", made)
    async with served({b"/a.B/Echo": Waiting()}) as (port, _), connected(port) as client:
        assert (await client.status(client.call(b"", headers={"grpc-timeout": "100m"})))[0] == "4"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("missing", [":method", ":path"])
async def test_a_call_without_method_or_path_is_no_error_of_the_server(
    missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        client.h2.config.validate_outbound_headers = False
        stream = client.h2.get_next_available_stream_id()
        given = [(name, value) for name, value in HEADERS.items() if name != missing]
        client.h2.send_headers(stream, given, end_stream=True)
        client.send()
        assert await client.status(client.call(b"")) == ("0", "")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_the_drain_ends_what_waits_for_clients_and_lets_the_rest_go_on() -> None:
    waiting = Waiting()
    rpcs: dict[bytes, Handler] = {b"/a.B/Echo": echo, b"/a.B/Wait": waiting}
    async with served(rpcs) as (port, server), connected(port) as client, connected(port) as idle:
        reading = client.call(b"one", end=False)
        at_work = client.call(b"", headers={":path": "/a.B/Wait"})
        await client.until(events.DataReceived, reading)
        await asyncio.wait_for(waiting.began.wait(), PATIENCE)
        server._leave()
        assert (await client.status(reading))[0] == "14"
        await idle.until(events.ConnectionTerminated)
        waiting.go_on.set()
        assert await client.status(at_work) == ("0", "")
        with pytest.raises(OSError, match="Connect"):
            await asyncio.open_connection("127.0.0.1", port)


async def test_a_call_that_outlives_the_drain_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_lifetime, "drain_seconds", lambda: 0.1)
    waiting = Waiting()
    async with (
        served({b"/a.B/Wait": waiting}) as (port, server),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as wire,
    ):
        method: Any = wire.unary_unary("/a.B/Wait")
        call = method(b"")
        await asyncio.wait_for(waiting.began.wait(), PATIENCE)
        await asyncio.wait_for(server.stop(), PATIENCE)
        assert waiting.left.is_set()
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert not server.protocols


async def test_too_much_metadata_end_their_call_alone() -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        other = client.call(b"one", end=False)
        stream = client.call(b"two", headers={"x": "x" * 40_000})
        assert (await client.status(stream))[0] == "8"
        client.h2.end_stream(other)
        client.send()
        assert await client.status(other) == ("0", "")


HOSTILE = {
    "a path that is no text": {":path": "/\xff\xfe"},
    "a method that is no text": {":method": "P\xff"},
    "an authority that is no text": {":authority": "\xff"},
    "metadata that are no text": {"x": "\xff" * 100},
    "binary metadata that are none": {"x-bin": "!!!"},
    "binary metadata that are no text": {"x-bin": "\xff"},
    "a time that is none": {"grpc-timeout": "-5x"},
    "a very long time": {"grpc-timeout": "99999999H"},
    "another content": {"content-type": "text/html"},
    "no trailers": {"te": "gzip"},
}


@pytest.mark.parametrize("headers", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_headers_end_neither_the_server_nor_another_call(
    headers: dict[str, str],
) -> None:
    async with served(ECHO) as (port, _), connected(port) as client, connected(port) as hostile:
        other = client.call(b"one", end=False)
        hostile.h2.config.header_encoding = "latin-1"
        given = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in {**HEADERS, **headers}.items()
        ]
        hostile.h2.send_headers(1, given)
        hostile.h2.send_data(1, b"\0\0\0\0\0", end_stream=True)
        hostile.send()
        await answered_or_closed(hostile)
        client.h2.end_stream(other)
        client.send()
        assert await client.status(other) == ("0", "")
        async with connected(port) as third:
            assert await third.status(third.call(b"one")) == ("0", "")


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, b"\0\0\0\4\0\0\0\0\0" + b"\xff" * 1000],
    ids=["HTTP/1.1", "noise", "settings and noise"],
)
async def test_whoever_speaks_something_else_is_hung_up_on(data: bytes) -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        async with dialled(port) as (reader, writer), asyncio.timeout(PATIENCE):
            writer.write(data)
            await reader.read()
        assert await client.status(client.call(b"one")) == ("0", "")


async def answered_or_closed(client: Client) -> None:
    """Wait for either; a call whose metadata cannot be decoded gets neither, and hurts nobody else."""
    try:
        async with asyncio.timeout(1):
            while not (client.saw(events.StreamEnded) or client.saw(events.StreamReset)):
                if not await client.more():
                    return
    except TimeoutError:
        pass
