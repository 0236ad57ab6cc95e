"""A call that is taken back, wherever it waits, and whatever a hostile client does: nothing of it is left, and the next one is answered."""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncIterator, Awaitable, Generator
from functools import partial
from typing import Any

import pytest
from a2a.types import a2a_pb2
from django.db import connection
from h2 import events
from pytest_django import Settings

from a2a_grpc.binding.call import GrpcCall, Handler
from a2a_grpc.server import Server, make_server
from a2a_project.operations import TABLE
from a2a_tasks.store import db as store_db
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.streaming.event_buffer import hub
from tests import backend
from tests.support.grpc_server.client import PATIENCE, Client, connected
from tests.support.grpc_server.frames import FRAMES, reply
from tests.support.sessions import count_sessions
from tests.support.thorough import thorough

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("host")]
SERVICE = "/lf.a2a.v1.A2AService"
#: More awaits than any call has.
MAX_COUNT = 200
#: Of the loop: every few at first, then on to the end of a call.
TURNS = (*range(0, 60, 3), *range(60, 3000, 120))


def said(text: str) -> bytes:
    message = a2a_pb2.Message(message_id="m", role=a2a_pb2.ROLE_USER, parts=[{"text": text}])
    return a2a_pb2.SendMessageRequest(message=message).SerializeToString()


CALLS = {
    "a list": (f"{SERVICE}/ListTasks", b""),
    "a task": (f"{SERVICE}/GetTask", a2a_pb2.GetTaskRequest(id="none").SerializeToString()),
    "a message": (f"{SERVICE}/SendMessage", said("echo hello")),
    "a stream": (f"{SERVICE}/SendStreamingMessage", said("chunks 3")),
}


@pytest.fixture
async def server(settings: Settings) -> AsyncIterator[tuple[Server, int]]:
    """A server in which one call may be open, so that one that stays is found out by the next."""
    settings.A2A_GRPC_CALLS = 1
    server = make_server(TABLE)
    port = await server.listen("127.0.0.1", 0)
    yield server, port
    await server.stop()


class TakenBack:
    """A handler whose call is taken back at one of the places where it waits, as a reset of the client's does it."""

    def __init__(self, handler: Handler, at: int) -> None:
        self.handler, self.at, self.seen = handler, at, 0
        self.over = asyncio.Event()

    async def __call__(self, call: GrpcCall) -> None:
        """The handler, looked at."""
        try:
            await self._watched(self.handler(call), call)
        finally:
            self.over.set()

    @types.coroutine
    def _watched(self, handled: Awaitable[None], call: Any) -> Generator[Any, Any, None]:
        task: Any = asyncio.current_task()
        steps: Any = handled.__await__()
        step = partial(next, steps)
        while True:
            try:
                waits = step()
            except StopIteration:
                return
            self.seen += 1
            if self.seen == self.at:
                asyncio.get_running_loop().call_soon(task.cancel)
            try:
                yield waits
            except BaseException as thrown:  # noqa: BLE001 - it is the handler's
                step = partial(steps.throw, thrown)
            else:
                step = partial(next, steps)


async def begun(client: Client) -> set[asyncio.Task[Any]]:
    for what, (_, body) in CALLS.items():
        status, _ = await client.status(client.call(body, headers=asked(what)))
        assert status == ("5" if what == "a task" else "0")
    return asyncio.all_tasks()


async def nothing_is_left(server: Server, client: Client, before: set[asyncio.Task[Any]]) -> None:
    """No call, no follower, no task; the database is free, and the next call is answered."""
    await client.until(events.SettingsAcknowledged)
    (held,) = server.protocols
    async with asyncio.timeout(PATIENCE):
        while held.processor.streams or hub()._feeds or asyncio.all_tasks() - before:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)
    assert (await client.status(client.call(b"", headers=asked("a list"))))[0] == "0"
    if backend.backend() == backend.STACK:
        async with asyncio.timeout(PATIENCE):
            while await run_in_thread(
                _idle_in_transaction
            ):  # what the runner is about, or a call's for ever
                pass


