"""The handlers of both gRPC services, and the number of open calls: each may wait for its message, or follow a task for hours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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


class OpenCalls:
    """The count of open calls in a server, without those of health and reflection."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count one call until the block ends. Raises RateLimited if A2A_GRPC_CALLS are open already."""
        limit = int(conf.GRPC_CALLS)
        if limit and self._count >= limit:
            raise RateLimited.until(LATER, "Too many calls are open")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


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
            with calls.one_more():
                exchange.body = await call.read() or b""
                await exchange.answer()
        except RateLimited as fault:
            exchange.refuse(fault)

    return answer
