"""What a request brings to show who sends it, and which of it counts."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, accepted
from a2a_tasks.conf import conf
from a2a_tasks.outbound.networks import IPNetwork

__all__ = ["PEER", "Credentials", "Shown", "certificate_of", "networks", "shown"]

#: Where an ASGI scope has the connection's own other end, if `client` is whom a proxy speaks for.
PEER = "a2a.peer"
#: What stands before the credentials in Authorization, in lower case (RFC 9110 §11.4).
AUTHORIZATION = {"bearer": BEARER, "basic": BASIC}
#: More than that is no credential: the longest are tokens with many groups.
LONGEST = 16 * 1024


@dataclass(frozen=True, slots=True)
class Credentials:
    """A request as far as it tells who sends it; every binding can make one, gRPC of its metadata."""

    #: Names in lower case.
    headers: Mapping[str, str] = field(repr=False)
    #: Address of whoever holds the other end of the connection, no matter whom it speaks for; empty = unknown.
    peer: str = ""
    #: Address it is from: of whom a trusted proxy speaks for, else the same; empty = unknown.
    address: str = ""
    #: Headers that came more than once.
    repeated: Collection[str] = ()


class Shown(NamedTuple):
    """A credential; `scheme` is empty for what no scheme here can read."""

    scheme: str
    text: str
    #: Where it was shown, if that makes a difference: who guesses at passwords is told to wait by address.
    address: str = ""


@dataclass(frozen=True, slots=True)
class _Doors:
    """Where credentials are looked for."""

    key: str
    certificate: str
    peers: tuple[IPNetwork, ...]


def networks(text: str) -> tuple[IPNetwork, ...]:
    """Addresses and networks, separated by commas. Raises ValueError that names a wrong one."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


@functools.cache
def _doors() -> _Doors:
    key = str(conf.API_KEY_HEADER).lower() if conf.API_KEYS else ""
    return _Doors(key, str(conf.MTLS_HEADER).lower(), networks(conf.MTLS_PEERS))


@receiver(setting_changed)
def _forget(**_: Any) -> None:
    _doors.cache_clear()


def shown(credentials: Credentials) -> Shown | None:
    """The credential of a request; None = it has none.

    An API key or Authorization counts before the certificate of the connection. Both together are no credential:
    which one the client means would be a guess.
    """
    doors = _doors()
    key = credentials.headers.get(doors.key) if doors.key else None
    authorization = credentials.headers.get("authorization")
    if key is not None:
        return Shown("" if authorization is not None else API_KEY, key.strip())
    if authorization is not None:
        word, _, rest = authorization.strip().partition(" ")
        name = AUTHORIZATION.get(word.lower(), "")
        text = rest.strip()
        scheme = name if name in accepted(None) and len(text) <= LONGEST else ""
        return Shown(scheme, text, credentials.address if scheme == BASIC else "")
    certificate = certificate_of(credentials)
    return None if certificate is None else Shown(MUTUAL_TLS, certificate)


def certificate_of(credentials: Credentials) -> str | None:
    """The certificate as a listed proxy sent it on. Anybody else's header is no more than a claim, and not looked at.

    One that came twice is unreadable: the proxy did not replace what its client had written.
    """
    doors = _doors()
    text = credentials.headers.get(doors.certificate) if doors.peers else None
    if not text or not _listed(credentials.peer, doors.peers):
        return None
    return "" if doors.certificate in credentials.repeated else text


def _listed(peer: str, peers: tuple[IPNetwork, ...]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:  # a socket of the file system, or nothing
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in peers)
