"""What a server of gRPC gives to the rpcs, and what they tell it: nothing here knows a library for gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import Protocol

__all__ = ["Call", "Ended", "Handler", "Metadata", "Status"]

#: Keys and values; those of keys that end with `-bin` are bytes, others ASCII.
Metadata = Sequence[tuple[str, str | bytes]]


class Status(IntEnum):
    """How a call ended (gRPC, doc/statuscodes.md)."""

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


class Ended(Exception):
    """The call was ended while its handler waited for a message; nobody is left to hear more."""


class Call(Protocol):
    """One call of a client. Its handler is cancelled when the client leaves or its deadline comes."""

    @property
    def metadata(self) -> Sequence[tuple[bytes, bytes]]:
        """What the client sent with it, as it was written, without what is gRPC's own."""
        ...

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of whoever holds the connection."""
        ...

    async def read(self) -> bytes | None:
        """The client's next message; None = there is none.

        Raises Ended when it cannot be taken, or the first one does not come in time: the client was told so.
        """
        ...

    def begin(self, metadata: Metadata = ()) -> None:
        """Send the initial metadata. The first write does it, too, if it was not done."""
        ...

    async def write(self, *messages: bytes) -> None:
        """Send messages; those given together leave together. Waits while the client does not read."""
        ...

    def end(self, status: Status = Status.OK, message: str = "", metadata: Metadata = ()) -> None:
        """Tell how it ended, with the trailing metadata. Nothing more can be said; what was told first, holds."""
        ...


#: What answers a call. It ends with `OK` if the handler returns without a word.
Handler = Callable[[Call], Awaitable[None]]
