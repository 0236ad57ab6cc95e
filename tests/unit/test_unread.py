"""What a client has not read: also what the kernel holds for it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

import pytest
import uvloop

from a2a_tasks.bindings.unread import count_unread
from tests.support.execution.waiting import until

MIB = 1024 * 1024


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_client_that_reads_a_little_is_seen_to_read_before_the_kernel_takes_more(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(read_a_little(), 60))


async def read_a_little() -> None:
    """Read a little of an answer, and compare what is counted."""
    loop, connected = asyncio.get_running_loop(), asyncio.Queue[asyncio.StreamWriter]()
    server = await asyncio.start_server(lambda _, writer: connected.put_nowait(writer), "127.0.0.1")
    with socket.socket() as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await loop.sock_connect(client, server.sockets[0].getsockname())
        writer = await connected.get()
        transport = cast("asyncio.Transport", writer.transport)
        try:
            transport.write(bytes(16 * MIB))
            await until(lambda: count_unread(transport) > transport.get_write_buffer_size())
            before, here = count_unread(transport), transport.get_write_buffer_size()
            taken = 0
            while taken < 200_000:
                taken += len(await loop.sock_recv(client, 20_000))
            await until(lambda: count_unread(transport) <= before - 100_000)
            assert transport.get_write_buffer_size() == here > 0, "the kernel takes no more"
        finally:
            transport.abort()
            server.close()
    await until(lambda: count_unread(transport) == 0)
