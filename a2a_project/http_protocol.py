"""uvicorn's connection, with limits that uvicorn lacks: on the size of a head, the time of a request, and those that wait;
on answers that are not read, and on connections.

docs/decisions/0007 gives the reasons.
"""

from __future__ import annotations

import asyncio
import logging
import re
import resource
import select
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from a2a_tasks.bindings.unread import Reader
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger

__all__ = ["HttpProtocol"]

logger = logging.getLogger(__name__)
_full = ThrottledLogger(logger, "an HTTP connection was turned away")

#: Maximum bytes and lines of a request's head, trailers included.
HEAD_BYTES, HEAD_LINES = 64 * 1024, 100
#: Maximum bytes of a line of a head: a URL, or a header. Some readers of them need the square of their length. Tokens
#: have up to 16 KiB (`a2a_tasks/access/credentials.py`).
LINE_BYTES = 17 * 1024
#: Maximum requests of a connection that wait for the answers to earlier ones. A read of uvloop may have 14,000.
PIPELINED = 100
#: Bytes of framing allowed for each byte of a body: a client may send every byte as a chunk of its own.
FRAMING = 16
#: Seconds for which the rest of a refused request is discarded, so that its client reads the answer.
DISCARD_SECONDS = 1.0


def _answer(status: str) -> bytes:
    body = f"{status[4:]}\n"
    head = f"connection: close\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}"
    return f"HTTP/1.1 {status}\r\n{head}\r\n\r\n{body}".encode()


BAD = _answer("400 Bad Request")
TOO_SLOW = _answer("408 Request Timeout")
TOO_MANY = _answer("429 Too Many Requests")
TOO_MUCH_HEAD = _answer("431 Request Header Fields Too Large")

#: The end of a head.
END = re.compile(rb"\n\r?\n")
#: The beginning of a line that offers another protocol, and the end of a piece that may become one.
_OFFER = re.compile(rb"(?i)(^|\n)upgrade(?=[ \t]*:)")
_MAYBE_OFFER = re.compile(rb"(?i)(?:^|\n)(u(?:p(?:g(?:r(?:a(?:d(?:e[ \t]*)?)?)?)?)?)?)\Z")


class TooMuchHead(Exception):
    """The head of a request, its trailers included, is larger than the host accepts."""


class TooManyRequests(Exception):
    """More requests of a connection wait than the host accepts."""


class TooManyOpen(Exception):
    """More connections are open than the file descriptors allow."""


class UnreadBody(Exception):
    """The parser would take the body of this request for the next request."""


