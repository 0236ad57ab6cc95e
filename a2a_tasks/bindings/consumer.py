"""A Channels consumer for responses that last: it hears at once when the client has gone.

Channels' own AsyncHttpConsumer awaits `handle` where it should listen, so a disconnect is heard only after the
response, and every message costs a trip to a thread for database connections. Here the response is a task beside a
listener; whichever ends first ends the other. No thread and no database connection is held meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib

from channels.generic.http import AsyncHttpConsumer

from a2a_tasks import lifetime
from a2a_tasks.bindings.http import Receive, Scope, Send

__all__ = ["LastingHttpConsumer"]


def _cancel_in(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    loop.call_soon_threadsafe(task.cancel)


class LastingHttpConsumer(AsyncHttpConsumer):  # type: ignore[misc]
    """Base class: override `respond`. The request's body has been read already."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.base_send = scope, send
        loop = asyncio.get_running_loop()
        response = asyncio.create_task(self.respond())
        departure = asyncio.create_task(self._departure(receive))
        forget = lifetime.on_drain(lambda: _cancel_in(loop, response))
        try:
            if lifetime.draining():
                response.cancel()
            await asyncio.wait({response, departure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            forget()
            await self._end(response, departure)

    async def _end(self, response: asyncio.Task[None], departure: asyncio.Task[None]) -> None:
        gone = departure.done()
        departure.cancel()
        drained = not response.done() or response.cancelled()
        response.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await response
        await self.disconnect()
        if (
            drained and not gone
        ):  # a draining process closes properly, so that the client comes back
            with contextlib.suppress(Exception):
                await self.send_body(b"")

    @staticmethod
    async def _departure(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def respond(self) -> None:
        """Send the response. Cancelled when the client leaves or the process drains."""
        raise NotImplementedError
