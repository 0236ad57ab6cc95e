"""One request and its answer over a connection: HTTP/1.1 as h11 reads and writes it, and nothing beyond its bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

import h11

from a2a_tasks.outbound.faults import Kind, Unanswered
from a2a_tasks.outbound.wire import Wire

__all__ = ["Answer", "Asked", "exchange", "tunnel"]

#: Bytes of an answer's head that may come before it ends.
LARGEST_HEAD = 32 * 1024
#: Interim answers (1xx) that are passed over.
MOST_INTERIM = 8
#: What h11 says of a head that is too large: 431 (RFC 6585 §5).
HEAD_TOO_LARGE = 431
SUCCESS = range(200, 300)
#: A proxy that does not know us: 407 (RFC 9110 §15.5.8).
PROXY_AUTHENTICATION = 407
#: Headers that say how a message is carried, and to whom: the client's own, whoever else has an opinion.
OWN_HEADERS = frozenset(
    b"accept-encoding connection content-length expect host keep-alive proxy-authenticate proxy-authorization"
    b" proxy-connection te trailer transfer-encoding upgrade".split()
)
AGENT = (b"user-agent", b"a2a-host")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as it is said on the wire."""

    method: str
    #: The request-target (RFC 9112 §3.2).
    target: str
    host: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    proxy_authorization: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    #: Names in lower case.
    headers: tuple[tuple[str, str], ...]
    #: As it was sent, never decompressed.
    body: bytes
    #: Is that all of the body? It may have been too long, too slow, or cut off.
    whole: bool
    #: May the connection carry another request?
    reusable: bool

    def header(self, name: str) -> str:
        """The first value of a header, by its lower-case name; empty = there is none."""
        return next((value for own, value in self.headers if own == name), "")


async def exchange(wire: Wire, asked: Asked, *, deadline: float, most: int) -> Answer:
    """Ask, and wait for the answer until `deadline` (of the loop's clock), with `most` bytes of its body.

    A head that came in time is an answer, whatever becomes of its body. Raises Unanswered.
    """
    spoken = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
    wire.write(_said(spoken, asked))
    head = await _head(spoken, wire, deadline)
    body, whole = await _body(spoken, wire, deadline, most)
    over = spoken.our_state is h11.DONE and spoken.their_state is h11.DONE
    reusable = whole and over and not spoken.trailing_data[0] and wire.quiet
    headers = tuple((name.decode(), value.decode("latin-1")) for name, value in head.headers)
    return Answer(head.status_code, headers, body, whole, reusable)


async def tunnel(wire: Wire, authority: str, authorization: str, *, deadline: float) -> None:
    """Have a proxy connect us through (RFC 9110 §9.3.6). Raises Unanswered."""
    spoken = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
    wire.write(_said(spoken, Asked("CONNECT", authority, authority, (), b"", authorization)))
    head = await _head(spoken, wire, deadline)
    if head.status_code not in SUCCESS:
        own = head.status_code == PROXY_AUTHENTICATION
        raise Unanswered(
            Kind.HOST if own else Kind.CONNECT, f"the proxy answered {head.status_code}"
        )
    if spoken.trailing_data[0]:
        raise Unanswered(Kind.CONNECT, "the proxy said more than that it is connected")


def _said(spoken: h11.Connection, asked: Asked) -> bytes:
    try:
        request = h11.Request(
            method=asked.method, target=asked.target, headers=list(_headers(asked))
        )
        events = (request, h11.Data(data=asked.body), h11.EndOfMessage())
        return b"".join(spoken.send(event) or b"" for event in events)
    except (h11.LocalProtocolError, UnicodeError):  # its text has the header, which may be a secret
        raise Unanswered(Kind.REQUEST, "a header cannot be sent") from None


def _headers(asked: Asked) -> Iterable[tuple[bytes, bytes]]:
    given = [(name.lower().encode(), value.strip().encode()) for name, value in asked.headers]
    yield b"host", asked.host.encode()
    if asked.method == "CONNECT":
        given = []
    else:
        yield b"accept-encoding", b"identity"
        yield b"content-length", str(len(asked.body)).encode()
    if asked.proxy_authorization:
        yield b"proxy-authorization", asked.proxy_authorization.encode()
    if not any(name == AGENT[0] for name, _ in given):
        yield AGENT
    yield from (header for header in given if header[0] not in OWN_HEADERS)


async def _head(spoken: h11.Connection, wire: Wire, deadline: float) -> h11.Response:
    """The head of the final answer. Raises Unanswered."""
    begun = wire.taken
    try:
        async with asyncio.timeout_at(deadline):
            for _ in range(MOST_INTERIM + 1):
                event = await _event(spoken, wire)
                if isinstance(event, h11.Response):
                    return event
    except TimeoutError:
        raise Unanswered(Kind.TIMEOUT, "no answer in time") from None
    except h11.RemoteProtocolError as fault:
        large = fault.error_status_hint == HEAD_TOO_LARGE
        raise Unanswered(Kind.TOO_LARGE if large else Kind.PROTOCOL, str(fault)) from None
    except OSError as fault:
        raise _cut_off(wire.taken > begun, str(fault)) from None
    raise Unanswered(Kind.PROTOCOL, f"more than {MOST_INTERIM} interim answers")


def _cut_off(begun: bool, how: str) -> Unanswered:
    if begun:
        return Unanswered(Kind.PROTOCOL, f"the connection ended within the head: {how}")
    return Unanswered(Kind.CLOSED, f"the connection ended before an answer: {how}")


async def _event(spoken: h11.Connection, wire: Wire) -> h11.Event:
    """The next event of the answer. Raises RemoteProtocolError, and OSError at an end that is none."""
    while True:
        event = spoken.next_event()
        if isinstance(event, h11.Event):
            return event
        data = await wire.read()
        if not data and spoken.their_state is h11.SEND_RESPONSE:
            raise ConnectionError("closed")
        spoken.receive_data(data)


async def _body(
    spoken: h11.Connection, wire: Wire, deadline: float, most: int
) -> tuple[bytes, bool]:
    """As much of the body as there is, at most `most` bytes; and is that all?"""
    body, begun = bytearray(), wire.taken
    try:
        async with asyncio.timeout_at(deadline):
            while isinstance(event := await _event(spoken, wire), h11.Data):
                body += event.data
                # A body of tiny chunks costs by what it is on the wire.
                if len(body) > most or wire.taken - begun > most + LARGEST_HEAD:
                    return bytes(body[:most]), False
            return bytes(body), isinstance(event, h11.EndOfMessage)
    except (TimeoutError, OSError, h11.RemoteProtocolError):
        return bytes(body), False
