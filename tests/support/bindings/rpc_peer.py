"""The third binding for the tests of all: a real server and the official stubs, and json_format between (not ours)."""

from __future__ import annotations

import asyncio
import contextlib
import re
import weakref
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from a2a.types import a2a_pb2, a2a_pb2_grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc import error_details_pb2, status_pb2

from a2a_grpc.server import Server, make_server
from a2a_project.operations import TABLE
from a2a_tasks import process_lifetime
from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS
from tests.support.bindings.client import PATIENCE, Event, Response, Stream
from tests.support.bindings.peers import Fault, Peer

__all__ = ["Grpc", "RpcStream", "address", "channel", "fault_of"]

assert error_details_pb2  # json_format looks the details up by their names
#: What peers of 0.3 tell errors apart by: no word of Python, though it looks like one.
PREFIX = re.compile(r"^\w+Error: ")
#: A time without a fraction of a second.
WHOLE_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: Requests that are not called after their operation.
REQUESTS = {
    "SendStreamingMessage": "SendMessageRequest",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
}
#: Members that JSON always has, and that protobuf cannot tell from nothing.
WHOLE: dict[str, dict[str, Any]] = {
    "ListTasks": {"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0},
    "ListTaskPushNotificationConfigs": {"configs": [], "nextPageToken": ""},
}


@dataclass
class _Served:
    server: Server
    address: str
    channel: grpc.aio.Channel


_served: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Served] = weakref.WeakKeyDictionary()


async def _serve() -> _Served:
    """The server of the test that runs, begun at its first question, ended with its host."""
    loop = asyncio.get_running_loop()
    if loop not in _served:
        server = make_server(TABLE)
        where = f"127.0.0.1:{await server.listen('127.0.0.1', 0)}"
        served = _served[loop] = _Served(server, where, grpc.aio.insecure_channel(where))

        async def end() -> None:
            await served.channel.close()
            await server.stop()

        process_lifetime.on_stop(end)
    return _served[loop]


async def channel() -> Any:
    """A channel to the test's server; its calls are told in bytes."""
    return (await _serve()).channel


async def address() -> str:
    """Host and port of the test's server."""
    return (await _serve()).address


def plain(value: Any) -> Any:
    """A tree in which whole numbers are integers (in Structs all are doubles), and times have milliseconds.

    protobuf leaves out those of a whole second, which one time in a thousand is.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and WHOLE_SECOND.fullmatch(value):
        return f"{value[:-1]}.000Z"
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def fault_of(error: grpc.aio.AioRpcError) -> Fault:
    """The error, by what its details say."""
    trailers = [(key, value) for key, value in error.trailing_metadata() or ()]
    status = status_pb2.Status()
    for key, value in trailers:
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    details = [{"metadata": {}, **detail} for detail in MessageToDict(status).get("details", [])]
    texts = [(key, value) for key, value in trailers if isinstance(value, str)]
    told = PREFIX.sub("", error.details() or "")
    response = Response(0, texts, told.encode())
    fault = Fault(response, {"code": error.code().name, "message": error.details()}, details)
    assert error.code() is not grpc.StatusCode.UNKNOWN, fault
    return fault


class RpcStream(Stream):
    """A stream of rpc, read as if it were one of server-sent events: the numbers are those the extension gives."""

    def __init__(self, call: Any) -> None:
        self.call = call

    def header(self, name: str) -> str | None:
        """A key of the initial metadata."""
        return dict(self.initial).get(name)

    async def begin(self) -> None:
        """Wait for what comes first: an error, or the beginning."""
        async with asyncio.timeout(PATIENCE):
            self.initial = list(await self.call.initial_metadata())
            # A stream that begins says at least which extension is in force.
            if not self.initial:
                await self.block()

    async def block(self) -> Event | None:
        """The next event; None at the end. Raises Fault."""
        async with asyncio.timeout(PATIENCE):
            try:
                item = await self.call.read()
            except grpc.aio.AioRpcError as error:
                raise fault_of(error) from None
        if item is grpc.aio.EOF:
            return None
        tree = plain(MessageToDict(item))
        (said,) = tree.values()
        number, _, mark = said["metadata"].pop(RESUMABLE_STREAMS.uri).partition("-")
        if not said["metadata"]:
            del said["metadata"]
        return Event(id=int(number), data=tree, mark=mark)


class Grpc(Peer):
    """Over gRPC."""

    name = "GRPC"

    def request(
        self, operation: str, params: Mapping[str, Any]
    ) -> tuple[str, str, bytes, dict[str, str]]:
        """Its requests are messages."""
        raise NotImplementedError

    def unwrapped(self, response: Response) -> Any:
        """Its answers are messages."""
        raise NotImplementedError

    def item(self, event: Event) -> Any:
        """A stream's items are bare."""
        return event.data

    async def _call(
        self, operation: str, params: Mapping[str, Any], headers: Mapping[str, str], extensions: str
    ) -> Any:
        made = getattr(a2a_pb2, REQUESTS.get(operation, f"{operation}Request"))
        request = ParseDict(dict(params), made(), ignore_unknown_fields=True)
        stub = a2a_pb2_grpc.A2AServiceStub(await channel())  # type: ignore[no-untyped-call]
        asked = list(dict.fromkeys(filter(None, (headers.get("a2a-extensions"), extensions))))
        metadata = {
            "a2a-version": "1.0",
            "a2a-agent": self.client.base.split("/")[2],
            **{key.lower(): value for key, value in headers.items()},
            **({"a2a-extensions": ",".join(asked)} if asked else {}),
        }
        given = tuple(metadata.items())
        return getattr(stub, operation)(request, metadata=given)

    async def call(
        self,
        operation: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Ask, and return the result. Raises Fault."""
        if operation in {"SendStreamingMessage", "SubscribeToTask"}:
            async with self.stream(operation, params or {}, headers):
                raise AssertionError("no error")
        _, answer = await self.headers_and_result(operation, params or {}, headers or {})
        return answer

    async def headers_and_result(
        self, operation: str, params: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[Mapping[str, str], Any]:
        """Ask, and return the initial metadata too. Raises Fault."""
        # A request under a key is the same with the same extensions only.
        extensions = RESUMABLE_STREAMS.uri if "idempotency-key" in headers else ""
        call = await self._call(operation, params, headers, extensions)
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await call
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from None
        initial = {str(key): str(value) for key, value in await call.initial_metadata()}
        return initial, plain({**WHOLE.get(operation, {}), **MessageToDict(answer)})

    @contextlib.asynccontextmanager
    async def stream(
        self,
        operation: str,
        params: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        """Ask for a stream; leave it at the end of the block."""
        call = await self._call(operation, params, headers or {}, RESUMABLE_STREAMS.uri)
        stream = RpcStream(call)
        try:
            await stream.begin()
            yield stream
        finally:
            call.cancel()
