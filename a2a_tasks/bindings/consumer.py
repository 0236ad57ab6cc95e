"""A Channels consumer for long responses: it notices at once when the client disconnects.

Channels' own AsyncHttpConsumer awaits `handle` where it should listen, so it notices a disconnect only after the
response, and every message costs a switch to a thread for database connections. Here the response and a listener are
two tasks; the first to end ends the other. No thread and no database connection is held meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib

from channels.generic.http import AsyncHttpConsumer

from a2a_tasks import process_lifetime
from a2a_tasks.bindings.http import Receive, Scope, Send

__all__ = ["LastingHttpConsumer"]


class LastingHttpConsumer(AsyncHttpConsumer):  # type: ignore[misc]
    """Base class: override `begin`, `go_on` and `farewell`. The request's body has been read already."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.base_send = scope, send
        self._begun = self._told = False
        loop = asyncio.get_running_loop()
        response = asyncio.create_task(self._respond())
        departure = asyncio.create_task(self._departure(receive))
        forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(self._tell, response))
        try:
            await asyncio.wait({response, departure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            forget()
            await self._end(response, departure)

    def _tell(self, response: asyncio.Task[bool]) -> None:
        """Handle the drain: interrupt a response that has begun; let another one begin first, so that its client gets it."""
        self._told = True
        if self._begun:
            response.cancel()

    async def _respond(self) -> bool:
        """Send the response; return False if the drain began before its rest was sent."""
        await self.begin()
        self._begun = True
        if self._told:
            return False
        await self.go_on()
        return True

    async def _end(self, response: asyncio.Task[bool], departure: asyncio.Task[None]) -> None:
        gone, whole = departure.done(), False
        departure.cancel()
        response.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            whole = await response
        await self.disconnect()
        if self._begun and not whole and not gone:
            # A draining process ends the response properly, so that the client reconnects.
            with contextlib.suppress(Exception):
                await self.farewell()

    @staticmethod
    async def _departure(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def begin(self) -> None:
        """Send the beginning that the client needs for a new try: the headers and the first items."""
        raise NotImplementedError

    async def go_on(self) -> None:
        """Send the rest, to the end. Cancelled when the client leaves or the process drains."""
        raise NotImplementedError

    async def farewell(self) -> None:
        """End an unfinished response, because the process drains."""
        raise NotImplementedError
