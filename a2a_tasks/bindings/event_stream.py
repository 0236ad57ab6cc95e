"""Server-sent events: the items of a stream in a binding's envelope, each with the number of its event."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from channels.generic.http import AsyncHttpConsumer

from a2a_tasks import process_lifetime
from a2a_tasks.bindings.http import NOSNIFF, Headers, Receive, Request, Scope, Send
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import ON, failpoint
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.errors import A2AError, InternalError
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.protocol.sse import FAREWELL, KEEP_ALIVE, error_frame, frame, write_gap
from a2a_tasks.streaming.stream import EventStream

__all__ = ["STREAM_HEADERS", "Envelope", "send_stream"]

logger = logging.getLogger(__name__)
#: Bytes after which the next events are read only when the client has read these: else both would wait for it.
MUCH = 64 * 1024
STREAM_HEADERS: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The text that a binding puts around the JSON of an item, and its encoding of errors."""

    opening: bytes
    closing: bytes
    error: Callable[[A2AError], bytes]


def _gap(stream: EventStream) -> Headers:
    """Return the header with the number before which events were removed, if the client asked for such events."""
    return [(b"a2a-events-removed-before", b"%d" % stream.removed)] if stream.removed else []


class EventStreamConsumer(AsyncHttpConsumer):  # type: ignore[misc]
    """The stream of one client; it notices at once when the client disconnects.

    Channels' own AsyncHttpConsumer awaits `handle` where it should listen, so it notices a disconnect only after the
    response, and every message costs a switch to a thread for database connections. Here the response and a listener
    are two tasks; the first to end ends the other. No thread and no database connection is held meanwhile.
    """

    stream: EventStream
    dialect: Dialect
    envelope: Envelope
    extra_headers: Headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.base_send = scope, send
        self._begun = self._told = False
        loop = asyncio.get_running_loop()
        response = asyncio.create_task(self._respond())
        departure = asyncio.create_task(self._departure(receive))
        forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(self._tell, response))
        try:
            await asyncio.wait({response, departure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            forget()
            await self._end(response, departure)

    def _tell(self, response: asyncio.Task[bool]) -> None:
        """Handle the drain: interrupt a response that has begun; let another one begin first, so that its client gets it."""
        self._told = True
        if self._begun:
            response.cancel()

    async def _respond(self) -> bool:
        """Send the response; return False if the drain began before its rest was sent."""
        await self._begin()
        self._begun = True
        if self._told:
            return False
        await self._go_on()
        return True

    async def _end(self, response: asyncio.Task[bool], departure: asyncio.Task[None]) -> None:
        gone, whole = departure.done(), False
        departure.cancel()
        response.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            whole = await response
        await self.stream.close()
        if self._begun and not whole and not gone:
            # A draining process ends the response properly, so that the client reconnects.
            with contextlib.suppress(Exception):
                await self.send_body(FAREWELL)

    @staticmethod
    async def _departure(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _begin(self) -> None:
        """Send what the client needs for a new try: the headers and the first items."""
        headers = [*STREAM_HEADERS, NOSNIFF, *self.extra_headers, *_gap(self.stream)]
        await self.send_headers(status=200, headers=headers)
        async with self._report_errors():
            await self._send_first()

    async def _go_on(self) -> None:
        """Send the rest, to the end. Cancelled when the client leaves or the process drains."""
        async with self._report_errors():
            async for events in self.stream.batches(float(conf.KEEPALIVE_SECONDS)):
                if events is None:
                    await self._send_first()
                else:
                    await self._send_frames(self._write(events))
        await self.send_body(b"")

    @contextlib.asynccontextmanager
    async def _report_errors(self) -> AsyncIterator[None]:
        """Send an error inside the stream, which has begun already."""
        try:
            yield
        except Exception as fault:  # noqa: BLE001 - after any failure the client is informed
            frame = error_frame(self._encode_fault(fault), named=self.dialect.features.error_event)
            await self.send_body(frame, more_body=True)
            await self.stream.close()  # nothing follows

    async def _send_first(self) -> None:
        """Send the first bytes at once, also to a client that resumes and has no new events yet."""
        items = self.stream.encode_start(self.dialect)
        frames = [self._frame(self.stream.number, item) for item in items]
        if self.stream.removed:
            frames.insert(0, write_gap(self.stream.removed))
        await self.send_body(b"".join(frames) or KEEP_ALIVE, more_body=True)
        failpoint("stream.began")

    def _write(self, events: Sequence[LogEvent]) -> bytes:
        encode = self.stream.encode
        return b"".join([self._frame(e.number, encode(self.dialect, e)) for e in events])

    async def _send_frames(self, frames: bytes) -> None:
        if ON and frames:
            middle = len(frames) // 2
            await self.send_body(frames[:middle], more_body=True)
            failpoint("stream.mid_frame")
            frames = frames[middle:]
        await self.send_body(frames or KEEP_ALIVE, more_body=True)
        if len(frames) > MUCH:
            await self.send_body(b"", more_body=True)  # waits until the client has read most of it

    def _frame(self, number: int, item: bytes) -> bytes:
        data = self.envelope.opening + item + self.envelope.closing
        return frame(number, data, self.stream.subject.mark)

    def _encode_fault(self, fault: Exception) -> bytes:
        if not isinstance(fault, A2AError):
            logger.error("a stream broke", exc_info=fault)
            fault = InternalError()
        return self.envelope.error(fault)


async def send_stream(
    request: Request,
    send: Send,
    stream: EventStream,
    *,
    dialect: Dialect,
    envelope: Envelope,
    headers: Headers,
) -> None:
    """Send the stream to its end, or until the client leaves; then close it."""
    consumer = EventStreamConsumer()
    consumer.stream, consumer.dialect = stream, dialect
    consumer.envelope, consumer.extra_headers = envelope, headers
    await consumer(request.scope, request.receive, send)