class HttpProtocol(HttpToolsProtocol):
    """One connection. A request that arrives too slowly, or whose head is too large, is cut off."""

    # With these names, too, the dictionary of a connection would have more than 30 keys, and would no longer share them
    # with the dictionaries of other connections: 1.3 KiB more for each.
    __slots__ = (
        "_body",
        "_head",
        "_held",
        "_in_head",
        "_last",
        "_lines",
        "_next",
        "_other",
        "_reader",
        "_refusal",
        "_refused",
        "_watch",
        "since",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Start of the request that is being received; None = none is, or it has arrived. A new connection must send one.
        self.since: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        #: Bytes and lines of the head, bytes of the body, and all other bytes: of an unfinished line, of framing.
        self._head = self._lines = self._body = self._other = 0
        self._refused = False
        #: The answer to a refused request, while answers to earlier requests are still due.
        self._refusal = b""
        #: True if a head is expected, or being received.
        self._in_head = True
        #: The request that begins when the client has read the answer before it.
        self._next: tuple[Any, Any] | None = None
        #: The last bytes that the parser got, and the bytes that it gets with the next piece.
        self._last, self._held = b"", b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reader = Reader(transport)
        if len(self.connections) > _count_connections():
            _full.warning(TooManyOpen(f"{len(self.connections)} are open"))
            transport.abort()
            return
        self.since = time.monotonic()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self.since = self._next = None
        self._look()
        self._reader.stop()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        if self.since is None:
            self.since = time.monotonic()
        self._head = self._lines = self._body = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._take_head(len(url), line=len(self.url) + len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        size = len(name) + len(value) + len(": \r\n")
        self._take_head(size, line=size)
        super().on_header(name, value)

    def _take_head(self, size: int, line: int) -> None:
        # A line that is too long is too much of a head.
        self._head += size if line <= LINE_BYTES else size + HEAD_BYTES
        self._other -= size
        if self._head > HEAD_BYTES or self._lines > HEAD_LINES:
            raise TooMuchHead

    def on_headers_complete(self) -> None:
        if (
            self.parser.should_upgrade()
        ):  # CONNECT, or an offer in a head that came with the request before it
            raise UnreadBody
        if len(self.pipeline) >= PIPELINED:
            raise TooManyRequests
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._other -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.since = None
        self._other = self._body = 0
        self._in_head = True
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._other += len(data)
        if self._in_head:
            data = self._rename_offers(data)
        super().data_received(data)
        if self._other > HEAD_BYTES + FRAMING * self._body:
            self._refuse(TOO_MUCH_HEAD)
        if (self.since is None) is not (self._watch is None):
            self._look()

    def _rename_offers(self, data: bytes) -> bytes:
        """Return a piece of a head, and what follows it, with offers of another protocol renamed to an unknown header.

        The parser assumes that a request with such an offer has no body, and takes its body for the next request. Java's
        client offers `h2c` with every first one. A server may ignore the offer (RFC 9110 §7.8).
        """
        data = self._held + data
        end = END.search(self._last + data)
        size = max(0, end.end() - len(self._last)) if end else len(data)
        head, rest = data[:size], data[size:]
        begun = None if end else _MAYBE_OFFER.search(head)
        self._held = begun[1] if begun else b""
        if self._held:
            head = head[: -len(self._held)]
            self.since = self.since or time.monotonic()
        if _OFFER.search(head):
            head = _OFFER.sub(rb"\1X-Offered", head)
        self._last = (self._last + head + rest)[-3:]
        return head + rest

    def _look(self) -> None:
        """Restart the timer for the request that is being received: every byte of its body extends the time."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self.since is None or not conf.REQUEST_SECONDS:
            return
        if self.flow.read_paused:  # the application does not read
            self.since += 1.0
        extension = self._body / max(1, conf.REQUEST_BYTES_PER_SECOND)
        left = self.since + conf.REQUEST_SECONDS + extension - time.monotonic()
        if left > 0:
            self._watch = self.loop.call_later(left, self._look)
        elif not self.transport.is_closing():
            self._refuse(TOO_SLOW)

    def shutdown(self) -> None:
        """End the connection after its open request, or after one that has arrived and was not read yet."""
        cycle: Any = self.cycle  # None before the first request
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        if (cycle is not None and not cycle.response_complete) or not poll.poll(0):
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser refused."""
        if self._head > HEAD_BYTES or self._lines > HEAD_LINES:
            self._refuse(TOO_MUCH_HEAD)
        else:
            self._refuse(TOO_MANY if len(self.pipeline) >= PIPELINED else BAD)

    def _refuse(self, answer: bytes) -> None:
        """Refuse the request that is being received: answer it after the earlier ones, and close the connection.

        A request whose answer has begun is cut off instead.
        """
        if self._refused:
            return
        self._refused, self.since = True, None
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and cycle.more_body and not cycle.response_complete:  # it is this one
            if cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = (
                True  # its application sees a disconnect, and what it sends goes nowhere
            )
            cycle.message_event.set()
            if not self.pipeline:
                self._send_last(answer)
                return
            self.pipeline.popleft()
        if self.pipeline or (cycle is not None and not cycle.response_complete):
            self._refusal = answer
        else:
            self._send_last(answer)

    def on_response_complete(self) -> None:
        """Begin the next request that waits; after the last one, send the answer to a refused request."""
        last = not self.pipeline
        if not self.flow.write_paused:
            self._reader.watch()
        super().on_response_complete()
        if last and self._refusal and not self.transport.is_closing():
            self._send_last(self._refusal)

    def _send_last(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.write_eof()
        self._reader.watch()
        self.loop.call_later(DISCARD_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        """Count what the client has not read, and watch how it reads."""
        super().pause_writing()
        self._reader.count()

    def resume_writing(self) -> None:
        """Begin the request that waits."""
        super().resume_writing()
        self._reader.stop()
        waits, self._next = self._next, None
        if waits is not None:
            self._start_asgi_task(*waits)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Begin a request once its client has read the answer before it: else two answers would wait for the client."""
        if self.flow.write_paused:
            self._next = cycle, app
        else:
            super()._start_asgi_task(cycle, app)


def _count_connections() -> int:
    """Return the maximum number of connections: the rest of the descriptors is for gRPC, databases and files.

    uvloop closes a listening socket for good if the system accepts nothing more for it.
    """
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4
