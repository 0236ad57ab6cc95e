"""Servers of asyncio in the process of the tests: they end without losing whoever connects at that moment."""

from __future__ import annotations

import asyncio

__all__ = ["close_listener"]


async def close_listener(server: asyncio.Server) -> None:
    """Accept nobody any more; who is about to be accepted has a connection first.

    `Server.close` of CPython 3.11 drops a socket that it accepted in the same turn of the loop. The collector finds it
    later and warns, in whatever test is running then.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening)
    for _ in range(5):  # the connection is made, and its protocol has begun
        await asyncio.sleep(0)
    server.close()
