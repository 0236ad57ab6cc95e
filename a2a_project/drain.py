"""The start and the end of a serving process, on every ASGI server that has a lifespan (docs/decisions/0025).

SIGTERM -> `/readyz` is 503, streams end with a `retry:`, answers announce that the connection closes
        -> LINGER_SECONDS later the server's own handler: it closes the socket and waits for open requests
        -> it cancels what is left after the drain, and ends the lifespan -> process_lifetime.stop() -> exit code 0
SIGINT  -> the same without the pause
SIGINT after either -> immediate exit
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from a2a_tasks import process_lifetime
from a2a_tasks.conf import conf
from a2a_tasks.process import exit_by

__all__ = ["Drain", "drain_at_signals", "stop_helpers"]

logger = logging.getLogger(__name__)

#: Seconds between the begin of the drain and the close of the socket. A client that keeps its connection may be sending
#: its next request at this moment: it gets an answer that announces the close, instead of a closed connection.
LINGER_SECONDS = 1.0
#: Seconds that stop callbacks get beyond the rest of the drain.
STOP_SECONDS = 1.0
#: Seconds after the drain at which the process exits, whatever still runs in it: threads cannot be cancelled.
GRACE_SECONDS = 1.8
SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: The answer to a request that the process can no longer serve.
TURNED_AWAY = {
    "type": "http.response.start",
    "status": 503,
    "headers": [(b"retry-after", b"1"), (b"content-length", b"0"), (b"connection", b"close")],
}


def drain_at_signals(
    loop: asyncio.AbstractEventLoop, end: Callable[[], object] | None = None
) -> None:
    """Begin the drain at the first SIGTERM or SIGINT; a later SIGINT ends the process at once.

    After a pause the first one goes on to `end`, or else to the handler that the server has installed. A second SIGTERM
    is ignored: a process of a group gets one from its parent and one for the group.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # Python handles no signals there
    own = {int(signum): signal.getsignal(signum) for signum in SIGNALS}
    draining = False

    def begin(signum: int) -> None:
        pause = LINGER_SECONDS if signum == signal.SIGTERM else 0.0
        process_lifetime.begin_drain(pause + float(conf.DRAIN_SECONDS))
        handler = own[signum]
        if end is not None:
            loop.call_later(pause, end)
        elif callable(handler):
            loop.call_later(pause, handler, signum, None)

    def handle(signum: int, _frame: FrameType | None) -> None:
        nonlocal draining
        if not draining:
            draining = True
            exit_by(LINGER_SECONDS + conf.DRAIN_SECONDS + GRACE_SECONDS)
            loop.call_soon_threadsafe(begin, signum)
        elif signum == signal.SIGINT:
            os._exit(128 + signum)

    for signum in SIGNALS:
        signal.signal(signum, handle)


async def stop_helpers() -> None:
    """Stop the helpers of the process within the rest of the drain and STOP_SECONDS."""
    process_lifetime.begin_drain()
    try:
        await asyncio.wait_for(
            process_lifetime.stop(), process_lifetime.drain_seconds() + STOP_SECONDS
        )
    except TimeoutError:
        logger.warning("the stop callbacks took longer than the drain; leaving without them")


class Drain:
    """An ASGI application that starts the helpers of its process, and ends together with it."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one scope."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def announce_close(message: Any) -> None:
            if message["type"] == "http.response.start" and process_lifetime.is_draining():
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._application(scope, receive, announce_close)
        except asyncio.CancelledError:
            if process_lifetime.is_draining():
                with contextlib.suppress(Exception):  # its answer has begun
                    await send(TURNED_AWAY)
                    await send({"type": "http.response.body"})
            raise

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        drain_at_signals(asyncio.get_running_loop())
        await process_lifetime.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await stop_helpers()
        await send({"type": "lifespan.shutdown.complete"})
