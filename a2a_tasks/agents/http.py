"""HTTP for agents: a session of aiohttp whose every call, redirects included, passes the guard of outbound calls."""

from __future__ import annotations

import socket
from functools import lru_cache

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from a2a_tasks.conf import conf
from a2a_tasks.outbound import (
    AddressRefused,
    Guard,
    NameNotResolved,
    OutboundPolicy,
    make_tls_context,
)

__all__ = ["CallRefused", "guard", "open_session"]


class CallRefused(aiohttp.ClientError):
    """A call to a URL or an address that the settings A2A_FETCH_* do not allow; the text is public."""


class _GuardedResolver(AbstractResolver):
    """Resolves names to addresses that the guard allows."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        try:
            addresses = await self._guard.resolve_name(host)
        except AddressRefused as refused:
            raise CallRefused(f"The URL {refused.reason}.") from None
        except NameNotResolved as fault:
            raise OSError(fault.detail) from None
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET6 if address.version == 6 else socket.AF_INET,  # noqa: PLR2004 - IP's
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: the resolver has no connections."""


def open_session() -> aiohttp.ClientSession:
    """Return a session for the present settings, in the running loop. The caller closes it."""
    judge = guard()
    proxy = judge.policy.proxy

    async def check(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        try:
            judge.check(str(request.url))
        except AddressRefused as refused:
            raise CallRefused(f"The URL {refused.reason}.") from None
        return await send(request)

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            ssl=make_tls_context(conf.FETCH_CA_BUNDLE),
            resolver=_GuardedResolver(judge),
            use_dns_cache=False,
        ),
        middlewares=(check,),
        proxy=f"http://{proxy.host}:{proxy.port}" if proxy else None,
        proxy_auth=aiohttp.BasicAuth.decode(proxy.authorization)
        if proxy and proxy.authorization
        else None,
        headers={"User-Agent": "a2a-host"},
    )


def guard() -> Guard:
    """Return the guard for the present settings. Raises ValueError for invalid ones, which a system check reports."""
    return _guard(
        conf.FETCH_ALLOW_HTTP,
        conf.FETCH_ALLOW_PRIVATE,
        conf.FETCH_ALLOW_NETWORKS,
        conf.FETCH_PROXY,
    )


@lru_cache(maxsize=4)
def _guard(http: bool, loopback: bool, allowed: str, proxy: str) -> Guard:
    return Guard(OutboundPolicy.read(http=http, loopback=loopback, allowed=allowed, proxy=proxy))
