"""One connection: its place, its limits, its signs of life, and its calls."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from grpclib.config import Configuration
from grpclib.const import Handler as GrpcHandler
from grpclib.encoding.base import CodecBase, StatusDetailsCodecBase
from grpclib.events import _DispatchServerEvents
from grpclib.metadata import Deadline, decode_metadata, decode_timeout
from grpclib.protocol import AbstractHandler, H2Protocol, Stream
from grpclib.server import request_handler
from h2.config import H2Configuration
from h2.errors import ErrorCodes
from h2.events import PingAckReceived, StreamReset
from h2.exceptions import FrameTooLargeError, ProtocolError

from a2a_project.grpc_server.inbox import ByteQuota, Inbox
from a2a_project.grpc_server.places import TooManyConnections
from a2a_tasks.bindings.grpc.call import GrpcCall, GrpcStatus, Handler
from a2a_tasks.conf import conf

if TYPE_CHECKING:
    from a2a_project.grpc_server import Server

__all__ = ["REFUSALS", "CallsOfConnection", "Protocol"]

logger = logging.getLogger(__name__)

#: Bytes of a call's metadata above which the call is refused, and above which its connection is closed.
METADATA_BYTES, MAX_METADATA_BYTES = 32 * 1024, 1024 * 1024
#: Seconds between a GOAWAY and the close. A call that comes meanwhile is ignored: clients send it elsewhere.
GOODBYE_SECONDS = 1.0
#: Bytes that a connection may handle before others have their turn: uvloop gives 8 MB of one at once.
PIECE = 16 * 1024
#: Calls that a client may reset at once, and in a second (CVE-2023-44487): each costs the server more than the client.
RESETS, RESETS_A_SECOND = 1000, 33
#: Bytes of the length at the beginning of an HTTP/2 frame.
LENGTH = 3
#: Seconds of a deadline below which grpclib would log an error.
SHORT = 0.02
#: The paths that are given to calls with unusable metadata.
TOO_MUCH, UNREADABLE = "too much metadata", "unreadable metadata"

Headers = list[tuple[str, str]]


async def refuse_size(call: GrpcCall) -> None:
    """Answer a call with too much metadata."""
    call.end(GrpcStatus.RESOURCE_EXHAUSTED, f"Metadata may have {METADATA_BYTES} bytes")


async def refuse_form(call: GrpcCall) -> None:
    """Answer a call whose metadata cannot be decoded."""
    call.end(GrpcStatus.INVALID_ARGUMENT, "The metadata or the deadline cannot be read")


#: The handlers of these paths.
REFUSALS: Mapping[bytes, Handler] = {
    TOO_MUCH.encode(): refuse_size,
    UNREADABLE.encode(): refuse_form,
}


class Protocol(H2Protocol):
    """One connection."""

    def __init__(self, server: Server, handler: CallsOfConnection) -> None:
        # Pings are sent here: grpclib pings only while a call is open, and then waits for what it cannot send.
        config = Configuration(_keepalive_time=None)
        # Any byte in headers: a value that is not ASCII fails only its own call.
        h2_config = H2Configuration(
            client_side=False,
            header_encoding="latin-1",
            validate_inbound_headers=False,
            validate_outbound_headers=False,
            normalize_inbound_headers=False,
            normalize_outbound_headers=False,
        )
        super().__init__(handler, config, h2_config)
        self.calls = handler
        self._server, self._has_place, self._address = server, False, ""
        self._answers, self._leaving = True, False
        self._loop = asyncio.get_running_loop()
        self._next_ping: asyncio.TimerHandle | None = None
        #: Received bytes that are not handled yet.
        self._unhandled = bytearray()
        #: Calls that were reset, less those that RESETS_A_SECOND allows, and the time of this count.
        self._resets, self._resets_at = 0.0, 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, or close it at a limit."""
        super().connection_made(transport)
        self._socket = cast("asyncio.Transport", transport)
        self._h2 = self.connection._connection  # noqa: SLF001
        # h2 would end the connection, with the calls of other clients behind the same proxy.
        self._h2.decoder.max_header_list_size = MAX_METADATA_BYTES
        self._address = str((transport.get_extra_info("peername") or [""])[0])
        try:
            self._server.places.take(self._address)
        except TooManyConnections as reason:
            self._server.full.warning(reason)
            self.processor.close()
            return
        self._has_place = True
        self._server.protocols.add(self)
        self.processor.processors[PingAckReceived] = self._take_answer
        self.processor.processors[StreamReset] = self._take_reset
        self._plan_ping()

    def data_received(self, data: bytes) -> None:
        """Handle data, a piece in each turn of the loop."""
        self._unhandled += data
        self._handle_piece()

    def _handle_piece(self) -> None:
        """Handle a piece of what has come, unless the client reads nothing: each ping would make the unsent answers longer."""
        if self._leaving or self.connection.is_closing() or self._socket.is_closing():
            self._unhandled.clear()
        elif not self.connection.write_ready.is_set():
            self._socket.pause_reading()
        else:
            piece = bytes(self._unhandled[:PIECE])
            del self._unhandled[:PIECE]
            self._handle(piece)
            if self._unhandled:
                self._socket.pause_reading()
                self._loop.call_soon(self._handle_piece)
            elif not self._socket.is_reading():
                self._socket.resume_reading()

    def _handle(self, data: bytes) -> None:
        """Handle data; an error in grpclib ends only this connection."""
        try:
            super().data_received(data)
            length = self._h2.incoming_buffer._data[:LENGTH]  # noqa: SLF001 - h2 looks at whole frames only
            if len(length) == LENGTH and int.from_bytes(length) > self._h2.max_inbound_frame_size:
                raise FrameTooLargeError
        except Exception as fault:  # noqa: BLE001 - whatever a client sent
            logger.debug("a gRPC connection is closed: %r", fault)
            self.processor.close("Protocol error")

    def pause_writing(self) -> None:
        """Read nothing from a client that reads nothing."""
        super().pause_writing()
        if not self._socket.is_closing():
            self._socket.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._loop.call_soon(self._handle_piece)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection's place."""
        super().connection_lost(exc)
        if self._next_ping is not None:
            self._next_ping.cancel()
        if self._has_place:
            self._has_place = False
            self._server.places.give_back(self._address)
            self._server.protocols.discard(self)
            self._server.lost.set()

    def close_when_idle(self) -> None:
        """Close the connection with a GOAWAY if no call is open on it: the client connects elsewhere."""
        if self.processor.streams or self._leaving or self.connection.is_closing():
            return
        self._leaving = True
        self._h2.close_connection()  # grpclib sends no GOAWAY
        self.connection.flush()
        self._loop.call_later(GOODBYE_SECONDS, self.processor.close)

    def _plan_ping(self) -> None:
        if seconds := float(conf.KEEPALIVE_SECONDS):
            self._next_ping = self._loop.call_later(seconds, self._ping)

    def _ping(self) -> None:
        """Ask for a sign of life. Without one since the last time, or since a close, the connection is cut."""
        if not self._answers:
            self._socket.abort()
            return
        self._answers = False
        if not (self._leaving or self.connection.is_closing()):
            self._h2.ping(bytes(8))
            self.connection.flush()
        self._plan_ping()

    def _take_reset(self, event: StreamReset) -> None:
        """End a call that its client has reset, and the connection of a client that does so too often."""
        now = self._loop.time()
        self._resets = max(0.0, self._resets - (now - self._resets_at) * RESETS_A_SECOND) + 1
        self._resets_at = now
        if self._resets > RESETS:
            self._h2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            self.connection.flush()
            raise ProtocolError
        self.processor.process_stream_reset(event)

    def _take_answer(self, _: PingAckReceived) -> None:
        self._answers = True


