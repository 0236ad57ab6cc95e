"""Calls that only look end when they are told to, those that come late too."""

from __future__ import annotations

import asyncio

from a2a_project.grpc_server.onlookers import Onlookers
from a2a_tasks.bindings.grpc.call import Call
from tests.support.grpc_server.client import PATIENCE, connected, served
from tests.unit.grpc_server.test_connection import UNAVAILABLE, Waiting

WORD = b"/a.B/Word"


async def answer(call: Call) -> None:
    """Whoever has something to say, says it."""
    await call.read()
    await call.write(b"now")


async def test_whoever_waits_is_ended_and_whoever_comes_late_has_one_turn() -> None:
    onlookers, waiting = Onlookers(), Waiting()
    handlers = onlookers.of({b"/a.B/Echo": waiting, WORD: answer})
    async with served(handlers) as (port, _), connected(port) as client:
        early = client.call(b"")
        await asyncio.wait_for(waiting.began.wait(), PATIENCE)
        onlookers.end()
        assert (await client.status(early))[0] == UNAVAILABLE
        late = client.call(b"")
        assert (await client.status(late))[0] == UNAVAILABLE
        quick = client.call(b"", headers={":path": WORD.decode()})
        assert (await client.status(quick))[0] == "0"
        assert client.answers(quick) == [b"now"]
        unfinished = client.call(headers={":path": WORD.decode()}, end=False)
        assert (await client.status(unfinished))[0] == UNAVAILABLE
