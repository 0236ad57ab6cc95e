"""gRPC on grpclib, started and ended like the other servers.

serve("127.0.0.1", 50051, print)   # in a process of its own
serve_in_background("127.0.0.1", 50051)         # in the process that serves HTTP, in its loop
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

import grpclib.server
import uvloop
from grpclib.config import Configuration
from grpclib.const import Cardinality
from grpclib.const import Handler as GrpcHandler
from grpclib.encoding.base import CodecBase, StatusDetailsCodecBase
from grpclib.health.v1 import health_pb2
from grpclib.metadata import decode_timeout
from grpclib.protocol import H2Protocol, Stream
from grpclib.reflection.v1alpha import reflection_pb2

from a2a_project import startup
from a2a_project.drain import drain_at_signals, stop_helpers
from a2a_project.grpc_server import health, reflection
from a2a_project.grpc_server.call import Calls
from a2a_project.grpc_server.places import ConnectionLimits, TooManyConnections
from a2a_project.operations import TABLE
from a2a_tasks import process_lifetime
from a2a_tasks.bindings.grpc.call import GrpcCall, GrpcStatus, Handler
from a2a_tasks.bindings.grpc.schema import know, pool
from a2a_tasks.bindings.grpc.service import SERVICES, handlers
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.process import BACKLOG, leave
from a2a_tasks.store.workers import WorkerKind

__all__ = ["Server", "serve_in_background", "serve"]

logger = logging.getLogger(__name__)

#: Bytes of a call's metadata above which the call is refused, and above which its connection is closed.
METADATA_BYTES, MAX_METADATA_BYTES = 32 * 1024, 1024 * 1024
#: The path that is given to such a call. No client can name it.
TOO_MUCH = "too much metadata"
#: Seconds between two checks of connections whose last call has ended, while the drain lasts.
LOOK_SECONDS = 0.05


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


async def refuse_metadata(call: GrpcCall) -> None:
    """Answer a call with too much metadata."""
    call.end(GrpcStatus.RESOURCE_EXHAUSTED, f"Metadata may have {METADATA_BYTES} bytes")


class Protocol(H2Protocol):
    """One connection."""

    def __init__(self, server: Server, *args: Any) -> None:
        super().__init__(*args)
        self._server, self._has_place, self._address = server, False, ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, or close it at a limit."""
        super().connection_made(transport)
        # h2 would end the connection, with the calls of other clients behind the same proxy.
        self.connection._connection.decoder.max_header_list_size = MAX_METADATA_BYTES  # noqa: SLF001
        self._address = str((transport.get_extra_info("peername") or [""])[0])
        try:
            self._server.places.take(self._address)
        except TooManyConnections as reason:
            self._server.full.warning(reason)
            self.processor.close()
            return
        self._has_place = True
        self._server.protocols.add(self)

    def data_received(self, data: bytes) -> None:
        """Handle data; an error in grpclib ends only this connection."""
        if self.connection.is_closing():
            return
        try:
            super().data_received(data)
        except Exception as fault:  # noqa: BLE001 - whatever a client sent
            logger.debug("a gRPC connection is closed: %r", fault)
            self.processor.close("Protocol error")

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection's place."""
        super().connection_lost(exc)
        if self._has_place:
            self._has_place = False
            self._server.places.give_back(self._address)
            self._server.protocols.discard(self)
            self._server.lost.set()

    def close_when_idle(self) -> None:
        """Close the connection with a GOAWAY if no call is open on it: the client connects elsewhere."""
        if not self.processor.streams and not self.connection.is_closing():
            self.connection._connection.close_connection()  # noqa: SLF001 - grpclib sends none
            self.connection.flush()
            self.processor.close()


class CallsOfConnection(grpclib.server.Handler):
    """The calls of one connection. grpclib does not release a call that is cancelled before it began."""

    def accept(
        self, stream: Stream, headers: list[tuple[str, str]], release_stream: Callable[[], object]
    ) -> None:
        """Begin a call; one with too much metadata is refused alone."""
        if sum(len(name) + len(value) for name, value in headers) > METADATA_BYTES:
            headers = [(name, TOO_MUCH if name == ":path" else value) for name, value in headers]
        # Without these, and for a deadline that is over, grpclib logs an error of the server.
        for missing in {":method", ":path"} - {name for name, _ in headers}:
            headers = [*headers, (missing, "")]
        headers = [
            (name, _at_least_20_ms(value) if name == "grpc-timeout" else value)
            for name, value in headers
        ]
        super().accept(stream, headers, lambda: None)
        self._tasks[stream].add_done_callback(lambda _: release_stream())


def _at_least_20_ms(timeout: str) -> str:
    with contextlib.suppress(ValueError):  # grpclib refuses what is no time
        return timeout if decode_timeout(timeout) > 0.02 else "20m"  # noqa: PLR2004 - seconds
    return timeout


