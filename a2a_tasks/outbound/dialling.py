"""Opening a connection to a target: to the addresses the guard has judged, in their order, and to no others."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl

from a2a_tasks.outbound.exchange import tunnel
from a2a_tasks.outbound.faults import Kind, Unanswered
from a2a_tasks.outbound.guard import Target
from a2a_tasks.outbound.web_address import IPAddress
from a2a_tasks.outbound.wire import Wire

__all__ = ["dial"]

#: Addresses that are tried. More would leave each too little time.
MOST_TRIED = 4
#: What this machine has none left of: files, ports, memory, a network.
OWN_FAULTS = {
    errno.EMFILE,
    errno.ENFILE,
    errno.EADDRNOTAVAIL,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.ENETDOWN,
}


async def dial(target: Target, tls: ssl.SSLContext, *, deadline: float) -> Wire:
    """A connection to the target, with TLS if its scheme asks for it, by `deadline` of the loop's clock. Raises Unanswered."""
    wire = await _reach(target, deadline)
    try:
        if target.address.scheme == "https":
            if target.proxy is not None:
                to = f"{target.address.bare}:{target.address.port}"
                await tunnel(wire, to, target.proxy.authorization, deadline=deadline)
            await _secure(wire, tls, target.address.host, deadline)
    except BaseException:
        wire.abort()
        raise
    return wire


async def _reach(target: Target, deadline: float) -> Wire:
    """The first address that answers; each gets its share of the time left."""
    loop = asyncio.get_running_loop()
    tried = target.addresses[:MOST_TRIED]
    for left in range(len(tried), 0, -1):
        until = loop.time() + (deadline - loop.time()) / left
        try:
            async with asyncio.timeout_at(until):
                return await _connect(tried[-left], target.port)
        except TimeoutError:
            fault = Unanswered(Kind.TIMEOUT, "no connection in time")
        except OSError as error:
            kind = Kind.HOST if _is_own(error, tried[-left]) else Kind.CONNECT
            fault = Unanswered(kind, error.strerror or str(error))
    if target.proxy is not None:
        raise Unanswered(Kind.HOST, f"the proxy: {fault.detail}")
    raise fault


def _is_own(error: OSError, address: IPAddress) -> bool:
    """Would no receiver be reached? That there is no way to IPv6 says nothing of others."""
    unreachable = error.errno == errno.ENETUNREACH and address.version == 4  # noqa: PLR2004 - IP's
    return unreachable or error.errno in OWN_FAULTS


async def _connect(address: IPAddress, port: int) -> Wire:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004 - IP's
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, (str(address), port))
        _, wire = await loop.create_connection(Wire, sock=sock)
    except BaseException:
        sock.close()
        raise
    wire.peer = address
    return wire


async def _secure(wire: Wire, tls: ssl.SSLContext, name: str, deadline: float) -> None:
    """TLS with whoever is reached, if it is the host of this name."""
    loop = asyncio.get_running_loop()
    if wire.unread:  # said in clear, it would be taken for what is said under TLS
        raise Unanswered(Kind.TLS, "it spoke before TLS")
    try:
        async with asyncio.timeout_at(deadline):
            upgraded = await loop.start_tls(wire.transport, wire, tls, server_hostname=name)
    except TimeoutError:
        raise Unanswered(Kind.TIMEOUT, "no TLS in time") from None
    except (OSError, ssl.CertificateError) as fault:
        raise Unanswered(Kind.TLS, str(fault) or "closed") from None
    if upgraded is None:
        raise Unanswered(Kind.TLS, "closed")
    wire.transport = upgraded
