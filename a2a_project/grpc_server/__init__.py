"""gRPC on grpclib, started and ended like the other servers.

serve("127.0.0.1", 50051, print)   # in a process of its own
serve_in_background(sock)          # in the process that serves HTTP, in its loop
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import NoReturn

import uvloop
from grpclib.const import Cardinality
from grpclib.const import Handler as GrpcHandler
from grpclib.health.check import ServiceStatus

from a2a_project import startup
from a2a_project.drain import drain_at_signals, stop_helpers
from a2a_project.grpc_server.call import LAST_WORD_SECONDS, Calls
from a2a_project.grpc_server.connection import REFUSALS, CallsOfConnection, Protocol
from a2a_project.grpc_server.inbox import ByteQuota
from a2a_project.grpc_server.places import ConnectionLimits
from a2a_project.grpc_server.services import standard_handlers
from a2a_project.operations import TABLE
from a2a_tasks import process, process_lifetime
from a2a_tasks.bindings.grpc.call import Handler
from a2a_tasks.bindings.grpc.service import handlers
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.process import leave
from a2a_tasks.store.workers import WorkerKind

__all__ = ["Server", "serve", "serve_in_background"]

logger = logging.getLogger(__name__)

#: Seconds between two checks of connections whose last call has ended, while the drain lasts.
LOOK_SECONDS = 0.05
#: Unread bytes of all calls together, and of those of one connection, in messages of the largest size.
MESSAGES, MESSAGES_OF_CONNECTION = 32, 8
#: The smallest size for this purpose.
MIN_MESSAGE = 1024 * 1024


def _tls() -> ssl.SSLContext | None:
    """Return the TLS context from the files of the settings; None = no TLS. OSError when one cannot be read."""
    if not conf.GRPC_CERTIFICATE:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(conf.GRPC_CERTIFICATE, conf.GRPC_KEY or None)
    if conf.GRPC_CLIENT_CA:
        context.load_verify_locations(conf.GRPC_CLIENT_CA)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Server:
    """The services of the protocol, health and reflection on one port."""

    def __init__(self, rpcs: Mapping[bytes, Handler] | None = None) -> None:
        """`rpcs`: the handlers by their paths; None = those of the protocol."""
        self.serving, self.calls = ServiceStatus(), Calls()
        self._rpcs = {**(rpcs or handlers(TABLE)), **REFUSALS}
        watches = standard_handlers(self.serving)
        served = {path: self.calls.serve(handler) for path, handler in self._rpcs.items()}
        served |= {
            path: self.calls.serve(handler, is_watch=True) for path, handler in watches.items()
        }
        self._served = {
            path.decode(): GrpcHandler(each, Cardinality.STREAM_STREAM, bytes, bytes)
            for path, each in served.items()
        }
        self.places, self.protocols, self.lost = (
            ConnectionLimits.of_settings(),
            set[Protocol](),
            asyncio.Event(),
        )
        self.message_size = max(int(conf.MAX_BODY_BYTES), MIN_MESSAGE)
        self.unread = ByteQuota(MESSAGES * self.message_size)
        self.full = ThrottledLogger(logger, "a gRPC connection was turned away")
        self._forget: process_lifetime.Unregister = lambda: None
        self._listening: asyncio.Server | None = None

    def _accept(self) -> Protocol:
        unread = ByteQuota(MESSAGES_OF_CONNECTION * self.message_size, self.unread)
        return Protocol(self, CallsOfConnection(self._served, unread))

    async def listen(self, host: str, port: int) -> int:
        """Serve on an address; returns the port. OSError when the address cannot be used."""
        sock = process.listen(host, port)
        await self.start(sock, _tls())
        return process.address_of(sock)[1]

    async def start(self, sock: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept the connections of a listening socket, and report the services as serving."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            self._accept, sock=sock, ssl=tls, backlog=process.BACKLOG
        )
        self.serving.set(True)
        # In a process that also serves HTTP the drain begins long before the stop, which waits for open requests.
        self._forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(self._leave))

    def _leave(self) -> None:
        """Announce the end, and accept nothing new."""
        if self.calls.draining:
            return
        if self._listening is not None:
            self._listening.close()
        self.serving.set(False)
        self.calls.drain()
        for protocol in list(self.protocols):
            protocol.close_when_idle()

    async def stop(self) -> None:
        """Let open calls end as long as the drain lasts, and no longer."""
        self._forget()
        self._leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(process_lifetime.drain_seconds()):
                await self._all_gone()
        # The second time is for clients that do not take their status.
        for seconds in (LAST_WORD_SECONDS, None):
            if tasks := [task for one in self.protocols for task in one.calls.tasks.values()]:
                self.calls.stop(tasks)
                await asyncio.wait(tasks, timeout=seconds)
        for protocol in list(self.protocols):
            protocol.processor.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                while self.protocols:  # the loop may end after this
                    self.lost.clear()
                    await self.lost.wait()

    async def _all_gone(self) -> None:
        """Wait until there is no connection; each closes with its last call."""
        while self.protocols:
            for protocol in list(self.protocols):
                protocol.close_when_idle()
            self.lost.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.lost.wait()


def serve_in_background(sock: socket.socket) -> None:
    """Serve on a listening socket, in the loop of the HTTP server of this process, from its start to its end.

    OSError when the certificate cannot be read.
    """
    tls = _tls()

    async def start() -> None:
        server = Server()
        await server.start(sock, tls)
        logger.info("gRPC on %s:%d", *process.address_of(sock))
        process_lifetime.on_stop(server.stop)

    process_lifetime.on_start(start)


def serve(host: str, port: int, on_listening: Callable[[str, int], object]) -> NoReturn:
    """Serve until a signal, drain, and end the process with code 0. OSError when it cannot listen.

    `on_listening` gets host and port once connections are accepted (port 0 has become a real one).
    """
    uvloop.run(_serve(process.listen(host, port), _tls(), on_listening))
    leave()


async def _serve(
    sock: socket.socket, tls: ssl.SSLContext | None, on_listening: Callable[[str, int], object]
) -> None:
    ended = asyncio.Event()
    drain_at_signals(asyncio.get_running_loop(), ended.set)
    startup.register(WorkerKind.GRPC)
    address = process.address_of(sock)
    server = Server()
    await process_lifetime.start()
    await server.start(sock, tls)
    on_listening(*address)
    await ended.wait()
    await server.stop()
    await stop_helpers()
