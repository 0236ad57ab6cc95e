"""Both services, ready to be added to a server of grpcio's asyncio kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from a2a_tasks.bindings.circumstances import Table
from a2a_tasks.bindings.grpc.exchange import Context, Exchange
from a2a_tasks.bindings.grpc.one_message import one_message
from a2a_tasks.bindings.grpc.rpcs import RPCS, Rpc

__all__ = ["SERVICES", "handlers"]

SERVICES = tuple(RPCS)


def handlers(table: Table) -> Iterator[grpc.GenericRpcHandler]:
    """What serves the rpcs of each service. Bytes come in and go out, so that no fault of theirs is the library's."""
    for service, rpcs in RPCS.items():
        methods = {name: _handler(table, rpc) for name, rpc in rpcs.items()}
        yield grpc.method_handlers_generic_handler(service, methods)


def _handler(table: Table, rpc: Rpc) -> grpc.RpcMethodHandler[Any, Any]:
    # The one message is read by us, or the library would wait for it as long as its client likes.
    async def unary(_: object, context: Context) -> bytes:
        return await Exchange(table, rpc, context).unary(await one_message(context))

    async def stream(_: object, context: Context) -> None:
        await Exchange(table, rpc, context).stream(await one_message(context))

    if rpc.streams:
        return grpc.stream_stream_rpc_method_handler(stream)
    return grpc.stream_unary_rpc_method_handler(unary)
