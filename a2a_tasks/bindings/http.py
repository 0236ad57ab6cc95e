"""Requests and responses of the protocol's routes, on bare ASGI: without the cost of a Django view."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from a2a_tasks.access.credentials import PEER, Credentials
from a2a_tasks.agents.security import allows_anonymous
from a2a_tasks.bindings.byte_quota import UNCOUNTED, ByteQuota, take_turn
from a2a_tasks.conf import base_url, conf, of_settings
from a2a_tasks.failpoints import ON, failpoint
from a2a_tasks.protocol.errors import InvalidRequest, Overloaded, TooLarge

__all__ = [
    "JSON",
    "ASGIApp",
    "ClientGone",
    "NOSNIFF",
    "Headers",
    "Receive",
    "Request",
    "Scope",
    "Send",
    "body_quota",
    "list_hosts",
    "is_served",
    "may_come_by",
    "page_body_quota",
    "respond",
    "without_body",
]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
A2A_JSON = b"application/a2a+json"
#: Browsers must use the given media type and not guess another one.
NOSNIFF = (b"x-content-type-options", b"nosniff")
#: The type that a body without a Content-Type may be taken for (RFC 9110 §8.3).
UNNAMED = "application/octet-stream"
LOCAL = (".localhost", "127.0.0.1", "[::1]")
#: Maximum bytes of bodies that a process is receiving, and those of them for pages, in bodies of the largest size.
BODIES, BODIES_OF_PAGES = 64, 16
#: Maximum number of digits in a valid Content-Length.
MAX_NUMBER_LENGTH = 19


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


class Request:
    """One HTTP request. Header names are lower-case; repeated headers are joined by commas."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope, self.receive = scope, receive
        self.method: str = scope["method"]
        self.headers: dict[str, str] = {}
        self._repeated: list[str] = []
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            if key in self.headers:
                self._repeated.append(key)
                text = f"{self.headers[key]},{text}"
            self.headers[key] = text

    def header(self, name: str) -> str:
        """A header's value, or an empty string."""
        return self.headers.get(name, "")

    @functools.cached_property
    def credentials(self) -> Credentials:
        """The credentials in the request."""
        client = self.scope.get("client")
        peer = self.scope.get(PEER, client)
        return Credentials(
            self.headers,
            peer=peer[0] if peer else "",
            address=client[0] if client else "",
            repeated=self._repeated,
        )

    @property
    def segments(self) -> list[str]:
        """The path's segments below A2A_PREFIX as received, percent-encoded: an id may contain a slash or a colon."""
        raw: bytes = self.scope.get("raw_path") or self.scope["path"].encode()
        parts = list(filter(None, raw.split(b"?")[0].decode("latin-1").split("/")))
        return parts[conf.PREFIX.count("/") :]

    @property
    def query(self) -> str:
        """The raw query string."""
        return str(self.scope["query_string"].decode("latin-1"))

    def query_value(self, name: str) -> str:
        """Return a query parameter, or an empty string; different values are joined by commas, like headers."""
        if not self.scope["query_string"]:
            return ""
        return ",".join(dict.fromkeys(parse_qs(self.query).get(name, [])))

    @property
    def media_type(self) -> str:
        """The Content-Type without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def unreadable(self) -> str:
        """The media type or encoding of a body that cannot be read here; empty = it may be JSON.

        A body from a browser must be declared as JSON: pages of other sites can send an undeclared one without
        permission.
        """
        coding = self.headers.get("content-encoding", "").strip().lower()
        if coding not in {"", "identity"}:
            return coding
        called = self.media_type
        if not called and self.headers.get("origin"):
            return UNNAMED
        return "" if called in {"", "application/json"} or called.endswith("+json") else called

    @property
    def base_url(self) -> str:
        """The host's own base URL as this client sees it. Raises InvalidRequest for a host that is not allowed."""
        if conf.PUBLIC_URL:
            return base_url()
        host = self.headers.get("host", "")
        if not is_served(host, list_hosts()):
            raise InvalidRequest("This host name is not served here")
        return base_url(
            f"{self.scope.get('scheme', 'http')}://{host}{self.scope.get('root_path', '')}"
        )

    async def body(self, quota: ByteQuota | None = None) -> bytes:
        """Return the whole body, whose bytes count in a quota (that of the process) until it has arrived.

        Raises TooLarge as soon as the limit is passed, Overloaded if others have the bytes, and ClientGone.
        """
        limit = int(conf.MAX_BODY_BYTES)
        body, counted = bytearray(), 0
        if (announced := self.headers.get("content-length")) and _exceeds(announced, limit):
            raise TooLarge(f"The body is larger than {limit} bytes")
        try:
            while True:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                piece: bytes = message.get("body", b"")
                if len(body) + len(piece) > limit:
                    raise TooLarge(f"The body is larger than {limit} bytes")
                more = message.get("more_body")
                if not (body or more):  # most come in one piece
                    return piece
                body += piece
                if not more:
                    await take_turn(len(body))
                    return bytes(body)
                size = len(body) - UNCOUNTED - counted
                if size > 0:
                    quota = quota or body_quota()
                    if not quota.take(size, counted):
                        raise Overloaded("Too many large bodies are under way", retry_after="1")
                    counted += size
        finally:
            if counted and quota:
                quota.give_back(counted)


