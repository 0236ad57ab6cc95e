"""daphne, with what it lacks to serve streams: back-pressure, a drain, a backlog, and errors noticed at once.

    serve(application, "127.0.0.1", 8000, Serving(drain_seconds=5))

Ends the process when a signal has ended its work. One process; run more of them to use more cores. docs/decisions/0021 says which of
daphne's habits are replaced here and why; each has a contract test in tests/campaigns/server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

# First of all: it installs the asyncio reactor, which every other import of Twisted then finds.
from daphne.server import Server, twisted_loop  # type: ignore[import-untyped]  # isort: skip

from daphne.http_protocol import HTTPFactory, WebRequest  # type: ignore[import-untyped]
from twisted.internet import reactor as _reactor
from twisted.internet.protocol import connectionDone
from twisted.logger import (
    FilteringLogObserver,
    LogLevel,
    LogLevelFilterPredicate,
    STDLibLogObserver,
    globalLogBeginner,
)
from twisted.web.http import HTTPChannel

from a2a_project import lifecycle
from a2a_project.lifecycle import ASGIApplication, Serving
from a2a_project.patience import (
    BAD,
    HEAD_BYTES,
    HEAD_LINES,
    TOO_LARGE,
    TOO_MUCH_HEAD,
    TOO_SLOW,
    Coming,
)
from a2a_tasks import lifetime

if TYPE_CHECKING:
    import socket

    from twisted.python.failure import Failure

__all__ = ["DrainingServer", "Serving", "serve"]

logger = logging.getLogger(__name__)
reactor: Any = _reactor  # Twisted types it as a module

#: Seconds an application gets to end after its client has gone, before it is cancelled.
APPLICATION_CLOSE_SECONDS = 10


def serve(
    application: ASGIApplication, host: str, port: int, serving: Serving | None = None
) -> NoReturn:
    """Serve until a signal, drain, and end the process with code 0. OSError when it cannot listen."""
    serving = serving or Serving()
    sock = lifecycle.socket_for(host, port, serving)
    server = DrainingServer(
        lifecycle.behind_proxies(lifecycle.answering(application), serving.trusted_proxies),
        sock,
        serving,
    )
    server.run()
    lifecycle.leave()


class Gate:
    """Twisted's word on whether a connection can take more: closed while its send buffer is full (64 KiB).

    An `IPushProducer`, in Twisted's language.
    """

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    async def wait(self) -> None:
        """Return once the connection can take more, or is gone."""
        await self._open.wait()

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._open.clear()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._open.set()

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._open.set()


class Request(WebRequest):  # type: ignore[misc]  # daphne is untyped
    """A request whose body is no larger than the host takes: daphne calls no application before it has all of it."""

    came = 0

    def process(self) -> Any:
        """Nothing here speaks WebSocket: who asks for it gets the answer of HTTP (RFC 9110 §7.8)."""
        self.requestHeaders.removeHeader(b"upgrade")
        return super().process()

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """The head is here; `length` is None for a body in chunks."""
        super().gotLength(length)
        if (length or 0) > self.server.serving.max_body_bytes:
            self.channel.refuse(TOO_LARGE)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """A piece of the body is here."""
        self.came += len(data)
        if self.channel.coming is not None:
            self.channel.coming.came += len(data)
        if self.came <= self.server.serving.max_body_bytes:
            super().handleContentChunk(data)
        else:
            self.channel.refuse(TOO_LARGE)


class Channel(HTTPChannel):
    """One connection, which the factory knows of for as long as it is open.

    A request has its time to come, however steadily its bytes drop in; Twisted begins anew with every byte.
    """

    MAX_LENGTH = totalHeadersSize = HEAD_BYTES  # noqa: N815 - Twisted's names
    maxHeaders = HEAD_LINES  # noqa: N815
    #: The request that is on its way.
    coming: Coming | None = None
    #: Was a request refused whose rest is thrown away?
    refused = False

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        super().connectionMade()  # type: ignore[no-untyped-call]
        self._idle_seconds = self.timeOut
        self.factory.channels.add(self)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Something came: of a request on its way, or the beginning of one."""
        if self.refused:
            return
        serving: Serving = self.factory.server.serving
        if self.coming is None and not self._handlingRequest and serving.request_seconds:
            self.coming = Coming(serving)
            self.setTimeout(serving.request_seconds)  # type: ignore[no-untyped-call]
        super().dataReceived(data)  # type: ignore[no-untyped-call]

    def resetTimeout(self) -> None:  # noqa: N802 - Twisted's name
        """Something came, says Twisted: that gives a request on its way no more time."""
        if self.coming is None:
            super().resetTimeout()  # type: ignore[no-untyped-call]

    def allContentReceived(self) -> None:  # noqa: N802 - Twisted's name
        """The request is here."""
        if self.refused:
            return
        if self.coming is not None:
            self.coming = None
            self.setTimeout(self._idle_seconds)  # type: ignore[no-untyped-call]
        super().allContentReceived()  # type: ignore[no-untyped-call]

    def timeoutConnection(self) -> None:  # noqa: N802 - Twisted's name
        """It took too long: unless what came has bought it time."""
        if self.refused:
            self.forceAbortClient()  # type: ignore[no-untyped-call]
            return
        if self.coming is not None:
            if (left := self.coming.left) > 0:
                self.setTimeout(left)  # type: ignore[no-untyped-call]
                return
            self._transport.write(TOO_SLOW)
        super().timeoutConnection()  # type: ignore[no-untyped-call]

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802 - Twisted's name
        """A line of the head is too long."""
        self.refuse(TOO_MUCH_HEAD)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802 - Twisted's name
        lines, size = self._receivedHeaderCount, self._receivedHeaderSize
        self.refuse(TOO_MUCH_HEAD if lines > HEAD_LINES or size > HEAD_BYTES else BAD)

    def refuse(self, answer: bytes) -> None:
        """Answer a request that could not be read, once. What follows is read and thrown away for a while, so that the client reads the answer."""
        if self.refused:
            return
        self.refused, self.coming = True, None
        self.clearLineBuffer()  # type: ignore[no-untyped-call]
        self._transport.write(answer)
        self._transport.loseWriteConnection()
        self.setTimeout(lifecycle.LINGER_SECONDS)  # type: ignore[no-untyped-call]

    @property
    def _transport(self) -> Any:
        return self.transport  # zope's interfaces mean nothing to mypy

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        self.factory.gone(self)
        super().connectionLost(reason)  # type: ignore[no-untyped-call]

    @property
    def idle(self) -> bool:
        """Is no request under way?"""
        return not self.requests

    def _unread(self) -> bool:
        return self.transport is not None and lifecycle.unread(self._transport.socket)

    async def close_when_idle(self) -> None:
        """Close now if no request is open, nor on its way to us, else after it. What is buffered is sent first."""
        while self.idle and self._unread():  # noqa: ASYNC110 - it is the kernel's
            await asyncio.sleep(lifecycle.LOOK_SECONDS)
        self.persistent = 0
        if self.idle:
            self.loseConnection()  # type: ignore[no-untyped-call]


