"""One connection: its place, its limits, its signs of life, and its calls."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from grpclib.config import Configuration
from grpclib.const import Handler as GrpcHandler
from grpclib.const import Status
from grpclib.encoding.proto import ProtoCodec, ProtoStatusDetailsCodec
from grpclib.events import _DispatchServerEvents
from grpclib.metadata import decode_metadata, decode_timeout
from grpclib.protocol import AbstractHandler, H2Protocol, Stream
from grpclib.server import request_handler
from h2.config import H2Configuration
from h2.connection import ConnectionState
from h2.errors import ErrorCodes
from h2.events import PingAckReceived, StreamReset, UnknownFrameReceived
from h2.exceptions import ProtocolError

from a2a_grpc.binding.call import GrpcCall, Handler
from a2a_grpc.server.frames import FrameCutter, is_void
from a2a_grpc.server.inbox import Inbox
from a2a_grpc.server.places import ConnectionSlot
from a2a_tasks.access.token_buckets import LocalBuckets
from a2a_tasks.bindings.byte_quota import ByteQuota
from a2a_tasks.conf import conf
from a2a_tasks.rates import read_rate

if TYPE_CHECKING:
    from a2a_grpc.server import Server

__all__ = ["REFUSALS", "CallsOfConnection", "Protocol"]

logger = logging.getLogger(__name__)

#: Bytes of a call's metadata above which the call is refused, and above which its connection is closed.
METADATA_BYTES, MAX_METADATA_BYTES = 32 * 1024, 1024 * 1024
#: Seconds between a GOAWAY and the close. A call that comes meanwhile is ignored: clients send it elsewhere.
GOODBYE_SECONDS = 1.0
#: Frames, and seconds, that a connection may take before others have their turn: uvloop gives 8 MB of one at once.
FRAMES_OF_TURN, SECONDS_OF_TURN = 50, 0.002
#: Calls that a client may reset (CVE-2023-44487): each costs the server more than the client.
RESETS = "33/s burst 1000"
#: Frames without content that a client may send. Clients of gRPC ping after data that they get (to measure the
#: bandwidth); such frames do not count.
VOIDS = "100/s burst 1000"
#: The paths that are given to calls with unusable metadata.
TOO_MUCH, UNREADABLE = "too much metadata", "unreadable metadata"

Headers = list[tuple[str, str]]


async def refuse_size(call: GrpcCall) -> None:
    """Answer a call with too much metadata."""
    call.end(Status.RESOURCE_EXHAUSTED, f"Metadata may have {METADATA_BYTES} bytes")


async def refuse_form(call: GrpcCall) -> None:
    """Answer a call whose metadata cannot be decoded."""
    call.end(Status.INVALID_ARGUMENT, "The metadata or the deadline cannot be read")


#: The handlers of these paths.
REFUSALS: Mapping[bytes, Handler] = {
    TOO_MUCH.encode(): refuse_size,
    UNREADABLE.encode(): refuse_form,
}


class Protocol(H2Protocol):
    """One connection."""

    def __init__(self, server: Server, handler: CallsOfConnection, place: ConnectionSlot) -> None:
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
        self._server, self._place = server, place
        self._answers, self._leaving = True, False
        self._loop = asyncio.get_running_loop()
        self._next_ping: asyncio.TimerHandle | None = None
        #: Received bytes that are not handled yet; True if a turn for them is planned.
        self._frames, self._has_turn = FrameCutter(), False
        self._paces, self._sent_before = LocalBuckets(self._loop.time), 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        super().connection_made(transport)
        self._socket = cast("asyncio.Transport", transport)
        self._h2 = self.connection._connection  # noqa: SLF001
        setattr(self.connection, "create_stream", self._make_stream)  # noqa: B010 - for the types
        # h2 would end the connection, with the calls of other clients behind the same proxy.
        self._h2.decoder.max_header_list_size = MAX_METADATA_BYTES
        self._server.protocols.add(self)
        self.processor.processors[PingAckReceived] = self._take_answer
        self.processor.processors[StreamReset] = self._take_reset
        # RFC 9113 §4.1: frames of unknown kinds are ignored.
        self.processor.processors[UnknownFrameReceived] = lambda _: None
        self._plan_ping()

    def _make_stream(self, *, stream_id: int | None = None) -> Stream:
        return CallStream(self.connection, self._h2, self._socket, stream_id=stream_id)

    def data_received(self, data: bytes) -> None:
        """Handle data, some frames in each turn of the loop."""
        self._frames.add(data)
        if not self._has_turn:
            self._take_turn()

    def _take_turn(self) -> None:
        """Handle some frames, unless the client reads nothing: each ping would make the unsent answers longer."""
        self._has_turn = False
        can_write, is_done = self.connection.write_ready.is_set(), False
        if can_write and not self._is_closed():
            is_done = self._handle_frames()
        if self._is_closed():
            self._frames.clear()
        if self._socket.is_closing():
            return
        if is_done or self._leaving:
            self._read_on()
        else:
            self._socket.pause_reading()
            if can_write:
                self._plan_turn()

    def _read_on(self) -> None:
        if not self._socket.is_reading():
            self._socket.resume_reading()

    def _plan_turn(self) -> None:
        if not self._has_turn:
            self._has_turn = True
            self._loop.call_soon(self._take_turn)

    def _is_closed(self) -> bool:
        return self._leaving or self.connection.is_closing() or self._socket.is_closing()

    def _handle_frames(self) -> bool:
        """Handle the frames of a turn; returns whether no whole frame is left. An error ends only this connection."""
        until = time.monotonic() + SECONDS_OF_TURN
        try:
            if greeting := self._frames.take_greeting():
                super().data_received(greeting)
            for _ in range(FRAMES_OF_TURN):
                frame = self._frames.take(self._h2.max_inbound_frame_size)
                if not frame:
                    return True
                if is_void(frame):
                    self._count_void()
                if self._is_closed():
                    return True
                super().data_received(frame)
                if time.monotonic() > until or not self.connection.write_ready.is_set():
                    break
        except Exception as fault:  # noqa: BLE001 - whatever a client sent
            logger.debug("a gRPC connection is closed: %r", fault)
            self.processor.close("Protocol error")
        return False

    def _count_void(self) -> None:
        """Count a frame without content; the first one after data that were sent to the client is free."""
        sent, self._sent_before = self._sent_before, self.connection.data_sent
        if sent == self._sent_before:
            self._check_pace(VOIDS)

    def _check_pace(self, rate: str) -> None:
        """Count what a client may do at this rate; close the connection of one that exceeds it."""
        allowed = read_rate(rate)
        if allowed is not None and self._paces.take({rate: allowed}):
            self._say_goodbye(ErrorCodes.ENHANCE_YOUR_CALM)

    def pause_writing(self) -> None:
        """Read nothing from a client that reads nothing."""
        super().pause_writing()
        if not self._socket.is_closing():
            self._socket.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._plan_turn()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection's place."""
        super().connection_lost(exc)
        if self._next_ping is not None:
            self._next_ping.cancel()
        self._place.give_back()
        self._server.protocols.discard(self)
        self._server.lost.set()

    def close_when_idle(self) -> None:
        """Close the connection with a GOAWAY if no call is open on it: the client connects elsewhere."""
        if self.processor.streams or self._leaving or self.connection.is_closing():
            return
        self._say_goodbye(ErrorCodes.NO_ERROR)

    def _say_goodbye(self, code: ErrorCodes) -> None:
        """Send a GOAWAY, drop what still comes, and close after a while: an earlier close could overtake the GOAWAY."""
        self._leaving = True
        self.calls.close()
        self._h2.close_connection(code)  # grpclib sends no GOAWAY
        self.connection.flush()
        self._loop.call_later(GOODBYE_SECONDS, self.processor.close)

    def _plan_ping(self) -> None:
        if seconds := float(conf.GRPC_PING_SECONDS):
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
        self._check_pace(RESETS)
        self.processor.process_stream_reset(event)

    def _take_answer(self, _: PingAckReceived) -> None:
        self._answers = True


