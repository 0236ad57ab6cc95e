"""gRPC on h2, started and ended as the other servers are (docs/decisions/0123).

serve("127.0.0.1", 50051, Serving(drain_seconds=5))   # a process of its own
beside("127.0.0.1", 50051)                            # in the process that serves HTTP, in its loop
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from typing import NoReturn

import uvloop
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from a2a_project import lifecycle, startup
from a2a_project.grpc_server import health, reflection
from a2a_project.grpc_server.connection import Connection
from a2a_project.grpc_server.limits import Limits
from a2a_project.grpc_server.onlookers import Onlookers
from a2a_project.grpc_server.places import NoPlace, Places
from a2a_project.lifecycle import Serving
from a2a_project.operations import TABLE
from a2a_tasks import lifetime
from a2a_tasks.bindings.grpc.schema import know, pool
from a2a_tasks.bindings.grpc.service import SERVICES, handlers
from a2a_tasks.conf import conf
from a2a_tasks.outages import Outage
from a2a_tasks.store.workers import WorkerKind

__all__ = ["Server", "Serving", "beside", "serve"]

logger = logging.getLogger(__name__)

#: Seconds that a client gets to read the last of what it was sent.
CLOSE_SECONDS = 1.0


def _tls() -> ssl.SSLContext | None:
    """TLS from the files of the settings; None = in clear. OSError when one cannot be read."""
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

    def __init__(self) -> None:
        self.health = health.Health()
        known = pool()
        know([health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR], known)
        told = reflection.Reflection(known, (*SERVICES, health.NAME, reflection.NAME))
        self._onlookers = Onlookers()
        looking = self._onlookers.of({**self.health.handlers, **told.handlers})
        self._handlers = {**handlers(TABLE), **looking}
        self._places, self._connections = Places.of_settings(), set[Connection]()
        self._full = Outage(logger, "a gRPC connection was turned away")
        self._lost, self._ending = asyncio.Event(), False
        self._listening: asyncio.Server | None = None
        self._forget: lifetime.Unregister = lambda: None

    async def start(self, host: str, port: int) -> int:
        """Listen, and say that all is well; returns the port. OSError when the address cannot be had."""
        limits, loop = Limits.of_settings(), asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: Connection(self._handlers, limits, self._meet, self._lose),
            host,
            port,
            ssl=(tls := _tls()),
            ssl_handshake_timeout=limits.greeting_seconds if tls else None,
            ssl_shutdown_timeout=CLOSE_SECONDS if tls else None,
            backlog=lifecycle.BACKLOG,
            reuse_port=True,  # a new process takes over while the old one drains
        )
        self.health.serve("", *SERVICES)
        # Beside HTTP the drain begins long before the stop: that waits for what is open there.
        self._forget = lifetime.on_drain(lambda: loop.call_soon_threadsafe(self._leave))
        return int(self._listening.sockets[0].getsockname()[1])

    def _leave(self) -> None:
        """Say that it ends, and take nothing new."""
        if self._ending:
            return
        self._ending = True
        self.health.stop()
        self._onlookers.end()
        if self._listening is not None:
            self._listening.close()
        for connection in list(self._connections):
            connection.leave()

    async def stop(self) -> None:
        """Let open calls end as long as the drain lasts, and no longer."""
        self._forget()
        self._leave()
        await self._all_gone(lifetime.drain_left())
        for connection in list(self._connections):
            connection.cut_off()
        await self._all_gone(CLOSE_SECONDS)
        for connection in list(self._connections):
            connection.abort()

    async def _all_gone(self, seconds: float) -> None:
        """Wait until there is no connection, but no longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._connections:
                    self._lost.clear()
                    await self._lost.wait()

    def _meet(self, connection: Connection) -> None:
        try:
            self._places.take(_address(connection))
        except NoPlace as reason:
            self._full.count(reason)
            connection.turn_away()
            return
        self._connections.add(connection)
        if self._ending:  # its handshake was under way
            connection.leave()

    def _lose(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._places.give_back(_address(connection))
            self._lost.set()


def _address(connection: Connection) -> str:
    return connection.peer[0] if connection.peer else ""


def beside(host: str, port: int) -> None:
    """Serve in the loop of whatever serves HTTP in this process, from its start to its end."""
    server: list[Server] = []

    async def start() -> None:
        server.append(Server())
        bound = await server[0].start(host, port)
        logger.info("gRPC on %s:%d", host, bound)
        lifetime.on_stop(server[0].stop)

    lifetime.on_start(start)


def serve(host: str, port: int, serving: Serving | None = None) -> NoReturn:
    """Serve until a signal, drain, and end the process with code 0. OSError when it cannot listen."""
    uvloop.run(_serve(host, port, serving or Serving()))
    lifecycle.leave()


async def _serve(host: str, port: int, serving: Serving) -> None:
    ended = asyncio.Event()
    lifecycle.on_signals(asyncio.get_running_loop(), ended.set)
    startup.register(WorkerKind.GRPC)
    server = Server()
    await lifetime.start()
    bound = await server.start(host, port)
    if serving.on_listening is not None:
        serving.on_listening(host, bound)
    await ended.wait()
    lifecycle.exit_by(serving.drain_seconds + lifecycle.GRACE_SECONDS)
    lifetime.begin_drain(serving.drain_seconds)
    await server.stop()
    await lifecycle.end([])
