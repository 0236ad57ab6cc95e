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


class LastingHttpConsumer(AsyncHttpConsumer):  # type: ignore[misc]
    """Base class: override `begin`, `go_on` and `farewell`. The request's body has been read already."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.base_send = scope, send
        self._begun = self._told = False
        loop = asyncio.get_running_loop()
        response = asyncio.create_task(self._respond())
        departure = asyncio.create_task(self._departure(receive))
        forget = lifetime.on_drain(lambda: loop.call_soon_threadsafe(self._tell, response))
        try:
            await asyncio.wait({response, departure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            forget()
            await self._end(response, departure)

    def _tell(self, response: asyncio.Task[bool]) -> None:
        """The process drains. What has begun is interrupted; what has not, begins first, so that its client knows."""
        self._told = True
        if self._begun:
            response.cancel()

    async def _respond(self) -> bool:
        """Send the response; False if the drain came before its rest."""
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
            # A draining process ends the answer as a whole one, so that the client comes back.
            with contextlib.suppress(Exception):
                await self.farewell()

    @staticmethod
    async def _departure(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def begin(self) -> None:
        """Send what the client must have: the headers, and what it needs to come back."""
        raise NotImplementedError

    async def go_on(self) -> None:
        """Send the rest, to the end. Cancelled when the client leaves or the process drains."""
        raise NotImplementedError

    async def farewell(self) -> None:
        """End the response before its end, because the process drains."""
        raise NotImplementedError
