"""gRPC in a process, started and ended like the other servers. The server is found by its entry point (`a2a_grpc`).

serve("127.0.0.1", 50051, print)   # in a process of its own
serve_in_background(sock)          # in the process that serves HTTP, in its loop
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import NoReturn, Protocol

import uvloop

from a2a_project import startup
from a2a_project.drain import drain_at_signals, stop_helpers
from a2a_project.operations import TABLE
from a2a_tasks import process, process_lifetime
from a2a_tasks.guests import BINDINGS, load_guest
from a2a_tasks.process import leave
from a2a_tasks.store.workers import WorkerKind

__all__ = ["make_server", "serve", "serve_in_background"]

logger = logging.getLogger(__name__)


class BindingServer(Protocol):
    """The server of a binding that has a port of its own."""

    async def start(self, sock: socket.socket) -> None:
        """Accept the connections of a listening socket."""

    async def stop(self) -> None:
        """Let open calls end as long as the drain lasts, and no longer."""


def make_server() -> BindingServer:
    """Return the server of gRPC. GuestMissing if no package has one; OSError when its certificate cannot be read."""
    server: BindingServer = load_guest(BINDINGS, "grpc")(TABLE)
    return server


def serve_in_background(sock: socket.socket) -> None:
    """Serve on a listening socket, in the loop of the HTTP server of this process, from its start to its end.

    GuestMissing without gRPC, OSError when the certificate cannot be read.
    """
    server = make_server()

    async def start() -> None:
        await server.start(sock)
        logger.info("gRPC on %s port %d", *process.address_of(sock))
        process_lifetime.on_stop(server.stop)

    process_lifetime.on_start(start)


def serve(host: str, port: int, on_listening: Callable[[str, int], object]) -> NoReturn:
    """Serve until a signal, drain, and end the process with code 0. GuestMissing without gRPC, OSError when it cannot listen.

    `on_listening` gets host and port once connections are accepted (port 0 has become a real one).
    """
    uvloop.run(_serve(process.listen(host, port), make_server(), on_listening))
    leave()


async def _serve(
    sock: socket.socket, server: BindingServer, on_listening: Callable[[str, int], object]
) -> None:
    ended = asyncio.Event()
    drain_at_signals(asyncio.get_running_loop(), ended.set)
    startup.register(WorkerKind.GRPC)
    address = process.address_of(sock)
    await process_lifetime.start()
    await server.start(sock)
    on_listening(*address)
    await ended.wait()
    await server.stop()
    await stop_helpers()
