"""The handlers of both gRPC services, and the number of open calls: each may wait for its message, or follow a task for hours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TypeAlias

from a2a_grpc.binding.call import GrpcCall, Handler
from a2a_grpc.binding.exchange import Exchange
from a2a_grpc.binding.rpcs import RPCS, Rpc
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["SERVICES", "handlers"]

SERVICES = tuple(RPCS)
#: Seconds after which a client may try again.
LATER = 1.0
TOO_MANY = "Too many calls are open"
#: Address and port of a connection.
Peer: TypeAlias = tuple[str, int] | None


class OpenCalls:
    """The counts of open calls in a server, without those of health and reflection."""

    def __init__(self) -> None:
        self._open = 0
        #: The number of calls that wait for their messages, and their timeouts by connection, the oldest first.
        self._silent = 0
        self._waiting: dict[Peer, list[asyncio.Timeout]] = {}

    @asynccontextmanager
    async def count_waiting(self, peer: Peer) -> AsyncIterator[None]:
        """Count a call that waits for its message until the block ends. Raises RateLimited.

        Anyone may begin one, without credentials. So the call beyond A2A_GRPC_CALLS takes the place of the oldest one of
        the connection that has the most.
        """
        limit = int(conf.GRPC_CALLS)
        if limit and self._silent >= limit:
            self._end(max(self._waiting, key=lambda one: len(self._waiting[one])))
        try:
            async with asyncio.timeout(None) as timeout:
                self._waiting.setdefault(peer, []).append(timeout)
                self._silent += 1
                try:
                    yield
                finally:
                    self._forget(peer, timeout)
        except TimeoutError as fault:
            raise RateLimited.until(LATER, TOO_MANY) from fault

    def _end(self, peer: Peer) -> None:
        oldest = self._waiting[peer][0]
        self._forget(peer, oldest)
        oldest.reschedule(0)

    def _forget(self, peer: Peer, timeout: asyncio.Timeout) -> None:
        mine = self._waiting.get(peer, [])
        if timeout in mine:  # it was not ended for another one
            mine.remove(timeout)
            self._silent -= 1
        if not mine:
            self._waiting.pop(peer, None)

    @contextmanager
    def count_open(self) -> Iterator[None]:
        """Count a call that has its message until the block ends. Raises RateLimited if A2A_GRPC_CALLS are open already."""
        limit = int(conf.GRPC_CALLS)
        if limit and self._open >= limit:
            raise RateLimited.until(LATER, TOO_MANY)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


def handlers(table: OperationTable) -> Mapping[bytes, Handler]:
    """Return the handlers of all rpcs, by their paths."""
    calls = OpenCalls()
    return {
        f"/{service}/{name}".encode(): _handler(table, rpc, calls)
        for service, rpcs in RPCS.items()
        for name, rpc in rpcs.items()
    }


def _handler(table: OperationTable, rpc: Rpc, calls: OpenCalls) -> Handler:
    async def answer(call: GrpcCall) -> None:
        exchange = Exchange(table, rpc, call)
        try:
            async with calls.count_waiting(call.peer):
                exchange.body = await call.read() or b""
            with calls.count_open():
                await exchange.answer()
        except RateLimited as fault:
            exchange.refuse(fault)

    return answer
