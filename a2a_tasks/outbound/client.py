"""The HTTP client for URLs from others: aiohttp, which connects only to addresses that the guard has just checked.

No redirects, no cookies, no proxy from the environment, no decompression, HTTP/1.1 only. A name is resolved once for each
call. The call goes to an address, with the name in `Host` and for TLS, so a connection is used again only for an address
that this call may reach. See docs/decisions/0017.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import io
import re
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from a2a_tasks.outbound.connector import Connector
from a2a_tasks.outbound.faults import FaultKind, Unanswered
from a2a_tasks.outbound.guard import Guard, Target
from a2a_tasks.outbound.web_address import IPAddress

__all__ = ["Client", "ClientLimits", "IncomingAnswer", "make_tls_context"]

#: Most addresses that are tried. More would leave each too little time.
MAX_TRIED = 4
#: Seconds for which an unused connection is kept, and how many closed ones a call may meet.
IDLE_SECONDS, MAX_CLOSED = 15.0, 16
#: Most bytes of a line of an answer's head.
MAX_LINE = 32 * 1024
#: Headers about framing, connection and host: the client sets them, and drops those of its caller.
OWN_HEADERS = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
#: The name of a header (RFC 9110 §5.6.2), and a value of one.
_NAME, _VALUE = (
    re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"),
    re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*"),
)
#: Errors of this machine: no files, ports, memory or network left.
OWN_FAULTS = {
    errno.EMFILE,
    errno.ENFILE,
    errno.EADDRNOTAVAIL,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.ENETDOWN,
}
#: The beginnings of messages about a head that is too large.
TOO_LARGE = ("Got more than", "Too many headers", "Too many interim", "Too many bytes")
#: Bytes from which a body is sent in pieces.
LARGE = 1024 * 1024
#: Errors of a connection that is open, so that TLS cannot begin.
HANDSHAKE = (ConnectionResetError, ConnectionAbortedError, ssl.SSLError)
#: The first status that is no interim answer (RFC 9110 §15).
FIRST_FINAL = 200
#: The status of a proxy that does not accept this host's credentials (RFC 9110 §15.5.8).
PROXY_AUTHENTICATION = 407


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """The limits of one call."""

    #: Seconds until the connection is open, with TLS.
    connect: float = 5.0
    #: Seconds for the whole call, from the resolution of the name to the last byte.
    total: float = 15.0
    #: Bytes of an answer's body that are read.
    answer: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class IncomingAnswer:
    """A received answer."""

    status: int
    #: Names in lower case.
    headers: tuple[tuple[str, str], ...]
    #: The body as it was sent, never decompressed.
    body: bytes
    #: False if the body was too long, too slow, or cut off.
    whole: bool

    def header(self, name: str) -> str:
        """Return the first value of a header, by its lower-case name; empty = there is none."""
        return next((value for own, value in self.headers if own == name), "")


@functools.lru_cache(maxsize=8)  # reading the authorities of the system takes some 20 ms
def make_tls_context(bundle: str = "") -> ssl.SSLContext:
    """Return a TLS context that requires TLS 1.2, a matching name, and a certificate of a trusted authority.

    Trusted are the authorities of the system and of the bundle, a path. Raises OSError if the bundle cannot be read.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if bundle:
        context.load_verify_locations(cafile=bundle)
    return context


