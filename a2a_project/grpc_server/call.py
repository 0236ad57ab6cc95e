"""One call on a connection: the client's messages in, ours out, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from a2a_project.grpc_server.wire import (
    PREFIX,
    BadMessage,
    Messages,
    TooLarge,
    Unpackable,
    framed,
    told,
    written,
)
from a2a_tasks.bindings.grpc.call import Ended, Metadata, Status

if TYPE_CHECKING:
    from a2a_project.grpc_server.limits import Limits

__all__ = ["Headers", "OpenCall"]

Headers = list[tuple[bytes, bytes]]

#: A header counts as so many bytes more than it has (RFC 9113 §6.5.2).
HEADER = 32
#: Headers that are HTTP's or gRPC's own business.
OWN, OWN_BEGINNINGS = {b"te", b"content-type"}, (b":", b"grpc-")
#: By this clients know how to say it again (grpc/grpc, doc/compression.md).
ACCEPTED = [("grpc-accept-encoding", "identity,deflate,gzip")]
_BEGUN = [(b":status", b"200"), (b"content-type", b"application/grpc")]


class Line(Protocol):
    """What a call needs of its connection."""

    peer: tuple[str, int] | None

    def send_headers(self, stream: int, headers: Headers, *, end: bool = False) -> None:
        """Send headers or trailers."""
        ...

    async def send(self, call: OpenCall, data: bytes) -> None:
        """Send data as the client makes room for them."""
        ...

    def refuse_rest(self, stream: int) -> None:
        """The call is ended, whatever the client has yet to say."""
        ...

    def drop(self, stream: int) -> None:
        """Stop what is done for a call."""
        ...


class OpenCall:
    """A `Call` (bindings/grpc/call.py) of one stream of HTTP/2."""

    def __init__(
        self,
        connection: Line,
        stream: int,
        headers: Sequence[tuple[bytes, bytes]],
        limits: Limits,
    ) -> None:
        """The call of a stream that began with these headers."""
        self.stream = stream
        self.headers = dict(headers)
        #: Bytes of all of them, as the protocol counts.
        self.size = sum(len(name) + len(value) + HEADER for name, value in headers)
        self.metadata = [
            pair
            for pair in headers
            if pair[0] not in OWN and not pair[0].startswith(OWN_BEGINNINGS)
        ]
        self._connection = connection
        self._messages = Messages(limits.message_bytes, self.headers.get(b"grpc-encoding", b""))
        self._limits = limits
        self._patience: asyncio.Timeout | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._first = True
        #: Seconds that what came allows the first message to take beside those it has.
        self._bought = 0.0
        self._half_closed = self._begun = self._left = self.ended = False

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of the other end of the connection."""
        return self._connection.peer

    # -- what the connection tells it

    def came(self, data: bytes) -> None:
        """Bytes of messages; `data` of an ended call are dropped."""
        if not self.ended:
            self._messages.take(data)
            if len(self._messages) > 2 * (self._limits.message_bytes + PREFIX):
                self.refuse("Nobody asked for that many messages")
        bought = len(data) / self._limits.request_bytes_per_second
        self._bought += bought
        if self._patience is not None and (until := self._patience.when()) is not None:
            self._patience.reschedule(until + bought)
        self._tell()

    @property
    def unread(self) -> int:
        """Bytes that are kept, since nobody has read them."""
        return len(self._messages)

    def refuse(self, why: str) -> None:
        """End it since it is too much, and keep nothing of it."""
        self.end(Status.RESOURCE_EXHAUSTED, why)
        self._messages.forget()
        self._connection.drop(self.stream)

    def no_more(self) -> None:
        """The client has said everything."""
        self._half_closed = True
        self._tell()

    def _tell(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    # -- what the handler asks of it

    async def read(self) -> bytes | None:
        """The client's next message; None = there is none. Raises Ended."""
        try:
            first, self._first = self._first, False
            if not first:
                await asyncio.sleep(0)  # whoever sends many at once is not alone in this loop
                return await self._next()
            if self._half_closed and len(self._messages):
                return await self._next()
            seconds = self._limits.request_seconds
            may_take = seconds + self._bought if seconds else None
            async with asyncio.timeout(may_take) as self._patience:
                return await self._next()
        except TimeoutError:
            self.end(Status.DEADLINE_EXCEEDED, "The message did not come in time")
        except TooLarge as fault:
            self.end(Status.RESOURCE_EXHAUSTED, str(fault))
        except Unpackable as fault:
            self.end(Status.UNIMPLEMENTED, str(fault), ACCEPTED)
        except BadMessage as fault:
            self.end(Status.INVALID_ARGUMENT, str(fault))
        finally:
            self._patience = None
        raise Ended

    async def _next(self) -> bytes | None:
        while (message := self._messages.next()) is None:
            if self._half_closed:
                if len(self._messages):
                    raise BadMessage("The message is not complete")
                return None
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        return message

    def begin(self, metadata: Metadata = ()) -> None:
        """Send the initial metadata, once."""
        if not self._begun and not self.ended:
            self._begun = True
            self._connection.send_headers(self.stream, [*_BEGUN, *written(metadata)])

    async def write(self, *messages: bytes) -> None:
        """Send messages together. Waits while the client does not read; after the end they are dropped."""
        self.begin()
        if not self.ended:
            await self._connection.send(self, framed(messages))

    def end(self, status: Status = Status.OK, message: str = "", metadata: Metadata = ()) -> None:
        """Tell how it ended; what was told first, holds."""
        if self.ended:
            return
        self.ended = True
        trailers = [(b"grpc-status", b"%d" % status), *written(metadata)]
        if message:
            trailers.insert(1, (b"grpc-message", told(message)))
        first = [] if self._begun else _BEGUN
        self._connection.send_headers(self.stream, [*first, *trailers], end=True)
        if not self._half_closed:
            self._connection.refuse_rest(self.stream)

    def gone(self) -> None:
        """The client left: there is nobody to tell anything."""
        self._left = self.ended = True

    @property
    def answered(self) -> bool:
        """Was anything said to the client?"""
        return self._begun or (self.ended and not self._left)
