"""Clients that drip: a byte now and then keeps nothing open."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from h2 import events
from hyperframe.frame import ContinuationFrame, DataFrame, HeadersFrame

from a2a_project.grpc_server.limits import Limits
from tests.support.grpc_server.client import PATIENCE, Client, Open, connected, served
from tests.unit.grpc_server.test_connection import DEADLINE, ECHO
from tests.unit.grpc_server.test_frames import raw

LIMITS = Limits(alive_seconds=0.1, answer_seconds=0.1, request_seconds=0.2)
#: Between two drops; far less than any of the limits.
A_MOMENT = 0.005
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY = HeadersFrame(1, b"").serialize()


async def drip(client: Client, drops: Iterable[bytes], open_ones: Open) -> None:
    """Send them one by one, until it is hung up; whoever never is, fails."""
    gone = asyncio.create_task(open_ones.none())
    for drop in drops:
        client.writer.write(drop)
        done, _ = await asyncio.wait({gone}, timeout=A_MOMENT)
        if done:
            break
    await gone


def by_bytes(data: bytes) -> Iterable[bytes]:
    """Each by itself."""
    return (data[at : at + 1] for at in range(len(data)))


async def test_a_preface_that_dribbles_is_cut_off() -> None:
    async with served(ECHO, LIMITS) as (port, open_ones):
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        hello = PREFACE + raw(4, 0, b"\0\3\0\0\0\1" * 2000)  # settings of 12 KB
        await drip(client, by_bytes(hello), open_ones)
        client.writer.close()


#: What is never whole: headers, their continuation, and data of a call. Each time from its beginning.
UNFINISHED: dict[str, Callable[[], Iterable[bytes]]] = {
    "headers": lambda: by_bytes(raw(1, 1, b"x" * 16_000, 4)),
    "continuation": lambda: itertools.chain(
        [EMPTY], by_bytes(ContinuationFrame(1, b"x" * 16_000).serialize())
    ),
    "empty continuations": lambda: itertools.chain(
        [EMPTY], itertools.repeat(ContinuationFrame(1, b"").serialize())
    ),
}


@pytest.mark.parametrize("case", UNFINISHED)
async def test_headers_that_dribble_are_cut_off(case: str) -> None:
    async with served(ECHO, LIMITS) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        await drip(client, UNFINISHED[case](), open_ones)


async def test_continuation_without_end_breaks_the_protocol() -> None:
    async with served(ECHO) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        client.send(EMPTY + ContinuationFrame(1, b"").serialize() * 1000)
        end = await client.until(events.ConnectionTerminated)
        assert end.error_code == 1
        await client.closed()
        await open_ones.none()


async def test_data_that_dribble_end_their_call_and_then_the_connection() -> None:
    limits = replace(LIMITS, request_seconds=0.05)
    async with served(ECHO, limits) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        stream = client.call(end=False)
        client.h2.data_to_send = lambda amount=None: b""  # type: ignore[method-assign] # amid a frame nothing else can be said
        data = DataFrame(stream, b"x" * 16_000).serialize()
        dripping = asyncio.create_task(drip(client, by_bytes(data), open_ones))
        assert (await client.status(stream))[0] == DEADLINE
        await asyncio.wait_for(dripping, PATIENCE)
