"""Server-sent events: the items of a stream in a binding's envelope, each with the number of its event."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from a2a_tasks.bindings.consumer import LastingHttpConsumer
from a2a_tasks.bindings.http import NOSNIFF, Headers, Request, Send
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import ON, failpoint
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.errors import A2AError, InternalError
from a2a_tasks.protocol.sse import FAREWELL, KEEP_ALIVE, error_frame, frame, write_gap
from a2a_tasks.streaming.stream import EventStream

__all__ = ["STREAM_HEADERS", "Envelope", "send_stream"]

logger = logging.getLogger(__name__)
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


class EventStreamConsumer(LastingHttpConsumer):
    """The stream of one client."""

    stream: EventStream
    dialect: Dialect
    envelope: Envelope
    extra_headers: Headers

    async def begin(self) -> None:
        headers = [*STREAM_HEADERS, NOSNIFF, *self.extra_headers, *_gap(self.stream)]
        await self.send_headers(status=200, headers=headers)
        async with self._report_errors():
            await self._send_first()

    async def go_on(self) -> None:
        async with self._report_errors():
            await self._send_rest()
        await self.send_body(b"")

    async def _send_rest(self) -> None:
        async for events in self.stream.batches(float(conf.KEEPALIVE_SECONDS)):
            if events is None:
                await self._send_first()
                continue
            frames = [self._frame(e.number, self.stream.encode(self.dialect, e)) for e in events]
            await self._send_frames(b"".join(frames))

    @contextlib.asynccontextmanager
    async def _report_errors(self) -> AsyncIterator[None]:
        """Send an error inside the stream, which has begun already."""
        try:
            yield
        except Exception as fault:  # noqa: BLE001 - after any failure the client is informed
            frame = error_frame(self._encode_fault(fault), named=self.dialect.features.error_event)
            await self.send_body(frame, more_body=True)
            await self.stream.close()  # nothing follows

    async def farewell(self) -> None:
        await self.send_body(FAREWELL)

    async def _send_first(self) -> None:
        """Send the first bytes at once, also to a client that resumes and has no new events yet."""
        items = self.stream.encode_start(self.dialect)
        frames = [self._frame(self.stream.number, item) for item in items]
        if self.stream.removed:
            frames.insert(0, write_gap(self.stream.removed))
        await self.send_body(b"".join(frames) or KEEP_ALIVE, more_body=True)
        failpoint("stream.began")

    async def _send_frames(self, frames: bytes) -> None:
        if ON and frames:
            middle = len(frames) // 2
            await self.send_body(frames[:middle], more_body=True)
            failpoint("stream.mid_frame")
            frames = frames[middle:]
        await self.send_body(frames or KEEP_ALIVE, more_body=True)

    def _frame(self, number: int, item: bytes) -> bytes:
        data = self.envelope.opening + item + self.envelope.closing
        return frame(number, data, self.stream.subject.mark)

    def _encode_fault(self, fault: Exception) -> bytes:
        if not isinstance(fault, A2AError):
            logger.error("a stream broke", exc_info=fault)
            fault = InternalError()
        return self.envelope.error(fault)

    async def disconnect(self) -> None:
        await self.stream.close()


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
