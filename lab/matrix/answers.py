"""How a request of the matrix is put to the host, and its answer as one Response whatever carried it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc

from lab.matrix.asks import RPC, Ask
from lab.matrix.rpc_asks import as_json
from tests.support.bindings.client import PATIENCE, Client, Response
from tests.support.bindings.rpc_peer import channel

__all__ = ["answer"]

#: What HTTP says for the statuses of those who are not let in; the others keep their own numbers.
STATUS = {
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
}


async def answer(
    client: Client, slug: str, ask: Ask, headers: Mapping[str, str], *, lasts: bool = False
) -> Response:
    """The answer of an agent; `lasts`: it does not end by itself, and its beginning is enough."""
    given = {**ask.headers, **headers}
    if ask.verb == RPC:
        return await _called(ask, {"a2a-agent": slug, **given}, lasts=lasts)
    async with client.exchange(ask.verb, f"/agents/{slug}/{ask.path}", given) as exchange:
        exchange.upload(ask.body)
        if not lasts:
            return await exchange.response()
        await exchange.begin()
        return Response(exchange.status, exchange.headers, await exchange.piece() or b"")


async def _called(ask: Ask, metadata: Mapping[str, str], *, lasts: bool) -> Response:
    """The answer of an rpc: its messages as JSON, or its error as it came; all metadata are its headers."""
    wire, given = await channel(), tuple(metadata.items())
    begun = wire.unary_stream(ask.path)(ask.body, metadata=given)
    async with asyncio.timeout(PATIENCE):
        try:
            items = await _items(begun, lasts=lasts)
        except grpc.aio.AioRpcError:
            items = []
        initial = list(await begun.initial_metadata() or ())
        if lasts:
            begun.cancel()
            return Response(200, _texts(initial), b"".join(as_json(ask.path, i) for i in items))
        code, trailing = await begun.code(), list(await begun.trailing_metadata() or ())
    body = b"\n".join(as_json(ask.path, item) for item in items)
    if code is not grpc.StatusCode.OK:
        assert not items, items
        details = [value for key, value in trailing if isinstance(value, bytes)]
        body = b"\n".join([(await begun.details() or "").encode(), *details])
    return Response(STATUS.get(code, code.value[0]), _texts([*initial, *trailing]), body)


async def _items(begun: Any, *, lasts: bool) -> list[bytes]:
    if lasts:
        return [await begun.read()]
    return [item async for item in begun]


def _texts(metadata: list[tuple[str, str | bytes]]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in metadata if isinstance(value, str)]
