"""uvicorn, the faster alternative, started and ended as daphne is.

    serve(application, "127.0.0.1", 8000, Serving(drain_seconds=5))

One process; run more of them to use more cores. It has back-pressure of its own; without a limit it would wait for
an open stream for ever after SIGTERM, and it would then die of the signal instead of exiting with 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from a2a_project import lifecycle
from a2a_project.lifecycle import ASGIApplication, Serving
from a2a_project.patience import BAD, HEAD_BYTES, HEAD_LINES, TOO_MUCH_HEAD, TOO_SLOW, Coming
from a2a_tasks import lifetime

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

__all__ = ["DrainingServer", "Serving", "serve"]


def serve(
    application: ASGIApplication, host: str, port: int, serving: Serving | None = None
) -> NoReturn:
    """Serve until a signal, drain, and end the process with code 0. OSError when it cannot listen."""
    serving = serving or Serving()
    sock = lifecycle.socket_for(host, port, serving)
    config = uvicorn.Config(
        lifecycle.behind_proxies(lifecycle.answering(application), serving.trusted_proxies),
        loop="uvloop",
        http=cast("type[asyncio.Protocol]", partial(Protocol, serving)),
        interface="asgi3",
        ws="none",
        lifespan="off",  # this launcher drives a2a_tasks.lifetime itself
        backlog=lifecycle.BACKLOG,
        log_config=None,  # Django's logging stays
        log_level="info" if serving.access_log else "warning",
        access_log=serving.access_log,
        proxy_headers=False,
        server_header=False,
    )
    DrainingServer(config, serving).run(sockets=[sock])
    lifecycle.leave()


#: Bytes of framing that are allowed for each byte of a body: a client may send every byte as a chunk of its own.
FRAMING = 16


#: A line that offers another protocol, after the first line of a head.
_UPGRADE = re.compile(rb"(?i)(^|\n)upgrade(?=[ \t]*:)")


def without_upgrade(data: bytes) -> bytes:
    """A piece of a head, and what follows it: lines that offer another protocol get a name that means nothing.

    The parser takes a request with such an offer to have no body, and its body for the next request. Java's client offers
    `h2c` with every first one. A server may ignore the offer (RFC 9110 §7.8). Of a line that comes in two pieces this is not seen.
    """
    end = data.find(b"\r\n\r\n") + 2
    head = data[:end] if end > 1 else data
    return (
        _UPGRADE.sub(rb"\1X-Offered", head) + data[len(head) :] if _UPGRADE.search(head) else data
    )


class TooMuchHead(Exception):
    """The head of a request, its trailers included, is larger than the host takes."""


class Protocol(HttpToolsProtocol):
    """One connection. A request that takes too long to come, or whose head is too large, is cut off; uvicorn bounds neither."""

    def __init__(self, serving: Serving, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._serving = serving
        #: The request that is on its way; from the first moment on, one is expected.
        self.coming: Coming | None = None
        self._watch: asyncio.TimerHandle | None = None
        #: Bytes and lines of the head, bytes of the body, and bytes that are neither: of a line that has not ended, of framing.
        self._head = self._lines = self._body = self._other = 0
        self._refused = False
        #: Is a head expected, or on its way?
        self._in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.coming = Coming(self._serving)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self.coming = None
        self._look()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        if self.coming is None:
            self.coming = Coming(self._serving)
        self._head = self._lines = self._body = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._take_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        self._take_head(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def _take_head(self, size: int) -> None:
        self._head += size
        self._other -= size
        if self._head > HEAD_BYTES or self._lines > HEAD_LINES:
            raise TooMuchHead

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._other -= len(body)
        if self.coming is not None:
            self.coming.came += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.coming = None
        self._other = 0
        self._in_head = True
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._other += len(data)
        if self._in_head:
            data = without_upgrade(data)
        super().data_received(data)
        if self._other > HEAD_BYTES + FRAMING * self._body:
            self._cut_off(TOO_MUCH_HEAD)
        if (self.coming is None) is not (self._watch is None):
            self._look()

    def _look(self) -> None:
        """Wait for what is coming as long as it may take, and no longer."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self.coming is None or not self._serving.request_seconds:
            return
        if self.flow.read_paused:  # it is the application that does not take it
            self.coming.since += 1.0
        if (left := self.coming.left) > 0:
            self._watch = self.loop.call_later(left, self._look)
        elif not self.transport.is_closing():
            self._cut_off(TOO_SLOW)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser refused."""
        too_much = self._head > HEAD_BYTES or self._lines > HEAD_LINES
        self._cut_off(TOO_MUCH_HEAD if too_much else BAD)

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore `Upgrade`: the request is answered as plain HTTP (RFC 9110 §7.8)."""

    def _cut_off(self, answer: bytes) -> None:
        """Answer, if no answer is on its way. The rest is thrown away for a while, so that the client reads it."""
        if self._refused:
            return
        self._refused, self.coming = True, None
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = True  # to its application the client has gone
            cycle.message_event.set()
        self.pipeline.clear()
        self.transport.write(answer)
        self.transport.write_eof()
        self.loop.call_later(lifecycle.LINGER_SECONDS, self.transport.close)


