"""Answers that nobody reads: bounded in bytes for all clients together, and in time for each."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, cast

import pytest
import uvloop
from grpclib.protocol import Connection
from h2 import events
from h2.errors import ErrorCodes
from pytest_django import Settings

from a2a_grpc.binding.call import CallEnded, GrpcCall, Handler
from a2a_grpc.server import call
from a2a_tasks.bindings.byte_quota import ByteQuota
from a2a_tasks.bindings.unread import PIECE
from tests.support.grpc_server.client import PATIENCE, connected, served

MIB = 1024 * 1024


class Much:
    """A handler with a large answer, and how often its client did not take it."""

    def __init__(self, size: int = 5 * MIB) -> None:
        self.size, self.ended = size, 0

    async def __call__(self, call: GrpcCall) -> None:
        await call.read()
        try:
            await call.write(b"x" * self.size)
        except CallEnded:
            self.ended += 1
            raise


async def small(call: GrpcCall) -> None:
    """Answer."""
    await call.read()
    await call.write(b"small")


SMALL = {":path": "/a.B/Small"}


async def test_a_call_whose_client_reads_nothing_is_reset_and_others_are_answered(
    settings: Settings,
) -> None:
    settings.A2A_REQUEST_SECONDS = 0.2
    much = Much()
    rpcs: dict[bytes, Handler] = {b"/a.B/Echo": much, b"/a.B/Small": small}
    async with served(rpcs) as (port, server), connected(port) as client:
        stream = client.call(b"")  # its window has 64 KiB
        told = await client.until(events.StreamReset, stream)
        assert told.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        assert much.ended == 1
        assert server.unread_answers.used == 0
        assert await client.status(client.call(b"", headers=SMALL)) == ("0", "")


async def test_a_client_that_reads_no_bytes_of_its_socket_loses_its_calls(
    settings: Settings,
) -> None:
    settings.A2A_REQUEST_SECONDS = 0.2
    much = Much(20 * MIB)
    async with served({b"/a.B/Echo": much}) as (port, server), connected(port) as client:
        client.h2.increment_flow_control_window(30 * MIB)
        stream = client.call(b"")
        client.h2.increment_flow_control_window(30 * MIB, stream)
        client.send()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE):
            while not much.ended:  # noqa: ASYNC110 - the handler tells nobody
                await asyncio.sleep(0)
        assert server.unread_answers.used == 0


async def test_many_answers_that_nobody_reads_are_refused_and_small_ones_are_not() -> None:
    rpcs: dict[bytes, Handler] = {b"/a.B/Echo": Much(), b"/a.B/Small": small}
    async with served(rpcs) as (port, server):
        server.unread_answers = ByteQuota(32 * MIB)
        async with connected(port) as hostile, connected(port) as other:
            streams = [hostile.call(b"") for _ in range(12)]
            status = await hostile.status(streams[-1])
            assert status == ("8", "Too many answers wait for their clients")
            assert 10 * MIB <= server.unread_answers.used <= 16 * MIB  # half of it
            stream = other.call(b"")
            other.h2.increment_flow_control_window(10 * MIB)
            other.h2.increment_flow_control_window(10 * MIB, stream)
            other.send()
            assert await other.status(stream) == ("0", "")
            assert await hostile.status(hostile.call(b"", headers=SMALL))
        async with asyncio.timeout(PATIENCE):
            while server.unread_answers.used:  # noqa: ASYNC110 - the connections go in the next turns
                await asyncio.sleep(0)


class Nothing(asyncio.Transport):
    """A transport that holds nothing."""

    def get_write_buffer_size(self) -> int:
        return 0


class Reading:
    """A connection whose client reads so many bytes between two looks."""

    def __init__(self, much: int) -> None:
        self.much, self._sent, self.looks = much, 0, 0

    @property
    def data_sent(self) -> int:
        """The bytes that were sent until now."""
        self.looks += 1
        self._sent += self.much
        return self._sent


@pytest.mark.parametrize(("much", "enough"), [(399, False), (400, True)])
async def test_what_a_client_reads_of_all_calls_counts(
    much: int, enough: bool, settings: Settings
) -> None:
    settings.A2A_REQUEST_SECONDS, settings.A2A_REQUEST_BYTES_PER_SECOND = 0.1, 4000
    reading = Reading(much)

    async def wait() -> None:
        async with call._hurry(cast("Connection", reading), Nothing()):
            while reading.looks < 10:  # noqa: ASYNC110 - it is looked at by time
                await asyncio.sleep(0.01)

    if enough:
        await asyncio.wait_for(wait(), PATIENCE)
    else:
        with pytest.raises(TimeoutError):
            await wait()
        assert reading.looks == 2


def test_messages_are_cut_into_pieces_and_small_ones_are_put_together() -> None:
    messages = [b"a", b"", b"b" * 200_000, b"c" * 65_531, b"d"]
    pieces = list(call._cut(messages))
    assert b"".join(pieces) == b"".join(b"\0" + len(m).to_bytes(4) + m for m in messages)
    assert max(map(len, pieces)) < 2 * PIECE
    assert len(pieces) == 5


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("last", ["a message", "the status"])
def test_a_connection_that_ends_before_the_last_word_of_a_call_is_no_error(
    last: str, begun: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def miss_the_end(call: GrpcCall) -> None:
        """Go on when the connection has ended, as if the cancellation had been lost (python/cpython#86296)."""
        await call.read()
        if begun:
            await call.write(b"one")
        (protocol,) = server.protocols
        protocol._socket.abort()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        if last == "a message":
            await call.write(b"two")

    server: Any = None

    async def story() -> None:
        nonlocal server
        async with served({b"/a.B/Echo": miss_the_end}) as (port, server), connected(port) as it:
            it.call(b"")
            await it.closed()

    caplog.set_level(logging.WARNING)
    uvloop.run(story())  # as every process of the host: its transports raise
    assert caplog.records == []
