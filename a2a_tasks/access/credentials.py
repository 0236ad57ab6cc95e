"""The credentials of a request, and the choice of the one that counts."""

from __future__ import annotations

import functools
import ipaddress
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, list_accepted
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf, of_settings
from a2a_tasks.outbound.networks import IPNetwork
from a2a_tasks.rates import Rate

__all__ = [
    "PEER",
    "Credentials",
    "Identity",
    "ShownCredential",
    "certificate_of",
    "networks",
    "read_credential",
]

#: Key of an ASGI scope for the peer of the connection, if `client` is the address that a proxy forwards.
PEER = "a2a.peer"
#: Schemes of the header Authorization, in lower case (RFC 9110 §11.4).
AUTHORIZATION = {"bearer": BEARER, "basic": BASIC}
#: Longest credential in characters: the longest are tokens with many groups.
MAX_LENGTH = 16 * 1024


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and the limits of the credentials that identify it."""

    caller: Caller
    scheme: str
    #: End of the credentials, in seconds since 1970.
    until: float = math.inf
    #: Audiences for which the credentials were issued; None = any agent of this host.
    audiences: frozenset[str] | None = None
    #: Thumbprint of the certificate that the credentials are bound to (RFC 8705 §3); empty = any connection.
    bound: str = ""
    #: Rate limit of this caller, if its credentials have one.
    rate: Rate | None = None


@dataclass(slots=True)
class Credentials:
    """The parts of a request that identify its sender; every binding makes one per request, gRPC from its metadata."""

    #: Names in lower case.
    headers: Mapping[str, str] = field(repr=False)
    #: Address of the peer of the connection, which may be a proxy; empty = unknown.
    peer: str = ""
    #: Address of the client: the one that a trusted proxy forwards, else the peer; empty = unknown.
    address: str = ""
    #: Headers that the request has more than once.
    repeated: Collection[str] = ()
    found: list[ShownCredential | None] = field(default_factory=list, init=False, repr=False)
    #: The verified identity: a request is verified once.
    identity: Identity | None = field(default=None, init=False, repr=False, compare=False)


class ShownCredential(NamedTuple):
    """A credential; `scheme` is empty if no enabled scheme can read it."""

    scheme: str
    text: str
    #: Address of the client, for passwords only: guessing is locked out by address.
    address: str = ""


@dataclass(frozen=True, slots=True)
class _Doors:
    """The headers with credentials, and the proxies whose certificate header is trusted."""

    key: str
    certificate: str
    peers: tuple[IPNetwork, ...]


def networks(text: str) -> tuple[IPNetwork, ...]:
    """Parse addresses and networks, separated by commas. Raises ValueError that names a wrong one."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


@of_settings
@functools.cache
def _doors() -> _Doors:
    key = str(conf.API_KEY_HEADER).lower() if conf.API_KEYS else ""
    return _Doors(key, str(conf.MTLS_HEADER).lower(), networks(conf.MTLS_PEERS))


def read_credential(credentials: Credentials) -> ShownCredential | None:
    """Return the credential of a request, which is read once; None = it has none.

    An API key or Authorization takes precedence over the certificate of the connection. An API key together with
    Authorization is refused: the choice between them would be a guess.
    """
    credentials.found = credentials.found or [_read(credentials)]
    return credentials.found[0]


def _read(credentials: Credentials) -> ShownCredential | None:
    doors = _doors()
    key = credentials.headers.get(doors.key) if doors.key else None
    authorization = credentials.headers.get("authorization")
    if key is not None:
        return ShownCredential("" if authorization is not None else API_KEY, key.strip())
    if authorization is not None:
        word, _, rest = authorization.strip().partition(" ")
        name = AUTHORIZATION.get(word.lower(), "")
        text = rest.strip()
        scheme = name if name in list_accepted(None) and len(text) <= MAX_LENGTH else ""
        return ShownCredential(scheme, text, credentials.address if scheme == BASIC else "")
    certificate = certificate_of(credentials) if doors.peers else None
    return None if certificate is None else ShownCredential(MUTUAL_TLS, certificate)


def certificate_of(credentials: Credentials) -> str | None:
    """Return the certificate that a listed proxy forwards. The header of any other peer is unproven and ignored.

    A repeated header is unreadable: the proxy did not replace the header of its client.
    """
    doors = _doors()
    text = credentials.headers.get(doors.certificate) if doors.peers else None
    if not text or not _is_listed(credentials.peer, doors.peers):
        return None
    return "" if doors.certificate in credentials.repeated else text


def _is_listed(peer: str, peers: tuple[IPNetwork, ...]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:  # a Unix domain socket, or nothing
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in peers)
