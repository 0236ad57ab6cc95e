"""gRPC on grpcio's asyncio server, started and ended as the other servers are.

serve("127.0.0.1", 50051, Serving(drain_seconds=5))   # a process of its own
beside("127.0.0.1", 50051)                            # in the process that serves HTTP, in its loop
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import NoReturn

import grpc
import uvloop
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_health.v1.health import aio as health
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_reflection.v1alpha import reflection, reflection_pb2

from a2a_project import lifecycle, startup
from a2a_project.lifecycle import Serving
from a2a_project.operations import TABLE
from a2a_tasks import lifetime
from a2a_tasks.bindings.grpc.schema import know, pool
from a2a_tasks.bindings.grpc.service import SERVICES, handlers
from a2a_tasks.conf import conf

__all__ = ["Server", "Serving", "beside", "serve"]

logger = logging.getLogger(__name__)

#: Bytes that metadata may have: tokens with many groups are the longest.
METADATA_BYTES = 32 * 1024
#: Milliseconds that an answer to a keep-alive may take.
PONG_MS = 10_000


def _options() -> list[tuple[str, int]]:
    alive = int(float(conf.KEEPALIVE_SECONDS) * 1000)
    return [
        ("grpc.max_receive_message_length", int(conf.MAX_BODY_BYTES)),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", 2 * METADATA_BYTES),
        ("grpc.keepalive_time_ms", alive),
        ("grpc.keepalive_timeout_ms", PONG_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", alive // 2),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.so_reuseport", 1),  # a new process takes over while the old one drains
    ]


def _tls() -> grpc.ServerCredentials | None:
    """TLS from the files of the settings; None = in clear. OSError when one cannot be read."""
    if not conf.GRPC_CERTIFICATE:
        return None
    chain = Path(conf.GRPC_CERTIFICATE).read_bytes()
    key = Path(conf.GRPC_KEY or conf.GRPC_CERTIFICATE).read_bytes()
    if not conf.GRPC_CLIENT_CA:
        return grpc.ssl_server_credentials([(key, chain)])
    vouching = Path(conf.GRPC_CLIENT_CA).read_bytes()
    return grpc.ssl_server_credentials([(key, chain)], vouching, require_client_auth=True)


class Server:
    """The services of the protocol, health and reflection on one port."""

    def __init__(self) -> None:
        self._server = grpc.aio.server(options=_options())
        self._server.add_generic_rpc_handlers(tuple(handlers(TABLE)))
        self.health = health.HealthServicer()
        add_HealthServicer_to_server(self.health, self._server)
        self._add_reflection()

    def _add_reflection(self) -> None:
        known = pool()
        know([health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR], known)
        names = (*SERVICES, HEALTH, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server, pool=known)

    async def start(self, host: str, port: int) -> int:
        """Listen, and say that all is well; returns the port. OSError when the address cannot be had."""
        credentials, address = _tls(), f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if credentials is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, credentials)
        except RuntimeError as fault:
            raise OSError(str(fault)) from fault
        await self._server.start()
        for name in ("", *SERVICES):
            await self.health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return bound

    async def stop(self) -> None:
        """Say that it ends, take nothing new, and let open calls end as long as the drain lasts."""
        await self.health.enter_graceful_shutdown()
        await self._server.stop(lifetime.drain_left())


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
    startup.register()
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