class _NoNames(AbstractResolver):
    """aiohttp resolves no names: the guard does."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise OSError(f"{host} is a name")

    async def close(self) -> None:
        """Do nothing: no connection is open."""


async def _note_reuse(_: object, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.reused = True


class Client:
    """A client for any number of concurrent calls in one event loop. It must be closed."""

    def __init__(
        self,
        guard: Guard,
        *,
        limits: ClientLimits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = guard
        self._limits = limits or ClientLimits()
        self._tls = tls or make_tls_context()
        self._opened: aiohttp.ClientSession | None = None

    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            trace = aiohttp.TraceConfig()
            trace.on_connection_reuseconn.append(_note_reuse)
            self._opened = aiohttp.ClientSession(
                connector=Connector(
                    ssl=self._tls,
                    limit=0,
                    keepalive_timeout=IDLE_SECONDS,
                    resolver=_NoNames(),
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                max_line_size=MAX_LINE,
                max_field_size=MAX_LINE,
                skip_auto_headers=("accept", "content-type"),
                trace_configs=[trace],
            )
        return self._opened

    async def ask(
        self, method: str, url: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> IncomingAnswer:
        """Send one request and return its answer, of any status.

        A head that came in time is an answer, even if its body is incomplete. A request over an idle connection that
        turns out to be closed is sent again, so the receiver may get it twice. Raises Unanswered, also in the forms
        AddressRefused and NameNotResolved.
        """
        deadline = asyncio.get_running_loop().time() + self._limits.total
        target = await self._target(url, deadline)
        given = _make_headers(target, headers)
        answer = await self._reach(method, target, given, body, deadline)
        if answer.status < FIRST_FINAL:
            answer.close()
            raise Unanswered(FaultKind.PROTOCOL, f"answered {answer.status}")
        received, whole = await _read_body(answer, self._limits.answer, deadline)
        if whole:
            answer.release()
        else:
            answer.close()
        headers = tuple(
            (name.decode().lower(), value.decode("latin-1")) for name, value in answer.raw_headers
        )
        return IncomingAnswer(answer.status, headers, received, whole)

    async def close(self) -> None:
        """Close all connections."""
        if self._opened is not None:
            await self._opened.close()

    async def _target(self, url: str, deadline: float) -> Target:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._guard.resolve(url)
        except TimeoutError:
            raise Unanswered(FaultKind.DNS, "not resolved in time") from None

    async def _reach(
        self,
        method: str,
        target: Target,
        headers: list[tuple[str, str]],
        body: bytes,
        deadline: float,
    ) -> aiohttp.ClientResponse:
        """Send the request to the first address that can be connected to; each gets an equal share of the time."""
        loop = asyncio.get_running_loop()
        soon = min(deadline, loop.time() + self._limits.connect)
        tried = target.addresses[:MAX_TRIED]
        for left in range(len(tried), 0, -1):
            address, share = tried[-left], max(0.001, (soon - loop.time()) / left)
            try:
                return await self._send(method, target, address, headers, body, share, deadline)
            except aiohttp.ConnectionTimeoutError:
                fault = Unanswered(FaultKind.TIMEOUT, "no connection in time")
            except aiohttp.ClientSSLError as error:
                text = str(getattr(error, "certificate_error", None) or error.os_error)
                raise Unanswered(FaultKind.TLS, text) from None
            except aiohttp.ClientConnectorError as error:
                if isinstance(error.os_error, HANDSHAKE) and target.address.scheme == "https":
                    raise Unanswered(FaultKind.TLS, str(error.os_error) or "closed") from None
                own = _is_own(error.os_error, address)
                text = error.os_error.strerror or str(error.os_error)
                fault = Unanswered(FaultKind.HOST if own else FaultKind.CONNECT, text)
        if target.proxy is not None:
            raise Unanswered(FaultKind.HOST, f"the proxy: {fault.detail}")
        raise fault

    async def _send(
        self,
        method: str,
        target: Target,
        address: IPAddress,
        headers: list[tuple[str, str]],
        body: bytes,
        share: float,
        deadline: float,
    ) -> aiohttp.ClientResponse:
        options: dict[str, Any] = {"headers": headers, "allow_redirects": False}
        place = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - IP's
        if target.proxy is None:
            to = f"{target.address.scheme}://{place}:{target.port}{target.address.path}"
            options["server_hostname"] = target.address.host
        else:
            to = str(target.address)
            options["proxy"] = f"http://{place}:{target.port}"
            if target.proxy.authorization and target.address.scheme == "https":
                options["proxy_headers"] = {"Proxy-Authorization": target.proxy.authorization}
        options["timeout"] = aiohttp.ClientTimeout(total=None, sock_connect=share)
        for _ in range(MAX_CLOSED):
            call = SimpleNamespace(reused=False)
            data = body if len(body) < LARGE else io.BytesIO(body)
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._session().request(
                        method, URL(to, encoded=True), data=data, trace_request_ctx=call, **options
                    )
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
                raise
            except (TimeoutError, OSError, aiohttp.ClientError) as fault:
                unanswered = _explain(fault)
                if unanswered.kind is not FaultKind.CLOSED or not call.reused:
                    raise unanswered from None
        raise unanswered


def _explain(fault: Exception) -> Unanswered:
    """Return the reason for which there is no answer."""
    match fault:
        case aiohttp.ClientHttpProxyError():
            own = fault.status == PROXY_AUTHENTICATION
            kind = FaultKind.HOST if own else FaultKind.CONNECT
            return Unanswered(kind, f"the proxy answered {fault.status}")
        case aiohttp.ClientResponseError():
            text = fault.message.partition("\n")[0]
            return Unanswered(
                FaultKind.TOO_LARGE if text.startswith(TOO_LARGE) else FaultKind.PROTOCOL, text
            )
        case aiohttp.ServerDisconnectedError() if not isinstance(fault.message, str):
            return Unanswered(FaultKind.PROTOCOL, "the connection ended within the head")
        case aiohttp.ClientConnectionError() | ConnectionError():
            return Unanswered(FaultKind.CLOSED, f"the connection ended before an answer: {fault}")
        case TimeoutError():
            return Unanswered(FaultKind.TIMEOUT, "no answer in time")
        case _:
            return Unanswered(FaultKind.PROTOCOL, str(fault))


def _is_own(error: OSError, address: IPAddress) -> bool:
    """Return whether every receiver would be unreachable. A missing route to IPv6 does not mean that."""
    unreachable = error.errno == errno.ENETUNREACH and address.version == 4  # noqa: PLR2004 - IP's
    return unreachable or error.errno in OWN_FAULTS


def _make_headers(target: Target, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    given = [(name, value.strip()) for name, value in headers if name.lower() not in OWN_HEADERS]
    if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in given):
        raise Unanswered(FaultKind.REQUEST, "a header cannot be sent")  # it may be a secret
    own = [("Host", target.address.authority), ("Accept-Encoding", "identity")]
    if not any(name.lower() == "user-agent" for name, _ in given):
        own.append(("User-Agent", "a2a-host"))
    if target.proxy and target.proxy.authorization and target.address.scheme == "http":
        own.append(("Proxy-Authorization", target.proxy.authorization))
    return own + given


async def _read_body(
    answer: aiohttp.ClientResponse, limit: int, deadline: float
) -> tuple[bytes, bool]:
    """Read the body, at most `limit` bytes; return it, and whether it is complete."""
    body = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            async for data in answer.content.iter_any():
                body += data
                if len(body) > limit:
                    return bytes(body[:limit]), False
        return bytes(body), True
    except (TimeoutError, OSError, aiohttp.ClientError):
        return bytes(body), False