class Server(grpclib.server.Server):
    """The services of the protocol, health and reflection on one port.

    It uses two private parts of grpclib's server: the factory of its protocols, and its listening socket, which the
    drain closes while calls go on.
    """

    def __init__(self, rpcs: Mapping[bytes, Handler] | None = None) -> None:
        """`rpcs`: the handlers by their paths; None = those of the protocol."""
        self.health, self.calls = health.HealthService(), Calls()
        descriptors = pool()
        know([health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR], descriptors)
        service = reflection.Reflection(descriptors, (*SERVICES, health.NAME, reflection.NAME))
        self._rpcs = rpcs or handlers(TABLE)
        self._looking = {**self.health.handlers, **service.handlers}
        self.places, self.protocols, self.lost = (
            ConnectionLimits.of_settings(),
            set[Protocol](),
            asyncio.Event(),
        )
        self.full = ThrottledLogger(logger, "a gRPC connection was turned away")
        self._forget: process_lifetime.Unregister = lambda: None
        alive = float(conf.KEEPALIVE_SECONDS)
        config = Configuration(
            _keepalive_time=alive,
            _keepalive_timeout=alive,
            _http2_max_pings_without_data=0,
            _http2_min_sent_ping_interval_without_data=alive,
        )
        super().__init__([self], codec=RawCodec(), status_details_codec=RawDetails(), config=config)
        # Any byte: a value that is not ASCII fails only its own call.
        self._h2_config.header_encoding = "latin-1"

    def __mapping__(self) -> dict[str, GrpcHandler]:
        """Return the handlers for grpclib: every rpc as bytes in and bytes out."""
        both = Cardinality.STREAM_STREAM
        served = {path: self.calls.serve(handler) for path, handler in self._rpcs.items()}
        served[TOO_MUCH.encode()] = self.calls.serve(refuse_metadata)
        served |= {path: self.calls.serve_watch(look) for path, look in self._looking.items()}
        return {
            path.decode(): GrpcHandler(each, both, bytes, bytes) for path, each in served.items()
        }

    def _protocol_factory(self) -> H2Protocol:
        calls = CallsOfConnection(
            self._mapping, self._codec, self._status_details_codec, self.__dispatch__
        )
        self._handlers.add(calls)
        self.__gc_step__()
        return Protocol(self, calls, self._config, self._h2_config)

    async def listen(self, host: str, port: int) -> int:
        """Listen, and report the services as serving; returns the port. OSError when the address cannot be used."""
        # A new process takes over the port while the old one drains.
        await self.start(host, port, ssl=_tls(), backlog=BACKLOG, reuse_port=True)
        self.health.serve("", *SERVICES)
        loop = asyncio.get_running_loop()
        # In a process that also serves HTTP the drain begins long before the stop, which waits for open requests.
        self._forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(self._leave))
        return int(self._listening.sockets[0].getsockname()[1])

    @property
    def _listening(self) -> asyncio.Server:
        return cast("asyncio.Server", self._server)

    def _leave(self) -> None:
        """Announce the end, and accept nothing new."""
        if self.calls.draining:
            return
        self._listening.close()
        self.health.stop()
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
        self.close()
        await self.wait_closed()
        for protocol in list(self.protocols):
            protocol.processor.close()

    async def _all_gone(self) -> None:
        """Wait until there is no connection; each closes with its last call."""
        while self.protocols:
            for protocol in list(self.protocols):
                protocol.close_when_idle()
            self.lost.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.lost.wait()


class RawCodec(CodecBase):
    """A codec for messages that rpcs encode and decode themselves: bytes."""

    __content_subtype__ = "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:
        """Return the message, which is encoded already."""
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> bytes:
        """Return the data, which the rpc decodes."""
        return data


class RawDetails(StatusDetailsCodecBase):
    """A codec for the details of a status, which the rpcs encode themselves."""

    def encode(self, status: Any, message: str | None, details: Any) -> bytes:
        """Return the details, which are encoded already."""
        return bytes(details)

    def decode(self, status: Any, message: str | None, data: bytes) -> Any:
        """Raise: no server reads details."""
        raise NotImplementedError


def serve_in_background(host: str, port: int) -> None:
    """Serve in the loop of the HTTP server of this process, from its start to its end."""
    server: list[Server] = []

    async def start() -> None:
        server.append(Server())
        bound = await server[0].listen(host, port)
        logger.info("gRPC on %s:%d", host, bound)
        process_lifetime.on_stop(server[0].stop)

    process_lifetime.on_start(start)


def serve(host: str, port: int, on_listening: Callable[[str, int], object]) -> NoReturn:
    """Serve until a signal, drain, and end the process with code 0. OSError when it cannot listen.

    `on_listening` gets host and port once connections are accepted (port 0 has become a real one).
    """
    uvloop.run(_serve(host, port, on_listening))
    leave()


async def _serve(host: str, port: int, on_listening: Callable[[str, int], object]) -> None:
    ended = asyncio.Event()
    drain_at_signals(asyncio.get_running_loop(), ended.set)
    startup.register(WorkerKind.GRPC)
    server = Server()
    await process_lifetime.start()
    bound = await server.listen(host, port)
    on_listening(host, bound)
    await ended.wait()
    await server.stop()
    await stop_helpers()
