"""A call of grpclib in the form that rpcs use (`a2a_grpc/binding/call.py`).

It adds limits that grpclib lacks: on the size of a message, and on the time to receive it; on the answers that clients
do not read, and on the time for which they do not.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from grpclib.const import Status
from grpclib.protocol import Connection
from grpclib.server import Stream
from h2.errors import ErrorCodes
from h2.exceptions import StreamClosedError

from a2a_grpc.binding.call import CallEnded, Details, Handler, Metadata
from a2a_grpc.server.inbox import Inbox
from a2a_tasks.bindings.unread import PIECE, count_unread, is_too_slow, patience
from a2a_tasks.conf import conf

__all__ = ["LAST_WORD_SECONDS", "Calls", "OpenCall"]

#: Seconds that calls of health and reflection get to send their last message.
LAST_WORD_SECONDS = 0.5
#: The end of calls that the drain does not wait for.
STOPS = Status.UNAVAILABLE, "This process stops"
#: A message begins with a flag and its length.
PREFIX = 5


class Calls:
    """The open calls of a server."""

    def __init__(self) -> None:
        self.draining = False
        #: Calls whose handlers wait for a message of their client.
        self._reading: set[asyncio.Task[Any]] = set()
        #: Calls of health and reflection.
        self._looking: set[asyncio.Task[Any]] = set()
        #: Calls that the server itself has ended.
        self._stopped: set[asyncio.Task[Any]] = set()

    def serve(self, handler: Handler, *, is_watch: bool = False) -> Any:
        """Return the handler in the form that grpclib calls. The drain does not wait for a watch, even of a slow client."""

        async def answer(stream: Stream[bytes, bytes]) -> None:
            call, task = OpenCall(stream, self), asyncio.current_task()
            assert task is not None  # noqa: S101 - a coroutine is always in one
            if is_watch:
                self._looking.add(task)
                task.add_done_callback(self._looking.discard)
            try:
                await handler(call)
            except CallEnded:
                pass
            except asyncio.CancelledError:
                if task not in self._stopped or task.uncancel():
                    raise
                call.end(*STOPS)
            await call.close()

        return answer

    def drain(self) -> None:
        """End the calls that wait for their clients, and soon those of health and reflection; others go on."""
        self.draining = True
        for task in self._reading:
            task.cancel()
        for times in (1, 2):  # the second time for clients that do not take their status
            asyncio.get_running_loop().call_later(times * LAST_WORD_SECONDS, self._look_away)

    def _look_away(self) -> None:
        self.stop(self._looking)

    def stop(self, calls: Collection[asyncio.Task[Any]]) -> None:
        """End these calls with UNAVAILABLE; those that were stopped before, without a status."""
        for task in list(calls):
            self._stopped.add(task)
            task.add_done_callback(self._stopped.discard)
            task.cancel()

    async def await_client(self, reading: Any) -> Any:
        """Await a read, until the drain. Raises CallEnded then."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine is always in one
        self._reading.add(task)
        try:
            return await reading
        except asyncio.CancelledError:
            if not self.draining or task.uncancel():
                raise
            raise CallEnded from None
        finally:
            self._reading.discard(task)