class Factory(HTTPFactory):  # type: ignore[misc]  # daphne is untyped
    """Makes the channels, and says when the last one has gone."""

    protocol = Channel

    def __init__(self, server: DrainingServer) -> None:
        super().__init__(server)
        self.channels: set[Channel] = set()
        self._emptied = asyncio.Event()

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        """A channel for a connection, with requests of ours."""
        channel = super().buildProtocol(addr)
        # Forms are read by who serves them: Twisted would refuse a bad one before.
        channel.requestFactory = partial(Request, parsePOSTFormSubmission=False)
        return channel

    def log(self, request: Any) -> None:
        """Write nothing: Twisted would format a line a request and throw it away."""

    def gone(self, channel: Channel) -> None:
        """A connection was closed, by either side."""
        self.channels.discard(channel)
        if not self.channels:
            self._emptied.set()

    async def emptied(self) -> None:
        """Give clients a moment for what they are sending, close idle connections, return when none is left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(lifecycle.LINGER_SECONDS):
                await self._none_left()
        for channel in list(self.channels):
            await channel.close_when_idle()
        await self._none_left()

    async def _none_left(self) -> None:
        while self.channels:
            self._emptied.clear()
            await self._emptied.wait()


class DrainingServer(Server):  # type: ignore[misc]  # daphne is untyped
    """daphne's server on a socket of ours, with gates on streams and an end in good order."""

    def __init__(self, application: ASGIApplication, sock: socket.socket, serving: Serving) -> None:
        super().__init__(
            application,
            endpoints=["a socket of ours"],  # daphne exits without any
            signal_handlers=False,
            action_logger=_log_request if serving.access_log else None,
            http_timeout=None,  # it would count, and cut, a stream's whole life
            application_close_timeout=APPLICATION_CLOSE_SECONDS,
            server_name="",
        )
        self.sock = sock
        self.serving = serving
        self.connections: dict[Any, dict[str, Any]] = {}
        self.gates: dict[Any, Gate] = {}
        self.port: Any = None
        self._draining: asyncio.Task[None] | None = None

    # --- life

    def run(self) -> None:
        """Start the helpers, serve, drain, return."""
        _log_twisted_warnings()
        asyncio.set_event_loop(twisted_loop)
        try:
            twisted_loop.run_until_complete(lifetime.start())
            self._listen()
        except BaseException:
            self.sock.close()
            raise
        lifecycle.on_signals(twisted_loop, self.stop)
        reactor.run(installSignalHandlers=False)

    def _listen(self) -> None:
        self.http_factory = Factory(self)
        host, port = lifecycle.address_of(self.sock)
        self.port = reactor.adoptStreamPort(self.sock.fileno(), self.sock.family, self.http_factory)
        self.sock.close()  # the reactor has its own copy; with ours open, the kernel would go on accepting
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        if self.serving.on_listening is not None:
            reactor.callWhenRunning(self.serving.on_listening, host, port)

    def stop(self) -> None:
        """Drain, then stop. Once; in the loop's thread."""
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain(), loop=twisted_loop)

    async def _drain(self) -> None:
        """Everything is over before Twisted's own shutdown, which would cut connections and lose what they buffer."""
        lifecycle.exit_by(self.serving.drain_seconds + lifecycle.GRACE_SECONDS)
        await self.port.stopListening().asFuture(twisted_loop)
        lifetime.begin_drain(self.serving.drain_seconds)
        try:
            async with asyncio.timeout(self.serving.drain_seconds):
                await self.http_factory.emptied()
                await self._applications_ended()
        except TimeoutError:
            pass
        await lifecycle.end(self._applications())
        reactor.stop()

    def _applications(self) -> list[asyncio.Task[None]]:
        return [
            d["application_instance"]
            for d in self.connections.values()
            if "application_instance" in d
        ]

    async def _applications_ended(self) -> None:
        while tasks := self._applications():
            await asyncio.wait(tasks)
            await asyncio.sleep(0)  # their callbacks take them off the list

    def kill_all_applications(self) -> None:
        """Nothing: the drain has ended them."""

    # --- requests

    def create_application(
        self, protocol: Any, scope: dict[str, Any]
    ) -> asyncio.Queue[dict[str, Any]] | None:
        """Start the application on a request, and hear of its end at once instead of at the next look."""
        queue: asyncio.Queue[dict[str, Any]] | None = super().create_application(protocol, scope)
        task = self.connections.get(protocol, {}).get("application_instance")
        if task is not None:
            task.add_done_callback(partial(self._application_ended, protocol))
        return queue

    def _application_ended(self, protocol: Any, task: asyncio.Task[None]) -> None:
        """Log its error, answer 500 or cut the connection if it left its client without an end, and forget it."""
        details = self.connections.get(protocol, {})
        details.pop("application_instance", None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("Exception inside application: %s", error, exc_info=error)
        if details.get("disconnected"):
            self.connections.pop(protocol, None)
        elif isinstance(protocol, WebRequest):
            self._answer_for(protocol, interrupted=task.cancelled())
        elif error is not None:
            protocol.handle_exception(error)

    def _answer_for(self, request: Any, *, interrupted: bool) -> None:
        self._forget_gate(request)
        if not request._response_started:  # noqa: SLF001 - daphne has no question for it
            status = (
                (503, b"Service Unavailable") if interrupted else (500, b"Internal Server Error")
            )
            request.basic_error(*status, "The server could not answer.")
        elif request.channel is not None:
            # Send what is buffered, but no last chunk: half an answer must not look like a whole one.
            request.channel.setTimeout(APPLICATION_CLOSE_SECONDS)
            request.channel.loseConnection()

    def application_checker(self) -> None:
        """Each second, cancel applications that outlive their clients."""
        limit = time.time() - self.application_close_timeout
        for protocol, details in list(self.connections.items()):
            task = details.get("application_instance")
            if task is not None and details.get("disconnected", limit) < limit:
                logger.warning(
                    "%r outlived its client by %s s and is cancelled",
                    protocol,
                    APPLICATION_CLOSE_SECONDS,
                )
                task.cancel()
        reactor.callLater(1, self.application_checker)

    def protocol_disconnected(self, protocol: Any) -> None:
        """A request was answered or lost. Forgotten at once unless its application still runs."""
        gate = self.gates.pop(protocol, None)
        if gate is not None:
            gate.stopProducing()
        if protocol not in self.connections:
            return
        super().protocol_disconnected(protocol)
        if "application_instance" not in self.connections[protocol]:
            del self.connections[protocol]

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Pass a message on; after a piece of a body, return when the client can take the next one."""
        kind = message["type"]
        if kind == "http.response.start" and lifetime.draining():
            message = {
                **message,
                "headers": [*message.get("headers", []), (b"connection", b"close")],
            }
            if protocol.channel is not None:
                protocol.channel.persistent = 0
        more = kind == "http.response.body" and message.get("more_body", False)
        if kind == "http.response.body" and not more:
            self._forget_gate(protocol)
        gate = self._gate(protocol) if more else None
        await super().handle_reply(protocol, message)
        if gate is not None:
            await gate.wait()
        if protocol not in self.connections or "disconnected" in self.connections[protocol]:
            # Its client is gone: an application that only sends must not hold the loop.
            await asyncio.sleep(0)

    def _gate(self, request: Any) -> Gate | None:
        """The gate of a streamed answer, registered at its first piece; None when the client is gone."""
        gate = self.gates.get(request)
        if gate is None and not request.finished and request.channel is not None:
            gate = self.gates[request] = Gate()
            request.registerProducer(gate, True)
        return gate

    def _forget_gate(self, request: Any) -> None:
        """Take the gate away before the last piece: Twisted will not finish a request that has a producer."""
        if self.gates.pop(request, None) is not None and request.channel is not None:
            request.unregisterProducer()


def _log_twisted_warnings() -> None:
    warnings: Any = LogLevelFilterPredicate(LogLevel.warn)
    stdlib: Any = STDLibLogObserver("twisted")  # Any: zope's interfaces mean nothing to mypy
    observer: Any = FilteringLogObserver(stdlib, [warnings])
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False, discardBuffer=True)


def _log_request(protocol: str, action: str, details: dict[str, Any]) -> None:
    if (protocol, action) == ("http", "complete"):
        logger.info(
            "%(client)s %(method)s %(path)s %(status)s %(size)s bytes %(time_taken).3f s", details
        )