class CallsOfConnection(AbstractHandler):
    """The calls of one connection."""

    def __init__(self, served: dict[str, GrpcHandler], quota: ByteQuota) -> None:
        """`quota`: for the unread bytes of all its calls."""
        self._served, self._quota = served, quota
        self.tasks: dict[Stream, asyncio.Task[None]] = {}

    def accept(
        self, stream: Stream, headers: Headers, release_stream: Callable[[], object]
    ) -> None:
        """Begin a call; one with unusable metadata is refused alone."""
        assert stream.id is not None  # noqa: S101 - for the types
        inbox = Inbox(functools.partial(stream.connection.ack, stream.id), self._quota)
        stream.buffer = inbox
        task = asyncio.get_running_loop().create_task(
            request_handler(
                self._served,
                stream,
                _make_acceptable(headers),
                RawCodec(),
                RawDetails(),
                _DispatchServerEvents(),
                lambda: None,
            )
        )
        self.tasks[stream] = task

        def end(_: object) -> None:
            # Not by grpclib: it does not release a call that is cancelled before it has begun.
            del self.tasks[stream]
            inbox.close()
            release_stream()
            if stream.closable:
                stream.reset_nowait()

        task.add_done_callback(end)

    def cancel(self, stream: Stream) -> None:
        """End a call that its client has taken back."""
        self.tasks[stream].cancel()

    def close(self) -> None:
        """End all calls."""
        for task in self.tasks.values():
            task.cancel()


def _make_acceptable(headers: Headers) -> Headers:
    """Return the headers in a form for which grpclib logs no error of the server."""
    if sum(len(name) + len(value) for name, value in headers) > METADATA_BYTES:
        return _refuse(headers, TOO_MUCH)
    headers = [
        (name, _lengthen(value) if name == "grpc-timeout" else value) for name, value in headers
    ]
    try:
        decode_metadata(headers)
        Deadline.from_headers(headers)
    except (ValueError, OverflowError):
        return _refuse(headers, UNREADABLE)
    return [*((name, "") for name in {":method", ":path"} - dict(headers).keys()), *headers]


def _refuse(headers: Headers, reason: str) -> Headers:
    kept = {name: value for name, value in headers if name in {":method", "content-type", "te"}}
    return [*({":method": "", **kept, ":path": reason}).items()]


def _lengthen(timeout: str) -> str:
    try:
        return timeout if decode_timeout(timeout) > SHORT else "20m"
    except (ValueError, OverflowError):
        return timeout


class RawCodec(CodecBase):
    """A codec for messages that rpcs encode and decode themselves: bytes."""

    __content_subtype__ = "proto"

    def encode(self, message: object, message_type: object) -> bytes:
        """Raise: calls write bytes."""
        raise NotImplementedError

    def decode(self, data: bytes, message_type: object) -> bytes:
        """Raise: calls read bytes."""
        raise NotImplementedError


class RawDetails(StatusDetailsCodecBase):
    """A codec for the details of a status, which the rpcs encode themselves."""

    def encode(self, status: object, message: str | None, details: bytes) -> bytes:
        """Return the details, which are encoded already."""
        return details

    def decode(self, status: object, message: str | None, data: bytes) -> object:
        """Raise: no server reads details."""
        raise NotImplementedError