def _idle_in_transaction() -> int:
    return count_sessions("state like 'idle in transaction%' and pid <> pg_backend_pid()")


def asked(what: str) -> dict[str, str]:
    return {":path": CALLS[what][0], "a2a-version": "1.0"}


@pytest.mark.parametrize("what", CALLS)
async def test_at_each_place_where_it_waits(server: tuple[Server, int], what: str) -> None:
    served, port = server
    path, body = CALLS[what]
    real, handler = served._served[path], served._rpcs[path.encode()]
    async with connected(port) as client:
        before = await begun(client)
        for at in range(1, MAX_COUNT):
            watched = TakenBack(handler, at)
            served._served[path] = real._replace(func=served.calls.serve(watched))
            client.call(body, headers=asked(what))
            await asyncio.wait_for(watched.over.wait(), PATIENCE)
            served._served[path] = real
            await nothing_is_left(served, client, before)
            if watched.seen < at:
                break
        assert 1 < at < MAX_COUNT


@pytest.mark.parametrize("what", [thorough("a list"), thorough("a task"), "a message", "a stream"])
async def test_after_any_number_of_turns(server: tuple[Server, int], what: str) -> None:
    served, port = server
    async with connected(port) as client:
        before = await begun(client)
        for turns in TURNS:
            stream = client.call(CALLS[what][1], headers=asked(what))
            for _ in range(turns):
                await asyncio.sleep(0)
            client.h2.reset_stream(stream)
            client.send()
            await nothing_is_left(served, client, before)


async def streams_left(port: int) -> None:
    async with connected(port) as client:
        for _ in range(20):
            stream = client.call(CALLS["a stream"][1], headers=asked("a stream"))
        await client.until(events.ResponseReceived, stream)
        client.writer.transport.abort()


async def calls_taken_back(port: int) -> None:
    async with connected(port) as client:
        for _ in range(20):
            for what, (_, body) in CALLS.items():
                client.h2.reset_stream(client.call(body, headers=asked(what)))
            client.h2.ping(b"go ahead")
            client.send()
            assert await client.more()


async def messages_begun(port: int) -> None:
    """Calls whose messages never end, and whose client is gone."""
    async with connected(port) as client:
        for _ in range(20):
            stream = client.call(headers=asked("a message"), end=False)
            client.h2.send_data(stream, b"\0\0\0\1\0half")
        client.send()
        client.h2.ping(b"go ahead")
        client.send()
        await client.until(events.PingAckReceived)
        client.writer.transport.abort()


async def test_after_all_attacks_the_host_holds_what_it_held(
    server: tuple[Server, int], settings: Settings
) -> None:
    settings.A2A_GRPC_CALLS = 1000
    served, port = server
    async with connected(port) as client:
        before = await begun(client)
        for stream in [client.call(b"", headers=asked("a list")) for _ in range(90)]:
            await client.status(stream)
        held = max(
            await run_in_thread(_connections), store_db._threads() + store_db.LIST_THREADS + 1
        )  # and this test's own
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(
            *(asyncio.to_thread(reply, port, data) for data in FRAMES),
            *(attack(port) for attack in (streams_left, calls_taken_back, messages_begun) * 3),
        )
    async with asyncio.timeout(PATIENCE):
        while served.protocols:
            served.lost.clear()
            await served.lost.wait()
    assert len(served.places) == 0
    async with connected(port) as client:
        await nothing_is_left(served, client, before)
        async with asyncio.timeout(PATIENCE):
            while (
                await run_in_thread(_connections) > held
            ):  # a session ends a moment after its connection
                pass


def _connections() -> int:
    if connection.vendor == "sqlite":
        return 1  # its one thread's
    return count_sessions("backend_type = 'client backend'")  # the server's own come and go
