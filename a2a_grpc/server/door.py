"""The listening socket. Each connection has its place from the moment it is accepted, before its TLS handshake."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from a2a_grpc.server.places import ConnectionLimits, ConnectionSlot, TooManyConnections
from a2a_tasks.outages import ThrottledLogger

__all__ = ["Door"]

logger = logging.getLogger("a2a_grpc.server")

#: Connections that are accepted in one turn of the event loop.
AT_ONCE = 64
#: Seconds in which a client must have finished its TLS handshake, and in which it must answer the end of TLS.
HANDSHAKE_SECONDS, FAREWELL_SECONDS = 8.0, 5.0
#: Seconds without another try after the system has refused to accept a connection, as without descriptors.
REST_SECONDS = 1.0


class Door:
    """A listening socket that admits connections to their places.

    The event loop's own server counts a connection only after its handshake: clients that say nothing would take all
    descriptors of the process.
    """

    def __init__(
        self,
        sock: socket.socket,
        tls: ssl.SSLContext | None,
        limits: ConnectionLimits,
        make: Callable[[ConnectionSlot], asyncio.Protocol],
    ) -> None:
        """`make` returns the protocol of a new connection, which gives the place back when the connection is lost."""
        self._sock, self._tls, self._limits, self._make = sock, tls, limits, make
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._full = ThrottledLogger(logger, "a gRPC connection was turned away")
        self._refused = ThrottledLogger(logger, "the system accepts no gRPC connection")
        self._rest: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept nothing new, and end the handshakes that are under way."""
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._sock)
        self._sock.close()
        for task in self._beginning:
            task.cancel()

    def _listen(self) -> None:
        self._rest = None
        self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as fault:  # no descriptors, no memory
                self._refused.warning(fault)
                self._loop.remove_reader(self._sock)  # it would be called without end
                self._rest = self._loop.call_later(REST_SECONDS, self._listen)
                return
            self._admit(sock, str(address[0]))

    def _admit(self, sock: socket.socket, address: str) -> None:
        try:
            place = self._limits.take(address)
        except TooManyConnections as reason:
            self._full.warning(reason)
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._begin(sock, place))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _begin(self, sock: socket.socket, place: ConnectionSlot) -> None:
        """Begin the connection, after the handshake if there is TLS."""
        times = (
            {"ssl_handshake_timeout": HANDSHAKE_SECONDS, "ssl_shutdown_timeout": FAREWELL_SECONDS}
            if self._tls
            else {}
        )
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make(place), sock, ssl=self._tls, **times
            )
        except OSError as fault:  # the handshake has failed, or took too long
            logger.debug("a gRPC connection did not begin: %r", fault)
            place.give_back()
        except BaseException:
            place.give_back()
            raise