class CallStream(Stream):
    """The stream of a call that ends with its connection: grpclib would log an error for a last word that nobody gets."""

    async def send_headers(self, headers: Headers, end_stream: bool = False) -> None:
        """Send headers. Raises CancelledError if the connection has ended."""
        with self._until_the_end():
            await super().send_headers(headers, end_stream)

    async def send_data(self, data: bytes, end_stream: bool = False) -> None:
        """Send data. Raises CancelledError if the connection has ended."""
        with self._until_the_end():
            await super().send_data(data, end_stream)

    @contextlib.contextmanager
    def _until_the_end(self) -> Iterator[None]:
        try:
            yield
        except (ProtocolError, RuntimeError):  # of h2, and of uvloop
            state = self._h2_connection.state_machine.state
            if self._transport.is_closing() or state is ConnectionState.CLOSED:
                raise asyncio.CancelledError from None
            raise


class CallsOfConnection(AbstractHandler):
    """The calls of one connection."""

    def __init__(
        self, served: dict[str, GrpcHandler], quota: ByteQuota, unread_answers: ByteQuota
    ) -> None:
        """`quota`: for the bytes of all its calls that the host has not read; `unread_answers`: that the client has not."""
        self._served, self._quota, self._unread_answers = served, quota, unread_answers
        self.tasks: dict[Stream, asyncio.Task[None]] = {}

    def accept(
        self, stream: Stream, headers: Headers, release_stream: Callable[[], object]
    ) -> None:
        """Begin a call; one with unusable metadata is refused alone."""
        assert stream.id is not None  # noqa: S101 - for the types
        acknowledge = functools.partial(stream.connection.ack, stream.id)
        inbox = Inbox(acknowledge, self._quota, self._unread_answers)
        stream.buffer = inbox

        def expire() -> None:
            timers[:] = [loop.call_soon(stop)]  # in this turn the call begins

        def stop() -> None:
            if stream.wrapper is None:  # it is refused, and its client does not read that
                task.cancel()
            else:
                stream.wrapper.cancel(TimeoutError("Deadline exceeded"))

        acceptable, seconds = _make_acceptable(headers)
        loop = asyncio.get_running_loop()
        task = loop.create_task(
            request_handler(
                self._served,
                stream,
                acceptable,
                ProtoCodec(),  # only for its name: calls read and write bytes
                ProtoStatusDetailsCodec(),
                _DispatchServerEvents(),
                lambda: None,
            )
        )
        self.tasks[stream] = task
        timers: list[asyncio.Handle] = []
        if seconds is not None:
            timers.append(loop.call_later(seconds, expire))

        def end(_: object) -> None:
            # Not by grpclib: it does not release a call that is cancelled before it has begun.
            del self.tasks[stream]
            for timer in timers:
                timer.cancel()
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


def _make_acceptable(headers: Headers) -> tuple[Headers, float | None]:
    """Return the headers in a form for which grpclib logs no error of the server, and the seconds of the deadline.

    grpclib counts a deadline twice, and takes one that comes in between for an error of the server.
    """
    if sum(len(name) + len(value) for name, value in headers) > METADATA_BYTES:
        return _refuse(headers, TOO_MUCH), None
    try:
        decode_metadata(headers)
        given = [float(decode_timeout(value)) for name, value in headers if name == "grpc-timeout"]
    except (ValueError, OverflowError):
        return _refuse(headers, UNREADABLE), None
    kept = [(name, value) for name, value in headers if name != "grpc-timeout"]
    missing = [(name, "") for name in {":method", ":path"} - dict(headers).keys()]
    return [*missing, *kept], min(given, default=None)


def _refuse(headers: Headers, reason: str) -> Headers:
    kept = {name: value for name, value in headers if name in {":method", "content-type", "te"}}
    return [*({":method": "", **kept, ":path": reason}).items()]
