"""The one message of a call, cut off when it does not come."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from a2a_tasks.conf import conf

__all__ = ["one_message"]


async def one_message(context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    """Its bytes; none, if the call has no message. A call whose message takes longer than A2A_REQUEST_SECONDS ends."""
    try:
        async with asyncio.timeout(float(conf.REQUEST_SECONDS) or None):
            message = await context.read()
    except TimeoutError:
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "The message did not come in time")
    return b"" if message is grpc.aio.EOF else bytes(message)