class DrainingServer(uvicorn.Server):
    """uvicorn's server with our signals and hooks around its own drain."""

    def __init__(self, config: uvicorn.Config, serving: Serving) -> None:
        super().__init__(config)
        self.serving = serving

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ours, in the loop: uvicorn raises the signal again when done, and so never exits with 0."""
        lifecycle.on_signals(asyncio.get_running_loop(), self._begin)
        yield

    def _begin(self) -> None:
        self.should_exit = True
        lifecycle.exit_by(self.serving.drain_seconds + lifecycle.GRACE_SECONDS)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the helpers, then accept."""
        await lifetime.start()
        await super().startup(sockets)
        if self.serving.on_listening is not None and sockets:
            self.serving.on_listening(*lifecycle.address_of(sockets[0]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, tell the streams, let uvicorn wait for them, then stop the helpers."""
        for server in self.servers:
            server.close()
        for sock in sockets or []:
            sock.close()
        await asyncio.sleep(0)  # uvloop closes in its next turn
        lifetime.begin_drain(self.serving.drain_seconds)
        await self._linger(min(lifecycle.LINGER_SECONDS, self.serving.drain_seconds))
        await super().shutdown(sockets)
        await lifecycle.end(self.server_state.tasks)

    async def _linger(self, seconds: float) -> None:
        """Answer what clients are sending at this moment, telling them that the connection closes."""
        state, loop = self.server_state, asyncio.get_running_loop()
        state.default_headers.append((b"connection", b"close"))
        for connection in state.connections:
            cycle = getattr(connection, "cycle", None)  # a WebSocket has none
            if cycle is not None and not cycle.response_started:
                connection.shutdown()  # its answer will say that the connection closes
        deadline = loop.time() + seconds
        while state.connections and (  # noqa: ASYNC110 - uvicorn tells nobody
            loop.time() < deadline or self._unread()
        ):
            await asyncio.sleep(lifecycle.LOOK_SECONDS)

    def _unread(self) -> bool:
        """Is a request on its way to us, on a connection without one, while the drain lasts?"""
        cycles = [(c, getattr(c, "cycle", None)) for c in self.server_state.connections]
        idle = [c.transport for c, cycle in cycles if cycle is None or cycle.response_complete]
        sockets = [t.get_extra_info("socket") for t in idle if not t.is_closing()]
        return lifetime.drain_left() > 0 and any(map(lifecycle.unread, sockets))

    async def _wait_tasks_to_complete(self) -> None:
        """Wait for open requests as long as the drain lasts; `end` cancels the rest, once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(lifetime.drain_left()):
                await super()._wait_tasks_to_complete()
