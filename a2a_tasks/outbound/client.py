"""The one HTTP client: asks a URL that somebody handed us, where the guard lets it go, and bounded in every way.

No redirects, no cookies, no proxy of the environment, no decompression, HTTP/1.1 only.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import dataclass

from a2a_tasks.outbound.dialling import dial
from a2a_tasks.outbound.exchange import Answer, Asked, exchange
from a2a_tasks.outbound.faults import Kind, Unanswered
from a2a_tasks.outbound.guard import Guard, Target
from a2a_tasks.outbound.idle import Endpoint, Idle
from a2a_tasks.outbound.wire import Wire

__all__ = ["Client", "Limits", "trusting"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may cost."""

    #: Seconds until there is a connection, with TLS.
    connect: float = 5.0
    #: Seconds for everything, from the look at the name to the last byte.
    total: float = 15.0
    #: Bytes of an answer's body that are read.
    answer: int = 64 * 1024


def trusting(bundle: str = "") -> ssl.SSLContext:
    """What is asked of servers: TLS 1.2, the right name, and a certificate of the system's authorities or the bundle's.

    Raises OSError if the bundle, a path, cannot be read.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if bundle:
        context.load_verify_locations(cafile=bundle)
    return context


class Client:
    """Any number of calls at once, in one loop. Close it."""

    def __init__(
        self,
        guard: Guard,
        *,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        idle: Idle | None = None,
    ) -> None:
        self._guard = guard
        self._limits = limits or Limits()
        self._tls = tls or trusting()
        self._idle = idle or Idle()

    async def ask(
        self, method: str, url: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> Answer:
        """One request and its answer, of any status. Raises Unanswered, as AddressRefused and NameNotResolved among others.

        A request over a connection that turns out to be closed is said again over another one: whoever calls must be
        able to have it arrive twice.
        """
        deadline = asyncio.get_running_loop().time() + self._limits.total
        target = await self._target(url, deadline)
        asked = _asked(method, target, tuple(headers), body)
        wire = self._idle.take(_endpoint(target), target.addresses)
        if wire is not None:
            try:
                return await self._exchanged(wire, target, asked, deadline)
            except Unanswered as fault:
                if fault.kind is not Kind.CLOSED:
                    raise
        wire = await self._dialled(target, deadline)
        return await self._exchanged(wire, target, asked, deadline)

    async def close(self) -> None:
        """Close the connections nobody uses; those in use close when they are done."""
        self._idle.close()

    async def _target(self, url: str, deadline: float) -> Target:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._guard.resolve(url)
        except TimeoutError:
            raise Unanswered(Kind.DNS, "not resolved in time") from None

    async def _dialled(self, target: Target, deadline: float) -> Wire:
        soon = asyncio.get_running_loop().time() + self._limits.connect
        return await dial(target, self._tls, deadline=min(soon, deadline))

    async def _exchanged(self, wire: Wire, target: Target, asked: Asked, deadline: float) -> Answer:
        try:
            answer = await exchange(wire, asked, deadline=deadline, most=self._limits.answer)
        except BaseException:
            wire.abort()
            raise
        if answer.reusable:
            self._idle.keep(_endpoint(target), wire)
        else:
            wire.abort()
        return answer


def _endpoint(target: Target) -> Endpoint:
    return target.address.scheme, target.address.host, target.address.port


def _asked(method: str, target: Target, headers: tuple[tuple[str, str], ...], body: bytes) -> Asked:
    """The request, in the form a proxy wants if it is to pass it on itself (RFC 9112 §3.2.2)."""
    address, proxy = target.address, target.proxy
    if proxy is None or address.scheme == "https":
        return Asked(method, address.path, address.authority, headers, body)
    return Asked(method, str(address), address.authority, headers, body, proxy.authorization)
