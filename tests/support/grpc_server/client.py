"""A client of HTTP/2 that does what it is told, wrong things too: on h2, over a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from hyperframe.frame import GoAwayFrame

from a2a_grpc.binding.call import Handler
from a2a_grpc.server import Server

__all__ = ["HEADERS", "PATIENCE", "Client", "connected", "dialled", "framed", "served"]

PATIENCE = 60.0
HEADERS = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/a.B/Echo",
    ":authority": "here",
    "content-type": "application/grpc",
    "te": "trailers",
}


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        config = H2Configuration(client_side=True, header_encoding="utf-8")
        config.validate_outbound_headers = config.normalize_outbound_headers = False
        self.h2 = H2Connection(config)
        # h2 ends with the first GOAWAY; clients of gRPC read what comes after it (RFC 9113 §6.8).
        self.h2._frame_dispatch_table[GoAwayFrame] = _told_to_go
        self.came: list[events.Event] = []

    def hello(self) -> None:
        """Begin."""
        self.h2.initiate_connection()
        self.send()

    def send(self, raw: bytes = b"") -> None:
        """Send what h2 has, and what it would not."""
        self.writer.write(self.h2.data_to_send() + raw)

    def call(
        self, *messages: bytes, headers: Mapping[str, str] | None = None, end: bool = True
    ) -> int:
        """Begin a call; returns its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, list({**HEADERS, **(headers or {})}.items()))
        if messages or end:
            self.h2.send_data(stream, framed(messages), end_stream=end)
        self.send()
        return stream

    async def more(self) -> bool:
        """Read once; False when the connection is closed."""
        try:
            data = await self.reader.read(65_536)
        except ConnectionResetError:
            return False
        came = self.h2.receive_data(data) if data else []
        for event in came:
            # A client makes room on the connection for what it has read (RFC 9113 §6.9); tests make it on streams.
            if isinstance(event, events.DataReceived) and event.flow_controlled_length:
                self.h2.increment_flow_control_window(event.flow_controlled_length)
        self.came += came
        self.send()
        return bool(data)

    async def until(self, kind: type[events.Event], stream: int | None = None) -> Any:
        """The first event of a kind, of a stream."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for event in self.came:
                    if isinstance(event, kind) and stream in {
                        None,
                        getattr(event, "stream_id", None),
                    }:
                        return event
                assert await self.more(), f"closed before {kind}: {self.came}"

    async def closed(self) -> None:
        """Wait until the other side closes."""
        async with asyncio.timeout(PATIENCE):
            while await self.more():
                pass

    async def status(self, stream: int) -> tuple[str, str]:
        """How a call ended: number and message."""
        await self.until(events.StreamEnded, stream)
        told: dict[str, str] = {}
        for event in self.came:
            if not isinstance(event, events.ResponseReceived | events.TrailersReceived):
                continue
            if event.stream_id == stream:
                told |= {str(name): str(value) for name, value in event.headers}
        return told.get("grpc-status", told[":status"]), told.get("grpc-message", "")

    def saw(self, kind: type[events.Event]) -> bool:
        """Did such an event come?"""
        return any(isinstance(event, kind) for event in self.came)

    @property
    def reset(self) -> set[int]:
        """The streams that were reset."""
        return {event.stream_id for event in self.came if isinstance(event, events.StreamReset)}

    def data(self, stream: int) -> bytes:
        """What came of a call."""
        return b"".join(
            event.data
            for event in self.came
            if isinstance(event, events.DataReceived) and event.stream_id == stream
        )

    def answers(self, stream: int) -> list[bytes]:
        """The messages that came of a call."""
        data, found = self.data(stream), []
        while data:
            size = 5 + int.from_bytes(data[1:5])
            found.append(data[5:size])
            data = data[size:]
        return found


def _told_to_go(frame: GoAwayFrame) -> tuple[list[Any], list[events.Event]]:
    event = events.ConnectionTerminated()
    event.error_code = ErrorCodes(frame.error_code)
    return [], [event]


@asynccontextmanager
async def served(handlers: Mapping[bytes, Handler]) -> AsyncIterator[tuple[int, Server]]:
    """A port on which the handlers are called, and its server."""
    server = Server(handlers)
    try:
        yield await server.listen("127.0.0.1", 0), server
    finally:
        await server.stop()
        await _end_transports()


def framed(messages: Iterable[bytes]) -> bytes:
    """Messages one after the other, each with its length before it."""
    return b"".join(b"\0" + len(message).to_bytes(4) + message for message in messages)


async def _end_transports() -> None:
    """Let transports that are closing give their sockets back, which they do in the next turns of the loop."""
    for _ in range(3):
        await asyncio.sleep(0)


@asynccontextmanager
async def connected(
    port: int, host: str = "127.0.0.1", *, own: str | None = None
) -> AsyncIterator[Client]:
    """A client that has said hello, from an address of its own."""
    async with dialled(port, host, own=own) as (reader, writer):
        client = Client(reader, writer)
        client.hello()
        yield client


@asynccontextmanager
async def dialled(
    port: int, host: str = "127.0.0.1", *, own: str | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection on which nothing has been said."""
    local = (own, 0) if own else None
    reader, writer = await asyncio.open_connection(host, port, local_addr=local)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()  # what the other side does not read would keep it open
        await _end_transports()
