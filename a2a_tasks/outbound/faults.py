"""Why a call had no answer."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["AddressRefused", "Kind", "NameNotResolved", "Unanswered"]


class Kind(StrEnum):
    """What kept a call from being answered as it should have been."""

    #: The guard did not let it out.
    ADDRESS = "address"
    #: The name has no address, or none was told in time.
    DNS = "dns"
    #: No connection, or the proxy made none.
    CONNECT = "connect"
    #: The other side could not show that it is who it was called as.
    TLS = "tls"
    #: No answer in time.
    TIMEOUT = "timeout"
    #: The connection was closed before a word of an answer.
    CLOSED = "closed"
    #: What came is no HTTP/1.1 answer.
    PROTOCOL = "protocol"
    #: The head of the answer never ended.
    TOO_LARGE = "too_large"
    #: The request cannot be put into HTTP.
    REQUEST = "request"
    #: It was answered, but not with success.
    STATUS = "status"
    #: It is this host's own fault: its proxy or its resolver is away, it has no sockets left, or it has a bug.
    HOST = "host"


class Unanswered(Exception):
    """There is no answer. `detail` is for the operator: it may tell what a name resolved to."""

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class AddressRefused(Unanswered):
    """This URL is not called. `reason` says what is wrong with it, to anybody: "must ..."."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(Kind.ADDRESS, f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class NameNotResolved(Unanswered):
    """The name of the host has no usable addresses now; of the kind HOST, nobody could be asked."""

    def __init__(self, detail: str, kind: Kind = Kind.DNS) -> None:
        super().__init__(kind, detail)
