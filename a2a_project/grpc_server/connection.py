"""One connection of HTTP/2, on h2: its streams are calls, and nothing a client does makes it wait or grow without bound.

What came in one turn of the loop is looked at in one, and what is said in one leaves in one system call: that is where the
speed of this binding comes from (docs/decisions/0123).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import Frame, GoAwayFrame

from a2a_project.grpc_server.bucket import Bucket
from a2a_project.grpc_server.call import Headers, OpenCall
from a2a_project.grpc_server.compression import Reader, Writer
from a2a_project.grpc_server.pulse import Pulse
from a2a_project.grpc_server.settings import OurSettings, PeerSettings
from a2a_project.grpc_server.wire import of_grpc, timeout, well_formed
from a2a_tasks.bindings.grpc.call import Ended, Handler, Status

if TYPE_CHECKING:
    from a2a_project.grpc_server.limits import Limits

__all__ = ["Connection"]

logger = logging.getLogger(__name__)
#: What comes we check ourselves, in a fifth of the time; what is sent is written as it ought to be.
_CONFIG = H2Configuration(
    client_side=False,
    header_encoding=None,
    validate_inbound_headers=False,
    normalize_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)
#: The last number a stream can have: "whatever you have sent already is served".
LAST_STREAM = 2**31 - 1
#: Bytes a client may send ahead of being told to go on: on a connection (protocol's default, and more), and on one call.
DEFAULT_AHEAD, AHEAD, AHEAD_A_CALL = 65_535, 4 * 1024 * 1024, 256 * 1024
#: Bytes of the longest frame that we take, as long as clients are not told another number (RFC 9113 §4.2).
LONGEST = 9 + 16_384
#: Bytes that are looked at in one turn of the loop; what they say may cost microseconds a byte.
MOUTHFUL = 16 * 1024
#: Bytes that wait for a system call before one is made in the middle of a turn.
FLUSH = 64 * 1024
#: So many times the metadata that a call may have cost the connection; what is between costs the call only.
HARD = 16
#: Calls that may be taken back, or have to be reset, before anything was said to them: at once, and a second. Each one that is answered allows one more.
RESETS, RESETS_A_SECOND = 1000, 33
#: So many times the calls of a connection may be under way with those that were taken back and are not over yet.
WITH_TAKEN_BACK = 2
#: Frames that say nothing of a call, or hardly anything: at once, and a second; and what a frame of settings counts, since each goes through all streams.
TALK, TALK_A_SECOND, SETTINGS = 10_000, 2_000, 100
#: So many more of them with each call, and for each frame of data that is sent: priorities, data in pieces, room for more.
ROOM = 10
#: So many headers of a block that has far too many are as much work as a frame.
A_FRAME = 10
#: Bytes of data that say hardly anything, unless they are the last of their call.
CRUMB = 256
#: Seconds for which a connection stays open after the last word.
LINGER_SECONDS = 0.5
#: Seconds that a client gets to say that it knows of the end.
GOODBYE_SECONDS = 2.0
PING, GOODBYE = b"stillup?", b"goodbye!"
#: What there is to be told of a frame of which h2 tells nothing.
_NOTHING = events.Event()


def _client_leaves(frame: GoAwayFrame) -> tuple[list[Any], list[events.Event]]:
    """For h2 that is the end of everything; but what the client has begun goes on (RFC 9113 §6.8)."""
    told = events.ConnectionTerminated()
    told.error_code = frame.error_code
    return [], [told]


class _Telling(H2Connection):
    """h2 says nothing of frames for what is over, however many they are."""

    def _receive_frame(self, frame: Frame) -> list[events.Event]:
        return super()._receive_frame(frame) or [_NOTHING]


def _server_side(limits: Limits, reader: Reader) -> H2Connection:
    made = _Telling(_CONFIG)
    made.encoder, made.decoder = Writer(), reader
    made._frame_dispatch_table[GoAwayFrame] = _client_leaves  # noqa: SLF001 - there is no other way
    made.remote_settings = PeerSettings(client=True)
    made.local_settings = OurSettings(
        client=False,
        initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: limits.calls,
            SettingCodes.MAX_HEADER_LIST_SIZE: limits.metadata_bytes,
            SettingCodes.INITIAL_WINDOW_SIZE: AHEAD_A_CALL,
        },
    )
    made.decoder.max_header_list_size = HARD * limits.metadata_bytes
    return made


class Connection(asyncio.Protocol):
    """A client, from its first byte to its last."""

    def __init__(
        self,
        handlers: Mapping[bytes, Handler],
        limits: Limits,
        met: Callable[[Connection], None],
        lost: Callable[[Connection], None],
    ) -> None:
        """Handlers by the paths of their calls; `met` and `lost` are told when it begins and when it is closed."""
        self._handlers, self._limits, self._met, self._lost = handlers, limits, met, lost
        self._loop = asyncio.get_running_loop()
        self._reader = Reader()
        self._h2 = _server_side(limits, self._reader)
        self._calls: dict[int, tuple[OpenCall, asyncio.Task[None]]] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._unsent, self._rest = 0, bytearray()
        self._flushing = self._paused = self._leaving = self._closing = False
        self._resets = Bucket(RESETS, RESETS_A_SECOND)
        self._talk = Bucket(TALK, TALK_A_SECOND)
        self._pulse = Pulse(limits, lambda: self._ping(PING), self.abort)
        self._goodbye: asyncio.TimerHandle | None = None
        self.peer: tuple[str, int] | None = None
        self._taken: Mapping[type[events.Event], Callable[[Any], None]] = {
            events.RemoteSettingsChanged: self._sets,
            events.RequestReceived: self._begins,
            events.DataReceived: self._data,
            events.StreamEnded: self._says_no_more,
            events.StreamReset: self._takes_back,
            events.WindowUpdated: self._reads_on,
            events.PingAckReceived: self._answers,
            events.ConnectionTerminated: self._leaves,
        }

    # -- asyncio's side

    def connection_made(self, transport: Any) -> None:
        """Say hello, and see that the client does."""
        self._transport: asyncio.Transport = transport
        name = transport.get_extra_info("peername")
        self.peer = (name[0].partition("%")[0], name[1]) if isinstance(name, tuple) else None
        secured = transport.get_extra_info("ssl_object")
        if secured is not None and secured.selected_alpn_protocol() != "h2":
            self._closing = True  # what it has sent already is not read
            transport.close()
            return
        self._pulse.begin()
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(AHEAD - DEFAULT_AHEAD)
        self._flush()
        self._met(self)

    def data_received(self, data: bytes) -> None:
        """Take what came, of much a piece in each turn of the loop: uvloop would read on as long as there is something."""
        if self._closing:
            return
        if not self._rest and len(data) <= MOUTHFUL:
            self._take(data)
            return
        self._rest += data
        if len(self._rest) == len(data):
            self._transport.pause_reading()
            self._take_some()

    def _take_some(self) -> None:
        if self._rest:
            piece = bytes(self._rest[:MOUTHFUL])
            del self._rest[:MOUTHFUL]
            self._take(piece)
        if self._closing:
            self._rest.clear()
        if self._rest:
            self._loop.call_soon(self._take_some)
        elif not (self._paused or self._transport.is_closing()):
            self._transport.resume_reading()

    def _take(self, data: bytes) -> None:
        """Bytes that make no frame yet are no sign of life: whoever drips is given up as who is silent."""
        try:
            told = self._h2.receive_data(data)
        except ProtocolError as fault:
            self._give_up(fault)
            return
        if told:
            self._pulse.heard()
        elif len(self._h2.incoming_buffer._data) > LONGEST:  # noqa: SLF001 - h2 looks when it has all of it
            self._close(ErrorCodes.FRAME_SIZE_ERROR)
            return
        if self._reader.many:
            self._weigh_headers()
        for event in told:
            if self._closing:
                return  # what else came is nobody's any more
            self._taken.get(type(event), self._says_nothing)(event)
        self._flush_soon()

    def _weigh_headers(self) -> None:
        many, self._reader.many = self._reader.many, 0
        self._says_nothing(None, many // A_FRAME)

    def connection_lost(self, exc: Exception | None) -> None:
        """End whatever is done for this client."""
        if not self._pulse.begun:
            return  # TLS came to nothing
        self._pulse.end()
        self._rest.clear()
        if self._goodbye is not None:
            self._goodbye.cancel()
        self._lost(self)
        for call, task in self._calls.values():
            call.gone()
            task.cancel()
        self._wake()

    def pause_writing(self) -> None:
        """The client does not read, so it is not read either: what it asks for would have to be kept."""
        self._paused = True
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self._paused = False
        if not (self._rest or self._transport.is_closing()):
            self._transport.resume_reading()
        self._wake()

    # -- what the client says

    def _says_nothing(self, _: events.Event | None, tokens: int = 1) -> None:
        if not self._talk.take(self._pulse.heard_at, tokens):
            self._close(ErrorCodes.ENHANCE_YOUR_CALM)

    def _sets(self, event: events.RemoteSettingsChanged) -> None:
        self._says_nothing(event, SETTINGS)
        self._pulse.greeted()
        self._wake()

    def _begins(self, event: events.RequestReceived) -> None:
        headers: Headers = event.headers
        self._talk.put(ROOM)
        if self._leaving or len(self._calls) >= WITH_TAKEN_BACK * self._limits.calls:
            self._refuse(event.stream_id, ErrorCodes.REFUSED_STREAM)
            return
        if not well_formed(headers):
            self._refuse(event.stream_id, ErrorCodes.PROTOCOL_ERROR)
            return
        call = OpenCall(self, event.stream_id, headers, self._limits)
        task = self._loop.create_task(self._carry(call))
        self._calls[event.stream_id] = call, task
        # Not by the task itself: one that is cancelled before its first step takes none.
        task.add_done_callback(lambda _: self._is_done(call))

    def _refuse(self, stream: int, code: ErrorCodes) -> None:
        self._reset(stream, code)
        self._count_reset()

    def _is_done(self, call: OpenCall) -> None:
        call.end(Status.UNAVAILABLE, "This process stops")
        if call.answered:
            self._resets.put()
        del self._calls[call.stream]
        self._close_if_done()

    def _data(self, event: events.DataReceived) -> None:
        if event.flow_controlled_length:
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        if len(event.data) < CRUMB and event.stream_ended is None:
            self._says_nothing(event)
        if found := self._calls.get(event.stream_id):
            call = found[0]
            call.came(event.data)
            if call.unread > AHEAD_A_CALL and self._unread() > self._limits.unread_bytes:
                call.refuse("Too much is on its way at once")

    def _unread(self) -> int:
        """Bytes that calls keep until they make a message."""
        return sum(call.unread for call, _ in self._calls.values())

    def _says_no_more(self, event: events.StreamEnded) -> None:
        if found := self._calls.get(event.stream_id):
            found[0].no_more()

    def _takes_back(self, event: events.StreamReset) -> None:
        if found := self._calls.get(event.stream_id):
            call, task = found
            # Those that h2 resets for a fault of the client's count too: they free the place of a call all the same.
            if not call.answered:
                self._count_reset()
            call.gone()
            task.cancel()

    def _count_reset(self) -> None:
        if not self._resets.take(self._pulse.heard_at):
            self._close(ErrorCodes.ENHANCE_YOUR_CALM)

    def _reads_on(self, event: events.WindowUpdated) -> None:
        self._says_nothing(event)
        self._wake()

    def _answers(self, event: events.PingAckReceived) -> None:
        if event.ping_data == GOODBYE:
            self._begin_nothing()

    def _leaves(self, event: events.ConnectionTerminated) -> None:
        if event.error_code:
            self._transport.close()
        else:
            self._begin_nothing()

    # -- a call

    async def _carry(self, call: OpenCall) -> None:
        """Have a call answered, and ended whatever happens."""
        try:
            await self._answer(call)
            call.end()
        except Ended:
            pass
        except Exception:
            logger.exception("a call failed")
            call.end(Status.INTERNAL, "Internal error")

    async def _answer(self, call: OpenCall) -> None:
        headers = call.headers
        if refused := self._refusal(headers):
            self.send_headers(call.stream, [(b":status", refused)], end=True)
            self.refuse_rest(call.stream)
            call.gone()
            return
        handler = self._handlers.get(headers[b":path"])
        try:
            seconds = timeout(headers[b"grpc-timeout"]) if b"grpc-timeout" in headers else None
        except ValueError as fault:
            call.end(Status.INVALID_ARGUMENT, str(fault))
            return
        if call.size > self._limits.metadata_bytes:
            call.end(Status.RESOURCE_EXHAUSTED, "The metadata are too large")
        elif handler is None:
            call.end(Status.UNIMPLEMENTED, "There is no such rpc")
        elif seconds is None:
            await handler(call)
        else:
            await _in_time(handler, call, seconds)

    def _refusal(self, headers: Mapping[bytes, bytes]) -> bytes:
        """The HTTP status for what is no call at all."""
        if headers.get(b":method") != b"POST":
            return b"405"
        return b"" if of_grpc(headers.get(b"content-type", b"")) else b"415"

    # -- what is said to it

    def send_headers(self, stream: int, headers: Headers, *, end: bool = False) -> None:
        """Send headers or trailers; to a client that is gone, nothing."""
        with contextlib.suppress(ProtocolError):
            self._h2.send_headers(stream, headers, end_stream=end)
        self._flush_soon()

    def drop(self, stream: int) -> None:
        """Stop what is done for a call."""
        if found := self._calls.get(stream):
            found[1].cancel()

    def refuse_rest(self, stream: int) -> None:
        """The call is ended, whatever the client has yet to say."""
        self._reset(stream, ErrorCodes.NO_ERROR)

    def _reset(self, stream: int, code: ErrorCodes) -> None:
        with contextlib.suppress(ProtocolError):  # the client was quicker
            self._h2.reset_stream(stream, code)

    async def send(self, call: OpenCall, data: bytes) -> None:
        """Send all of it, as the client makes room for it; to one that is gone, nothing."""
        with contextlib.suppress(ProtocolError):
            await self._send(call, data)

    async def _send(self, call: OpenCall, data: bytes) -> None:
        at = 0
        while at < len(data) and not call.ended:
            room = self._room(call.stream)
            if room > 0:
                self._h2.send_data(call.stream, data[at : at + room])
                self._talk.put(ROOM)
                at += room
                self._unsent += room
                (self._flush if self._unsent >= FLUSH else self._flush_soon)()
            else:
                await self._changed()

    def _room(self, stream: int) -> int:
        """Bytes that may be sent at once. ProtocolError when nothing may be sent there any more."""
        if self._paused:
            return 0
        window = self._h2.local_flow_control_window(stream)
        return min(window, self._h2.max_outbound_frame_size)

    async def _changed(self) -> None:
        changed = self._loop.create_future()
        self._waiting.add(changed)
        try:
            await changed
        finally:
            self._waiting.discard(changed)

    def _wake(self) -> None:
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing, self._unsent = False, 0
        data = b"" if self._closing else self._h2.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)

    # -- its end

    def _ping(self, about: bytes) -> None:
        with contextlib.suppress(ProtocolError):  # it is being closed
            self._h2.ping(about)
        self._flush()

    def leave(self) -> None:
        """Have the client begin nothing new here, and close when all is done that it had begun (RFC 9113 §6.8)."""
        if self._closing or self._transport.is_closing():
            return
        self._say_goodbye(LAST_STREAM)
        self._ping(GOODBYE)
        seconds = min(GOODBYE_SECONDS, self._limits.answer_seconds)
        self._goodbye = self._loop.call_later(seconds, self._begin_nothing)

    def _say_goodbye(self, last: int) -> None:
        # h2 takes a GOAWAY of its own for the end of everything.
        self._transport.write(GoAwayFrame(0, last_stream_id=last).serialize())

    def _begin_nothing(self) -> None:
        """What it has begun by now is all that is done for it."""
        if self._leaving or self._closing:
            return
        self._leaving = True
        if self._calls:
            self._say_goodbye(self._h2.highest_inbound_stream_id)
        self._close_if_done()

    def cut_off(self) -> None:
        """End the calls that are left, and the connection."""
        self._leaving = True
        for _, task in self._calls.values():
            task.cancel()
        self._close_if_done()

    def turn_away(self) -> None:
        """There is no place for it, not even for waiting until it has read so."""
        self._close(ErrorCodes.ENHANCE_YOUR_CALM)
        self._transport.close()

    def abort(self) -> None:
        """Close it with whatever the client has not read."""
        self._transport.abort()

    def _close_if_done(self) -> None:
        if self._leaving and not self._calls:
            self._close(ErrorCodes.NO_ERROR)

    def _close(self, code: ErrorCodes) -> None:
        with contextlib.suppress(ProtocolError):
            self._h2.close_connection(code)
        self._hang_up()

    def _give_up(self, fault: ProtocolError) -> None:
        """What came is not HTTP/2; h2 has written why."""
        logger.debug("a connection is given up: %s", fault)
        self._hang_up()

    def _hang_up(self) -> None:
        """Close when the client has had a moment to read; closing on what it still sends would be a reset for it."""
        if self._closing:
            return
        self._flush()
        self._closing = True
        if self._transport.can_write_eof() and not self._transport.is_closing():
            with contextlib.suppress(OSError):  # it is gone
                self._transport.write_eof()
        self._loop.call_later(LINGER_SECONDS, self._transport.close)


async def _in_time(handler: Handler, call: OpenCall, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds) as deadline:
            await handler(call)
    except TimeoutError:
        if not deadline.expired():
            raise
        call.end(Status.DEADLINE_EXCEEDED, "The deadline came first")
