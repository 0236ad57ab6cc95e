"""HTTP for agents: a session of aiohttp whose every call, redirects included, passes the guard of outbound calls."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from a2a_tasks.agents.faults import CallRefused
from a2a_tasks.conf import conf
from a2a_tasks.outbound import (
    AddressRefused,
    Connector,
    Guard,
    NameNotResolved,
    OutboundPolicy,
    make_tls_context,
)
from a2a_tasks.telemetry import tracing

__all__ = ["guard", "open_session"]

#: Maximum seconds until the head of an answer is complete. A server that sends it byte by byte is never silent, so that
#: no other timeout ends the call.
HEAD_SECONDS = 300.0


class UrlRefused(CallRefused, aiohttp.ClientError):
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
            raise UrlRefused(f"The URL {refused.reason}.") from None
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


@asynccontextmanager
async def _deadline(seconds: float, fault: str) -> AsyncIterator[None]:
    """Limit a part of a call to so many seconds. Raises ServerTimeoutError."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise  # of the call's own timeouts
        raise aiohttp.ServerTimeoutError(f"The answer {fault} within {seconds:g} s.") from None


class _BoundedAnswer(aiohttp.ClientResponse):
    """An answer that is read whole only within FETCH_BYTES, counted after decompression, and within FETCH_SECONDS."""

    async def read(self) -> bytes:
        """Return the body; `text` and `json` call this. Raises ClientPayloadError and ServerTimeoutError."""
        if self._body is None:
            try:
                self._body = await self._read_within_limits()
            except BaseException:
                self.close()
                raise
        return await super().read()

    async def _read_within_limits(self) -> bytes:
        limit, body = int(conf.FETCH_BYTES), bytearray()
        async with _deadline(float(conf.FETCH_SECONDS), "was not whole"):
            async for piece in self.content.iter_any():
                body += piece
                if len(body) > limit:
                    raise aiohttp.ClientPayloadError(f"The answer is longer than {limit} bytes.")
        return bytes(body)


def open_session() -> aiohttp.ClientSession:
    """Return a session for the present settings, in the running loop. The caller closes it."""
    judge, seconds = guard(), float(conf.FETCH_SECONDS)
    proxy = judge.policy.proxy

    async def check(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        try:
            judge.check(str(request.url))
        except AddressRefused as refused:
            raise UrlRefused(f"The URL {refused.reason}.") from None
        with tracing.call_span(request.method, request.method, str(request.url)) as call:
            request.headers.update(tracing.headers())
            async with _deadline(HEAD_SECONDS, "did not begin"):
                answer = await send(request)
            tracing.note_status(call, answer.status)
            return answer

    return aiohttp.ClientSession(
        connector=Connector(
            ssl=make_tls_context(conf.FETCH_CA_BUNDLE),
            resolver=_GuardedResolver(judge),
            use_dns_cache=False,
        ),
        middlewares=(check,),
        response_class=_BoundedAnswer,
        timeout=aiohttp.ClientTimeout(sock_connect=seconds, sock_read=seconds),
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