@of_settings
@functools.cache
def body_quota() -> ByteQuota:
    """Return the quota of this process for bodies that are being received."""
    return ByteQuota(BODIES * int(conf.MAX_BODY_BYTES))


@of_settings
@functools.cache
def page_body_quota() -> ByteQuota:
    """Return the part of it for pages: anyone may send to a page."""
    return ByteQuota(BODIES_OF_PAGES * int(conf.MAX_BODY_BYTES), body_quota())


@of_settings
@functools.cache
def list_hosts() -> tuple[str, ...]:
    """Return ALLOWED_HOSTS; if it is empty and DEBUG is on, this machine's own names, as in Django."""
    return tuple(settings.ALLOWED_HOSTS) or (LOCAL if settings.DEBUG else ())


@functools.lru_cache(maxsize=64)
def is_served(host: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a `Host` header, with or without a port, is one of the allowed names (as in ALLOWED_HOSTS)."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def may_come_by(host: str) -> bool:
    """Return whether a request with this `Host` header is answered: any name is where callers need credentials.

    Another site may let its name point to this machine (DNS rebinding). A browser here then takes requests of that site's
    pages for same-origin ones, and only the name distinguishes them. Where callers need credentials, other sites have none.
    """
    if not allows_anonymous():
        return True
    ours = urlsplit(str(conf.PUBLIC_URL)).hostname or ""
    return is_served(host, (*list_hosts(), ours))


def give_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body already read, and then the further messages."""
    left = [body]

    async def receive_rest() -> MutableMapping[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return receive_rest


def without_body(send: Send) -> Send:
    """Return a `send` for HEAD: it sends the headers of the answer to GET, without the body (RFC 9110 §9.3.2)."""

    async def headers_only(message: MutableMapping[str, Any]) -> None:
        await send({**message, "body": b""} if "body" in message else message)

    return headers_only


def _exceeds(digits: str, limit: int) -> bool:
    """Return whether a number in decimal digits is greater than a limit. It may be too long to be parsed."""
    return digits.isdecimal() and (len(digits) > MAX_NUMBER_LENGTH or int(digits) > limit)


async def respond(
    send: Send,
    status: int,
    body: bytes,
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    """Send a whole response; it is JSON unless the headers say otherwise."""
    given = [*headers, NOSNIFF]
    if b"content-type" not in dict(given):
        given.append((b"content-type", JSON))
    if status not in {204, 304}:
        given.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": given})
    if ON:
        failpoint("accept.responding")
    await send({"type": "http.response.body", "body": body})