class OpenCall:
    """The `GrpcCall` of one stream."""

    def __init__(self, stream: Stream[bytes, bytes], calls: Calls) -> None:
        self._stream, self._calls = stream, calls
        #: The bytes below gRPC's messages. grpclib reads messages without a limit, and writes each separately.
        self._bytes = stream._stream  # noqa: SLF001
        self._inbox = cast("Inbox", self._bytes.buffer)
        self._first: Metadata | None = None
        self._last: tuple[Status, str, Metadata, Details] | None = None
        self._begun = False

    @property
    def metadata(self) -> Sequence[tuple[bytes, bytes]]:
        """The client's metadata, as sent, without gRPC's own headers."""
        pairs = self._stream.metadata.items() if self._stream.metadata else ()
        return [(name.encode("latin-1"), _encode_value(value)) for name, value in pairs]

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of the peer of the connection."""
        address = self._stream.peer.addr()
        return (address[0], address[1]) if address else None

    async def read(self) -> bytes | None:
        """Return the client's next message; None = there is none. Raises CallEnded."""
        if self._calls.draining:
            self.end(*STOPS)
            raise CallEnded
        try:
            found: bytes | None = await self._calls.await_client(self._next())
        except CallEnded:
            self.end(*STOPS)
            raise
        except TimeoutError:
            self.end(Status.DEADLINE_EXCEEDED, "The message did not come in time")
        else:
            return found
        raise CallEnded

    async def _next(self) -> bytes | None:
        seconds = float(conf.REQUEST_SECONDS) or None
        async with asyncio.timeout(seconds) as patience:
            prefix = await self._receive(PREFIX)
            if not prefix:
                return None
            size = int.from_bytes(prefix[1:])
            if size > int(conf.MAX_BODY_BYTES):
                self.end(
                    Status.RESOURCE_EXHAUSTED,
                    f"The message is longer than {conf.MAX_BODY_BYTES} bytes",
                )
                raise CallEnded
            if prefix[0]:
                self.end(
                    Status.UNIMPLEMENTED,
                    "Compressed messages are not supported",
                    [("grpc-accept-encoding", "identity")],
                )
                raise CallEnded
            if seconds and (until := patience.when()) is not None:
                patience.reschedule(until + size / int(conf.REQUEST_BYTES_PER_SECOND))
            return await self._receive(size, within=True)

    async def _receive(self, size: int, *, within: bool = False) -> bytes:
        """Return this many bytes; none at the end, unless it is within a message."""
        found = await self._inbox.read(size)
        if len(found) == size or not (found or within or self._inbox.overflowed):
            return found
        if self._inbox.overflowed:
            self.end(Status.RESOURCE_EXHAUSTED, "Too many messages are unfinished")
        else:
            self.end(Status.INVALID_ARGUMENT, "The message is not complete")
        raise CallEnded

    def begin(self, metadata: Metadata = ()) -> None:
        """Set the initial metadata, which are sent with the first write."""
        if self._first is None:
            self._first = metadata

    async def write(self, *messages: bytes) -> None:
        """Send messages together; after the end they are dropped. Waits while the client does not read.

        Raises CallEnded when the client reads too slowly, or too much waits for clients.
        """
        if self._last is not None:
            return
        with self._count(sum(map(len, messages))):
            async with self._write_in_time():
                await self._begin()
                for piece in _cut(messages):
                    await self._bytes.send_data(piece)
                    # grpclib gives other tasks no turn while the socket accepts everything
                    await asyncio.sleep(0)

    async def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            await self._stream.send_initial_metadata(metadata=_encode_metadata(self._first or ()))

    @contextlib.contextmanager
    def _count(self, size: int) -> Iterator[None]:
        """Count bytes as unread until the block ends. Raises CallEnded if they are too many."""
        quota = self._inbox.unread_answers
        if not quota.take(size, 0):
            self.end(Status.RESOURCE_EXHAUSTED, "Too many answers wait for their clients")
            raise CallEnded
        try:
            yield
        finally:
            quota.give_back(size)

    @contextlib.asynccontextmanager
    async def _write_in_time(self) -> AsyncIterator[None]:
        """End the call if its client reads too slowly, or has left. Raises CallEnded."""
        try:
            async with _hurry(self._bytes.connection, self._bytes._transport):  # noqa: SLF001
                yield
        except TimeoutError:
            self._cut_off()
            if self._bytes.closable:
                self._bytes.reset_nowait(ErrorCodes.ENHANCE_YOUR_CALM)
            raise CallEnded from None
        except StreamClosedError:  # the client has left
            self._cut_off()
            raise CallEnded from None

    def _cut_off(self) -> None:
        """Send nothing more, not even a status."""
        self.end(Status.CANCELLED)
        self._stream._cancel_done = True  # noqa: SLF001 - grpclib would send a status

    def end(
        self,
        status: Status = Status.OK,
        message: str = "",
        metadata: Metadata = (),
        details: Details = None,
    ) -> None:
        """Set the final status; only the first call counts. The client gets it when the handler returns."""
        if self._last is None:
            self._last = (status, message, metadata, details)

    async def close(self) -> None:
        """Send the final status to the client."""
        if self._stream._cancel_done:  # noqa: SLF001 - see _cut_off
            return
        status, message, metadata, details = self._last or (Status.OK, "", (), None)
        with contextlib.suppress(CallEnded):
            async with self._write_in_time():
                if self._first is not None:
                    await self._begin()
                await self._stream.send_trailing_metadata(
                    status=status,
                    status_message=message or None,
                    status_details=details,
                    metadata=_encode_metadata(metadata),
                )


@contextlib.asynccontextmanager
async def _hurry(connection: Connection, transport: asyncio.WriteTransport) -> AsyncIterator[None]:
    """Raise TimeoutError in the block if the connection's client reads too slowly.

    It counts what the client reads of all calls: a small answer may wait behind large ones.
    """
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    async with asyncio.timeout(None) as end:

        def count_read() -> int:
            return connection.data_sent - count_unread(transport)

        def look(before: int) -> None:
            if is_too_slow(count_read() - before):
                end.reschedule(loop.time())
            else:
                plan()

        def plan() -> None:
            timers[:] = [loop.call_later(patience(), look, count_read())]

        if patience():
            plan()
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()


def _cut(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Yield messages with their prefixes: small ones together, large ones in pieces."""
    piece = bytearray()
    for message in messages:
        piece += b"\0" + len(message).to_bytes(4)
        for at in range(0, len(message), PIECE):
            piece += message[at : at + PIECE]
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece.clear()
    if piece:
        yield bytes(piece)


def _encode_value(value: str | bytes) -> bytes:
    return base64.b64encode(value) if isinstance(value, bytes) else value.encode("latin-1")


def _encode_metadata(metadata: Metadata) -> list[tuple[str, str | bytes]]:
    """Return metadata for grpclib. Text values may contain only printable ASCII; other characters are left out."""
    return [
        (key.lower(), value if key.endswith("-bin") else _printable(value))
        for key, value in metadata
        if not key.startswith("grpc-")
    ]


def _printable(value: str | bytes) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return "".join(sign for sign in text if " " <= sign <= "~").strip()
