"""gRPC on grpclib. `make_server` is the entry point `grpc` of the group `a2a_host.bindings`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import Mapping

from grpclib.const import Cardinality
from grpclib.const import Handler as GrpcHandler
from grpclib.health.check import ServiceStatus

from a2a_grpc.binding.call import Handler
from a2a_grpc.binding.service import handlers
from a2a_grpc.server.call import LAST_WORD_SECONDS, Calls
from a2a_grpc.server.connection import REFUSALS, CallsOfConnection, Protocol
from a2a_grpc.server.door import Door
from a2a_grpc.server.places import ConnectionLimits, ConnectionSlot
from a2a_grpc.server.services import standard_handlers
from a2a_tasks import process, process_lifetime
from a2a_tasks.bindings.byte_quota import ByteQuota
from a2a_tasks.bindings.unread import unread
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable

__all__ = ["Server", "make_server"]

#: Seconds between two checks of connections whose last call has ended, while the drain lasts.
LOOK_SECONDS = 0.05
#: Unread bytes of all calls together, and of those of one connection, in messages of the largest size.
MESSAGES, MESSAGES_OF_CONNECTION = 32, 8
#: The smallest size for this purpose.
MIN_MESSAGE = 1024 * 1024


def make_server(table: OperationTable) -> Server:
    """Return a server for the operations of the protocol. OSError when its certificate cannot be read."""
    return Server(handlers(table))


def _read_tls() -> ssl.SSLContext | None:
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

    def __init__(self, rpcs: Mapping[bytes, Handler]) -> None:
        """`rpcs`: the handlers by their paths. OSError when the certificate of the settings cannot be read."""
        self._tls = _read_tls()
        self.serving, self.calls = ServiceStatus(), Calls()
        self._rpcs = {**rpcs, **REFUSALS}
        watches = standard_handlers(self.serving)
        served = {path: self.calls.serve(handler) for path, handler in self._rpcs.items()}
        served |= {
            path: self.calls.serve(handler, is_watch=True) for path, handler in watches.items()
        }
        self._served = {
            path.decode(): GrpcHandler(each, Cardinality.STREAM_STREAM, bytes, bytes)
            for path, each in served.items()
        }
        self.places, self.lost = ConnectionLimits.of_settings(), asyncio.Event()
        self.protocols = set[Protocol]()
        self.message_size = max(int(conf.MAX_BODY_BYTES), MIN_MESSAGE)
        self.unread = ByteQuota(MESSAGES * self.message_size)
        self.unread_answers = unread()
        self._forget: process_lifetime.Unregister = lambda: None
        self._door: Door | None = None

    def _make_protocol(self, place: ConnectionSlot) -> Protocol:
        quota = ByteQuota(MESSAGES_OF_CONNECTION * self.message_size, self.unread)
        answers = ByteQuota(sys.maxsize, self.unread_answers)
        return Protocol(self, CallsOfConnection(self._served, quota, answers), place)

    async def listen(self, host: str, port: int) -> int:
        """Serve on an address; returns the port. OSError when the address cannot be used."""
        sock = process.listen(host, port)
        await self.start(sock)
        return process.address_of(sock)[1]

    async def start(self, sock: socket.socket) -> None:
        """Accept the connections of a listening socket, and report the services as serving."""
        loop = asyncio.get_running_loop()
        self._door = Door(sock, self._tls, self.places, self._make_protocol)
        self.serving.set(True)
        # In a process that also serves HTTP the drain begins long before the stop, which waits for open requests.
        self._forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(self._leave))

    def _leave(self) -> None:
        """Announce the end, and accept nothing new."""
        if self.calls.draining:
            return
        if self._door is not None:
            self._door.close()
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
