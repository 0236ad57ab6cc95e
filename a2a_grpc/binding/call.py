"""The interface between a gRPC server and the rpcs: independent of any library for gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import Protocol

__all__ = ["GrpcCall", "CallEnded", "Handler", "Metadata", "GrpcStatus"]

#: Keys and values; values of keys that end with `-bin` are bytes, others ASCII.
Metadata = Sequence[tuple[str, str | bytes]]


class GrpcStatus(IntEnum):
    """The status of a call (gRPC, doc/statuscodes.md)."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


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
        self, status: GrpcStatus = GrpcStatus.OK, message: str = "", metadata: Metadata = ()
    ) -> None:
        """End the call with a status and the trailing metadata. Only the first call of `end` counts."""
        ...


#: The function that answers a call. The call ends with `OK` if the handler returns without ending it.
Handler = Callable[[GrpcCall], Awaitable[None]]
