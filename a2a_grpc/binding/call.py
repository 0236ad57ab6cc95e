"""The interface between a gRPC server and the rpcs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from google.protobuf.message import Message
from grpclib.const import Status

__all__ = ["GrpcCall", "CallEnded", "Details", "Handler", "Metadata"]

#: Keys and values; values of keys that end with `-bin` are bytes, others ASCII.
Metadata = Sequence[tuple[str, str | bytes]]
#: The details of a google.rpc.Status in the trailing metadata; None = there is none.
Details = Sequence[Message] | None


class CallEnded(Exception):
    """The call was ended while its handler waited for its client; the client no longer listens."""


class GrpcCall(Protocol):
    """One call of a client. Its handler is cancelled when the client leaves or its deadline comes."""

    @property
    def metadata(self) -> Sequence[tuple[bytes, bytes]]:
        """The client's metadata, as sent, without gRPC's own headers."""
        ...

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of the peer of the connection."""
        ...

    async def read(self) -> bytes | None:
        """Return the client's next message; None if there is none.

        Raises CallEnded when the message cannot be read, or the first one does not come in time: the client was
        informed.
        """
        ...

    def begin(self, metadata: Metadata = ()) -> None:
        """Send the initial metadata. Otherwise the first write does it."""
        ...

    async def write(self, *messages: bytes) -> None:
        """Send messages; messages given together are sent together. Waits while the client does not read.

        Raises CallEnded when the client reads too slowly, or too many answers wait for their clients.
        """
        ...

    def end(
        self,
        status: Status = Status.OK,
        message: str = "",
        metadata: Metadata = (),
        details: Details = None,
    ) -> None:
        """End the call with a status, the trailing metadata, and details. Only the first call of `end` counts."""
        ...


#: The function that answers a call. The call ends with `OK` if the handler returns without ending it.
Handler = Callable[[GrpcCall], Awaitable[None]]
