"""How many webhooks a second one process sends, beside a bare loop of httpx: `python -m lab.farm.throughput [seconds] [at once]`.

The receiver is a process of its own. Both senders take turns, so that a busy machine is busy for both.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import httpx

from a2a_push.envelope import PreparedRequest
from a2a_push.sender import Delivered, Sender
from a2a_tasks.outbound import Client, Guard, OutboundPolicy

BODY = b'{"task":{"id":"' + b"x" * 1000 + b'"}}'
HEADERS = (("Content-Type", "application/json"), ("webhook-id", "m-1"), ("X-Token", "x" * 40))
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ROUNDS = 3


class Receiver(asyncio.Protocol):
    """Takes what comes, whole requests of one size, and says so."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self.transport, self.seen = transport, b""

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        self.seen += data
        while BODY in self.seen:
            self.seen = self.seen.partition(BODY)[2]
            self.transport.write(ANSWER)  # type: ignore[attr-defined]


async def receive() -> None:
    """Be the receiver, and tell the port."""
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def rate(send: Callable[[], Awaitable[None]], seconds: float, at_once: int) -> float:
    """Deliveries a second, with so many under way at once."""
    until, count = time.monotonic() + seconds, 0

    async def one() -> None:
        nonlocal count
        while time.monotonic() < until:
            await send()
            count += 1

    begun = time.monotonic()
    await asyncio.gather(*(one() for _ in range(at_once)))
    return count / (time.monotonic() - begun)


async def compare(url: str, seconds: float, at_once: int) -> None:
    """Print both rates of each round."""
    sender = Sender(Client(Guard(OutboundPolicy.read(loopback=True))))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=at_once)
    bare = httpx.AsyncClient(limits=limits, timeout=60, trust_env=False)

    async def ours() -> None:
        assert isinstance(await sender.send(PreparedRequest(url, HEADERS, BODY)), Delivered)

    async def theirs() -> None:
        assert (await bare.post(url, content=BODY, headers=dict(HEADERS))).status_code == 200

    for _ in range(ROUNDS):
        for name, send in (("sender", ours), ("httpx", theirs)):
            found = await rate(send, seconds, at_once)
            sys.stdout.write(f"{name}: {found:.0f}/s, {at_once} at once\n")
    await sender.close()
    await bare.aclose()


def main(seconds: float = 3.0, at_once: int = 100) -> None:
    """Start the receiver, and compare."""
    command = [sys.executable, "-m", "lab.farm.throughput", "receive"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        port = child.stdout.readline().strip()
        try:
            asyncio.run(compare(f"http://127.0.0.1:{port}/", seconds, at_once))
        finally:
            child.terminate()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    if sys.argv[1:] == ["receive"]:
        asyncio.run(receive())
    else:
        main(*(int(argument) for argument in sys.argv[1:]))
