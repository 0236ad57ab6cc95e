"""What a client of gRPC may ask of a connection."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_tasks.conf import conf

__all__ = ["Limits"]

#: So many messages of the largest size may be on their way in one connection.
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection; seconds and bytes."""

    #: The largest message, compressed or not.
    message_bytes: int = 4 * 1024 * 1024
    #: Messages of a connection that are on their way, all together.
    unread_bytes: int = AT_ONCE * 4 * 1024 * 1024
    #: What metadata may have: tokens with many groups are the longest.
    metadata_bytes: int = 32 * 1024
    #: Calls open at once.
    calls: int = 100
    #: Silence after which the client is pinged, and how long its answer may take.
    alive_seconds: float = 15.0
    answer_seconds: float = 10.0
    #: How long the first message of a call, or the first word of a client, may take, and bytes that buy a second more; 0 = any time.
    request_seconds: float = 20.0
    request_bytes_per_second: int = 4096

    @property
    def greeting_seconds(self) -> float:
        """How long a client may take to say hello, and its handshake before."""
        return self.request_seconds or self.alive_seconds

    @classmethod
    def of_settings(cls) -> Limits:
        """As the operator wants them."""
        return cls(
            message_bytes=int(conf.MAX_BODY_BYTES),
            unread_bytes=AT_ONCE * int(conf.MAX_BODY_BYTES),
            alive_seconds=float(conf.KEEPALIVE_SECONDS),
            request_seconds=float(conf.REQUEST_SECONDS),
            request_bytes_per_second=int(conf.REQUEST_BYTES_PER_SECOND),
        )
