"""Both services, ready to be served."""

from __future__ import annotations

from collections.abc import Mapping

from a2a_tasks.bindings.circumstances import Table
from a2a_tasks.bindings.grpc.call import Call, Handler
from a2a_tasks.bindings.grpc.exchange import Exchange
from a2a_tasks.bindings.grpc.open_calls import OpenCalls
from a2a_tasks.bindings.grpc.rpcs import RPCS, Rpc
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["SERVICES", "handlers"]

SERVICES = tuple(RPCS)


def handlers(table: Table) -> Mapping[bytes, Handler]:
    """What serves the rpcs of each service, by their paths."""
    calls = OpenCalls()
    return {
        f"/{service}/{name}".encode(): _handler(table, rpc, calls)
        for service, rpcs in RPCS.items()
        for name, rpc in rpcs.items()
    }


def _handler(table: Table, rpc: Rpc, calls: OpenCalls) -> Handler:
    async def answer(call: Call) -> None:
        exchange = Exchange(table, rpc, call)
        try:
            with calls.one_more():
                await exchange.answer(await call.read() or b"")
        except RateLimited as fault:
            exchange.refuse(fault)

    return answer
