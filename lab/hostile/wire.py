"""Hostile requests over a socket, byte for byte, and whatever comes back."""

from __future__ import annotations

import http.client
import socket
from types import TracebackType
from typing import Self

from lab.hostile.golden import Request
from lab.hostile.judge import Answer

__all__ = ["BLOBS", "IMPATIENCE", "Cut", "Wire", "head"]

#: Seconds an answer may take, to its last byte.
PATIENCE = 15.0
#: The same for what is no request: a server may wait for more of it.
IMPATIENCE = 0.5
#: What is no request, or one whose end two readers would see in different places; sent as it is.
_H = b"Host: localhost\r\n"
_POST = b"POST /agents/demo/ HTTP/1.1\r\n" + _H
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
BLOBS: tuple[bytes, ...] = (
    b"\r\n\r\n",
    b"\x00" * 100 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET / HTTP/9.9\r\n" + _H + b"\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\n\r\n",
    b"GET http://evil.example/agents/demo/tasks HTTP/1.1\r\n" + _H + b"\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\nHost: localhost\n\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\n" + _H + b"no colon\r\n\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\n" + _H + b" folded: x\r\n\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\n" + _H + b"x: a\x00b\r\n\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\n" + _H + b"x : a\r\n\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\n" + _H + b"x: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET /agents/demo/tasks HTTP/1.1\r\n" + _H + b"x: a\r\n" * 5000 + b"\r\n",
    b"GET /agents/demo/" + b"a" * 200_000 + b" HTTP/1.1\r\n" + _H + b"\r\n",
    b"GET /agents/demo/ta sks HTTP/1.1\r\n" + _H + b"\r\n",
    b"GET /agents/demo/tasks\x00 HTTP/1.1\r\n" + _H + b"\r\n",
    b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + _H + b"\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + _H + b"\r\n",
    b"GET /agents/demo/ HTTP/1.1\r\n" + _H + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET /agents/demo/ HTTP/1.1\r\n" + _H + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    b"GET /agents/demo/ HTTP/1.1\r\n"
    + _H
    + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA\r\n\r\n",
    _POST + b"Content-Length: -1\r\n\r\n{}",
    _POST + b"Content-Length: 0x2\r\n\r\n{}",
    _POST + b"Content-Length: +2\r\n\r\n{}",
    _POST + b"Content-Length: " + b"9" * 4500 + b"\r\n\r\n{}",
    _POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    _POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    _POST + b"Content-Length: 2, 2\r\n\r\n{}",
    _POST + b"Content-Length: 4\r\n" + _CHUNKED + b"\r\n0\r\n\r\nGET /",
    _POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    _POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    _POST + _CHUNKED + b"\r\nzz\r\n{}\r\n0\r\n\r\n",
    _POST + _CHUNKED + b"\r\n-1\r\n{}\r\n0\r\n\r\n",
    _POST + _CHUNKED + b"\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    _POST + _CHUNKED + b"\r\n2;" + b"x" * 100_000 + b"\r\n{}\r\n0\r\n\r\n",
    _POST + _CHUNKED + b"\r\n2\r\n{}xx0\r\n\r\n",
    _POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    _POST + b"Expect: nonsense\r\nContent-Length: 2\r\n\r\n{}",
)


class Cut(Exception):
    """The connection ended without an answer."""


def head(request: Request) -> bytes:
    """The request up to its body."""
    length = b"content-length: %d\r\n" % len(request.body)
    lines = [b"%b: %b\r\n" % one for one in request.headers]
    first = b"%b %b HTTP/1.1\r\nhost: localhost\r\n" % (request.verb, request.target)
    return first + b"".join(lines) + length + b"\r\n"


class Wire:
    """A connection that is opened again when it was closed."""

    def __init__(self, port: int, patience: float = PATIENCE) -> None:
        self._port, self._patience = port, patience
        self._socket: socket.socket | None = None

    def ask(self, request: Request) -> Answer:
        """The answer to a request; asked again on a new connection if the old one had ended meanwhile. Raises Cut."""
        fresh = self._socket is None
        try:
            return self.send(head(request) + request.body, request.verb)
        except Cut:
            if fresh:
                raise
        return self.send(head(request) + request.body, request.verb)

    def send(self, data: bytes, verb: bytes = b"GET") -> Answer:
        """The answer to these bytes. Raises Cut."""
        if self._socket is None:
            self._socket = socket.create_connection(
                ("127.0.0.1", self._port), timeout=self._patience
            )
        try:
            self._socket.sendall(data)
            return self._answer(verb)
        except (OSError, http.client.HTTPException) as fault:
            self.close()
            raise Cut(repr(fault)) from fault

    def _answer(self, verb: bytes) -> Answer:
        assert self._socket is not None
        with http.client.HTTPResponse(self._socket, method=verb.decode("latin-1")) as response:
            response.begin()
            body = response.read()
            headers = tuple(
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in response.getheaders()
            )
        if response.will_close:
            self.close()
        return Answer(response.status, headers, body)

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
