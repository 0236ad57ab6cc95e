"""The errors of calls without an answer."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["AddressRefused", "FaultKind", "NameNotResolved", "Unanswered"]


class FaultKind(StrEnum):
    """The reason for which a call failed."""

    #: The guard refused the URL.
    ADDRESS = "address"
    #: The name has no address, or was not resolved in time.
    DNS = "dns"
    #: The connection failed, directly or through the proxy.
    CONNECT = "connect"
    #: TLS failed, or the certificate is not the server's.
    TLS = "tls"
    #: No answer in time.
    TIMEOUT = "timeout"
    #: The connection was closed before the first byte of an answer.
    CLOSED = "closed"
    #: The answer is not valid HTTP/1.1.
    PROTOCOL = "protocol"
    #: The head of the answer is too long.
    TOO_LARGE = "too_large"
    #: The request cannot be expressed in HTTP.
    REQUEST = "request"
    #: The answer has an error status.
    STATUS = "status"
    #: The fault is this host's own: its proxy or resolver is away, it has no sockets left, or it has a bug.
    HOST = "host"


class Unanswered(Exception):
    """A call without an answer. `detail` is for the operator: it may contain the addresses of a name."""

    def __init__(self, kind: FaultKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class AddressRefused(Unanswered):
    """A URL that the guard refuses. `reason` names the fault and is public: "must ..."."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(FaultKind.ADDRESS, f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class NameNotResolved(Unanswered):
    """A host name without usable addresses now; with the kind HOST, no resolver could be asked."""

    def __init__(self, detail: str, kind: FaultKind = FaultKind.DNS) -> None:
        super().__init__(kind, detail)
