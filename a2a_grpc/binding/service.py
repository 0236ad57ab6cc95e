"""The handlers of both gRPC services."""

from __future__ import annotations

from collections.abc import Mapping

from a2a_grpc.binding.call import GrpcCall, Handler
from a2a_grpc.binding.exchange import Exchange
from a2a_grpc.binding.open_calls import OpenCalls
from a2a_grpc.binding.rpcs import RPCS, Rpc
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["SERVICES", "handlers"]

SERVICES = tuple(RPCS)


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
