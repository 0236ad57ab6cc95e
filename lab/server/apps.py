"""A small ASGI application with one path for each promise of the launchers, and the process that serves it.

    A2A_DRAIN_SECONDS=1 python -m lab.server.apps

It says on stdout, one line each, what happens to it; tests wait for these lines instead of sleeping.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import time
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from a2a_project import server
from a2a_project.drain import Drain
from a2a_project.trusted_proxies import behind_proxies
from a2a_tasks import process, process_lifetime

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

CHUNK = b"x" * 65_536
FLOOD_BYTES = 200 * 1024 * 1024
#: Seconds a send may take until the flood says that it is held back.
BLOCKED_SECONDS = 0.5


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - stdout is what the tests read


class App:
    """The application. One instance a process."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].strip("/").replace("-", "_")
        handler: Handler = getattr(self, f"do_{name}")
        await handler(scope, receive, send)

    async def do_hello(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await answer(send, b"hello")

    async def do_size(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """How many bytes the body has; says when it begins to come."""
        size, more = 0, True
        say("body began")
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                say("body broken off")
                return
            size += len(message["body"])
            more = message["more_body"]
        await answer(send, str(size).encode())

    async def do_caller(self, scope: Scope, _receive: Receive, send: Send) -> None:
        await answer(send, f"{scope['scheme']} {scope['client'][0]}".encode())

    async def do_memory(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """The most memory this process has held so far, in KiB."""
        await answer(send, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss).encode())

    async def do_release(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.released.set()
        await answer(send, b"released")

    async def do_two_pieces(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """The second piece follows when somebody asks for /release."""
        await begin(send)
        await piece(send, b"one")
        await self.released.wait()
        await piece(send, b"two", more=False)

    async def do_stream(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Open until the client leaves or the process drains; ends well in both cases."""
        told = asyncio.Event()
        unregister = process_lifetime.on_drain(told.set)
        await receive()
        await begin(send)
        await piece(send, b"open")
        ends = {asyncio.create_task(told.wait()), asyncio.create_task(disconnected(receive))}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        unregister()
        say("told to end" if told.is_set() else "client left")
        await piece(send, b"bye", more=False)

    async def do_deaf(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """A stream that hears of the drain and goes on."""
        process_lifetime.on_drain(lambda: say("told to end"))
        await begin(send)
        await piece(send, b"open")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            say("cancelled")
            raise

    async def do_slow(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Answers once the process drains: a large body, in one piece."""
        told = asyncio.Event()
        process_lifetime.on_drain(told.set)
        say("slow began")
        await told.wait()
        await answer(send, CHUNK * 256)

    async def do_flood(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """200 MB as fast as the server takes them; says when it is held back."""
        await begin(send)
        said = False
        for number in range(FLOOD_BYTES // len(CHUNK)):
            sending = asyncio.ensure_future(piece(send, CHUNK))
            done, _ = await asyncio.wait({sending}, timeout=BLOCKED_SECONDS)
            if not done and not said:
                said = True
                say(f"flood held back after {number * len(CHUNK)} bytes")
            await sending
        say("flood sent")
        await piece(send, b"", more=False)

    async def do_reckless(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Sends for ever and never looks whether anybody is there."""
        await begin(send)
        while True:
            await piece(send, CHUNK)

    async def do_thread(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
        """Work in a thread that nobody can stop."""
        say("thread began")
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)

    async def do_error(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ValueError("on purpose")

    async def do_error_midway(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await begin(send)
        await piece(send, b"half")
        raise ValueError("on purpose")


async def begin(send: Send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/plain")],
        }
    )


async def piece(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def answer(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await piece(send, body, more=False)


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def started() -> None:
    say("started")


async def stopped() -> None:
    say("stopped")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--access-log", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    process_lifetime.on_start(started)
    process_lifetime.on_stop(stopped)
    sock = process.listen("127.0.0.1", 0)

    async def listening() -> None:
        say(f"listening on {process.address_of(sock)[1]}")

    process_lifetime.on_start(listening)
    application = behind_proxies(Drain(App()), settings.TRUSTED_PROXIES)
    server.serve(application, sock, access_log=options.access_log)


if __name__ == "__main__":
    main()
