"""Large messages: only some wait at once, and an answer that goes on, perhaps for hours, keeps nothing of its message."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict
from pytest_django import Settings

from a2a_tasks.models import Task
from a2a_tasks.operations.backpressure import WAITING_BYTES, limit_waiting
from a2a_tasks.protocol.values import Part
from a2a_tasks.store.db import run_in_thread
from tests.integration.doors.mcp.raw import head_of
from tests.integration.doors.mcp.raw import message as message_of_mcp
from tests.support.agents_under_test import playing, until_stopped
from tests.support.bindings.client import Client
from tests.support.bindings.peers import PEERS, Peer, message
from tests.support.bindings.rpc_peer import channel
from tests.support.doors import user
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db

SIZE = 2_000_000
#: Most bytes that an open answer may keep: far less than one copy of the message.
KEPT = 200_000
#: The copies that the library of MCP keeps itself, for the minutes of a call.
LIBRARY = 3
#: Asks with a text as large as it is given, and reads the answer until it is cancelled.
Ask = Callable[[], Awaitable[None]]
Door = Callable[[Client, str], Ask]


@pytest.fixture(autouse=True)
def elsewhere(settings: Settings, host: None) -> Iterator[None]:
    """The agent would run in another process: what a run keeps is its own matter."""
    settings.A2A_RUN_SLOTS, settings.A2A_DOORS = 0, "openai, ag-ui, mcp"
    run = until_stopped(asyncio.Event())
    with playing(run, slug="elsewhere", default_input_modes=["*/*"], on_hangup="go on"):
        yield


def _post(client: Client, path: str, body: bytes, headers: dict[str, str]) -> Ask:
    async def ask() -> None:
        async with client.exchange("POST", path, headers) as exchange:
            exchange.upload(body)
            await exchange.begin()
            assert exchange.status == 200
            while await exchange.piece() is not None:
                pass

    return ask


def _by(peer: type[Peer], operation: str, kind: str) -> Door:
    def make(client: Client, text: str) -> Ask:
        part = {"text": text} if kind == "text" else {"data": {"a": [text]}}
        made = peer(Client(client.app, "/agents/elsewhere"))
        _, path, body, headers = made.request(operation, message(parts=[part]))
        return _post(made.client, path, body, headers)

    return make


def _by_grpc(operation: str) -> Door:
    def make(_: Client, text: str) -> Ask:
        body = ParseDict(message(text), a2a_pb2.SendMessageRequest()).SerializeToString()
        metadata = (("a2a-version", "1.0"), ("a2a-agent", "elsewhere"))

        async def ask() -> None:
            call = (await channel()).unary_stream(f"/lf.a2a.v1.A2AService/{operation}")(
                body, metadata=metadata
            )
            try:
                while await call.read() is not grpc.aio.EOF:
                    pass
            finally:
                call.cancel()

        return ask

    return make


def _by_document(path: str, make: Callable[[str], tuple[Any, dict[str, str]]]) -> Door:
    def door(client: Client, text: str) -> Ask:
        document, headers = make(text)
        body = json.dumps(document).encode()
        return _post(client, path, body, {"content-type": "application/json", **headers})

    return door


def _chat(*, stream: bool) -> Door:
    more = {"model": "elsewhere", "stream": stream}
    return _by_document(
        "/v1/chat/completions", lambda text: ({**more, "messages": [user(text)]}, {})
    )


def _run(text: str) -> tuple[Any, dict[str, str]]:
    said = {"id": "u1", "role": "user", "content": text}
    return {"threadId": "t", "runId": f"r{len(text)}", "messages": [said]}, {}


def _tool(text: str) -> tuple[Any, dict[str, str]]:
    params = {"name": "elsewhere", "arguments": {"message": text}}
    return message_of_mcp("tools/call", params), head_of("tools/call", params)


SENDS = ("SendMessage", "SendStreamingMessage")
DOORS: dict[str, Door] = {
    **{
        f"{peer.name} {operation} {kind}": _by(peer, operation, kind)
        for peer in PEERS
        for operation in SENDS
        for kind in ("text", "data")
    },
    **{f"gRPC {operation}": _by_grpc(operation) for operation in SENDS},
    "OpenAI": _chat(stream=False),
    "OpenAI stream": _chat(stream=True),
    "AG-UI": _by_document("/agents/elsewhere/ag-ui", _run),
    "MCP": _by_document("/mcp", _tool),
}


@contextlib.asynccontextmanager
async def answering(ask: Ask) -> AsyncIterator[None]:
    """Ask, and go on once the message is accepted; leave at the end of the block."""
    before = await run_in_thread(Task.objects.count)
    asking = asyncio.ensure_future(ask())
    try:
        await until(lambda: asking.done() or run_in_thread(lambda: Task.objects.count() > before))
        assert not asking.done()
        yield
    finally:
        asking.cancel()
        await asyncio.wait({asking})
    assert asking.cancelled()


def measure() -> int:
    """The bytes in use."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.fixture
def traced() -> Iterator[Callable[[], None]]:
    """Count the bytes that are allocated from its call on."""
    yield lambda: tracemalloc.start(8)
    tracemalloc.stop()


@pytest.mark.parametrize("door", DOORS)
async def test_one_that_others_leave_no_bytes_is_not_accepted_and_a_small_one_is(
    door: str, client: Client
) -> None:
    small, large = (DOORS[door](client, "x" * size) for size in (10, SIZE))
    with limit_waiting(Part(text="x" * (WAITING_BYTES // 2))):
        asking = asyncio.ensure_future(large())
        await until(lambda: asking.done() or run_in_thread(Task.objects.exists))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert not await run_in_thread(Task.objects.exists)
        async with answering(small):
            pass


@pytest.mark.parametrize("door", DOORS)
async def test_an_open_answer_keeps_nothing_of_its_message(
    door: str, client: Client, traced: Callable[[], None]
) -> None:
    small, large = (DOORS[door](client, "x" * size) for size in (10, SIZE))
    most = KEPT + SIZE * (LIBRARY if door == "MCP" else 0)
    async with answering(small):  # what is imported and cached with the first request
        pass
    traced()
    before = measure()
    async with answering(large):
        try:
            await until(lambda: measure() - before < most)
        except AssertionError:
            kept = tracemalloc.take_snapshot().statistics("traceback")[:5]
            pytest.fail(
                "\n".join(line for one in kept for line in (str(one), *one.traceback.format()))
            )
