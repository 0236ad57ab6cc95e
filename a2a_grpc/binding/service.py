"""The handlers of both gRPC services, and the number of open calls: each may wait for its message, or follow a task for hours."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from a2a_grpc.binding.call import GrpcCall, Handler
from a2a_grpc.binding.exchange import Exchange
from a2a_grpc.binding.rpcs import RPCS, Rpc
from a2a_tasks.bindings.byte_quota import ByteQuota
from a2a_tasks.conf import conf, of_settings
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["SERVICES", "handlers"]

SERVICES = tuple(RPCS)
#: Seconds after which a client may try again.
LATER = 1.0
TOO_MANY = "Too many calls are open"


class OpenCalls:
    """The counts of open calls in a server, without those of health and reflection."""

    def __init__(self) -> None:
        self._open = 0
        #: Calls that wait for their messages, by the peers of their connections.
        self._waiting: Counter[tuple[str, int] | None] = Counter()

    @contextmanager
    def count_waiting(self, call: GrpcCall) -> Iterator[None]:
        """Count a call that waits for its message until the block ends. Raises RateLimited.

        Anyone may begin one, without credentials, so a connection gets no more of them than are then left for others.
        """
        quota, peer = call_quota(), call.peer
        if not quota.take(1, self._waiting[peer]):
            raise RateLimited.until(LATER, TOO_MANY)
        self._waiting[peer] += 1
        try:
            yield
        finally:
            quota.give_back(1)
            self._waiting[peer] -= 1
            if not self._waiting[peer]:
                del self._waiting[peer]

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


@of_settings
@functools.cache
def call_quota() -> ByteQuota:
    """Return the quota of this process for calls that wait for their messages; one is alone at a limit of 1."""
    return ByteQuota(int(conf.GRPC_CALLS) + 1 if conf.GRPC_CALLS else sys.maxsize)


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
            with calls.count_waiting(call):
                exchange.body = await call.read() or b""
            with calls.count_open():
                await exchange.answer()
        except RateLimited as fault:
            exchange.refuse(fault)

    return answer
