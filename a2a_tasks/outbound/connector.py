"""aiohttp's connector with limits that aiohttp lacks: on interim answers (RFC 9110 §15.2), and on bytes beside the body.

aiohttp reads interim answers without end and without a pause. A flood of them holds the event loop, so that no timeout
ends the call. Empty lines and extensions of chunks cost processor time for as long as the call may take.
"""

from __future__ import annotations

import functools
from typing import Any

import aiohttp
from aiohttp import ClientPayloadError
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["Connector"]

#: Most interim answers before an answer, and bytes that are parsed before they are counted.
MAX_INTERIM, PIECE = 16, 4096
INTERIM, SWITCHING = range(100, 200), 101
#: Most bytes beside the body, and for each of its bytes: a chunk of one byte has five of framing.
FRAMING, FRAMING_OF_BYTE = 1024 * 1024, 8


class _Protocol(ResponseHandler):
    """A connection that ends with too many interim answers, or bytes that are no body."""

    _interim, _begun, _came, _body = 0, False, 0, None

    def set_response_params(self, **params: Any) -> None:
        """Begin to count for the next request."""
        self._interim, self._begun, self._came, self._body = 0, False, 0, None
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, in pieces until the answer has begun."""
        at = 0
        while not self._begun and len(data) - at > PIECE:
            self._receive(data[at : at + PIECE])
            at += PIECE
            if self.exception() is not None:
                return
        self._receive(data[at:])

    def _receive(self, data: bytes) -> None:
        self._came += len(data)
        super().data_received(data)
        read = getattr(self._body, "total_bytes", 0)
        if self._came > FRAMING + (1 + FRAMING_OF_BYTE) * read and not self.upgraded:
            self._end("Too many bytes beside the body")

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take the head of an answer, and its body to come."""
        code = data[0].code
        self._begun = code not in INTERIM or code == SWITCHING
        self._interim += not self._begun
        if self._begun and self._body is None:
            self._body = data[1]
        if self._interim <= MAX_INTERIM:
            super().feed_data(data, size)
        else:
            self._end("Too many interim answers")

    def _end(self, why: str) -> None:
        if self.exception() is None:
            self.set_exception(HttpProcessingError(message=why))
            if self._body is not None:
                self._body.set_exception(ClientPayloadError(why))
            if self.transport is not None:
                self.transport.close()


class Connector(aiohttp.TCPConnector):
    """A connector of such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        kind: type[ResponseHandler] = _Protocol
        self._factory = functools.partial(kind, loop=self._loop)
